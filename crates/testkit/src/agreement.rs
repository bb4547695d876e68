//! Two backends on the same input: outcomes and pivots, with ties told apart from mistakes.

use std::fmt;

use batchla_core::{Batch, BatchedFactorize, Error, HostMemory, MatrixRef, Outcome, Real, Scalar};

/// How two choices of pivots compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The same rows throughout.
    Same,
    /// They part at this column, where both candidates are equally large within rounding.
    Tie {
        /// The column.
        column: usize,
    },
    /// They part at this column, and one candidate is clearly larger.
    Wrong {
        /// The column.
        column: usize,
    },
}

/// Holds two sequences of exchanges for the same matrix against each other.
///
/// Where they part, the column is brought up to date with the pivots that both agree on, and the two candidates compared. A difference
/// within `16 n ε κ` of the largest element that elimination has met is a tie: `κ`, the largest element over the smallest pivot so far, is
/// how much elimination has magnified rounding errors.
pub fn compare_pivots<T: Scalar>(a: MatrixRef<'_, T>, one: &[u32], other: &[u32]) -> Choice {
    let Some(column) = one.iter().zip(other).position(|(p, q)| p != q) else { return Choice::Same };
    let n = a.rows();
    let outside = |pivots: &[u32]| pivots[..=column].iter().any(|&p| p as usize >= n);
    if outside(one) || outside(other) {
        return Choice::Wrong { column };
    }
    let mut columns: Vec<Vec<T>> = (0..=column).map(|j| (0..n).map(|i| a.at(i, j)).collect()).collect();
    let (mut largest, mut smallest_pivot) = (0.0f64, f64::INFINITY);
    for k in 0..column {
        for c in &mut columns {
            c.swap(k, one[k] as usize);
        }
        let (done, rest) = columns.split_at_mut(k + 1);
        let pivot = done[k][k];
        smallest_pivot = smallest_pivot.min(pivot.abs1().to_f64());
        for c in rest {
            let u = c[k];
            for (x, &l) in c[k + 1..].iter_mut().zip(&done[k][k + 1..]) {
                if pivot != num_traits::zero() {
                    *x -= l.divide(pivot) * u;
                }
                largest = largest.max(x.abs1().to_f64());
            }
        }
    }
    let candidates = &columns[column];
    largest = (0..n).fold(largest, |max, i| max.max(a.at(i, column).abs1().to_f64()));
    let size = |p: u32| candidates[p as usize].abs1().to_f64();
    let magnified = (largest / smallest_pivot).max(1.0);
    let slack = 16.0 * n as f64 * T::UNIT_ROUNDOFF.to_f64() * largest * magnified;
    if (size(one[column]) - size(other[column])).abs() <= slack {
        Choice::Tie { column }
    } else {
        Choice::Wrong { column }
    }
}

/// What [`cross_check`] found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Agreement {
    /// Matrices in the batch.
    pub matrices: usize,
    /// Matrices whose pivots part at a tie within rounding.
    pub ties: usize,
    /// Matrices whose pivots part where there is no tie, first ones first.
    pub pivots_differ: Vec<usize>,
    /// Matrices with different outcomes.
    pub outcomes_differ: Vec<usize>,
}

impl Agreement {
    /// Whether nothing but ties tells the two apart; false where nothing was compared.
    pub fn holds(&self) -> bool {
        self.matrices > 0 && self.pivots_differ.is_empty() && self.outcomes_differ.is_empty()
    }

    /// The share of matrices whose pivots are exempt because of ties.
    pub fn exempt_share(&self) -> f64 {
        self.ties as f64 / (self.matrices as f64).max(1.0)
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} matrices, {:.3} % exempt for ties, pivots differ in {}, outcomes differ in {}",
            self.matrices,
            100.0 * self.exempt_share(),
            self.pivots_differ.len(),
            self.outcomes_differ.len()
        )
    }
}

/// Factors a host batch on two backends and compares outcomes and pivots, matrix by matrix.
///
/// # Errors
/// Where one of the backends fails.
pub fn cross_check<T: Scalar, B, C>(one: &B, other: &C, a: &Batch<T>) -> Result<Agreement, Error>
where
    B: BatchedFactorize<T, Memory = HostMemory>,
    C: BatchedFactorize<T, Memory = HostMemory>,
{
    let (left, right) = (one.factorize(a)?, other.factorize(a)?);
    let mut agreement = Agreement { matrices: a.batch(), ..Agreement::default() };
    for (((b, ours), (_, theirs)), a) in left.outcomes().zip(right.outcomes()).zip(a.view().matrices()) {
        if ours != theirs {
            agreement.outcomes_differ.push(b);
        }
        if ours == Outcome::NotFinite || theirs == Outcome::NotFinite {
            continue;
        }
        match compare_pivots(a, left.pivots(b).unwrap_or(&[]), right.pivots(b).unwrap_or(&[])) {
            Choice::Same => {}
            Choice::Tie { .. } => agreement.ties += 1,
            Choice::Wrong { .. } => agreement.pivots_differ.push(b),
        }
    }
    Ok(agreement)
}

#[cfg(test)]
mod tests {
    use batchla_core::BatchRef;

    use super::*;

    fn compare<const N: usize>(rows: [[f64; N]; N], one: [u32; N], other: [u32; N]) -> Choice {
        let layout = batchla_core::BatchLayout::row_major(1, N, N).unwrap();
        compare_pivots(BatchRef::new(rows.as_flattened(), layout).unwrap().matrix(0).unwrap(), &one, &other)
    }

    #[test]
    fn a_tie_is_told_from_a_mistake() {
        assert_eq!(compare([[1.0, 0.0], [-1.0, 1.0]], [0, 1], [1, 1]), Choice::Tie { column: 0 });
        assert_eq!(compare([[1.0, 0.0], [2.0, 1.0]], [0, 1], [1, 1]), Choice::Wrong { column: 0 });
        assert_eq!(compare([[1.0, 0.0], [2.0, 1.0]], [1, 1], [1, 1]), Choice::Same);
    }

    #[test]
    fn candidates_are_compared_as_elimination_left_them() {
        // Two exchanges and the multipliers 1/2, 1/4, 0 and 0, 1/2 leave 3 and `last` - 11/4 as candidates of column 2.
        let rows = |last| [[2.0, 0.5, 4.0, 0.0], [0.0, 1.0, last, 0.0], [4.0, 1.0, 2.0, 0.0], [1.0, 2.25, 6.0, 0.0]];
        let (one, other) = ([2, 3, 2, 3], [2, 3, 3, 3]);
        for last in [5.75, -0.25] {
            assert_eq!(compare(rows(last), one, other), Choice::Tie { column: 2 }, "{last}");
        }
        for last in [3.0, 0.25, 4.0, 5.0, -3.0, -5.75] {
            assert_eq!(compare(rows(last), one, other), Choice::Wrong { column: 2 }, "{last}");
        }
    }

    #[test]
    fn a_small_pivot_on_the_way_widens_what_is_a_tie() {
        for scale in [1.0, 2f64.powi(40), 2f64.powi(-40)] {
            let rows = |pivot| [[pivot, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0 + 1e-11, 1.0]];
            let compared = |pivot| compare(rows(pivot).map(|row| row.map(|x| x * scale)), [0, 1, 2], [0, 2, 2]);
            assert_eq!(compared(1e-4), Choice::Tie { column: 1 }, "{scale:e}");
            assert_eq!(compared(1.0), Choice::Wrong { column: 1 }, "{scale:e}");
            // A zero pivot eliminates nothing; what comes after it may be anything.
            assert_eq!(compared(0.0), Choice::Tie { column: 1 }, "{scale:e}");
        }
    }

    #[test]
    fn exchanges_with_rows_that_there_are_not_are_wrong() {
        let rows = [[1.0, 0.0], [2.0, 1.0]];
        assert_eq!(compare(rows, [2, 1], [1, 1]), Choice::Wrong { column: 0 });
        assert_eq!(compare(rows, [1, 1], [2, 1]), Choice::Wrong { column: 0 });
        assert_eq!(compare(rows, [1, 1], [1, 7]), Choice::Wrong { column: 1 });
    }

    #[test]
    fn what_differs_does_not_hold_and_ties_are_a_share() {
        assert!(!Agreement::default().holds());
        assert_eq!(Agreement::default().exempt_share(), 0.0);
        let agreement = Agreement { matrices: 4, ties: 1, ..Agreement::default() };
        assert!(agreement.holds());
        assert_eq!(agreement.exempt_share(), 0.25);
        assert!(!Agreement { pivots_differ: vec![2], ..agreement.clone() }.holds());
        assert!(!Agreement { outcomes_differ: vec![2], ..agreement }.holds());
    }
}
