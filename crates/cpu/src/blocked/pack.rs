//! From the layouts of the world into padded columns and back.

use batchla_core::{MatrixMut, MatrixRef, Scalar};

use crate::routines::Sums;
use crate::simd::{Lanes, Streams, Vector, Work};

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
    /// Exchanges of rows: columns of an inverse go where these want them. Where they [can](columns_move).
    pub(crate) exchanges: Option<&'b [u32]>,
    /// Whether it goes past the caches, where it lies there without gaps.
    pub(crate) streams: bool,
}

/// The most columns that come to their places as they are handed over.
const MOST_PLACES: usize = 1024;

/// Whether columns of an inverse do so: where a table of them is small.
pub(crate) fn columns_move(order: usize) -> bool {
    order <= MOST_PLACES
}

impl<T: Scalar> Work<T> for UnpackColumns<'_, '_, T> {
    /// Not zero where something is not finite.
    type Output = u32;

    /// In the order of memory, which the processor expects.
    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) -> u32 {
        let mut sums = Sums::<L>::default();
        let Self { from, ld, to, exchanges, streams } = self;
        let (from, ld, rows) = (L::from_numbers(from), ld / L::COUNT, to.rows());
        let mut sources = [0; MOST_PLACES];
        if let Some(exchanges) = exchanges {
            for k in 0..exchanges.len() {
                sources[k] = k as u32;
            }
            for (k, &p) in exchanges.iter().enumerate().rev() {
                sources.swap(k, p as usize);
            }
        }
        let columns = (0..to.cols()).map(|j| {
            let k = if exchanges.is_some() { sources[j] as usize } else { j };
            &from[k * ld..(k + 1) * ld][..rows.div_ceil(L::COUNT)]
        });
        // Complex numbers would have to be put together first, which takes as long as is won.
        let dense = if streams && L::PARTS == 1 { to.dense_columns_mut() } else { None };
        if let Some(dense) = dense {
            let streams = Streams::<L::Vector>::begin();
            let mut stream = streams.to(L::reals_mut(dense));
            for column in columns {
                let vectors = L::as_vectors(column);
                sums.add(vectors);
                stream.push(&L::Vector::as_reals(vectors)[..rows]);
            }
            return sums.spoiled();
        }
        for (j, from) in columns.enumerate() {
            sums.add(L::as_vectors(from));
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
