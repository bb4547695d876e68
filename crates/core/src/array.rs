//! Owned host memory: aligned to 64 bytes when it is ours, a caller's `Vec` as it came.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

use crate::error::{Error, ErrorKind};
use crate::memory::Element;

/// Bytes to which memory of our own is aligned: a cache line, and the widest SIMD register.
pub const ALIGNMENT: usize = 64;

/// An owned array of numbers. [`HostArray::zeroed`] aligns it to [`ALIGNMENT`]; a `Vec` goes in and comes
/// out again without a copy.
pub struct HostArray<E: Element> {
    start: NonNull<E>,
    len: usize,
    owner: Owner,
}

#[derive(Clone, Copy)]
enum Owner {
    /// So many bytes behind the start of what was allocated.
    Aligned {
        behind: usize,
    },
    Vec {
        capacity: usize,
    },
}

// SAFETY: the array owns its elements as a `Vec` does, and they are `Send + Sync`.
unsafe impl<E: Element> Send for HostArray<E> {}
// SAFETY: as above.
unsafe impl<E: Element> Sync for HostArray<E> {}

impl<E: Element> HostArray<E> {
    /// `len` zeros, aligned to 64 bytes. The pages of a large array are not touched before their first use.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`] where the system has no such memory.
    pub fn zeroed(len: usize) -> Result<Self, Error> {
        let exhausted = || {
            let bytes = (len as u128) * size_of::<E>() as u128;
            Error::new(
                ErrorKind::OutOfMemory,
                "allocate",
                format!("{bytes} bytes of host memory for {len} elements are not to be had"),
            )
            .advise("work on the batch in parts")
        };
        if len == 0 {
            return Ok(Self { start: NonNull::dangling(), len, owner: Owner::Aligned { behind: 0 } });
        }
        let layout = Self::roomy_layout(len).ok_or_else(exhausted)?;
        // SAFETY: the layout has a size above zero, since `len` is and no `Element` is zero-sized.
        let allocated = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(exhausted)?;
        let behind = allocated.as_ptr().addr().wrapping_neg() % ALIGNMENT;
        // SAFETY: the layout has `ALIGNMENT` bytes more than the elements.
        let start = unsafe { allocated.add(behind) };
        Ok(Self { start: start.cast(), len, owner: Owner::Aligned { behind } })
    }

    /// As a `Vec`: without a copy if it came from one, otherwise (memory of our own is aligned more
    /// strictly than a `Vec` can free) with one.
    pub fn into_vec(self) -> Vec<E> {
        match self.owner {
            Owner::Vec { capacity } => {
                let this = ManuallyDrop::new(self);
                // SAFETY: these are the parts of the `Vec` that `from` took apart, and `self` no longer drops them.
                unsafe { Vec::from_raw_parts(this.start.as_ptr(), this.len, capacity) }
            }
            Owner::Aligned { .. } => self.to_vec(),
        }
    }

    /// The elements and room to align them: the system's allocator zeroes at once, page by page, what it is to align by itself, and on first use what it is not.
    fn roomy_layout(len: usize) -> Option<Layout> {
        let elements = Layout::array::<E>(len).ok()?;
        Layout::from_size_align(elements.size().checked_add(ALIGNMENT)?, elements.align()).ok()
    }
}

impl<E: Element> Drop for HostArray<E> {
    fn drop(&mut self) {
        match self.owner {
            Owner::Vec { capacity } => {
                // SAFETY: the parts of the `Vec` that `from` took apart, dropped once.
                drop(unsafe { Vec::from_raw_parts(self.start.as_ptr(), self.len, capacity) });
            }
            Owner::Aligned { behind } if self.len > 0 => {
                if let Some(layout) = Self::roomy_layout(self.len) {
                    // SAFETY: allocated in `zeroed` with this very layout, so many bytes before the first element.
                    unsafe { dealloc(self.start.as_ptr().cast::<u8>().sub(behind), layout) };
                }
            }
            Owner::Aligned { .. } => {}
        }
    }
}

impl<E: Element> From<Vec<E>> for HostArray<E> {
    fn from(vec: Vec<E>) -> Self {
        let mut vec = ManuallyDrop::new(vec);
        let owner = Owner::Vec { capacity: vec.capacity() };
        // SAFETY: a `Vec`'s pointer is never null.
        let start = unsafe { NonNull::new_unchecked(vec.as_mut_ptr()) };
        Self { start, len: vec.len(), owner }
    }
}

impl<E: Element> Deref for HostArray<E> {
    type Target = [E];

    fn deref(&self) -> &[E] {
        // SAFETY: `start` points at `len` initialised elements (zeros, or a `Vec`'s), or dangles with `len` 0.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<E: Element> DerefMut for HostArray<E> {
    fn deref_mut(&mut self) -> &mut [E] {
        // SAFETY: as in `deref`; `self` is borrowed uniquely.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<E: Element> fmt::Debug for HostArray<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostArray").field("len", &self.len).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_memory_is_aligned_and_zero() {
        for len in [1, 3, 1000] {
            let array = HostArray::<f64>::zeroed(len).unwrap();
            assert_eq!(array.as_ptr() as usize % ALIGNMENT, 0);
            assert!(array.iter().all(|&x| x == 0.0) && array.len() == len);
        }
        assert!(HostArray::<u32>::zeroed(0).unwrap().is_empty());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn pages_of_a_large_array_are_not_there_before_their_first_use() {
        let resident_pages = || -> usize {
            let numbers = std::fs::read_to_string("/proc/self/statm").unwrap();
            numbers.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        let before = resident_pages();
        let array = HostArray::<f64>::zeroed(1 << 27).unwrap(); // 2^18 pages of 4 KiB
        assert!(resident_pages() < before + (1 << 16));
        assert!(array[1 << 26] == 0.0);
    }

    #[test]
    fn a_vec_goes_through_without_a_copy() {
        let mut vec = Vec::with_capacity(10);
        vec.extend([1.0f32, 2.0, 3.0]);
        let place = vec.as_ptr();
        let back = HostArray::from(vec).into_vec();
        assert_eq!((back.as_ptr(), back.len(), back.capacity()), (place, 3, 10));
    }

    #[test]
    fn too_much_memory_is_an_error() {
        for len in [usize::MAX, usize::MAX / 8, 1 << 60] {
            let error = HostArray::<f64>::zeroed(len).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfMemory);
            assert!(error.to_string().contains(&format!("{} bytes", 8 * len as u128)), "{error}");
        }
    }
}
