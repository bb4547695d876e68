//! `U⁻¹` of one matrix, in the place of `U`: columns from left to right, several at a time.

use batchla_core::Scalar;

use super::tile::{Factors, lanes_before, load, number, spread, store, subtract, subtract_upper};
use crate::scalar::reciprocal;
use crate::simd::{Lanes, Vector, Work};

/// What the columns before contribute to columns of `U⁻¹`, in the rows that are above all of their diagonals.
pub struct SumUpper<'a, T> {
    pub(super) before: &'a [T],
    pub(super) columns: &'a mut [T],
    pub(super) ld: usize,
}

impl<T: Scalar> Work<T> for SumUpper<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        let Self { before, columns, ld } = self;
        let (before, columns, ld) = (L::from_numbers(before), L::from_numbers_mut(columns), ld / L::COUNT);
        with_tiles!(L, sum_upper(before, columns, ld));
    }
}

#[inline(always)]
fn sum_upper<L: Lanes, const C: usize>(before: &[L], columns: &mut [L], ld: usize) {
    let end = before.len() / ld;
    for i in 0..end / L::COUNT {
        let mut whole = columns.chunks_exact_mut(C * ld);
        for own in &mut whole {
            let sum = upper_sum::<L, 1, C>(before, own, ld, i, end);
            store(own, ld, i, 0, sum);
        }
        for own in whole.into_remainder().chunks_exact_mut(ld) {
            let sum = upper_sum::<L, 1, 1>(before, own, ld, i, end);
            store(own, ld, i, 0, sum);
        }
    }
}

/// Inverts `U` in columns from `first` on, to which those before have contributed.
pub struct InvertUpper<'a, T> {
    pub(super) a: &'a mut [T],
    pub(super) ld: usize,
    pub(super) first: usize,
}

impl<T: Scalar> Work<T> for InvertUpper<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        let Self { a, ld, first } = self;
        let (a, ld) = (L::from_numbers_mut(a), ld / L::COUNT);
        with_tiles!(L, invert_upper(a, ld, first));
    }
}

#[inline(always)]
fn invert_upper<L: Lanes, const C: usize>(a: &mut [L], ld: usize, first: usize) {
    let (n, step) = (a.len() / ld, C.max(L::COUNT));
    for j in (first..n).step_by(step) {
        let end = n.min(j + step);
        // Above the diagonal's vectors: several columns at a time, those that begin at whole vectors.
        let mut column = j;
        while end - column >= C {
            invert_columns::<L, C>(a, ld, (first, j), column);
            column += C;
        }
        for column in column..end {
            invert_columns::<L, 1>(a, ld, (first, j), column);
        }
    }
}

/// Columns `column..column + C`, whose diagonals are in vectors from row `j` on, and to which the columns before `first` have contributed.
#[inline(always)]
fn invert_columns<L: Lanes, const C: usize>(a: &mut [L], ld: usize, (first, j): (usize, usize), column: usize) {
    let (known, above, mut i) = (first / L::COUNT, j / L::COUNT, 0);
    let mut inverses = [num_traits::zero(); C];
    for c in 0..C {
        inverses[c] = reciprocal(number(&a[(column + c) * ld..], column + c));
    }
    while known - i.min(known) >= 2 {
        invert_vectors::<L, 2, C>(a, ld, i, (first, column), &inverses);
        i += 2;
    }
    // Two at a time, but for long vectors: where their diagonals are, half of the products are for nothing.
    while above - i >= 2 && i >= known && L::PARTS == 1 && L::COUNT <= 8 && C > 1 {
        invert_vectors::<L, 2, C>(a, ld, i, (first, column), &inverses);
        i += 2;
    }
    while i < above {
        invert_vectors::<L, 1, C>(a, ld, i, (first, column), &inverses);
        i += 1;
    }
    finish_columns::<L>(a, ld, j, column, column + C);
}

/// Minus the sum of the columns before column `end`, weighted by `U`'s, in vectors `i..i + R`, which are above their diagonal.
#[inline(always)]
fn upper_sum<L: Lanes, const R: usize, const C: usize>(
    x: &[L],
    own: &[L],
    ld: usize,
    i: usize,
    end: usize,
) -> [[L; R]; C] {
    let (mut sum, factors) = ([[L::zero(); R]; C], Factors { a: x, b: None, row: 0, ld });
    for_each_constant!(R, |AT| {
        // Below the diagonal, `L` is still there.
        let (r, mut own_sum) = (AT, [[L::zero()]; C]);
        subtract_upper::<L, C>(&mut own_sum, own, factors, i + r);
        subtract::<L, 1, C, false>(&mut own_sum, own, factors, ((i + r + 1) * L::COUNT, (i + R) * L::COUNT), i + r, 0);
        for c in 0..C {
            sum[c][r] = own_sum[c][0];
        }
    });
    subtract::<L, R, C, false>(&mut sum, own, factors, ((i + R) * L::COUNT, end), i, 0);
    sum
}

/// Vectors `i..i + R` of `C` columns of `U⁻¹` from `j` on: that sum, begun with the columns before `first`, times `inverses` of the diagonal.
#[inline(always)]
fn invert_vectors<L: Lanes, const R: usize, const C: usize>(
    a: &mut [L],
    ld: usize,
    i: usize,
    (first, j): (usize, usize),
    inverses: &[L::Number; C],
) {
    let (x, own) = a.split_at_mut(j * ld);
    let mut sum = if (i + R) * L::COUNT <= first {
        let (mut sum, factors) = (load::<L, R, C>(own, ld, i, 0), Factors { a: x, b: None, row: 0, ld });
        subtract::<L, R, C, false>(&mut sum, own, factors, (first, j), i, 0);
        sum
    } else {
        upper_sum::<L, R, C>(x, own, ld, i, j)
    };
    for_each_constant!(C, |AT| {
        let c = AT;
        let column = &own[c * ld..];
        let inverse = L::splat(inverses[c]);
        for k in 0..c {
            let weight = spread(column, j + k);
            for r in 0..R {
                sum[c][r] = sum[c][r].minus_product(sum[k][r], weight);
            }
        }
        for r in 0..R {
            sum[c][r] = sum[c][r].times(inverse);
        }
    });
    store(own, ld, i, 0, sum);
}

/// The vectors from row `top` on of columns `first..end` of `U⁻¹`, whose diagonal is in them.
#[inline(always)]
fn finish_columns<L: Lanes>(a: &mut [L], ld: usize, top: usize, first: usize, end: usize) {
    for j in first..end {
        let (x, own) = a.split_at_mut(j * ld);
        let inverse = reciprocal(number(own, j));
        for i in top / L::COUNT..=j / L::COUNT {
            let start = i * L::COUNT;
            let mut sum = [[L::zero()]];
            for k in start..j.min(start + L::COUNT) {
                let next = sum[0][0].minus_product(x[k * ld + i], spread(own, k));
                sum[0][0] = L::select(lanes_before::<L>(k - start + 1), next, sum[0][0]);
            }
            let factors = Factors { a: x, b: None, row: 0, ld };
            subtract::<L, 1, 1, false>(&mut sum, own, factors, (start + L::COUNT, j), i, 0);
            let scaled = sum[0][0].times(L::splat(inverse));
            own[i] = if j < start + L::COUNT {
                let with_diagonal = L::select(L::Vector::lane_mask(j - start), L::splat(inverse), own[i]);
                L::select(lanes_before::<L>(j - start), scaled, with_diagonal)
            } else {
                scaled
            };
        }
    }
}
