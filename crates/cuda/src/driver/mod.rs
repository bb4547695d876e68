//! The one narrow door to the CUDA driver: what is asked of it, as a trait with a real and a fake implementation.

mod arguments;
mod error;
#[doc(hidden)]
pub mod fake;
mod real;
mod symbols;

use std::fmt::Debug;
use std::ptr::NonNull;

pub use self::arguments::{Arguments, KernelArgument};
pub use self::error::{DriverError, code};
pub use self::real::Real;
use crate::limits::Limits;

/// An address in device memory; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct DevicePointer(pub u64);

macro_rules! handle {
    ($(#[doc = $doc:literal] $name:ident;)*) => {$(
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name(u64);

        impl $name {
            /// A handle of a driver that is written elsewhere.
            #[doc(hidden)]
            pub fn of_driver(raw: u64) -> Self {
                Self(raw)
            }

            /// The driver's own handle, as a number.
            pub fn as_raw(self) -> u64 {
                self.0
            }
        }
    )*};
}

handle! {
    #[doc = "A loaded module."] ModuleHandle;
    #[doc = "A kernel of a loaded module."] FunctionHandle;
    #[doc = "A stream."] StreamHandle;
    #[doc = "An event."] EventHandle;
    #[doc = "A graph, ready to launch."] GraphHandle;
}

impl StreamHandle {
    /// A stream that the driver's caller made.
    ///
    /// # Safety
    /// `raw` is a stream of the driver that it will be given to, and outlives this handle's use.
    pub unsafe fn from_raw(raw: u64) -> Self {
        Self(raw)
    }
}

/// What a driver says of its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Properties {
    /// What plans are made from.
    pub limits: Limits,
    /// The newest CUDA that the driver supports, as 12040 for 12.4.
    pub driver_version: u32,
    /// Whether memory can be allocated and freed in the order of a stream.
    pub memory_pools: bool,
}

/// What a loaded kernel needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionAttributes {
    /// Registers a thread.
    pub registers: u32,
    /// Bytes of local memory a thread: spilled registers, and arrays indexed by variables.
    pub local_bytes: u32,
    /// Bytes of static shared memory a block.
    pub static_shared_bytes: u32,
    /// The largest block that can be launched.
    pub threads_per_block: u32,
}

/// The result of a call to the driver.
pub type DriverResult<T> = Result<T, DriverError>;

/// One device, as its driver offers it. May be called from any thread.
///
/// Handles must come from this very driver. What an asynchronous call went wrong in is reported by a later call.
pub trait Driver: Debug + Send + Sync + 'static {
    /// What the device is.
    fn properties(&self) -> DriverResult<Properties>;

    /// Bytes of device memory that are free, and all.
    fn memory(&self) -> DriverResult<(u64, u64)>;

    /// Device memory, in the order of `stream` where the device has memory pools. Not initialised.
    fn allocate(&self, bytes: usize, stream: StreamHandle) -> DriverResult<DevicePointer>;

    /// Frees device memory after the work queued on `stream`.
    ///
    /// # Safety
    /// Came from `allocate`, is freed once, and is used by no work that is not ordered before `stream`'s end.
    unsafe fn free(&self, pointer: DevicePointer, stream: StreamHandle) -> DriverResult<()>;

    /// Page-locked host memory. Not initialised.
    fn allocate_pinned(&self, bytes: usize) -> DriverResult<NonNull<u8>>;

    /// Frees page-locked host memory.
    ///
    /// # Safety
    /// Came from `allocate_pinned`, is freed once, and is used by nothing any more.
    unsafe fn free_pinned(&self, pointer: NonNull<u8>) -> DriverResult<()>;

    /// Whether an address of the host lies in page-locked memory.
    fn is_pinned(&self, pointer: *const u8) -> bool;

    /// Copies from the host.
    ///
    /// # Safety
    /// Both sides have `bytes` bytes, and the host's stay untouched until the stream has passed the copy.
    unsafe fn copy_to_device(
        &self,
        from: *const u8,
        to: DevicePointer,
        bytes: usize,
        stream: StreamHandle,
    ) -> DriverResult<()>;

    /// Copies to the host.
    ///
    /// # Safety
    /// Both sides have `bytes` bytes, and the host's are neither read nor written by others until the stream has passed the copy.
    unsafe fn copy_to_host(
        &self,
        from: DevicePointer,
        to: *mut u8,
        bytes: usize,
        stream: StreamHandle,
    ) -> DriverResult<()>;

    /// Copies within the device.
    ///
    /// # Safety
    /// Both sides have `bytes` bytes that do not overlap, of which no work not ordered with `stream` writes any.
    unsafe fn copy_on_device(
        &self,
        from: DevicePointer,
        to: DevicePointer,
        bytes: usize,
        stream: StreamHandle,
    ) -> DriverResult<()>;

    /// Sets bytes of device memory.
    ///
    /// # Safety
    /// There are `bytes` bytes, which no work uses that is not ordered with `stream`.
    unsafe fn fill(&self, to: DevicePointer, value: u8, bytes: usize, stream: StreamHandle) -> DriverResult<()>;

    /// Loads a CUBIN, or PTX that ends in a zero byte.
    fn load_module(&self, image: &[u8]) -> DriverResult<ModuleHandle>;

    /// Unloads a module.
    ///
    /// # Safety
    /// None of its functions is running or used again.
    unsafe fn unload_module(&self, module: ModuleHandle) -> DriverResult<()>;

    /// A kernel by its symbol.
    fn function(&self, module: ModuleHandle, name: &str) -> DriverResult<FunctionHandle>;

    /// What a kernel needs.
    fn function_attributes(&self, function: FunctionHandle) -> DriverResult<FunctionAttributes>;

    /// Lets a kernel be launched with up to so much dynamic shared memory.
    fn allow_shared_bytes(&self, function: FunctionHandle, bytes: u32) -> DriverResult<()>;

    /// How many blocks of a kernel one multiprocessor runs at a time.
    fn blocks_per_multiprocessor(&self, function: FunctionHandle, block: u32, shared_bytes: u32) -> DriverResult<u32>;

    /// Queues a kernel.
    ///
    /// # Safety
    /// The arguments are those of the kernel's signature, and what they point to is alive and of no other work's concern until the
    /// stream has passed the kernel.
    unsafe fn launch(
        &self,
        function: FunctionHandle,
        grid: u32,
        block: u32,
        shared_bytes: u32,
        stream: StreamHandle,
        arguments: &Arguments,
    ) -> DriverResult<()>;

    /// A stream that waits for no other.
    fn create_stream(&self) -> DriverResult<StreamHandle>;

    /// Destroys a stream once its work is done; does not wait for that.
    ///
    /// # Safety
    /// Came from `create_stream` and is not used again.
    unsafe fn destroy_stream(&self, stream: StreamHandle) -> DriverResult<()>;

    /// Waits for all work of a stream.
    fn synchronize(&self, stream: StreamHandle) -> DriverResult<()>;

    /// Whether a stream's work is being captured into a graph.
    fn is_capturing(&self, stream: StreamHandle) -> DriverResult<bool>;

    /// An event, with the time or, cheaper, only for order.
    fn create_event(&self, timing: bool) -> DriverResult<EventHandle>;

    /// Destroys an event; does not wait for it.
    ///
    /// # Safety
    /// Came from `create_event` and is not used again.
    unsafe fn destroy_event(&self, event: EventHandle) -> DriverResult<()>;

    /// Marks the present end of a stream.
    fn record(&self, event: EventHandle, stream: StreamHandle) -> DriverResult<()>;

    /// Makes what is queued on `stream` from now on wait for what the event marks now.
    fn wait(&self, stream: StreamHandle, event: EventHandle) -> DriverResult<()>;

    /// Whether an event has been passed.
    fn passed(&self, event: EventHandle) -> DriverResult<bool>;

    /// Has the host wait for an event.
    fn synchronize_event(&self, event: EventHandle) -> DriverResult<()>;

    /// Milliseconds between two passed events.
    fn elapsed_ms(&self, start: EventHandle, end: EventHandle) -> DriverResult<f32>;

    /// From now on the stream's work is captured instead of run. Other threads and streams are not disturbed.
    fn begin_capture(&self, stream: StreamHandle) -> DriverResult<()>;

    /// What was captured, ready to launch.
    fn end_capture(&self, stream: StreamHandle) -> DriverResult<GraphHandle>;

    /// Queues all work of a graph.
    ///
    /// # Safety
    /// All memory and functions that the captured work uses are alive, as for each of its launches.
    unsafe fn launch_graph(&self, graph: GraphHandle, stream: StreamHandle) -> DriverResult<()>;

    /// Destroys a graph; work of it that runs is finished first.
    ///
    /// # Safety
    /// Came from `end_capture` and is not used again.
    unsafe fn destroy_graph(&self, graph: GraphHandle) -> DriverResult<()>;
}
