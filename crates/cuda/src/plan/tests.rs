use batchla_core::{BatchLayout, ErrorKind, Transpose};

use super::chip::column_stride;
use super::*;

const SCALARS: [ScalarKind; 4] = [ScalarKind::F32, ScalarKind::F64, ScalarKind::C32, ScalarKind::C64];

fn problem(scalar: ScalarKind, operation: Operation, source: SourceKind, order: usize, batch: usize) -> Problem {
    fn of<T: batchla_core::Scalar>(operation: Operation, source: SourceKind, order: usize, batch: usize) -> Problem {
        let a = BatchLayout::column_major(batch, order, order).unwrap();
        match operation {
            Operation::Factorize => Problem::factorize::<T>(source, a, a),
            Operation::Invert => Problem::invert::<T>(source, a, a),
            Operation::Solve => {
                let x = BatchLayout::column_major(batch, order, 3).unwrap();
                Problem::solve::<T>(source, a, None, x, Transpose::None)
            }
            _ => Problem::determinant::<T>(source, a),
        }
        .unwrap()
    }
    match scalar {
        ScalarKind::F32 => of::<f32>(operation, source, order, batch),
        ScalarKind::F64 => of::<f64>(operation, source, order, batch),
        ScalarKind::C32 => of::<batchla_core::Complex<f32>>(operation, source, order, batch),
        ScalarKind::C64 => of::<batchla_core::Complex<f64>>(operation, source, order, batch),
    }
}

fn choose(problem: &Problem, plan: Option<&str>, architecture: &str) -> Result<CudaPlan, Error> {
    let options = plan.map_or(Options::default(), |name| Options::default().with_plan(name));
    CudaPlan::choose(problem, &options, &Limits::preset(architecture).unwrap())
}

#[test]
fn every_family_serves_every_order_type_and_architecture() {
    for architecture in Limits::PRESETS {
        let limits = Limits::preset(architecture).unwrap();
        for scalar in SCALARS {
            for order in [0, 1, 2, 31, 32, 33, 64, 127, 190, 256, 512, 1000, 1024, 1025, 2048, 2500] {
                for name in CudaPlan::NAMES {
                    let problem = problem(scalar, Operation::Invert, SourceKind::Matrix, order, 10);
                    let plan = choose(&problem, Some(name), architecture).unwrap();
                    if let Some(resident) = &plan.resident {
                        assert!(name == "resident" && plan.getrf.is_none(), "{plan}");
                        assert_eq!(resident.inverts, plan.getri.is_none(), "{plan}");
                        assert!(
                            resident.window < order.max(1) && resident.window.is_multiple_of(resident.panel),
                            "{plan}"
                        );
                        assert!(resident.rows * resident.threads >= order, "{plan}");
                        assert!(resident.crew() * resident.teams <= limits.threads_per_block as usize, "{plan}");
                        assert!(resident.dynamic_shared_bytes <= limits.shared_bytes_per_block as usize, "{plan}");
                        if let Some(getri) = &plan.getri {
                            let rows = getri.threads * getri.rows * getri.parts.max(1);
                            assert!(getri.resident && rows >= order, "{plan}");
                            assert!(getri.threads <= limits.threads_per_block as usize, "{plan}");
                            let bytes = getri.shared_bytes(scalar, order, order);
                            assert!(
                                2 * bytes <= limits.shared_bytes_per_multiprocessor as usize || order > 128,
                                "{plan}"
                            );
                            assert!(bytes <= limits.shared_bytes_per_block as usize, "{plan}: {bytes}");
                        }
                        continue;
                    }
                    let (getrf, getri) = (plan.getrf.clone().unwrap(), plan.getri.clone().unwrap());
                    assert!(getrf.rows == 0 || getrf.rows * getrf.threads >= order, "{plan}");
                    assert!(getrf.threads * getrf.teams <= limits.threads_per_block as usize, "{plan}");
                    assert!(getrf.dynamic_shared_bytes <= limits.shared_bytes_per_block as usize, "{plan}");
                    if let Some(strips) = &getrf.strips {
                        let bytes = strips.shared_bytes(scalar, order);
                        assert!(bytes <= limits.shared_bytes_per_block as usize, "{plan}: {bytes}");
                        assert!(strips.threads() <= limits.threads_per_block as usize, "{plan}");
                        assert!(name == "blocked" && strips.width.is_multiple_of(getrf.panel), "{plan}");
                        if let Some((left, finish)) = &strips.finish {
                            assert_eq!(strips.columns(order) + left, order, "{plan}");
                            assert!((1..order / strips.width + 1).contains(&(strips.columns(order) / strips.width)));
                            assert!(strips.columns(order).is_multiple_of(strips.width), "{plan}");
                            assert!(0 < finish.window && finish.window < *left && !finish.inverts, "{plan}");
                            let bytes = finish.shared_bytes(scalar, *left);
                            assert!(bytes <= limits.shared_bytes_per_block as usize, "{plan}: {bytes}");
                        }
                    }
                    let all = getri.shared_bytes(scalar, order, order);
                    assert!(all <= limits.shared_bytes_per_block as usize, "{plan}: {all}");
                    assert!(getri.separate || getri.rows * getri.threads >= order, "{plan}");
                }
            }
        }
    }
}

#[test]
fn the_batch_does_not_choose_the_plan() {
    for scalar in SCALARS {
        for operation in [Operation::Factorize, Operation::Invert, Operation::Solve, Operation::Determinant] {
            let of =
                |batch| choose(&problem(scalar, operation, SourceKind::Matrix, 100, batch), None, "sm_90").unwrap();
            assert_eq!(of(1), of(100_000));
        }
    }
}

#[test]
fn the_planner_never_chooses_a_plan_made_for_comparison() {
    for (order, batch) in [1, 33, 190, 3000].into_iter().flat_map(|order| [(order, 1), (order, 1000)]) {
        let problem = problem(ScalarKind::F64, Operation::Invert, SourceKind::Matrix, order, batch);
        let own = match order {
            3000 if batch == 1 => "spread",
            3000 => "blocked",
            _ => "resident",
        };
        assert_eq!(choose(&problem, None, "sm_90").unwrap().name(), own, "{batch} of order {order}");
    }
}

#[test]
fn few_large_matrices_are_each_shared_out_to_many_blocks() {
    for (scalar, operation) in SCALARS.into_iter().flat_map(|scalar| {
        [Operation::Factorize, Operation::Invert, Operation::Solve, Operation::Determinant].map(|one| (scalar, one))
    }) {
        let of = |source, order, batch, architecture| {
            choose(&problem(scalar, operation, source, order, batch), None, architecture).unwrap()
        };
        let last = if scalar == ScalarKind::C32 { 22 } else { 16 };
        let names = [last, last + 1].map(|batch| of(SourceKind::Matrix, 400, batch, "sm_90").name().to_owned());
        assert_eq!(names, ["spread", "blocked"], "{scalar} {operation:?}");
        let (few, many) = (of(SourceKind::Matrix, 400, 22, "sm_90"), of(SourceKind::Matrix, 400, 23, "sm_90"));
        let parts = |plan: &CudaPlan| plan.getri.as_ref().map(|getri| getri.parts);
        let inverts = operation == Operation::Invert;
        assert_eq!((parts(&few), parts(&many)), (inverts.then_some(7), inverts.then_some(0)), "{scalar}");
        assert_eq!(few.arithmetic(), many.arithmetic(), "{scalar} {operation:?}");
        // A smaller GPU is busy with fewer; small matrices are faster by one block; factors are there already.
        assert_eq!(of(SourceKind::Matrix, 400, 22, "sm_80").name(), "blocked");
        assert_eq!(of(SourceKind::Matrix, 150, 1, "sm_90").name(), "resident");
        if operation != Operation::Factorize {
            assert_eq!(of(SourceKind::Factors, 400, 1, "sm_90").name(), "left-looking");
        }
    }
}

#[test]
fn systems_are_solved_in_one_launch_where_their_matrix_is_one_panel() {
    for (scalar, last) in SCALARS.into_iter().zip([36, 36, 32, 32]) {
        for order in 1..=40 {
            let problem = problem(scalar, Operation::Solve, SourceKind::Matrix, order, 10);
            let plan = choose(&problem, None, "sm_90").unwrap();
            let at_once = plan.resident.as_ref().is_some_and(|resident| resident.solves.is_some());
            assert_eq!(at_once, order <= last, "{scalar} {order}: {plan}");
        }
    }
}

#[test]
fn what_does_not_fit_on_chip_is_left_looking() {
    let of = |order, source| {
        let problem = problem(ScalarKind::C64, Operation::Factorize, source, order, 1);
        choose(&problem, Some("resident"), "sm_90").unwrap()
    };
    assert_eq!(of(50, SourceKind::Matrix).resident.unwrap().window, 0);
    assert!(of(121, SourceKind::Matrix).resident.unwrap().window > 0);
    assert_eq!(of(257, SourceKind::Matrix).name(), "left-looking");
    let error = choose(
        &problem(ScalarKind::F32, Operation::Invert, SourceKind::Matrix, 8, 1),
        Some("resident:panel=6"),
        "sm_90",
    );
    assert!(error.unwrap_err().to_string().contains("panels of 6 columns"));
    // What was asked for does not quietly become something else.
    let many = choose(
        &problem(ScalarKind::F64, Operation::Invert, SourceKind::Matrix, 32, 1),
        Some("resident:teams=32"),
        "sm_90",
    );
    assert!(many.unwrap_err().to_string().contains("32 matrices a block"));
}

#[test]
fn no_small_order_is_left_to_memory() {
    for architecture in ["sm_70", "sm_80", "sm_86", "sm_89", "sm_90", "sm_120"] {
        for (scalar, order) in SCALARS.into_iter().flat_map(|scalar| (1..=64).map(move |order| (scalar, order))) {
            for operation in [Operation::Factorize, Operation::Invert, Operation::Solve] {
                let problem = problem(scalar, operation, SourceKind::Matrix, order, 1);
                let plan = choose(&problem, None, architecture).unwrap();
                assert_eq!(plan.name(), "resident", "{scalar} {operation:?} {order} on {architecture}");
            }
        }
    }
}

#[test]
fn few_matrices_of_doubles_have_more_threads_each_and_one_of_many_narrower_windows() {
    let of = |order, batch| {
        let problem = problem(ScalarKind::F64, Operation::Factorize, SourceKind::Matrix, order, batch);
        choose(&problem, None, "sm_90").unwrap().resident.unwrap()
    };
    for order in [161, 192, 200, 256] {
        let (few, many) = (of(order, 100), of(order, 1000));
        assert!(few.crew() == 4 * WARP && many.crew() == 2 * WARP && many.window < few.window, "{few} {many}");
    }
    assert_eq!(of(160, 100).to_string(), of(160, 1000).to_string());
}

#[test]
fn few_complex_matrices_of_orders_29_to_32_have_a_thread_for_each_row_in_inverses() {
    let of = |order, batch| {
        let problem = problem(ScalarKind::C32, Operation::Invert, SourceKind::Matrix, order, batch);
        choose(&problem, None, "sm_90").unwrap().resident.unwrap()
    };
    for order in [29, 32] {
        assert_eq!((of(order, 100).rows, of(order, 100).crew()), (1, WARP));
        assert_eq!((of(order, 1000).rows, of(order, 1000).crew()), (2, WARP / 2));
    }
    assert_eq!(of(28, 100).to_string(), of(28, 1000).to_string());
}

#[test]
fn columns_of_a_window_that_registers_hold_leave_room_for_more_blocks() {
    let bytes = |window: usize, tensor: u8| {
        let problem = problem(ScalarKind::F64, Operation::Factorize, SourceKind::Matrix, 160, 1000);
        let plan = format!("resident:window={window},helpers=1,tensor={tensor}");
        choose(&problem, Some(&plan), "sm_90").unwrap().resident.unwrap().dynamic_shared_bytes
    };
    // Two panels on the left of the window, or eight rows of it and, of each row, its origin in a word and not in a byte.
    assert_eq!(bytes(32, 0) - bytes(32, 1), 8 * (16 * 162 - 32 * 10) - 160 * 3);
    // More than sixteen columns a warp stay on chip.
    assert_eq!(bytes(40, 0), bytes(40, 1));
}

#[test]
fn a_smaller_chip_has_narrower_windows() {
    let problem = problem(ScalarKind::F64, Operation::Factorize, SourceKind::Matrix, 250, 1);
    let of = |architecture| choose(&problem, Some("resident"), architecture).unwrap().resident.unwrap();
    let (large, small) = (of("sm_90"), of("sm_86"));
    assert!(0 < small.window && small.window < large.window, "{small} {large}");
    assert!(small.dynamic_shared_bytes <= 99 << 10, "{small}");
}

#[test]
fn windows_are_whole_panels_whatever_panel_is_asked_for() {
    let problem = problem(ScalarKind::F64, Operation::Factorize, SourceKind::Matrix, 190, 1);
    for panel in [2, 6, 8, 14, 16, 20] {
        let plan = choose(&problem, Some(&format!("resident:panel={panel},rows=8")), "sm_90").unwrap();
        let resident = plan.resident.unwrap();
        assert!(resident.window > 0 && resident.window.is_multiple_of(panel), "{resident}");
    }
}

#[test]
fn an_inversion_asked_for_a_window_takes_it_for_its_lu() {
    let problem = problem(ScalarKind::F64, Operation::Invert, SourceKind::Matrix, 64, 1);
    let own = choose(&problem, None, "sm_90").unwrap();
    assert!(own.resident.is_some_and(|plan| plan.inverts) && own.getri.is_none());
    let windowed = choose(&problem, Some("resident:window=32"), "sm_90").unwrap();
    assert!(windowed.resident.is_some_and(|plan| !plan.inverts && plan.window == 32) && windowed.getri.is_some());
}

#[test]
fn an_inversion_goes_by_windows_of_its_own_unless_block_columns_are_asked_for() {
    let problem = |source| problem(ScalarKind::F64, Operation::Invert, source, 192, 1);
    let kernels = |source, plan| {
        let problem = problem(source);
        let plan = choose(&problem, plan, "sm_90").unwrap();
        plan.specifications(&problem).iter().map(|one| one.entry().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(kernels(SourceKind::Matrix, None), ["getrf", "getri_resident"]);
    assert_eq!(kernels(SourceKind::Matrix, Some("resident:inverse-window=0")), ["getrf", "trtri", "getri"]);
    assert_eq!(kernels(SourceKind::Matrix, Some("left-looking")), ["getrf", "getri_resident"]);
    for block_columns in ["left-looking:inverse-block=8", "static", "timely"] {
        assert_eq!(kernels(SourceKind::Matrix, Some(block_columns)), ["getrf", "trtri", "getri"], "{block_columns}");
    }
    let nothing = self::problem(ScalarKind::F64, Operation::Invert, SourceKind::Matrix, 0, 1);
    assert!(choose(&nothing, Some("left-looking:inverse-window=16"), "sm_90").is_ok());
    let from_factors = kernels(SourceKind::Factors, Some("left-looking:inverse-window=32"));
    assert_eq!(from_factors, ["permutation", "getri_resident"]);
    let of = |architecture| choose(&problem(SourceKind::Matrix), None, architecture).unwrap().getri.unwrap();
    // Where matrix instructions for doubles are slow, a thread has its sums for itself, and fewer of them.
    assert!(of("sm_90").tensor && !of("sm_86").tensor && of("sm_86").block < of("sm_90").block);
    for (bad, words) in [
        ("timely:inverse-window=16", "delayed correction"),
        ("resident:inverse-window=15", "no whole 2"),
        ("resident:inverse-window=16,inverse-threads=33", "no whole warps"),
        ("resident:inverse-window=12,tensor=1", "whole steps"),
        ("resident:inverse-window=65", "not between 0 and 64"),
    ] {
        let error = choose(&problem(SourceKind::Matrix), Some(bad), "sm_90").unwrap_err().to_string();
        assert!(error.contains(words), "{bad}: {error}");
    }
}

#[test]
fn copies_of_solved_columns_take_no_block_its_place_and_are_whole_windows() {
    let mut copied = 0;
    for architecture in Limits::PRESETS {
        let limits = Limits::preset(architecture).unwrap();
        for scalar in SCALARS {
            for order in 33..=512 {
                let problem = problem(scalar, Operation::Invert, SourceKind::Factors, order, 10_000);
                let plan = choose(&problem, Some("left-looking"), architecture).unwrap().getri.unwrap();
                let alone = GetriPlan { copies: Copies::default(), ..plan.clone() };
                let blocks = |plan: &GetriPlan| {
                    plan.blocks.min(limits.blocks_by_shared_bytes(plan.shared_bytes(scalar, order, order)))
                };
                assert!(!plan.resident || blocks(&plan) == blocks(&alone), "{architecture} {scalar} {order}: {plan}");
                let Copies { early, late } = plan.copies;
                assert!(early % plan.block == 0 && late % plan.block == 0 && early.max(late) < order, "{plan}");
                assert!(early == 0 || late > 0, "{plan}");
                copied += usize::from(late > 0);
            }
        }
    }
    assert!(copied > 1000, "{copied}");
}

#[test]
fn a_window_of_the_inverse_that_there_is_no_room_for_is_refused() {
    let problem = problem(ScalarKind::F64, Operation::Invert, SourceKind::Matrix, 256, 1);
    let error = choose(&problem, Some("resident:inverse-window=64"), "sm_86").unwrap_err();
    assert!(error.to_string().contains("bytes of shared memory of at most"), "{error}");
    assert!(choose(&problem, Some("resident:inverse-window=64"), "sm_90").is_ok());
}

#[test]
fn numbers_can_be_forced_and_are_held_against_the_gpu() {
    let problem = problem(ScalarKind::F64, Operation::Factorize, SourceKind::Matrix, 100, 1);
    let plan = choose(&problem, Some("left-looking:panel=14,threads=64,rows=2"), "sm_90").unwrap();
    let getrf = plan.getrf.unwrap();
    assert_eq!((getrf.panel, getrf.threads, getrf.rows), (14, 64, 2));
    for bad in [
        "left-looking:threads=64,rows=1",
        "left-looking:panel=0",
        "left-looking:panel=33",
        "left-looking:panel",
        "left-looking:panels=3",
        "abacus",
        "left-looking:teams=2",
        "shared-panel:threads=33",
    ] {
        let error = choose(&problem, Some(bad), "sm_90").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{bad}");
        let rejection = std::error::Error::source(&error).and_then(|source| source.downcast_ref::<Rejection>());
        assert_eq!(rejection.map(|rejection| rejection.plan.as_str()), Some(bad));
    }
}

#[test]
fn kernels_of_every_order_have_no_wide_panel_of_registers() {
    for scalar in SCALARS {
        for (operation, order) in (1..=64).flat_map(|order| [(Operation::Factorize, order), (Operation::Invert, order)])
        {
            let problem = problem(scalar, operation, SourceKind::Matrix, order, 10);
            let panel = |plan| choose(&problem, Some(plan), "sm_90").unwrap().resident.unwrap().panel;
            assert!(panel("resident:exact=0") <= 8, "{scalar} {order}");
            assert!(panel("resident:exact=0") <= panel("resident"), "{scalar} {order}");
        }
    }
}

#[test]
fn large_matrices_are_factored_strip_by_strip() {
    for (scalar, first) in SCALARS.into_iter().zip([257, 257, 169, 161]) {
        for operation in [Operation::Factorize, Operation::Invert, Operation::Solve, Operation::Determinant] {
            let of =
                |order| choose(&problem(scalar, operation, SourceKind::Matrix, order, 1000), None, "sm_90").unwrap();
            let (below, from) = (of(first - 1), of(first));
            assert_eq!((below.name() == "blocked", from.name()), (false, "blocked"), "{scalar} {operation:?}");
            assert_eq!(below.arithmetic(), from.arithmetic(), "{scalar}");
        }
    }
    // Where a block has little shared memory, strips go one by one, and are narrower.
    let mut small = Limits::preset("sm_90").unwrap();
    for (bytes, width, together, asked) in [(48, 64, 1, "blocked:width=64,together=2"), (24, 32, 1, "blocked:width=64")]
    {
        small.shared_bytes_per_block = bytes << 10;
        let problem = problem(ScalarKind::F64, Operation::Factorize, SourceKind::Matrix, 1000, 1000);
        let strips = CudaPlan::choose(&problem, &Options::default(), &small).unwrap().getrf.unwrap().strips.unwrap();
        assert_eq!((strips.width, strips.together), (width, together), "{strips}");
        let asked = CudaPlan::choose(&problem, &Options::default().with_plan(asked), &small);
        assert!(asked.unwrap_err().to_string().contains("shared memory"));
    }
}

#[test]
fn strips_end_where_the_chip_takes_the_rest() {
    let of = |scalar, order, plan| {
        let problem = problem(scalar, Operation::Factorize, SourceKind::Matrix, order, 1000);
        let strips = choose(&problem, Some(plan), "sm_90").unwrap().getrf.unwrap().strips.unwrap();
        (strips.width, strips.columns(order), strips.finish.map(|(left, _)| left))
    };
    for (scalar, order, width, columns) in [
        (ScalarKind::F32, 257, 32, 32),
        (ScalarKind::F32, 400, 80, 160),
        (ScalarKind::F32, 512, 128, 256),
        (ScalarKind::F64, 257, 64, 128),
        (ScalarKind::F64, 289, 64, 64),
        (ScalarKind::F64, 336, 48, 96),
        (ScalarKind::F64, 512, 64, 256),
        (ScalarKind::C32, 216, 96, 96),
        (ScalarKind::C32, 240, 48, 48),
        (ScalarKind::C32, 300, 48, 48),
        (ScalarKind::C64, 176, 48, 48),
        (ScalarKind::C64, 240, 80, 80),
        (ScalarKind::C64, 512, 64, 384),
    ] {
        assert_eq!(of(scalar, order, "blocked"), (width, columns, Some(order - columns)), "{scalar} {order}");
    }
    // Nothing is left for it: it was asked for nothing, or the last strip is all.
    assert_eq!(of(ScalarKind::F64, 512, "blocked:finish=0"), (64, 512, None));
    assert_eq!(of(ScalarKind::F64, 64, "blocked"), (64, 64, None));
    // What is no more than a window is a strip.
    assert_eq!(of(ScalarKind::F64, 28, "blocked:width=16"), (16, 28, None));
}

#[test]
fn streamed_panels_take_matrix_instructions_where_doubles_are_fast_by_them() {
    let of = |scalar, order, architecture, plan| {
        choose(&problem(scalar, Operation::Factorize, SourceKind::Matrix, order, 100), plan, architecture)
    };
    for (scalar, architecture, taken) in [
        (ScalarKind::F64, "sm_90", true),
        (ScalarKind::F64, "sm_80", true),
        (ScalarKind::F64, "sm_89", false),
        (ScalarKind::F64, "sm_70", false),
        (ScalarKind::F32, "sm_90", false),
    ] {
        let getrf = of(scalar, 500, architecture, Some("left-looking")).unwrap().getrf.unwrap();
        assert_eq!(getrf.tensor, taken, "{scalar} on {architecture}: {getrf}");
        let strips = of(scalar, 500, architecture, None).unwrap().getrf.unwrap().strips.unwrap();
        assert_eq!(strips.tensor, taken, "{scalar} on {architecture}: {strips}");
    }
    // Numbers that do not go with them do without.
    for plan in ["left-looking:stages=0", "left-looking:ahead=4", "left-looking:panel=12"] {
        let Ok(plan) = of(ScalarKind::F64, 500, "sm_90", Some(plan)) else { panic!("{plan}") };
        assert!(!plan.getrf.unwrap().tensor);
    }
    for (scalar, order, plan, reason) in [
        (ScalarKind::F32, 500, "left-looking:tensor=1", "matrix instructions need doubles"),
        (ScalarKind::F64, 500, "left-looking:tensor=1,panel=12", "matrix instructions need doubles"),
        (ScalarKind::F64, 500, "left-looking:tensor=1,stages=0", "stages"),
        (ScalarKind::F64, 500, "left-looking:tensor=1,ahead=4", "ahead"),
        (ScalarKind::F64, 2000, "left-looking:tensor=1,panel=16", "order 2000 leaves no room for stages"),
    ] {
        let error = of(scalar, order, "sm_90", Some(plan)).unwrap_err().to_string();
        assert!(error.contains(reason), "{plan}: {error}");
    }
}

#[test]
fn bands_that_warps_do_not_share_evenly_are_refused() {
    let problem = problem(ScalarKind::F64, Operation::Solve, SourceKind::Factors, 100, 1);
    let with = |warps, band| {
        let plan =
            format!("left-looking:solve-panel=2,solve-columns=16,solve-share=16,solve-warps={warps},solve-band={band}");
        choose(&problem, Some(&plan), "sm_90")
    };
    assert!(with(3, 48).is_ok());
    assert!(with(3, 50).unwrap_err().to_string().contains("bands of 50 rows"));
}

#[test]
fn numbers_that_kernels_cannot_work_with_are_refused() {
    let of = |scalar, operation, source, order, plan: &str| {
        choose(&problem(scalar, operation, source, order, 100), Some(plan), "sm_90")
    };
    let (f32, f64) = (ScalarKind::F32, ScalarKind::F64);
    for (scalar, order, plan, reason) in [
        (f64, 16, "tree-search:rows=1,teams=8", "no tree"),
        (f64, 16, "tree-search:rows=1,threads=16", "warps of 32"),
        (f64, 128, "resident:panel=32,window=64,helpers=3", "divide 16 columns"),
        (f32, 300, "blocked:tile-warps=16", "16 warps do not share"),
        (f64, 300, "blocked:tile-warps=8", "8 warps do not share"),
    ] {
        let error = of(scalar, Operation::Factorize, SourceKind::Matrix, order, plan).unwrap_err().to_string();
        assert!(error.contains(reason), "{plan}: {error}");
    }
    let tree = of(f64, Operation::Factorize, SourceKind::Matrix, 16, "tree-search:rows=1").unwrap().getrf.unwrap();
    assert_eq!((tree.threads, tree.teams), (WARP, 1), "a block has one tree");
    // A band of all rows is divided in powers of two.
    let of = |plan| of(f64, Operation::Solve, SourceKind::Factors, 100, plan);
    assert!(of("left-looking:solve-columns=16,solve-share=8,solve-warps=8").is_ok());
    assert!(of("left-looking:solve-columns=16,solve-share=8,solve-warps=6").is_err());
}

#[test]
fn more_right_hand_sides_than_are_counted_are_refused() {
    let solve = |columns: usize| {
        let a = BatchLayout::column_major(1, 1, 1).unwrap();
        let x = BatchLayout::column_major(1, 1, columns).unwrap();
        choose(&Problem::solve::<f32>(SourceKind::Matrix, a, None, x, Transpose::None).unwrap(), None, "sm_90")
    };
    assert!(solve(1 << 30).is_ok());
    assert!(solve((1 << 30) + 1).unwrap_err().to_string().contains("right-hand sides go up to 1073741824"));
}

#[test]
fn columns_on_chip_meet_in_few_banks() {
    for scalar in SCALARS {
        let bytes = scalar_bytes(scalar);
        for order in 2..=256 {
            for window in [false, true] {
                let stride = column_stride(scalar, order, window);
                assert!(stride >= order && stride * bytes % 32 == 16, "{scalar} {order}: {stride}");
                assert!(!window || bytes < 16 || [3, 5].contains(&(stride % 8)), "{scalar} {order}: {stride}");
            }
        }
    }
}

#[test]
fn factors_of_doubles_of_odd_length_up_to_order_104_and_long_complex_inverses_have_a_kernel_of_their_own() {
    let odd_in = |operation, scalar, order, architecture: &str| {
        let problem = problem(scalar, operation, SourceKind::Matrix, order, 1);
        let plan = choose(&problem, Some("resident"), architecture).unwrap();
        let text = plan.specifications(&problem)[0].configuration();
        assert!(text.contains("BATCHLA_ODD"), "{text}");
        text.contains("#define BATCHLA_ODD 1")
    };
    let odd = |scalar, order, architecture: &str| odd_in(Operation::Factorize, scalar, order, architecture);
    assert!(!odd_in(Operation::Invert, ScalarKind::F64, 63, "sm_90"));
    assert!(odd_in(Operation::Invert, ScalarKind::C64, 61, "sm_90"));
    assert!(!odd_in(Operation::Invert, ScalarKind::C64, 62, "sm_90"));
    assert!(!odd_in(Operation::Invert, ScalarKind::C64, 59, "sm_90"));
    assert!(odd(ScalarKind::F64, 63, "sm_90") && odd(ScalarKind::F64, 63, "sm_80"));
    assert!(!odd(ScalarKind::F64, 64, "sm_90"));
    // By windows too, of which the first comes whole.
    assert!(odd(ScalarKind::F64, 95, "sm_90") && odd(ScalarKind::F64, 103, "sm_90"));
    assert!(!odd(ScalarKind::F64, 105, "sm_90"));
    assert!(
        !odd(ScalarKind::C64, 63, "sm_90") && !odd(ScalarKind::F32, 63, "sm_90") && !odd(ScalarKind::F64, 63, "sm_70")
    );
}

#[test]
fn an_inversion_by_windows_works_on_the_last_order_of_its_class_and_takes_what_lu_leaves_beyond_the_matrix() {
    // Whether the whole class is there in memory, and whether the kernel is for the order alone.
    for (scalar, order, class, whole, exact) in [
        (ScalarKind::F64, 128, 128, true, true),
        (ScalarKind::F64, 127, 128, true, false),
        (ScalarKind::F64, 120, 128, false, false),
        (ScalarKind::F64, 257, 264, false, false),
        (ScalarKind::F32, 160, 160, true, false),
        (ScalarKind::F32, 150, 152, true, false),
        (ScalarKind::C64, 113, 128, false, false),
        // LU by panels of four columns leaves four beyond order 148.
        (ScalarKind::C32, 146, 152, false, false),
    ] {
        let problem = problem(scalar, Operation::Invert, SourceKind::Matrix, order, 10_000);
        let plan = choose(&problem, None, "sm_90").unwrap();
        let all = plan.specifications(&problem);
        let text = |entry: &str| all.iter().find(|own| own.entry() == entry).map(|own| own.configuration());
        let getri = text("getri_resident").unwrap();
        for (name, value) in
            [("ORDER", class), ("PADDED", usize::from(whole)), ("EXACT", if exact { order } else { 0 })]
        {
            let wanted = format!("#define BATCHLA_{name} {value}\n");
            assert!(getri.contains(&wanted), "{scalar} {order}: no {wanted} in {getri}");
        }
        let fills = text("getrf").is_some_and(|getrf| getrf.contains("#define BATCHLA_PADDED 1\n"));
        assert_eq!(fills, whole && order != class, "{scalar} {order}");
        assert_eq!(plan.leading(), class, "{scalar} {order}");
    }
}

#[test]
fn registers_of_solutions_are_for_as_many_blocks_as_shared_memory_holds() {
    for scalar in SCALARS {
        for order in [48, 128, 256, 512] {
            let problem = problem(scalar, Operation::Solve, SourceKind::Factors, order, 1);
            let plan = choose(&problem, None, "sm_90").unwrap().getrs.unwrap();
            let fit = Limits::preset("sm_90").unwrap().blocks_by_shared_bytes(plan.shared_bytes);
            assert!(plan.blocks <= fit.max(1), "{scalar} of order {order}: {plan}");
        }
    }
}

#[test]
fn orders_beyond_shared_memory_are_refused_with_the_limit() {
    let problem = problem(ScalarKind::C64, Operation::Factorize, SourceKind::Matrix, 100_000, 1);
    let error = choose(&problem, None, "sm_80").unwrap_err();
    assert!(error.to_string().contains("shared memory"), "{error}");
}

#[test]
fn a_plan_prints_as_one_line_with_its_numbers() {
    let problem = problem(ScalarKind::F64, Operation::Invert, SourceKind::Matrix, 128, 1);
    let line = choose(&problem, None, "sm_90").unwrap().to_string();
    assert!(!line.contains('\n') && line.contains("cuda-fused-f64") && line.contains("panel="), "{line}");
}

#[test]
fn each_problem_names_its_kernels_once() {
    for (operation, source, wanted) in [
        (Operation::Factorize, SourceKind::Matrix, vec!["getrf"]),
        (Operation::Invert, SourceKind::Matrix, vec!["getrf_getri"]),
        (Operation::Invert, SourceKind::Factors, vec!["permutation", "trtri", "getri"]),
        (Operation::Solve, SourceKind::Matrix, vec!["gesv"]),
        (Operation::Solve, SourceKind::Factors, vec!["permutation", "getrs_resident", "fill_failed", "spread"]),
        (Operation::Determinant, SourceKind::Matrix, vec!["getrf", "determinant"]),
        (Operation::Determinant, SourceKind::Factors, vec!["spread", "determinant"]),
    ] {
        let problem = problem(ScalarKind::F64, operation, source, 8, 1);
        let plan = choose(&problem, None, "sm_90").unwrap();
        let all = plan.specifications(&problem);
        assert_eq!(all.iter().map(|one| one.entry()).collect::<Vec<_>>(), wanted);
    }
}
