//! From the layouts of the world into padded columns and back.

use batchla_core::{MatrixMut, MatrixRef, Scalar};

use crate::routines::Sums;
use crate::simd::{Lanes, Work};

/// Takes a matrix over.
pub struct PackColumns<'a, 'b, T: Scalar> {
    pub(crate) from: MatrixRef<'a, T>,
    pub(crate) to: &'b mut [T],
    /// The distance of columns, in numbers.
    pub(crate) ld: usize,
}

impl<T: Scalar> Work<T> for PackColumns<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        let Self { from, to, ld } = self;
        let (to, ld) = (L::from_numbers_mut(to), ld / L::COUNT);
        for j in 0..from.cols() {
            let to = &mut to[j * ld..(j + 1) * ld];
            if let Some(column) = from.column(j) {
                let parts = L::reals(column).chunks_exact(L::PARTS * L::COUNT);
                let rest = parts.remainder();
                let vectors = parts.len();
                for (x, part) in to.iter_mut().zip(parts) {
                    *x = L::from_memory(part);
                }
                if !rest.is_empty() {
                    to[vectors] = L::from_memory(rest);
                }
            } else {
                // Zero first: the last vector is padded.
                to[from.rows() / L::COUNT..].fill(L::zero());
                for i in 0..from.rows() {
                    L::set_lane(to, i / L::COUNT, i % L::COUNT, from.at(i, j));
                }
            }
        }
    }
}

/// Hands a matrix over.
pub struct UnpackColumns<'a, 'b, T: Scalar> {
    pub(crate) from: &'b [T],
    /// The distance of columns, in numbers.
    pub(crate) ld: usize,
    pub(crate) to: &'b mut MatrixMut<'a, T>,
    /// Which column comes to each place, if not its own.
    pub(crate) columns: Option<&'b [u32]>,
}

impl<T: Scalar> Work<T> for UnpackColumns<'_, '_, T> {
    /// Not zero where something is not finite.
    type Output = u32;

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) -> u32 {
        let mut sums = Sums::<L>::default();
        let Self { from, ld, to, columns } = self;
        let (from, ld, rows) = (L::from_numbers(from), ld / L::COUNT, to.rows());
        for j in 0..to.cols() {
            let column = columns.map_or(j, |columns| columns[j] as usize);
            let from = &from[column * ld..(column + 1) * ld];
            sums.add(L::as_vectors(&from[..rows.div_ceil(L::COUNT)]));
            if let Some(column) = to.column_mut(j) {
                let (parts, rest) = L::reals_mut(column).split_at_mut(rows / L::COUNT * (L::PARTS * L::COUNT));
                for (x, part) in from.iter().zip(parts.chunks_exact_mut(L::PARTS * L::COUNT)) {
                    x.to_memory(part);
                }
                if !rest.is_empty() {
                    from[rows / L::COUNT].to_memory(rest);
                }
            } else {
                for i in 0..to.rows() {
                    to.set(i, j, L::lane(from, i / L::COUNT, i % L::COUNT));
                }
            }
        }
        sums.spoiled()
    }
}
