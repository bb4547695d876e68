//! nalgebra's matrices.

use ::nalgebra::{Dim, Dyn, Matrix, RawStorage, RawStorageMut, ViewStorage, ViewStorageMut};

use super::strides::strided;
use crate::batch::{BatchMut, BatchRef};
use crate::error::Error;
use crate::layout::BatchLayout;
use crate::matrix::{MatrixMut, MatrixRef};
use crate::scalar::Scalar;
use crate::span::{HostSpan, HostSpanMut};

fn layout<T, R: Dim, C: Dim, S: RawStorage<T, R, C>>(matrix: &Matrix<T, R, C, S>) -> Result<BatchLayout, Error> {
    let (row, col) = matrix.strides();
    // A stride above `isize::MAX` can only belong to an axis along which there is nowhere to go.
    let axis = |extent, stride| (extent, isize::try_from(stride).unwrap_or(0));
    strided(
        "view of nalgebra matrix",
        [(1, 1), axis(matrix.nrows(), row), axis(matrix.ncols(), col)],
        "make a copy with clone_owned() and take a view of that",
    )
}

/// A batch of one, to read: of an owned matrix or of a view with any strides.
///
/// ```
/// let a = nalgebra::DMatrix::<f64>::identity(3, 3);
/// let batch = batchla_core::BatchRef::try_from(&a)?;
/// assert_eq!(batch.get(0, 2, 2), Some(1.0));
/// # Ok::<(), batchla_core::Error>(())
/// ```
impl<'a, T: Scalar, R: Dim, C: Dim, S: RawStorage<T, R, C>> TryFrom<&'a Matrix<T, R, C, S>> for BatchRef<'a, T> {
    type Error = Error;

    fn try_from(matrix: &'a Matrix<T, R, C, S>) -> Result<Self, Error> {
        let layout = layout(matrix)?;
        // SAFETY: `RawStorage` promises that its elements lie at these strides behind `as_ptr`; they are initialised `T`s, and nobody
        // writes them while the matrix is borrowed for 'a.
        unsafe { Self::from_span(HostSpan::from_raw(matrix.as_ptr(), layout.span()), layout) }
    }
}

/// A batch of one, to write: of an owned matrix or of a view with any strides.
impl<'a, T: Scalar, R: Dim, C: Dim, S: RawStorageMut<T, R, C>> TryFrom<&'a mut Matrix<T, R, C, S>> for BatchMut<'a, T> {
    type Error = Error;

    fn try_from(matrix: &'a mut Matrix<T, R, C, S>) -> Result<Self, Error> {
        let layout = layout(matrix)?;
        // SAFETY: as above; the matrix is borrowed uniquely for 'a.
        unsafe { Self::from_span(HostSpanMut::from_raw(matrix.as_mut_ptr(), layout.span()), layout) }
    }
}

/// A view with both strides chosen at run time.
impl<'a, T: Scalar> From<MatrixRef<'a, T>> for Matrix<T, Dyn, Dyn, ViewStorage<'a, T, Dyn, Dyn, Dyn, Dyn>> {
    fn from(matrix: MatrixRef<'a, T>) -> Self {
        let shape = (Dyn(matrix.rows()), Dyn(matrix.cols()));
        let strides = (Dyn(matrix.row_stride()), Dyn(matrix.col_stride()));
        // SAFETY: a validated layout names these elements, which may be read during 'a.
        Matrix::from_data(unsafe { ViewStorage::from_raw_parts(matrix.as_ptr(), shape, strides) })
    }
}

/// A view with both strides chosen at run time.
impl<'a, T: Scalar> From<MatrixMut<'a, T>> for Matrix<T, Dyn, Dyn, ViewStorageMut<'a, T, Dyn, Dyn, Dyn, Dyn>> {
    fn from(mut matrix: MatrixMut<'a, T>) -> Self {
        let shape = (Dyn(matrix.rows()), Dyn(matrix.cols()));
        let strides = (Dyn(matrix.row_stride()), Dyn(matrix.col_stride()));
        // SAFETY: a validated layout names these elements, none twice; they are this matrix's alone during 'a, and it is given up here.
        Matrix::from_data(unsafe { ViewStorageMut::from_raw_parts(matrix.as_mut_ptr(), shape, strides) })
    }
}

#[cfg(test)]
mod tests {
    use ::nalgebra::{DMatrix, DMatrixView, DMatrixViewMut, Matrix3};

    use super::*;
    use crate::batch::Batch;
    use crate::error::ErrorKind;

    fn numbered() -> DMatrix<f64> {
        DMatrix::from_fn(5, 4, |i, j| (10 * i + j) as f64)
    }

    #[test]
    fn owned_matrices_and_views_are_viewed_where_they_lie() {
        let a = numbered();
        let batch = BatchRef::try_from(&a).unwrap();
        assert_eq!((batch.span().as_ptr(), batch.get(0, 4, 3)), (a.as_ptr(), Some(43.0)));
        let part = a.view_with_steps((1, 0), (2, 2), (1, 2));
        assert_eq!(BatchRef::try_from(&part).unwrap().get(0, 1, 1), Some(33.0));
        let fixed = Matrix3::<f32>::identity();
        assert_eq!(BatchRef::try_from(&fixed).unwrap().get(0, 2, 2), Some(1.0));
        assert_eq!(BatchRef::try_from(&DMatrix::<f64>::zeros(0, 3)).unwrap().layout().span(), 0);
    }

    #[test]
    fn matrices_that_repeat_themselves_are_refused_with_advice() {
        let row = [1.0, 2.0, 3.0];
        let repeated = DMatrixView::from_slice_with_strides_generic(&row, Dyn(2), Dyn(3), Dyn(0), Dyn(1));
        let error = BatchRef::try_from(&repeated).unwrap_err();
        assert!(error.kind() == ErrorKind::Layout && error.advice().contains("clone_owned"), "{error}");
    }

    #[test]
    fn writing_goes_through_in_both_directions() {
        let mut a = numbered();
        BatchMut::try_from(&mut a.view_mut((1, 1), (2, 2))).unwrap().fill_with(|_, _, _| -1.0);
        assert_eq!((a[(2, 2)], a[(3, 2)]), (-1.0, 32.0));
        let mut batch = Batch::<f64>::zeros(BatchLayout::interleaved(3, 2, 2, 4).unwrap()).unwrap();
        for (b, matrix) in batch.view_mut().into_matrices().enumerate() {
            DMatrixViewMut::<f64, Dyn, Dyn>::from(matrix).fill(b as f64);
        }
        assert_eq!(batch.get(2, 1, 1), Some(2.0));
        let last = DMatrixView::<f64, Dyn, Dyn>::from(batch.view().matrix(2).unwrap());
        assert_eq!((last.sum(), last[(1, 0)]), (8.0, 2.0));
    }
}
