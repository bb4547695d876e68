//! The fake device's answers to the calls of a driver.

use std::alloc::Layout;
use std::ptr::NonNull;

use super::state::{FIRST, Mark, error};
use super::{Call, Fake, Launched, Step};
use crate::driver::{
    Arguments, DevicePointer, Driver, DriverResult, EventHandle, FunctionAttributes, FunctionHandle, GraphHandle,
    ModuleHandle, Properties, StreamHandle, code,
};

impl Driver for Fake {
    fn properties(&self) -> DriverResult<Properties> {
        Ok(Properties { limits: self.limits.clone(), driver_version: 13_000, memory_pools: self.memory_pools })
    }

    fn memory(&self) -> DriverResult<(u64, u64)> {
        let mut state = self.state();
        state.step("cuMemGetInfo", None)?;
        Ok((self.limits.memory_bytes - state.used, self.limits.memory_bytes))
    }

    fn allocate(&self, bytes: usize, stream: StreamHandle) -> DriverResult<DevicePointer> {
        let call = "cuMemAllocAsync";
        let mut state = self.state();
        state.step(call, Some(Step::Allocate))?;
        state.stream(call, stream)?;
        state.outside_capture(call, stream)?;
        if bytes == 0 {
            return Err(state.fault(call, code::INVALID_VALUE, "zero bytes".into()));
        }
        if bytes as u64 > self.limits.memory_bytes - state.used {
            return Err(error(call, code::OUT_OF_MEMORY));
        }
        state.used += bytes as u64;
        // Apart from each other, never reused, filled with what no test writes.
        let pointer = DevicePointer(FIRST + state.end);
        state.end += (bytes as u64).next_multiple_of(256) + 256;
        state.memory.insert(pointer.0, vec![0xA5; bytes]);
        state.calls.push(Call::Allocate { pointer, bytes, stream });
        Ok(pointer)
    }

    unsafe fn free(&self, pointer: DevicePointer, stream: StreamHandle) -> DriverResult<()> {
        let call = "cuMemFreeAsync";
        let mut state = self.state();
        state.stream(call, stream)?;
        state.outside_capture(call, stream)?;
        let Some(memory) = state.memory.remove(&pointer.0) else {
            return Err(state.fault(call, code::INVALID_VALUE, format!("{:#x} is freed already or none", pointer.0)));
        };
        state.used -= memory.len() as u64;
        state.calls.push(Call::Free { pointer, stream });
        state.step(call, None)
    }

    fn allocate_pinned(&self, bytes: usize) -> DriverResult<NonNull<u8>> {
        let call = "cuMemHostAlloc";
        let mut state = self.state();
        state.step(call, Some(Step::AllocatePinned))?;
        let layout = Layout::from_size_align(bytes.max(1), 4096).map_err(|_| error(call, code::INVALID_VALUE))?;
        // SAFETY: the layout has a size above zero.
        let host = NonNull::new(unsafe { std::alloc::alloc(layout) }).ok_or(error(call, code::OUT_OF_MEMORY))?;
        state.pinned.insert(host.as_ptr().expose_provenance(), layout);
        Ok(host)
    }

    unsafe fn free_pinned(&self, host: NonNull<u8>) -> DriverResult<()> {
        let mut state = self.state();
        match state.pinned.remove(&host.as_ptr().addr()) {
            // SAFETY: allocated with this layout, and removed from the list just now.
            Some(layout) => unsafe { std::alloc::dealloc(host.as_ptr(), layout) },
            None => return Err(state.fault("cuMemFreeHost", code::INVALID_VALUE, "freed already or none".into())),
        }
        state.step("cuMemFreeHost", None)
    }

    fn is_pinned(&self, host: *const u8) -> bool {
        let state = self.state();
        let below = state.pinned.range(..=host.addr()).next_back();
        below.is_some_and(|(&start, layout)| host.addr() - start < layout.size())
    }

    unsafe fn copy_to_device(
        &self,
        from: *const u8,
        to: DevicePointer,
        bytes: usize,
        stream: StreamHandle,
    ) -> DriverResult<()> {
        let call = "cuMemcpyHtoDAsync";
        let mut state = self.state();
        state.step(call, None)?;
        state.stream(call, stream)?;
        state.outside_capture(call, stream)?;
        // SAFETY: the caller's promise.
        let from = unsafe { std::slice::from_raw_parts(from, bytes) };
        state.bytes(call, to, bytes)?.copy_from_slice(from);
        state.calls.push(Call::CopyToDevice { pointer: to, bytes, stream });
        Ok(())
    }

    unsafe fn copy_to_host(
        &self,
        from: DevicePointer,
        to: *mut u8,
        bytes: usize,
        stream: StreamHandle,
    ) -> DriverResult<()> {
        let call = "cuMemcpyDtoHAsync";
        let mut state = self.state();
        state.step(call, None)?;
        state.stream(call, stream)?;
        state.outside_capture(call, stream)?;
        let source = state.bytes(call, from, bytes)?.as_ptr();
        // SAFETY: the caller's promise for one side, the bounds check above for the other; they are different memory.
        unsafe { std::ptr::copy_nonoverlapping(source, to, bytes) };
        state.calls.push(Call::CopyToHost { pointer: from, bytes, stream });
        Ok(())
    }

    unsafe fn copy_on_device(
        &self,
        from: DevicePointer,
        to: DevicePointer,
        bytes: usize,
        stream: StreamHandle,
    ) -> DriverResult<()> {
        let call = "cuMemcpyDtoDAsync";
        let mut state = self.state();
        state.step(call, None)?;
        state.stream(call, stream)?;
        state.queue(stream, Call::CopyOnDevice { from, to, bytes, stream })
    }

    unsafe fn fill(&self, to: DevicePointer, value: u8, bytes: usize, stream: StreamHandle) -> DriverResult<()> {
        let call = "cuMemsetD8Async";
        let mut state = self.state();
        state.step(call, None)?;
        state.stream(call, stream)?;
        state.queue(stream, Call::Fill { pointer: to, value, bytes, stream })
    }

    fn load_module(&self, image: &[u8]) -> DriverResult<ModuleHandle> {
        let mut state = self.state();
        state.step("cuModuleLoadData", Some(Step::LoadModule))?;
        if image.is_empty() {
            return Err(state.fault("cuModuleLoadData", code::NO_BINARY_FOR_GPU, "an empty image".into()));
        }
        let module = state.next();
        state.modules.insert(module);
        Ok(ModuleHandle(module))
    }

    unsafe fn unload_module(&self, module: ModuleHandle) -> DriverResult<()> {
        let mut state = self.state();
        if !state.modules.remove(&module.0) {
            return Err(state.fault("cuModuleUnload", code::INVALID_HANDLE, "unloaded already or none".into()));
        }
        state.functions.retain(|_, function| function.0 != module.0);
        state.step("cuModuleUnload", None)
    }

    fn function(&self, module: ModuleHandle, name: &str) -> DriverResult<FunctionHandle> {
        let mut state = self.state();
        state.step("cuModuleGetFunction", None)?;
        if !state.modules.contains(&module.0) {
            return Err(state.fault("cuModuleGetFunction", code::INVALID_HANDLE, "no such module".into()));
        }
        let function = state.next();
        state.functions.insert(function, (module.0, name.to_owned(), 48 << 10));
        Ok(FunctionHandle(function))
    }

    fn function_attributes(&self, _function: FunctionHandle) -> DriverResult<FunctionAttributes> {
        let threads_per_block = self.limits.threads_per_block;
        Ok(FunctionAttributes { registers: 32, local_bytes: 0, static_shared_bytes: 0, threads_per_block })
    }

    fn allow_shared_bytes(&self, function: FunctionHandle, bytes: u32) -> DriverResult<()> {
        let mut state = self.state();
        state.step("cuFuncSetAttribute", None)?;
        match state.functions.get_mut(&function.0) {
            Some(function) if bytes <= self.limits.shared_bytes_per_block => function.2 = bytes,
            _ => return Err(error("cuFuncSetAttribute", code::INVALID_VALUE)),
        }
        Ok(())
    }

    fn blocks_per_multiprocessor(&self, _function: FunctionHandle, block: u32, shared_bytes: u32) -> DriverResult<u32> {
        let limits = &self.limits;
        let shared = shared_bytes + limits.reserved_shared_bytes_per_block;
        let by_shared = limits.shared_bytes_per_multiprocessor.checked_div(shared).unwrap_or(u32::MAX);
        let by_threads = limits.threads_per_multiprocessor / block.max(1).next_multiple_of(limits.warp);
        Ok(by_shared.min(by_threads).min(limits.blocks_per_multiprocessor))
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
        let call = "cuLaunchKernel";
        let mut state = self.state();
        state.step(call, Some(Step::Launch))?;
        state.stream(call, stream)?;
        let Some((_, name, allowed)) = state.functions.get(&function.0).cloned() else {
            return Err(state.fault(call, code::INVALID_HANDLE, "no such function".into()));
        };
        if grid == 0 || block == 0 || block > self.limits.threads_per_block || shared_bytes > allowed {
            let what =
                format!("{name}: grid {grid}, block {block}, {shared_bytes} of {allowed} bytes of shared memory");
            return Err(state.fault(call, code::INVALID_VALUE, what));
        }
        let arguments = arguments.iter().map(<[u8]>::to_vec).collect();
        let launched = Launched { function: name, grid, block, shared_bytes, stream, arguments };
        state.queue(stream, Call::Launch(launched))
    }

    fn create_stream(&self) -> DriverResult<StreamHandle> {
        self.state().step("cuStreamCreate", None)?;
        Ok(StreamHandle(self.callers_stream()))
    }

    unsafe fn destroy_stream(&self, stream: StreamHandle) -> DriverResult<()> {
        let mut state = self.state();
        state.stream("cuStreamDestroy", stream)?;
        state.streams.remove(&stream.0);
        state.step("cuStreamDestroy", None)
    }

    fn synchronize(&self, stream: StreamHandle) -> DriverResult<()> {
        let call = "cuStreamSynchronize";
        let mut state = self.state();
        state.step(call, Some(Step::Synchronize))?;
        state.stream(call, stream)?;
        state.outside_capture(call, stream)?;
        state.calls.push(Call::Synchronize { stream });
        Ok(())
    }

    fn is_capturing(&self, stream: StreamHandle) -> DriverResult<bool> {
        Ok(self.state().capturing.contains_key(&stream.0))
    }

    fn create_event(&self, _timing: bool) -> DriverResult<EventHandle> {
        let mut state = self.state();
        state.step("cuEventCreate", None)?;
        let event = state.next();
        state.events.insert(event, Mark::default());
        Ok(EventHandle(event))
    }

    unsafe fn destroy_event(&self, event: EventHandle) -> DriverResult<()> {
        let mut state = self.state();
        if state.events.remove(&event.0).is_none() {
            return Err(state.fault("cuEventDestroy", code::INVALID_HANDLE, "destroyed already or none".into()));
        }
        state.step("cuEventDestroy", None)
    }

    fn record(&self, event: EventHandle, stream: StreamHandle) -> DriverResult<()> {
        let mut state = self.state();
        state.step("cuEventRecord", None)?;
        state.stream("cuEventRecord", stream)?;
        let (captured, at) = (state.capturing.contains_key(&stream.0), state.calls.len());
        let Some(mark) = state.events.get_mut(&event.0) else {
            return Err(state.fault("cuEventRecord", code::INVALID_HANDLE, "destroyed already or none".into()));
        };
        *mark = Mark { recorded: true, captured, at };
        state.calls.push(Call::Record { event, stream });
        Ok(())
    }

    fn wait(&self, stream: StreamHandle, event: EventHandle) -> DriverResult<()> {
        let call = "cuStreamWaitEvent";
        let mut state = self.state();
        state.step(call, None)?;
        state.stream(call, stream)?;
        let capturing = state.capturing.contains_key(&stream.0);
        match state.events.get(&event.0).copied() {
            Some(mark) if mark.recorded && mark.captured != capturing => {
                return Err(state.fault(call, code::STREAM_CAPTURE_ISOLATION, "across a capture's border".into()));
            }
            Some(_) => state.calls.push(Call::Wait { stream, event }),
            None => return Err(state.fault(call, code::INVALID_HANDLE, "destroyed already or none".into())),
        }
        Ok(())
    }

    fn passed(&self, event: EventHandle) -> DriverResult<bool> {
        let mut state = self.state();
        state.step("cuEventQuery", None)?;
        Ok(state.events.contains_key(&event.0))
    }

    fn synchronize_event(&self, event: EventHandle) -> DriverResult<()> {
        let mut state = self.state();
        state.step("cuEventSynchronize", Some(Step::Synchronize))?;
        if !state.events.contains_key(&event.0) {
            return Err(state.fault("cuEventSynchronize", code::INVALID_HANDLE, "destroyed already or none".into()));
        }
        state.calls.push(Call::SynchronizeEvent { event });
        Ok(())
    }

    /// As many as calls lie between the two.
    fn elapsed_ms(&self, start: EventHandle, end: EventHandle) -> DriverResult<f32> {
        let state = self.state();
        let at =
            |event: EventHandle| state.events.get(&event.0).filter(|mark| mark.recorded).map(|mark| mark.at as f32);
        at(end).zip(at(start)).map(|(end, start)| end - start).ok_or(error("cuEventElapsedTime", code::INVALID_HANDLE))
    }

    fn begin_capture(&self, stream: StreamHandle) -> DriverResult<()> {
        let call = "cuStreamBeginCapture";
        let mut state = self.state();
        state.step(call, None)?;
        state.stream(call, stream)?;
        state.outside_capture(call, stream)?;
        state.capturing.insert(stream.0, Vec::new());
        Ok(())
    }

    fn end_capture(&self, stream: StreamHandle) -> DriverResult<GraphHandle> {
        let mut state = self.state();
        state.step("cuStreamEndCapture", None)?;
        let Some(captured) = state.capturing.remove(&stream.0) else {
            return Err(state.fault("cuStreamEndCapture", code::INVALID_VALUE, "no capture was begun".into()));
        };
        let graph = state.next();
        state.graphs.insert(graph, captured);
        Ok(GraphHandle(graph))
    }

    unsafe fn launch_graph(&self, graph: GraphHandle, stream: StreamHandle) -> DriverResult<()> {
        let call = "cuGraphLaunch";
        let mut state = self.state();
        state.step(call, Some(Step::Launch))?;
        state.stream(call, stream)?;
        let Some(captured) = state.graphs.get(&graph.0).cloned() else {
            return Err(state.fault(call, code::INVALID_HANDLE, "no such graph".into()));
        };
        state.calls.push(Call::LaunchGraph { graph, stream });
        captured.into_iter().try_for_each(|work| state.queue(stream, work.on(stream)))
    }

    unsafe fn destroy_graph(&self, graph: GraphHandle) -> DriverResult<()> {
        let mut state = self.state();
        if state.graphs.remove(&graph.0).is_none() {
            return Err(state.fault("cuGraphExecDestroy", code::INVALID_HANDLE, "destroyed already or none".into()));
        }
        state.step("cuGraphExecDestroy", None)
    }
}
