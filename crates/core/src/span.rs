//! Borrowed host memory of which only some elements belong to the borrower.
//!
//! The columns of a padded matrix, or the matrices of an interleaved batch, lie among memory that is somebody else's:
//! another thread's, or not initialised at all. A Rust slice would claim it; these types do not.

use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::memory::Element;

/// A shared borrow of a stretch of host memory.
pub struct HostSpan<'a, E: Element> {
    start: NonNull<E>,
    len: usize,
    lifetime: PhantomData<&'a [E]>,
}

/// A unique borrow of some elements of a stretch of host memory.
pub struct HostSpanMut<'a, E: Element> {
    start: NonNull<E>,
    len: usize,
    lifetime: PhantomData<&'a mut [E]>,
}

// SAFETY: stands for `&[E]`, and `E` is `Sync`.
unsafe impl<E: Element> Send for HostSpan<'_, E> {}
// SAFETY: as above.
unsafe impl<E: Element> Sync for HostSpan<'_, E> {}
// SAFETY: stands for a `&mut` to each of its elements, and `E` is `Send`.
unsafe impl<E: Element> Send for HostSpanMut<'_, E> {}
// SAFETY: a shared reference to it only reads, and `E` is `Sync`.
unsafe impl<E: Element> Sync for HostSpanMut<'_, E> {}

impl<E: Element> Clone for HostSpan<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E: Element> Copy for HostSpan<'_, E> {}

impl<'a, E: Element> HostSpan<'a, E> {
    /// All of a slice.
    pub fn new(slice: &'a [E]) -> Self {
        Self { start: NonNull::from(slice).cast(), len: slice.len(), lifetime: PhantomData }
    }

    /// `len` elements from `start` on, of which the borrower uses some.
    ///
    /// # Safety
    /// The stretch lies within one allocation; every element that is used through this span (those that
    /// the [`BatchLayout`](crate::BatchLayout) laid over it names) is initialised and not written by anyone else during `'a`.
    pub unsafe fn from_raw(start: *const E, len: usize) -> Self {
        let start = NonNull::new(start.cast_mut()).unwrap_or(NonNull::dangling());
        Self { start, len, lifetime: PhantomData }
    }

    /// The first element's place.
    pub fn as_ptr(&self) -> *const E {
        self.start.as_ptr()
    }

    /// Elements, gaps included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<'a, E: Element> HostSpanMut<'a, E> {
    /// All of a slice.
    pub fn new(slice: &'a mut [E]) -> Self {
        let len = slice.len();
        Self { start: NonNull::from(slice).cast(), len, lifetime: PhantomData }
    }

    /// `len` elements from `start` on, of which the borrower uses some.
    ///
    /// # Safety
    /// The stretch lies within one allocation; every element that is used through this span (those that
    /// the [`BatchLayout`](crate::BatchLayout) laid over it names) is initialised and neither read nor written by anyone else during `'a`.
    pub unsafe fn from_raw(start: *mut E, len: usize) -> Self {
        Self { start: NonNull::new(start).unwrap_or(NonNull::dangling()), len, lifetime: PhantomData }
    }

    /// The first element's place.
    pub fn as_mut_ptr(&mut self) -> *mut E {
        self.start.as_ptr()
    }

    /// Elements, gaps included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The same elements, to read.
    pub fn share(&self) -> HostSpan<'_, E> {
        HostSpan { start: self.start, len: self.len, lifetime: PhantomData }
    }

    /// The same elements, lent for a time.
    pub fn reborrow(&mut self) -> HostSpanMut<'_, E> {
        HostSpanMut { start: self.start, len: self.len, lifetime: PhantomData }
    }
}

impl<E: Element> fmt::Debug for HostSpan<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostSpan").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<E: Element> fmt::Debug for HostSpanMut<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostSpanMut").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_where_its_slice_is_and_as_long() {
        let (mut three, mut none) = ([1u32, 2, 3], [0u32; 0]);
        let start = three.as_ptr();
        let span = HostSpan::new(&three);
        assert_eq!((span.as_ptr(), span.len(), span.is_empty()), (start, 3, false));
        assert!(HostSpan::new(&none).is_empty() && HostSpanMut::new(&mut none).is_empty());
        let mut span = HostSpanMut::new(&mut three);
        assert_eq!((span.as_mut_ptr().cast_const(), span.len(), span.is_empty()), (start, 3, false));
        assert_eq!((span.share().as_ptr(), span.share().len(), span.reborrow().len()), (start, 3, 3));
    }
}
