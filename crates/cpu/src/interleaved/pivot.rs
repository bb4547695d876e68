//! A column's pivot: looked for, and what is below divided by it.

use batchla_core::Scalar;

use crate::scalar::reciprocal;
use crate::simd::{Lanes, Vector};

/// The first row from `k` on whose size is largest; `k` where none is above zero.
///
/// In two halves side by side, each of which waits for its own comparisons only.
#[inline(always)]
pub(super) fn largest<L: Lanes>(column: &[L], k: usize) -> L::Vector {
    let one = L::count(1);
    let (first, second) = column[k..].split_at((column.len() - k).div_ceil(2));
    let (mut size, mut index, mut row) = (L::Vector::splat(num_traits::zero()), L::count(k), L::count(k));
    let (mut other_size, mut other_index, mut other_row) = (size, index, L::count(k + first.len()));
    for (x, other) in first.iter().zip(second) {
        (size, index) = larger::<L>((x.size(), row), (size, index));
        (other_size, other_index) = larger::<L>((other.size(), other_row), (other_size, other_index));
        (row, other_row) = (row.add(one), other_row.add(one));
    }
    for x in &first[second.len()..] {
        (size, index) = larger::<L>((x.size(), row), (size, index));
    }
    larger::<L>((other_size, other_index), (size, index)).1
}

/// The candidate where its size is above the best one's.
#[inline(always)]
pub(super) fn larger<L: Lanes>(
    candidate: (L::Vector, L::Vector),
    best: (L::Vector, L::Vector),
) -> (L::Vector, L::Vector) {
    let above = candidate.0.above(best.0);
    (L::Vector::select(above, candidate.0, best.0), L::Vector::select(above, candidate.1, best.1))
}

/// The row of pivot `k`, unless the columns end there. Looked for as soon as its column is ready: the search waits for its own comparisons, and other columns fill the time.
#[inline(always)]
pub(super) fn next_largest<L: Lanes>(a: &[L], (n, ld): (usize, usize), k: usize, end: usize) -> L::Vector {
    let k = k.min(end - 1);
    largest::<L>(&a[k * ld..k * ld + n], k)
}

/// Divides what is below row `k` by the pivot there, and notes where that is zero.
#[inline(always)]
pub(super) fn scale<L: Lanes>(column: &mut [L], k: usize, zero_pivots: &mut L::Vector) {
    let pivot = column[k];
    if pivot.is_moderate() {
        let reciprocal = pivot.reciprocal();
        for x in &mut column[k + 1..] {
            *x = x.times(reciprocal);
        }
    } else {
        scale_slowly(column, k, zero_pivots);
    }
}

/// The same lane by lane.
#[cold]
#[inline(never)]
pub(super) fn scale_slowly<L: Lanes>(column: &mut [L], k: usize, zero_pivots: &mut L::Vector) {
    let (zero, at) = (L::Vector::splat(num_traits::zero()), L::count(k));
    let first = L::Vector::select(zero_pivots.above(at), at, *zero_pivots);
    *zero_pivots = L::Vector::select(column[k].size().equals(zero), first, *zero_pivots);
    for lane in 0..L::COUNT {
        scale_lane(column, k, lane);
    }
}

/// The same in one lane, whatever the pivot: by its reciprocal, unless that might overflow.
#[inline(always)]
fn scale_lane<L: Lanes>(column: &mut [L], k: usize, lane: usize) {
    let pivot = L::lane(column, k, lane);
    // Where the pivot is zero, all below is.
    if pivot != num_traits::zero() {
        let multiply = pivot.abs1() >= L::Number::SAFE_MINIMUM;
        let reciprocal = L::splat(reciprocal(pivot));
        for i in k + 1..column.len() {
            let x = if multiply {
                L::lane(&[column[i].times(reciprocal)], 0, lane)
            } else {
                L::lane(column, i, lane).divide(pivot)
            };
            L::set_lane(column, i, lane, x);
        }
    }
}
