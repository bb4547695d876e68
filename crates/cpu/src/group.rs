//! The memory of a group of matrices.

use batchla_core::{Error, HostArray, Scalar};

use crate::engine::Sizes;

/// Memory of one thread for a group of matrices.
pub(crate) struct Group<T: Scalar> {
    /// The matrices.
    pub(crate) a: HostArray<T>,
    /// Right-hand sides.
    pub(crate) x: HostArray<T>,
    /// A few columns to set aside.
    pub(crate) aside: HostArray<T>,
    /// The exchanges of each matrix, one after another.
    pub(crate) exchanges: HostArray<u32>,
}

impl<T: Scalar> Group<T> {
    pub(crate) fn new(sizes: &Sizes) -> Result<Self, Error> {
        let Sizes { a, x, aside, exchanges } = *sizes;
        Ok(Self {
            a: HostArray::zeroed(a)?,
            x: HostArray::zeroed(x)?,
            aside: HostArray::zeroed(aside)?,
            exchanges: HostArray::zeroed(exchanges)?,
        })
    }
}
