//! Where element (matrix b, row i, column j) of a batch lies.

use std::fmt;

use crate::error::{Error, ErrorKind};

/// The one description of a batch's place in memory, in elements:
///
/// ```text
/// offset(b, i, j) = (b / lanes) * group_stride + b % lanes + i * row_stride + j * col_stride
/// ```
///
/// `lanes` is 1 for ordinary batches (then `group_stride` is the distance of two matrices); with more lanes that many
/// neighbouring matrices are interleaved for SIMD, and the last group occupies full lanes.
///
/// ```text
/// column-major 2 x 3, ld 4          row-major 2 x 3              interleaved, 2 lanes, 2 x 1, 3 matrices
/// a00 a10  .  .  a01 a11  .  .      a00 a01 a02 a10 a11 a12      a00 b00 a10 b10 | c00  .  c10  .
/// ```
///
/// Validated once, when made: strides are positive, no two elements share a place (the dimensions nest: each
/// stride steps over everything that the smaller ones reach), and the span fits 64 bits and the address space.
///
/// ```
/// use batchla_core::BatchLayout;
/// let padded = BatchLayout::column_major(1000, 21, 21)?.with_leading_dimension(24)?;
/// assert_eq!(padded.offset(2, 1, 1), 2 * 21 * 24 + 1 + 24);
/// assert_eq!(padded.span(), 999 * 21 * 24 + 20 * 24 + 21);
/// # Ok::<(), batchla_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BatchLayout {
    batch: usize,
    rows: usize,
    cols: usize,
    lanes: usize,
    group_stride: usize,
    row_stride: usize,
    col_stride: usize,
    span: usize,
}

/// The distances of a [`BatchLayout`], in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Strides {
    /// Matrices interleaved in one group; 1 for ordinary batches.
    pub lanes: usize,
    /// From one group of `lanes` matrices to the next.
    pub group: usize,
    /// From one row to the next.
    pub row: usize,
    /// From one column to the next.
    pub col: usize,
}

impl BatchLayout {
    /// `batch` matrices of `rows` x `cols` with the given strides.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where a stride or `lanes` is zero, two elements would share a place, or the span overflows.
    pub fn new(batch: usize, rows: usize, cols: usize, strides: Strides) -> Result<Self, Error> {
        let Strides { lanes, group, row, col } = strides;
        let refuse = |what: &str, advice: &str| {
            Error::new(
                ErrorKind::Layout,
                "layout",
                format!(
                    "{batch} matrices of {rows} x {cols} with {lanes} lanes and strides of {group} a group, {row} a row, {col} a column: {what}"
                ),
            )
            .advise(advice.to_owned())
        };
        if lanes == 0 || group == 0 || row == 0 || col == 0 {
            return Err(refuse("a stride is zero", "strides and lanes start at 1"));
        }
        let groups = batch.div_ceil(lanes);
        let span = if batch == 0 || rows == 0 || cols == 0 {
            0
        } else {
            // Nested dimensions: in order of stride, each steps over all that the smaller ones reach.
            let mut dimensions = [(1, lanes), (group, groups), (row, rows), (col, cols)];
            dimensions.sort_unstable();
            let mut reach = 0usize;
            for (stride, extent) in dimensions {
                if extent > 1 {
                    if stride <= reach {
                        return Err(refuse(
                            "elements would overlap",
                            "each stride must step over everything that the smaller strides reach",
                        ));
                    }
                    reach = (extent - 1)
                        .checked_mul(stride)
                        .and_then(|step| step.checked_add(reach))
                        .filter(|&r| r < isize::MAX as usize)
                        .ok_or_else(|| refuse("the span overflows 64 bits", "use fewer matrices or smaller strides"))?;
                }
            }
            reach + 1
        };
        Ok(Self { batch, rows, cols, lanes, group_stride: group, row_stride: row, col_stride: col, span })
    }

    /// Dense column-major matrices one after another: what LAPACK, cuBLAS and faer hold.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where the size overflows.
    pub fn column_major(batch: usize, rows: usize, cols: usize) -> Result<Self, Error> {
        let group = area(rows, cols, || format!("{batch} x ({rows} x {cols}) column-major"))?;
        Self::new(batch, rows, cols, Strides { lanes: 1, group, row: 1, col: rows.max(1) })
    }

    /// Dense row-major matrices one after another: what a C-ordered NumPy stack holds.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where the size overflows.
    pub fn row_major(batch: usize, rows: usize, cols: usize) -> Result<Self, Error> {
        let group = area(rows, cols, || format!("{batch} x ({rows} x {cols}) row-major"))?;
        Self::new(batch, rows, cols, Strides { lanes: 1, group, row: cols.max(1), col: 1 })
    }

    /// Groups of `lanes` column-major matrices, element by element: what SIMD across matrices wants.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where `lanes` is zero or the size overflows.
    pub fn interleaved(batch: usize, rows: usize, cols: usize, lanes: usize) -> Result<Self, Error> {
        let name = || format!("{batch} x ({rows} x {cols}) interleaved by {lanes}");
        let col = area(rows, lanes, name)?;
        let group = area(col, cols, name)?;
        Self::new(batch, rows, cols, Strides { lanes, group, row: lanes, col })
    }

    /// This layout with the longer of row and column stride set to `ld` and the matrices spread to match.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where `ld` is too short, or for an interleaved layout.
    pub fn with_leading_dimension(self, ld: usize) -> Result<Self, Error> {
        let mut strides = self.strides();
        if self.lanes > 1 {
            return Err(Error::new(ErrorKind::Layout, "layout", format!("{self} has no leading dimension"))
                .advise("give BatchLayout::new the strides"));
        }
        let lines = if self.is_row_major() {
            strides.row = ld;
            self.rows
        } else {
            strides.col = ld;
            self.cols
        };
        strides.group = area(ld, lines, || format!("{self} with a leading dimension of {ld}"))?;
        Self::new(self.batch, self.rows, self.cols, strides)
    }

    /// This layout with matrices (groups) `stride` elements apart.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where they would overlap or the size overflows.
    pub fn with_group_stride(self, stride: usize) -> Result<Self, Error> {
        Self::new(self.batch, self.rows, self.cols, Strides { group: stride, ..self.strides() })
    }

    /// The same matrices, but `batch` of them.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where the size overflows, or matrices that were few enough to nest no longer do.
    pub fn with_batch(self, batch: usize) -> Result<Self, Error> {
        Self::new(batch, self.rows, self.cols, self.strides())
    }

    /// A dense layout for `cols` columns instead, in the same order and with the same lanes: for a right-hand side beside its matrix.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where the size overflows.
    pub fn packed_with_cols(&self, cols: usize) -> Result<Self, Error> {
        if self.lanes > 1 {
            Self::interleaved(self.batch, self.rows, cols, self.lanes)
        } else if self.is_row_major() {
            Self::row_major(self.batch, self.rows, cols)
        } else {
            Self::column_major(self.batch, self.rows, cols)
        }
    }

    /// The dense layout of the same order: column-major, row-major or interleaved, without gaps.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where the size overflows (a broadcast-like layout may be larger when dense).
    pub fn packed(&self) -> Result<Self, Error> {
        self.packed_with_cols(self.cols)
    }

    /// Matrices in the batch.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Rows of each matrix.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of each matrix.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// The order of square matrices.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where rows and columns differ, naming `operation`.
    pub fn order(&self, operation: &str) -> Result<usize, Error> {
        if self.rows == self.cols {
            Ok(self.rows)
        } else {
            Err(Error::new(
                ErrorKind::Shape,
                operation,
                format!("the matrices are {} x {}, not square", self.rows, self.cols),
            )
            .advise("pass square matrices"))
        }
    }

    /// Lanes and strides.
    pub fn strides(&self) -> Strides {
        Strides { lanes: self.lanes, group: self.group_stride, row: self.row_stride, col: self.col_stride }
    }

    /// Elements from the first to the last that the layout may touch, full lanes and gaps included; 0 for an empty batch.
    pub fn span(&self) -> usize {
        self.span
    }

    /// Elements that belong to matrices: batch x rows x cols.
    pub fn elements(&self) -> usize {
        if self.span == 0 { 0 } else { self.batch * self.rows * self.cols }
    }

    /// Whether every element of the span belongs to a matrix.
    pub fn is_dense(&self) -> bool {
        self.elements() == self.span
    }

    /// Whether neighbours in a row lie closer than neighbours in a column.
    pub fn is_row_major(&self) -> bool {
        self.col_stride < self.row_stride && self.cols > 1
    }

    /// Whether it is what [`BatchLayout::column_major`] makes: matrices one after another, each column by column, no gaps.
    pub fn is_plain(&self) -> bool {
        Self::column_major(self.batch, self.rows, self.cols).is_ok_and(|plain| plain == *self)
    }

    /// The place of element (`b`, `i`, `j`).
    ///
    /// In range, the result is below [`BatchLayout::span`]. Out of range it has no meaning; in debug builds that panics.
    pub fn offset(&self, b: usize, i: usize, j: usize) -> usize {
        debug_assert!(b < self.batch && i < self.rows && j < self.cols, "({b}, {i}, {j}) is outside {self}");
        self.origin(b).wrapping_add(i.wrapping_mul(self.row_stride)).wrapping_add(j.wrapping_mul(self.col_stride))
    }

    /// The place of element (`b`, 0, 0); where there is none, that of the first.
    pub(crate) fn origin(&self, b: usize) -> usize {
        if self.span == 0 {
            return 0; // strides are not bounded then
        }
        (b / self.lanes).wrapping_mul(self.group_stride).wrapping_add(b % self.lanes)
    }
}

/// Elements of `a` lines of `b`, one at least; `name` says of which layout.
fn area(a: usize, b: usize, name: impl Fn() -> String) -> Result<usize, Error> {
    a.checked_mul(b).map(|x| x.max(1)).ok_or_else(|| {
        Error::new(ErrorKind::Layout, "layout", format!("{}: {a} x {b} elements overflow 64 bits", name()))
            .advise("use smaller matrices, fewer lanes or a smaller leading dimension")
    })
}

impl fmt::Display for BatchLayout {
    /// One line: `1000 x (21 x 21) column-major, ld 24`; strides where it is none of the usual layouts.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x ({} x {})", self.batch, self.rows, self.cols)?;
        if self.packed().is_ok_and(|packed| packed.strides() == self.strides()) {
            return match (self.lanes, self.is_row_major()) {
                (1, true) => f.write_str(" row-major"),
                (1, false) => f.write_str(" column-major"),
                (lanes, _) => write!(f, " interleaved by {lanes}"),
            };
        }
        let Strides { lanes, group, row, col } = self.strides();
        match (lanes, row, col) {
            (1, 1, ld) if Some(group) == ld.checked_mul(self.cols) => write!(f, " column-major, ld {ld}"),
            (1, ld, 1) if Some(group) == ld.checked_mul(self.rows) => write!(f, " row-major, ld {ld}"),
            (1, ..) => write!(f, " with strides of {group} a matrix, {row} a row, {col} a column"),
            _ => write!(f, " with {lanes} lanes and strides of {group} a group, {row} a row, {col} a column"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_layout_tells_whether_it_has_gaps_and_which_neighbours_are_close() {
        let columns = BatchLayout::column_major(3, 4, 5).unwrap();
        let rows = BatchLayout::row_major(3, 4, 5).unwrap();
        let apart = columns.with_group_stride(23).unwrap();
        assert!(columns.is_dense() && columns.is_plain() && !columns.is_row_major());
        assert!(rows.is_dense() && !rows.is_plain() && rows.is_row_major());
        assert!(!apart.is_dense() && !apart.is_plain() && !apart.is_row_major());
        assert_eq!(apart.strides().group, 23);
        // Of one row, or of one column, neighbours are close in both.
        assert!(!BatchLayout::column_major(2, 1, 4).unwrap().is_row_major());
        let spread = Strides { lanes: 1, group: 8, row: 2, col: 1 };
        assert!(!BatchLayout::new(2, 4, 1, spread).unwrap().is_row_major());
    }

    #[test]
    fn right_hand_sides_lie_as_their_matrices() {
        let of = |a: BatchLayout| a.packed_with_cols(2).unwrap();
        let (interleaved, rows, columns) =
            (BatchLayout::interleaved(8, 3, 3, 4), BatchLayout::row_major(8, 3, 3), BatchLayout::column_major(8, 3, 3));
        assert_eq!(of(interleaved.unwrap()), BatchLayout::interleaved(8, 3, 2, 4).unwrap());
        assert_eq!(of(rows.unwrap()), BatchLayout::row_major(8, 3, 2).unwrap());
        assert_eq!(of(columns.unwrap()), BatchLayout::column_major(8, 3, 2).unwrap());
    }

    fn strides(lanes: usize, group: usize, row: usize, col: usize) -> Strides {
        Strides { lanes, group, row, col }
    }

    #[test]
    fn the_named_orders_have_the_strides_they_should() {
        let cm = BatchLayout::column_major(3, 2, 5).unwrap();
        assert_eq!(cm.strides(), strides(1, 10, 1, 2));
        let rm = BatchLayout::row_major(3, 2, 5).unwrap();
        assert_eq!(rm.strides(), strides(1, 10, 5, 1));
        let il = BatchLayout::interleaved(5, 2, 3, 4).unwrap();
        assert_eq!(il.strides(), strides(4, 24, 4, 8));
        assert_eq!((il.span(), il.offset(4, 1, 2)), (48, 24 + 4 + 16));
        assert_eq!(rm.with_leading_dimension(7).unwrap().strides(), strides(1, 14, 7, 1));
    }

    #[test]
    fn overlap_zero_and_overflow_are_refused() {
        for (batch, rows, cols, s) in [
            (1, 3, 3, strides(1, 9, 1, 2)),
            (2, 3, 3, strides(1, 8, 1, 3)),
            (4, 2, 2, strides(2, 8, 1, 2)),
            (1, 2, 2, strides(1, 4, 1, 0)),
            (1, 2, 2, strides(0, 4, 1, 2)),
            (usize::MAX, 2, 2, strides(1, 4, 1, 2)),
            (2, 1, 1, strides(1, usize::MAX, 1, 1)),
            (1, usize::MAX, 2, strides(1, 1, 1, usize::MAX)),
        ] {
            let error = BatchLayout::new(batch, rows, cols, s).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Layout, "{error}");
        }
        assert!(BatchLayout::column_major(1, usize::MAX, 3).is_err());
        assert!(BatchLayout::interleaved(1, 4, 4, usize::MAX).is_err());
    }

    #[test]
    fn only_matrices_whose_lines_lie_together_have_a_leading_dimension() {
        let interleaved = BatchLayout::interleaved(4, 2, 2, 2).unwrap();
        let error = interleaved.with_leading_dimension(6).unwrap_err();
        assert!(error.to_string().contains("4 x (2 x 2) interleaved by 2 has no leading dimension"), "{error}");
    }

    #[test]
    fn a_layout_is_named_in_one_line() {
        let cm = BatchLayout::column_major(1000, 21, 21).unwrap();
        let rm = BatchLayout::row_major(9, 2, 3).unwrap();
        let ld = |layout: BatchLayout, ld| layout.with_leading_dimension(ld).unwrap().to_string();
        assert_eq!(cm.to_string(), "1000 x (21 x 21) column-major");
        assert_eq!(ld(cm, 24), "1000 x (21 x 21) column-major, ld 24");
        assert_eq!(ld(rm, 5), "9 x (2 x 3) row-major, ld 5");
        let apart = BatchLayout::new(9, 2, 2, strides(1, 10, 1, 3)).unwrap();
        assert_eq!(apart.to_string(), "9 x (2 x 2) with strides of 10 a matrix, 1 a row, 3 a column");
        let error = BatchLayout::interleaved(1, 4, 4, usize::MAX).unwrap_err().to_string();
        assert!(error.contains("1 x (4 x 4) interleaved by 18446744073709551615"), "{error}");
    }

    #[test]
    fn more_than_two_to_the_31_elements_are_addressed() {
        let layout = BatchLayout::column_major(70_000, 200, 200).unwrap();
        assert_eq!(layout.span(), 2_800_000_000);
        assert_eq!(layout.offset(69_999, 199, 199), 2_799_999_999);
        let lanes = BatchLayout::interleaved(3_000_000, 32, 32, 16).unwrap();
        assert_eq!(lanes.offset(2_999_999, 31, 31), 3_071_999_999);
    }

    #[test]
    fn empty_batches_span_nothing() {
        for (b, m, n) in [(0, 3, 3), (3, 0, 0), (0, 0, 0), (5, 0, 3)] {
            let layout = BatchLayout::column_major(b, m, n).unwrap();
            assert_eq!((layout.span(), layout.elements()), (0, 0));
        }
    }

    proptest! {
        #[test]
        fn valid_layouts_are_injective_and_within_their_span(
            batch in 0usize..7, rows in 0usize..5, cols in 0usize..5,
            lanes in 1usize..4, group in 1usize..60, row in 1usize..20, col in 1usize..20,
        ) {
            if let Ok(layout) = BatchLayout::new(batch, rows, cols, strides(lanes, group, row, col)) {
                let mut seen = HashSet::new();
                for b in 0..batch { for i in 0..rows { for j in 0..cols {
                    let at = layout.offset(b, i, j);
                    prop_assert!(at < layout.span());
                    prop_assert!(seen.insert(at));
                }}}
                prop_assert_eq!(seen.len(), layout.elements());
            }
        }
    }
}
