//! What the fake device holds, and how it notices misuse.

use std::alloc::Layout;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Call, Step};
use crate::driver::{DevicePointer, DriverError, DriverResult, StreamHandle, code};

/// The first device address: one that the host does not have.
pub(super) const FIRST: u64 = 0x7000_0000_0000_0000;

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) memory: BTreeMap<u64, Vec<u8>>,
    pub(super) pinned: BTreeMap<usize, Layout>,
    pub(super) used: u64,
    pub(super) end: u64,
    pub(super) last: u64,
    pub(super) streams: HashSet<u64>,
    pub(super) events: HashMap<u64, Mark>,
    pub(super) modules: HashSet<u64>,
    pub(super) functions: HashMap<u64, (u64, String, u32)>,
    pub(super) graphs: HashMap<u64, Vec<Call>>,
    pub(super) capturing: HashMap<u64, Vec<Call>>,
    pub(super) calls: Vec<Call>,
    pub(super) faults: Vec<String>,
    pub(super) failures: HashMap<Step, (usize, u32)>,
    pub(super) lost: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    pub(super) recorded: bool,
    pub(super) captured: bool,
    pub(super) at: usize,
}

pub(super) fn error(call: &'static str, code: u32) -> DriverError {
    let (name, text) = match code {
        code::INVALID_VALUE => ("CUDA_ERROR_INVALID_VALUE", "invalid argument"),
        code::OUT_OF_MEMORY => ("CUDA_ERROR_OUT_OF_MEMORY", "out of memory"),
        code::NO_BINARY_FOR_GPU => ("CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution"),
        code::INVALID_HANDLE => ("CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"),
        code::ILLEGAL_ADDRESS => ("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"),
        code::STREAM_CAPTURE_UNSUPPORTED => ("CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not while capturing"),
        code::STREAM_CAPTURE_ISOLATION => ("CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "dependency on uncaptured work"),
        _ => ("CUDA_ERROR_UNKNOWN", "some error"),
    };
    DriverError { call, code, name: name.into(), text: text.into() }
}

impl State {
    /// A number no handle had before.
    pub(super) fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(super) fn fault(&mut self, call: &'static str, code: u32, what: String) -> DriverError {
        self.faults.push(format!("{call}: {what}"));
        error(call, code)
    }

    /// Whether the device is lost, or this call was told to fail.
    pub(super) fn step(&mut self, call: &'static str, step: Option<Step>) -> DriverResult<()> {
        if let Some(code) = self.lost {
            return Err(error(call, code));
        }
        let Some(failure) = step.and_then(|step| self.failures.get_mut(&step)) else { return Ok(()) };
        let (left, code) = *failure;
        failure.0 = left.wrapping_sub(1);
        if left != 0 {
            return Ok(());
        }
        let failed = error(call, code);
        if failed.is_sticky() {
            self.lost = Some(code);
        }
        Err(failed)
    }

    pub(super) fn stream(&mut self, call: &'static str, stream: StreamHandle) -> DriverResult<()> {
        if self.streams.contains(&stream.0) {
            return Ok(());
        }
        Err(self.fault(call, code::INVALID_HANDLE, format!("stream {} is destroyed or none", stream.0)))
    }

    pub(super) fn outside_capture(&mut self, call: &'static str, stream: StreamHandle) -> DriverResult<()> {
        if self.capturing.contains_key(&stream.0) {
            return Err(self.fault(call, code::STREAM_CAPTURE_UNSUPPORTED, "inside a capture".into()));
        }
        Ok(())
    }

    pub(super) fn bytes(
        &mut self,
        call: &'static str,
        pointer: DevicePointer,
        bytes: usize,
    ) -> DriverResult<&mut [u8]> {
        let there = self.memory.range(..=pointer.0).next_back().map(|(&start, memory)| (start, memory.len()));
        let inside = |&(start, len): &(u64, usize)| (pointer.0 - start).saturating_add(bytes as u64) <= len as u64;
        let Some((start, _)) = there.filter(inside) else {
            let what = format!("{bytes} bytes at {:#x} are not allocated", pointer.0);
            return Err(self.fault(call, code::INVALID_VALUE, what));
        };
        let offset = (pointer.0 - start) as usize;
        let memory = self.memory.get_mut(&start).map(Vec::as_mut_slice).unwrap_or_default();
        Ok(&mut memory[offset..offset + bytes])
    }
}

impl State {
    /// Captures work, or does it.
    pub(super) fn queue(&mut self, stream: StreamHandle, work: Call) -> DriverResult<()> {
        if let Some(captured) = self.capturing.get_mut(&stream.0) {
            captured.push(work);
            return Ok(());
        }
        match work {
            Call::Fill { pointer, value, bytes, .. } => self.bytes("cuMemsetD8Async", pointer, bytes)?.fill(value),
            Call::CopyOnDevice { from, to, bytes, .. } => {
                let copied = self.bytes("cuMemcpyDtoDAsync", from, bytes)?.to_vec();
                self.bytes("cuMemcpyDtoDAsync", to, bytes)?.copy_from_slice(&copied);
            }
            _ => {}
        }
        self.calls.push(work);
        Ok(())
    }
}
