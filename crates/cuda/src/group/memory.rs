//! Memory that lies in parts on several GPUs.

use std::fmt;

use batchla_core::{Element, Error, Memory, too_long};

use crate::memory::{DeviceArray, DeviceMemory};

/// The memory of several GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupMemory;

/// Owned memory in parts: one after another, a part on each GPU; or, of a batch of one matrix, a copy on each.
#[derive(Debug)]
pub struct GroupArray<E: Element> {
    parts: Vec<DeviceArray<E>>,
    copies: bool,
}

/// Borrowed memory in parts, to read.
#[derive(Clone, Copy)]
pub struct GroupSlice<'a, E: Element> {
    parts: &'a [DeviceArray<E>],
    copies: bool,
}

/// Borrowed memory in parts, to write.
pub struct GroupSliceMut<'a, E: Element> {
    parts: &'a mut [DeviceArray<E>],
    copies: bool,
}

impl<E: Element> GroupArray<E> {
    pub(super) fn of(parts: Vec<DeviceArray<E>>, copies: bool) -> Self {
        Self { parts, copies }
    }

    /// Puts arrays together that lie on the GPUs already, one for each GPU in order, each with the matrices that
    /// [`CudaGroup::division`](crate::CudaGroup::division) says; of a batch of one matrix, see [`GroupArray::from_copies`].
    pub fn from_parts(parts: Vec<DeviceArray<E>>) -> Self {
        Self { parts, copies: false }
    }

    /// Puts arrays together that lie on the GPUs already, one for each GPU in order, and all hold the one matrix of a batch: what is written goes to all.
    pub fn from_copies(parts: Vec<DeviceArray<E>>) -> Self {
        Self { parts, copies: true }
    }

    /// The part on each GPU.
    pub fn parts(&self) -> &[DeviceArray<E>] {
        &self.parts
    }

    /// Takes the parts apart.
    pub fn into_parts(self) -> Vec<DeviceArray<E>> {
        self.parts
    }

    fn slice(&self) -> GroupSlice<'_, E> {
        GroupSlice { parts: &self.parts, copies: self.copies }
    }
}

impl<'a, E: Element> GroupSlice<'a, E> {
    /// The part on each GPU.
    pub fn parts(&self) -> &'a [DeviceArray<E>] {
        self.parts
    }

    /// Elements.
    pub fn len(&self) -> usize {
        match self.parts {
            [first, ..] if self.copies => first.len(),
            parts => parts.iter().map(DeviceArray::len).sum(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<'a, E: Element> GroupSliceMut<'a, E> {
    /// The part on each GPU.
    pub fn into_parts(self) -> &'a mut [DeviceArray<E>] {
        self.parts
    }

    /// To read, for a time.
    pub fn share(&self) -> GroupSlice<'_, E> {
        GroupSlice { parts: self.parts, copies: self.copies }
    }

    /// To write, for a shorter time.
    pub fn reborrow(&mut self) -> GroupSliceMut<'_, E> {
        GroupSliceMut { parts: self.parts, copies: self.copies }
    }
}

impl GroupMemory {
    /// Copies host data into the front; the host data may be reused on return. All GPUs are written to at once.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](batchla_core::ErrorKind::Argument) where there is less memory; what a device reports.
    pub fn write<E: Element>(from: &[E], to: GroupSliceMut<'_, E>) -> Result<(), Error> {
        let len = to.share().len();
        if from.len() > len {
            return Err(too_long(from.len(), len));
        }
        let (copies, mut rest) = (to.copies, from);
        let pieces = to.parts.iter_mut().map(|part| {
            let piece = if copies { from } else { rest.split_off(..part.len().min(rest.len())).unwrap_or_default() };
            (part, piece)
        });
        at_once(pieces, |(part, piece)| DeviceMemory::write(piece, part.slice_mut()))
    }
}

/// Does the work of each GPU on a thread of its own; waits for all.
fn at_once<P: Send>(parts: impl Iterator<Item = P>, work: impl Fn(P) -> Result<(), Error> + Sync) -> Result<(), Error> {
    let parts: Vec<P> = parts.collect();
    let mut done: Vec<Result<(), Error>> = parts.iter().map(|_| Ok(())).collect();
    rayon::scope(|scope| {
        for (part, done) in parts.into_iter().zip(&mut done) {
            let work = &work;
            scope.spawn(move |_| *done = work(part));
        }
    });
    done.into_iter().collect()
}

impl Memory for GroupMemory {
    type Array<E: Element> = GroupArray<E>;
    type Slice<'a, E: Element> = GroupSlice<'a, E>;
    type SliceMut<'a, E: Element> = GroupSliceMut<'a, E>;
    type Span<'a, E: Element> = GroupSlice<'a, E>;
    type SpanMut<'a, E: Element> = GroupSliceMut<'a, E>;

    fn slice<E: Element>(array: &GroupArray<E>) -> GroupSlice<'_, E> {
        array.slice()
    }
    fn slice_mut<E: Element>(array: &mut GroupArray<E>) -> GroupSliceMut<'_, E> {
        GroupSliceMut { parts: &mut array.parts, copies: array.copies }
    }
    fn span<E: Element>(array: &GroupArray<E>) -> GroupSlice<'_, E> {
        array.slice()
    }
    fn span_mut<E: Element>(array: &mut GroupArray<E>) -> GroupSliceMut<'_, E> {
        Self::slice_mut(array)
    }
    fn slice_len<E: Element>(slice: &GroupSlice<'_, E>) -> usize {
        slice.len()
    }
    fn slice_mut_len<E: Element>(slice: &GroupSliceMut<'_, E>) -> usize {
        slice.share().len()
    }
    fn span_len<E: Element>(span: &GroupSlice<'_, E>) -> usize {
        span.len()
    }
    fn span_mut_len<E: Element>(span: &GroupSliceMut<'_, E>) -> usize {
        span.share().len()
    }
    fn reborrow_slice<'short, E: Element>(slice: &'short GroupSlice<'_, E>) -> GroupSlice<'short, E> {
        *slice
    }
    fn reborrow_span<'short, E: Element>(span: &'short GroupSlice<'_, E>) -> GroupSlice<'short, E> {
        *span
    }
    fn share_span<'short, E: Element>(span: &'short GroupSliceMut<'_, E>) -> GroupSlice<'short, E> {
        span.share()
    }
    fn reborrow_span_mut<'short, E: Element>(span: &'short mut GroupSliceMut<'_, E>) -> GroupSliceMut<'short, E> {
        span.reborrow()
    }
    fn read<E: Element>(slice: GroupSlice<'_, E>, to: &mut [E]) -> Result<(), Error> {
        if to.len() > slice.len() {
            return Err(too_long(to.len(), slice.len()));
        }
        let mut rest = to;
        let pieces = slice.parts.iter().map(|part| {
            let piece = rest.split_off_mut(..part.len().min(rest.len())).unwrap_or_default();
            (part, piece)
        });
        at_once(pieces, |(part, piece)| DeviceMemory::read(part.slice(), piece))
    }
}

impl<E: Element> fmt::Debug for GroupSlice<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parts).finish()
    }
}
impl<E: Element> fmt::Debug for GroupSliceMut<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.share().fmt(f)
    }
}
