//! Walking, converting and sharing out a host batch, matrix by matrix.

use std::fmt;
use std::marker::PhantomData;

use crate::batch::{Batch, BatchMut, BatchRef};
use crate::error::{Error, ErrorKind};
use crate::layout::BatchLayout;
use crate::matrix::{MatrixMut, MatrixRef};
use crate::scalar::Scalar;
use crate::span::{HostSpan, HostSpanMut};

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
        // SAFETY: the span is good for all that its layout names during 'a.
        (b < self.batch()).then(|| unsafe { MatrixRef::of(self.span().as_ptr(), self.layout(), b) })
    }

    /// Element (b, i, j), if there is one.
    pub fn get(&self, b: usize, i: usize, j: usize) -> Option<T> {
        let matrix = self.matrix(b)?;
        (i < matrix.rows() && j < matrix.cols()).then(|| matrix.at(i, j))
    }

    /// All matrices in turn.
    pub fn matrices(&self) -> impl ExactSizeIterator<Item = MatrixRef<'a, T>> + use<'a, T> {
        let view = *self;
        // SAFETY: the span is good for all that its layout names during 'a.
        (0..view.batch()).map(move |b| unsafe { MatrixRef::of(view.span().as_ptr(), view.layout(), b) })
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

    /// All elements that are left in the order of memory, where the layout [is plain](BatchLayout::is_plain).
    pub fn plain_slice(&mut self) -> Option<&mut [T]> {
        let area = self.layout.rows() * self.layout.cols();
        self.layout.is_plain().then(|| {
            let start = self.start.wrapping_add(self.first * area);
            // SAFETY: these matrices are one stretch of memory, and nobody else's while they are borrowed from `self`.
            unsafe { std::slice::from_raw_parts_mut(start, (self.end - self.first) * area) }
        })
    }
}

impl<'a, T: Scalar> Iterator for MatricesMut<'a, T> {
    type Item = MatrixMut<'a, T>;

    fn next(&mut self) -> Option<MatrixMut<'a, T>> {
        (self.first < self.end).then(|| {
            let b = self.first;
            self.first += 1;
            // SAFETY: each matrix is handed out once, and no two share an element.
            unsafe { MatrixMut::of(self.start, &self.layout, b) }
        })
    }

    fn nth(&mut self, n: usize) -> Option<MatrixMut<'a, T>> {
        self.first = self.first.saturating_add(n).min(self.end);
        self.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.end - self.first, Some(self.end - self.first))
    }
}

impl<T: Scalar> ExactSizeIterator for MatricesMut<'_, T> {}

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
    fn no_element_lies_beyond_a_matrix_and_gaps_are_no_slice() {
        let layout = BatchLayout::column_major(1, 2, 3).unwrap();
        let batch = Batch::from_vec(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], layout).unwrap();
        let view = batch.view();
        assert_eq!(
            [view.get(0, 1, 2), view.get(0, 2, 0), view.get(0, 0, 3), view.get(1, 0, 0)],
            [Some(6.0), None, None, None]
        );
        assert_eq!(view.dense_slice(), Some(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0][..]));
        let apart = BatchLayout::column_major(2, 2, 1).unwrap().with_group_stride(3).unwrap();
        assert_eq!(Batch::from_vec(vec![0.0; 6], apart).unwrap().view().dense_slice(), None);
    }

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
    fn what_is_left_of_a_plain_batch_is_one_slice() {
        let mut batch = Batch::<f64>::from_fn(5, 2, 3, |b, i, j| (100 * b + 10 * i + j) as f64).unwrap();
        let (mut left, mut right) = batch.view_mut().into_matrices().split_at(2);
        assert_eq!(left.plain_slice().map(|slice| slice.len()), Some(12));
        assert_eq!(right.plain_slice().map(|slice| (slice.len(), slice[0])), Some((18, 200.0)));
        assert_eq!(right.nth(1).map(|matrix| matrix.at(1, 2)), Some(312.0));
        assert_eq!(right.plain_slice(), Some(&mut [400.0, 410.0, 401.0, 411.0, 402.0, 412.0][..]));
        assert!(right.nth(1).is_none() && right.next().is_none());
        let mut rows = batch.to_layout(BatchLayout::row_major(5, 2, 3).unwrap()).unwrap();
        assert_eq!(rows.view_mut().into_matrices().plain_slice(), None);
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
