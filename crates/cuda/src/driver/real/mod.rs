//! The driver of a GPU at hand.

mod open;

use std::ffi::{CString, c_int, c_uint, c_void};
use std::ptr::{NonNull, null_mut};

use cudarc::driver::sys::{self, CUevent, CUfunction, CUfunction_attribute, CUgraphExec, CUmodule, CUstream};

pub use self::open::Real;
use super::{
    Arguments, DevicePointer, Driver, DriverError, DriverResult, EventHandle, FunctionAttributes, FunctionHandle,
    GraphHandle, ModuleHandle, Properties, StreamHandle, code,
};

/// Calls a function of the driver; its name goes into the error.
macro_rules! call {
    ($symbols:expr, $name:ident($($argument:expr),* $(,)?)) => {
        $symbols.check(stringify!($name), ($symbols.$name)($($argument),*))
    };
}
use call;

/// A handle as the pointer that it is.
trait Pointer {
    fn of(raw: u64) -> Self;
}
impl<T> Pointer for *mut T {
    fn of(raw: u64) -> Self {
        raw as usize as *mut T
    }
}
fn pointer<P: Pointer>(raw: u64) -> P {
    P::of(raw)
}
fn number<T>(pointer: *mut T) -> u64 {
    pointer as usize as u64
}
/// For limits beyond the driver's 32-bit parameters.
fn out_of_range(call: &'static str) -> DriverError {
    DriverError {
        call,
        code: code::INVALID_VALUE,
        name: "CUDA_ERROR_INVALID_VALUE".into(),
        text: "invalid argument".into(),
    }
}

impl Real {
    fn function_attribute(&self, function: FunctionHandle, attribute: CUfunction_attribute) -> DriverResult<u32> {
        let mut value: c_int = 0;
        // SAFETY: writes one number; the handle is this driver's.
        unsafe { call!(self.symbols, cuFuncGetAttribute(&mut value, attribute, pointer::<CUfunction>(function.0))) }?;
        Ok(u32::try_from(value).unwrap_or(0))
    }
}

impl Driver for Real {
    fn properties(&self) -> DriverResult<Properties> {
        let limits = self.symbols.limits(self.device)?;
        Ok(Properties { limits, driver_version: self.driver_version, memory_pools: self.memory_pools })
    }

    fn memory(&self) -> DriverResult<(u64, u64)> {
        self.current()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two numbers.
        unsafe { call!(self.symbols, cuMemGetInfo_v2(&mut free, &mut total)) }?;
        Ok((free as u64, total as u64))
    }

    fn allocate(&self, bytes: usize, stream: StreamHandle) -> DriverResult<DevicePointer> {
        self.current()?;
        let mut address = 0;
        if self.memory_pools {
            // SAFETY: writes one number; the stream is this driver's.
            unsafe { call!(self.symbols, cuMemAllocAsync(&mut address, bytes, pointer(stream.0))) }?;
        } else {
            // SAFETY: writes one number.
            unsafe { call!(self.symbols, cuMemAlloc_v2(&mut address, bytes)) }?;
        }
        Ok(DevicePointer(address))
    }

    unsafe fn free(&self, address: DevicePointer, stream: StreamHandle) -> DriverResult<()> {
        self.current()?;
        if self.memory_pools {
            // SAFETY: the caller's promise.
            return unsafe { call!(self.symbols, cuMemFreeAsync(address.0, pointer(stream.0))) };
        }
        // Without pools the free is at once, so what may still use the memory comes first. A lost device is freed all the same.
        let waited = self.synchronize(stream);
        // SAFETY: the caller's promise.
        unsafe { call!(self.symbols, cuMemFree_v2(address.0)) }?;
        waited
    }

    fn allocate_pinned(&self, bytes: usize) -> DriverResult<NonNull<u8>> {
        self.current()?;
        let mut host: *mut c_void = null_mut();
        // SAFETY: writes one pointer. Portable: pinned for every context of the process.
        unsafe { call!(self.symbols, cuMemHostAlloc(&mut host, bytes, sys::CU_MEMHOSTALLOC_PORTABLE)) }?;
        NonNull::new(host.cast()).ok_or_else(|| out_of_range("cuMemHostAlloc"))
    }

    unsafe fn free_pinned(&self, host: NonNull<u8>) -> DriverResult<()> {
        self.current()?;
        // SAFETY: the caller's promise.
        unsafe { call!(self.symbols, cuMemFreeHost(host.as_ptr().cast())) }
    }

    fn is_pinned(&self, host: *const u8) -> bool {
        if self.current().is_err() {
            return false;
        }
        let mut kind: c_uint = 0;
        let mut attribute = sys::CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
        let mut place = (&raw mut kind).cast();
        let address = host as usize as u64;
        // SAFETY: one attribute, a 32-bit number, and its place. Any address may be asked about: unlike the call for a single attribute, this one
        // is no error for ordinary memory, whose kind it leaves zero.
        let asked = unsafe { (self.symbols.cuPointerGetAttributes)(1, &raw mut attribute, &raw mut place, address) };
        asked == 0 && kind == sys::CUmemorytype::CU_MEMORYTYPE_HOST as c_uint
    }

    unsafe fn copy_to_device(
        &self,
        from: *const u8,
        to: DevicePointer,
        bytes: usize,
        stream: StreamHandle,
    ) -> DriverResult<()> {
        self.current()?;
        // SAFETY: the caller's promise.
        unsafe { call!(self.symbols, cuMemcpyHtoDAsync_v2(to.0, from.cast(), bytes, pointer(stream.0))) }
    }

    unsafe fn copy_to_host(
        &self,
        from: DevicePointer,
        to: *mut u8,
        bytes: usize,
        stream: StreamHandle,
    ) -> DriverResult<()> {
        self.current()?;
        // SAFETY: the caller's promise.
        unsafe { call!(self.symbols, cuMemcpyDtoHAsync_v2(to.cast(), from.0, bytes, pointer(stream.0))) }
    }

    unsafe fn copy_on_device(
        &self,
        from: DevicePointer,
        to: DevicePointer,
        bytes: usize,
        stream: StreamHandle,
    ) -> DriverResult<()> {
        self.current()?;
        // SAFETY: the caller's promise.
        unsafe { call!(self.symbols, cuMemcpyDtoDAsync_v2(to.0, from.0, bytes, pointer(stream.0))) }
    }

    unsafe fn fill(&self, to: DevicePointer, value: u8, bytes: usize, stream: StreamHandle) -> DriverResult<()> {
        self.current()?;
        // SAFETY: the caller's promise.
        unsafe { call!(self.symbols, cuMemsetD8Async(to.0, value, bytes, pointer(stream.0))) }
    }

    fn load_module(&self, image: &[u8]) -> DriverResult<ModuleHandle> {
        self.current()?;
        // The driver takes no length: PTX must end in a zero byte, a CUBIN holds its own length.
        if !image.starts_with(b"\x7fELF") && image.last() != Some(&0) {
            return Err(out_of_range("cuModuleLoadData"));
        }
        let mut module = null_mut();
        // SAFETY: writes one pointer; the image is whole, as it came from the compiler or passed its digest.
        unsafe { call!(self.symbols, cuModuleLoadData(&mut module, image.as_ptr().cast())) }?;
        Ok(ModuleHandle(number(module)))
    }

    unsafe fn unload_module(&self, module: ModuleHandle) -> DriverResult<()> {
        self.current()?;
        // SAFETY: the caller's promise.
        unsafe { call!(self.symbols, cuModuleUnload(pointer::<CUmodule>(module.0))) }
    }

    fn function(&self, module: ModuleHandle, name: &str) -> DriverResult<FunctionHandle> {
        self.current()?;
        let name = CString::new(name).map_err(|_| out_of_range("cuModuleGetFunction"))?;
        let mut function = null_mut();
        // SAFETY: writes one pointer; the name ends in a zero byte.
        unsafe { call!(self.symbols, cuModuleGetFunction(&mut function, pointer(module.0), name.as_ptr())) }?;
        Ok(FunctionHandle(number(function)))
    }

    fn function_attributes(&self, function: FunctionHandle) -> DriverResult<FunctionAttributes> {
        use CUfunction_attribute as A;
        self.current()?;
        Ok(FunctionAttributes {
            registers: self.function_attribute(function, A::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: self.function_attribute(function, A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            static_shared_bytes: self.function_attribute(function, A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
            threads_per_block: self.function_attribute(function, A::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        })
    }

    fn allow_shared_bytes(&self, function: FunctionHandle, bytes: u32) -> DriverResult<()> {
        self.current()?;
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let bytes = c_int::try_from(bytes).map_err(|_| out_of_range("cuFuncSetAttribute"))?;
        // SAFETY: takes a number; the handle is this driver's.
        unsafe { call!(self.symbols, cuFuncSetAttribute(pointer(function.0), attribute, bytes)) }
    }

    fn blocks_per_multiprocessor(&self, function: FunctionHandle, block: u32, shared_bytes: u32) -> DriverResult<u32> {
        self.current()?;
        let query = "cuOccupancyMaxActiveBlocksPerMultiprocessor";
        let block = c_int::try_from(block).map_err(|_| out_of_range(query))?;
        let mut blocks: c_int = 0;
        // SAFETY: writes one number; the handle is this driver's.
        unsafe {
            call!(
                self.symbols,
                cuOccupancyMaxActiveBlocksPerMultiprocessor(
                    &mut blocks,
                    pointer(function.0),
                    block,
                    shared_bytes as usize
                )
            )
        }?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    unsafe fn launch(
        &self,
        function: FunctionHandle,
        grid: u32,
        block: u32,
        shared_bytes: u32,
        stream: StreamHandle,
        arguments: &Arguments,
    ) -> DriverResult<()> {
        self.current()?;
        let mut addresses = arguments.addresses();
        let (function, stream) = (pointer(function.0), pointer(stream.0));
        let (list, extra) = (addresses.as_mut_ptr(), null_mut());
        // SAFETY: the caller's promise; the driver reads the arguments during the call.
        unsafe {
            call!(self.symbols, cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared_bytes, stream, list, extra))
        }
    }

    fn create_stream(&self) -> DriverResult<StreamHandle> {
        self.current()?;
        let mut stream = null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;
        // SAFETY: writes one pointer.
        unsafe { call!(self.symbols, cuStreamCreate(&mut stream, flags)) }?;
        Ok(StreamHandle(number(stream)))
    }

    unsafe fn destroy_stream(&self, stream: StreamHandle) -> DriverResult<()> {
        self.current()?;
        // SAFETY: the caller's promise.
        unsafe { call!(self.symbols, cuStreamDestroy_v2(pointer(stream.0))) }
    }

    fn synchronize(&self, stream: StreamHandle) -> DriverResult<()> {
        self.current()?;
        // SAFETY: the handle is this driver's.
        unsafe { call!(self.symbols, cuStreamSynchronize(pointer(stream.0))) }
    }

    fn is_capturing(&self, stream: StreamHandle) -> DriverResult<bool> {
        self.current()?;
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: writes one of the enumeration's three numbers.
        unsafe { call!(self.symbols, cuStreamIsCapturing(pointer::<CUstream>(stream.0), &mut status)) }?;
        Ok(status != sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    fn create_event(&self, timing: bool) -> DriverResult<EventHandle> {
        self.current()?;
        let mut event = null_mut();
        let flags = if timing { 0 } else { sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as c_uint };
        // SAFETY: writes one pointer.
        unsafe { call!(self.symbols, cuEventCreate(&mut event, flags)) }?;
        Ok(EventHandle(number(event)))
    }

    unsafe fn destroy_event(&self, event: EventHandle) -> DriverResult<()> {
        self.current()?;
        // SAFETY: the caller's promise.
        unsafe { call!(self.symbols, cuEventDestroy_v2(pointer::<CUevent>(event.0))) }
    }

    fn record(&self, event: EventHandle, stream: StreamHandle) -> DriverResult<()> {
        self.current()?;
        // SAFETY: the handles are this driver's.
        unsafe { call!(self.symbols, cuEventRecord(pointer(event.0), pointer(stream.0))) }
    }

    fn wait(&self, stream: StreamHandle, event: EventHandle) -> DriverResult<()> {
        self.current()?;
        // SAFETY: the handles are this driver's.
        unsafe { call!(self.symbols, cuStreamWaitEvent(pointer(stream.0), pointer(event.0), 0)) }
    }

    fn passed(&self, event: EventHandle) -> DriverResult<bool> {
        self.current()?;
        // SAFETY: the handle is this driver's.
        match unsafe { call!(self.symbols, cuEventQuery(pointer(event.0))) } {
            Ok(()) => Ok(true),
            Err(error) if error.code == code::NOT_READY => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn synchronize_event(&self, event: EventHandle) -> DriverResult<()> {
        self.current()?;
        // SAFETY: the handle is this driver's.
        unsafe { call!(self.symbols, cuEventSynchronize(pointer(event.0))) }
    }

    fn elapsed_ms(&self, start: EventHandle, end: EventHandle) -> DriverResult<f32> {
        self.current()?;
        let mut milliseconds = 0.0;
        // SAFETY: writes one number; the handles are this driver's.
        unsafe { call!(self.symbols, cuEventElapsedTime(&mut milliseconds, pointer(start.0), pointer(end.0))) }?;
        Ok(milliseconds)
    }

    fn begin_capture(&self, stream: StreamHandle) -> DriverResult<()> {
        self.current()?;
        // Relaxed: a kernel's first launch may load its code, and other threads may do as they like meanwhile.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the handle is this driver's.
        unsafe { call!(self.symbols, cuStreamBeginCapture_v2(pointer(stream.0), mode)) }
    }

    fn end_capture(&self, stream: StreamHandle) -> DriverResult<GraphHandle> {
        self.current()?;
        let mut graph = null_mut();
        // SAFETY: writes one pointer; the handle is this driver's.
        unsafe { call!(self.symbols, cuStreamEndCapture(pointer(stream.0), &mut graph)) }?;
        let mut executable = null_mut();
        // SAFETY: writes one pointer; the graph was captured just now.
        let made = unsafe { call!(self.symbols, cuGraphInstantiateWithFlags(&mut executable, graph, 0)) };
        // SAFETY: an instance does not need what it was made from.
        unsafe { call!(self.symbols, cuGraphDestroy(graph)) }?;
        made.map(|()| GraphHandle(number(executable)))
    }

    unsafe fn launch_graph(&self, graph: GraphHandle, stream: StreamHandle) -> DriverResult<()> {
        self.current()?;
        // SAFETY: the caller's promise.
        unsafe { call!(self.symbols, cuGraphLaunch(pointer::<CUgraphExec>(graph.0), pointer(stream.0))) }
    }

    unsafe fn destroy_graph(&self, graph: GraphHandle) -> DriverResult<()> {
        self.current()?;
        // SAFETY: the caller's promise.
        unsafe { call!(self.symbols, cuGraphExecDestroy(pointer::<CUgraphExec>(graph.0))) }
    }
}
