//! Every plan is one arithmetic: on either side of the architectures' branches, in any order of turns, with every access watched, it
//! gives the bits of the planner's own.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod machine;

use batchla_core::{ScalarKind, Transpose};
use batchla_cuda::CudaPlan;
use batchla_emulated::{Checks, Emulated, Step, Trial};

use machine::open;

/// What is between the families of plans: panels that end within a pack, rows by twos.
const NUMBERED: [&str; 3] = [
    "resident:panel=4,rows=2",
    "left-looking:panel=5,inverse-block=3",
    "left-looking:panel=4,rows=2,inverse-rows=2,inverse-block=5",
];

fn every_plan_gives_the_planners_bits(scalar: ScalarKind, architecture: &str, order: usize, rows_first: bool) {
    let Some(planner) = open(Emulated::new("sm_90")) else { return };
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

#[test]
fn the_order_of_turns_changes_no_bit() {
    let Some(ascending) = open(Emulated::new("sm_90")) else { return };
    for step in [Step::All, Step::Solve(Transpose::None)] {
        let trial = Trial { scalar: ScalarKind::F64, order: 40, plan: "left-looking", step, rows_first: true };
        let expected = trial.run(&ascending, &ascending).unwrap();
        for seed in 1..20 {
            let permuted = Emulated::new("sm_90").seed(seed).open().unwrap();
            assert!(trial.run(&permuted, &ascending).unwrap() == expected, "{step:?}, seed {seed}");
        }
    }
}
