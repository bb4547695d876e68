//! Residuals of factors, inverses, solutions and determinants.

#![allow(clippy::unwrap_used)] // Generic tests are called by the #[test] functions.

mod matrices;

use batchla_core::{
    Batch, BatchedDeterminant, BatchedFactorize, BatchedInvert, BatchedSolve, Complex, Extras, Options, Outcome, Real,
    Scalar, Transpose,
};
use batchla_cpu::{Cpu, CpuPlan, CpuScalar};
use matrices::{Exact, Random, factor_ratio, inverse_ratio, random, wide, zoo};

const ORDERS: [usize; 16] = [1, 2, 3, 7, 8, 9, 16, 17, 24, 31, 32, 33, 40, 65, 97, 130];

fn for_all(check: impl Fn(usize)) {
    ORDERS.into_iter().for_each(check);
}

fn factors_are_as_accurate_as_lapacks<T: CpuScalar>() {
    for_all(|n| {
        let a = zoo::<T>(n, 7);
        let lu = Cpu::new().factorize(&a).unwrap();
        for (b, outcome) in lu.outcomes() {
            // Graded and Vandermonde matrices may be singular in single precision, and then still have factors.
            assert_ne!(outcome, Outcome::NotFinite, "matrix {b} of order {n}");
            let ratio =
                factor_ratio(a.view().matrix(b).unwrap(), lu.lu().view().matrix(b).unwrap(), lu.pivots(b).unwrap());
            assert!(ratio < 30.0, "{} matrix {b} of order {n}: {ratio}", T::KIND);
        }
    });
}

fn inverses_are_as_accurate_as_lapacks<T: CpuScalar>() {
    for_all(|n| {
        for plan in CpuPlan::NAMES {
            let a = zoo::<T>(n, 8);
            let options = Options::default().with_plan(plan);
            let inverse = Cpu::new().invert_with(&a, Extras::none().with_condition(), &options).unwrap();
            for (b, _) in inverse.outcomes().filter(|(_, outcome)| outcome.is_regular()) {
                let (a, x) = (a.view().matrix(b).unwrap(), inverse.batch.view().matrix(b).unwrap());
                let ratio = inverse_ratio(a, x);
                assert!(ratio < 30.0, "{plan} {} matrix {b} of order {n}: {ratio}", T::KIND);
                let condition = inverse.report.conditions().unwrap()[b].to_f64();
                let expected = Exact::of(a).norm() * Exact::of(x).norm();
                assert!((condition / expected - 1.0).abs() < 1e-4, "{condition} {expected}");
            }
            let random_ones = inverse.outcomes().take(3);
            assert!(random_ones.into_iter().all(|(_, outcome)| outcome.is_regular()));
        }
    });
}

fn solutions_solve<T: CpuScalar>() {
    for_all(|n| {
        for transpose in Transpose::ALL {
            for (columns, batch) in [(1, 3), (5, 3), (40, 1)] {
                let (a, b) = (random::<T>(3, n, n, 9), random::<T>(batch, n, columns, 10));
                let solution = Cpu::new().solve_transposed(&a, &b, transpose).unwrap();
                assert!(solution.report.all_regular());
                for m in 0..3 {
                    let (a, b) = (a.view().matrix(m).unwrap(), b.view().matrix(m.min(batch - 1)).unwrap());
                    let op = |i: usize, j: usize| match transpose {
                        Transpose::None => wide(a.at(i, j)),
                        Transpose::Transpose => wide(a.at(j, i)),
                        Transpose::ConjugateTranspose => wide(a.at(j, i)).conj(),
                    };
                    let x = solution.x.view().matrix(m).unwrap();
                    for j in 0..columns {
                        let largest = (0..n).map(|i| wide(x.at(i, j)).norm()).fold(0.0, f64::max);
                        for i in 0..n {
                            let product: Complex<f64> = (0..n).map(|k| op(i, k) * wide(x.at(k, j))).sum();
                            let error = (product - wide(b.at(i, j))).norm();
                            let allowed = 30.0 * (n * n) as f64 * largest.max(1.0) * T::UNIT_ROUNDOFF.to_f64();
                            assert!(error < allowed, "{} order {n}, {transpose:?}: {error} > {allowed}", T::KIND);
                        }
                    }
                }
            }
        }
    });
}

fn determinants_multiply<T: CpuScalar>() {
    for_all(|n| {
        let a = random::<T>(2, n, n, 11);
        let determinants = Cpu::new().determinant(&a).unwrap();
        let lu = Cpu::new().factorize(&a).unwrap();
        for (b, d) in determinants.values().iter().enumerate() {
            let u = lu.lu().view().matrix(b).unwrap();
            let swaps = lu.pivots(b).unwrap().iter().enumerate().filter(|&(k, &p)| p as usize != k).count();
            let logarithm: f64 = (0..n).map(|k| wide(u.at(k, k)).norm().ln()).sum();
            let mut phase = Complex::new(if swaps % 2 == 0 { 1.0 } else { -1.0 }, 0.0);
            (0..n).for_each(|k| phase = phase * wide(u.at(k, k)) / wide(u.at(k, k)).norm());
            assert!((d.log_abs_f64() - logarithm).abs() < 1e-3, "{} of order {n}", T::KIND);
            assert!((wide(d.sign) - phase).norm() < 1e-3, "{} of order {n}", T::KIND);
        }
    });
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
    factors_are_as_accurate_as_lapacks
    inverses_are_as_accurate_as_lapacks
    solutions_solve
    determinants_multiply
    pivots_survive_both_ends_of_the_range
    growth_that_cancels_leaves_the_inverse_exact
}

/// Wilkinson's matrix: elements of `U⁻¹` differ by `2^(n−1)`, and the sums that make `X` of them are exact when products come before the difference.
fn growth_that_cancels_leaves_the_inverse_exact<T: CpuScalar>() {
    for n in [3, 4, 20, 40, 70] {
        for plan in ["interleaved", "blocked"] {
            let a = Batch::<T>::from_fn(1, n, n, |_, i, j| {
                let size = if i == j || j + 1 == n {
                    1.0
                } else if i > j {
                    -1.0
                } else {
                    0.0
                };
                T::from_f64(size, 0.0)
            })
            .unwrap();
            let inverse = Cpu::new().invert_with(&a, Extras::none(), &Options::default().with_plan(plan)).unwrap();
            let ratio = inverse_ratio(a.view().matrix(0).unwrap(), inverse.batch.view().matrix(0).unwrap());
            assert!(ratio == 0.0, "{plan} {} of order {n}: {ratio}", T::KIND);
        }
    }
}

/// Diagonals near overflow and underflow, where a naive complex reciprocal fails.
fn pivots_survive_both_ends_of_the_range<T: CpuScalar>() {
    for n in [3, 9, 40] {
        for plan in CpuPlan::NAMES {
            let (tiny, huge) = (T::SAFE_MINIMUM.to_f64() * 4.0, 0.2 / T::SAFE_MINIMUM.to_f64());
            let size = |i: usize| if i.is_multiple_of(2) { tiny } else { huge };
            let mut random = Random::new(5);
            let a = Batch::<T>::from_fn(1, n, n, |_, i, j| {
                if i == j { T::from_f64(0.6 * size(i), 0.8 * size(i)) } else { T::from_f64(0.0 * random.next(), 0.0) }
            })
            .unwrap();
            let inverse = Cpu::new().invert_with(&a, Extras::none(), &Options::default().with_plan(plan)).unwrap();
            assert!(inverse.report.all_regular(), "{plan} {} of order {n}", T::KIND);
            for i in 0..n {
                let product = inverse.batch.get(0, i, i).unwrap() * a.get(0, i, i).unwrap();
                let error = (wide(product) - 1.0).norm();
                assert!(error < 64.0 * T::EPSILON.to_f64(), "{plan} {} of order {n}: {error}", T::KIND);
            }
        }
    }
}
