//! The emulator's answers to the calls of a driver.

use std::alloc::Layout;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Instant;

use batchla_cuda::FunctionAttributes;
use batchla_cuda::driver::{
    Arguments, DevicePointer, Driver, DriverResult, EventHandle, FunctionHandle, GraphHandle, ModuleHandle, Properties,
    StreamHandle, code,
};

use crate::emulation::{Emulation, Function, Work, error, none};
use crate::memory::Allocation;
use crate::module::Module;

impl Driver for Emulation {
    fn properties(&self) -> DriverResult<Properties> {
        Ok(Properties { limits: self.limits.clone(), driver_version: 13_000, memory_pools: true })
    }

    fn memory(&self) -> DriverResult<(u64, u64)> {
        let all = self.limits.memory_bytes;
        Ok((all.saturating_sub(self.memory.used().1), all))
    }

    fn allocate(&self, bytes: usize, stream: StreamHandle) -> DriverResult<DevicePointer> {
        let call = "cuMemAllocAsync";
        self.state()?.outside_capture(call, stream)?;
        if bytes == 0 {
            return Err(error(call, code::INVALID_VALUE, "zero bytes"));
        }
        let room = self.memory()?.0;
        let allocation = (bytes as u64 <= room).then(|| Allocation::new(bytes)).flatten();
        let allocation = allocation.ok_or_else(|| error(call, code::OUT_OF_MEMORY, "out of memory"))?;
        Ok(DevicePointer(self.memory.insert(allocation) as u64))
    }

    unsafe fn free(&self, pointer: DevicePointer, _stream: StreamHandle) -> DriverResult<()> {
        let freed = self.memory.remove(pointer.0 as usize);
        freed.map(drop).ok_or_else(|| error("cuMemFreeAsync", code::INVALID_VALUE, "freed already or none"))
    }

    fn allocate_pinned(&self, bytes: usize) -> DriverResult<NonNull<u8>> {
        let call = "cuMemHostAlloc";
        let mut state = self.state()?;
        let layout = Layout::from_size_align(bytes.max(1), 4096);
        let layout = layout.map_err(|why| error(call, code::INVALID_VALUE, why.to_string()))?;
        // SAFETY: the layout has a size above zero.
        let host = NonNull::new(unsafe { std::alloc::alloc(layout) });
        let host = host.ok_or_else(|| error(call, code::OUT_OF_MEMORY, "out of memory"))?;
        state.pinned.insert(host.as_ptr().addr(), layout);
        Ok(host)
    }

    unsafe fn free_pinned(&self, host: NonNull<u8>) -> DriverResult<()> {
        let layout = self.state_even_if_lost().pinned.remove(&host.as_ptr().addr());
        let layout = layout.ok_or_else(|| error("cuMemFreeHost", code::INVALID_VALUE, "freed already or none"))?;
        // SAFETY: allocated with this layout, and removed from the list just now.
        unsafe { std::alloc::dealloc(host.as_ptr(), layout) };
        Ok(())
    }

    fn is_pinned(&self, host: *const u8) -> bool {
        let state = self.state_even_if_lost();
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
        self.state()?.outside_capture(call, stream)?;
        let (allocation, offset) = self.bytes(call, to.0 as usize, bytes)?;
        // SAFETY: the caller's promise for the host's side; the device's is allocated.
        unsafe { ptr::copy_nonoverlapping(from, ptr::with_exposed_provenance_mut(to.0 as usize), bytes) };
        allocation.wrote(offset, bytes);
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
        self.state()?.outside_capture(call, stream)?;
        let (_allocation, _) = self.bytes(call, from.0 as usize, bytes)?;
        // SAFETY: as above.
        unsafe { ptr::copy_nonoverlapping(ptr::with_exposed_provenance(from.0 as usize), to, bytes) };
        Ok(())
    }

    unsafe fn copy_on_device(
        &self,
        from: DevicePointer,
        to: DevicePointer,
        bytes: usize,
        stream: StreamHandle,
    ) -> DriverResult<()> {
        let work = Work::Copy { from: from.0 as usize, to: to.0 as usize, bytes };
        // SAFETY: the caller's promise.
        unsafe { self.queue("cuMemcpyDtoDAsync", stream, work) }
    }

    unsafe fn fill(&self, to: DevicePointer, value: u8, bytes: usize, stream: StreamHandle) -> DriverResult<()> {
        // SAFETY: the caller's promise.
        unsafe { self.queue("cuMemsetD8Async", stream, Work::Fill { to: to.0 as usize, value, bytes }) }
    }

    fn load_module(&self, image: &[u8]) -> DriverResult<ModuleHandle> {
        let module = Module::load(image).map_err(|what| error("cuModuleLoadData", code::NO_BINARY_FOR_GPU, what))?;
        let mut state = self.state()?;
        let handle = state.next();
        state.modules.insert(handle, Arc::new(module));
        Ok(ModuleHandle::of_driver(handle))
    }

    unsafe fn unload_module(&self, module: ModuleHandle) -> DriverResult<()> {
        let mut state = self.state_even_if_lost();
        state.functions.retain(|_, function| function.of != module.as_raw());
        state.modules.remove(&module.as_raw()).map(drop).ok_or_else(|| none("cuModuleUnload", "module"))
    }

    fn function(&self, module: ModuleHandle, name: &str) -> DriverResult<FunctionHandle> {
        let call = "cuModuleGetFunction";
        let mut state = self.state()?;
        let of = module.as_raw();
        let module = Arc::clone(state.modules.get(&of).ok_or_else(|| none(call, "module"))?);
        let entry = module.entry(name);
        let entry = entry.ok_or_else(|| error(call, code::NOT_FOUND, format!("there is no kernel {name}")))?;
        let allowed = (48 << 10) - module.static_shared_bytes().min(48 << 10) as u32;
        let handle = state.next();
        state.functions.insert(handle, Function { module, of, name: name.to_owned(), entry, allowed });
        Ok(FunctionHandle::of_driver(handle))
    }

    fn function_attributes(&self, function: FunctionHandle) -> DriverResult<FunctionAttributes> {
        let state = self.state()?;
        let function = state.functions.get(&function.as_raw()).ok_or_else(|| none("cuFuncGetAttribute", "kernel"))?;
        Ok(FunctionAttributes {
            static_shared_bytes: function.module.static_shared_bytes() as u32,
            threads_per_block: self.limits.threads_per_block,
            ..FunctionAttributes::default()
        })
    }

    fn allow_shared_bytes(&self, function: FunctionHandle, bytes: u32) -> DriverResult<()> {
        let call = "cuFuncSetAttribute";
        let mut state = self.state()?;
        let function = state.functions.get_mut(&function.as_raw()).ok_or_else(|| none(call, "kernel"))?;
        let (fixed, there) = (function.module.static_shared_bytes(), self.limits.shared_bytes_per_block);
        if fixed + bytes as usize > there as usize {
            let what = format!("{bytes} bytes of shared memory beside {fixed} are more than {there}");
            return Err(error(call, code::INVALID_VALUE, what));
        }
        function.allowed = bytes;
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
        let function = self.state()?.functions.get(&function.as_raw()).cloned().ok_or_else(|| none(call, "kernel"))?;
        if grid == 0 || block == 0 || block > self.limits.threads_per_block || shared_bytes > function.allowed {
            let (name, allowed) = (&function.name, function.allowed);
            let what =
                format!("{name}: {grid} blocks of {block} threads, {shared_bytes} of {allowed} bytes of shared memory");
            return Err(error(call, code::INVALID_VALUE, what));
        }
        let work = Work::Launch { function, grid, block, shared_bytes, arguments: Box::new(arguments.clone()) };
        // SAFETY: the caller's promise.
        unsafe { self.queue(call, stream, work) }
    }

    fn create_stream(&self) -> DriverResult<StreamHandle> {
        let mut state = self.state()?;
        let stream = state.next();
        state.streams.insert(stream);
        Ok(StreamHandle::of_driver(stream))
    }

    unsafe fn destroy_stream(&self, stream: StreamHandle) -> DriverResult<()> {
        let there = self.state_even_if_lost().streams.remove(&stream.as_raw());
        there.then_some(()).ok_or_else(|| none("cuStreamDestroy", "stream"))
    }

    fn synchronize(&self, stream: StreamHandle) -> DriverResult<()> {
        self.state()?.outside_capture("cuStreamSynchronize", stream)
    }

    fn is_capturing(&self, stream: StreamHandle) -> DriverResult<bool> {
        Ok(self.state()?.capturing.contains_key(&stream.as_raw()))
    }

    fn create_event(&self, _timing: bool) -> DriverResult<EventHandle> {
        let mut state = self.state()?;
        let event = state.next();
        state.events.insert(event, None);
        Ok(EventHandle::of_driver(event))
    }

    unsafe fn destroy_event(&self, event: EventHandle) -> DriverResult<()> {
        let there = self.state_even_if_lost().events.remove(&event.as_raw());
        there.map(drop).ok_or_else(|| none("cuEventDestroy", "event"))
    }

    fn record(&self, event: EventHandle, stream: StreamHandle) -> DriverResult<()> {
        let mut state = self.state()?;
        state.stream("cuEventRecord", stream)?;
        let mark = state.events.get_mut(&event.as_raw()).ok_or_else(|| none("cuEventRecord", "event"))?;
        *mark = Some(Instant::now());
        Ok(())
    }

    fn wait(&self, stream: StreamHandle, event: EventHandle) -> DriverResult<()> {
        let state = self.state()?;
        state.stream("cuStreamWaitEvent", stream)?;
        state.events.get(&event.as_raw()).map(|_| ()).ok_or_else(|| none("cuStreamWaitEvent", "event"))
    }

    fn passed(&self, event: EventHandle) -> DriverResult<bool> {
        Ok(self.state()?.events.contains_key(&event.as_raw()))
    }

    fn synchronize_event(&self, event: EventHandle) -> DriverResult<()> {
        self.state()?.events.get(&event.as_raw()).map(|_| ()).ok_or_else(|| none("cuEventSynchronize", "event"))
    }

    fn elapsed_ms(&self, start: EventHandle, end: EventHandle) -> DriverResult<f32> {
        let state = self.state()?;
        let at = |event: EventHandle| state.events.get(&event.as_raw()).copied().flatten();
        let both = at(start).zip(at(end)).ok_or_else(|| none("cuEventElapsedTime", "event"))?;
        Ok(both.1.duration_since(both.0).as_secs_f32() * 1e3)
    }

    fn begin_capture(&self, stream: StreamHandle) -> DriverResult<()> {
        let mut state = self.state()?;
        state.outside_capture("cuStreamBeginCapture", stream)?;
        state.capturing.insert(stream.as_raw(), Vec::new());
        Ok(())
    }

    fn end_capture(&self, stream: StreamHandle) -> DriverResult<GraphHandle> {
        let mut state = self.state()?;
        let captured = state.capturing.remove(&stream.as_raw());
        let captured =
            captured.ok_or_else(|| error("cuStreamEndCapture", code::INVALID_VALUE, "no capture was begun"))?;
        let graph = state.next();
        state.graphs.insert(graph, captured);
        Ok(GraphHandle::of_driver(graph))
    }

    unsafe fn launch_graph(&self, graph: GraphHandle, stream: StreamHandle) -> DriverResult<()> {
        let call = "cuGraphLaunch";
        let captured = self.state()?.graphs.get(&graph.as_raw()).cloned().ok_or_else(|| none(call, "graph"))?;
        // SAFETY: the caller's promise, for each piece of work.
        captured.into_iter().try_for_each(|work| unsafe { self.queue(call, stream, work) })
    }

    unsafe fn destroy_graph(&self, graph: GraphHandle) -> DriverResult<()> {
        let there = self.state_even_if_lost().graphs.remove(&graph.as_raw());
        there.map(drop).ok_or_else(|| none("cuGraphExecDestroy", "graph"))
    }
}
