//! nalgebra: matrices of a size known when compiled where they are small, else of any size.

use nalgebra::allocator::Allocator;
use nalgebra::{ComplexField, Const, DMatrix, DVector, DefaultAllocator, DimMin, OMatrix, OVector, ToTypenum};
use rayon::prelude::*;

use crate::contest::Peer;
use crate::plain::{chunk, exchanges};

/// nalgebra, on rayon's threads.
pub(crate) struct Nalgebra;

/// The body with `N` the order where it is one of these, else the other one.
macro_rules! for_order {
    ($order:expr, [$($known:literal),*], |$n:ident| $body:expr, $else:expr) => {
        match $order {
            $($known => { const $n: usize = $known; $body })*
            _ => $else,
        }
    };
}

impl<T: ComplexField + Copy> Peer<T> for Nalgebra {
    fn name(&self) -> &str {
        "nalgebra"
    }

    fn factorize(&self, matrices: &mut [T], pivots: &mut [u32], order: usize) {
        let chunk = chunk(pivots.len() / order);
        let chunks = matrices.par_chunks_mut(chunk * order * order).zip(pivots.par_chunks_mut(chunk * order));
        chunks.for_each(|(matrices, pivots)| {
            for (matrix, rows) in matrices.chunks_exact_mut(order * order).zip(pivots.chunks_exact_mut(order)) {
                for_order!(order, [2, 3, 4, 6, 8, 16], |N| factorize_known::<T, N>(matrix, rows), {
                    let lu = DMatrix::from_column_slice(order, order, matrix).lu();
                    let mut permuted = DVector::from_fn(order, |i, _| i as u32);
                    lu.p().permute_rows(&mut permuted);
                    rows.copy_from_slice(permuted.as_slice());
                    matrix.copy_from_slice(lu.lu_internal().as_slice());
                });
            }
        });
    }

    fn invert(&self, matrices: &mut [T], order: usize) {
        let area = order * order;
        matrices.par_chunks_mut(chunk(matrices.len() / area) * area).for_each(|matrices| {
            for matrix in matrices.chunks_exact_mut(area) {
                for_order!(order, [2, 3, 4, 6, 8, 16], |N| invert_known::<T, N>(matrix), {
                    if let Some(inverse) = DMatrix::from_column_slice(order, order, matrix).try_inverse() {
                        matrix.copy_from_slice(inverse.as_slice());
                    }
                });
            }
        });
    }

    fn exchanges(&self, pivots: &[u32]) -> Vec<u32> {
        exchanges(pivots)
    }
}

fn factorize_known<T: ComplexField + Copy, const N: usize>(matrix: &mut [T], rows: &mut [u32])
where
    Const<N>: ToTypenum + DimMin<Const<N>, Output = Const<N>>,
    DefaultAllocator: Allocator<Const<N>, Const<N>> + Allocator<Const<N>>,
{
    let lu = OMatrix::<T, Const<N>, Const<N>>::from_column_slice(matrix).lu();
    let mut permuted = OVector::<u32, Const<N>>::from_fn(|i, _| i as u32);
    lu.p().permute_rows(&mut permuted);
    rows.copy_from_slice(permuted.as_slice());
    matrix.copy_from_slice(lu.lu_internal().as_slice());
}

fn invert_known<T: ComplexField + Copy, const N: usize>(matrix: &mut [T])
where
    DefaultAllocator: Allocator<Const<N>, Const<N>>,
{
    if let Some(inverse) = OMatrix::<T, Const<N>, Const<N>>::from_column_slice(matrix).try_inverse() {
        matrix.copy_from_slice(inverse.as_slice());
    }
}
