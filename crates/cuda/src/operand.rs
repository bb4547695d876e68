//! A batch as a kernel sees it: an address and strides.

use batchla_core::BatchLayout;

use crate::driver::{DevicePointer, KernelArgument};

/// `Operand` of `operand.cuh`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Operand {
    data: DevicePointer,
    lanes: u64,
    group: u64,
    row: u64,
    col: u64,
}

// SAFETY: five 64-bit numbers in C's order, as the kernels' own struct.
unsafe impl KernelArgument for Operand {}

impl Operand {
    /// Matrices from number `first` on, of elements of `bytes` bytes; `first` is a multiple of the layout's lanes. A batch of one serves every matrix of
    /// `batch`.
    pub(crate) fn new(data: DevicePointer, layout: &BatchLayout, bytes: usize, first: usize, batch: usize) -> Self {
        let strides = layout.strides();
        let shared = layout.batch() == 1 && batch > 1;
        let (group, start) = if shared { (0, 0) } else { (strides.group, first / strides.lanes * strides.group) };
        Self {
            data: DevicePointer(data.0 + (start * bytes) as u64),
            lanes: if shared { 1 } else { strides.lanes as u64 },
            group: group as u64,
            row: strides.row as u64,
            col: strides.col as u64,
        }
    }

    /// The first matrix, for every matrix of a batch.
    pub(crate) fn shared(self) -> Self {
        Self { lanes: 1, group: 0, ..self }
    }

    /// What is behind the first `base` rows and columns of each matrix, of elements of `bytes` bytes.
    pub(crate) fn trailing(self, base: usize, bytes: usize) -> Self {
        let offset = (base * bytes) as u64 * (self.row + self.col);
        Self { data: DevicePointer(self.data.0 + offset), ..self }
    }

    /// Square matrices of order `leading`, column-major, without gaps: in the workspace.
    pub(crate) fn columns(data: DevicePointer, leading: usize) -> Self {
        Self { data, lanes: 1, group: (leading * leading) as u64, row: 1, col: leading as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operand_starts_at_its_first_matrix() {
        let dense = BatchLayout::column_major(10, 3, 3).unwrap();
        assert_eq!(Operand::new(DevicePointer(1000), &dense, 8, 4, 6).data, DevicePointer(1000 + 4 * 9 * 8));
        let lanes = BatchLayout::interleaved(10, 3, 3, 4).unwrap();
        assert_eq!(Operand::new(DevicePointer(0), &lanes, 8, 8, 2).data, DevicePointer(2 * 36 * 8));
    }

    #[test]
    fn a_batch_of_one_serves_all() {
        let one = BatchLayout::column_major(1, 3, 3).unwrap();
        let operand = Operand::new(DevicePointer(64), &one, 8, 5, 7);
        assert_eq!((operand.data, operand.group, operand.lanes), (DevicePointer(64), 0, 1));
    }
}
