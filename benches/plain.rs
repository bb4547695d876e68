//! The plain loop: what one writes with faer and rayon alone.
//!
//! faer's low-level routines, without threads of their own unless there is but one matrix, rayon over the batch, scratch memory kept for a
//! chunk of matrices (made within the time that is taken, where ours is made before: one or two per cent at most, of large matrices), results in the place of the input or apart from it. The matrices are dense and column-major, one after another.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::lu::partial_pivoting::{factor, inverse};
use faer::traits::ComplexField;
use faer::{MatMut, MatRef, Par};
use rayon::prelude::*;

/// Chunks a thread: enough to keep all threads busy to the end, few enough that scratch memory costs little.
const CHUNKS: usize = 16;

/// Puts the packed factors of every matrix of `from`, or of those already there, into `matrices`, and into `permutations` the row of `A` that row `i` of `LU`
/// comes from.
pub(crate) fn factorize<T: ComplexField + Copy>(
    from: Option<&[T]>,
    matrices: &mut [T],
    permutations: &mut [u32],
    order: usize,
) {
    let (chunk, par) = (chunk(permutations.len() / order), parallelism(permutations.len() / order));
    let chunks = matrices.par_chunks_mut(chunk * order * order).zip(permutations.par_chunks_mut(chunk * order));
    chunks.enumerate().for_each(|(at, (matrices, permutations))| {
        let mut from = from.map(|from| from[at * chunk * order * order..].chunks(order * order));
        let mut inverse_permutation = vec![0; order];
        let mut memory = MemBuffer::new(factor::lu_in_place_scratch::<u32, T>(order, order, par, Default::default()));
        for (matrix, permutation) in matrices.chunks_mut(order * order).zip(permutations.chunks_mut(order)) {
            if let Some(from) = from.as_mut().and_then(Iterator::next) {
                matrix.copy_from_slice(from);
            }
            factor::lu_in_place(
                MatMut::from_column_major_slice_mut(matrix, order, order),
                permutation,
                &mut inverse_permutation,
                par,
                MemStack::new(&mut memory),
                Default::default(),
            );
        }
    });
}

/// Puts the inverse of every matrix of `from`, or of those already there, into `matrices`.
pub(crate) fn invert<T: ComplexField + Copy>(from: Option<&[T]>, matrices: &mut [T], order: usize) {
    let (area, par) = (order * order, parallelism(matrices.len() / (order * order)));
    let chunk = chunk(matrices.len() / area) * area;
    matrices.par_chunks_mut(chunk).enumerate().for_each(|(at, matrices)| {
        let mut from = from.map(|from| from[at * chunk..].chunks(area));
        let mut lu = vec![T::zero_impl(); area];
        let (mut permutation, mut inverse_permutation) = (vec![0u32; order], vec![0; order]);
        let mut memory = MemBuffer::new(
            factor::lu_in_place_scratch::<u32, T>(order, order, par, Default::default())
                .or(inverse::inverse_scratch::<u32, T>(order, par)),
        );
        for matrix in matrices.chunks_mut(area) {
            lu.copy_from_slice(from.as_mut().and_then(Iterator::next).unwrap_or(matrix));
            let (_, permutation) = factor::lu_in_place(
                MatMut::from_column_major_slice_mut(&mut lu, order, order),
                &mut permutation,
                &mut inverse_permutation,
                par,
                MemStack::new(&mut memory),
                Default::default(),
            );
            let lu = MatRef::from_column_major_slice(&lu, order, order);
            let inverse = MatMut::from_column_major_slice_mut(matrix, order, order);
            inverse::inverse(inverse, lu, lu, permutation, par, MemStack::new(&mut memory));
        }
    });
}

/// Threads beside the one that a matrix is computed by: faer's own for one alone.
fn parallelism(batch: usize) -> Par {
    if batch == 1 { Par::rayon(0) } else { Par::Seq }
}

/// Matrices of a chunk.
pub(crate) fn chunk(batch: usize) -> usize {
    batch.div_ceil(CHUNKS * rayon::current_num_threads()).max(1)
}

/// The sequential exchanges that amount to a permutation: step `k` exchanges rows `k` and `exchanges[k]`.
pub(crate) fn exchanges(permutation: &[u32]) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..permutation.len() as u32).collect();
    let mut exchanges = Vec::with_capacity(rows.len());
    for (k, &row) in permutation.iter().enumerate() {
        let at = (k..rows.len()).find(|&at| rows[at] == row).unwrap_or(k);
        rows.swap(k, at);
        exchanges.push(at as u32);
    }
    exchanges
}
