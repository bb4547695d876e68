//! Solved columns that an inversion keeps on chip beside those in memory.

use batchla_core::ScalarKind;

use super::chip::column_stride;
use super::scalar_bytes;

/// Solved columns of which there are copies on chip: whole block columns. One place serves both sweeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Copies {
    /// The first columns of `U⁻¹`, none of which is longer than they are many.
    pub early: usize,
    /// The last columns of `X`.
    pub late: usize,
}

impl Copies {
    /// So many block columns of `X`, and as many of `U⁻¹` as fit their place.
    pub(super) fn of_block_columns(count: usize, block: usize, scalar: ScalarKind, order: usize) -> Self {
        let late = count * block;
        let fits = |early: usize| early * column_stride(scalar, early, true) <= late * stride(scalar, order);
        let early = (1..order.div_ceil(block)).map(|columns| columns * block).take_while(|&early| fits(early)).last();
        Self { early: early.unwrap_or(0), late }
    }

    pub(super) fn bytes(self, scalar: ScalarKind, order: usize) -> usize {
        let early = self.early * column_stride(scalar, self.early, true);
        early.max(self.late * stride(scalar, order)) * scalar_bytes(scalar)
    }
}

/// Elements from a column of the triangle on chip to the next.
pub(super) fn stride(scalar: ScalarKind, order: usize) -> usize {
    column_stride(scalar, order.next_multiple_of(8), true)
}
