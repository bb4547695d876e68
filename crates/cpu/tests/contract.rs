//! Outcomes, ties, orders 0 and 1, empty batches, forced plans, arguments.

#![allow(clippy::unwrap_used)] // Generic tests are called by the #[test] functions.

mod matrices;

use batchla_core::*;
use batchla_cpu::{Cpu, CpuPlan, CpuScalar};
use matrices::{Random, bits, random};
use num_traits::Float;

fn forced(plan: &str) -> Options {
    Options::default().with_plan(plan)
}

/// Integers with unit pivots, so that every plan computes them exactly: singular in column `column`.
fn singular<T: Scalar>(n: usize, column: usize) -> Batch<T> {
    let mut random = Random::new(n as u64);
    let mut l = vec![0.0; n * n];
    let mut u = vec![0.0; n * n];
    for j in 0..n {
        for i in 0..n {
            let sign = if random.next() > 0.0 { 0.5 } else { 0.0 };
            l[i + j * n] = if i == j {
                1.0
            } else if i > j && i < j + 3 {
                sign
            } else {
                0.0
            };
            u[i + j * n] = if i == j {
                1.0
            } else if i < j && j < i + 3 {
                2.0 * sign
            } else {
                0.0
            };
        }
    }
    u[column + column * n] = 0.0;
    // Nothing below the missing pivot may take its place.
    (column + 1..n).for_each(|i| l[i + column * n] = 0.0);
    let product = |i: usize, j: usize| (0..n).map(|k| l[i + k * n] * u[k + j * n]).sum();
    Batch::from_fn(1, n, n, |_, i, j| T::from_f64(product(i, j), 0.0)).unwrap()
}

fn the_first_zero_pivot_is_named<T: CpuScalar>() {
    let cpu = Cpu::new();
    for n in [1, 2, 5, 9, 16, 17, 33, 70] {
        for column in [0, n / 2, n - 1] {
            let a = singular::<T>(n, column);
            for plan in CpuPlan::NAMES {
                let extras = Extras::none().with_determinant().with_condition();
                let inverse = cpu.invert_with(&a, extras, &forced(plan)).unwrap();
                let expected = Outcome::Singular { column };
                assert_eq!(inverse.outcomes().next(), Some((0, expected)), "{plan} {} of order {n}", T::KIND);
                assert!(inverse.batch.as_slice().iter().all(|x| x.re().to_f64().is_nan()));
                assert_eq!(inverse.report.determinants().unwrap()[0], Determinant::zero());
                assert_eq!(inverse.report.conditions().unwrap()[0].to_f64(), f64::INFINITY);
            }
            let lu = cpu.factorize(&a).unwrap();
            let back = lu.reconstruct().unwrap();
            assert_eq!(bits(back.view().matrix(0).unwrap()), bits(a.view().matrix(0).unwrap()), "factors are getrf's");
            let b = random::<T>(1, n, 2, 3);
            let x = lu.solve(&b).unwrap();
            assert_eq!(x.outcomes().next(), Some((0, Outcome::Singular { column })));
            assert!(x.x.as_slice().iter().all(|x| x.re().to_f64().is_nan()));
            assert_eq!(lu.determinant().unwrap().values()[0].value(), T::from_f64(0.0, 0.0));
        }
    }
}

fn what_is_not_finite_is_reported_wherever_it_stands<T: CpuScalar>() {
    let cpu = Cpu::new();
    for n in [1, 2, 9, 20, 40] {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for (i, j) in [(0, 0), (0, n - 1), (n - 1, 0), (n / 2, n / 2), (n - 1, n - 1)] {
                for plan in CpuPlan::NAMES {
                    let mut a = random::<T>(3, n, n, 4);
                    a.view_mut().into_matrices().nth(1).unwrap().set(i, j, T::from_f64(bad, 0.0));
                    let extras = Extras::none().with_determinant().with_condition();
                    let inverse = cpu.invert_with(&a, extras, &forced(plan)).unwrap();
                    let outcomes: Vec<_> = inverse.outcomes().map(|(_, outcome)| outcome).collect();
                    assert_eq!(outcomes, [Outcome::Regular, Outcome::NotFinite, Outcome::Regular]);
                    let x = inverse.batch.view().matrix(1).unwrap();
                    assert!((0..n * n).all(|at| x.at(at % n, at / n).re().to_f64().is_nan()));
                    assert!(inverse.report.determinants().unwrap()[1].log_abs_f64().is_nan());
                    assert!(inverse.report.conditions().unwrap()[1].to_f64().is_nan());
                    let alone = cpu.invert_with(&a, Extras::none(), &forced(plan)).unwrap();
                    assert!(alone.outcomes().eq(inverse.outcomes()), "with other results or without");
                    let clean = cpu.invert_with(&random::<T>(3, n, n, 4), Extras::none(), &forced(plan)).unwrap();
                    for b in [0, 2] {
                        let (x, y) = (inverse.batch.view().matrix(b).unwrap(), clean.batch.view().matrix(b).unwrap());
                        assert_eq!(bits(x), bits(y), "one bad matrix spares its neighbours");
                    }
                }
                let mut a = random::<T>(1, n, n, 4);
                a.view_mut().into_matrices().next().unwrap().set(i, j, T::from_f64(bad, 0.0));
                assert_eq!(cpu.factorize(&a).unwrap().outcomes().next(), Some((0, Outcome::NotFinite)));
                assert!(cpu.determinant(&a).unwrap().values()[0].log_abs_f64().is_nan());
            }
        }
    }
}

/// `U`'s last pivot is infinite, and its reciprocal zero: nothing else tells.
fn a_pivot_that_overflows_is_reported<T: CpuScalar>() {
    let huge = T::from_real(<<T as Scalar>::Real as Float>::max_value());
    for n in [2, 9, 40, 70] {
        let a = Batch::<T>::from_fn(2, n, n, |_, i, j| match (i, j) {
            (i, 0) if i == n - 1 => T::one(),
            (0, j) if j == n - 1 => huge,
            (i, j) if i == j && i == n - 1 => -huge,
            _ if i == j => T::one(),
            _ => T::zero(),
        });
        let a = a.unwrap();
        for plan in CpuPlan::NAMES {
            let inverse = Cpu::new().invert_with(&a, Extras::none(), &forced(plan)).unwrap();
            let reported = inverse.outcomes().all(|(_, outcome)| outcome == Outcome::NotFinite);
            assert!(reported, "{plan} {} of order {n}", T::KIND);
            assert!(inverse.batch.as_slice().iter().all(|x| x.re().to_f64().is_nan()));
        }
    }
}

/// Its factors are regular: only when the inverse is there is it known, and the matrices may be gone by then.
fn an_inverse_that_overflows_in_place_spares_its_neighbours<T: CpuScalar>() {
    let least = <<T as Scalar>::Real as Float>::min_positive_value();
    let small = T::from_real(Float::powf(least, <<T as Scalar>::Real as Scalar>::from_f64(0.45, 0.0)));
    let large = T::from_real(Float::powf(least, <<T as Scalar>::Real as Scalar>::from_f64(-0.45, 0.0)));
    for n in [4, 12, 16, 31, 48, 64] {
        let cpu = Cpu::new();
        let mut a = random::<T>(5, n, n, 6);
        let clean = cpu.invert(&a).unwrap();
        a.view_mut().into_matrices().nth(1).unwrap().fill_with(|i, j| match (i, j) {
            (0, 1) => large,
            _ if i == j => small,
            _ => T::zero(),
        });
        let report = cpu.invert_in_place(&mut a).unwrap();
        let outcomes: Vec<_> = report.outcomes().map(|(_, outcome)| outcome).collect();
        let regular = Outcome::Regular;
        assert_eq!(outcomes, [regular, Outcome::NotFinite, regular, regular, regular], "{} of order {n}", T::KIND);
        for b in [0, 2, 3, 4] {
            let (x, y) = (a.view(), clean.batch.view());
            assert_eq!(bits(x.matrix(b).unwrap()), bits(y.matrix(b).unwrap()), "{} of order {n}", T::KIND);
        }
    }
}

fn right_hand_sides_that_are_not_finite_are_reported<T: CpuScalar>() {
    for n in [1, 9, 40] {
        let (a, mut b) = (random::<T>(2, n, n, 4), random::<T>(2, n, 3, 5));
        b.view_mut().into_matrices().nth(1).unwrap().set(n - 1, 1, T::from_f64(f64::INFINITY, 0.0));
        let x = Cpu::new().solve(&a, &b).unwrap();
        let outcomes: Vec<_> = x.outcomes().map(|(_, outcome)| outcome).collect();
        assert_eq!(outcomes, [Outcome::Regular, Outcome::NotFinite]);
        assert!((0..3 * n).all(|at| x.x.get(1, at % n, at / n).unwrap().re().to_f64().is_nan()));
    }
}

fn equal_candidates_go_to_the_first_row<T: CpuScalar>() {
    let cpu = Cpu::new();
    for n in [2, 8, 9, 33, 50, 130, 200] {
        // Hadamard-like signs: every candidate of the first column is of size one, every later one is an exact tie too often to guess.
        let a = Batch::<T>::from_fn(1, n, n, |_, i, j| {
            T::from_f64(if (i & j).count_ones() % 2 == 0 { 1.0 } else { -1.0 }, 0.0)
        })
        .unwrap();
        let lu = cpu.factorize(&a).unwrap();
        assert_eq!(lu.pivots(0).unwrap(), textbook_pivots(n, |i, j| a.get(0, i, j).unwrap().re().to_f64()));
    }
}

fn textbook_pivots(n: usize, element: impl Fn(usize, usize) -> f64) -> Vec<u32> {
    let mut a: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| element(i, j)).collect()).collect();
    (0..n)
        .map(|k| {
            let mut p = k;
            (k + 1..n).for_each(|i| {
                if a[i][k].abs() > a[p][k].abs() {
                    p = i
                }
            });
            a.swap(k, p);
            for i in k + 1..n {
                if a[k][k] != 0.0 {
                    let l = a[i][k] / a[k][k];
                    (k..n).for_each(|j| a[i][j] -= l * a[k][j]);
                }
            }
            p as u32
        })
        .collect()
}

fn orders_zero_and_one_and_empty_batches_work<T: CpuScalar>() {
    let cpu = Cpu::new();
    for (batch, n) in [(0, 0), (0, 5), (4, 0), (3, 1)] {
        let a = Batch::<T>::from_fn(batch, n, n, |_, _, _| T::from_f64(4.0, 0.0)).unwrap();
        let inverse = cpu.invert(&a).unwrap();
        assert!(inverse.report.all_regular() && inverse.outcomes().len() == batch);
        assert!(inverse.batch.as_slice().iter().all(|&x| x == T::from_f64(0.25, 0.0)));
        let lu = cpu.factorize(&a).unwrap();
        assert_eq!(lu.outcomes().len(), batch);
        let expected = if n == 0 { 1.0 } else { 4.0 };
        for d in lu.determinant().unwrap().values() {
            assert!((d.value().re().to_f64() - expected).abs() < 1e-5);
        }
        for columns in [0, 1, 2] {
            let b = Batch::<T>::from_fn(batch, n, columns, |_, _, _| T::from_f64(8.0, 0.0)).unwrap();
            let x = cpu.solve(&a, &b).unwrap();
            assert!(x.report.all_regular());
            assert!(x.x.as_slice().iter().all(|&x| x == T::from_f64(2.0, 0.0)));
        }
    }
}

fn one_matrix_and_one_right_hand_side_serve_a_batch<T: CpuScalar>() {
    let cpu = Cpu::builder().threads(2).grain(1).build().unwrap();
    for n in [3, 9, 40] {
        let (a, b) = (random::<T>(1, n, n, 1), random::<T>(5, n, 2, 2));
        let together = cpu.solve(&a, &b).unwrap();
        let lu = cpu.factorize(&a).unwrap();
        let from_factors = lu.solve(&b).unwrap();
        let mut in_place = b.clone();
        assert!(lu.solve_in_place(&mut in_place, Transpose::None).unwrap().all_regular());
        for m in 0..5 {
            let one = Batch::<T>::from_fn(1, n, 2, |_, i, j| b.get(m, i, j).unwrap()).unwrap();
            let alone = cpu.solve(&a, &one).unwrap();
            let expected = bits(alone.x.view().matrix(0).unwrap());
            for x in [&together.x, &from_factors.x, &in_place] {
                assert_eq!(bits(x.view().matrix(m).unwrap()), expected);
            }
        }
        let (a, b) = (random::<T>(5, n, n, 1), random::<T>(1, n, 2, 2));
        let x = cpu.solve(&a, &b).unwrap();
        assert_eq!(x.outcomes().len(), 5);
        let last = Batch::<T>::from_fn(1, n, n, |_, i, j| a.get(4, i, j).unwrap()).unwrap();
        let alone = cpu.solve(&last, &b).unwrap();
        assert_eq!(bits(x.x.view().matrix(4).unwrap()), bits(alone.x.view().matrix(0).unwrap()));
    }
}

macro_rules! for_every_scalar {
    ($($test:ident)*) => { $(mod $test {
        use super::*;
        #[test] fn f32() { super::$test::<f32>(); }
        #[test] fn f64() { super::$test::<f64>(); }
        #[test] fn c32() { super::$test::<Complex<f32>>(); }
        #[test] fn c64() { super::$test::<Complex<f64>>(); }
    })* };
}

for_every_scalar! {
    the_first_zero_pivot_is_named
    what_is_not_finite_is_reported_wherever_it_stands
    a_pivot_that_overflows_is_reported
    an_inverse_that_overflows_in_place_spares_its_neighbours
    right_hand_sides_that_are_not_finite_are_reported
    equal_candidates_go_to_the_first_row
    orders_zero_and_one_and_empty_batches_work
    one_matrix_and_one_right_hand_side_serve_a_batch
}

#[test]
fn tiny_pivots_are_divided_by() {
    // 1 / 1e-310 overflows; 2e-310 / 1e-310 does not.
    for n in [2, 12, 40] {
        let tiny = |i: usize, j: usize| if i == j || j == 0 && i == 1 { 1e-310 } else { 0.0 };
        let a = Batch::<f64>::from_fn(1, n, n, |_, i, j| tiny(i, j)).unwrap();
        for plan in CpuPlan::NAMES {
            let layout = *a.layout();
            let problem = Problem::factorize::<f64>(SourceKind::Matrix, layout, layout).unwrap();
            let cpu = Cpu::new();
            let prepared = cpu.prepare(&problem, &forced(plan)).unwrap();
            let mut workspace = cpu.workspace(&prepared).unwrap();
            let (mut lu, mut pivots, mut outcomes) = (Batch::zeros(layout).unwrap(), vec![9; n], vec![9; 1]);
            let source = Source::Matrix(a.view());
            let mut view = lu.view_mut();
            let args = FactorizeArgs::new(&source, &mut view, &mut pivots[..], ReportMut::new(&mut outcomes[..]));
            cpu.run_factorize(&prepared, args, &mut workspace).unwrap();
            assert_eq!((outcomes[0], lu.get(0, 1, 0)), (0, Some(1.0)), "{plan} of order {n}");
        }
        // The inverse itself overflows: that is told, not hidden.
        let inverse = Cpu::new().invert(&a).unwrap();
        assert_eq!(inverse.outcomes().next(), Some((0, Outcome::NotFinite)));
        assert!(inverse.batch.as_slice().iter().all(|x| x.is_nan()));
    }
}

#[test]
fn columns_of_an_inverse_come_to_their_places_however_many_there_are() -> Result<(), Error> {
    for (n, threads) in [(97, 1), (1024, 1), (1025, 1), (1030, 2)] {
        // One power of two in each row and column, so that the inverse is exact.
        let row = |j: usize| j * 7 % n;
        let weight = |j: usize| f32::powi(2.0, (j % 5) as i32);
        let a = Batch::<f32>::from_fn(1, n, n, |_, i, j| if i == row(j) { weight(j) } else { 0.0 })?;
        let cpu = Cpu::builder().threads(threads).build()?;
        let inverse = cpu.invert_with(&a, Extras::none(), &forced("blocked"))?;
        let expected = |i: usize, j: usize| if j == row(i) { 1.0 / weight(i) } else { 0.0 };
        let x = inverse.batch.view();
        let wrong = (0..n * n).find(|e| x.get(0, e % n, e / n) != Some(expected(e % n, e / n)));
        assert_eq!(wrong, None, "order {n}");
    }
    Ok(())
}

#[test]
fn a_plan_that_does_not_exist_is_refused_with_those_that_do() {
    let a = random::<f64>(1, 4, 4, 1);
    let error = Cpu::new().invert_with(&a, Extras::none(), &forced("warp")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(CpuPlan::NAMES.iter().all(|name| error.to_string().contains(name)), "{error}");
}

#[test]
fn a_plan_prints_as_one_line_and_ids_tell_families_apart() {
    let layout = BatchLayout::column_major(3, 40, 40).unwrap();
    let problem = Problem::factorize::<f64>(SourceKind::InPlace, layout, layout).unwrap();
    let plans = CpuPlan::NAMES.map(|name| CpuPlan::choose(&problem, &forced(name)).unwrap());
    assert_eq!(plans.each_ref().map(Plan::name), CpuPlan::NAMES);
    let [interleaved, blocked, faer] = plans;
    assert_eq!(interleaved.arithmetic(), blocked.arithmetic());
    assert_ne!(interleaved.arithmetic(), faer.arithmetic());
    assert!(!faer.to_string().contains('\n') && faer.to_string().contains("n=40"), "{faer}");
}

#[test]
fn no_threads_and_no_grain_are_refused() {
    for options in [Cpu::builder().threads(0), Cpu::builder().grain(0), Cpu::builder().threads(usize::MAX)] {
        let error = options.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
        assert!(!error.advice().is_empty());
    }
    let cpu = Cpu::builder().threads(2).grain(7).build().unwrap();
    assert_eq!(cpu.threads(), 2);
    assert!(cpu.describe().contains("2 threads"), "{}", cpu.describe());
}

#[test]
fn exchanges_that_are_none_are_refused() {
    let cpu = Cpu::new();
    let lu = random::<f64>(2, 3, 3, 1);
    let (pivots, outcomes) = ([0, 1, 2, 0, 3, 2], [0, 0]);
    let factors = FactorsRef { lu: lu.view(), pivots: &pivots[..], outcomes: &outcomes[..] };
    assert_eq!(cpu.invert_factored(factors).unwrap_err().kind(), ErrorKind::Argument);
}

#[test]
fn a_workspace_of_something_else_is_refused() {
    let cpu = Cpu::builder().threads(1).build().unwrap();
    let prepare = |n: usize, invert: bool| {
        let layout = BatchLayout::column_major(1, n, n).unwrap();
        let problem = if invert {
            Problem::invert::<f64>(SourceKind::InPlace, layout, layout)
        } else {
            Problem::factorize::<f64>(SourceKind::InPlace, layout, layout)
        };
        cpu.prepare(&problem.unwrap(), &Options::default()).unwrap()
    };
    let prepared = prepare(5, true);
    for other in [prepare(4, true), prepare(5, false)] {
        let mut a = random::<f64>(1, 5, 5, 1);
        let mut outcomes = [0];
        let mut view = a.view_mut();
        let args = InvertArgs::new(&Source::InPlace, &mut view, ReportMut::new(&mut outcomes[..]));
        let mut workspace = cpu.workspace(&other).unwrap();
        assert_eq!(cpu.run_invert(&prepared, args, &mut workspace).unwrap_err().kind(), ErrorKind::Argument);
    }
}

#[test]
fn exchanges_with_rows_above_are_refused() -> Result<(), Error> {
    let a = Batch::<f64>::from_fn(1, 3, 3, |_, i, j| if i == j { 2.0 } else { 1.0 })?;
    let lu = Cpu::new().factorize(&a)?;
    let (pivots, outcomes) = ([0, 0, 2], [0]);
    let factors = FactorsRef { lu: lu.lu().view(), pivots: &pivots[..], outcomes: &outcomes[..] };
    assert_eq!(Cpu::new().invert_factored(factors).unwrap_err().kind(), ErrorKind::Argument);
    Ok(())
}

#[test]
fn a_plan_tells_where_results_go_past_the_caches() {
    let told = |source, batch, options: &Options| {
        let a = BatchLayout::column_major(batch, 200, 200).unwrap();
        let problem = Problem::invert::<f64>(source, a, a).unwrap();
        let explanation = Cpu::new().explain(&problem, options).unwrap();
        explanation.to_string().contains("past the caches")
    };
    let blocked = forced("blocked");
    assert!(told(SourceKind::Matrix, 100, &blocked));
    assert!(!told(SourceKind::Matrix, 10, &blocked), "small");
    assert!(!told(SourceKind::InPlace, 100, &blocked));
    assert!(!told(SourceKind::Matrix, 100, &forced("interleaved")));
}

#[test]
fn a_plan_is_explained_as_it_is_prepared_and_every_other_is_rejected_with_a_reason() {
    for threads in [1, 3] {
        let cpu = Cpu::builder().threads(threads).build().unwrap();
        for (order, batch) in [(4, 10_000), (4, 1), (64, 100), (250, 5), (600, 3)] {
            let a = BatchLayout::column_major(batch, order, order).unwrap();
            let problem = Problem::invert::<f64>(SourceKind::Matrix, a, a).unwrap();
            for options in [Options::default(), forced("faer"), forced("blocked"), forced("interleaved")] {
                let prepared = cpu.prepare(&problem, &options).unwrap();
                let explanation = cpu.explain(&problem, &options).unwrap();
                let plan = prepared.plan();
                assert_eq!((&*explanation.name, &*explanation.arithmetic), (plan.name(), plan.arithmetic()));
                assert_eq!(explanation.workspace_bytes, prepared.workspace_bytes());
                let others: Vec<_> = explanation.rejected.iter().map(|one| one.plan.as_str()).collect();
                assert_eq!(others.len(), 2);
                assert!(!others.contains(&plan.name()));
                let own = cpu.prepare(&problem, &Options::default()).unwrap();
                for one in &explanation.rejected {
                    let names_the_choice = one.reason.contains("own choice");
                    assert_eq!(names_the_choice, one.plan == own.plan().name(), "{explanation}");
                }
                let steps: Vec<_> = explanation.steps.iter().map(|step| (&*step.name, step.threads)).collect();
                assert_eq!(steps, [("getrf", threads), ("getri", threads)]);
            }
        }
    }
    assert!(
        Cpu::new()
            .explain(
                &Problem::determinant::<f64>(SourceKind::Matrix, BatchLayout::column_major(1, 2, 2).unwrap()).unwrap(),
                &forced("abacus")
            )
            .is_err()
    );
}
