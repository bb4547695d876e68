use batchla_core::{Complex, Options, Scalar};
use batchla_cuda::{CudaPlan, Limits};

use super::*;

fn assert_accepted<T: Scalar>(figure: &Figure, order: usize, limits: &Limits) {
    let problem = figure.routine.problem::<T>(10_000, order).unwrap();
    let mut plans = 0;
    for contestant in figure.contestants() {
        if let Contestant::Plan(plan) = contestant {
            let chosen = CudaPlan::choose(&problem, &Options::default().with_plan(plan), limits);
            assert!(chosen.is_ok(), "{problem}: {chosen:?}");
            plans += 1;
        }
    }
    assert!(plans > 0);
}

#[test]
fn every_figure_names_plans_that_there_are_for_every_type_and_order() {
    let limits = ["sm_80", "sm_90"].map(|name| Limits::preset(name).unwrap());
    for figure in NAMES.map(|name| figure(name).unwrap()) {
        for order in ORDERS {
            for limits in &limits {
                assert_accepted::<f32>(&figure, order, limits);
                assert_accepted::<f64>(&figure, order, limits);
                assert_accepted::<Complex<f32>>(&figure, order, limits);
                assert_accepted::<Complex<f64>>(&figure, order, limits);
            }
        }
    }
    assert!(figure("19").is_none());
}

#[test]
fn bases_come_first_and_claims_are_about_curves_of_the_figure() {
    for figure in NAMES.map(|name| figure(name).unwrap()) {
        let place = |label: &str| figure.series.iter().position(|series| series.label == label);
        for series in &figure.series {
            assert!(series.base.iter().all(|base| place(base).unwrap() <= place(&series.label).unwrap()));
        }
        for claim in &figure.claims {
            let named = match claim.says {
                Says::Peak(series, _) => vec![series],
                Says::Ratio(series, base, low, high) => {
                    assert!(low < high);
                    vec![series, base]
                }
                Says::Best(labels) => labels.to_vec(),
            };
            assert!(named.into_iter().all(|label| place(label).is_some()), "{}", figure.name);
        }
    }
}
