//! Page-locked host memory, which the device reads and writes without a copy in between.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use batchla_core::{Element, Error, ErrorKind};

use crate::device::Device;

/// Owned page-locked host memory. Transfers from and to it go at the link's full speed. It is scarce: the system cannot swap it.
pub struct PinnedArray<E: Element> {
    device: Device,
    start: NonNull<E>,
    len: usize,
    elements: PhantomData<E>,
}

// SAFETY: the array owns its elements as a `Vec` does, and they are `Send + Sync`.
unsafe impl<E: Element> Send for PinnedArray<E> {}
// SAFETY: as above.
unsafe impl<E: Element> Sync for PinnedArray<E> {}

impl<E: Element> PinnedArray<E> {
    /// `len` zeros.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`]; what the device reports.
    pub fn zeroed(device: &Device, len: usize) -> Result<Self, Error> {
        device.alive("allocate pinned")?;
        let bytes = len.checked_mul(size_of::<E>()).filter(|&bytes| bytes <= isize::MAX as usize).ok_or_else(|| {
            let what = format!("{len} elements of page-locked host memory are not to be had");
            Error::new(ErrorKind::OutOfMemory, "allocate pinned", what).advise("work on the batch in parts")
        })?;
        let start = match bytes {
            0 => NonNull::dangling(),
            _ => device.check("allocate pinned", device.driver().allocate_pinned(bytes))?.cast::<E>(),
        };
        // SAFETY: so many bytes were allocated, aligned to a page; all bytes zero is a valid element.
        unsafe { start.as_ptr().cast::<u8>().write_bytes(0, bytes) };
        Ok(Self { device: device.clone(), start, len, elements: PhantomData })
    }
}

impl<E: Element> Deref for PinnedArray<E> {
    type Target = [E];

    fn deref(&self) -> &[E] {
        // SAFETY: `len` initialised elements, or dangling with `len` 0.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<E: Element> DerefMut for PinnedArray<E> {
    fn deref_mut(&mut self) -> &mut [E] {
        // SAFETY: as in `deref`; `self` is borrowed uniquely.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<E: Element> Drop for PinnedArray<E> {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: ours alone; every transfer of it was waited for.
            if let Err(error) = unsafe { self.device.driver().free_pinned(self.start.cast()) } {
                log::debug!("page-locked memory was not freed: {error}");
            }
        }
    }
}

impl<E: Element> fmt::Debug for PinnedArray<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedArray").field("len", &self.len).finish_non_exhaustive()
    }
}
