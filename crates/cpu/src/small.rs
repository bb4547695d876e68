//! The factorisation of a small real matrix: its columns are a number of whole chunks that is known when compiled.
//!
//! Does to each element what [`getrf`](crate::getrf) does, in the same order, but without loops inside a column.

use batchla_core::Scalar;

use crate::vector::{Chunk, Kernel, LANES, minus_product, widest};

/// The largest distance of columns that is small.
pub(crate) const LARGEST: usize = 4 * LANES;

/// Factors as [`getrf`](crate::getrf::getrf); columns are `ld` apart, one to four whole chunks.
pub(crate) fn getrf_small<T: Scalar>(a: &mut [T], ld: usize, pivots: &mut [u32]) -> Option<usize> {
    match ld / LANES {
        1 => widest(Small::<T, 1> { a, pivots }),
        2 => widest(Small::<T, 2> { a, pivots }),
        3 => widest(Small::<T, 3> { a, pivots }),
        _ => widest(Small::<T, 4> { a, pivots }),
    }
}

struct Small<'a, T, const C: usize> {
    a: &'a mut [T],
    pivots: &'a mut [u32],
}

type Column<T, const C: usize> = [Chunk<T>; C];

impl<T: Scalar, const C: usize> Kernel for Small<'_, T, C> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<const FMA: bool>(self) -> Option<usize> {
        let Self { a, pivots } = self;
        let columns: &mut [Column<T, C>] = a.as_chunks_mut().0.as_chunks_mut().0;
        let mut zero_pivot = None;
        for (k, pivot_row) in pivots.iter_mut().enumerate() {
            let p = first_largest(&columns[k], k);
            *pivot_row = p as u32;
            // A pass of its own: vectors loaded right after a part of them was stored would have to wait.
            if p != k {
                for column in columns.iter_mut() {
                    column.as_flattened_mut().swap(k, p);
                }
            }
            let (done, right) = columns.split_at_mut(k + 1);
            let column = &mut done[k];
            let pivot = column.as_flattened()[k];
            if pivot == num_traits::zero() {
                // Nothing to scale: all below is zero. The update goes on, as LAPACK's does.
                zero_pivot = zero_pivot.or(Some(k));
            } else if pivot.abs1() >= T::SAFE_MINIMUM {
                let reciprocal = num_traits::one::<T>().divide(pivot);
                *column = below(column, k, |x| x * reciprocal, |x| x);
            } else {
                column.as_flattened_mut()[k + 1..].iter_mut().for_each(|x| *x = x.divide(pivot));
            }
            let l = below(column, k, |x| x, |_| num_traits::zero());
            for to in right {
                let u = to.as_flattened()[k];
                for c in 0..C {
                    to[c] = minus_product::<FMA, T>(to[c], l[c], u);
                }
            }
        }
        zero_pivot
    }
}

/// `low(x)` below row `k`, `high(x)` down to it.
#[inline(always)]
fn below<T: Scalar, const C: usize>(
    column: &Column<T, C>,
    k: usize,
    low: impl Fn(T) -> T,
    high: impl Fn(T) -> T,
) -> Column<T, C> {
    let mut result = *column;
    for c in 0..C {
        for i in 0..LANES {
            let x = column[c][i];
            result[c][i] = if c * LANES + i > k { low(x) } else { high(x) };
        }
    }
    result
}

/// The first row from `k` on whose size is largest; `k` where none is above zero.
#[inline(always)]
fn first_largest<T: Scalar, const C: usize>(column: &Column<T, C>, k: usize) -> usize {
    let zero: T::Real = num_traits::zero();
    let mut sizes = [[zero; LANES]; C];
    let mut largest = [zero; LANES];
    for c in 0..C {
        for i in 0..LANES {
            let size = column[c][i].abs1();
            sizes[c][i] = if c * LANES + i >= k { size } else { zero };
            largest[i] = if sizes[c][i] > largest[i] { sizes[c][i] } else { largest[i] };
        }
    }
    for width in [4, 2, 1] {
        for i in 0..width {
            largest[i] = if largest[i + width] > largest[i] { largest[i + width] } else { largest[i] };
        }
    }
    let largest = largest[0];
    if largest > zero {
        for (c, sizes) in sizes.iter().enumerate() {
            let mut hits = 0u8;
            for (i, &size) in sizes.iter().enumerate() {
                hits |= u8::from(size == largest) << i;
            }
            if hits != 0 {
                return c * LANES + hits.trailing_zeros() as usize;
            }
        }
    }
    k
}
