//! `op(A) X = B` in every lane, from factors.

use std::ops::Range;

use batchla_core::{Scalar, Transpose};

use super::getrf::exchange_rows;
use super::leading_dimension;
use super::tile::{COLUMNS, for_columns, load, part, store, subtract};
use crate::simd::{Lanes, Work};

/// Solves in the place of the right-hand sides. Lanes whose factors are not finite, or have a zero on the diagonal, get anything.
pub struct Getrs<'a, T> {
    /// The factors.
    pub(crate) lu: &'a [T],
    pub(crate) x: &'a mut [T],
    pub(crate) order: usize,
    pub(crate) exchanges: &'a [u32],
    pub(crate) transpose: Transpose,
}

impl<T: Scalar> Work<T> for Getrs<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        let Self { lu, x, order: n, exchanges, transpose } = self;
        if n == 0 {
            return;
        }
        let (lu, x) = (L::from_numbers(lu), L::from_numbers_mut(x));
        let ld = leading_dimension(n);
        let right_hand_sides = x.len() / ld;
        match transpose {
            Transpose::None => {
                for_columns!(0..right_hand_sides, |j, C| exchange_rows::<L, C>(x, (n, ld), 0..n, j, exchanges));
                lower::<L, true>(x, (n, ld), |i, k| lu[i + k * ld]);
                upper::<L, false>(x, (n, ld), |i, k| lu[i + k * ld]);
            }
            // Real numbers are their own conjugates.
            Transpose::ConjugateTranspose if L::PARTS == 2 => {
                lower::<L, false>(x, (n, ld), |i, k| lu[k + i * ld].conj());
                upper::<L, true>(x, (n, ld), |i, k| lu[k + i * ld].conj());
            }
            Transpose::Transpose | Transpose::ConjugateTranspose => {
                lower::<L, false>(x, (n, ld), |i, k| lu[k + i * ld]);
                upper::<L, true>(x, (n, ld), |i, k| lu[k + i * ld]);
            }
        }
        if transpose != Transpose::None {
            for_columns!(0..right_hand_sides, |j, C| exchange_rows::<L, C>(x, (n, ld), (0..n).rev(), j, exchanges));
        }
    }
}

/// Rows of a tile.
const ROWS: usize = 4;

/// Solves with a lower triangle, whose diagonal is one where `UNIT`.
#[inline(always)]
fn lower<L: Lanes, const UNIT: bool>(x: &mut [L], (n, ld): (usize, usize), l: impl Fn(usize, usize) -> L + Copy) {
    let mut columns = x.chunks_exact_mut(COLUMNS * ld);
    for x in &mut columns {
        lower_columns::<L, COLUMNS, UNIT>(x, (n, ld), l);
    }
    for x in columns.into_remainder().chunks_exact_mut(ld) {
        lower_columns::<L, 1, UNIT>(x, (n, ld), l);
    }
}

#[inline(always)]
fn lower_columns<L: Lanes, const C: usize, const UNIT: bool>(
    x: &mut [L],
    (n, ld): (usize, usize),
    l: impl Fn(usize, usize) -> L + Copy,
) {
    let whole = n / ROWS * ROWS;
    for i in (0..whole).step_by(ROWS) {
        lower_rows::<L, ROWS, C, UNIT>(x, (n, ld), i, l);
    }
    for i in whole..n {
        lower_rows::<L, 1, C, UNIT>(x, (n, ld), i, l);
    }
}

#[inline(always)]
fn lower_rows<L: Lanes, const R: usize, const C: usize, const UNIT: bool>(
    x: &mut [L],
    (_, ld): (usize, usize),
    i: usize,
    l: impl Fn(usize, usize) -> L,
) {
    let mut sum = load::<L, R, C>(x, i, ld);
    subtract::<L, R, C, false>(&mut sum, |k| column(|r| l(i + r, k)), part(x, ld, 0, 0..i));
    for k in 0..R {
        if !UNIT {
            divide(&mut sum, k, l(i + k, i + k));
        }
        for r in k + 1..R {
            let l = l(i + r, i + k);
            for c in 0..C {
                sum[c][r] = sum[c][r].minus_product(l, sum[c][k]);
            }
        }
    }
    store(x, i, ld, sum);
}

/// Solves with an upper triangle, whose diagonal is one where `UNIT`.
#[inline(always)]
fn upper<L: Lanes, const UNIT: bool>(x: &mut [L], (n, ld): (usize, usize), u: impl Fn(usize, usize) -> L + Copy) {
    let mut columns = x.chunks_exact_mut(COLUMNS * ld);
    for x in &mut columns {
        upper_columns::<L, COLUMNS, UNIT>(x, (n, ld), u);
    }
    for x in columns.into_remainder().chunks_exact_mut(ld) {
        upper_columns::<L, 1, UNIT>(x, (n, ld), u);
    }
}

#[inline(always)]
fn upper_columns<L: Lanes, const C: usize, const UNIT: bool>(
    x: &mut [L],
    (n, ld): (usize, usize),
    u: impl Fn(usize, usize) -> L + Copy,
) {
    let whole = n / ROWS * ROWS;
    for i in (whole..n).rev() {
        upper_rows::<L, 1, C, UNIT>(x, (n, ld), i, u);
    }
    for i in (0..whole).step_by(ROWS).rev() {
        upper_rows::<L, ROWS, C, UNIT>(x, (n, ld), i, u);
    }
}

#[inline(always)]
fn upper_rows<L: Lanes, const R: usize, const C: usize, const UNIT: bool>(
    x: &mut [L],
    (n, ld): (usize, usize),
    i: usize,
    u: impl Fn(usize, usize) -> L,
) {
    let mut sum = load::<L, R, C>(x, i, ld);
    subtract::<L, R, C, true>(&mut sum, |k| column(|r| u(i + r, i + R + k)), part(x, ld, 0, i + R..n));
    for k in (0..R).rev() {
        if !UNIT {
            divide(&mut sum, k, u(i + k, i + k));
        }
        for r in 0..k {
            let u = u(i + r, i + k);
            for c in 0..C {
                sum[c][r] = sum[c][r].minus_product(u, sum[c][k]);
            }
        }
    }
    store(x, i, ld, sum);
}

/// Divides row `k` of a tile.
#[inline(always)]
fn divide<L: Lanes, const R: usize, const C: usize>(sum: &mut [[L; R]; C], k: usize, divisor: L) {
    for column in sum {
        column[k] = column[k].over(divisor);
    }
}

/// `R` elements. (The closure of `std::array::from_fn` would not be inlined.)
#[inline(always)]
fn column<L: Lanes, const R: usize>(element: impl Fn(usize) -> L) -> [L; R] {
    let mut column = [L::zero(); R];
    for r in 0..R {
        column[r] = element(r);
    }
    column
}
