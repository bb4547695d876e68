//! Device memory: arrays that own it, slices that borrow it.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Range;

use batchla_core::{Element, Error, ErrorKind, Memory, too_long};

use crate::driver::{DevicePointer, code};
use crate::stream::Stream;

/// The memory of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMemory;

/// Owned device memory, at home on a stream: work on it is in the order of that stream, and so is its end. Dropping it while work
/// is queued on it is safe, also on other streams if that work was launched through [`Launch`](crate::Launch).
pub struct DeviceArray<E: Element> {
    stream: Stream,
    pointer: DevicePointer,
    len: usize,
    elements: PhantomData<E>,
}

/// Borrowed device memory, to read.
#[derive(Clone, Copy)]
pub struct DeviceSlice<'a, E: Element> {
    stream: &'a Stream,
    pointer: DevicePointer,
    len: usize,
    elements: PhantomData<&'a E>,
}

/// Borrowed device memory, to write.
pub struct DeviceSliceMut<'a, E: Element> {
    stream: &'a Stream,
    pointer: DevicePointer,
    len: usize,
    elements: PhantomData<&'a mut E>,
}

impl<E: Element> DeviceArray<E> {
    /// `len` zeros, in the order of `stream`.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`], after which the device is as before; what the device reports, also of earlier work.
    pub fn zeroed(stream: &Stream, len: usize) -> Result<Self, Error> {
        // SAFETY: filled below, before anything is queued after it; all bytes zero is a valid element.
        let array = unsafe { Self::uninitialized(stream, len) }?;
        if len > 0 {
            let bytes = len * size_of::<E>();
            // SAFETY: just allocated in the order of this stream.
            let filled = unsafe { stream.device().driver().fill(array.pointer, 0, bytes, stream.handle()) };
            stream.check("allocate", filled)?;
        }
        Ok(array)
    }

    /// `len` elements of any bytes, in the order of `stream`.
    ///
    /// # Errors
    /// As [`DeviceArray::zeroed`].
    ///
    /// # Safety
    /// No element is read before it is written.
    pub unsafe fn uninitialized(stream: &Stream, len: usize) -> Result<Self, Error> {
        stream.ready("allocate")?;
        let elements = PhantomData;
        if len == 0 {
            return Ok(Self { stream: stream.clone(), pointer: DevicePointer(0), len, elements });
        }
        // What the device can never hold is not asked of the driver: its answers to absurd sizes differ.
        let there = stream.device().limits().memory_bytes;
        let bytes = len.checked_mul(size_of::<E>()).filter(|&bytes| bytes as u64 <= there);
        let allocated = match bytes {
            Some(bytes) => stream.device().driver().allocate(bytes, stream.handle()),
            None => return Err(exhausted::<E>(stream, len)),
        };
        match allocated {
            Err(error) if error.code == code::OUT_OF_MEMORY => Err(exhausted::<E>(stream, len).caused_by(error)),
            other => {
                let pointer = stream.check("allocate", other)?;
                Ok(Self { stream: stream.clone(), pointer, len, elements })
            }
        }
    }

    /// To read.
    pub fn slice(&self) -> DeviceSlice<'_, E> {
        DeviceSlice { stream: &self.stream, pointer: self.pointer, len: self.len, elements: PhantomData }
    }

    /// To write.
    pub fn slice_mut(&mut self) -> DeviceSliceMut<'_, E> {
        DeviceSliceMut { stream: &self.stream, pointer: self.pointer, len: self.len, elements: PhantomData }
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

fn exhausted<E>(stream: &Stream, len: usize) -> Error {
    let wanted = len as u128 * size_of::<E>() as u128;
    let there = match stream.device().driver().memory() {
        Ok((free, total)) => format!("{free} of {total} are free"),
        Err(_) => "the device does not say how many are free".to_owned(),
    };
    let what = format!("{wanted} bytes of device memory for {len} elements are not to be had: {there}");
    Error::new(ErrorKind::OutOfMemory, "allocate", what)
        .advise("work on the batch in parts, or free what else is on the device")
}

impl<E: Element> Drop for DeviceArray<E> {
    fn drop(&mut self) {
        if self.len > 0 {
            self.stream.free(self.pointer);
        }
    }
}

impl<'a, E: Element> DeviceSlice<'a, E> {
    /// Device memory of the caller's: a `CUdeviceptr`, as cudarc has it too. Work on it will be in the order of `stream`.
    ///
    /// # Safety
    /// There are `len` initialised elements of the stream's device at `pointer`, which is a multiple of their size (16 bytes for c64, more than Rust asks of it); for `'a` they stay, and nobody
    /// writes them except in the order of `stream`.
    pub unsafe fn from_raw(stream: &'a Stream, pointer: u64, len: usize) -> Self {
        Self { stream, pointer: DevicePointer(pointer), len, elements: PhantomData }
    }

    /// The `CUdeviceptr`; 0 for an empty array of ours.
    pub fn as_raw(&self) -> u64 {
        self.pointer.0
    }

    /// The stream in whose order work on it is.
    pub fn stream(&self) -> &'a Stream {
        self.stream
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A part of it; none where it has no such part.
    pub fn part(self, range: Range<usize>) -> Option<Self> {
        let len = range.end.checked_sub(range.start).filter(|_| range.end <= self.len)?;
        let pointer = DevicePointer(self.pointer.0 + (range.start * size_of::<E>()) as u64);
        Some(Self { pointer, len, ..self })
    }
}

impl<'a, E: Element> DeviceSliceMut<'a, E> {
    /// Device memory of the caller's: a `CUdeviceptr`, as cudarc has it too. Work on it will be in the order of `stream`.
    ///
    /// # Safety
    /// There are `len` initialised elements of the stream's device at `pointer`, which is a multiple of their size (16 bytes for c64, more than Rust asks of it); for `'a` they stay, and nobody
    /// else reads or writes them except in the order of `stream`.
    pub unsafe fn from_raw(stream: &'a Stream, pointer: u64, len: usize) -> Self {
        Self { stream, pointer: DevicePointer(pointer), len, elements: PhantomData }
    }

    /// The `CUdeviceptr`; 0 for an empty array of ours.
    pub fn as_raw(&self) -> u64 {
        self.pointer.0
    }

    /// The stream in whose order work on it is.
    pub fn stream(&self) -> &'a Stream {
        self.stream
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// To read, for a time.
    pub fn share(&self) -> DeviceSlice<'_, E> {
        DeviceSlice { stream: self.stream, pointer: self.pointer, len: self.len, elements: PhantomData }
    }

    /// To write, for a shorter time.
    pub fn reborrow(&mut self) -> DeviceSliceMut<'_, E> {
        DeviceSliceMut { stream: self.stream, pointer: self.pointer, len: self.len, elements: PhantomData }
    }

    /// A part of it; none where it has no such part.
    pub fn part(self, range: Range<usize>) -> Option<Self> {
        let part = self.share().part(range)?;
        let (pointer, len) = (part.pointer, part.len);
        Some(Self { pointer, len, ..self })
    }
}

impl DeviceMemory {
    /// Copies host data into the front of device memory; the host data may be reused on return.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] where there is less device memory; what the device reports, also of earlier work.
    pub fn write<E: Element>(from: &[E], to: DeviceSliceMut<'_, E>) -> Result<(), Error> {
        if from.len() > to.len {
            return Err(too_long(from.len(), to.len));
        }
        // SAFETY: there is room, borrowed uniquely, on a device that holds elements as the host does.
        unsafe { crate::staging::write(to.stream, from.as_ptr().cast(), to.pointer, size_of_val(from)) }
    }

    /// Copies device memory into the front of other device memory, in the order of both.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] where there is less room; what the device reports.
    pub fn copy<E: Element>(from: DeviceSlice<'_, E>, to: DeviceSliceMut<'_, E>) -> Result<(), Error> {
        if from.len > to.len {
            return Err(too_long(from.len, to.len));
        }
        if from.is_empty() {
            return Ok(());
        }
        let (stream, bytes) = (to.stream, from.len * size_of::<E>());
        stream.wait_for(from.stream)?;
        // SAFETY: there is room, borrowed uniquely, so the two do not overlap; both streams' orders are kept.
        let copied =
            unsafe { stream.device().driver().copy_on_device(from.pointer, to.pointer, bytes, stream.handle()) };
        stream.check("copy", copied)?;
        from.stream.wait_for(stream)
    }
}

impl Memory for DeviceMemory {
    type Array<E: Element> = DeviceArray<E>;
    type Slice<'a, E: Element> = DeviceSlice<'a, E>;
    type SliceMut<'a, E: Element> = DeviceSliceMut<'a, E>;
    type Span<'a, E: Element> = DeviceSlice<'a, E>;
    type SpanMut<'a, E: Element> = DeviceSliceMut<'a, E>;

    fn slice<E: Element>(array: &DeviceArray<E>) -> DeviceSlice<'_, E> {
        array.slice()
    }
    fn slice_mut<E: Element>(array: &mut DeviceArray<E>) -> DeviceSliceMut<'_, E> {
        array.slice_mut()
    }
    fn span<E: Element>(array: &DeviceArray<E>) -> DeviceSlice<'_, E> {
        array.slice()
    }
    fn span_mut<E: Element>(array: &mut DeviceArray<E>) -> DeviceSliceMut<'_, E> {
        array.slice_mut()
    }
    fn slice_len<E: Element>(slice: &DeviceSlice<'_, E>) -> usize {
        slice.len
    }
    fn slice_mut_len<E: Element>(slice: &DeviceSliceMut<'_, E>) -> usize {
        slice.len
    }
    fn span_len<E: Element>(span: &DeviceSlice<'_, E>) -> usize {
        span.len
    }
    fn span_mut_len<E: Element>(span: &DeviceSliceMut<'_, E>) -> usize {
        span.len
    }
    fn reborrow_slice<'short, E: Element>(slice: &'short DeviceSlice<'_, E>) -> DeviceSlice<'short, E> {
        *slice
    }
    fn reborrow_span<'short, E: Element>(span: &'short DeviceSlice<'_, E>) -> DeviceSlice<'short, E> {
        *span
    }
    fn share_span<'short, E: Element>(span: &'short DeviceSliceMut<'_, E>) -> DeviceSlice<'short, E> {
        span.share()
    }
    fn reborrow_span_mut<'short, E: Element>(span: &'short mut DeviceSliceMut<'_, E>) -> DeviceSliceMut<'short, E> {
        span.reborrow()
    }
    fn read<E: Element>(slice: DeviceSlice<'_, E>, to: &mut [E]) -> Result<(), Error> {
        if to.len() > slice.len {
            return Err(too_long(to.len(), slice.len));
        }
        // SAFETY: there are as many elements, of which any that the device wrote are valid on the host.
        unsafe { crate::staging::read(slice.stream, slice.pointer, to.as_mut_ptr().cast(), size_of_val(to)) }
    }
}

impl<E: Element> fmt::Debug for DeviceArray<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.slice().fmt(f)
    }
}
impl<E: Element> fmt::Debug for DeviceSlice<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} elements of {} at {:#x}", self.len, std::any::type_name::<E>(), self.pointer.0)
    }
}
impl<E: Element> fmt::Debug for DeviceSliceMut<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.share().fmt(f)
    }
}
