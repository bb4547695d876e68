//! Points in a stream, with their time.

use batchla_core::Error;

use crate::driver::EventHandle;
use crate::stream::Stream;

/// A point in a stream, with its time.
#[derive(Debug)]
pub struct Event {
    stream: Stream,
    handle: EventHandle,
}

impl Event {
    pub(crate) fn of(stream: &Stream, handle: EventHandle) -> Self {
        Self { stream: stream.clone(), handle }
    }

    pub(crate) fn handle(&self) -> EventHandle {
        self.handle
    }

    /// Whether the stream has passed it.
    ///
    /// # Errors
    /// What the device reports, also of earlier work.
    pub fn passed(&self) -> Result<bool, Error> {
        self.stream.check("query event", self.stream.device().driver().passed(self.handle))
    }

    /// Waits for it.
    ///
    /// # Errors
    /// What the device reports, also of earlier work.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.stream.check("wait for event", self.stream.device().driver().synchronize_event(self.handle))
    }

    /// Milliseconds of the device's clock since `start`; waits for both.
    ///
    /// # Errors
    /// What the device reports, also of earlier work.
    pub fn elapsed_ms(&self, start: &Self) -> Result<f32, Error> {
        start.synchronize()?;
        self.synchronize()?;
        self.stream.check("measure time", self.stream.device().driver().elapsed_ms(start.handle, self.handle))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: ours alone.
        let _ = unsafe { self.stream.device().driver().destroy_event(self.handle) };
    }
}
