use batchla_core::{BatchLayout, Complex, ErrorKind, Outcome, Real, Scalar};

use super::textbook::{Eliminated, eliminate, invert};
use super::*;

const ORDERS: [usize; 8] = [0, 1, 2, 3, 5, 8, 21, 40];

/// Runs a generic check for all four scalars.
macro_rules! for_all_scalars {
    ($check:ident) => {
        $check::<f32>();
        $check::<f64>();
        $check::<Complex<f32>>();
        $check::<Complex<f64>>();
    };
}

fn norm1<T: Scalar>(a: &[T], n: usize) -> f64 {
    a.chunks_exact(n).map(|column| column.iter().map(|x| x.modulus().to_f64()).sum()).fold(0.0, f64::max)
}

fn frobenius<T: Scalar>(a: &[T]) -> f64 {
    a.iter().map(|x| x.modulus().to_f64().powi(2)).sum::<f64>().sqrt()
}

fn outcome<T: Scalar>(finite: bool, eliminated: &Eliminated<T>) -> Outcome {
    match eliminated.zero {
        _ if !finite => Outcome::NotFinite,
        Some(column) => Outcome::Singular { column },
        None => Outcome::Regular,
    }
}

#[test]
fn what_is_expected_is_what_the_textbook_finds() {
    fn check<T: Scalar>() {
        for generator in Generator::ALL {
            for (n, b) in ORDERS.into_iter().flat_map(|n| (0..4).map(move |b| (n, b))) {
                let name = format!("{generator}, {}, order {n}, matrix {b}", T::KIND);
                let a = generator.matrix::<T>(n, 3, b);
                assert_eq!(a.len(), n * n, "{name}");
                let expected = generator.expected::<T>(n, 3, b);
                let eliminated = eliminate(&a, n);
                let finite = a.iter().chain(&eliminated.lu).all(|x| x.finite());
                if let Some(factors) = expected.factors {
                    assert_eq!(outcome(finite, &eliminated), factors, "{name}");
                }
                if let Some(pivots) = expected.pivots {
                    assert_eq!(eliminated.pivots, pivots, "{name}");
                }
                if let Some(inverse) = expected.inverse {
                    let finite = finite && (eliminated.zero.is_some() || invert(&a, n).iter().all(|x| x.finite()));
                    assert_eq!(outcome(finite, &eliminated), inverse, "the inverse of {name}");
                }
            }
        }
    }
    for_all_scalars!(check);
}

#[test]
fn what_is_called_regular_ends_where_the_limit_or_the_range_does() {
    let regular =
        |expected: Expected| (expected.factors, expected.inverse) == (Some(Outcome::Regular), Some(Outcome::Regular));
    let unknown = |expected: Expected| (expected.factors, expected.inverse) == (None, None);
    // kappa n LIMIT u = 0.33 and 3.3; 0.18 and 1.8.
    assert!(regular(Generator::Condition(1e13).expected::<f64>(10, 0, 0)));
    assert!(unknown(Generator::Condition(1e14).expected::<f64>(10, 0, 0)));
    assert!(regular(Generator::Condition(1e4).expected::<f32>(10, 0, 0)));
    assert!(unknown(Generator::Condition(1e5).expected::<f32>(10, 0, 0)));
    // 2^(0.55 n) and 2^(0.75 128).
    let kahan = |n| Generator::Kahan.expected::<f32>(n, 0, 0);
    assert!(regular(kahan(174)) && kahan(175).factors == Some(Outcome::Regular) && kahan(175).inverse.is_none());
    for fraction in [0.75, -0.75] {
        for generator in
            [Generator::Scaled(fraction), Generator::GradedRows(fraction), Generator::GradedColumns(fraction)]
        {
            assert!(regular(generator.expected::<f64>(5, 0, 0)), "{generator}");
        }
        assert!(unknown(Generator::Scaled(1.02 * fraction).expected::<f64>(5, 0, 0)), "{fraction}");
    }
    let zero = |place: Place| Generator::ZeroColumn(place).expected::<f64>(9, 0, 0).factors;
    for (place, column) in
        [(Place::First, 0), (Place::Middle, 4), (Place::Last, 8), (Place::At(3), 3), (Place::At(20), 8)]
    {
        assert_eq!((zero(place), place.column(9)), (Some(Outcome::Singular { column }), column), "{place:?}");
    }
}

#[test]
fn large_orders_are_as_expected_too() {
    fn check<T: Scalar>() {
        for generator in Generator::ALL.into_iter().filter(|g| g.exact() || *g == Generator::Wilkinson) {
            let n = 200;
            let a = generator.matrix::<T>(n, 5, 1);
            let expected = generator.expected::<T>(n, 5, 1);
            let eliminated = eliminate(&a, n);
            let finite = eliminated.lu.iter().all(|x| x.finite());
            assert_eq!(Some(outcome(finite, &eliminated)), expected.factors, "{generator}");
            if finite {
                assert_eq!(Some(eliminated.pivots), expected.pivots, "{generator}");
                let inverse = eliminated.zero.map_or_else(|| invert(&a, n), |_| Vec::new());
                assert!(expected.inverse.is_none() || inverse.iter().all(|x| x.finite()), "{generator}");
            }
        }
    }
    for_all_scalars!(check);
}

#[test]
fn exact_matrices_are_eliminated_without_rounding() {
    fn check<T: Scalar>() {
        for generator in Generator::ALL.into_iter().filter(|generator| generator.exact()) {
            for n in ORDERS {
                let single = eliminate(&generator.matrix::<T>(n, 11, 0), n).lu;
                let wide: Vec<_> = single.iter().map(|x| Complex::new(x.re().to_f64(), x.im().to_f64())).collect();
                let a = generator.matrix::<T>(n, 11, 0);
                let a: Vec<_> = a.iter().map(|x| Complex::new(x.re().to_f64(), x.im().to_f64())).collect();
                assert_eq!(eliminate(&a, n).lu, wide, "{generator}, order {n}");
            }
        }
    }
    for_all_scalars!(check);
}

#[test]
fn a_matrix_depends_on_seed_and_place_but_not_on_batch_or_layout() {
    for generator in Generator::ALL {
        let small = generator.batch::<f32>(BatchLayout::column_major(3, 5, 5).unwrap(), 9).unwrap();
        let large = generator.batch::<f32>(BatchLayout::interleaved(10, 5, 5, 4).unwrap(), 9).unwrap();
        let bits = |x: Option<f32>| x.map(f32::to_bits);
        for (b, (i, j)) in (0..3).flat_map(|b| (0..25).map(move |at| (b, (at % 5, at / 5)))) {
            assert_eq!(bits(small.get(b, i, j)), bits(large.get(b, i, j)), "{generator}");
        }
    }
    let seeds = [1, 2].map(|seed| Generator::Normal.matrix::<f64>(4, seed, 0));
    assert_ne!(seeds[0], seeds[1]);
    assert_ne!(Generator::Normal.matrix::<f64>(4, 1, 1), seeds[0]);
    let oblong = BatchLayout::column_major(1, 2, 3).unwrap();
    assert_eq!(Generator::Normal.batch::<f64>(oblong, 0).unwrap_err().kind(), ErrorKind::Shape);
}

#[test]
fn names_are_read_back_and_wrong_ones_refused_with_the_choices() {
    for generator in Generator::ALL {
        assert_eq!(generator.to_string().parse::<Generator>().unwrap(), generator);
        assert_eq!(generator.name().parse::<Generator>().unwrap().name(), generator.name());
    }
    assert_eq!("condition:25".parse::<Generator>().unwrap(), Generator::Condition(25.0));
    assert_eq!("zero-column:17".parse::<Generator>().unwrap(), Generator::ZeroColumn(Place::At(17)));
    for wrong in ["", "foo", "uniform:1", "condition:0.5", "condition:nan", "scaled:2", "planted:foo", "sparse:"] {
        let error = wrong.parse::<Generator>().unwrap_err();
        assert!(error.advice().contains("wilkinson"), "{error}");
    }
}

#[test]
fn the_condition_number_is_the_one_asked_for() {
    fn check<T: Scalar<Real = f64>>() {
        for kappa in [1.0, 1e3, 1e8] {
            let n = 12;
            let a = Generator::Condition(kappa).matrix::<T>(n, 1, 0);
            // ‖A‖F and ‖A⁻¹‖F are the roots of Σ σ² and Σ 1/σ².
            let sigma: Vec<f64> = (0..n).map(|k| kappa.powf(-(k as f64) / (n - 1) as f64)).collect();
            let square = |f: fn(f64) -> f64| sigma.iter().map(|&s| f(s).powi(2)).sum::<f64>().sqrt();
            assert!((frobenius(&a) / square(|s| s) - 1.0).abs() < 1e-13);
            assert!((frobenius(&invert(&a, n)) / square(f64::recip) - 1.0).abs() < 1e-6, "{kappa:e}");
        }
        let n = 15;
        let q = Generator::Condition(1.0).matrix::<T>(n, 1, 0);
        for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
            let dot: T = (0..n).map(|k| q[i * n + k].conj() * q[j * n + k]).sum();
            let one = if i == j { T::one() } else { T::zero() };
            assert!((dot - one).modulus() < 1e-14, "unitary");
        }
    }
    check::<f64>();
    check::<Complex<f64>>();
}

#[test]
fn normal_deviates_have_mean_zero_and_variance_one() {
    let x = Generator::Normal.matrix::<f64>(300, 4, 0);
    let moment = |p: i32| x.iter().map(|x| x.powi(p)).sum::<f64>() / x.len() as f64;
    assert!(moment(1).abs() < 0.02 && (moment(2) - 1.0).abs() < 0.02 && (moment(4) - 3.0).abs() < 0.2);
}

#[test]
fn dominance_and_definiteness_are_what_they_say() {
    fn check<T: Scalar>() {
        let n = 20;
        let a = Generator::DiagonallyDominant.matrix::<T>(n, 1, 0);
        for j in 0..n {
            let column = &a[j * n..(j + 1) * n];
            let sum: f64 = column.iter().map(|x| x.modulus().to_f64()).sum();
            assert!(column[j].modulus().to_f64() > 0.6 * sum);
        }
        // x*Ax ≥ x*x for all x, of which columns of a random matrix are some.
        let a = Generator::PositiveDefinite.matrix::<T>(n, 1, 0);
        let x = Generator::Normal.matrix::<T>(n, 2, 0);
        for x in x.chunks_exact(n) {
            let mut form = T::zero();
            for (i, j) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
                assert_eq!(a[j * n + i], a[i * n + j].conj());
                form += x[i].conj() * a[j * n + i] * x[j];
            }
            let square: T = x.iter().map(|x| x.conj() * *x).sum();
            assert!(form.re() > square.re());
        }
    }
    for_all_scalars!(check);
}

#[test]
fn named_matrices_are_those_of_the_literature() {
    assert_eq!(Generator::Frank.matrix::<f64>(3, 0, 0), [3., 2., 0., 2., 2., 1., 1., 1., 1.]);
    assert_eq!(Generator::Wilkinson.matrix::<f64>(3, 0, 0), [1., -1., -1., 0., 1., -1., 1., 1., 1.]);
    assert_eq!(Generator::Hilbert.matrix::<f64>(2, 0, 0), [1.0, 0.5, 0.5, 1.0 / 3.0]);
    let (s, c) = (1.2f64.sin(), 1.2f64.cos());
    assert_eq!(Generator::Kahan.matrix::<f64>(3, 0, 0), [1., 0., 0., -c, s, 0., -c, -c * s, s * s]);
    let t = Generator::Toeplitz.matrix::<Complex<f32>>(6, 1, 0);
    assert!((0..5).all(|k| (0..5).all(|l| t[k * 6 + l] == t[(k + 1) * 6 + l + 1])));
    let v = Generator::Vandermonde.matrix::<f64>(4, 1, 0);
    assert!((0..4).all(|i| v[i] == 1.0 && (v[12 + i] - v[4 + i].powi(3)).abs() < 1e-15));
    // det of Hilbert's matrix of order 5, from Cauchy's formula.
    let lu = eliminate(&Generator::Hilbert.matrix::<f64>(5, 0, 0), 5).lu;
    let det: f64 = (0..5).map(|k| lu[6 * k].abs()).product();
    assert!((det * 266_716_800_000.0 - 1.0).abs() < 1e-9);
}

#[test]
fn pivoting_grows_by_two_to_the_n_minus_one_in_wilkinsons_matrix() {
    fn check<T: Scalar>() {
        for n in [1, 2, 10, 100] {
            let lu = eliminate(&Generator::Wilkinson.matrix::<T>(n, 0, 0), n).lu;
            assert_eq!(lu[n * n - 1].modulus().to_f64(), 2f64.powi(n as i32 - 1));
        }
    }
    for_all_scalars!(check);
}

#[test]
fn complex_matrices_are_genuinely_complex() {
    for generator in Generator::ALL {
        let a: Vec<_> = (0..4).flat_map(|b| generator.matrix::<Complex<f64>>(9, 1, b)).collect();
        let only_real = a.iter().all(|x| x.im == 0.0);
        assert_eq!(only_real, generator == Generator::PermutedIdentity, "{generator}");
    }
}

#[test]
fn scalings_reach_as_far_as_they_say() {
    fn check<T: Scalar>(max: f64) {
        let n = 9;
        let column = |a: &[T], j: usize| norm1(&a[j * n..(j + 1) * n], n).log2();
        let a = Generator::Scaled(-0.7).matrix::<T>(n, 1, 0);
        assert!((column(&a, 0) + 0.7 * max).abs() < 6.0);
        let a = Generator::GradedColumns(0.5).matrix::<T>(n, 1, 0);
        assert!(column(&a, 0).abs() < 6.0 && (column(&a, 8) + 0.5 * max).abs() < 6.0);
        let rows = Generator::GradedRows(0.5).matrix::<T>(n, 1, 0);
        let last = rows[n - 1].modulus().to_f64().log2();
        assert!((last + 0.5 * max).abs() < 8.0);
    }
    check::<f32>(128.0);
    check::<Complex<f64>>(1024.0);
}

#[test]
fn defects_are_planted_in_every_third_matrix_and_nowhere_else() {
    let subnormal = |x: &f32| x.is_subnormal();
    for (defect, marked) in [
        (Defect::NaN, (|x: &[f32]| x.iter().filter(|x| x.is_nan()).count() == 1) as fn(&[f32]) -> bool),
        (Defect::Infinity, |x| x.iter().filter(|x| x.is_infinite()).count() == 1),
        (Defect::ZeroColumn, |x| x.chunks(7).any(|column| column.iter().all(|&x| x == 0.0))),
        (Defect::Subnormal, |x| x.iter().all(|x| x.is_subnormal())),
        (Defect::Tiny, |x| x.iter().filter(|x| x.is_subnormal()).count() == 7),
        (Defect::Huge, |x| x.iter().any(|x| x.abs() > 1e37)),
    ] {
        for b in 0..9 {
            let generator = Generator::Planted(defect);
            let a = generator.matrix::<f32>(7, 1, b);
            assert_eq!(marked(&a), b % 3 == 1, "{defect} in {b}");
            assert_eq!(generator.planted(b), (b % 3 == 1).then_some(defect));
            assert!(b % 3 == 1 || !a.iter().any(subnormal));
        }
    }
}

#[test]
fn duplicate_rows_are_equal_and_ranks_are_as_said() {
    for b in 0..10 {
        let a = Generator::DuplicateRows.matrix::<f32>(10, 1, b);
        let row = |i: usize| (0..10).map(|j| a[j * 10 + i]).collect::<Vec<_>>();
        assert!((0..10).any(|i| (0..i).any(|j| row(i) == row(j))));
    }
    let lu = eliminate(&Generator::RankDeficient.matrix::<f64>(10, 1, 0), 10).lu;
    assert!((5..10).all(|k| lu[k * 10 + k] == 0.0) && (0..5).all(|k| lu[k * 10 + k] != 0.0));
    let lu = eliminate(&Generator::LowRank.matrix::<f64>(10, 1, 0), 10).lu;
    assert!((5..10).all(|k| lu[k * 10 + k].abs() < 1e-12));
}

#[test]
fn right_hand_sides_are_not_columns_of_the_matrices() {
    let a = Generator::Normal.matrix::<f64>(6, 1, 0);
    let b = right_hand_sides::<f64>(BatchLayout::column_major(2, 6, 3).unwrap(), 1).unwrap();
    assert!(b.as_slice().iter().all(|x| *x != 0.0 && !a.contains(x)));
}
