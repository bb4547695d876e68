//! What a plan says it takes is what a run of it launches, for every plan, operation and source.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use batchla_core::{
    Backend, BatchLayout, BatchedDeterminant, BatchedFactorize, BatchedInvert, BatchedSolve, Chosen, DeterminantArgs,
    Explanation, Extras, FactorizeArgs, FactorsRef, InvertArgs, Operation, Options, Problem, Receipt, Report,
    ScalarKind, SolveArgs, Source, SourceKind, Transpose,
};
use batchla_cuda::{Cuda, CudaPlan, Device, Limits, Tuned, TunedLayout, TunedRow, TunedTable};

fn limits() -> Limits {
    Limits::preset("sm_90").unwrap()
}

fn problems(order: usize, batch: usize) -> Vec<Problem> {
    let layout = |cols| BatchLayout::column_major(batch, order, cols).unwrap();
    let (a, x) = (layout(order), layout(3));
    let rows = BatchLayout::row_major(batch, order, order).unwrap();
    let (matrix, factors) = (SourceKind::Matrix, SourceKind::Factors);
    let solve = |source| Problem::solve::<f64>(source, a, None, x, Transpose::None).unwrap();
    let one = BatchLayout::column_major(1, order, order).unwrap();
    let serves = |source| Problem::solve::<f64>(source, one, None, x, Transpose::None).unwrap();
    let determinant = |problem: Problem| problem.with_extras(Extras::none().with_determinant()).unwrap();
    let condition = |problem: Problem| problem.with_extras(Extras::none().with_condition()).unwrap();
    let invert = |source, out| Problem::invert::<f64>(source, a, out).unwrap();
    vec![
        Problem::factorize::<f64>(SourceKind::InPlace, a, a).unwrap(),
        determinant(Problem::factorize::<f64>(matrix, a, a).unwrap()),
        invert(matrix, a),
        invert(matrix, rows),
        determinant(invert(matrix, a)),
        condition(invert(matrix, a)),
        invert(factors, a),
        solve(matrix),
        solve(factors),
        serves(matrix),
        serves(factors),
        Problem::determinant::<f64>(matrix, a).unwrap(),
        Problem::determinant::<f64>(factors, a).unwrap(),
    ]
}

fn run(gpu: &Cuda, problem: &Problem, options: &Options) {
    let prepared = gpu.prepare(problem, options).unwrap();
    let mut workspace = gpu.workspace(&prepared).unwrap();
    let (batch, order) = (problem.batch(), problem.order());
    let a = gpu.allocate_batch::<f64>(*problem.a()).unwrap();
    let mut out = gpu.allocate_batch::<f64>(*problem.out()).unwrap();
    let mut pivots = gpu.allocate::<u32>(batch * order).unwrap();
    let (given, outcomes) = (gpu.allocate::<u32>(batch * order).unwrap(), gpu.allocate::<u32>(batch).unwrap());
    let mut report = Report::allocate(gpu, batch, problem.extras()).unwrap();
    let source = match problem.source() {
        SourceKind::InPlace => Source::InPlace,
        SourceKind::Matrix => Source::Matrix(a.view()),
        SourceKind::Factors => {
            Source::Factors(FactorsRef { lu: a.view(), pivots: given.slice(), outcomes: outcomes.slice() })
        }
    };
    let (mut view, report) = (out.view_mut(), report.view_mut());
    match problem.operation() {
        Operation::Factorize => {
            let args = FactorizeArgs::new(&source, &mut view, pivots.slice_mut(), report);
            gpu.run_factorize(&prepared, args, &mut workspace)
        }
        Operation::Invert => gpu.run_invert(&prepared, InvertArgs::new(&source, &mut view, report), &mut workspace),
        Operation::Solve => gpu.run_solve(&prepared, SolveArgs::new(&source, None, &mut view, report), &mut workspace),
        _ => gpu.run_determinant(&prepared, DeterminantArgs::new(&source, report), &mut workspace),
    }
    .unwrap();
}

fn explain(problem: &Problem, plan: &str, limits: &Limits) -> Explanation {
    CudaPlan::explain(problem, &Options::default().with_plan(plan), limits, &Tuned::none()).unwrap()
}

/// Launches and threads of each kernel.
type Launches = BTreeMap<String, (usize, usize)>;

fn holds(problem: &Problem, plan: &str, limits: &Limits) {
    let (device, fake) = Device::fake(limits.clone()).unwrap();
    let explanation = explain(problem, plan, limits);
    run(&Cuda::on(&device).unwrap(), problem, &Options::default().with_plan(plan));
    let mut launched = Launches::new();
    for launch in fake.launches() {
        let (count, threads) = launched.entry(launch.function).or_default();
        (*count, *threads) = (*count + 1, (*threads).max(launch.block as usize));
    }
    let parts = problem.batch() / explanation.part;
    let mut told = Launches::new();
    for step in &explanation.steps {
        let (count, threads) = told.entry(step.name.clone().into_owned()).or_default();
        (*count, *threads) = (*count + parts * step.launches, (*threads).max(step.threads));
    }
    assert_eq!(launched, told, "{problem}: {plan}");
}

#[test]
fn what_is_told_is_what_is_launched() {
    for order in [0, 1, 5, 33, 100, 130, 210] {
        for problem in problems(order, 4) {
            for plan in CudaPlan::NAMES {
                holds(&problem, plan, &limits());
            }
        }
    }
}

#[test]
fn a_batch_in_parts_is_told_in_parts() {
    let small = Limits { memory_bytes: 16 << 20, ..limits() };
    let mut parts = 0;
    for (index, problem) in problems(100, 1000).iter().enumerate() {
        let part = explain(problem, "left-looking", &small).part;
        if part < 1000 {
            // Of whole parts.
            holds(&problems(100, 2 * part)[index], "left-looking", &small);
            parts += 1;
        }
    }
    assert!(parts > 3, "{parts}");
}

#[test]
fn every_other_plan_is_rejected_with_a_reason_and_the_plan_says_where_its_numbers_are_from() {
    for order in [8, 64, 128, 300] {
        for problem in problems(order, 10) {
            for options in [Options::default(), Options::default().with_plan("right-looking")] {
                let explanation = CudaPlan::explain(&problem, &options, &limits(), &Tuned::none()).unwrap();
                let names: Vec<_> = explanation.rejected.iter().map(|one| one.plan.as_str()).collect();
                assert_eq!(names.len(), CudaPlan::NAMES.len() - 1);
                assert!(!names.contains(&&*explanation.name));
                assert!(explanation.rejected.iter().all(|one| one.reason.len() > 20), "{explanation}");
                let solves = !explanation.steps.iter().any(|step| step.occupancy.is_some());
                assert!(solves || !explanation.numbers.is_empty(), "{explanation}");
                let chosen = if options.plan.is_some() { Chosen::ByName } else { Chosen::ByPlanner };
                assert_eq!(explanation.chosen, chosen);
            }
        }
    }
}

#[test]
fn the_reason_says_whether_a_matrix_fits_the_chip_and_up_to_where_that_is_faster() {
    let there = Limits::preset("sm_90").unwrap();
    let reason_on = |order, limits: &Limits| {
        let a = BatchLayout::column_major(100, order, order).unwrap();
        let problem = Problem::invert::<batchla_core::Complex<f64>>(SourceKind::Matrix, a, a).unwrap();
        let explanation = CudaPlan::explain(&problem, &Options::default(), limits, &Tuned::none()).unwrap();
        let other = if explanation.name == "resident" { "left-looking" } else { "resident" };
        explanation.rejected.into_iter().find(|one| one.plan == other).unwrap().reason
    };
    let reason = |order| reason_on(order, &there);
    assert!(reason(300).contains("at most 256 rows"), "{}", reason(300));
    assert!(reason(250).starts_with("slower from order 161 on"), "{}", reason(250));
    for order in [20, 150, 160] {
        assert!(reason(order).starts_with("slower up to order 256"), "{}", reason(order));
    }
    assert!(reason(150).contains("NVIDIA H200, 2026-11-28"), "{}", reason(150));
    // What fits there need not fit here.
    let mut small = Limits::preset("sm_70").unwrap();
    small.shared_bytes_per_block = 32768;
    let small = reason_on(250, &small);
    assert!(
        small.contains("takes 1000000 bytes") && small.contains("Tesla V100") && small.contains("32768"),
        "{small}"
    );
}

#[test]
fn few_matrices_are_shared_out_where_they_are_factored_and_not_where_factors_are_given() {
    let few = |source| {
        let a = BatchLayout::column_major(1, 400, 400).unwrap();
        let problem = Problem::invert::<f64>(source, a, a).unwrap();
        CudaPlan::explain(&problem, &Options::default(), &limits(), &Tuned::none()).unwrap()
    };
    assert_eq!(few(SourceKind::Matrix).name, "spread");
    let rejected = few(SourceKind::Factors).rejected.into_iter().find(|one| one.plan == "spread").unwrap().reason;
    assert!(rejected.contains("has its LU"), "{rejected}");
}

#[test]
fn beside_a_tuned_plan_what_has_no_room_is_told_so_and_what_has_that_it_was_slower() {
    let folder = tempfile::tempdir().unwrap();
    let receipt = Receipt::new("NVIDIA H200", "2026-01-31", "batchla tune f64");
    let mut table = TunedTable::new(&limits(), ScalarKind::F64, Operation::Invert, TunedLayout::ColumnMajor, &receipt);
    let plan = "left-looking:panel=16".to_owned();
    table.rows = vec![TunedRow { first: 20, last: 300, plan, speedup: 1.5, earlier: None }];
    table.write(folder.path()).unwrap();
    let tuned = Tuned::load(folder.path(), &limits());
    let on_chip = |order| {
        let problem = TunedLayout::ColumnMajor.problem(ScalarKind::F64, Operation::Invert, 100, order).unwrap();
        let explanation = CudaPlan::explain(&problem, &Options::default(), &limits(), &tuned).unwrap();
        assert!(matches!(explanation.chosen, Chosen::ByTuning(_)), "{explanation}");
        explanation.rejected.into_iter().find(|one| one.plan == "resident").unwrap().reason
    };
    assert!(on_chip(20).contains("as the tuner measured it"), "{}", on_chip(20));
    assert!(on_chip(300).contains("at most 256 rows"), "{}", on_chip(300));
}

#[test]
fn expected_occupancy_is_bounded_by_what_is_scarcest() {
    for architecture in Limits::PRESETS {
        let limits = Limits::preset(architecture).unwrap();
        for problem in [4, 32, 64, 200, 512].into_iter().flat_map(|order| problems(order, 10)) {
            for step in CudaPlan::explain(&problem, &Options::default(), &limits, &Tuned::none()).unwrap().steps {
                let Some(occupancy) = step.occupancy else { continue };
                assert!(occupancy.blocks >= 1, "{problem} on {architecture}: {step}");
                assert!(occupancy.warps <= occupancy.most_warps && occupancy.blocks <= 32, "{step}");
                let shared = occupancy.blocks * (step.shared_bytes + limits.reserved_shared_bytes_per_block as usize);
                assert!(shared <= limits.shared_bytes_per_multiprocessor as usize, "{step}");
            }
        }
    }
}
