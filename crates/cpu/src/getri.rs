//! `X = U⁻¹ L⁻¹ P⁻¹` of one matrix in scratch memory, LAPACK's way: `U` is inverted, then `X L = U⁻¹` solved.

use batchla_core::Scalar;

use crate::backend::CpuScalar;
use crate::level3::{block, block_mut, invert_upper, solve_unit_upper_conj};
use crate::scalar::reciprocal;
use crate::vector::{Kernel, LANES, subtract_columns, widest};

/// Puts the inverse of the matrix with factors `lu` and exchanges `pivots` into `x`, by our own loops.
///
/// Both have columns `ld` apart. The factors are finite and `U` has no zero on its diagonal.
pub(crate) fn getri<T: Scalar>(lu: &[T], x: &mut [T], ld: usize, pivots: &[u32]) {
    widest(Getri { lu, x, ld, order: pivots.len() });
    exchange_columns(x, ld, pivots);
}

/// As [`getri`], by faer's products. The reciprocals of `U`'s diagonal are far from overflow and underflow.
pub(crate) fn getri_by_blocks<T: CpuScalar>(lu: &[T], x: &mut [T], ld: usize, pivots: &[u32]) {
    let order = pivots.len();
    for (j, column) in x.chunks_mut(ld).enumerate() {
        column[j + 1..].fill(num_traits::zero());
    }
    let lu = block(lu, ld, order, order);
    let mut inverse = block_mut(x, ld, order, order);
    invert_upper(inverse.as_mut(), lu);
    solve_unit_upper_conj(lu.transpose(), faer::Conj::No, inverse.transpose_mut());
    exchange_columns(x, ld, pivots);
}

fn exchange_columns<T: Copy>(x: &mut [T], ld: usize, pivots: &[u32]) {
    for (k, &p) in pivots.iter().enumerate().rev() {
        let p = p as usize;
        if p != k {
            let (left, right) = x.split_at_mut(p * ld);
            left[k * ld..(k + 1) * ld].swap_with_slice(&mut right[..ld]);
        }
    }
}

struct Getri<'a, T> {
    lu: &'a [T],
    x: &'a mut [T],
    ld: usize,
    order: usize,
}

impl<T: Scalar> Kernel for Getri<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { lu, x, ld, order } = self;
        let padded = order.next_multiple_of(LANES);
        // X := U⁻¹, column by column: minus the columns before, weighted by U's column and divided by its diagonal.
        for j in 0..order {
            let u = &lu[j * ld..j * ld + j + 1];
            let (before, column) = x.split_at_mut(j * ld);
            let column = &mut column[..padded];
            column.fill(num_traits::zero());
            let reciprocal = reciprocal(u[j]);
            subtract_columns::<FMA, T>(&mut column[..j.next_multiple_of(LANES)], before, ld, &u[..j]);
            column[..j].iter_mut().for_each(|x| *x *= reciprocal);
            column[j] = reciprocal;
        }
        // X := X L⁻¹, from the last column on.
        for j in (0..order).rev() {
            let l = &lu[j * ld + j + 1..j * ld + order];
            let (upto, after) = x.split_at_mut((j + 1) * ld);
            subtract_columns::<FMA, T>(&mut upto[j * ld..j * ld + padded], after, ld, l);
        }
    }
}
