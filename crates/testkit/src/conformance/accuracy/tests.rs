use std::collections::HashSet;

use super::*;

fn of_order(scope: &Scope, n: usize) -> Vec<Case> {
    cases(scope).filter(|case| case.n == n).collect()
}

#[test]
fn every_small_order_meets_every_generator_and_large_ones_meet_some() {
    for scope in [Scope::QUICK, Scope::FULL, Scope::EMULATED] {
        let mut total = 0;
        for &n in scope.orders {
            let met: HashSet<String> = of_order(&scope, n).iter().map(|case| case.generator.to_string()).collect();
            let (least, most) = match n {
                0..=33 => (43, 43),
                34..=65 => (14, 15),
                _ => (5, 6),
            };
            assert!((least..=most).contains(&met.len()), "{}, order {n}: {}", scope.name, met.len());
            total += met.len();
        }
        // None is met twice at one order.
        assert_eq!(cases(&scope).count(), total, "{}", scope.name);
    }
}

#[test]
fn large_orders_leave_out_other_generators_each_time() {
    let of = |n: usize| of_order(&Scope::FULL, n).iter().map(|case| case.generator.to_string()).collect::<Vec<_>>();
    let some: HashSet<String> = [47, 63, 64].into_iter().flat_map(of).collect();
    assert_eq!(some.len(), 43);
    let large: HashSet<String> = [96, 100, 128, 129, 190, 200].into_iter().flat_map(of).collect();
    assert!(large.len() > 30, "{}", large.len());
}

#[test]
fn layouts_places_generators_and_batches_meet_each_other() {
    let (mut routes, mut places, mut batches) = (HashSet::new(), HashSet::new(), HashSet::new());
    for case in cases(&Scope::QUICK) {
        let (generator, in_place) = (case.generator.to_string(), matches!(case.route, Route::InPlace(_)));
        routes.insert(format!("{:?}", case.route));
        places.extend([(generator.clone(), in_place), (case.batch.to_string(), in_place)]);
        batches.insert((generator, case.batch));
    }
    for order in Order::ALL {
        assert!(routes.contains(&format!("{:?}", Route::InPlace(order))), "{order:?}");
        for to in Order::ALL {
            assert!(routes.contains(&format!("{:?}", Route::Between(order, to))), "{order:?} to {to:?}");
        }
    }
    for generator in Generator::ALL.map(|generator| generator.to_string()) {
        assert!([1, 2, 7].iter().all(|&batch| batches.contains(&(generator.clone(), batch))), "{generator}");
        assert!([true, false].iter().all(|&place| places.contains(&(generator.clone(), place))), "{generator}");
    }
    for batch in ["0", "1", "2", "7", "100"] {
        assert!([true, false].iter().all(|&place| places.contains(&(batch.to_owned(), place))), "{batch}");
    }
}

#[test]
fn large_batches_are_of_small_orders() {
    let scope = Scope::FULL;
    for &n in scope.orders {
        let of = |batch: usize| of_order(&scope, n).iter().filter(|case| case.batch == batch).count();
        assert_eq!((of(65_537), of(1000)), (usize::from(n <= 4), if n <= 33 { 2 } else { 0 }), "order {n}");
        assert_eq!(of(7) == 0, n > 100, "order {n}");
    }
}

#[test]
fn what_is_known_of_a_case_is_known_of_its_generator() {
    let case = |generator| Case { generator, batch: 3, n: 8, route: Route::InPlace(Order::RowMajor), seed: 1 };
    let names = |of: fn(&Case) -> bool| {
        let known = Generator::ALL.into_iter().filter(|&generator| of(&case(generator)));
        known.map(|generator| generator.to_string()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(names(Case::random), "uniform normal positive-definite");
    assert_eq!(
        names(Case::well_conditioned),
        "condition:1e0 condition:1e3 diagonally-dominant upper-triangular lower-triangular"
    );
    assert_eq!(names(|case| !case.precise(1)), "planted:subnormal planted:tiny");
    assert_eq!(names(|case| !case.precise(2)), "");
}

#[test]
fn a_ratio_at_the_limit_or_none_at_all_fails() {
    assert!(within(29.9, LIMIT) && !within(LIMIT, LIMIT) && !within(f64::NAN, LIMIT));
}

#[test]
fn norms_are_those_of_matrices_worked_by_hand() -> Result<(), String> {
    let of = |a: &Batch<f64>| a.view().matrix(0).map(|a| one_norm(a));
    let a = Batch::from_fn(1, 2, 3, |_, i, j| [[1.0, -5.0, 0.0], [3.0, 4.0, -2.0]][i][j]).map_err(in_words)?;
    assert_eq!(of(&a), Some(9.0));
    let empty = Batch::zeros(BatchLayout::column_major(1, 0, 0).map_err(in_words)?).map_err(in_words)?;
    assert_eq!(of(&empty), Some(0.0));
    Ok(())
}

#[test]
fn a_condition_is_the_product_of_the_norms_or_infinite_beyond_the_range() {
    let epsilon = f64::from(f32::EPSILON);
    for (given, holds) in [
        (6.0, true),
        (6.0 * (1.0 + 13.9 * epsilon), true),
        (6.0 * (1.0 - 13.9 * epsilon), true),
        (6.0 * (1.0 + 14.1 * epsilon), false),
        (6.0 * (1.0 - 14.1 * epsilon), false),
        (f64::INFINITY, false),
        (f64::NAN, false),
    ] {
        assert_eq!(is_condition::<f32>(given, 2.0, 3.0, 3), holds, "{given:e}");
    }
    for (a, x) in [(1e39, 1e-20), (1e-20, 1e39), (1e20, 1e20)] {
        assert!(
            is_condition::<f32>(f64::INFINITY, a, x, 3) && !is_condition::<f64>(f64::INFINITY, a, x, 3),
            "{a:e} {x:e}"
        );
    }
}
