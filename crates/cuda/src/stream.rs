//! Queues of work on a device, and order among them.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use batchla_core::{Error, ErrorKind};

use crate::device::Device;
use crate::driver::{DevicePointer, DriverResult, EventHandle, StreamHandle};
use crate::event::Event;
use crate::graph::Graph;

/// How many operations a stream remembers, to name them when one went wrong.
const REMEMBERED: usize = 4;

/// A queue of work on a device: one of ours, or one of the caller's. A cheap handle; dropping the last one waits for the work.
#[derive(Clone)]
pub struct Stream(Arc<Inner>);

struct Inner {
    device: Device,
    handle: StreamHandle,
    ours: bool,
    /// Marks this stream's end when another must wait for it; under a lock from the mark to the wait.
    order: Mutex<EventHandle>,
    recent: Mutex<VecDeque<Queued>>,
    /// Memory that was dropped during a capture.
    dropped: Mutex<Vec<DevicePointer>>,
}

/// An operation that was queued.
struct Queued {
    operation: &'static str,
    kernel: Arc<str>,
    grid: u32,
    block: u32,
    shared_bytes: u32,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stream {
    /// A stream that waits for no other, the default stream included.
    ///
    /// # Errors
    /// What the device reports.
    pub fn new(device: &Device) -> Result<Self, Error> {
        device.alive("create stream")?;
        let handle = device.check("create stream", device.driver().create_stream())?;
        Self::of(device, handle, true)
    }

    /// A stream of the caller's: a `CUstream`, as cudarc and the runtime have it too.
    ///
    /// # Errors
    /// What the device reports.
    ///
    /// # Safety
    /// `raw` is a stream of this device's primary context, not the default stream (null), and is not destroyed before the last handle
    /// of this one, and of the arrays made on it, is dropped.
    pub unsafe fn from_raw(device: &Device, raw: *mut c_void) -> Result<Self, Error> {
        if raw.is_null() {
            return Err(Error::new(ErrorKind::Argument, "use stream", "the default stream was given")
                .advise("make a stream; the default stream waits for all others"));
        }
        // SAFETY: the caller's promise.
        let handle = unsafe { StreamHandle::from_raw(raw.addr() as u64) };
        Self::of(device, handle, false)
    }

    fn of(device: &Device, handle: StreamHandle, ours: bool) -> Result<Self, Error> {
        let order = device.driver().create_event(false);
        if ours && order.is_err() {
            // SAFETY: made by the caller of this function, and known to nobody else.
            let _ = unsafe { device.driver().destroy_stream(handle) };
        }
        let order = Mutex::new(device.check("create stream", order)?);
        let (recent, dropped) = Default::default();
        Ok(Self(Arc::new(Inner { device: device.clone(), handle, ours, order, recent, dropped })))
    }

    /// The `CUstream`.
    pub fn as_raw(&self) -> *mut c_void {
        std::ptr::with_exposed_provenance_mut(self.0.handle.as_raw() as usize)
    }

    /// Its device.
    pub fn device(&self) -> &Device {
        &self.0.device
    }

    /// Waits for all its work.
    ///
    /// # Errors
    /// What the device reports, also of earlier work, which the message names; [`ErrorKind::Device`] while it captures.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.ready("synchronize")?;
        self.0.free_dropped();
        self.check("synchronize", self.0.device.driver().synchronize(self.0.handle))
    }

    /// Makes what is queued from now on wait for what `other` has queued until now. The host does not wait.
    ///
    /// # Errors
    /// What the device reports; [`ErrorKind::Argument`] where exactly one of the two captures.
    pub fn wait_for(&self, other: &Self) -> Result<(), Error> {
        if self.same(other) {
            return Ok(());
        }
        if self.is_capturing()? != other.is_capturing()? {
            return Err(Error::new(ErrorKind::Argument, "capture", "memory of a stream that is not captured was used")
                .advise("capture only work on memory that was allocated on the captured stream"));
        }
        self.follow(other)
    }

    /// Makes what is queued from now on wait for a point in another stream. The host does not wait.
    ///
    /// # Errors
    /// What the device reports.
    pub fn wait_for_event(&self, event: &Event) -> Result<(), Error> {
        self.check("order streams", self.0.device.driver().wait(self.0.handle, event.handle()))
    }

    /// As [`Stream::wait_for`], where the two may differ in whether they capture: one becomes part of what the other captures.
    pub(crate) fn follow(&self, other: &Self) -> Result<(), Error> {
        let driver = self.0.device.driver();
        let event = locked(&other.0.order);
        other.check("order streams", driver.record(*event, other.0.handle))?;
        self.check("order streams", driver.wait(self.0.handle, *event))
    }

    /// Marks the present end of the stream with the time at which it is passed.
    ///
    /// # Errors
    /// What the device reports.
    pub fn record(&self) -> Result<Event, Error> {
        let driver = self.0.device.driver();
        let event = Event::of(self, self.check("record", driver.create_event(true))?);
        self.check("record", driver.record(event.handle(), self.0.handle))?;
        Ok(event)
    }

    /// Collects what `work` queues on this stream into a graph instead of running it. Memory that is dropped meanwhile is freed after.
    ///
    /// # Errors
    /// Those of `work`; what the device reports.
    pub fn capture(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<Graph, Error> {
        self.ready("capture")?;
        let driver = self.0.device.driver();
        self.check("capture", driver.begin_capture(self.0.handle))?;
        // A stream that captures is of no use to anybody, so the capture ends before a panic goes on.
        let done = catch_unwind(AssertUnwindSafe(work));
        let ended = driver.end_capture(self.0.handle);
        let graph = ended.map(|handle| Graph::of(self, handle));
        self.0.free_dropped();
        done.unwrap_or_else(|panic| resume_unwind(panic))?;
        self.check("capture", graph)
    }

    /// Whether its work is being captured.
    pub(crate) fn is_capturing(&self) -> Result<bool, Error> {
        self.check("query stream", self.0.device.driver().is_capturing(self.0.handle))
    }

    pub(crate) fn handle(&self) -> StreamHandle {
        self.0.handle
    }

    /// Whether two handles are of one queue.
    pub(crate) fn same(&self, other: &Self) -> bool {
        self.0.handle == other.0.handle && self.0.device.same(&other.0.device)
    }

    /// Refuses what waits or allocates where the device is lost or the stream captures.
    pub(crate) fn ready(&self, operation: &str) -> Result<(), Error> {
        self.0.device.alive(operation)?;
        if self.is_capturing()? {
            return Err(Error::new(ErrorKind::Device, operation, "the stream's work is being captured into a graph")
                .advise("prepare, allocate, read and synchronise outside a capture"));
        }
        Ok(())
    }

    /// A result of the driver as one of ours, with the stream's last operations where one of them went wrong.
    pub(crate) fn check<T>(&self, operation: &str, result: DriverResult<T>) -> Result<T, Error> {
        result.map_err(|error| self.0.device.explain(operation, error, || self.recent()))
    }

    /// Remembers what was queued.
    pub(crate) fn remember(
        &self,
        operation: &'static str,
        kernel: &Arc<str>,
        grid: u32,
        block: u32,
        shared_bytes: u32,
    ) {
        let mut recent = locked(&self.0.recent);
        recent.truncate(REMEMBERED - 1);
        recent.push_front(Queued { operation, kernel: Arc::clone(kernel), grid, block, shared_bytes });
    }

    fn recent(&self) -> String {
        let recent = locked(&self.0.recent);
        if recent.is_empty() {
            return "no kernel was queued on this stream before; look at what other streams of the device do".into();
        }
        let each = recent.iter().map(|q| {
            let Queued { operation, kernel, grid, block, shared_bytes } = q;
            format!("{operation} (kernel {kernel}, {grid} blocks of {block} threads, {shared_bytes} bytes shared)")
        });
        format!("queued last on this stream, newest first: {}", each.collect::<Vec<_>>().join(", "))
    }

    /// Frees memory of this stream after the work queued on it; during a capture, after that.
    pub(crate) fn free(&self, pointer: DevicePointer) {
        locked(&self.0.dropped).push(pointer);
        if !self.is_capturing().unwrap_or(false) {
            self.0.free_dropped();
        }
    }
}

impl Inner {
    fn free_dropped(&self) {
        for pointer in std::mem::take(&mut *locked(&self.dropped)) {
            // SAFETY: pushed once, by the drop of its owner; uses on other streams were ordered before this stream's end.
            if let Err(error) = unsafe { self.device.driver().free(pointer, self.handle) } {
                log::debug!("device memory was not freed: {error}");
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let driver = self.device.driver();
        self.free_dropped();
        // Kernels must not be unloaded, nor the context left, under running work.
        if self.device.alive("drop stream").is_ok()
            && !driver.is_capturing(self.handle).unwrap_or(true)
            && let Err(error) = driver.synchronize(self.handle)
        {
            log::warn!("a dropped stream's last work failed: {error}");
        }
        // SAFETY: nobody has a handle any more.
        let event = unsafe { driver.destroy_event(*locked(&self.order)) };
        // SAFETY: ours, and nobody has a handle any more.
        let stream = if self.ours { unsafe { driver.destroy_stream(self.handle) } } else { Ok(()) };
        if let Err(error) = event.and(stream) {
            log::debug!("a stream was not destroyed: {error}");
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (raw, device) = (self.as_raw(), self.device());
        f.debug_struct("Stream").field("raw", &raw).field("ours", &self.0.ours).field("device", device).finish()
    }
}
