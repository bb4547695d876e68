//! Batches: a layout and the memory it describes, owned or borrowed.

use crate::array::HostArray;
use crate::error::{Error, ErrorKind};
use crate::layout::BatchLayout;
use crate::memory::{HostMemory, Memory};
use crate::scalar::Scalar;

/// An owned batch of matrices, by default in host memory.
///
/// ```
/// use batchla_core::Batch;
/// let hilbert = Batch::<f64>::from_fn(2, 3, 3, |_, i, j| 1.0 / (i + j + 1) as f64)?;
/// assert_eq!(hilbert.get(1, 2, 2), Some(0.2));
/// assert_eq!(hilbert.layout().to_string(), "2 x (3 x 3) column-major");
/// # Ok::<(), batchla_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Batch<T: Scalar, M: Memory = HostMemory> {
    layout: BatchLayout,
    array: M::Array<T>,
}

/// A borrowed batch, to read.
#[derive(Debug)]
pub struct BatchRef<'a, T: Scalar, M: Memory = HostMemory> {
    layout: BatchLayout,
    span: M::Span<'a, T>,
}

/// A borrowed batch, to write: the elements that the layout names are the borrower's alone.
#[derive(Debug)]
pub struct BatchMut<'a, T: Scalar, M: Memory = HostMemory> {
    layout: BatchLayout,
    span: M::SpanMut<'a, T>,
}

impl<T: Scalar, M: Memory> Batch<T, M> {
    /// Lays `layout` over `array`.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where the array is shorter than the layout's span.
    pub fn from_array(array: M::Array<T>, layout: BatchLayout) -> Result<Self, Error> {
        fits(&layout, M::slice_len(&M::slice(&array)))?;
        Ok(Self { layout, array })
    }

    /// Where each element lies.
    pub fn layout(&self) -> &BatchLayout {
        &self.layout
    }

    /// Matrices in the batch.
    pub fn batch(&self) -> usize {
        self.layout.batch()
    }

    /// The batch, to read.
    pub fn view(&self) -> BatchRef<'_, T, M> {
        BatchRef { layout: self.layout, span: M::span(&self.array) }
    }

    /// The batch, to write.
    pub fn view_mut(&mut self) -> BatchMut<'_, T, M> {
        BatchMut { layout: self.layout, span: M::span_mut(&mut self.array) }
    }

    /// All of its memory, gaps included.
    pub fn slice(&self) -> M::Slice<'_, T> {
        M::slice(&self.array)
    }

    /// All of its memory, gaps included, to write.
    pub fn slice_mut(&mut self) -> M::SliceMut<'_, T> {
        M::slice_mut(&mut self.array)
    }

    /// Takes memory and layout apart.
    pub fn into_array(self) -> M::Array<T> {
        self.array
    }
}

impl<'a, T: Scalar, M: Memory> BatchRef<'a, T, M> {
    /// Lays `layout` over `span`.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where the span is shorter than the layout's.
    ///
    /// # Safety
    /// The span is good for every element that the layout names (a span made of a whole array or slice always is).
    pub unsafe fn from_span(span: M::Span<'a, T>, layout: BatchLayout) -> Result<Self, Error> {
        fits(&layout, M::span_len(&span))?;
        Ok(Self { layout, span })
    }

    /// Where each element lies.
    pub fn layout(&self) -> &BatchLayout {
        &self.layout
    }

    /// Matrices in the batch.
    pub fn batch(&self) -> usize {
        self.layout.batch()
    }

    /// The memory under the layout.
    pub fn span(&self) -> M::Span<'a, T> {
        self.span
    }

    /// The same view for a shorter time.
    pub fn reborrow(&self) -> BatchRef<'_, T, M> {
        BatchRef { layout: self.layout, span: M::reborrow_span(&self.span) }
    }
}

impl<'a, T: Scalar, M: Memory> BatchMut<'a, T, M> {
    /// Lays `layout` over `span`.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where the span is shorter than the layout's.
    ///
    /// # Safety
    /// The span is good for every element that the layout names (a span made of a whole array or slice always is).
    pub unsafe fn from_span(span: M::SpanMut<'a, T>, layout: BatchLayout) -> Result<Self, Error> {
        fits(&layout, M::span_mut_len(&span))?;
        Ok(Self { layout, span })
    }

    /// Where each element lies.
    pub fn layout(&self) -> &BatchLayout {
        &self.layout
    }

    /// Matrices in the batch.
    pub fn batch(&self) -> usize {
        self.layout.batch()
    }

    /// The memory under the layout.
    pub fn into_span(self) -> M::SpanMut<'a, T> {
        self.span
    }

    /// The batch, to read for a time.
    pub fn share(&self) -> BatchRef<'_, T, M> {
        BatchRef { layout: self.layout, span: M::share_span(&self.span) }
    }

    /// The batch, lent for a time.
    pub fn reborrow(&mut self) -> BatchMut<'_, T, M> {
        BatchMut { layout: self.layout, span: M::reborrow_span_mut(&mut self.span) }
    }
}

impl<T: Scalar, M: Memory> Clone for BatchRef<'_, T, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Scalar, M: Memory> Copy for BatchRef<'_, T, M> {}

impl<'a, T: Scalar, M: Memory> From<&'a Batch<T, M>> for BatchRef<'a, T, M> {
    fn from(batch: &'a Batch<T, M>) -> Self {
        batch.view()
    }
}

impl<'a, T: Scalar, M: Memory> From<&'a BatchRef<'_, T, M>> for BatchRef<'a, T, M> {
    fn from(batch: &'a BatchRef<'_, T, M>) -> Self {
        batch.reborrow()
    }
}

impl<'a, T: Scalar, M: Memory> From<&'a mut Batch<T, M>> for BatchMut<'a, T, M> {
    fn from(batch: &'a mut Batch<T, M>) -> Self {
        batch.view_mut()
    }
}

impl<'a, T: Scalar, M: Memory> From<&'a mut BatchMut<'_, T, M>> for BatchMut<'a, T, M> {
    fn from(batch: &'a mut BatchMut<'_, T, M>) -> Self {
        batch.reborrow()
    }
}

impl<T: Scalar> Batch<T> {
    /// A batch of zeros in `layout`, its memory aligned to 64 bytes.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    pub fn zeros(layout: BatchLayout) -> Result<Self, Error> {
        Ok(Self { layout, array: HostArray::zeroed(layout.span())? })
    }

    /// A column-major batch whose element (b, i, j) is `element(b, i, j)`.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where the size overflows, [`ErrorKind::OutOfMemory`].
    pub fn from_fn(
        batch: usize,
        rows: usize,
        cols: usize,
        element: impl FnMut(usize, usize, usize) -> T,
    ) -> Result<Self, Error> {
        let mut result = Self::zeros(BatchLayout::column_major(batch, rows, cols)?)?;
        result.view_mut().fill_with(element);
        Ok(result)
    }

    /// Takes a `Vec` over without a copy. It may be longer than the layout's span.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where it is shorter.
    pub fn from_vec(vec: Vec<T>, layout: BatchLayout) -> Result<Self, Error> {
        Self::from_array(vec.into(), layout)
    }

    /// Its memory as a `Vec`, gaps included; without a copy if it came from one (see [`HostArray::into_vec`]).
    pub fn into_vec(self) -> Vec<T> {
        self.array.into_vec()
    }

    /// All of its memory, gaps included.
    pub fn as_slice(&self) -> &[T] {
        &self.array
    }

    /// All of its memory, gaps included, to write.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.array
    }

    /// Element (b, i, j), if there is one.
    pub fn get(&self, b: usize, i: usize, j: usize) -> Option<T> {
        self.view().get(b, i, j)
    }

    /// The same matrices in another layout.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where `layout` has other dimensions, [`ErrorKind::OutOfMemory`].
    pub fn to_layout(&self, layout: BatchLayout) -> Result<Self, Error> {
        self.view().to_layout(layout)
    }
}

impl<T: Scalar> Clone for Batch<T> {
    /// # Panics
    /// Where host memory is exhausted, as every `Clone` of the standard library.
    fn clone(&self) -> Self {
        Self { layout: self.layout, array: self.array.to_vec().into() }
    }
}

pub(crate) fn fits(layout: &BatchLayout, len: usize) -> Result<(), Error> {
    if layout.span() <= len {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Layout,
        "layout",
        format!("{layout} spans {} elements, but the memory holds {len}", layout.span()),
    )
    .advise("pass memory of at least that many elements"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vec_that_became_a_batch_comes_back_with_its_gaps() {
        let layout = BatchLayout::column_major(1, 2, 2).unwrap();
        let batch = Batch::from_vec(vec![1.0, 2.0, 3.0, 4.0, 5.0], layout).unwrap();
        assert_eq!(batch.into_vec(), [1.0, 2.0, 3.0, 4.0, 5.0]);
    }
}
