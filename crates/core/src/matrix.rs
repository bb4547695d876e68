//! Single matrices of a host batch.

use std::fmt;
use std::marker::PhantomData;

use crate::layout::BatchLayout;
use crate::scalar::Scalar;

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
    /// Matrix `b` of a span that begins at `start`.
    ///
    /// # Safety
    /// Where `b` is a matrix of `layout`, every element of it that the layout names may be read during `'a`.
    pub(crate) unsafe fn of(start: *const T, layout: &BatchLayout, b: usize) -> Self {
        Self { start: start.wrapping_add(layout.origin(b)), shape: Shape::of(layout), lifetime: PhantomData }
    }

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
        if self.shape.rows == 0 {
            return Some(&[]); // strides are not bounded then
        }
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
    /// Matrix `b` of a span that begins at `start`.
    ///
    /// # Safety
    /// Where `b` is a matrix of `layout`, every element of it that the layout names is the borrower's alone for the lifetime.
    pub(crate) unsafe fn of(start: *mut T, layout: &BatchLayout, b: usize) -> Self {
        Self { start: start.wrapping_add(layout.origin(b)), shape: Shape::of(layout), lifetime: PhantomData }
    }

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
        if self.shape.rows == 0 {
            return Some(&mut []); // strides are not bounded then
        }
        // SAFETY: `rows` elements from (0, j) on, all named by the layout, ours alone while `self` is borrowed.
        (self.shape.row_stride == 1 || self.shape.rows < 2).then(|| unsafe {
            std::slice::from_raw_parts_mut(
                self.start.wrapping_add(j.wrapping_mul(self.shape.col_stride)),
                self.shape.rows,
            )
        })
    }

    /// All elements, column after column, if that is how they lie in memory, without gaps.
    pub fn dense_columns_mut(&mut self) -> Option<&mut [T]> {
        let Shape { rows, cols, row_stride, col_stride } = self.shape;
        let dense = (row_stride == 1 || rows < 2) && (col_stride == rows || cols < 2);
        // SAFETY: all elements, named by the layout, ours alone while `self` is borrowed; the last of a column is followed by the first of the next.
        dense.then(|| unsafe { std::slice::from_raw_parts_mut(self.start, rows * cols) })
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

#[cfg(test)]
mod tests {
    use crate::batch::Batch;
    use crate::layout::{BatchLayout, Strides};

    /// Matrices whose element (i, j) is `10 i + j`, by columns, by rows and among others.
    fn layouts() -> [BatchLayout; 3] {
        [BatchLayout::column_major(2, 3, 2), BatchLayout::row_major(2, 3, 2), BatchLayout::interleaved(2, 3, 2, 2)]
            .map(Result::unwrap)
    }

    fn numbered(layout: BatchLayout) -> Batch<f64> {
        let a = Batch::from_fn(2, 3, 2, |b, i, j| (100 * b + 10 * i + j) as f64).unwrap();
        a.to_layout(layout).unwrap()
    }

    #[test]
    fn strides_and_the_first_elements_place_are_the_layouts() {
        for (layout, strides) in layouts().into_iter().zip([(1, 3), (2, 1), (2, 6)]) {
            let mut a = numbered(layout);
            let first = layout.offset(1, 0, 0);
            let place = a.as_slice().as_ptr().wrapping_add(first);
            let view = a.view();
            let matrix = view.matrix(1).unwrap();
            assert_eq!((matrix.as_ptr(), (matrix.row_stride(), matrix.col_stride())), (place, strides));
            let mut matrix = a.view_mut().into_matrices().nth(1).unwrap();
            assert_eq!(
                (matrix.as_mut_ptr().cast_const(), (matrix.row_stride(), matrix.col_stride())),
                (place, strides)
            );
            assert_eq!((matrix.at(2, 1), matrix.reborrow().at(0, 1), matrix.share().at(1, 0)), (121.0, 101.0, 110.0));
        }
    }

    #[test]
    fn columns_are_slices_only_where_their_elements_are_neighbours() {
        let mut seen = Vec::new();
        for layout in layouts() {
            let mut a = numbered(layout);
            let mut matrix = a.view_mut().into_matrices().next().unwrap();
            seen.push(matrix.column_mut(1).map(|column| column.to_vec()));
            assert_eq!(matrix.share().column(1).map(<[f64]>::to_vec), seen[seen.len() - 1]);
        }
        assert_eq!(seen, [Some(vec![1.0, 11.0, 21.0]), None, None]);
        // One element is its own neighbour.
        let mut flat = Batch::<f64>::from_fn(1, 1, 2, |_, _, j| j as f64).unwrap();
        assert_eq!(flat.view_mut().into_matrices().next().unwrap().column_mut(1), Some(&mut [1.0][..]));
        let wide = flat.to_layout(BatchLayout::interleaved(1, 1, 2, 2).unwrap()).unwrap();
        assert_eq!(wide.view().matrix(0).unwrap().column(1), Some(&[1.0][..]));
    }

    #[test]
    fn columns_without_elements_are_empty_slices_whatever_the_strides() {
        // Strides of nothing are not bounded: the second matrix, and the columns, would begin anywhere.
        let strides = Strides { lanes: 1, group: (1 << 61) - 1, row: 1, col: (1 << 61) - 1 };
        let mut a = Batch::<f64>::zeros(BatchLayout::new(2, 0, 3, strides).unwrap()).unwrap();
        for j in 0..3 {
            assert_eq!(a.view().matrix(1).unwrap().column(j), Some(&[][..]));
            let mut matrix = a.view_mut().into_matrices().nth(1).unwrap();
            assert_eq!(matrix.column_mut(j), Some(&mut [][..]));
        }
        assert!(!a.view().matrix(1).unwrap().as_ptr().is_null());
    }

    #[test]
    fn all_columns_are_one_slice_only_where_there_are_no_gaps() {
        for (layout, dense) in layouts().into_iter().zip([true, false, false]) {
            let mut a = numbered(layout);
            let mut matrix = a.view_mut().into_matrices().nth(1).unwrap();
            let columns = matrix.dense_columns_mut().map(|all| all.to_vec());
            assert_eq!(columns, dense.then(|| vec![100.0, 110.0, 120.0, 101.0, 111.0, 121.0]));
        }
        let padded = BatchLayout::column_major(2, 3, 2).and_then(|layout| layout.with_leading_dimension(4)).unwrap();
        let mut a = Batch::<f64>::zeros(padded).unwrap();
        assert!(a.view_mut().into_matrices().all(|mut matrix| matrix.dense_columns_mut().is_none()));
    }

    #[test]
    fn columns_copied_out_and_back_leave_what_lies_between_them() {
        for layout in layouts() {
            let a = numbered(layout);
            let mut columns = [-1.0; 9];
            a.view().matrix(1).unwrap().copy_to_columns(&mut columns, 4);
            assert_eq!(columns, [100.0, 110.0, 120.0, -1.0, 101.0, 111.0, 121.0, -1.0, -1.0]);
            let mut back = Batch::<f64>::zeros(layout).unwrap();
            assert!(back.view_mut().into_matrices().nth(1).unwrap().copy_from_columns(&columns, 4));
            assert_eq!(back.get(1, 2, 1), Some(121.0));
            assert!((0..6).all(|at| back.get(1, at % 3, at / 3) == a.get(1, at % 3, at / 3)));
            assert_eq!(back.get(0, 0, 0), Some(0.0));
        }
    }

    #[test]
    fn copying_in_tells_what_is_not_finite_wherever_it_lies() {
        let mut a = Batch::<f64>::from_fn(1, 3, 2, |_, _, _| 0.0).unwrap();
        for at in 0..6 {
            let mut columns = [1.0; 6];
            columns[at] = f64::NAN;
            assert!(!a.view_mut().into_matrices().next().unwrap().copy_from_columns(&columns, 3), "{at}");
            assert!(a.get(0, at % 3, at / 3).is_some_and(f64::is_nan));
        }
    }
}
