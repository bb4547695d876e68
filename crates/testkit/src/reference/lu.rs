//! `A = P L U`, column by column from the left.

use batchla_core::{MatrixMut, Outcome, Scalar};

/// Factors `a` in place with partial pivoting; `pivots[k]` is the row exchanged with row `k`.
///
/// Column `j` is brought up to date with all columns before it, its first largest element is found and exchanged to
/// the diagonal, and the rest is divided by it. A zero pivot is left as it is: all below it is zero.
pub(super) fn factor<T: Scalar>(a: &mut MatrixMut<'_, T>, pivots: &mut [u32]) -> Outcome {
    let n = a.rows();
    let mut finite = is_finite(a);
    let mut singular = None;
    for j in 0..n {
        for k in 0..j {
            let p = pivots[k] as usize;
            let (top, other) = (a.at(k, j), a.at(p, j));
            a.set(k, j, other);
            a.set(p, j, top);
        }
        for k in 0..j {
            let u = a.at(k, j);
            for i in k + 1..n {
                a.set(i, j, a.at(i, j) - a.at(i, k) * u);
            }
        }
        let mut p = j;
        for i in j + 1..n {
            if a.at(i, j).abs1() > a.at(p, j).abs1() {
                p = i;
            }
        }
        pivots[j] = p as u32;
        for k in 0..=j {
            let (top, other) = (a.at(j, k), a.at(p, k));
            a.set(j, k, other);
            a.set(p, k, top);
        }
        let pivot = a.at(j, j);
        if pivot.is_zero() {
            singular = singular.or(Some(j));
        } else {
            for i in j + 1..n {
                a.set(i, j, a.at(i, j).divide(pivot));
            }
        }
    }
    finite &= is_finite(a);
    match (finite, singular) {
        (false, _) => Outcome::NotFinite,
        (true, Some(column)) => Outcome::Singular { column },
        (true, None) => Outcome::Regular,
    }
}

fn is_finite<T: Scalar>(a: &MatrixMut<'_, T>) -> bool {
    (0..a.cols()).all(|j| (0..a.rows()).all(|i| a.at(i, j).finite()))
}

#[cfg(test)]
mod tests {
    use batchla_core::{Batch, Complex};

    use super::*;

    fn factors<T: Scalar>(rows: &[&[T]]) -> (Vec<Vec<T>>, Vec<u32>, Outcome) {
        let n = rows.len();
        let mut a = Batch::from_fn(1, n, n, |_, i, j| rows[i][j]).unwrap();
        let mut pivots = vec![0; n];
        let mut matrix = a.view_mut().into_matrices().next().unwrap();
        let outcome = factor(&mut matrix, &mut pivots);
        ((0..n).map(|i| (0..n).map(|j| matrix.at(i, j)).collect()).collect(), pivots, outcome)
    }

    #[test]
    fn a_three_by_three_worked_by_hand() {
        // [1 2 4; 2 8 2; 4 4 8]: 4 is the first pivot (row 2), then of [6, -2] in column 1 row 1's 6, then 2 - ...
        let (lu, pivots, outcome) = factors::<f64>(&[&[1.0, 2.0, 4.0], &[2.0, 8.0, 2.0], &[4.0, 4.0, 8.0]]);
        assert_eq!(lu, [[4.0, 4.0, 8.0], [0.5, 6.0, -2.0], [0.25, 1.0 / 6.0, 2.0 + 1.0 / 3.0]]);
        assert_eq!((pivots, outcome), (vec![2, 1, 2], Outcome::Regular));
    }

    #[test]
    fn equal_candidates_go_to_the_first_row() {
        let (_, pivots, _) = factors::<f32>(&[&[1.0, 0.0, 1.0], &[-2.0, 1.0, 0.0], &[2.0, 0.0, 1.0]]);
        assert_eq!(pivots[0], 1);
        let z = Complex::new;
        let (_, pivots, _) = factors(&[&[z(0.0, 1.2), z(1.0, 0.0)], &[z(0.8, 0.8), z(0.0, 0.0)]]);
        assert_eq!(pivots[0], 1, "by |re| + |im|, 1.6 beats 1.2, by modulus 1.13 does not");
    }

    #[test]
    fn a_zero_pivot_is_reported_and_elimination_goes_on() {
        let (lu, pivots, outcome) = factors::<f64>(&[&[0.0, 1.0, 2.0], &[0.0, 2.0, 2.0], &[0.0, 4.0, 1.0]]);
        assert_eq!(outcome, Outcome::Singular { column: 0 });
        assert_eq!(pivots, [0, 2, 2]);
        assert_eq!(lu, [[0.0, 1.0, 2.0], [0.0, 4.0, 1.0], [0.0, 0.5, 1.5]]);
    }

    #[test]
    fn nan_and_infinity_make_it_not_finite() {
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            for place in 0..4 {
                let mut a = [1.0, 2.0, 3.0, 4.0];
                a[place] = bad;
                assert_eq!(factors(&[&a[..2], &a[2..]]).2, Outcome::NotFinite);
            }
        }
        assert_eq!(factors(&[&[f64::NAN, 0.0], &[0.0, 0.0]]).2, Outcome::NotFinite, "outranks singular");
    }

    #[test]
    fn factors_that_overflow_are_not_finite() {
        let (lu, _, outcome) = factors::<f64>(&[&[1.0, f64::MAX], &[-1.0, f64::MAX]]);
        assert_eq!((lu[1][1], outcome), (f64::INFINITY, Outcome::NotFinite));
    }
}
