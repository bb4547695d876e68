use batchla_core::{Batch, BatchLayout, Complex};

use super::*;
use crate::generate::textbook::{Eliminated, eliminate, invert};
use crate::generate::{Defect, Generator};

macro_rules! for_all_scalars {
    ($check:ident) => {
        $check::<f32>();
        $check::<f64>();
        $check::<Complex<f32>>();
        $check::<Complex<f64>>();
    };
}

fn square_batch<T: Scalar>(columns: Vec<T>, n: usize) -> Batch<T> {
    Batch::from_vec(columns, BatchLayout::column_major(1, n, n).unwrap()).unwrap()
}

fn ratios<T: Scalar>(a: &[T], lu: &[T], pivots: &[u32], x: &[T], n: usize) -> (f64, f64) {
    let [a, lu, x] = [a, lu, x].map(|m| square_batch(m.to_vec(), n));
    let [a, lu, x] = [&a, &lu, &x].map(|m| m.view().matrix(0).unwrap());
    (factorization_ratio(a, lu, pivots), inverse_ratio(a, x))
}

#[test]
fn the_textbook_passes_over_the_whole_range() {
    fn check<T: Scalar>() {
        for generator in Generator::ALL {
            for (n, b) in [0, 1, 2, 5, 33].into_iter().flat_map(|n| (0..3).map(move |b| (n, b))) {
                let expected = generator.expected::<T>(n, 1, b);
                if expected.inverse != Some(Outcome::Regular) {
                    continue;
                }
                let a = generator.matrix::<T>(n, 1, b);
                let Eliminated { lu, pivots, .. } = eliminate(&a, n);
                let (factors, inverse) = ratios(&a, &lu, &pivots, &invert(&a, n), n);
                // Subnormal numbers are rounded in multiples of their least.
                let usual = if generator == Generator::Planted(Defect::Subnormal) { 10.0 } else { 3.0 };
                assert!(factors < usual, "{factors} for {generator}, {}, order {n}", T::KIND);
                assert!(inverse < LIMIT, "{inverse} for {generator}, {}, order {n}", T::KIND);
            }
        }
    }
    for_all_scalars!(check);
}

#[test]
fn exact_factors_have_ratio_zero() {
    fn check<T: Scalar>() {
        for generator in Generator::ALL.into_iter().filter(|generator| generator.exact()) {
            let a = generator.matrix::<T>(20, 1, 0);
            let Eliminated { lu, pivots, .. } = eliminate(&a, 20);
            if a.iter().any(|x| !x.is_zero()) {
                assert_eq!(ratios(&a, &lu, &pivots, &a, 20).0, 0.0, "{generator}");
            }
        }
    }
    for_all_scalars!(check);
}

#[test]
fn an_element_that_is_off_fails() {
    fn check<T: Scalar>() {
        let n = 10;
        for scale in [0.0, 0.7, -0.7] {
            let a = Generator::Scaled(scale).matrix::<T>(n, 1, 0);
            let Eliminated { lu, pivots, .. } = eliminate(&a, n);
            let x = invert(&a, n);
            let off = |m: &[T], at: usize| {
                let largest = m.iter().map(|x| x.modulus().to_f64()).fold(0.0, f64::max);
                let mut m = m.to_vec();
                m[at] += T::from_f64(0.0, 0.0) + T::from_f64(1e4 * n as f64 * T::UNIT_ROUNDOFF.to_f64() * largest, 0.0);
                m
            };
            for at in [0, 7, 55, n * n - 1] {
                let (factors, inverse) = ratios(&a, &off(&lu, at), &pivots, &off(&x, at), n);
                assert!(factors > LIMIT && inverse > LIMIT, "{factors} and {inverse} at {at}");
            }
            let mut exchanged = pivots.clone();
            exchanged[0] = u32::from(pivots[0] == 0);
            assert!(ratios(&a, &lu, &exchanged, &x, n).0 > LIMIT);
        }
    }
    for_all_scalars!(check);
}

#[test]
fn what_is_not_finite_or_does_not_fit_fails() {
    fn check<T: Scalar>() {
        let n = 4;
        let a = Generator::Normal.matrix::<T>(n, 1, 0);
        let Eliminated { lu, pivots, .. } = eliminate(&a, n);
        let x = invert(&a, n);
        let infinite = |ratio: f64| ratio == f64::INFINITY;
        for bad in
            [T::nan(), T::from_f64(f64::INFINITY, 0.0), T::from_f64(0.0, f64::NAN), T::from_f64(-f64::INFINITY, 1.0)]
        {
            if bad.finite() {
                continue;
            }
            for at in 0..n * n {
                let spoilt = |m: &[T]| {
                    let mut m = m.to_vec();
                    m[at] = bad;
                    m
                };
                let (factors, inverse) = ratios(&spoilt(&a), &lu, &pivots, &x, n);
                assert!(infinite(factors) && infinite(inverse), "{at}: {factors} {inverse}");
                let (factors, inverse) = ratios(&a, &spoilt(&lu), &pivots, &spoilt(&x), n);
                assert!(infinite(factors) && infinite(inverse), "{at}: {factors} {inverse}");
            }
        }
        let zero = vec![T::zero(); n * n];
        let (factors, inverse) = ratios(&zero, &zero, &[0, 1, 2, 3], &zero, n);
        assert!(infinite(factors) && infinite(inverse));
        for pivots in [&[0, 1, 2][..], &[0, 1, 2, 4], &[0, 0, 2, 3]] {
            assert!(infinite(ratios(&a, &lu, pivots, &x, n).0));
        }
        let (a, x) = (square_batch(a, n), square_batch(Generator::Normal.matrix::<T>(n + 1, 1, 0), n + 1));
        assert!(infinite(inverse_ratio(a.view().matrix(0).unwrap(), x.view().matrix(0).unwrap())));
    }
    for_all_scalars!(check);
}

#[test]
fn order_zero_has_ratio_zero() {
    assert_eq!(ratios::<f64>(&[], &[], &[], &[], 0), (0.0, 0.0));
}

#[test]
fn growth_is_that_of_wilkinsons_matrix() {
    let a = Generator::Wilkinson.matrix::<f32>(20, 0, 0);
    let [a, lu] = [a.clone(), eliminate(&a, 20).lu].map(|m| square_batch(m, 20));
    assert_eq!(growth(a.view().matrix(0).unwrap(), lu.view().matrix(0).unwrap()), 2f64.powi(19));
}

#[test]
fn what_a_product_has_beyond_the_working_precision_is_counted() {
    let (x, off) = (1.0 + 2f64.powi(-30), 2f64.powi(-50));
    // L = [1 0; x 1], U = [1 x; 0 1 + off]: L U has x² + 1 + off where A has 2 + 2⁻²⁹, and x² is 1 + 2⁻²⁹ + 2⁻⁶⁰.
    let a = square_batch(vec![1.0, x, x, 2.0 + 2f64.powi(-29)], 2);
    let lu = square_batch(vec![1.0, x, x, 1.0 + off], 2);
    let [a, lu] = [&a, &lu].map(|m| m.view().matrix(0).unwrap());
    let ratio = factorization_ratio(a, lu, &[0, 1]);
    assert_eq!(ratio, (off + 2f64.powi(-60)) / (2.0 * (3.0 * x) * f64::EPSILON / 2.0));
}

#[test]
fn growth_is_divided_out_of_the_ratio_of_factors_and_shrinking_is_not() {
    let n = 20;
    let a = Generator::Wilkinson.matrix::<f64>(n, 0, 0);
    let Eliminated { mut lu, pivots, .. } = eliminate(&a, n);
    let off = 2f64.powi(19 - 40);
    lu[n * n - 1] += off;
    let [a, lu] = [a, lu].map(|m| square_batch(m, n));
    let [a, lu] = [&a, &lu].map(|m| m.view().matrix(0).unwrap());
    // ‖A‖ = n, and ‖P⁻¹A − LU‖ is the element's error.
    assert_eq!(factorization_ratio(a, lu, &pivots), off / (400.0 * f64::EPSILON / 2.0) / (2f64.powi(19) + off));
    // [1 1; 1 3/2] = [1 0; 1 1] [1 1; 0 1/2]: the largest element of U is 2/3 of that of A.
    let a = square_batch(vec![1.0, 1.0, 1.0, 1.5], 2);
    let lu = square_batch(vec![1.0, 1.0, 1.0, 0.5 + off], 2);
    let [a, lu] = [&a, &lu].map(|m| m.view().matrix(0).unwrap());
    assert_eq!(growth(a, lu), 2.0 / 3.0);
    assert_eq!(factorization_ratio(a, lu, &[0, 1]), off / (2.0 * 2.5 * f64::EPSILON / 2.0));
}

#[test]
fn growth_is_that_of_the_matrix_whatever_its_scale() {
    for power in [-1000, -300, 300, 990] {
        let scale = 2f64.powi(power);
        let a = square_batch(vec![scale, scale, scale, -scale], 2);
        let lu = square_batch(vec![scale, 1.0, scale, -2.0 * scale], 2);
        let [a, lu] = [&a, &lu].map(|m| m.view().matrix(0).unwrap());
        assert_eq!((growth(a, lu), factorization_ratio(a, lu, &[0, 1])), (2.0, 0.0), "2^{power}");
    }
}

#[test]
fn the_left_inverse_is_measured_not_the_right() {
    let (t, e) = (1024.0, 0.0625f64);
    let a = square_batch(vec![1.0, 0.0, t, 1.0], 2);
    let x = square_batch(vec![1.0, e, -t, 1.0], 2);
    let ratio = inverse_ratio(a.view().matrix(0).unwrap(), x.view().matrix(0).unwrap());
    // ‖I − XA‖ = ‖[0 0; −e −et]‖ = et, while ‖I − AX‖ = ‖[−et 0; −e 0]‖ = et + e.
    assert_eq!(ratio, e * t / (2.0 * (t + 1.0) * (t + 1.0) * f64::EPSILON / 2.0));
}

#[test]
fn solutions_are_measured_by_column_and_by_form_of_the_matrix() {
    fn check<T: Scalar>() {
        let n = 6;
        let a = square_batch(Generator::Scaled(0.6).matrix::<T>(n, 1, 0), n);
        let a = a.view().matrix(0).unwrap();
        for op in Transpose::ALL {
            // Of solutions of very different sizes each is held to its own.
            let size = |j: usize| if j == 0 { 1.0 } else { 1e-20 };
            let x = Batch::<T>::from_fn(1, n, 2, |_, i, j| T::from_f64(size(j) * (i + 1) as f64, size(j))).unwrap();
            let x = x.view().matrix(0).unwrap();
            let element = |i: usize, k: usize| match op {
                Transpose::None => a.at(i, k),
                Transpose::Transpose => a.at(k, i),
                Transpose::ConjugateTranspose => a.at(k, i).conj(),
            };
            let product = |_: usize, i: usize, j: usize| (0..n).map(|k| element(i, k) * x.at(k, j)).sum::<T>();
            let mut b = Batch::<T>::from_fn(1, n, 2, product).unwrap();
            assert!(solution_ratio(a, op, x, b.view().matrix(0).unwrap()) < 2.0);
            let last = b.as_mut_slice().last_mut().unwrap();
            *last += last.scale(T::EPSILON * T::from_f64(1e4, 0.0).re());
            assert!(solution_ratio(a, op, x, b.view().matrix(0).unwrap()) > LIMIT);
        }
    }
    for_all_scalars!(check);
}

#[test]
fn a_solutions_ratio_is_its_error_over_order_norms_and_roundoff() {
    let off = 2f64.powi(-30);
    let a = square_batch(vec![2.0, 0.0, 0.0, 4.0], 2);
    let column = |first: f64, second: f64| Batch::from_fn(1, 2, 1, |_, i, _| [first, second][i]).unwrap();
    let (x, b, zero) = (column(1.0, 3.0), column(2.0 + off, 12.0 - off), column(0.0, 0.0));
    let [a, x, b, zero] = [&a, &x, &b, &zero].map(|m| m.view().matrix(0).unwrap());
    assert_eq!(solution_ratio(a, Transpose::None, x, b), 2.0 * off / (2.0 * 4.0 * 4.0 * f64::EPSILON / 2.0));
    assert_eq!(solution_ratio(a, Transpose::None, zero, b), f64::INFINITY);
}

#[test]
fn right_hand_sides_and_solutions_that_do_not_fit_fail() {
    let zeros = |rows, cols| Batch::<f64>::from_fn(1, rows, cols, |_, _, _| 1.0).unwrap();
    let ratio = |a: &Batch<f64>, x: &Batch<f64>, b: &Batch<f64>| {
        let [a, x, b] = [a, x, b].map(|m| m.view().matrix(0).unwrap());
        solution_ratio(a, Transpose::None, x, b)
    };
    let (a, two) = (square_batch(vec![1.0, 0.0, 0.0, 1.0], 2), zeros(2, 1));
    assert_eq!(ratio(&a, &two, &two), 0.0);
    for (a, x, b) in [
        (&zeros(2, 3), &two, &two),
        (&a, &zeros(3, 1), &two),
        (&a, &zeros(2, 2), &two),
        (&a, &two, &zeros(3, 1)),
        (&a, &two, &zeros(2, 2)),
        (&a, &zeros(1, 1), &zeros(1, 1)),
    ] {
        assert_eq!(ratio(a, x, b), f64::INFINITY);
    }
}

#[test]
fn the_first_of_equally_bad_matrices_is_named_and_the_limit_itself_fails() {
    let mut ratios = Ratios::default();
    for (matrix, ratio) in [(3, 1.0), (4, 30.0), (5, 30.0), (6, 2.0)] {
        ratios.add(matrix, ratio);
    }
    assert_eq!((ratios.compared, ratios.worst), (4, Some(Worst { ratio: 30.0, matrix: 4 })));
    assert!(ratios.below(30.1) && !ratios.below(30.0));
    ratios.add(7, f64::NAN);
    assert_eq!(ratios.worst, Some(Worst { ratio: f64::INFINITY, matrix: 7 }));
}

#[test]
fn one_matrix_or_one_right_hand_side_may_serve_all_solutions() {
    let a = Batch::<f64>::from_fn(3, 2, 2, |b, i, j| if i == j { (b + 1) as f64 } else { 0.0 }).unwrap();
    let one = Batch::<f64>::from_fn(1, 2, 2, |_, i, j| if i == j { 2.0 } else { 0.0 }).unwrap();
    let right = Batch::<f64>::from_fn(1, 2, 1, |_, i, _| (6 * (i + 1)) as f64).unwrap();
    let rights = Batch::<f64>::from_fn(3, 2, 1, |b, i, _| (2 * (b + i + 1)) as f64).unwrap();
    let outcomes = [Outcome::Regular; 3];
    let of_one_right = Batch::<f64>::from_fn(3, 2, 1, |b, i, _| (6 * (i + 1) / (b + 1)) as f64).unwrap();
    let of_one_matrix = Batch::<f64>::from_fn(3, 2, 1, |b, i, _| (b + i + 1) as f64).unwrap();
    let exact = Ratios { compared: 3, worst: Some(Worst { ratio: 0.0, matrix: 0 }) };
    assert_eq!(solution_ratios(&a, Transpose::None, &of_one_right, &right, &outcomes), exact);
    assert_eq!(solution_ratios(&one, Transpose::None, &of_one_matrix, &rights, &outcomes), exact);
    let crossed = solution_ratios(&a, Transpose::None, &of_one_matrix, &rights, &outcomes);
    assert!(!crossed.below(LIMIT), "{crossed}");
}

#[test]
fn the_worst_matrix_of_a_batch_is_named_and_failed_ones_are_left_out() {
    let (n, layout) = (5, BatchLayout::row_major(6, 5, 5).unwrap());
    let generator = Generator::Planted(Defect::NaN);
    let a = generator.batch::<f64>(layout, 1).unwrap();
    let outcomes: Vec<_> = (0..6).filter_map(|b| generator.expected::<f64>(n, 1, b).factors).collect();
    let inverses: Vec<_> = (0..6).flat_map(|b| invert(&generator.matrix::<f64>(n, 1, b), n)).collect();
    let columns = BatchLayout::column_major(6, n, n).unwrap();
    let mut x = Batch::from_vec(inverses, columns).unwrap();
    let good = inverse_ratios(&a, &x, &outcomes);
    assert!(good.compared == 4 && good.below(LIMIT), "{good}");
    x.as_mut_slice()[3 * 25 + 7] += 1e-9;
    let bad = inverse_ratios(&a, &x, &outcomes);
    assert!(!bad.below(LIMIT) && bad.worst.unwrap().matrix == 3, "{bad}");
    x.as_mut_slice()[5 * 25] = f64::NAN;
    assert_eq!(inverse_ratios(&a, &x, &outcomes).worst.unwrap().matrix, 5);
    let nothing = inverse_ratios(&a, &x, &[Outcome::NotFinite; 6]);
    assert!(nothing.compared == 0 && !nothing.below(LIMIT));
    let lacking = inverse_ratios(&a, &x, &[Outcome::Regular; 7]).worst.unwrap();
    assert_eq!(lacking.ratio, f64::INFINITY);

    let factored: Vec<_> = (0..6).map(|b| eliminate(&generator.matrix::<f64>(n, 1, b), n)).collect();
    let lu = Batch::from_vec(factored.iter().flat_map(|f| f.lu.clone()).collect(), columns).unwrap();
    let pivots: Vec<_> = factored.iter().flat_map(|f| f.pivots.clone()).collect();
    let good = factorization_ratios(&a, &lu, &pivots, &outcomes);
    assert!(good.compared == 4 && good.below(LIMIT), "{good}");
    assert!(!factorization_ratios(&a, &lu, &pivots[..24], &[Outcome::Regular; 6]).below(LIMIT));
    let identity = Batch::from_fn(1, n, n, |_, i, j| f64::from(u8::from(i == j))).unwrap();
    assert!(solution_ratios(&identity, Transpose::None, &a, &a, &outcomes).below(LIMIT));
}

/// Prints the time of one ratio; run with `--ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn speed() {
    fn measure<T: Scalar>() {
        let n = 200;
        let a = Generator::Normal.matrix::<T>(n, 1, 0);
        let Eliminated { lu, pivots, .. } = eliminate(&a, n);
        let [a, lu, x] = [a.clone(), lu, invert(&a, n)].map(|m| square_batch(m, n));
        let [a, lu, x] = [&a, &lu, &x].map(|m| m.view().matrix(0).unwrap());
        let time = |f: &dyn Fn() -> f64| {
            let start = std::time::Instant::now();
            let sum: f64 = (0..10).map(|_| f()).sum();
            (start.elapsed().as_secs_f64() * 100.0, sum / 10.0)
        };
        let (factors, r) = time(&|| factorization_ratio(a, lu, &pivots));
        let (inverse, s) = time(&|| inverse_ratio(a, x));
        println!("{}: factors {factors:.2} ms (ratio {r:.4}), inverse {inverse:.2} ms (ratio {s:.4})", T::KIND);
        let (condition, _) = time(&|| Generator::Condition(10.0).matrix::<T>(n, 1, 0)[0].modulus().to_f64());
        println!("  a matrix of given condition: {condition:.2} ms");
    }
    for_all_scalars!(measure);
}
