//! ndarray's arrays: two dimensions are a matrix, three a batch `(batch, rows, columns)`.

use ::ndarray::{ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, ShapeBuilder};

use super::strides::{Axis, strided};
use crate::batch::{BatchMut, BatchRef};
use crate::error::{Error, ErrorKind};
use crate::layout::BatchLayout;
use crate::matrix::{MatrixMut, MatrixRef};
use crate::scalar::Scalar;
use crate::span::{HostSpan, HostSpanMut};

fn layout(shape: &[usize], strides: &[isize]) -> Result<BatchLayout, Error> {
    let mut axes: [Axis; 3] = [(1, 1); 3];
    for (axis, given) in axes.iter_mut().rev().zip(shape.iter().copied().zip(strides.iter().copied()).rev()) {
        *axis = given;
    }
    strided("view of ndarray array", axes, "make a copy with as_standard_layout() and take a view of that")
}

macro_rules! views {
    ($view:ident, $view_mut:ident, $what:literal) => {
        #[doc = concat!($what, ", to read, in whatever order its axes lie.")]
        impl<'a, T: Scalar> TryFrom<$view<'a, T>> for BatchRef<'a, T> {
            type Error = Error;

            fn try_from(array: $view<'a, T>) -> Result<Self, Error> {
                let layout = layout(array.shape(), array.strides())?;
                // SAFETY: the layout names the view's own elements: its strides are positive, so the first lies lowest.
                // They lie in one allocation, are initialised, and nobody writes them during 'a.
                unsafe { Self::from_span(HostSpan::from_raw(array.as_ptr(), layout.span()), layout) }
            }
        }

        #[doc = concat!($what, ", to write; elements that a slice left out stay untouched.")]
        impl<'a, T: Scalar> TryFrom<$view_mut<'a, T>> for BatchMut<'a, T> {
            type Error = Error;

            fn try_from(mut array: $view_mut<'a, T>) -> Result<Self, Error> {
                let layout = layout(array.shape(), array.strides())?;
                // SAFETY: as above; during 'a the elements are this view's alone, and it is given up here.
                unsafe { Self::from_span(HostSpanMut::from_raw(array.as_mut_ptr(), layout.span()), layout) }
            }
        }
    };
}

views!(ArrayView2, ArrayViewMut2, "A batch of one");
views!(ArrayView3, ArrayViewMut3, "A batch of shape `(batch, rows, columns)`");

impl<'a, T: Scalar> From<MatrixRef<'a, T>> for ArrayView2<'a, T> {
    fn from(matrix: MatrixRef<'a, T>) -> Self {
        let shape = (matrix.rows(), matrix.cols()).strides((matrix.row_stride(), matrix.col_stride()));
        // SAFETY: a validated layout names these elements, which may be read during 'a; its span fits `isize`.
        unsafe { ArrayView2::from_shape_ptr(shape, matrix.as_ptr()) }
    }
}

impl<'a, T: Scalar> From<MatrixMut<'a, T>> for ArrayViewMut2<'a, T> {
    fn from(mut matrix: MatrixMut<'a, T>) -> Self {
        let shape = (matrix.rows(), matrix.cols()).strides((matrix.row_stride(), matrix.col_stride()));
        // SAFETY: a validated layout names these elements, none twice; they are this matrix's alone during 'a, and it is given up here.
        unsafe { ArrayViewMut2::from_shape_ptr(shape, matrix.as_mut_ptr()) }
    }
}

/// The whole batch as one array. Interleaved batches have no such view.
///
/// ```
/// use batchla_core::Batch;
/// let batch = Batch::<f64>::from_fn(2, 3, 3, |b, i, j| (b + i * j) as f64)?;
/// let array = ndarray::ArrayView3::try_from(batch.view())?;
/// assert_eq!(array.sum_axis(ndarray::Axis(0))[(2, 2)], 9.0);
/// # Ok::<(), batchla_core::Error>(())
/// ```
impl<'a, T: Scalar> TryFrom<BatchRef<'a, T>> for ArrayView3<'a, T> {
    type Error = Error;

    fn try_from(batch: BatchRef<'a, T>) -> Result<Self, Error> {
        let (layout, strides) = (*batch.layout(), batch.layout().strides());
        if strides.lanes > 1 {
            return Err(Error::new(
                ErrorKind::Layout,
                "view as ndarray array",
                format!("{layout} has no single batch stride"),
            )
            .advise("copy it with to_layout, or take its matrices one by one"));
        }
        let shape = (layout.batch(), layout.rows(), layout.cols());
        // SAFETY: the validated layout names these elements, which may be read during 'a; its span fits `isize`.
        Ok(unsafe {
            ArrayView3::from_shape_ptr(shape.strides((strides.group, strides.row, strides.col)), batch.span().as_ptr())
        })
    }
}

#[cfg(test)]
mod tests {
    use ::ndarray::{Array2, Array3, Axis, Ix3, s};

    use super::*;
    use crate::batch::Batch;

    fn numbered() -> Array3<f64> {
        Array3::from_shape_fn((4, 3, 5), |(b, i, j)| (100 * b + 10 * i + j) as f64)
    }

    #[test]
    fn an_array_is_viewed_where_it_lies_whatever_the_order_of_its_axes() {
        let a = numbered();
        let batch = BatchRef::try_from(a.view()).unwrap();
        assert_eq!(batch.span().as_ptr(), a.as_ptr());
        assert_eq!(*batch.layout(), BatchLayout::row_major(4, 3, 5).unwrap());
        for axes in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let view = a.view().permuted_axes(axes);
            let batch = BatchRef::try_from(view).unwrap();
            assert!(view.indexed_iter().all(|((b, i, j), &x)| batch.get(b, i, j) == Some(x)), "{axes:?}");
        }
        let sliced = a.slice(s![1..;2, .., ..;2]);
        assert_eq!(BatchRef::try_from(sliced).unwrap().get(1, 2, 2), Some(324.0));
        let matrix = BatchRef::try_from(a.index_axis(Axis(0), 2)).unwrap();
        assert_eq!((matrix.batch(), matrix.get(0, 2, 4)), (1, Some(224.0)));
    }

    #[test]
    fn reversed_and_broadcast_arrays_are_refused_with_advice() {
        let a = numbered();
        let one = Array2::<f64>::zeros((3, 5));
        for view in [a.slice(s![..;-1, .., ..]), a.slice(s![.., .., ..;-1]), one.broadcast((4, 3, 5)).unwrap()] {
            let error = BatchRef::try_from(view).unwrap_err();
            assert!(error.kind() == ErrorKind::Layout && error.advice().contains("as_standard_layout"), "{error}");
            assert!(error.to_string().contains("must be positive"), "{error}");
        }
        for shape in [(0, 3, 3), (2, 0, 3), (1, 1, 1)] {
            assert!(BatchRef::try_from(Array3::<f64>::zeros(shape).view()).is_ok());
        }
    }

    #[test]
    fn writing_touches_only_what_the_view_shows() {
        let mut a = numbered();
        BatchMut::try_from(a.slice_mut(s![.., .., ..;2])).unwrap().fill_with(|_, _, _| -1.0);
        assert_eq!((a[(3, 2, 4)], a[(3, 2, 3)]), (-1.0, 323.0));
        BatchMut::try_from(a.index_axis_mut(Axis(0), 1)).unwrap().fill_with(|_, i, j| (i + j) as f64);
        assert_eq!((a[(1, 2, 3)], a[(0, 2, 3)]), (5.0, 23.0));
    }

    #[test]
    fn our_matrices_and_batches_are_seen_as_arrays() {
        let mut batch = Batch::<f64>::from_fn(3, 2, 2, |b, i, j| (100 * b + 10 * i + j) as f64).unwrap();
        let array = ArrayView3::try_from(batch.view()).unwrap();
        assert_eq!((array.raw_dim(), array[(2, 1, 0)]), (Ix3(3, 2, 2), 210.0));
        for matrix in batch.view_mut().into_matrices() {
            ArrayViewMut2::from(matrix).column_mut(1).fill(7.0);
        }
        assert_eq!((batch.get(2, 1, 1), batch.get(2, 1, 0)), (Some(7.0), Some(210.0)));
        assert_eq!(ArrayView2::from(batch.view().matrix(1).unwrap())[(1, 0)], 110.0);
        let lanes = batch.to_layout(BatchLayout::interleaved(3, 2, 2, 2).unwrap()).unwrap();
        assert_eq!(ArrayView3::try_from(lanes.view()).unwrap_err().kind(), ErrorKind::Layout);
    }
}
