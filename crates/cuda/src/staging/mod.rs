//! Between host memory and the device: page-locked memory directly, other memory by way of page-locked buffers that are filled and emptied by
//! several threads while others are transferred.

mod copy;
mod side;

use std::collections::VecDeque;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use batchla_core::Error;

pub(crate) use self::side::Side;
use crate::driver::{DevicePointer, Driver, DriverResult, EventHandle};
use crate::stream::Stream;

/// Bytes of one buffer: a whole number of elements of any type, and so many that threads seldom wait for each other.
pub(crate) const PIECE: usize = 16 << 20;
/// Buffers of a ring, at most: one is filled or emptied while others are transferred.
const BUFFERS: usize = 4;
/// Rings that are kept for the next transfer: one for each direction.
const KEPT: usize = 2;

/// Page-locked buffers in turn, each with an event that is passed when its last transfer is.
#[derive(Debug)]
pub(crate) struct Ring {
    driver: Arc<dyn Driver>,
    buffers: Vec<(NonNull<u8>, EventHandle)>,
    turn: usize,
    /// Transfers to the host whose buffers are not emptied yet, oldest first; the newest is in the buffer before `turn`.
    owed: VecDeque<(Side, Range<usize>)>,
}

// SAFETY: owns its buffers, as a `Box` would.
unsafe impl Send for Ring {}

impl Ring {
    fn new(driver: &Arc<dyn Driver>) -> Self {
        Self { driver: Arc::clone(driver), buffers: Vec::new(), turn: 0, owed: VecDeque::new() }
    }

    /// The next buffer, once its last transfer is done; a new one as long as there are few and that would be waited for.
    fn next(&mut self) -> DriverResult<(NonNull<u8>, EventHandle)> {
        if self.buffers.len() < BUFFERS {
            let free = match self.buffers.get(self.turn) {
                Some(&(_, event)) => self.owed.len() < self.buffers.len() && self.driver.passed(event)?,
                None => false,
            };
            if !free {
                let buffer = self.make()?;
                self.buffers.insert(self.turn, buffer);
            }
        }
        let (buffer, event) = self.buffers[self.turn];
        self.driver.synchronize_event(event)?;
        self.turn = (self.turn + 1) % self.buffers.len();
        Ok((buffer, event))
    }

    fn make(&self) -> DriverResult<(NonNull<u8>, EventHandle)> {
        let event = self.driver.create_event(false)?;
        self.driver.allocate_pinned(PIECE).map(|buffer| (buffer, event)).inspect_err(|_| {
            // SAFETY: just created, known to nobody else.
            let _ = unsafe { self.driver.destroy_event(event) };
        })
    }

    /// Queues the copy of a range of bytes to the device. Other than page-locked memory may be reused on return.
    ///
    /// # Safety
    /// The range is within the side, whose elements may be read, and `to` has as many bytes. Page-locked memory stays until the stream has
    /// passed the copy.
    pub(crate) unsafe fn send(
        &mut self,
        stream: &Stream,
        from: Side,
        range: Range<usize>,
        to: DevicePointer,
    ) -> DriverResult<()> {
        if let Some(start) = pinned(&*self.driver, from, &range) {
            // SAFETY: the caller's promise.
            return unsafe { self.driver.copy_to_device(start, to, range.len(), stream.handle()) };
        }
        for piece in pieces(range.clone()) {
            let (buffer, event) = self.next()?;
            // SAFETY: within the side; no transfer uses the buffer, and nobody else has it.
            unsafe { from.gather(piece.clone(), buffer.as_ptr()) };
            let part = DevicePointer(to.0 + (piece.start - range.start) as u64);
            // SAFETY: within both sides; the buffer stays until its event is passed.
            unsafe { self.driver.copy_to_device(buffer.as_ptr(), part, piece.len(), stream.handle()) }?;
            self.driver.record(event, stream.handle())?;
        }
        Ok(())
    }

    /// Queues the copy of as many bytes as the range has to the host. They are there once the stream has passed the copy and
    /// [`Ring::settle`] was called.
    ///
    /// # Safety
    /// `from` has as many bytes; the range is within the side, whose elements stay, nobody else's, until then.
    pub(crate) unsafe fn fetch(
        &mut self,
        stream: &Stream,
        from: DevicePointer,
        to: Side,
        range: Range<usize>,
    ) -> DriverResult<()> {
        if let Some(start) = pinned(&*self.driver, to, &range) {
            // SAFETY: the caller's promise.
            return unsafe { self.driver.copy_to_host(from, start, range.len(), stream.handle()) };
        }
        for piece in pieces(range.clone()) {
            if self.owed.len() == BUFFERS {
                self.empty_oldest()?;
            }
            let (buffer, event) = self.next()?;
            let part = DevicePointer(from.0 + (piece.start - range.start) as u64);
            // SAFETY: within both sides; the buffer is empty, and stays until its event is passed.
            unsafe { self.driver.copy_to_host(part, buffer.as_ptr(), piece.len(), stream.handle()) }?;
            self.driver.record(event, stream.handle())?;
            self.owed.push_back((to, piece));
        }
        Ok(())
    }

    /// Empties all buffers into the memory that they are for.
    pub(crate) fn settle(&mut self) -> DriverResult<()> {
        while !self.owed.is_empty() {
            self.empty_oldest()?;
        }
        Ok(())
    }

    fn empty_oldest(&mut self) -> DriverResult<()> {
        let count = self.buffers.len();
        let (buffer, event) = self.buffers[(self.turn + count - self.owed.len()) % count];
        self.driver.synchronize_event(event)?;
        if let Some((to, piece)) = self.owed.pop_front() {
            // SAFETY: promised to `fetch`; the transfer into the buffer is done.
            unsafe { to.scatter(piece, buffer.as_ptr()) };
        }
        Ok(())
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        for &(buffer, event) in &self.buffers {
            // A buffer that the device may still write to is better lost than freed.
            if self.driver.synchronize_event(event).is_ok() {
                // SAFETY: ours, and no transfer uses it any more.
                let _ = unsafe { self.driver.free_pinned(buffer) };
            }
            // SAFETY: ours alone.
            let _ = unsafe { self.driver.destroy_event(event) };
        }
    }
}

/// The rings of a device that no transfer uses at the moment.
#[derive(Debug)]
pub(crate) struct StagingPool {
    driver: Arc<dyn Driver>,
    rings: Mutex<Vec<Ring>>,
}

impl StagingPool {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, rings: Mutex::default() }
    }

    fn take(&self) -> Ring {
        let kept = self.rings.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| Ring::new(&self.driver))
    }

    fn give(&self, ring: Ring) {
        let mut rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
        if rings.len() < KEPT {
            rings.push(ring);
        }
    }
}

/// Copies host memory to the device in the order of `stream`; the host memory may be reused on return.
///
/// # Safety
/// Both sides have `bytes` bytes.
pub(crate) unsafe fn write(stream: &Stream, from: *const u8, to: DevicePointer, bytes: usize) -> Result<(), Error> {
    stream.ready("write")?;
    if bytes == 0 {
        return Ok(());
    }
    let from = Side::plain(from.cast_mut());
    with_ring(stream, |ring| {
        // SAFETY: the caller's promise; page-locked memory is waited for here, or, where something failed, by `with_ring`.
        stream.check("write", unsafe { ring.send(stream, from, 0..bytes, to) })?;
        wait_if_pinned(stream, "write", from, bytes)
    })
}

/// Copies device memory to the host after the work queued on `stream`.
///
/// # Safety
/// Both sides have `bytes` bytes.
pub(crate) unsafe fn read(stream: &Stream, from: DevicePointer, to: *mut u8, bytes: usize) -> Result<(), Error> {
    stream.ready("read")?;
    if bytes == 0 {
        return Ok(());
    }
    let to = Side::plain(to);
    with_ring(stream, |ring| {
        // SAFETY: as above.
        let queued = unsafe { ring.fetch(stream, from, to, 0..bytes) };
        stream.check("read", queued.and_then(|()| ring.settle()))?;
        wait_if_pinned(stream, "read", to, bytes)
    })
}

fn wait_if_pinned(stream: &Stream, operation: &str, side: Side, bytes: usize) -> Result<(), Error> {
    let driver = stream.device().driver();
    match pinned(driver, side, &(0..bytes)) {
        Some(_) => stream.check(operation, driver.synchronize(stream.handle())),
        None => Ok(()),
    }
}

/// Runs transfers over `stream` with a ring of buffers. Where they fail, all that they queued is waited for, or, where that fails too, the buffers
/// are lost.
pub(crate) fn with_ring(stream: &Stream, transfers: impl FnOnce(&mut Ring) -> Result<(), Error>) -> Result<(), Error> {
    let pool = stream.device().staging();
    let mut ring = pool.take();
    let done = transfers(&mut ring);
    // Where they failed, a transfer may be queued whose event is not.
    if done.is_err() && stream.device().driver().synchronize(stream.handle()).is_err() {
        std::mem::forget(ring);
    } else {
        ring.owed.clear();
        pool.give(ring);
    }
    done
}

fn pieces(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    range.clone().step_by(PIECE).map(move |start| start..range.end.min(start + PIECE))
}

/// The address of memory that a transfer may go to and from directly. Not worth asking for little.
fn pinned(driver: &dyn Driver, side: Side, range: &Range<usize>) -> Option<*mut u8> {
    let start = side.plain_at(range.start).filter(|_| range.len() >= 64 << 10)?;
    (driver.is_pinned(start) && driver.is_pinned(start.wrapping_add(range.len() - 1))).then_some(start)
}
