//! Where numbers live: a kind of memory, as types, and the host's own.

use std::fmt::Debug;

use num_complex::Complex;

use crate::array::HostArray;
use crate::determinant::Determinant;
use crate::error::Error;
use crate::scalar::Scalar;
use crate::span::{HostSpan, HostSpanMut};

/// Plain data that any memory can hold: the four scalars, `u32`, and [`Determinant`]s.
///
/// # Safety
/// The type has no padding-dependent meaning, no pointers, no destructor, and all bytes zero is a valid value.
pub unsafe trait Element: Copy + Debug + Default + PartialEq + Send + Sync + 'static {}

// SAFETY: numbers; all bytes zero is zero.
unsafe impl Element for u32 {}
// SAFETY: as above.
unsafe impl Element for f32 {}
// SAFETY: as above.
unsafe impl Element for f64 {}
// SAFETY: as above, twice.
unsafe impl Element for Complex<f32> {}
// SAFETY: as above, twice.
unsafe impl Element for Complex<f64> {}
// SAFETY: `repr(C)` of two numbers.
unsafe impl<T: Scalar> Element for Determinant<T> {}

/// A kind of memory: what owns it, what borrows it.
///
/// *Arrays* own; *slices* borrow a whole dense array (pivots, outcomes); *spans* borrow the stretch of memory
/// that a [`BatchLayout`](crate::BatchLayout) describes, of which only the elements that the layout names
/// belong to the borrower. On a device a span and a slice may be the same type; on the host they differ, because
/// a Rust slice claims the gaps too.
///
/// For authors of a backend: the methods must be cheap and must not copy, except [`Memory::read`].
pub trait Memory: Copy + Debug + Send + Sync + 'static {
    /// Owned memory.
    type Array<E: Element>: Debug + Send + Sync;
    /// A shared borrow of a dense array.
    type Slice<'a, E: Element>: Copy + Debug + Send + Sync;
    /// A unique borrow of a dense array.
    type SliceMut<'a, E: Element>: Debug + Send;
    /// A shared borrow of what a layout names.
    type Span<'a, E: Element>: Copy + Debug + Send + Sync;
    /// A unique borrow of what a layout names.
    type SpanMut<'a, E: Element>: Debug + Send;

    /// Borrows an array.
    fn slice<E: Element>(array: &Self::Array<E>) -> Self::Slice<'_, E>;
    /// Borrows an array uniquely.
    fn slice_mut<E: Element>(array: &mut Self::Array<E>) -> Self::SliceMut<'_, E>;
    /// Borrows a batch's elements.
    fn span<E: Element>(array: &Self::Array<E>) -> Self::Span<'_, E>;
    /// Borrows a batch's elements uniquely.
    fn span_mut<E: Element>(array: &mut Self::Array<E>) -> Self::SpanMut<'_, E>;

    /// Elements in a slice.
    fn slice_len<E: Element>(slice: &Self::Slice<'_, E>) -> usize;
    /// Elements in a unique slice.
    fn slice_mut_len<E: Element>(slice: &Self::SliceMut<'_, E>) -> usize;
    /// Elements in a span, gaps included.
    fn span_len<E: Element>(span: &Self::Span<'_, E>) -> usize;
    /// Elements in a unique span, gaps included.
    fn span_mut_len<E: Element>(span: &Self::SpanMut<'_, E>) -> usize;

    /// The same slice for a shorter time.
    fn reborrow_slice<'short, E: Element>(slice: &'short Self::Slice<'_, E>) -> Self::Slice<'short, E>;
    /// The same span for a shorter time.
    fn reborrow_span<'short, E: Element>(span: &'short Self::Span<'_, E>) -> Self::Span<'short, E>;
    /// A unique span, read for a time.
    fn share_span<'short, E: Element>(span: &'short Self::SpanMut<'_, E>) -> Self::Span<'short, E>;
    /// A unique span, lent for a time.
    fn reborrow_span_mut<'short, E: Element>(span: &'short mut Self::SpanMut<'_, E>) -> Self::SpanMut<'short, E>;

    /// Copies the first `to.len()` elements to the host, after all work queued on them is done.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) where `to` is longer than the slice; otherwise what the
    /// device reports, also of earlier work.
    fn read<E: Element>(slice: Self::Slice<'_, E>, to: &mut [E]) -> Result<(), Error>;
}

/// The memory of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostMemory;

impl Memory for HostMemory {
    type Array<E: Element> = HostArray<E>;
    type Slice<'a, E: Element> = &'a [E];
    type SliceMut<'a, E: Element> = &'a mut [E];
    type Span<'a, E: Element> = HostSpan<'a, E>;
    type SpanMut<'a, E: Element> = HostSpanMut<'a, E>;

    fn slice<E: Element>(array: &HostArray<E>) -> &[E] {
        array
    }
    fn slice_mut<E: Element>(array: &mut HostArray<E>) -> &mut [E] {
        array
    }
    fn span<E: Element>(array: &HostArray<E>) -> HostSpan<'_, E> {
        HostSpan::new(array)
    }
    fn span_mut<E: Element>(array: &mut HostArray<E>) -> HostSpanMut<'_, E> {
        HostSpanMut::new(array)
    }
    fn slice_len<E: Element>(slice: &&[E]) -> usize {
        slice.len()
    }
    fn slice_mut_len<E: Element>(slice: &&mut [E]) -> usize {
        slice.len()
    }
    fn span_len<E: Element>(span: &HostSpan<'_, E>) -> usize {
        span.len()
    }
    fn span_mut_len<E: Element>(span: &HostSpanMut<'_, E>) -> usize {
        span.len()
    }
    fn reborrow_slice<'short, E: Element>(slice: &'short &[E]) -> &'short [E] {
        slice
    }
    fn reborrow_span<'short, E: Element>(span: &'short HostSpan<'_, E>) -> HostSpan<'short, E> {
        *span
    }
    fn share_span<'short, E: Element>(span: &'short HostSpanMut<'_, E>) -> HostSpan<'short, E> {
        span.share()
    }
    fn reborrow_span_mut<'short, E: Element>(span: &'short mut HostSpanMut<'_, E>) -> HostSpanMut<'short, E> {
        span.reborrow()
    }
    fn read<E: Element>(slice: &[E], to: &mut [E]) -> Result<(), Error> {
        let len = to.len();
        let from = slice.get(..len).ok_or_else(|| too_long(len, slice.len()))?;
        to.copy_from_slice(from);
        Ok(())
    }
}

impl HostMemory {
    /// Copies `from` into the front of `to`: [`Backend::write`](crate::Backend::write) of every backend over host memory.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) where `to` is shorter.
    pub fn write<E: Element>(from: &[E], to: &mut [E]) -> Result<(), Error> {
        let there = to.len();
        to.get_mut(..from.len()).ok_or_else(|| too_long(from.len(), there))?.copy_from_slice(from);
        Ok(())
    }
}

/// The error of a copy past the end.
pub fn too_long(wanted: usize, there: usize) -> Error {
    Error::new(crate::ErrorKind::Argument, "copy", format!("{wanted} elements were asked of an array of {there}"))
        .advise("ask for no more than the array holds")
}
