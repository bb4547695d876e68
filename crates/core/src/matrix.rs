//! Single matrices of a host batch, and ways to walk and share a batch out.

use std::fmt;
use std::marker::PhantomData;

use crate::batch::{Batch, BatchMut, BatchRef};
use crate::error::{Error, ErrorKind};
use crate::layout::BatchLayout;
use crate::scalar::Scalar;
use crate::span::{HostSpan, HostSpanMut};

/// One matrix, to read: element (i, j) lies `i * row_stride + j * col_stride` from the first.
pub struct MatrixRef<'a, T: Scalar> {
    start: *const T,
    shape: Shape,
    lifetime: PhantomData<&'a T>,
}

/// One matrix, to write.
pub struct MatrixMut<'a, T: Scalar> {
    start: *mut T,
    shape: Shape,
    lifetime: PhantomData<&'a mut T>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl Shape {
    fn of(layout: &BatchLayout) -> Self {
        let strides = layout.strides();
        Self { rows: layout.rows(), cols: layout.cols(), row_stride: strides.row, col_stride: strides.col }
    }

    fn offset(&self, i: usize, j: usize) -> usize {
        assert!(i < self.rows && j < self.cols, "element ({i}, {j}) of a {} x {} matrix", self.rows, self.cols);
        i * self.row_stride + j * self.col_stride
    }
}

// SAFETY: stands for shared references to its elements, which are `Sync`.
unsafe impl<T: Scalar> Send for MatrixRef<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Scalar> Sync for MatrixRef<'_, T> {}
// SAFETY: stands for unique references to its elements, which are `Send`.
unsafe impl<T: Scalar> Send for MatrixMut<'_, T> {}
// SAFETY: a shared reference to it only reads.
unsafe impl<T: Scalar> Sync for MatrixMut<'_, T> {}

impl<T: Scalar> Clone for MatrixRef<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Scalar> Copy for MatrixRef<'_, T> {}

impl<'a, T: Scalar> MatrixRef<'a, T> {
    /// Rows.
    pub fn rows(&self) -> usize {
        self.shape.rows
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.shape.cols
    }

    /// Distance of neighbours in a column.
    pub fn row_stride(&self) -> usize {
        self.shape.row_stride
    }

    /// Distance of neighbours in a row.
    pub fn col_stride(&self) -> usize {
        self.shape.col_stride
    }

    /// The first element's place.
    pub fn as_ptr(&self) -> *const T {
        self.start
    }

    /// Element (i, j).
    ///
    /// # Panics
    /// Outside the matrix, as slices do.
    pub fn at(&self, i: usize, j: usize) -> T {
        let offset = self.shape.offset(i, j);
        // SAFETY: (i, j) is in range, so the validated layout names this element, and the span behind `start` holds it.
        unsafe { *self.start.add(offset) }
    }

    /// Column `j` as a slice, if its elements are neighbours.
    ///
    /// # Panics
    /// Outside the matrix, as slices do.
    pub fn column(&self, j: usize) -> Option<&'a [T]> {
        assert!(j < self.shape.cols, "column {j} of {}", self.shape.cols);
        // SAFETY: `rows` elements from (0, j) on, all named by the layout, readable during 'a.
        (self.shape.row_stride == 1 || self.shape.rows < 2).then(|| unsafe {
            std::slice::from_raw_parts(self.start.wrapping_add(j.wrapping_mul(self.shape.col_stride)), self.shape.rows)
        })
    }

    /// The transpose, without moving anything.
    pub fn transposed(self) -> Self {
        let Shape { rows, cols, row_stride, col_stride } = self.shape;
        let shape = Shape { rows: cols, cols: rows, row_stride: col_stride, col_stride: row_stride };
        Self { shape, ..self }
    }

    /// Writes the matrix column by column into `columns`, whose columns are `ld` apart.
    ///
    /// # Panics
    /// Where `columns` is too short or `ld` is below the number of rows.
    pub fn copy_to_columns(&self, columns: &mut [T], ld: usize) {
        assert!(ld >= self.rows(), "columns of {} elements, {ld} apart", self.rows());
        for j in 0..self.cols() {
            let to = &mut columns[j * ld..j * ld + self.rows()];
            if let Some(from) = self.column(j) {
                to.copy_from_slice(from);
            } else {
                for (i, x) in to.iter_mut().enumerate() {
                    *x = self.at(i, j);
                }
            }
        }
    }
}

impl<T: Scalar> MatrixMut<'_, T> {
    /// Rows.
    pub fn rows(&self) -> usize {
        self.shape.rows
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.shape.cols
    }

    /// Distance of neighbours in a column.
    pub fn row_stride(&self) -> usize {
        self.shape.row_stride
    }

    /// Distance of neighbours in a row.
    pub fn col_stride(&self) -> usize {
        self.shape.col_stride
    }

    /// The first element's place.
    pub fn as_mut_ptr(&mut self) -> *mut T {
        self.start
    }

    /// The matrix, to read.
    pub fn share(&self) -> MatrixRef<'_, T> {
        MatrixRef { start: self.start, shape: self.shape, lifetime: PhantomData }
    }

    /// The matrix, lent for a time.
    pub fn reborrow(&mut self) -> MatrixMut<'_, T> {
        MatrixMut { start: self.start, shape: self.shape, lifetime: PhantomData }
    }

    /// Element (i, j).
    ///
    /// # Panics
    /// Outside the matrix, as slices do.
    pub fn at(&self, i: usize, j: usize) -> T {
        self.share().at(i, j)
    }

    /// Writes element (i, j).
    ///
    /// # Panics
    /// Outside the matrix, as slices do.
    pub fn set(&mut self, i: usize, j: usize, value: T) {
        let offset = self.shape.offset(i, j);
        // SAFETY: (i, j) is in range, so the validated layout names this element, and it is ours alone.
        unsafe { *self.start.add(offset) = value }
    }

    /// Column `j` as a slice, if its elements are neighbours.
    ///
    /// # Panics
    /// Outside the matrix, as slices do.
    pub fn column_mut(&mut self, j: usize) -> Option<&mut [T]> {
        assert!(j < self.shape.cols, "column {j} of {}", self.shape.cols);
        // SAFETY: `rows` elements from (0, j) on, all named by the layout, ours alone while `self` is borrowed.
        (self.shape.row_stride == 1 || self.shape.rows < 2).then(|| unsafe {
            std::slice::from_raw_parts_mut(
                self.start.wrapping_add(j.wrapping_mul(self.shape.col_stride)),
                self.shape.rows,
            )
        })
    }

    /// Sets every element to `element(i, j)`, column by column.
    pub fn fill_with(&mut self, mut element: impl FnMut(usize, usize) -> T) {
        for j in 0..self.cols() {
            for i in 0..self.rows() {
                self.set(i, j, element(i, j));
            }
        }
    }

    /// Reads the matrix from `columns`, which are `ld` apart; tells whether all of it is finite.
    ///
    /// # Panics
    /// Where `columns` is too short or `ld` is below the number of rows.
    pub fn copy_from_columns(&mut self, columns: &[T], ld: usize) -> bool {
        assert!(ld >= self.rows(), "columns of {} elements, {ld} apart", self.rows());
        let mut finite = true;
        for j in 0..self.cols() {
            let from = &columns[j * ld..j * ld + self.rows()];
            finite &= from.iter().fold(true, |all, x| all & x.finite());
            if let Some(to) = self.column_mut(j) {
                to.copy_from_slice(from);
            } else {
                for (i, &x) in from.iter().enumerate() {
                    self.set(i, j, x);
                }
            }
        }
        finite
    }
}

impl<'a, T: Scalar> BatchRef<'a, T> {
    /// Lays `layout` over a slice.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where the slice is shorter than the layout's span.
    pub fn new(slice: &'a [T], layout: BatchLayout) -> Result<Self, Error> {
        // SAFETY: the span is a whole slice.
        unsafe { Self::from_span(HostSpan::new(slice), layout) }
    }

    /// Matrix `b`, if there is one.
    pub fn matrix(&self, b: usize) -> Option<MatrixRef<'a, T>> {
        (b < self.batch()).then(|| {
            let shape = Shape::of(self.layout());
            let start = self.span().as_ptr().wrapping_add(self.layout().origin(b));
            MatrixRef { start, shape, lifetime: PhantomData }
        })
    }

    /// Element (b, i, j), if there is one.
    pub fn get(&self, b: usize, i: usize, j: usize) -> Option<T> {
        let matrix = self.matrix(b)?;
        (i < matrix.rows() && j < matrix.cols()).then(|| matrix.at(i, j))
    }

    /// All matrices in turn.
    pub fn matrices(&self) -> impl ExactSizeIterator<Item = MatrixRef<'a, T>> + use<'a, T> {
        let view = *self;
        (0..view.batch()).map(move |b| {
            let start = view.span().as_ptr().wrapping_add(view.layout().origin(b));
            MatrixRef { start, shape: Shape::of(view.layout()), lifetime: PhantomData }
        })
    }

    /// All elements in the order of memory, where the layout has no gaps.
    pub fn dense_slice(&self) -> Option<&'a [T]> {
        // SAFETY: a dense layout names every element of its span, and all that it names may be read during 'a.
        self.layout()
            .is_dense()
            .then(|| unsafe { std::slice::from_raw_parts(self.span().as_ptr(), self.layout().span()) })
    }

    /// The same matrices in another layout.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where `layout` has other dimensions, [`ErrorKind::OutOfMemory`].
    pub fn to_layout(&self, layout: BatchLayout) -> Result<Batch<T>, Error> {
        let mut result = Batch::zeros(layout)?;
        result.view_mut().copy_from(self)?;
        Ok(result)
    }
}

impl<'a, T: Scalar> BatchMut<'a, T> {
    /// Lays `layout` over a slice.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where the slice is shorter than the layout's span.
    pub fn new(slice: &'a mut [T], layout: BatchLayout) -> Result<Self, Error> {
        // SAFETY: the span is a whole slice.
        unsafe { Self::from_span(HostSpanMut::new(slice), layout) }
    }

    /// All matrices, each to write; can be split for parallel work.
    pub fn into_matrices(self) -> MatricesMut<'a, T> {
        let (layout, batch) = (*self.layout(), self.batch());
        MatricesMut { start: self.into_span().as_mut_ptr(), layout, first: 0, end: batch, lifetime: PhantomData }
    }

    /// Sets every element to `element(b, i, j)`, matrix by matrix; gaps stay as they are.
    pub fn fill_with(&mut self, mut element: impl FnMut(usize, usize, usize) -> T) {
        for (b, mut matrix) in self.reborrow().into_matrices().enumerate() {
            matrix.fill_with(|i, j| element(b, i, j));
        }
    }

    /// Takes over the elements of `from`, whatever its layout; gaps stay as they are.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where dimensions differ.
    pub fn copy_from(&mut self, from: &BatchRef<'_, T>) -> Result<(), Error> {
        let dimensions = |l: &BatchLayout| (l.batch(), l.rows(), l.cols());
        if dimensions(self.layout()) != dimensions(from.layout()) {
            return Err(Error::new(
                ErrorKind::Shape,
                "copy",
                format!("{} does not fit into {}", from.layout(), self.layout()),
            )
            .advise("make both of the same dimensions"));
        }
        for (mut to, from) in self.reborrow().into_matrices().zip(from.matrices()) {
            for j in 0..from.cols() {
                match (to.column_mut(j), from.column(j)) {
                    (Some(to), Some(from)) => to.copy_from_slice(from),
                    _ => (0..from.rows()).for_each(|i| to.set(i, j, from.at(i, j))),
                }
            }
        }
        Ok(())
    }
}

/// The matrices of a batch, each to write: an iterator that can be split in two for parallel work, whatever
/// the layout (interleaved matrices share cache lines, but no elements).
pub struct MatricesMut<'a, T: Scalar> {
    start: *mut T,
    layout: BatchLayout,
    first: usize,
    end: usize,
    lifetime: PhantomData<&'a mut T>,
}

// SAFETY: stands for unique references to the elements of its matrices, which are `Send`.
unsafe impl<T: Scalar> Send for MatricesMut<'_, T> {}

impl<T: Scalar> MatricesMut<'_, T> {
    /// The first `count` matrices and the rest.
    ///
    /// # Panics
    /// Where there are fewer.
    #[must_use]
    pub fn split_at(self, count: usize) -> (Self, Self) {
        assert!(count <= self.end - self.first, "{count} of {} matrices", self.end - self.first);
        let middle = self.first + count;
        (Self { end: middle, ..self }, Self { first: middle, ..self })
    }
}

impl<'a, T: Scalar> Iterator for MatricesMut<'a, T> {
    type Item = MatrixMut<'a, T>;

    fn next(&mut self) -> Option<MatrixMut<'a, T>> {
        (self.first < self.end).then(|| {
            let start = self.start.wrapping_add(self.layout.origin(self.first));
            self.first += 1;
            MatrixMut { start, shape: Shape::of(&self.layout), lifetime: PhantomData }
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.end - self.first, Some(self.end - self.first))
    }
}

impl<T: Scalar> ExactSizeIterator for MatricesMut<'_, T> {}

impl<T: Scalar> fmt::Debug for MatrixRef<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows = f.debug_list();
        for i in 0..self.rows() {
            rows.entry(&(0..self.cols()).map(|j| self.at(i, j)).collect::<Vec<_>>());
        }
        rows.finish()
    }
}

impl<T: Scalar> fmt::Debug for MatrixMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.share().fmt(f)
    }
}

impl<T: Scalar> fmt::Debug for MatricesMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MatricesMut").field("layout", &self.layout).field("first", &self.first).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::layout::Strides;

    #[test]
    fn splitting_hands_every_matrix_out_once() {
        let layout = BatchLayout::interleaved(5, 2, 2, 2).unwrap();
        let mut batch = Batch::<f32>::zeros(layout).unwrap();
        let (left, right) = batch.view_mut().into_matrices().split_at(3);
        assert_eq!((left.len(), right.len()), (3, 2));
        for (b, mut m) in left.chain(right).enumerate() {
            m.fill_with(|i, j| (100 * b + 10 * i + j) as f32);
        }
        for (b, m) in batch.view().matrices().enumerate() {
            assert_eq!(m.at(1, 0), (100 * b + 10) as f32);
        }
    }

    #[test]
    fn a_view_reads_what_the_layout_says() {
        let numbers: Vec<f64> = (0..12).map(f64::from).collect();
        let rows = BatchRef::new(&numbers, BatchLayout::row_major(2, 2, 3).unwrap()).unwrap();
        assert_eq!((rows.get(1, 0, 2), rows.get(1, 1, 0)), (Some(8.0), Some(9.0)));
        assert_eq!(rows.get(2, 0, 0), None);
        assert_eq!(rows.matrix(1).unwrap().transposed().column(0), Some(&[6.0, 7.0, 8.0][..]));
        let short = BatchRef::new(&numbers, BatchLayout::row_major(3, 2, 3).unwrap()).unwrap_err();
        assert_eq!(short.kind(), ErrorKind::Layout);
    }

    proptest! {
        #[test]
        fn conversion_between_layouts_keeps_elements_and_gaps(
            batch in 0usize..5, rows in 0usize..4, cols in 0usize..4, lanes in 1usize..4, extra in 0usize..3, swap: bool,
        ) {
            let (row, col) = if swap { ((cols + extra) * lanes, lanes) } else { (lanes, (rows + extra) * lanes) };
            let group = (rows + extra).max(1) * (cols + extra).max(1) * lanes + extra;
            let layout = BatchLayout::new(batch, rows, cols, Strides { lanes, group, row: row.max(1), col: col.max(1) }).unwrap();
            let a = Batch::<f64>::from_fn(batch, rows, cols, |b, i, j| (1 + b + 10 * i + 100 * j) as f64).unwrap();
            let mut there = vec![-1.0; layout.span() + 3];
            BatchMut::new(&mut there, layout).unwrap().copy_from(&a.view()).unwrap();
            prop_assert_eq!(there.iter().filter(|&&x| x != -1.0).count(), layout.elements());
            let back = BatchRef::new(&there, layout).unwrap().to_layout(*a.layout()).unwrap();
            prop_assert_eq!(back.as_slice(), a.as_slice());
        }
    }
}
