//! Scratch memory: aligned places of one fixed shape, where every matrix is computed.

use std::sync::{Mutex, PoisonError};

use batchla_core::{Error, HostArray, MatrixMut, MatrixRef, Scalar};

use crate::backend::CpuScalar;
use crate::engine::Sizes;
use crate::group::Group;
use crate::groups::largest_sum;
use crate::vector::LANES;
use crate::workspace::Shape;

/// The distance of columns in scratch memory: whole chunks, and no multiple of 1 KiB, since columns a power of two apart
/// compete for the same few lines of the cache.
pub(crate) fn leading_dimension<T>(order: usize) -> usize {
    let ld = order.max(1).checked_next_multiple_of(LANES).unwrap_or(usize::MAX);
    if ld.saturating_mul(size_of::<T>()).is_multiple_of(1024) { ld.saturating_add(LANES) } else { ld }
}

/// Columns in scratch memory, [`leading_dimension`] apart, and padded with zeros.
pub(crate) struct Columns<T: Scalar> {
    elements: HostArray<T>,
    rows: usize,
    ld: usize,
    /// Whether the padding is still zero. Finite numbers leave it so; others make it NaN.
    clean: bool,
}

impl<T: Scalar> Columns<T> {
    fn new(rows: usize, cols: usize) -> Result<Self, Error> {
        let ld = leading_dimension::<T>(rows);
        // A product too large for the address space becomes the error of an allocation too large for it.
        Ok(Self { elements: HostArray::zeroed(ld.saturating_mul(cols))?, rows, ld, clean: true })
    }

    /// Takes over a matrix of as many rows and no more columns, whatever its layout.
    pub(crate) fn pack(&mut self, from: MatrixRef<'_, T>) {
        if !self.clean {
            self.elements.fill(num_traits::zero());
        }
        from.copy_to_columns(&mut self.elements, self.ld);
        self.clean = false;
    }

    /// Hands the matrix over, to whatever layout.
    pub(crate) fn unpack(&self, to: &mut MatrixMut<'_, T>) {
        for (j, from) in self.iter().enumerate() {
            if let Some(to) = to.column_mut(j) {
                to.copy_from_slice(from);
            } else {
                from.iter().enumerate().for_each(|(i, &x)| to.set(i, j, x));
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

    /// The 1-norm: the largest sum of moduli of a column; NaN where any is.
    pub(crate) fn one_norm(&self) -> T::Real {
        largest_sum(self.iter().map(|column| column.iter().map(|x| x.modulus()).sum()))
    }
}

impl<T: CpuScalar> Columns<T> {
    /// Whether every element is finite.
    pub(crate) fn finite(&mut self) -> bool {
        self.clean = T::all_finite(&self.elements);
        self.clean
    }
}

/// A matrix in scratch memory, or its factors, and the exchanges.
pub(crate) struct Square<T: Scalar> {
    pub(crate) columns: Columns<T>,
    pub(crate) pivots: HostArray<u32>,
}

/// What one thread works on.
///
/// On cache lines of its own (and their neighbours, which are fetched in pairs): side by side, two threads ran at half their speed.
#[repr(align(128))]
pub(crate) struct Scratch<T: Scalar> {
    /// A matrix and its factors.
    pub(crate) a: Square<T>,
    /// Its inverse, or right-hand sides and solutions.
    pub(crate) x: Columns<T>,
    /// A group of matrices.
    pub(crate) group: Group<T>,
}

/// The scratch memory of every thread, and one place to share.
pub(crate) struct Places<T: Scalar> {
    threads: Vec<Mutex<Scratch<T>>>,
    shared: Scratch<T>,
}

/// The scratch memory of every thread.
#[derive(Clone, Copy)]
pub(crate) struct Threads<'a, T: Scalar>(&'a [Mutex<Scratch<T>>]);

impl<T: Scalar> Square<T> {
    fn new(order: usize) -> Result<Self, Error> {
        Ok(Self { columns: Columns::new(order, order)?, pivots: HostArray::zeroed(order)? })
    }
}

impl<T: Scalar> Scratch<T> {
    /// For each thread: either a matrix and its results, or a group of them.
    fn new(shape: &Shape) -> Result<Self, Error> {
        let (order, sizes) = match &shape.engine {
            Some(engine) => (0, shape.sizes(engine)),
            None => (shape.order, Sizes::default()),
        };
        Ok(Self { a: Square::new(order)?, x: Columns::new(order, shape.result_columns)?, group: Group::new(&sizes)? })
    }

    /// To share: the same without results, or nothing where nothing is shared.
    fn shared(shape: &Shape) -> Result<Self, Error> {
        let (order, sizes) = match &shape.engine {
            _ if !shape.shared => (0, Sizes::default()),
            Some(engine) => (0, engine.sizes(0, false)),
            None => (shape.order, Sizes::default()),
        };
        Ok(Self { a: Square::new(order)?, x: Columns::new(0, 0)?, group: Group::new(&sizes)? })
    }
}

impl<T: Scalar> Places<T> {
    pub(crate) fn new(shape: &Shape, threads: usize) -> Result<Self, Error> {
        let scratch = || Scratch::new(shape).map(Mutex::new);
        let threads = (0..threads).map(|_| scratch()).collect::<Result<_, Error>>()?;
        Ok(Self { threads, shared: Scratch::shared(shape)? })
    }

    /// The scratch memory of each thread, and the place of the factors of one matrix that serves many right-hand sides.
    pub(crate) fn split(&mut self) -> (Threads<'_, T>, &mut Scratch<T>) {
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
