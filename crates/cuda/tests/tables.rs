//! Names of plans and tables of the tuner come from outside: whatever they say, there is a plan or a reason, and no panic.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use batchla_core::{Chosen, Operation, Options, Plan, Receipt, ScalarKind};
use batchla_cuda::{CudaPlan, Limits, Space, Tuned, TunedLayout, TunedRow, TunedTable};
use proptest::prelude::*;

const OPERATIONS: [Operation; 2] = [Operation::Factorize, Operation::Invert];

fn architecture() -> impl Strategy<Value = Limits> {
    (0..Limits::PRESETS.len()).prop_map(|i| Limits::preset(Limits::PRESETS[i]).unwrap())
}

/// Names that are nearly right: families and numbers that exist, and some that do not.
fn name() -> impl Strategy<Value = String> {
    let value = prop_oneof![0usize..300, Just(1024), Just(usize::MAX)];
    let number = (0..=CudaPlan::NUMBERS.len(), value)
        .prop_map(move |(key, value)| format!("{}={value}", CudaPlan::NUMBERS.get(key).unwrap_or(&"abacus")));
    let family = (0..CudaPlan::NAMES.len()).prop_map(|i| CudaPlan::NAMES[i]);
    let numbered = (family, prop::collection::vec(number, 0..5))
        .prop_map(|(family, numbers)| format!("{family}:{}", numbers.join(",")));
    prop_oneof![4 => numbered, 1 => ".*"]
}

fn order() -> impl Strategy<Value = usize> {
    prop_oneof![8 => 0usize..600, 1 => Just(1 << 24), 1 => 0usize..100_000]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_name_is_a_plan_that_the_gpu_has_room_for_or_a_rejection_with_its_reason(
        limits in architecture(), name in name(), order in order(), scalar in 0usize..4, operation in 0usize..2,
    ) {
        let problem = TunedLayout::ColumnMajor.problem(ScalarKind::ALL[scalar], OPERATIONS[operation], 3, order).unwrap();
        let options = Options::default().with_plan(name.as_str());
        match CudaPlan::explain(&problem, &options, &limits, &Tuned::none()) {
            Ok(explanation) => {
                prop_assert_eq!(explanation.chosen, Chosen::ByName);
                for step in &explanation.steps {
                    prop_assert!(step.threads <= limits.threads_per_block as usize, "{}", step);
                    prop_assert!(step.shared_bytes <= limits.shared_bytes_per_block as usize + (48 << 10), "{}", step);
                }
            }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }

    #[test]
    fn any_bytes_are_a_table_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert!(TunedTable::parse(&bytes).is_err());
    }

    #[test]
    fn a_table_that_is_changed_anywhere_is_refused_or_harmless(
        at in any::<prop::sample::Index>(), with in any::<u8>(), rows in prop::collection::vec((1usize..400, name()), 0..4),
    ) {
        let limits = Limits::preset("sm_90").unwrap();
        let receipt = Receipt::new("NVIDIA H200", "2026-01-31", "test");
        let mut table = TunedTable::new(&limits, ScalarKind::F64, Operation::Invert, TunedLayout::ColumnMajor, &receipt);
        table.rows = rows.into_iter().map(|(n, plan)| TunedRow { first: n, last: n + 3, plan, speedup: 1.5, earlier: None }).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = table.write(folder.path()).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = with;
        std::fs::write(&path, bytes).unwrap();
        let tuned = Tuned::load(folder.path(), &limits);
        for order in [1, 50, 200, 402] {
            let problem = TunedLayout::ColumnMajor.problem(ScalarKind::F64, Operation::Invert, 3, order).unwrap();
            let (plan, _) = CudaPlan::choose_tuned(&problem, &Options::default(), &limits, &tuned).unwrap();
            prop_assert_eq!(plan.arithmetic(), "cuda-fused-f64");
        }
    }
}

#[test]
fn whatever_the_tuner_may_choose_has_the_planners_arithmetic_and_its_family_or_no_room() {
    for architecture in ["sm_80", "sm_90"] {
        let limits = Limits::preset(architecture).unwrap();
        for (operation, scalar) in OPERATIONS.into_iter().flat_map(|op| ScalarKind::ALL.map(|scalar| (op, scalar))) {
            for order in [1, 7, 32, 33, 100, 256, 500] {
                let problem = TunedLayout::RowMajor.problem(scalar, operation, 3, order).unwrap();
                let own = CudaPlan::choose(&problem, &Options::default(), &limits).unwrap();
                let mut there = 0;
                for space in Space::of(operation) {
                    let coarse = space.coarse();
                    let around = coarse.iter().flat_map(|plan| space.around(plan));
                    for name in around.chain(coarse.iter().cloned()) {
                        if CudaPlan::distinct(&problem, &name, &limits).is_none() {
                            continue;
                        }
                        let plan = CudaPlan::choose(&problem, &Options::default().with_plan(&name), &limits).unwrap();
                        assert_eq!((plan.name(), plan.arithmetic()), (space.family, own.arithmetic()), "{name}");
                        there += 1;
                    }
                }
                assert!(there > 10, "{scalar} n={order}: {there}");
            }
        }
    }
}

#[test]
fn what_is_around_a_plan_differs_in_one_number_and_leads_back() {
    for space in OPERATIONS.into_iter().flat_map(Space::of) {
        for plan in space.coarse() {
            for near in space.around(&plan) {
                assert_ne!(plan, near);
                let numbers = |name: &str| {
                    let rest = name.split_once(':').map_or("", |(_, rest)| rest);
                    rest.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect::<Vec<_>>()
                };
                let (was, is) = (numbers(&plan), numbers(&near));
                assert_eq!(is.iter().filter(|number| !was.contains(number)).count(), 1, "{plan} and {near}");
                assert!(is.len() == was.len() + 1 || space.around(&near).contains(&plan), "{plan} and {near}");
            }
        }
    }
}
