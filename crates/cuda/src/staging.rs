//! Between pageable host memory and the device: pinned buffers in pairs, one filled or emptied while the other is transferred.

use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError};

use batchla_core::Error;

use crate::driver::{DevicePointer, Driver, DriverResult, EventHandle};
use crate::stream::Stream;

/// Bytes of one buffer.
pub(crate) const CHUNK: usize = 16 << 20;
/// Pairs that are kept for the next transfer.
const KEPT: usize = 2;
/// From here on a host copy is worth threads: one core's copy is slower than the link.
const PARALLEL: usize = 4 << 20;
const THREADS: usize = 4;

/// Two pinned buffers, each with an event that is passed when its last transfer is.
#[derive(Debug)]
struct Pair {
    driver: Arc<dyn Driver>,
    buffers: Vec<(NonNull<u8>, EventHandle)>,
}

// SAFETY: owns its buffers, as a `Box` would.
unsafe impl Send for Pair {}

impl Pair {
    fn new(driver: &Arc<dyn Driver>) -> DriverResult<Self> {
        let mut pair = Self { driver: Arc::clone(driver), buffers: Vec::with_capacity(2) };
        for _ in 0..2 {
            let event = driver.create_event(false)?;
            match driver.allocate_pinned(CHUNK) {
                Ok(buffer) => pair.buffers.push((buffer, event)),
                Err(error) => {
                    // SAFETY: just created, known to nobody else.
                    let _ = unsafe { driver.destroy_event(event) };
                    return Err(error);
                }
            }
        }
        Ok(pair)
    }
}

impl Drop for Pair {
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

/// The pairs of a device that no transfer uses at the moment.
#[derive(Debug)]
pub(crate) struct StagingPool {
    driver: Arc<dyn Driver>,
    pairs: Mutex<Vec<Pair>>,
}

impl StagingPool {
    pub(crate) fn new(driver: Arc<dyn Driver>) -> Self {
        Self { driver, pairs: Mutex::default() }
    }

    fn take(&self) -> DriverResult<Pair> {
        let kept = self.pairs.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.map_or_else(|| Pair::new(&self.driver), Ok)
    }

    fn give(&self, pair: Pair) {
        let mut pairs = self.pairs.lock().unwrap_or_else(PoisonError::into_inner);
        if pairs.len() < KEPT {
            pairs.push(pair);
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
    let driver = stream.device().driver();
    if pinned(driver, from, bytes) {
        // SAFETY: the caller's promise; waited for before the host memory is given back, whatever was reported.
        let queued = unsafe { driver.copy_to_device(from, to, bytes, stream.handle()) };
        let waited = driver.synchronize(stream.handle());
        return stream.check("write", queued.and(waited));
    }
    staged(stream, "write", |pair| {
        for (i, start) in (0..bytes).step_by(CHUNK).enumerate() {
            let (buffer, event) = pair.buffers[i % 2];
            let len = CHUNK.min(bytes - start);
            // The transfer out of this buffer two chunks ago, or of an earlier call.
            driver.synchronize_event(event)?;
            // SAFETY: within both sides; no transfer uses the buffer, and nobody else has it.
            unsafe { copy(from.add(start), buffer.as_ptr(), len) };
            let part = DevicePointer(to.0 + start as u64);
            // SAFETY: within both sides; the buffer stays until its event is passed.
            unsafe { driver.copy_to_device(buffer.as_ptr(), part, len, stream.handle()) }?;
            driver.record(event, stream.handle())?;
        }
        Ok(())
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
    let driver = stream.device().driver();
    if pinned(driver, to, bytes) {
        // SAFETY: the caller's promise; waited for before the host memory is given back, whatever was reported.
        let queued = unsafe { driver.copy_to_host(from, to, bytes, stream.handle()) };
        let waited = driver.synchronize(stream.handle());
        return stream.check("read", queued.and(waited));
    }
    staged(stream, "read", |pair| {
        let chunks = bytes.div_ceil(CHUNK);
        // One step more than chunks: each step queues one transfer and then empties the buffer of the one before.
        for i in 0..=chunks {
            if i < chunks {
                let (buffer, event) = pair.buffers[i % 2];
                let (start, len) = (i * CHUNK, CHUNK.min(bytes - i * CHUNK));
                // A transfer of an earlier call may still read the buffer.
                driver.synchronize_event(event)?;
                let part = DevicePointer(from.0 + start as u64);
                // SAFETY: within both sides; the buffer was emptied in the step before, and stays until its event is passed.
                unsafe { driver.copy_to_host(part, buffer.as_ptr(), len, stream.handle()) }?;
                driver.record(event, stream.handle())?;
            }
            if let Some(before) = i.checked_sub(1) {
                let (buffer, event) = pair.buffers[before % 2];
                let (start, len) = (before * CHUNK, CHUNK.min(bytes - before * CHUNK));
                driver.synchronize_event(event)?;
                // SAFETY: within both sides; the transfer into the buffer is done.
                unsafe { copy(buffer.as_ptr(), to.add(start), len) };
            }
        }
        Ok(())
    })
}

/// Runs a transfer with a pair of buffers.
fn staged(stream: &Stream, operation: &str, transfer: impl FnOnce(&Pair) -> DriverResult<()>) -> Result<(), Error> {
    let pool = stream.device().staging();
    let pair = stream.check(operation, pool.take())?;
    match transfer(&pair) {
        Ok(()) => {
            pool.give(pair);
            Ok(())
        }
        Err(error) => {
            // A transfer may be queued whose event is not: wait for all, or lose the buffers.
            if stream.device().driver().synchronize(stream.handle()).is_err() {
                std::mem::forget(pair);
            }
            stream.check(operation, Err(error))
        }
    }
}

/// Whether a transfer may go to and from this memory directly. Not worth asking for little.
fn pinned(driver: &dyn Driver, host: *const u8, bytes: usize) -> bool {
    bytes >= 64 << 10 && driver.is_pinned(host) && driver.is_pinned(host.wrapping_add(bytes - 1))
}

/// Copies on the host, large pieces by several threads.
///
/// # Safety
/// Both sides have `len` bytes and do not overlap.
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get().min(THREADS));
    if len < PARALLEL || threads == 1 {
        // SAFETY: the caller's promise.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
    }
    // SAFETY: the caller's promise; the destination is plain memory that nobody else touches, of any bytes.
    let to = unsafe { std::slice::from_raw_parts_mut(to.cast::<std::mem::MaybeUninit<u8>>(), len) };
    // SAFETY: the caller's promise.
    let from = unsafe { std::slice::from_raw_parts(from.cast::<std::mem::MaybeUninit<u8>>(), len) };
    let part = len.div_ceil(threads);
    let work = Mutex::new(from.chunks(part).zip(to.chunks_mut(part)));
    // Each takes parts until none is left, so that it does not matter how many threads the system gives.
    let copy_parts = || loop {
        let next = work.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some((from, to)) = next else { return };
        to.copy_from_slice(from);
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            let _ = std::thread::Builder::new().spawn_scoped(scope, copy_parts);
        }
        copy_parts();
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_copy_by_threads_copies_every_byte() {
        for len in [0, 1, PARALLEL - 1, PARALLEL, PARALLEL + 13] {
            let from: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
            let mut to = vec![0; len];
            // SAFETY: two vectors of `len` bytes.
            unsafe { copy(from.as_ptr(), to.as_mut_ptr(), len) };
            assert!(from == to, "{len}");
        }
    }
}
