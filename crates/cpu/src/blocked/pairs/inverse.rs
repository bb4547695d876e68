//! The inverse from factors, four columns at a time in registers: `U⁻¹` from the first columns on, then `X L = U⁻¹` from the last.

use super::rows::Rows;
use super::{Traces, unpack_column};
use crate::blocked::tile::{lanes_before, number, spread};
use crate::scalar::reciprocal;
use crate::simd::{Lanes, Vector};

/// Columns that are computed together.
const STEP: usize = 4;

/// Puts the inverse of a matrix with the factors `lu` into `x`, which has room for whole steps, but for its columns' places. Whether all is finite.
#[inline(always)]
pub(super) fn invert<L: Lanes, const V: usize>(lu: &[[L; V]], x: &mut [[L; V]]) -> bool {
    let n = lu.len();
    let x = &mut x[..n.next_multiple_of(STEP)];
    for j in (0..n).step_by(STEP) {
        invert_upper(lu, x, j);
    }
    for j in (0..n).step_by(STEP).rev() {
        for_few_vectors!(L, V, |R, FIRST| solve_lower::<L, V, R>(lu, x, j, FIRST));
    }
    let mut traces = Traces::<L, V>::default();
    for column in &*x {
        traces.add(column);
    }
    traces.are_finite()
}

/// Hands it over, its columns where exchanges have brought `rows`: in the order of memory, which the processor expects.
#[inline(always)]
pub(super) fn unpack_inverse<L: Lanes, const V: usize>(
    x: &[[L; V]],
    rows: &Rows,
    n: usize,
    to: &mut [<L::Vector as Vector>::Real],
) {
    for (to, &k) in to.chunks_exact_mut(n * L::PARTS).zip(&rows.place) {
        unpack_column(&x[usize::from(k)], to);
    }
}

/// Four columns of the factors from `j` on; beyond the last, this one again: what comes of it is multiplied with zero.
#[inline(always)]
fn columns<L: Lanes, const V: usize>(lu: &[[L; V]], j: usize) -> [&[L; V]; STEP] {
    let last = lu.len() - 1;
    [&lu[j], &lu[last.min(j + 1)], &lu[last.min(j + 2)], &lu[last.min(j + 3)]]
}

/// Four columns of `U⁻¹` from `j` on, zero below the diagonal, and in columns beyond the last.
#[inline(always)]
fn invert_upper<L: Lanes, const V: usize>(lu: &[[L; V]], x: &mut [[L; V]], j: usize) {
    let own = columns(lu, j);
    let mut inverses = [L::zero(); STEP];
    for c in 0..STEP.min(lu.len() - j) {
        inverses[c] = L::splat(reciprocal(number(own[c], j + c)));
    }
    let (diagonal, mut v) = (j / L::COUNT, 0);
    while diagonal - v >= 2 && L::PARTS == 1 {
        invert_upper_vectors::<L, V, 2, false>(&own, &inverses, x, j, v);
        v += 2;
    }
    while v < diagonal {
        invert_upper_vectors::<L, V, 1, false>(&own, &inverses, x, j, v);
        v += 1;
    }
    invert_upper_vectors::<L, V, 1, true>(&own, &inverses, x, j, v);
    for column in &mut x[j..j + STEP] {
        column[v + 1..].fill(L::zero());
    }
}

/// Vectors `v..v + R` of these; `DIAGONAL`: the one where their diagonal is.
#[inline(always)]
fn invert_upper_vectors<L: Lanes, const V: usize, const R: usize, const DIAGONAL: bool>(
    own: &[&[L; V]; STEP],
    inverses: &[L; STEP],
    x: &mut [[L; V]],
    j: usize,
    v: usize,
) {
    let (before, x) = x.split_at_mut(j);
    let mut sum = [[L::zero(); R]; STEP];
    for (k, x) in before.iter().enumerate().skip(v * L::COUNT) {
        for c in 0..STEP {
            let u = spread(own[c], k);
            for r in 0..R {
                sum[c][r] = sum[c][r].minus_product(x[v + r], u);
            }
        }
    }
    for c in 0..STEP {
        for k in 0..c {
            let u = spread(own[c], j + k);
            for r in 0..R {
                sum[c][r] = sum[c][r].minus_product(sum[k][r], u);
            }
        }
        for r in 0..R {
            sum[c][r] = sum[c][r].times(inverses[c]);
        }
        if DIAGONAL {
            let lane = (j + c) % L::COUNT;
            let upper = L::select(lanes_before::<L>(lane), sum[c][0], L::zero());
            sum[c][0] = L::select(L::Vector::lane_mask(lane), inverses[c], upper);
        }
        for r in 0..R {
            x[c][v + r] = sum[c][r];
        }
    }
}

/// Vectors `v..v + R` of four columns of `X` from `j` on, once those after them are done.
#[inline(always)]
fn solve_lower<L: Lanes, const V: usize, const R: usize>(lu: &[[L; V]], x: &mut [[L; V]], j: usize, v: usize) {
    let own = columns(lu, j);
    let (x, after) = x[j..].split_at_mut(STEP);
    let mut sum = [[L::zero(); R]; STEP];
    for (k, x) in after.iter().enumerate().rev() {
        for c in 0..STEP {
            let l = spread(own[c], j + STEP + k);
            for r in 0..R {
                sum[c][r] = sum[c][r].minus_product(x[v + r], l);
            }
        }
    }
    // The products are summed before the difference, as LAPACK's are: where growth cancels, one by one loses it.
    for c in (0..STEP).rev() {
        for k in (c + 1..STEP).rev() {
            let l = spread(own[c], j + k);
            for r in 0..R {
                sum[c][r] = sum[c][r].minus_product(sum[k][r], l);
            }
        }
        for r in 0..R {
            sum[c][r] = x[c][v + r].plus(sum[c][r]);
            x[c][v + r] = sum[c][r];
        }
    }
}
