//! Scratch memory: aligned places of one fixed shape, where every matrix is computed.

use std::sync::{Mutex, PoisonError};

use batchla_core::{Error, HostArray, MatrixRef, Scalar};

use crate::vector::{LANES, all_finite};
use crate::workspace::Shape;

/// The distance of columns in scratch memory: whole chunks, and no multiple of 1 KiB, since columns a power of two apart
/// compete for the same few lines of the cache.
pub(crate) fn leading_dimension<T>(order: usize) -> usize {
    let ld = order.max(1).next_multiple_of(LANES);
    if (ld * size_of::<T>()).is_multiple_of(1024) { ld + LANES } else { ld }
}

/// Columns in scratch memory, [`leading_dimension`] apart, and padded with zeros.
pub(crate) struct Columns<T: Scalar> {
    elements: HostArray<T>,
    rows: usize,
    ld: usize,
}

impl<T: Scalar> Columns<T> {
    fn new(rows: usize, cols: usize) -> Result<Self, Error> {
        let ld = leading_dimension::<T>(rows);
        // A product too large for the address space becomes the error of an allocation too large for it.
        Ok(Self { elements: HostArray::zeroed(ld.saturating_mul(cols))?, rows, ld })
    }

    /// Takes over a matrix of as many rows and no more columns, whatever its layout.
    pub(crate) fn pack(&mut self, from: MatrixRef<'_, T>) {
        from.copy_to_columns(&mut self.elements, self.ld);
        if self.rows < self.ld {
            for column in self.elements.chunks_mut(self.ld).take(from.cols()) {
                column[self.rows..].fill(num_traits::zero());
            }
        }
    }

    /// The distance of columns.
    pub(crate) fn ld(&self) -> usize {
        self.ld
    }

    /// All elements, padding included.
    pub(crate) fn as_slice(&self) -> &[T] {
        &self.elements
    }

    /// All elements, padding included, to write.
    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.elements
    }

    /// The columns without their padding.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[T]> {
        self.elements.chunks(self.ld).map(|column| &column[..self.rows])
    }

    /// Whether every element is finite. So is the padding of finite columns.
    pub(crate) fn finite(&self) -> bool {
        all_finite(&self.elements)
    }

    /// The 1-norm: the largest sum of moduli of a column; NaN where any is.
    pub(crate) fn one_norm(&self) -> T::Real {
        let sums = self.iter().map(|column| column.iter().map(|x| x.modulus()).sum());
        sums.fold(num_traits::zero(), |largest: T::Real, sum: T::Real| if sum <= largest { largest } else { sum })
    }
}

/// A matrix in scratch memory, or its factors, and the exchanges.
pub(crate) struct Square<T: Scalar> {
    pub(crate) columns: Columns<T>,
    pub(crate) pivots: HostArray<u32>,
}

/// Matrices that are factored together.
pub(crate) struct Group<T: Scalar> {
    pub(crate) squares: Vec<Square<T>>,
    /// Their elements side by side; empty where only one is factored at a time.
    pub(crate) lanes: HostArray<T::Real>,
}

/// What one thread works on.
pub(crate) struct Scratch<T: Scalar> {
    /// Matrices and their factors.
    pub(crate) group: Group<T>,
    /// One inverse, or right-hand sides and solutions.
    pub(crate) x: Columns<T>,
}

/// The scratch memory of every thread, and one place to share.
pub(crate) struct Places<T: Scalar> {
    threads: Vec<Mutex<Scratch<T>>>,
    shared: Group<T>,
}

/// The scratch memory of every thread.
#[derive(Clone, Copy)]
pub(crate) struct Threads<'a, T: Scalar>(&'a [Mutex<Scratch<T>>]);

impl<T: Scalar> Group<T> {
    fn new(shape: &Shape, squares: usize) -> Result<Self, Error> {
        let order = shape.order;
        let square = || Ok(Square { columns: Columns::new(order, order)?, pivots: HostArray::zeroed(order)? });
        let squares = (0..squares).map(|_| square()).collect::<Result<_, Error>>()?;
        let lanes = HostArray::zeroed(shape.lanes().saturating_mul(size_of::<T>() / size_of::<T::Real>()))?;
        Ok(Self { squares, lanes })
    }
}

impl<T: Scalar> Places<T> {
    pub(crate) fn new(shape: &Shape, threads: usize) -> Result<Self, Error> {
        let scratch = || {
            let group = Group::new(shape, shape.together)?;
            Ok(Mutex::new(Scratch { group, x: Columns::new(shape.order, shape.result_columns)? }))
        };
        let threads = (0..threads).map(|_| scratch()).collect::<Result<_, Error>>()?;
        Ok(Self { threads, shared: Group::new(shape, usize::from(shape.shared))? })
    }

    /// The scratch memory of each thread, and the place of the factors of one matrix that serves many right-hand sides.
    pub(crate) fn split(&mut self) -> (Threads<'_, T>, &mut Group<T>) {
        (Threads(&self.threads), &mut self.shared)
    }
}

impl<T: Scalar> Threads<'_, T> {
    /// Does `work` on the scratch memory of a thread. No two threads ask for the same, so nobody waits.
    pub(crate) fn with(&self, thread: usize, work: impl FnOnce(&mut Scratch<T>)) {
        if let Some(scratch) = self.0.get(thread) {
            work(&mut scratch.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}
