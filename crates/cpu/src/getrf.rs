//! `A = P L U` of one matrix in scratch memory, by LAPACK's rules: recursive, with panels by our own loops.

use batchla_core::Scalar;

use crate::backend::CpuScalar;
use crate::level3::{block, block_mut, solve_unit_lower, subtract_product};
use crate::plan::PANEL;
use crate::scalar::reciprocal;
use crate::vector::{Chunk, Kernel, LANES, chunks, chunks_mut, minus_product, widest};

/// Factors the matrix of order `pivots.len()` in `a`, whose columns are `ld` apart and whose padding is zero.
///
/// Gives 0-based exchanges, and the column of the first zero pivot.
pub(crate) fn getrf<T: CpuScalar>(a: &mut [T], ld: usize, pivots: &mut [u32]) -> Option<usize> {
    factor_columns(a, ld, pivots.len(), 0, pivots)
}

/// Factors the columns in `a` from row `top` down; LAPACK's `getrf2`.
fn factor_columns<T: CpuScalar>(a: &mut [T], ld: usize, order: usize, top: usize, pivots: &mut [u32]) -> Option<usize> {
    let width = pivots.len();
    if width <= PANEL {
        let zero_pivot = widest(Getf2 { a: &mut a[top..], ld, rows: order - top, pivots });
        pivots.iter_mut().for_each(|p| *p += top as u32);
        return zero_pivot.map(|k| k + top);
    }
    let half = (width / 2).next_multiple_of(LANES);
    let (first, second) = a.split_at_mut(half * ld);
    let (first_pivots, second_pivots) = pivots.split_at_mut(half);

    let zero_pivot = factor_columns(first, ld, order, top, first_pivots);
    exchange_rows(second, ld, top, first_pivots);
    let below = order - top - half;
    let lower = block(&first[top..], ld, order - top, half);
    let right = block_mut(&mut second[top..], ld, order - top, width - half);
    let (mut upper, rest) = right.split_at_row_mut(half);
    solve_unit_lower(lower.subrows(0, half), upper.as_mut());
    subtract_product(rest, lower.subrows(half, below), upper.as_ref());

    let later_zero_pivot = factor_columns(second, ld, order, top + half, second_pivots);
    exchange_rows(first, ld, top + half, second_pivots);
    zero_pivot.or(later_zero_pivot)
}

/// Exchanges rows `top + k` and `pivots[k]` of every column, for each `k` in turn.
#[inline(always)]
pub(crate) fn exchange_rows<T>(a: &mut [T], ld: usize, top: usize, pivots: &[u32]) {
    for column in a.chunks_mut(ld) {
        for (k, &p) in pivots.iter().enumerate() {
            column.swap(top + k, p as usize);
        }
    }
}

/// LAPACK's `getf2`: factors a panel of `pivots.len()` columns of `rows` rows; each column, once scaled, is eliminated from those
/// on its right.
struct Getf2<'a, T> {
    a: &'a mut [T],
    ld: usize,
    rows: usize,
    pivots: &'a mut [u32],
}

impl<T: Scalar> Kernel for Getf2<'_, T> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> Option<usize> {
        let Self { a, ld, rows, pivots } = self;
        let padded = rows.next_multiple_of(LANES);
        let mut zero_pivot = None;
        for (k, pivot_row) in pivots.iter_mut().enumerate() {
            let p = first_largest(&a[k * ld..k * ld + padded], k);
            *pivot_row = p as u32;
            // A pass of its own: vectors loaded right after a part of them was stored would have to wait.
            if p != k {
                a.chunks_mut(ld).for_each(|column| column.swap(k, p));
            }
            let (done, right) = a.split_at_mut(((k + 1) * ld).min(a.len()));
            let column = &mut done[k * ld..k * ld + padded];
            if column[k] == num_traits::zero() {
                // Nothing to scale: all below is zero. The update goes on, as LAPACK's does.
                zero_pivot = zero_pivot.or(Some(k));
            } else {
                scale_below(column, k);
            }
            let l = Below::new(column, k);
            for to in right.chunks_mut(ld) {
                let u = to[k];
                l.eliminate::<FMA>(&mut to[..padded], u);
            }
        }
        zero_pivot
    }
}

/// The first row from `k` on whose size `|re| + |im|` is largest; `k` where none is above zero.
#[inline(always)]
fn first_largest<T: Scalar>(column: &[T], k: usize) -> usize {
    let zero: T::Real = num_traits::zero();
    let (head, lane) = (k / LANES, k % LANES);
    let mut largest = [zero; LANES];
    let open = &chunks(column)[head..];
    for (i, (best, x)) in largest.iter_mut().zip(&open[0]).enumerate() {
        let size = x.abs1();
        *best = if i >= lane && size > *best { size } else { *best };
    }
    for chunk in &open[1..] {
        for (best, x) in largest.iter_mut().zip(chunk) {
            let size = x.abs1();
            *best = if size > *best { size } else { *best };
        }
    }
    for width in [4, 2, 1] {
        for i in 0..width {
            let other = largest[i + width];
            largest[i] = if other > largest[i] { other } else { largest[i] };
        }
    }
    let largest = largest[0];
    if largest > zero { (k..column.len()).find(|&i| column[i].abs1() == largest).unwrap_or(k) } else { k }
}

/// Divides what is below row `k` by the element there: by its reciprocal, unless that might overflow.
#[inline(always)]
fn scale_below<T: Scalar>(column: &mut [T], k: usize) {
    let pivot = column[k];
    if pivot.abs1() >= T::SAFE_MINIMUM {
        let reciprocal = reciprocal(pivot);
        let (head, lane) = (k / LANES, k % LANES);
        let open = &mut chunks_mut(column)[head..];
        for x in &mut open[0][lane + 1..] {
            *x *= reciprocal;
        }
        for chunk in &mut open[1..] {
            for x in chunk {
                *x *= reciprocal;
            }
        }
    } else {
        column[k + 1..].iter_mut().for_each(|x| *x = x.divide(pivot));
    }
}

/// What lies below row `k` of a column, from the chunk of row `k` on, with zeros down to row `k`.
pub(crate) struct Below<'a, T> {
    place: usize,
    head: Chunk<T>,
    rest: &'a [Chunk<T>],
}

impl<'a, T: Scalar> Below<'a, T> {
    #[inline(always)]
    pub(crate) fn new(column: &'a [T], k: usize) -> Self {
        let place = k / LANES;
        let open = &chunks(column)[place..];
        Self { place, head: below_lane(open[0], k % LANES), rest: &open[1..] }
    }

    /// `to -= self u`.
    #[inline(always)]
    pub(crate) fn eliminate<const FMA: bool>(&self, to: &mut [T], u: T) {
        let to = &mut chunks_mut(to)[self.place..];
        to[0] = minus_product::<FMA, T>(to[0], self.head, u);
        for (to, l) in to[1..].iter_mut().zip(self.rest) {
            *to = minus_product::<FMA, T>(*to, *l, u);
        }
    }
}

/// A chunk with zeros down to `lane`.
#[inline(always)]
fn below_lane<T: Scalar>(mut chunk: Chunk<T>, lane: usize) -> Chunk<T> {
    for (i, x) in chunk.iter_mut().enumerate() {
        *x = if i > lane { *x } else { num_traits::zero() };
    }
    chunk
}

#[cfg(test)]
mod tests {
    use batchla_core::Complex;

    use super::*;
    use crate::vector::fused;

    /// Integers, many of them equal, and no two matrices alike.
    fn matrix<T: Scalar>(order: usize, ld: usize) -> Vec<T> {
        let element = |at: usize| if at % ld < order { (at * at * 7 + at * 3) % 23 } else { 0 };
        (0..ld * order).map(|at| T::from_f64(element(at) as f64 - 11.0, (element(at + 1) % 5) as f64)).collect()
    }

    fn all_ways_agree<T: CpuScalar>() {
        for order in [1usize, 5, 8, 9, 17, 24, 32] {
            let ld = order.next_multiple_of(LANES);
            let mut plain = matrix::<T>(order, ld);
            let mut plain_pivots = vec![0; order];
            let kernel = Getf2 { a: &mut plain, ld, rows: order, pivots: &mut plain_pivots };
            let zero_pivot = if fused() { kernel.run::<true>() } else { kernel.run::<false>() };
            let (mut a, mut pivots) = (matrix::<T>(order, ld), vec![0; order]);
            let found = widest(Getf2 { a: &mut a, ld, rows: order, pivots: &mut pivots });
            assert_eq!((&pivots, found), (&plain_pivots, zero_pivot), "{} of order {order}", T::KIND);
            assert!(a == plain, "{} of order {order}", T::KIND);
        }
    }

    #[test]
    fn instruction_sets_do_not_change_bits() {
        all_ways_agree::<f32>();
        all_ways_agree::<f64>();
        all_ways_agree::<Complex<f32>>();
        all_ways_agree::<Complex<f64>>();
    }

    #[test]
    fn reciprocals_are_accurate_at_both_ends_of_the_range() {
        for size in [1e-307, 1e-200, 1e-154, 1.0, 1e154, 1e200, 1e307] {
            let x = Complex::new(0.6 * size, -0.8 * size);
            assert!((reciprocal(x) * x - 1.0).norm() < 1e-15, "{size:e}");
        }
    }
}
