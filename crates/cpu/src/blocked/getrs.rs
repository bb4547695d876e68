//! `op(A) X = B` of one matrix, from factors; for a transpose, from factors that were transposed.

use std::ops::Range;

use batchla_core::{Scalar, Transpose};

use super::laswp::exchange_rows;
use super::tile::{Factors, lanes_after, lanes_before, load, number, spread, store, subtract, subtract_product};
use crate::scalar::over;
use crate::simd::{Lanes, Vector, Work};

/// Transposes a square matrix in its place, with or without conjugation.
pub struct Transposed<'a, T> {
    pub(crate) a: &'a mut [T],
    /// The distance of columns, in numbers.
    pub(crate) ld: usize,
    pub(crate) order: usize,
    pub(crate) conj: bool,
}

impl<T: Scalar> Work<T> for Transposed<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        let Self { a, ld, order, conj } = self;
        let (a, ld) = (L::from_numbers_mut(a), ld / L::COUNT);
        let op = |x: T| if conj { x.conj() } else { x };
        for j in 0..order {
            for i in 0..=j {
                let (upper, lower) = (i / L::COUNT + j * ld, j / L::COUNT + i * ld);
                let (x, y) = (op(L::lane(a, upper, i % L::COUNT)), op(L::lane(a, lower, j % L::COUNT)));
                L::set_lane(a, upper, i % L::COUNT, y);
                L::set_lane(a, lower, j % L::COUNT, x);
            }
        }
    }
}

/// Solves in the place of the right-hand sides. Where factors are not finite, or have a zero on the diagonal, anything comes out.
pub struct BlockedGetrs<'a, T> {
    /// The factors, transposed where `transpose` says so.
    pub(crate) lu: &'a [T],
    pub(crate) x: &'a mut [T],
    /// The distance of columns, in numbers.
    pub(crate) ld: usize,
    pub(crate) exchanges: &'a [u32],
    pub(crate) transpose: Transpose,
}

impl<T: Scalar> Work<T> for BlockedGetrs<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        let Self { lu, x, ld, exchanges, transpose } = self;
        let (lu, x, ld) = (L::from_numbers(lu), L::from_numbers_mut(x), ld / L::COUNT);
        if transpose == Transpose::None {
            exchange_rows(x, ld, 0, exchanges);
        }
        // The factor with ones on its diagonal is `L`, upper once transposed.
        let unit_lower = transpose == Transpose::None;
        with_tiles!(L, solve_all(lu, x, ld, exchanges.len(), unit_lower));
        if transpose != Transpose::None {
            for column in x.chunks_exact_mut(ld) {
                for (k, p) in exchanges.iter().enumerate().rev() {
                    exchange_rows(column, ld, k, std::slice::from_ref(p));
                }
            }
        }
    }
}

/// Rows of a block: what is known of the unknowns goes to all rows beyond it as a product.
const BLOCK: usize = 64;

#[inline(always)]
fn solve_all<L: Lanes, const C: usize>(lu: &[L], x: &mut [L], ld: usize, n: usize, unit_lower: bool) {
    let (vectors, width) = (n.div_ceil(L::COUNT), x.len() / ld);
    for top in (0..n).step_by(BLOCK) {
        let end = n.min(top + BLOCK);
        let mut columns = x.chunks_exact_mut(C * ld);
        for together in &mut columns {
            solve_lower::<L, C>(lu, together, ld, top..end, unit_lower);
        }
        for column in columns.into_remainder().chunks_exact_mut(ld) {
            solve_lower::<L, 1>(lu, column, ld, top..end, unit_lower);
        }
        let factors = Factors { a: &lu[top * ld..], b: None, row: top, ld };
        subtract_product::<L, false>(x, factors, end - top, (end.div_ceil(L::COUNT), vectors), width);
    }
    for top in (0..n).step_by(BLOCK).rev() {
        let end = n.min(top + BLOCK);
        let mut columns = x.chunks_exact_mut(C * ld);
        for together in &mut columns {
            solve_upper::<L, C>(lu, together, ld, top..end, unit_lower);
        }
        for column in columns.into_remainder().chunks_exact_mut(ld) {
            solve_upper::<L, 1>(lu, column, ld, top..end, unit_lower);
        }
        let factors = Factors { a: &lu[top * ld..], b: None, row: top, ld };
        subtract_product::<L, true>(x, factors, end - top, (0, top / L::COUNT), width);
    }
}

/// The unknowns of some rows, once those above are known and gone from them.
#[inline(always)]
fn solve_lower<L: Lanes, const C: usize>(lu: &[L], x: &mut [L], ld: usize, rows: Range<usize>, unit_lower: bool) {
    let factors = Factors { a: lu, b: None, row: 0, ld };
    for start in rows.clone().step_by(L::COUNT) {
        let i = start / L::COUNT;
        let mut sum = load::<L, 1, C>(x, ld, i, 0);
        subtract::<L, 1, C, false>(&mut sum, x, factors, (rows.start, start), i, 0);
        for k in start..rows.end.min(start + L::COUNT) {
            let (l, lane) = (lu[k * ld + i], k - start);
            for c in 0..C {
                let known =
                    step::<L>(&mut sum[c][0], lane, if unit_lower { None } else { Some(number(&lu[k * ld..], k)) });
                sum[c][0] = L::select(lanes_after::<L>(lane), sum[c][0].minus_product(l, known), sum[c][0]);
            }
        }
        store(x, ld, i, 0, sum);
    }
}

/// The same once those below are known.
#[inline(always)]
fn solve_upper<L: Lanes, const C: usize>(lu: &[L], x: &mut [L], ld: usize, rows: Range<usize>, unit_lower: bool) {
    let factors = Factors { a: lu, b: None, row: 0, ld };
    for start in rows.clone().step_by(L::COUNT).rev() {
        let (i, end) = (start / L::COUNT, rows.end.min(start + L::COUNT));
        let mut sum = load::<L, 1, C>(x, ld, i, 0);
        subtract::<L, 1, C, true>(&mut sum, x, factors, (end, rows.end), i, 0);
        for k in (start..end).rev() {
            let (u, lane) = (lu[k * ld + i], k - start);
            for c in 0..C {
                let known =
                    step::<L>(&mut sum[c][0], lane, if unit_lower { Some(number(&lu[k * ld..], k)) } else { None });
                sum[c][0] = L::select(lanes_before::<L>(lane), sum[c][0].minus_product(u, known), sum[c][0]);
            }
        }
        store(x, ld, i, 0, sum);
    }
}

/// The unknown in one lane, divided where there is something to divide by, in every lane.
#[inline(always)]
fn step<L: Lanes>(x: &mut L, lane: usize, diagonal: Option<L::Number>) -> L {
    match diagonal {
        None => spread(std::slice::from_ref(x), lane),
        Some(d) => {
            let known = L::splat(over(number(std::slice::from_ref(x), lane), d));
            *x = L::select(L::Vector::lane_mask(lane), known, *x);
            known
        }
    }
}
