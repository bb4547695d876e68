//! Graphs of captured work.

use std::sync::Arc;

use batchla_core::Error;

use crate::driver::GraphHandle;
use crate::stream::Stream;

/// Captured work, ready to be run again and again.
#[derive(Debug)]
pub struct Graph {
    stream: Stream,
    handle: GraphHandle,
    name: Arc<str>,
}

impl Graph {
    pub(crate) fn of(stream: &Stream, handle: GraphHandle) -> Self {
        Self { stream: stream.clone(), handle, name: Arc::from("captured") }
    }

    /// Queues the captured work on a stream.
    ///
    /// # Errors
    /// What the device reports.
    ///
    /// # Safety
    /// All memory that the captured work reads or writes still exists, no other work touches it meanwhile, and the kernels that were
    /// captured are still loaded (their [`Kernel`](crate::Kernel)s or their [`Device`](crate::Device) are alive).
    pub unsafe fn launch(&self, stream: &Stream) -> Result<(), Error> {
        stream.device().alive("launch graph")?;
        // SAFETY: the caller's promise.
        stream.check("launch graph", unsafe { stream.device().driver().launch_graph(self.handle, stream.handle()) })?;
        stream.remember("launch graph", &self.name, 0, 0, 0);
        Ok(())
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: ours alone; the driver finishes launched work of it first.
        let _ = unsafe { self.stream.device().driver().destroy_graph(self.handle) };
    }
}
