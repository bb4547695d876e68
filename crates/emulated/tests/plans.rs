//! Every plan is one arithmetic: on either side of the architectures' branches, in any order of turns, with every access watched, it
//! gives the bits of the planner's own.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod machine;

use std::collections::BTreeSet;
use std::fs;

use batchla_core::{ErrorKind, ScalarKind, Transpose};
use batchla_cuda::{CudaPlan, Specification};
use batchla_emulated::{Checks, Emulated, Gaps, Step, Trial};

use machine::open;

/// What is between the families of plans: panels that end within a pack, helpers, windows, kernels of one order, threads that take more rows than one.
const NUMBERED: [&str; 19] = [
    "blocked:width=16,panel=8",
    "spread:panel=5,rows=2",
    "resident:panel=4,helpers=2",
    "resident:panel=8,rows=7,exact=1",
    "resident:panel=4,window=16,helpers=1",
    "resident:panel=8,window=16,exact=1",
    "resident:panel=4,inverse-window=8,inverse-threads=32,exact=1",
    "left-looking:inverse-window=16",
    "left-looking:panel=5,inverse-block=3",
    "left-looking:panel=4,rows=2,inverse-rows=2,inverse-block=5",
    "left-looking:stages=2",
    "timely:inverse-threads=32,inverse-block=5",
    "spread:panel=8,stages=0,ahead=4",
    "resident:inverse-window=16,inverse-parts=2",
    "left-looking:inverse-window=8,inverse-parts=2",
    "blocked:width=16,together=2,panel=8,finish=0",
    "resident:inverse-window=8,inverse-copies=2",
    "left-looking:inverse-window=8,inverse-copies=3",
    "resident:panel=8,window=16,helpers=8",
];

/// What is tried with each type: the architecture, the order, whether results lie rows first.
const SUBSET: [(ScalarKind, &str, usize, bool); 4] = [
    (ScalarKind::F32, "sm_70", 33, true),
    (ScalarKind::F64, "sm_90", 33, false),
    (ScalarKind::C32, "sm_90", 7, true),
    (ScalarKind::C64, "sm_70", 33, false),
];

/// Whether a plan is tried with a type: each with a real and a complex one, on both architectures; `all` of them: `cargo xtask emulated`.
fn is_tried(plan: usize, scalar: ScalarKind, all: bool) -> bool {
    all || plan % 2 == usize::from(matches!(scalar, ScalarKind::F64 | ScalarKind::C64))
}

/// The runs of a type: all that inverts by every plan, from matrices and from factors; the other steps by the planner's.
fn trials(scalar: ScalarKind, all: bool) -> Vec<(&'static str, Trial)> {
    let (_, architecture, order, rows_first) = SUBSET.into_iter().find(|row| row.0 == scalar).unwrap();
    let trial = |plan, step| (architecture, Trial { rows_first, ..Trial::new(scalar, order, plan, step) });
    let plans =
        || CudaPlan::NAMES.into_iter().chain(NUMBERED).enumerate().filter(move |(at, _)| is_tried(*at, scalar, all));
    let own = [Step::All, Step::Invert].into_iter().flat_map(|step| plans().map(move |(_, plan)| trial(plan, step)));
    let others = Transpose::ALL.map(Step::Solve).into_iter().chain([Step::Determinant]);
    // From memory; by bands; by groups of two warps.
    let solutions = [
        "left-looking:solve-panel=0",
        "left-looking:solve-panel=8,solve-columns=16,solve-share=16,solve-warps=1,solve-band=32",
        "left-looking:solve-panel=16,solve-columns=16,solve-share=16,solve-warps=2",
    ];
    let solve = move |step| ["left-looking"].into_iter().chain(solutions).map(move |plan| trial(plan, step));
    let one_panel = if order > 8 {
        [
            "resident:panel=36,rows=2,helpers=0,exact=1,solve-columns=0",
            "resident:panel=36,rows=2,helpers=0,exact=1,solve-columns=2",
        ]
    } else {
        ["resident:panel=8,exact=1,solve-columns=0", "resident:panel=8,exact=1,solve-columns=2"]
    };
    let systems = ["left-looking"].into_iter().chain(one_panel).map(|plan| trial(plan, Step::System));
    own.chain(others.flat_map(solve)).chain(systems).collect()
}

fn every_plan_gives_the_planners_bits(scalar: ScalarKind, all: bool) {
    let Some(planner) = open(Emulated::new("sm_90")) else { return };
    let mut expected: Option<(Step, _)> = None;
    for (seed, (architecture, trial)) in (1..).zip(trials(scalar, all)) {
        if expected.as_ref().is_none_or(|(step, _)| *step != trial.step) {
            expected = Some((trial.step, Trial { plan: "left-looking", ..trial }.run(&planner, &planner).unwrap()));
        }
        // Two blocks, so that each goes on to other matrices.
        let watched = open(Emulated::new(architecture).seed(seed).checks(Checks::All).largest_grid(2)).unwrap();
        let left = trial.run(&watched, &planner).unwrap_or_else(|error| panic!("{trial:?} on {architecture}: {error}"));
        assert!(expected.as_ref().is_some_and(|expected| left == expected.1), "{trial:?} on {architecture}");
    }
}

#[test]
fn every_plan_gives_the_planners_bits_f32() {
    every_plan_gives_the_planners_bits(ScalarKind::F32, false);
}

#[test]
fn every_plan_gives_the_planners_bits_f64() {
    every_plan_gives_the_planners_bits(ScalarKind::F64, false);
}

#[test]
fn every_plan_gives_the_planners_bits_c32() {
    every_plan_gives_the_planners_bits(ScalarKind::C32, false);
}

#[test]
fn every_plan_gives_the_planners_bits_c64() {
    every_plan_gives_the_planners_bits(ScalarKind::C64, false);
}

#[test]
#[ignore = "minutes: cargo xtask emulated"]
fn every_plan_gives_the_planners_bits_with_every_type() {
    ScalarKind::ALL.into_iter().for_each(|scalar| every_plan_gives_the_planners_bits(scalar, true));
}

#[test]
fn the_planners_panels_of_four_give_the_bits_of_wider_ones() {
    let Some(sound) = open(Emulated::new("sm_90")) else { return };
    let orders = [
        (ScalarKind::F64, &[36][..]),
        (ScalarKind::C32, &[36, 39, 50, 58, 66, 84]),
        (ScalarKind::C64, &[36, 39, 44, 58]),
    ];
    for (scalar, orders) in orders {
        for &order in orders {
            for step in [Step::Factorize, Step::All] {
                let trial = Trial::new(scalar, order, "resident", step);
                let first = trial.kernels(&Emulated::new("sm_90").limits().unwrap()).unwrap().remove(0);
                assert!(first.constants().contains(&("BATCHLA_NB".to_owned(), "4".to_owned())), "{trial:?}");
                let wider = Trial { plan: "left-looking", ..trial }.run(&sound, &sound).unwrap();
                let watched =
                    open(Emulated::new("sm_90").seed(order as u64).checks(Checks::All).largest_grid(2)).unwrap();
                let left = trial.run(&watched, &sound).unwrap_or_else(|error| panic!("{trial:?}: {error}"));
                assert!(left == wider, "{trial:?}");
            }
        }
    }
}

/// Strips one by one and together, the last of them narrow or what is left on chip; tiles with rows and columns beyond the matrix; on both sides of the architectures' branches.
#[test]
fn strips_give_the_bits_of_panels() {
    let Some(planner) = open(Emulated::new("sm_90")) else { return };
    let small = "blocked:panel=4,rows=2,width=16,together=1,tile=32,tile-rows=2,tile-warps=2,finish=0";
    let pairs = "blocked:panel=4,width=16,together=2,tile-warps=2,finish=0";
    let trials = [
        (ScalarKind::F32, "sm_70", 39, small, true),
        (ScalarKind::F32, "sm_90", 70, "blocked:width=48,tile-ahead=2,finish=0", false),
        (ScalarKind::F64, "sm_90", 39, small, false),
        (ScalarKind::F64, "sm_90", 64, "blocked:width=16,together=1,tile=64,tile-rows=1,tile-ahead=1", true),
        (ScalarKind::F64, "sm_70", 41, small, false),
        (ScalarKind::C32, "sm_90", 39, small, true),
        (ScalarKind::C32, "sm_90", 68, "blocked:width=32", false),
        (ScalarKind::C64, "sm_90", 39, small, false),
        (ScalarKind::C64, "sm_70", 43, small, false),
        (ScalarKind::F64, "sm_90", 41, "blocked:width=16,panel=8", false),
        (ScalarKind::F32, "sm_90", 43, "blocked:width=16,panel=4,rows=1", true),
        (ScalarKind::C64, "sm_90", 43, "blocked:width=16,panel=8,tile-warps=2", false),
        (ScalarKind::F64, "sm_70", 70, "blocked:width=24,tile-warps=1", false),
        (ScalarKind::F32, "sm_90", 75, pairs, true),
        (ScalarKind::F64, "sm_90", 68, pairs, false),
        (ScalarKind::C32, "sm_70", 75, pairs, false),
        (ScalarKind::C64, "sm_90", 68, "blocked:width=8,together=3,tile-ahead=1,finish=0", true),
        (ScalarKind::F64, "sm_70", 60, "blocked:width=8,together=2,tile-ahead=1,rows=0,finish=24", false),
        (ScalarKind::F32, "sm_90", 59, "blocked:width=16,together=2,panel=8,finish=30", false),
        (ScalarKind::C32, "sm_90", 57, "blocked:width=16,together=2,finish=40", true),
        (ScalarKind::C64, "sm_90", 57, "blocked:width=16,together=2,panel=4,finish=40", false),
    ];
    for (seed, (scalar, architecture, order, plan, rows_first)) in (1..).zip(trials) {
        let trial = Trial { rows_first, ..Trial::new(scalar, order, plan, Step::All) };
        let panels = Trial { plan: "left-looking", ..trial }.run(&planner, &planner).unwrap();
        let watched = open(Emulated::new(architecture).seed(seed).checks(Checks::All).largest_grid(2)).unwrap();
        let left = trial.run(&watched, &planner).unwrap_or_else(|error| panic!("{trial:?} on {architecture}: {error}"));
        assert!(left == panels, "{trial:?} on {architecture}");
    }
}

/// Every file of the kernels' text: its name and what stands in it.
fn kernel_files() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../cuda/src/kernels");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files
        .map(|path| (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(path).unwrap()))
        .collect()
}

/// What follows each occurrence of some words, up to the first character that is no part of a name.
fn names_after<'a>(text: &'a str, words: &str) -> Vec<&'a str> {
    let name = |rest: &'a str| rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
    text.split(words).skip(1).map(name).collect()
}

#[test]
fn the_ordinary_run_reaches_every_plan_every_branch_and_every_step() {
    let runs: Vec<(u32, Trial, Vec<Specification>)> = SUBSET
        .into_iter()
        .flat_map(|row| trials(row.0, false))
        .map(|(architecture, trial)| {
            let number = architecture.trim_start_matches("sm_").parse::<u32>().unwrap() * 10;
            (number, trial, trial.kernels(&Emulated::new(architecture).limits().unwrap()).unwrap())
        })
        .collect();
    let includes = |kernel: &Specification, file: &str| {
        kernel.source().name == file || kernel.source().headers.iter().any(|header| header.0 == file)
    };
    for (file, text) in kernel_files() {
        assert!(runs.iter().any(|run| run.2.iter().any(|kernel| includes(kernel, &file))), "{file} is not compiled");
        // `extern "C" __global__ void [bounds] name(`: the name is what stands before the parenthesis of the arguments.
        for entry in text.split("__global__").skip(1) {
            let entry =
                entry.split_once("Operand").or_else(|| entry.split_once("const")).map_or(entry, |parts| parts.0);
            let entry = entry.trim_end_matches('(').rsplit(|c: char| c.is_whitespace()).next().unwrap();
            let ran = runs.iter().any(|run| run.2.iter().any(|kernel| kernel.entry() == entry));
            assert!(ran, "kernel {entry:?} of {file} is not run");
        }
        for least in names_after(&text, "__CUDA_ARCH__ >= ").into_iter().map(|number| number.parse::<u32>().unwrap()) {
            for plan in CudaPlan::NAMES {
                let sides: BTreeSet<bool> = runs
                    .iter()
                    .filter(|run| run.1.plan == plan && run.2.iter().any(|kernel| includes(kernel, &file)))
                    .map(|run| run.0 >= least)
                    .collect();
                assert_eq!(sides.len(), 2, "{plan} is not on both sides of {least} in {file}");
            }
        }
    }
    // The constants that choose between ways of doing it, and what they choose between.
    let ways: [(&str, &[&str]); 9] = [
        ("BATCHLA_SCALAR", &["0", "1", "2", "3"]),
        ("BATCHLA_SEARCH_TREE", &["0", "1"]),
        ("BATCHLA_RIGHT_LOOKING", &["0", "1"]),
        ("BATCHLA_INTERCHANGE", &["1", "2", "3"]),
        ("BATCHLA_UNIT_ROWS_IN", &["0", "1"]),
        ("BATCHLA_UNIT_ROWS_OUT", &["0", "1"]),
        ("BATCHLA_TIMELY", &["0", "1"]),
        ("BATCHLA_STAGES", &["0", "2"]),
        // In memory, in registers, in more of them.
        ("BATCHLA_ROWS", &["0", "1", "2"]),
    ];
    let values = |constant: &str| -> BTreeSet<&str> {
        let all = runs.iter().flat_map(|run| run.2.iter().flat_map(|kernel| kernel.constants()));
        all.filter(|pair| pair.0 == constant).map(|pair| pair.1.as_str()).collect()
    };
    for (constant, expected) in ways {
        let given = values(constant);
        assert!(expected.iter().all(|value| given.contains(value)), "{constant}: only {given:?}");
    }
    let teams = values("BATCHLA_TEAMS");
    assert!(teams.contains("1") && teams.len() > 1, "one matrix a block, and many: only {teams:?}");
}

/// From matrices to inverses and determinants in one launch.
fn other_plans_give_the_same_bits(scalar: ScalarKind, order: usize, architecture: &str, plans: &[&'static str]) {
    let Some(planner) = open(Emulated::new("sm_80")) else { return };
    let trial = Trial { rows_first: true, ..Trial::new(scalar, order, "left-looking", Step::All) };
    let expected = trial.run(&planner, &planner).unwrap();
    for (seed, &plan) in (1..).zip(plans) {
        let watched = open(Emulated::new(architecture).seed(seed).checks(Checks::All)).unwrap();
        let left = Trial { plan, ..trial }.run(&watched, &planner);
        let left = left.unwrap_or_else(|error| panic!("{plan} on {architecture}: {error}"));
        assert!(left == expected, "{plan} on {architecture}");
    }
}

#[test]
fn matrix_instructions_and_helpers_give_the_same_bits() {
    let plans = ["resident", "resident:panel=8,tensor=1,helpers=1", "resident:panel=4,tensor=0,helpers=2,exact=1"];
    other_plans_give_the_same_bits(ScalarKind::F64, 45, "sm_90", &plans);
    other_plans_give_the_same_bits(ScalarKind::C64, 37, "sm_90", &plans[1..2]);
}

#[test]
fn matrix_instructions_of_streamed_panels_give_the_same_bits() {
    for (scalar, order, architecture, plan) in [
        (ScalarKind::F64, 41, "sm_90", "left-looking:tensor=1,panel=16,rows=1,stages=3"),
        (ScalarKind::F64, 66, "sm_80", "left-looking:tensor=1,panel=8,rows=2,stages=2"),
        (ScalarKind::C64, 41, "sm_80", "left-looking:tensor=1,panel=12,rows=1,stages=2"),
        (ScalarKind::C64, 66, "sm_90", "left-looking:tensor=1,panel=4,rows=2,stages=2"),
    ] {
        other_plans_give_the_same_bits(scalar, order, architecture, &[plan]);
    }
}

#[test]
fn panels_of_more_than_eight_warps_give_the_same_bits() {
    for scalar in [ScalarKind::F64, ScalarKind::C32] {
        other_plans_give_the_same_bits(scalar, 45, "sm_90", &["left-looking:rows=1,threads=288"]);
        other_plans_give_the_same_bits(scalar, 45, "sm_70", &["left-looking:rows=1,threads=288"]);
    }
}

/// More panels on the left than slots on chip, by which their rows come to their places; with copies under way, and where there are none.
#[test]
fn windows_with_more_panels_on_their_left_than_slots_give_the_same_bits() {
    for (scalar, order, architecture, plan) in [
        (ScalarKind::F64, 77, "sm_90", "resident:panel=8,rows=8,window=16,helpers=3,tensor=1"),
        (ScalarKind::C64, 66, "sm_90", "resident:panel=4,window=24,helpers=3,tensor=1"),
        (ScalarKind::C32, 66, "sm_70", "resident:panel=4,window=16,helpers=1"),
    ] {
        other_plans_give_the_same_bits(scalar, order, architecture, &[plan]);
    }
}

#[test]
fn windows_of_the_inverse_give_the_same_bits() {
    for (scalar, order, plans) in [
        (
            ScalarKind::F64,
            45,
            ["resident:tensor=1,inverse-window=16,inverse-rows=2", "resident:tensor=1,inverse-window=8,exact=1"],
        ),
        (
            ScalarKind::C64,
            37,
            ["resident:tensor=1,inverse-window=4,inverse-rows=2", "resident:tensor=1,inverse-window=12,exact=1"],
        ),
        (ScalarKind::F32, 45, ["resident:inverse-window=12,inverse-rows=2,exact=1", "resident:inverse-window=32"]),
        (ScalarKind::C32, 37, ["resident:inverse-window=6,inverse-rows=2", "resident:inverse-window=16,exact=1"]),
        // Whole windows, of which much is beyond the matrix.
        (
            ScalarKind::F64,
            66,
            ["resident:tensor=1,inverse-window=16", "resident:tensor=1,inverse-window=16,inverse-parts=3"],
        ),
        (
            ScalarKind::C64,
            37,
            ["resident:tensor=1,inverse-window=16", "resident:tensor=1,inverse-window=16,inverse-copies=1"],
        ),
        // Warps that have rows from above and from below, and threads that have three.
        (
            ScalarKind::F64,
            77,
            ["resident:tensor=1,inverse-window=16,inverse-rows=2", "resident:tensor=0,inverse-window=8,inverse-rows=3"],
        ),
        (
            ScalarKind::F32,
            77,
            ["resident:inverse-window=12,inverse-rows=2", "resident:inverse-window=16,inverse-rows=3,exact=1"],
        ),
    ] {
        other_plans_give_the_same_bits(scalar, order, "sm_90", &plans);
    }
}

#[test]
fn kernels_of_one_order_or_of_a_class_of_orders_give_the_same_bits() {
    let Some(planner) = open(Emulated::new("sm_80")) else { return };
    for (scalar, order, plan, step) in [
        (ScalarKind::F64, 61, "left-looking:exact=0", Step::Invert),
        (ScalarKind::F64, 64, "left-looking", Step::Invert),
        (ScalarKind::F32, 45, "resident", Step::All),
        (ScalarKind::C64, 35, "resident", Step::All),
    ] {
        let trial = Trial::new(scalar, order, "left-looking", step);
        let expected = trial.run(&planner, &planner).unwrap();
        let watched = open(Emulated::new("sm_90").seed(5).checks(Checks::All).exact_orders()).unwrap();
        let left = Trial { plan, ..trial }.run(&watched, &planner).unwrap();
        assert!(left == expected, "{scalar:?} {order}, {plan}");
    }
}

#[test]
fn small_teams_on_chip_give_the_same_bits() {
    other_plans_give_the_same_bits(ScalarKind::F32, 11, "sm_70", &["resident", "resident:panel=4,exact=1"]);
    other_plans_give_the_same_bits(ScalarKind::C32, 3, "sm_80", &["resident", "resident:helpers=1"]);
    // Teams of two lanes, and of one, that have several panels.
    let narrow = ["resident:panel=2,rows=4", "resident:panel=2,rows=8"];
    other_plans_give_the_same_bits(ScalarKind::F64, 6, "sm_90", &narrow);
}

/// A warp alone, of which a block has several, and one helper: threads have two rows or three, some of which are beyond the matrix; and one row, where matrices are few.
#[test]
fn threads_of_several_rows_give_the_same_bits() {
    for (scalar, order, plan) in [
        (ScalarKind::F32, 70, "resident:panel=8,rows=3,helpers=0"),
        (ScalarKind::F32, 99, "resident:panel=8,rows=4,helpers=1"),
        (ScalarKind::C32, 54, "resident:panel=8,rows=2,helpers=0"),
        (ScalarKind::C32, 30, "resident"),
        (ScalarKind::C32, 30, "resident:panel=8,rows=2,registers=255"),
        (ScalarKind::F64, 83, "resident:panel=8,rows=3,helpers=3,tensor=1"),
        (ScalarKind::F32, 67, "resident:inverse-window=8,inverse-rows=2"),
    ] {
        other_plans_give_the_same_bits(scalar, order, "sm_90", &[plan]);
    }
}

#[test]
fn small_matrices_side_by_side_in_a_block_take_matrix_instructions() {
    let plan = "resident:panel=4,rows=1,helpers=0,tensor=1,teams=2";
    other_plans_give_the_same_bits(ScalarKind::C64, 26, "sm_90", &[plan]);
}

#[test]
fn one_panel_in_registers_gives_the_same_bits() {
    let plans =
        ["resident:panel=12,rows=2,exact=1", "resident:panel=16,exact=1", "resident:panel=16,helpers=1,exact=1"];
    for (scalar, plans) in ScalarKind::ALL.into_iter().zip([&plans[..1], &plans[1..], &plans[1..], &plans[..1]]) {
        other_plans_give_the_same_bits(scalar, 11, "sm_90", plans);
    }
    other_plans_give_the_same_bits(ScalarKind::F64, 27, "sm_80", &["resident:panel=28,exact=1"]);
    other_plans_give_the_same_bits(ScalarKind::F64, 18, "sm_90", &["resident:rows=2,exact=1"]);
    for (scalar, order) in [(ScalarKind::F32, 5), (ScalarKind::F64, 12), (ScalarKind::C32, 11), (ScalarKind::C64, 17)] {
        let trial = Trial::new(scalar, order, "left-looking", Step::System);
        let Some(planner) = open(Emulated::new("sm_80")) else { return };
        let expected = trial.run(&planner, &planner).unwrap();
        let watched = open(Emulated::new("sm_90").seed(3).checks(Checks::All).largest_grid(2)).unwrap();
        assert!(Trial { plan: "resident:exact=1", ..trial }.run(&watched, &planner).unwrap() == expected, "{trial:?}");
    }
    for order in [1, 5] {
        other_plans_give_the_same_bits(
            ScalarKind::F32,
            order,
            "sm_90",
            &["resident:exact=1", "resident:rows=2,exact=1"],
        );
    }
}

#[test]
fn a_matrix_a_thread_gives_the_same_bits() {
    for (scalar, order) in
        [(ScalarKind::F32, 1), (ScalarKind::F32, 4), (ScalarKind::F64, 3), (ScalarKind::C32, 2), (ScalarKind::C64, 4)]
    {
        other_plans_give_the_same_bits(scalar, order, "sm_90", &["resident:exact=1"]);
    }
    other_plans_give_the_same_bits(ScalarKind::F64, 7, "sm_70", &["resident:rows=7,panel=8,exact=1"]);
    // Warps that go on to other matrices.
    for (order, rows_first, gaps) in [(3, false, Gaps::Given), (3, true, Gaps::Results), (5, false, Gaps::None)] {
        let Some(planner) = open(Emulated::new("sm_80")) else { return };
        let trial = Trial {
            rows_first,
            gaps,
            batch: Trial::MANY,
            ..Trial::new(ScalarKind::F64, order, "left-looking", Step::All)
        };
        let expected = trial.run(&planner, &planner).unwrap();
        let watched = open(Emulated::new("sm_90").seed(3).checks(Checks::All).largest_grid(2)).unwrap();
        let plan = "resident:rows=8,panel=8,exact=1";
        assert!(Trial { plan, ..trial }.run(&watched, &planner).unwrap() == expected, "{trial:?}");
    }
}

#[test]
fn the_order_of_turns_changes_no_bit() {
    let Some(ascending) = open(Emulated::new("sm_90")) else { return };
    for step in [Step::All, Step::Solve(Transpose::None)] {
        let trial = Trial { rows_first: true, ..Trial::new(ScalarKind::F64, 40, "left-looking", step) };
        let expected = trial.run(&ascending, &ascending).unwrap();
        for seed in 1..20 {
            let permuted = Emulated::new("sm_90").seed(seed).open().unwrap();
            assert!(trial.run(&permuted, &ascending).unwrap() == expected, "{step:?}, seed {seed}");
        }
    }
}

#[test]
fn a_triangle_that_shared_memory_cannot_hold_goes_by_parts() {
    let Some(planner) = open(Emulated::new("sm_90")) else { return };
    for plan in ["left-looking", "timely", "left-looking:inverse-block=5,inverse-rows=2,inverse-threads=32"] {
        let trial = Trial::new(ScalarKind::F64, 33, plan, Step::Invert);
        let expected = Trial { plan: "left-looking", ..trial }.run(&planner, &planner).unwrap();
        // Of 33 lines there is room for 13, or 8: a block column's own; and then for fewer, which only timely correction cannot do with.
        for shared_bytes in [1200, 800, 500] {
            let tight = Emulated::new("sm_90").seed(2).checks(Checks::All).shared_bytes(shared_bytes);
            match trial.run(&open(tight).unwrap(), &planner) {
                Ok(left) => assert!(left == expected, "{plan}, {shared_bytes} bytes"),
                Err(error) => assert!(
                    (plan, shared_bytes, error.kind()) == ("timely", 500, ErrorKind::Unsupported),
                    "{plan}, {shared_bytes} bytes: {error}"
                ),
            }
        }
    }
}
