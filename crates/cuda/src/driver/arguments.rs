//! The arguments of a launch: bytes in place, no heap.

use batchla_core::Complex;

use super::DevicePointer;

const BYTES: usize = 1024;
const COUNT: usize = 32;

/// A value that a kernel takes as it is.
///
/// # Safety
/// The type has the size and alignment of the kernel's parameter, no padding bytes, and an alignment of at most 16.
pub unsafe trait KernelArgument: Copy + 'static {}

// SAFETY: numbers of one size on both sides, and `repr(C)` pairs of them.
unsafe impl KernelArgument for u32 {}
// SAFETY: as above.
unsafe impl KernelArgument for i32 {}
// SAFETY: as above.
unsafe impl KernelArgument for u64 {}
// SAFETY: as above.
unsafe impl KernelArgument for i64 {}
// SAFETY: as above.
unsafe impl KernelArgument for f32 {}
// SAFETY: as above.
unsafe impl KernelArgument for f64 {}
// SAFETY: as above.
unsafe impl KernelArgument for Complex<f32> {}
// SAFETY: as above.
unsafe impl KernelArgument for Complex<f64> {}
// SAFETY: a transparent 64-bit number.
unsafe impl KernelArgument for DevicePointer {}

/// Arguments by value, each at an address of its alignment.
#[derive(Clone, Debug)]
pub struct Arguments {
    bytes: Aligned,
    ends: [(u16, u16); COUNT],
    count: usize,
    overflow: bool,
}

#[derive(Clone, Debug)]
#[repr(C, align(16))]
struct Aligned([u8; BYTES]);

impl Default for Arguments {
    fn default() -> Self {
        Self { bytes: Aligned([0; BYTES]), ends: [(0, 0); COUNT], count: 0, overflow: false }
    }
}

impl Arguments {
    /// Appends one argument.
    pub fn push<A: KernelArgument>(&mut self, argument: A) {
        let start = self.ends[..self.count].last().map_or(0, |&(_, end)| usize::from(end));
        let start = start.next_multiple_of(align_of::<A>());
        let end = start + size_of::<A>();
        if self.count == COUNT || end > BYTES {
            self.overflow = true;
            return;
        }
        // SAFETY: an argument has no padding, so all its bytes are initialised.
        let from = unsafe { std::slice::from_raw_parts((&raw const argument).cast::<u8>(), size_of::<A>()) };
        self.bytes.0[start..end].copy_from_slice(from);
        self.ends[self.count] = (start as u16, end as u16);
        self.count += 1;
    }

    /// Whether more was appended than there is room for: 32 arguments, 1024 bytes.
    pub fn overflows(&self) -> bool {
        self.overflow
    }

    /// Each argument's bytes.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.ends[..self.count].iter().map(|&(start, end)| &self.bytes.0[usize::from(start)..usize::from(end)])
    }

    /// Each argument's address, as the driver wants them; the rest is null.
    pub(super) fn addresses(&self) -> [*mut std::ffi::c_void; COUNT] {
        let mut addresses = [std::ptr::null_mut(); COUNT];
        for (address, argument) in addresses.iter_mut().zip(self.iter()) {
            *address = argument.as_ptr().cast_mut().cast();
        }
        addresses
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    #[repr(C)]
    struct Strides([u64; 4]);
    // SAFETY: four numbers, no padding.
    unsafe impl KernelArgument for Strides {}

    #[test]
    fn arguments_keep_their_bytes_and_alignment() {
        let mut arguments = Arguments::default();
        arguments.push(7u32);
        arguments.push(DevicePointer(0x1234));
        arguments.push(-1i32);
        arguments.push(Strides([1, 2, 3, 4]));
        let bytes: Vec<_> = arguments.iter().collect();
        assert_eq!(bytes[0], 7u32.to_ne_bytes());
        assert_eq!(bytes[1], 0x1234u64.to_ne_bytes());
        assert_eq!(bytes[2], (-1i32).to_ne_bytes());
        assert_eq!(bytes[3][24..], 4u64.to_ne_bytes());
        let addresses = arguments.addresses();
        assert!(addresses[1].addr() % 8 == 0 && addresses[3].addr() % 8 == 0 && addresses[4].is_null());
    }

    #[test]
    fn too_many_arguments_are_noticed() {
        let mut arguments = Arguments::default();
        (0..COUNT as u32).for_each(|i| arguments.push(i));
        assert!(!arguments.overflows());
        arguments.push(0u32);
        assert!(arguments.overflows());
    }
}
