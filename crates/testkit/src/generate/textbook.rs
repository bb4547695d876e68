//! Elimination as the textbook has it, for tests.

use batchla_core::Scalar;

/// Packed factors, exchanges, and the first column whose pivot is exactly zero.
pub(crate) struct Eliminated<T> {
    pub(crate) lu: Vec<T>,
    pub(crate) pivots: Vec<u32>,
    pub(crate) zero: Option<usize>,
}

pub(crate) fn eliminate<T: Scalar>(a: &[T], n: usize) -> Eliminated<T> {
    let (mut lu, mut pivots, mut zero) = (a.to_vec(), Vec::new(), None);
    for k in 0..n {
        let mut p = k;
        for i in k + 1..n {
            if lu[k * n + i].abs1() > lu[k * n + p].abs1() {
                p = i;
            }
        }
        pivots.push(p as u32);
        lu.chunks_exact_mut(n).for_each(|column| column.swap(k, p));
        let pivot = lu[k * n + k];
        if pivot.is_zero() {
            zero = zero.or(Some(k));
            continue;
        }
        for i in k + 1..n {
            lu[k * n + i] = lu[k * n + i].divide(pivot);
        }
        for j in k + 1..n {
            for i in k + 1..n {
                let product = lu[k * n + i] * lu[j * n + k];
                lu[j * n + i] -= product;
            }
        }
    }
    Eliminated { lu, pivots, zero }
}

/// `A⁻¹ = U⁻¹ L⁻¹ P⁻¹`, a row at a time as `xᵀ L = U⁻ᵀ eᵀ`, so that the left residual is small (as getri's).
pub(crate) fn invert<T: Scalar>(a: &[T], n: usize) -> Vec<T> {
    let Eliminated { lu, pivots, .. } = eliminate(a, n);
    let at = |i: usize, j: usize| lu[j * n + i];
    let mut x = vec![T::zero(); n * n];
    for row in 0..n {
        let mut y = vec![T::zero(); n];
        y[row] = T::one();
        for j in row..n {
            for k in row..j {
                let product = y[k] * at(k, j);
                y[j] -= product;
            }
            y[j] = y[j].divide(at(j, j));
        }
        for j in (0..n).rev() {
            // Where elements grow, products that matter together may each be lost beside `y[j]`.
            let products = (j + 1..n).rev().fold(T::zero(), |sum, k| sum + y[k] * at(k, j));
            y[j] -= products;
        }
        for k in (0..n).rev() {
            y.swap(k, pivots[k] as usize);
        }
        (0..n).for_each(|j| x[j * n + row] = y[j]);
    }
    x
}
