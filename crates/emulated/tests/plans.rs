//! Every plan is one arithmetic: on either side of the architectures' branches, in any order of turns, with every access watched, it
//! gives the bits of the planner's own.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod machine;

use batchla_core::{ScalarKind, Transpose};
use batchla_cuda::CudaPlan;
use batchla_emulated::{Checks, Emulated, Step, Trial};

use machine::open;

/// What is between the families of plans: panels that end within a pack, rows by twos, helpers, kernels of one order.
const NUMBERED: [&str; 4] = [
    "resident:panel=4,helpers=2",
    "resident:panel=8,exact=1",
    "left-looking:panel=5,inverse-block=3",
    "left-looking:panel=4,rows=2,inverse-rows=2,inverse-block=5",
];

fn every_plan_gives_the_planners_bits(scalar: ScalarKind, architecture: &str, order: usize, rows_first: bool) {
    let Some(planner) = open(Emulated::new("sm_80")) else { return };
    for step in [Step::Factorize, Step::Invert] {
        let trial = Trial { scalar, order, plan: "left-looking", step, rows_first };
        let expected = trial.run(&planner, &planner).unwrap();
        for (seed, plan) in (1..).zip(CudaPlan::NAMES.into_iter().chain(NUMBERED)) {
            let watched = open(Emulated::new(architecture).seed(seed).checks(Checks::All)).unwrap();
            let left = Trial { plan, ..trial }.run(&watched, &planner);
            let left = left.unwrap_or_else(|error| panic!("{step:?} by {plan} on {architecture}: {error}"));
            assert!(left == expected, "{step:?} by {plan} on {architecture}");
        }
    }
}

#[test]
fn every_plan_gives_the_planners_bits_f32() {
    every_plan_gives_the_planners_bits(ScalarKind::F32, "sm_70", 33, true);
}

#[test]
fn every_plan_gives_the_planners_bits_f64() {
    every_plan_gives_the_planners_bits(ScalarKind::F64, "sm_90", 33, false);
}

#[test]
fn every_plan_gives_the_planners_bits_c32() {
    every_plan_gives_the_planners_bits(ScalarKind::C32, "sm_90", 7, true);
}

#[test]
fn every_plan_gives_the_planners_bits_c64() {
    every_plan_gives_the_planners_bits(ScalarKind::C64, "sm_70", 33, false);
}

/// From matrices to inverses and determinants in one launch.
fn what_stays_on_chip_gives_the_same_bits(scalar: ScalarKind, order: usize, architecture: &str, plans: &[&'static str]) {
    let Some(planner) = open(Emulated::new("sm_80")) else { return };
    let trial = Trial { scalar, order, plan: "left-looking", step: Step::All, rows_first: true };
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
    what_stays_on_chip_gives_the_same_bits(ScalarKind::F64, 45, "sm_90", &plans);
    what_stays_on_chip_gives_the_same_bits(ScalarKind::C64, 37, "sm_90", &plans[1..2]);
}

#[test]
fn small_teams_on_chip_give_the_same_bits() {
    what_stays_on_chip_gives_the_same_bits(ScalarKind::F32, 11, "sm_70", &["resident", "resident:panel=4,exact=1"]);
    what_stays_on_chip_gives_the_same_bits(ScalarKind::C32, 3, "sm_80", &["resident", "resident:helpers=1"]);
}

#[test]
fn the_order_of_turns_changes_no_bit() {
    let Some(ascending) = open(Emulated::new("sm_80")) else { return };
    for step in [Step::All, Step::Solve(Transpose::None)] {
        let trial = Trial { scalar: ScalarKind::F64, order: 40, plan: "left-looking", step, rows_first: true };
        let expected = trial.run(&ascending, &ascending).unwrap();
        for seed in 1..20 {
            let permuted = Emulated::new("sm_80").seed(seed).open().unwrap();
            assert!(trial.run(&permuted, &ascending).unwrap() == expected, "{step:?}, seed {seed}");
        }
    }
}
