//! The layouts that a backend must take.

use batchla_core::{BatchLayout, Error, Strides};

/// A way to lay a batch out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Dense, columns first.
    ColumnMajor,
    /// Dense, rows first.
    RowMajor,
    /// Columns first, three elements between columns and five between matrices.
    PaddedColumns,
    /// Rows first, two elements between rows and seven between matrices.
    PaddedRows,
    /// Groups of so many matrices, element by element; the last group may be partly empty.
    Interleaved(usize),
    /// The batch varies fastest, as in a Fortran-ordered NumPy stack.
    BatchFirst,
    /// Neither rows nor columns are neighbours.
    Strided,
}

impl Order {
    /// One of each.
    pub const ALL: [Self; 8] = [
        Self::ColumnMajor,
        Self::RowMajor,
        Self::PaddedColumns,
        Self::Interleaved(4),
        Self::PaddedRows,
        Self::BatchFirst,
        Self::Strided,
        Self::Interleaved(8),
    ];

    /// The layout of `batch` matrices of `rows` x `cols`.
    ///
    /// # Errors
    /// Where the size overflows.
    pub fn layout(self, batch: usize, rows: usize, cols: usize) -> Result<BatchLayout, Error> {
        let strided = |group, row, col| BatchLayout::new(batch, rows, cols, Strides { lanes: 1, group, row, col });
        match self {
            Self::ColumnMajor => BatchLayout::column_major(batch, rows, cols),
            Self::RowMajor => BatchLayout::row_major(batch, rows, cols),
            Self::PaddedColumns => strided((rows + 3) * cols + 5, 1, rows + 3),
            Self::PaddedRows => strided(rows * (cols + 2) + 7, cols + 2, 1),
            Self::Interleaved(lanes) => BatchLayout::interleaved(batch, rows, cols, lanes),
            Self::BatchFirst => {
                let batch = batch.max(1);
                strided(1, batch, batch * rows.max(1))
            }
            Self::Strided => strided(2 * (rows + 1) * (cols + 1), 2, 2 * (rows + 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_are_as_each_order_says() -> Result<(), Error> {
        let strides = |order: Order, batch| {
            let Strides { lanes, group, row, col } = order.layout(batch, 3, 2)?.strides();
            Ok::<_, Error>((lanes, group, row, col))
        };
        for (order, expected) in [
            (Order::ColumnMajor, (1, 6, 1, 3)),
            (Order::RowMajor, (1, 6, 2, 1)),
            (Order::PaddedColumns, (1, 6 * 2 + 5, 1, 3 + 3)),
            (Order::PaddedRows, (1, 3 * 4 + 7, 2 + 2, 1)),
            (Order::Interleaved(4), (4, 24, 4, 12)),
            (Order::BatchFirst, (1, 1, 4, 12)),
            (Order::Strided, (1, 24, 2, 8)),
        ] {
            assert_eq!(strides(order, 4)?, expected, "{order:?}");
        }
        for (order, (batch, rows, cols)) in
            Order::ALL.into_iter().flat_map(|order| [(0, 3, 2), (2, 0, 0), (2, 3, 0)].map(|shape| (order, shape)))
        {
            assert_eq!(order.layout(batch, rows, cols)?.elements(), 0, "{order:?}");
        }
        Ok(())
    }
}
