//! What an emulated GPU holds, and how it does its work: at once, by whoever asks for it.

use std::alloc::Layout;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use batchla_cuda::Limits;
use batchla_cuda::driver::{Arguments, DriverError, DriverResult, StreamHandle, code};

use crate::Checks;
use crate::block::Block;
use crate::memory::{Allocation, Memory, POISON};
use crate::module::{Entry, Module};
use crate::shadow::Shadow;

/// A GPU that is none: its memory is the host's, its kernels are run by whoever launches them.
#[derive(Debug)]
pub(crate) struct Emulation {
    pub(crate) limits: Limits,
    seed: u64,
    checks: Checks,
    largest_grid: u32,
    pub(crate) memory: Memory,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) last: u64,
    pub(crate) streams: HashSet<u64>,
    pub(crate) events: HashMap<u64, Option<Instant>>,
    pub(crate) modules: HashMap<u64, Arc<Module>>,
    pub(crate) functions: HashMap<u64, Function>,
    pub(crate) capturing: HashMap<u64, Vec<Work>>,
    pub(crate) graphs: HashMap<u64, Vec<Work>>,
    pub(crate) pinned: BTreeMap<usize, Layout>,
    pub(crate) lost: Option<DriverError>,
}

#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) module: Arc<Module>,
    pub(crate) of: u64,
    pub(crate) name: String,
    pub(crate) entry: Entry,
    pub(crate) allowed: u32,
}

/// What a stream does, now or when a graph is launched.
#[derive(Clone, Debug)]
pub(crate) enum Work {
    Fill { to: usize, value: u8, bytes: usize },
    Copy { from: usize, to: usize, bytes: usize },
    Launch { function: Function, grid: u32, block: u32, shared_bytes: u32, arguments: Box<Arguments> },
}

pub(crate) fn error(call: &'static str, code: u32, text: impl Into<String>) -> DriverError {
    let name = match code {
        code::INVALID_VALUE => "CUDA_ERROR_INVALID_VALUE",
        code::OUT_OF_MEMORY => "CUDA_ERROR_OUT_OF_MEMORY",
        code::NO_BINARY_FOR_GPU => "CUDA_ERROR_NO_BINARY_FOR_GPU",
        code::INVALID_HANDLE => "CUDA_ERROR_INVALID_HANDLE",
        code::NOT_FOUND => "CUDA_ERROR_NOT_FOUND",
        code::LAUNCH_OUT_OF_RESOURCES => "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        code::STREAM_CAPTURE_UNSUPPORTED => "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
        _ => "CUDA_ERROR_UNKNOWN",
    };
    DriverError { call, code, name: name.into(), text: text.into().into() }
}

pub(crate) fn none(call: &'static str, what: &str) -> DriverError {
    error(call, code::INVALID_HANDLE, format!("there is no such {what}"))
}

impl State {
    pub(crate) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(crate) fn stream(&self, call: &'static str, stream: StreamHandle) -> DriverResult<()> {
        self.streams.contains(&stream.as_raw()).then_some(()).ok_or_else(|| none(call, "stream"))
    }

    pub(crate) fn outside_capture(&self, call: &'static str, stream: StreamHandle) -> DriverResult<()> {
        self.stream(call, stream)?;
        if self.capturing.contains_key(&stream.as_raw()) {
            return Err(error(call, code::STREAM_CAPTURE_UNSUPPORTED, "not inside a capture"));
        }
        Ok(())
    }
}

impl Emulation {
    pub(crate) fn new(limits: Limits, seed: u64, checks: Checks, largest_grid: u32) -> Self {
        Self { limits, seed, checks, largest_grid, memory: Memory::default(), state: Mutex::default() }
    }

    /// What the device holds, unless it is lost.
    pub(crate) fn state(&self) -> DriverResult<MutexGuard<'_, State>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.lost.clone().map_or(Ok(state), Err)
    }

    /// What is freed or destroyed on a lost device too.
    pub(crate) fn state_even_if_lost(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn bytes(
        &self,
        call: &'static str,
        address: usize,
        bytes: usize,
    ) -> DriverResult<(Arc<Allocation>, usize)> {
        let what = || format!("{bytes} bytes at {address:#x} are not allocated");
        self.memory.find(address, bytes).ok_or_else(|| error(call, code::INVALID_VALUE, what()))
    }

    /// Does some work, or keeps it for a graph.
    ///
    /// # Safety
    /// As the call that asks for it.
    pub(crate) unsafe fn queue(&self, call: &'static str, stream: StreamHandle, work: Work) -> DriverResult<()> {
        let mut state = self.state()?;
        state.stream(call, stream)?;
        if let Some(captured) = state.capturing.get_mut(&stream.as_raw()) {
            captured.push(work);
            return Ok(());
        }
        // Other threads may launch meanwhile.
        drop(state);
        // SAFETY: the caller's promise.
        unsafe { self.work(call, work) }
    }

    unsafe fn work(&self, call: &'static str, work: Work) -> DriverResult<()> {
        match work {
            Work::Fill { to, value, bytes } => {
                let (allocation, offset) = self.bytes(call, to, bytes)?;
                // SAFETY: so many bytes are allocated there, and nobody else's concern.
                unsafe { ptr::with_exposed_provenance_mut::<u8>(to).write_bytes(value, bytes) };
                allocation.wrote(offset, bytes);
            }
            Work::Copy { from, to, bytes } => {
                let (_source, _) = self.bytes(call, from, bytes)?;
                let (allocation, offset) = self.bytes(call, to, bytes)?;
                let from = ptr::with_exposed_provenance::<u8>(from);
                // SAFETY: as above, for both.
                unsafe { ptr::copy(from, ptr::with_exposed_provenance_mut(to), bytes) };
                allocation.wrote(offset, bytes);
            }
            Work::Launch { function, grid, block, shared_bytes, arguments } => {
                // SAFETY: the caller's promise.
                let ran = unsafe { self.run(&function, grid, block, shared_bytes, &arguments) };
                if let Err(lost) = ran {
                    self.state_even_if_lost().lost = Some(lost.clone());
                    return Err(lost);
                }
            }
        }
        Ok(())
    }

    /// Runs all blocks of a kernel, one after the other.
    unsafe fn run(
        &self,
        function: &Function,
        grid: u32,
        threads: u32,
        shared_bytes: u32,
        arguments: &Arguments,
    ) -> DriverResult<()> {
        let (module, grid) = (&*function.module, grid.min(self.largest_grid));
        let shadow =
            (self.checks == Checks::All).then(|| Shadow::new(self.memory.snapshot(), module, shared_bytes as usize));
        let mut addresses: Vec<_> = arguments.iter().map(|bytes| bytes.as_ptr().cast_mut().cast()).collect();
        let mut block = Block::new(threads, grid, self.seed, shadow);
        let memory = module.memory();
        for turn in 0..grid {
            // Odd seeds take the blocks from the last to the first.
            let index = if self.seed % 2 == 1 { grid - 1 - turn } else { turn };
            // SAFETY: the dynamic shared memory is as large as any GPU's, and the arrays lie where the object's table says; both are
            // this thread's own.
            unsafe {
                memory.write_bytes(POISON, shared_bytes as usize);
                module.shared.iter().for_each(|one| memory.offset(one.offset).write_bytes(POISON, one.bytes));
            }
            // SAFETY: the caller's promise.
            let ran = unsafe { block.run(index, function.entry, addresses.as_mut_ptr()) };
            ran.map_err(|fault| fault.into_error(&function.name, |at| module.line(at)))?;
        }
        Ok(())
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        for (&pointer, &layout) in &self.state_even_if_lost().pinned {
            // SAFETY: allocated in `allocate_pinned` with this layout and not freed since.
            unsafe { std::alloc::dealloc(ptr::with_exposed_provenance_mut(pointer), layout) };
        }
    }
}
