//! A driver without a GPU, for tests: host memory behind device addresses, launches recorded instead of run, faults noticed and made.
//!
//! Work is done at once, in the order of the calls. What a GPU would only sometimes punish is noted always: see [`Fake::faults`].

mod compiler;
mod driver;
mod state;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use self::compiler::FakeCompiler;
use self::state::State;
use super::{DevicePointer, EventHandle, GraphHandle, StreamHandle};
use crate::limits::Limits;

/// What the fake did, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Device memory was allocated.
    Allocate { pointer: DevicePointer, bytes: usize, stream: StreamHandle },
    /// Device memory was freed.
    Free { pointer: DevicePointer, stream: StreamHandle },
    /// Device memory was set.
    Fill { pointer: DevicePointer, value: u8, bytes: usize, stream: StreamHandle },
    /// Bytes came from the host.
    CopyToDevice { pointer: DevicePointer, bytes: usize, stream: StreamHandle },
    /// Bytes went to the host.
    CopyToHost { pointer: DevicePointer, bytes: usize, stream: StreamHandle },
    /// Bytes moved on the device.
    CopyOnDevice { from: DevicePointer, to: DevicePointer, bytes: usize, stream: StreamHandle },
    /// A kernel was queued.
    Launch(Launched),
    /// An event was put at the end of a stream.
    Record { event: EventHandle, stream: StreamHandle },
    /// A stream was told to wait for an event.
    Wait { stream: StreamHandle, event: EventHandle },
    /// The host waited for a stream.
    Synchronize { stream: StreamHandle },
    /// The host waited for an event.
    SynchronizeEvent { event: EventHandle },
    /// A graph was queued; its launches follow.
    LaunchGraph { graph: GraphHandle, stream: StreamHandle },
}

/// A recorded launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// The kernel's symbol.
    pub function: String,
    /// Blocks.
    pub grid: u32,
    /// Threads a block.
    pub block: u32,
    /// Bytes of dynamic shared memory.
    pub shared_bytes: u32,
    /// Where it was queued.
    pub stream: StreamHandle,
    /// Each argument's bytes.
    pub arguments: Vec<Vec<u8>>,
}

impl Launched {
    /// An argument that is a 64-bit number or an address.
    pub fn u64(&self, index: usize) -> Option<u64> {
        Some(u64::from_ne_bytes(self.arguments.get(index)?.as_slice().try_into().ok()?))
    }

    /// An argument that is a 32-bit number.
    pub fn u32(&self, index: usize) -> Option<u32> {
        Some(u32::from_ne_bytes(self.arguments.get(index)?.as_slice().try_into().ok()?))
    }
}

/// The calls that can be told to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Allocating device memory.
    Allocate,
    /// Allocating page-locked host memory.
    AllocatePinned,
    /// Queueing a kernel.
    Launch,
    /// Waiting for a stream or an event.
    Synchronize,
    /// Loading a module.
    LoadModule,
}

/// A device that is none.
#[derive(Debug)]
pub struct Fake {
    limits: Limits,
    memory_pools: bool,
    state: Mutex<State>,
}

impl Call {
    /// The same work on another stream.
    fn on(self, stream: StreamHandle) -> Self {
        match self {
            Self::Launch(launched) => Self::Launch(Launched { stream, ..launched }),
            Self::Fill { pointer, value, bytes, .. } => Self::Fill { pointer, value, bytes, stream },
            Self::CopyOnDevice { from, to, bytes, .. } => Self::CopyOnDevice { from, to, bytes, stream },
            other => other,
        }
    }
}

impl Fake {
    /// A device of the given limits, with memory pools.
    pub fn new(limits: Limits) -> Self {
        Self { limits, memory_pools: true, state: Mutex::default() }
    }

    /// The same without memory pools.
    #[must_use]
    pub fn without_pools(mut self) -> Self {
        self.memory_pools = false;
        self
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the `nth` such call from now (0 is the next one) fail with `code`; a sticky code fails all calls after it.
    pub fn fail(&self, step: Step, nth: usize, code: u32) {
        self.state().failures.insert(step, (nth, code));
    }

    /// All that was done.
    pub fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    /// All launches, those of graphs once for each time the graph was launched.
    pub fn launches(&self) -> Vec<Launched> {
        let launches = |call: &Call| if let Call::Launch(launched) = call { Some(launched.clone()) } else { None };
        self.state().calls.iter().filter_map(launches).collect()
    }

    /// Misuse: double frees, copies out of bounds, destroyed handles, waiting or allocating inside a capture.
    pub fn faults(&self) -> Vec<String> {
        self.state().faults.clone()
    }

    /// Live allocations of device memory: address and bytes.
    pub fn live(&self) -> Vec<(DevicePointer, usize)> {
        self.state().memory.iter().map(|(&start, memory)| (DevicePointer(start), memory.len())).collect()
    }

    /// What is not freed or destroyed: device allocations, page-locked allocations, streams, events, modules, graphs.
    pub fn leaks(&self) -> [usize; 6] {
        let state = self.state();
        let (streams, events) = (state.streams.len(), state.events.len());
        [state.memory.len(), state.pinned.len(), streams, events, state.modules.len(), state.graphs.len()]
    }

    /// A stream as a caller's own code would make it.
    pub fn callers_stream(&self) -> u64 {
        let mut state = self.state();
        let stream = state.next();
        state.streams.insert(stream);
        stream
    }

    /// Copies device memory out, past all streams; nothing where it is not allocated.
    pub fn peek(&self, pointer: DevicePointer, bytes: usize) -> Vec<u8> {
        self.state().bytes("peek", pointer, bytes).map(|bytes| bytes.to_vec()).unwrap_or_default()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        for (&pointer, &layout) in &self.state().pinned {
            // SAFETY: allocated in `allocate_pinned` with this layout and not freed since.
            unsafe { std::alloc::dealloc(std::ptr::with_exposed_provenance_mut(pointer), layout) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Arguments, Driver, code};
    use super::*;

    fn fake() -> Fake {
        Fake::new(Limits::preset("sm_90").unwrap())
    }

    #[test]
    fn a_double_free_and_a_foreign_address_are_faults() {
        let fake = fake();
        let stream = fake.create_stream().unwrap();
        let pointer = fake.allocate(100, stream).unwrap();
        // SAFETY: the fake checks what it is given.
        let free = |pointer| unsafe { fake.free(pointer, stream) };
        free(pointer).unwrap();
        assert_eq!(free(pointer).unwrap_err().code, code::INVALID_VALUE);
        assert!(free(DevicePointer(1)).is_err());
        assert_eq!(fake.faults().len(), 2, "{:?}", fake.faults());
    }

    #[test]
    fn a_destroyed_stream_is_not_used_again_unnoticed() {
        let fake = fake();
        let stream = fake.create_stream().unwrap();
        // SAFETY: the fake checks what it is given.
        unsafe { fake.destroy_stream(stream) }.unwrap();
        assert_eq!(fake.synchronize(stream).unwrap_err().code, code::INVALID_HANDLE);
        assert!(fake.allocate(1, stream).is_err() && fake.begin_capture(stream).is_err());
        assert_eq!(fake.faults().len(), 3);
    }

    #[test]
    fn copies_out_of_bounds_are_faults_and_copy_nothing() {
        let fake = fake();
        let stream = fake.create_stream().unwrap();
        let pointer = fake.allocate(8, stream).unwrap();
        let bytes = [1u8; 16];
        for (offset, len) in [(0, 9), (8, 1), (4, 5), (300, 1)] {
            // SAFETY: the host side has 16 bytes; the fake checks the other.
            let copied = unsafe { fake.copy_to_device(bytes.as_ptr(), DevicePointer(pointer.0 + offset), len, stream) };
            assert!(copied.is_err(), "{offset} {len}");
        }
        assert_eq!((fake.faults().len(), fake.peek(pointer, 8)), (4, vec![0xA5; 8]));
    }

    #[test]
    fn waiting_and_allocating_inside_a_capture_are_faults() {
        let fake = fake();
        let (stream, other) = (fake.create_stream().unwrap(), fake.create_stream().unwrap());
        let event = fake.create_event(false).unwrap();
        fake.record(event, other).unwrap();
        fake.begin_capture(stream).unwrap();
        assert_eq!(fake.synchronize(stream).unwrap_err().code, code::STREAM_CAPTURE_UNSUPPORTED);
        assert_eq!(fake.allocate(1, stream).unwrap_err().code, code::STREAM_CAPTURE_UNSUPPORTED);
        assert_eq!(fake.wait(stream, event).unwrap_err().code, code::STREAM_CAPTURE_ISOLATION);
        assert_eq!(fake.faults().len(), 3);
        fake.synchronize(other).unwrap();
    }

    #[test]
    fn the_call_that_was_told_to_fail_fails_and_a_sticky_code_stays() {
        let fake = fake();
        let stream = fake.create_stream().unwrap();
        fake.fail(Step::Allocate, 2, code::OUT_OF_MEMORY);
        let codes: Vec<_> = (0..4).map(|_| fake.allocate(1, stream).map_err(|e| e.code).err()).collect();
        assert_eq!(codes, [None, None, Some(code::OUT_OF_MEMORY), None]);
        fake.fail(Step::Synchronize, 0, code::ILLEGAL_ADDRESS);
        assert!(fake.synchronize(stream).is_err());
        assert_eq!(fake.create_stream().unwrap_err().code, code::ILLEGAL_ADDRESS, "the device is lost");
    }

    #[test]
    fn a_launch_with_more_shared_memory_than_allowed_is_a_fault() {
        let fake = fake();
        let stream = fake.create_stream().unwrap();
        let function = fake.function(fake.load_module(b"image").unwrap(), "f").unwrap();
        // SAFETY: nothing runs.
        let launch = |bytes| unsafe { fake.launch(function, 1, 32, bytes, stream, &Arguments::default()) };
        assert!(launch(48 << 10).is_ok() && launch(100 << 10).is_err());
        fake.allow_shared_bytes(function, 100 << 10).unwrap();
        assert!(launch(100 << 10).is_ok());
        assert_eq!((fake.launches().len(), fake.faults().len()), (2, 1));
    }
}
