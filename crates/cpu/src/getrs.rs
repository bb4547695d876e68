//! `op(A) X = B` of one factored matrix in scratch memory.

use batchla_core::{Scalar, Transpose};
use faer::Conj;

use crate::backend::CpuScalar;
use crate::getrf::{Below, exchange_rows};
use crate::level3::{block, block_mut, solve_lower_conj, solve_unit_lower, solve_unit_upper_conj, solve_upper};
use crate::vector::{Kernel, LANES, chunks, chunks_mut, minus_product, widest};

/// Solves in the place of the right-hand sides `x`, by our own loops, one right-hand side at a time.
///
/// `lu` and `x` have columns `ld` apart. The factors are finite and `U` has no zero on its diagonal.
pub(crate) fn getrs<T: Scalar>(lu: &[T], x: &mut [T], ld: usize, pivots: &[u32], transpose: Transpose) {
    if transpose == Transpose::None {
        exchange_rows(x, ld, 0, pivots);
    }
    for column in x.chunks_mut(ld) {
        widest(Getrs { lu, x: column, ld, order: pivots.len(), transpose });
    }
    if transpose != Transpose::None {
        restore_rows(x, ld, pivots);
    }
}

/// As [`getrs`], by faer's products. The reciprocals of `U`'s diagonal are far from overflow and underflow.
pub(crate) fn getrs_by_blocks<T: CpuScalar>(lu: &[T], x: &mut [T], ld: usize, pivots: &[u32], transpose: Transpose) {
    let (order, columns) = (pivots.len(), x.len() / ld);
    let lu = block(lu, ld, order, order);
    let conj = if transpose == Transpose::ConjugateTranspose { Conj::Yes } else { Conj::No };
    if transpose == Transpose::None {
        exchange_rows(x, ld, 0, pivots);
        solve_unit_lower(lu, block_mut(x, ld, order, columns));
        solve_upper(lu, block_mut(x, ld, order, columns));
    } else {
        solve_lower_conj(lu.transpose(), conj, block_mut(x, ld, order, columns));
        solve_unit_upper_conj(lu.transpose(), conj, block_mut(x, ld, order, columns));
        restore_rows(x, ld, pivots);
    }
}

fn restore_rows<T>(x: &mut [T], ld: usize, pivots: &[u32]) {
    for column in x.chunks_mut(ld) {
        for (k, &p) in pivots.iter().enumerate().rev() {
            column.swap(k, p as usize);
        }
    }
}

struct Getrs<'a, T> {
    lu: &'a [T],
    x: &'a mut [T],
    ld: usize,
    order: usize,
    transpose: Transpose,
}

impl<T: Scalar> Kernel for Getrs<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FMA: bool>(self) {
        let Self { lu, x, ld, order, transpose } = self;
        let x = &mut x[..order.next_multiple_of(LANES)];
        match transpose {
            Transpose::None => substitute::<FMA, T>(lu, x, ld, order),
            Transpose::Transpose => substitute_transposed(lu, x, ld, order, |u| u),
            Transpose::ConjugateTranspose => substitute_transposed(lu, x, ld, order, T::conj),
        }
    }
}

/// `L y = b`, then `U x = y`: each unknown, once known, is eliminated from the others.
#[inline(always)]
fn substitute<const FMA: bool, T: Scalar>(lu: &[T], x: &mut [T], ld: usize, order: usize) {
    for k in 0..order {
        let solved = x[k];
        Below::new(&lu[k * ld..k * ld + x.len()], k).eliminate::<FMA>(x, solved);
    }
    for k in (0..order).rev() {
        let u = &lu[k * ld..k * ld + x.len()];
        x[k] = x[k].divide(u[k]);
        eliminate_above::<FMA, T>(x, u, x[k], k);
    }
}

/// `op(U) y = b`, then `op(L) x = y`: each unknown is what the inner product with those known leaves.
#[inline(always)]
fn substitute_transposed<T: Scalar>(lu: &[T], x: &mut [T], ld: usize, order: usize, op: impl Fn(T) -> T + Copy) {
    for k in 0..order {
        let u = &lu[k * ld..k * ld + x.len()];
        let sum = inner_product(u, x, op, |i| i < k);
        x[k] = (x[k] - sum).divide(op(u[k]));
    }
    for k in (0..order).rev() {
        let sum = inner_product(&lu[k * ld..k * ld + x.len()], x, op, |i| i > k && i < order);
        x[k] -= sum;
    }
}

/// `to -= u x` above row `k`.
#[inline(always)]
fn eliminate_above<const FMA: bool, T: Scalar>(to: &mut [T], u: &[T], x: T, k: usize) {
    let (tail, lane) = (k / LANES, k % LANES);
    let (to, u) = (chunks_mut(to), chunks(u));
    for (to, u) in to[..tail].iter_mut().zip(&u[..tail]) {
        *to = minus_product::<FMA, T>(*to, *u, x);
    }
    let (before, after) = (to[tail], minus_product::<FMA, T>(to[tail], u[tail], x));
    for i in 0..LANES {
        to[tail][i] = if i < lane { after[i] } else { before[i] };
    }
}

/// `Σ op(a) x` over the rows that `takes` names, summed lane by lane.
#[inline(always)]
fn inner_product<T: Scalar>(a: &[T], x: &[T], op: impl Fn(T) -> T, takes: impl Fn(usize) -> bool) -> T {
    let mut sums = [num_traits::zero::<T>(); LANES];
    for (c, (a, x)) in chunks(a).iter().zip(chunks(x)).enumerate() {
        for (i, (sum, (&a, &x))) in sums.iter_mut().zip(a.iter().zip(x)).enumerate() {
            let next = *sum + op(a) * x;
            *sum = if takes(c * LANES + i) { next } else { *sum };
        }
    }
    sums.into_iter().sum()
}
