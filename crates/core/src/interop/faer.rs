//! faer's matrices.

use ::faer::{MatMut, MatRef};

use super::strides::strided;
use crate::batch::{BatchMut, BatchRef};
use crate::error::Error;
use crate::layout::BatchLayout;
use crate::matrix::{MatrixMut, MatrixRef};
use crate::scalar::Scalar;
use crate::span::{HostSpan, HostSpanMut};

fn layout<T>(matrix: &MatRef<'_, T>) -> Result<BatchLayout, Error> {
    strided(
        "view of faer matrix",
        [(1, 1), (matrix.nrows(), matrix.row_stride()), (matrix.ncols(), matrix.col_stride())],
        "make a copy with to_owned() and take a view of that",
    )
}

/// A batch of one, to read. faer's padding between columns stays faer's.
///
/// ```
/// let a = faer::Mat::<f64>::identity(21, 21);
/// let batch = batchla_core::BatchRef::try_from(a.as_ref())?;
/// assert_eq!(batch.get(0, 20, 20), Some(1.0));
/// # Ok::<(), batchla_core::Error>(())
/// ```
impl<'a, T: Scalar> TryFrom<MatRef<'a, T>> for BatchRef<'a, T> {
    type Error = Error;

    fn try_from(matrix: MatRef<'a, T>) -> Result<Self, Error> {
        let layout = layout(&matrix)?;
        // SAFETY: the layout names the matrix's own elements, from its first one on; faer keeps them initialised, in one
        // allocation and unwritten during 'a. What lies between them is not claimed.
        unsafe { Self::from_span(HostSpan::from_raw(matrix.as_ptr(), layout.span()), layout) }
    }
}

/// A batch of one, to write. faer's padding between columns stays untouched.
impl<'a, T: Scalar> TryFrom<MatMut<'a, T>> for BatchMut<'a, T> {
    type Error = Error;

    fn try_from(matrix: MatMut<'a, T>) -> Result<Self, Error> {
        let layout = layout(&matrix.as_ref())?;
        // SAFETY: as for `MatRef`; during 'a the elements are this `MatMut`'s alone, and it is given up here.
        unsafe { Self::from_span(HostSpanMut::from_raw(matrix.as_ptr_mut(), layout.span()), layout) }
    }
}

impl<'a, T: Scalar> From<MatrixRef<'a, T>> for MatRef<'a, T> {
    fn from(matrix: MatrixRef<'a, T>) -> Self {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let (row_stride, col_stride) = (matrix.row_stride() as isize, matrix.col_stride() as isize);
        // SAFETY: a validated layout names these elements, which may be read during 'a; its span fits `isize`.
        unsafe { MatRef::from_raw_parts(matrix.as_ptr(), rows, cols, row_stride, col_stride) }
    }
}

impl<'a, T: Scalar> From<MatrixMut<'a, T>> for MatMut<'a, T> {
    fn from(mut matrix: MatrixMut<'a, T>) -> Self {
        let (rows, cols) = (matrix.rows(), matrix.cols());
        let (row_stride, col_stride) = (matrix.row_stride() as isize, matrix.col_stride() as isize);
        // SAFETY: a validated layout names these elements, none twice; they are this matrix's alone during 'a, and it is given up here.
        unsafe { MatMut::from_raw_parts_mut(matrix.as_mut_ptr(), rows, cols, row_stride, col_stride) }
    }
}

#[cfg(test)]
mod tests {
    use ::faer::Mat;

    use super::*;
    use crate::batch::Batch;
    use crate::error::ErrorKind;

    fn numbered(rows: usize, cols: usize) -> Mat<f64> {
        Mat::from_fn(rows, cols, |i, j| (10 * i + j) as f64)
    }

    #[test]
    fn a_padded_matrix_is_viewed_where_it_lies() {
        let a = numbered(21, 3);
        let batch = BatchRef::try_from(a.as_ref()).unwrap();
        assert_eq!(batch.span().as_ptr(), a.as_ref().as_ptr());
        assert_eq!(batch.layout().strides().col as isize, a.as_ref().col_stride());
        let dense = numbered(16, 16);
        assert_eq!(
            *BatchRef::try_from(dense.as_ref()).unwrap().layout(),
            BatchLayout::column_major(1, 16, 16).unwrap()
        );
        assert_eq!((batch.get(0, 20, 2), batch.get(1, 0, 0)), (Some(202.0), None));
    }

    #[test]
    fn transposes_and_parts_are_layouts_too() {
        let a = numbered(5, 4);
        let transposed = BatchRef::try_from(a.as_ref().transpose()).unwrap();
        assert_eq!((transposed.get(0, 3, 4), transposed.layout().is_row_major()), (Some(43.0), true));
        let part = BatchRef::try_from(a.as_ref().submatrix(1, 2, 3, 2)).unwrap();
        assert_eq!(
            part.to_layout(BatchLayout::row_major(1, 3, 2).unwrap()).unwrap().as_slice(),
            [12.0, 13.0, 22.0, 23.0, 32.0, 33.0]
        );
        for (rows, cols) in [(0, 0), (0, 3), (3, 0), (1, 1), (1, 5), (5, 1)] {
            let a = numbered(rows, cols);
            assert_eq!(BatchRef::try_from(a.as_ref()).unwrap().layout().elements(), rows * cols);
        }
    }

    #[test]
    fn reversed_and_broadcast_matrices_are_refused_with_advice() {
        let a = numbered(3, 3);
        for error in [
            BatchRef::try_from(a.as_ref().reverse_rows()).unwrap_err(),
            BatchRef::try_from(a.as_ref().reverse_cols()).unwrap_err(),
        ] {
            assert!(error.kind() == ErrorKind::Layout && error.advice().contains("to_owned"), "{error}");
        }
    }

    #[test]
    fn writing_goes_through_in_both_directions() {
        let mut a = numbered(21, 2);
        BatchMut::try_from(a.as_mut()).unwrap().fill_with(|_, i, j| (i * j) as f64);
        assert_eq!(a[(20, 1)], 20.0);
        let mut batch = Batch::<f64>::zeros(BatchLayout::interleaved(3, 2, 2, 4).unwrap()).unwrap();
        for (b, matrix) in batch.view_mut().into_matrices().enumerate() {
            MatMut::from(matrix).fill(b as f64);
        }
        assert_eq!(batch.get(2, 1, 1), Some(2.0));
        let last: MatRef<'_, f64> = batch.view().matrix(2).unwrap().into();
        assert_eq!((last.nrows(), last[(1, 0)]), (2, 2.0));
    }
}
