//! A problem from host memory, prepared: one plan for all GPUs, how many matrices at a time, and the memory for it.

use batchla_core::{Backend, Error, ErrorKind, Options, Plan, Prepared, Problem};

use super::slot::SlotParts;
use super::{CudaHost, Lane};
use crate::backend::{CudaPrepared, plan_for};
use crate::limits::Limits;
use crate::memory::DeviceArray;
use crate::plan::CudaPlan;
use crate::workspace::{CudaWorkspace, Parts, group_of};

/// Chunks of a device at a time: one is copied up, one computed, one copied down.
const SLOTS: usize = 3;
/// Chunks of a small batch, so that copies and kernels overlap.
const PIECES: usize = 16;
/// Bytes of a slot below which a chunk costs more than it overlaps.
const LEAST: u64 = 8 << 20;
/// Bytes of a slot above which nothing is gained, unless that few matrices leave multiprocessors idle.
const MOST: u64 = 128 << 20;
/// Matrices a multiprocessor that a chunk should have.
const EACH_MULTIPROCESSOR: usize = 2;
/// One part in so many of the device's memory is taken where no bound is set.
const SHARE: u64 = 4;

/// What [`CudaHost`] prepares: the plan, its kernels on each GPU, and the size of chunks.
#[derive(Debug)]
pub struct CudaHostPrepared {
    problem: Problem,
    /// The problem of a chunk, on each GPU.
    pub(super) devices: Vec<CudaPrepared>,
    pub(super) parts: SlotParts,
    pub(super) chunk: usize,
    slots: usize,
}

/// Memory on each GPU for one run at a time of what was prepared.
#[derive(Debug)]
pub struct CudaHostWorkspace {
    pub(super) devices: Vec<LaneWorkspace>,
}

#[derive(Debug)]
pub(super) struct LaneWorkspace {
    pub(super) slots: Vec<DeviceArray<u32>>,
    pub(super) scratch: CudaWorkspace,
}

/// How a batch goes through the GPUs: so many matrices at a time, each time by way of a slot.
pub(super) struct Division {
    pub(super) packed: Problem,
    pub(super) chunk: usize,
    plan: CudaPlan,
    limits: Limits,
    parts: SlotParts,
    slots: usize,
    /// Bytes of device memory on each GPU.
    bytes: u64,
}

impl Division {
    pub(super) fn of(host: &CudaHost, problem: &Problem, options: &Options) -> Result<Self, Error> {
        let packed = problem.packed()?;
        let (plan, limits) = plan_for(host.gpus(), &packed, options)?;
        let bound = host.memory_bytes.unwrap_or(limits.memory_bytes / SHARE);
        // Scratch memory gets a quarter of the bound: its share of a device of four times as much.
        let limits = Limits { memory_bytes: limits.memory_bytes.min(bound.saturating_mul(4)), ..limits };
        let size = |count: usize, slots: usize| -> Option<(u64, SlotParts)> {
            let chunk = packed.with_batch(count).ok()?;
            let (parts, scratch) = (SlotParts::of(&chunk)?, Parts::of(&chunk, &plan, &limits).ok()?);
            Some((parts.bytes.checked_mul(slots as u64)?.checked_add(scratch.bytes)?, parts))
        };
        let lanes = group_of(&packed);
        let mut chunk = host.chunk.unwrap_or_else(|| wanted(&packed, lanes, host.lanes.len(), &limits));
        chunk = chunk.max(1).next_multiple_of(lanes);
        let mut most = SLOTS;
        let (slots, bytes, parts) = loop {
            let whole = chunk.min(packed.batch());
            let slots = most.min(packed.batch().div_ceil(chunk).max(1));
            match size(whole, slots) {
                Some((bytes, parts)) if bytes <= bound => break (slots, bytes, parts),
                _ if chunk > lanes => chunk = (chunk / 2).next_multiple_of(lanes).min(chunk - lanes),
                _ if slots > 1 => most = slots - 1,
                other => return Err(exhausted(problem, lanes, other.map(|(bytes, _)| bytes), bound)),
            }
        };
        Ok(Self { packed, chunk, plan, limits, parts, slots, bytes })
    }

    /// Bytes of device memory on so many GPUs.
    pub(super) fn bytes_on(&self, gpus: usize) -> u64 {
        self.bytes.saturating_mul(gpus as u64)
    }
}

impl CudaHostPrepared {
    pub(super) fn new(host: &CudaHost, problem: &Problem, options: &Options) -> Result<Self, Error> {
        let Division { packed, chunk, plan, limits, parts, slots, .. } = Division::of(host, problem, options)?;
        let of_chunk = packed.with_batch(chunk.min(packed.batch()))?;
        log::debug!("{problem}: {chunk} at a time in {slots} slots of {} bytes; {plan}", parts.bytes);
        let prepare = |lane: &Lane| lane.gpu.prepare_as(&of_chunk, plan.clone(), &limits);
        let devices = host.lanes.iter().map(prepare).collect::<Result<_, _>>()?;
        Ok(Self { problem: problem.clone(), devices, parts, chunk, slots })
    }

    /// Matrices that are worked on at a time.
    pub fn chunk(&self) -> usize {
        self.chunk
    }
}

/// As many matrices as help: enough for the GPU to be busy, few enough for copies to overlap; chunks of about one size.
fn wanted(problem: &Problem, lanes: usize, gpus: usize, limits: &Limits) -> usize {
    let batch = problem.batch().max(1);
    let group =
        problem.with_batch(lanes).ok().and_then(|group| SlotParts::of(&group)).map_or(u64::MAX, |parts| parts.bytes);
    let each = (group / lanes as u64).max(1);
    let bytes = (each.saturating_mul(batch as u64) / (PIECES * gpus) as u64).clamp(LEAST, MOST);
    let count = usize::try_from(bytes / each).unwrap_or(usize::MAX);
    let count = count.max(limits.multiprocessors as usize * EACH_MULTIPROCESSOR);
    batch.div_ceil(batch.div_ceil(count))
}

fn exhausted(problem: &Problem, lanes: usize, needed: Option<u64>, bound: u64) -> Error {
    let needed = needed.map_or("more than can be counted".to_owned(), |bytes| format!("{bytes} bytes"));
    let what = format!("{problem}: {lanes} at a time need {needed} of device memory, and the bound is {bound}");
    Error::new(ErrorKind::OutOfMemory, "prepare", what)
        .advise("allow more device memory: with_memory_bytes, or BATCHLA_DEVICE_MEMORY")
}

impl Prepared for CudaHostPrepared {
    fn problem(&self) -> &Problem {
        &self.problem
    }
    fn plan(&self) -> &dyn Plan {
        self.devices[0].plan()
    }
    fn workspace_bytes(&self) -> u64 {
        let slots = self.parts.bytes * self.slots as u64;
        self.devices.iter().map(|prepared| slots + prepared.workspace_bytes()).sum()
    }
}

impl CudaHostWorkspace {
    pub(super) fn new(host: &CudaHost, prepared: &CudaHostPrepared) -> Result<Self, Error> {
        let words = usize::try_from(prepared.parts.bytes.div_ceil(4)).unwrap_or(usize::MAX);
        let device = |(lane, device): (&Lane, &CudaPrepared)| {
            // SAFETY: copies up and kernels write each part of a slot before anything reads it.
            let slot = |_| unsafe { DeviceArray::uninitialized(lane.gpu.stream(), words) };
            let slots = (0..prepared.slots).map(slot).collect::<Result<_, _>>()?;
            Ok(LaneWorkspace { slots, scratch: lane.gpu.workspace(device)? })
        };
        Ok(Self { devices: host.lanes.iter().zip(&prepared.devices).map(device).collect::<Result<_, Error>>()? })
    }

    /// Refuses what was made for another problem, other GPUs or other streams.
    pub(super) fn check(&self, host: &CudaHost, prepared: &CudaHostPrepared) -> Result<(), Error> {
        let words = prepared.parts.bytes.div_ceil(4);
        let fits = |(device, lane): (&LaneWorkspace, &Lane)| {
            let own =
                |slot: &DeviceArray<u32>| slot.len() as u64 >= words && slot.slice().stream().same(lane.gpu.stream());
            !device.slots.is_empty() && device.slots.iter().all(own)
        };
        let lanes = host.lanes.len();
        if [self.devices.len(), prepared.devices.len()] == [lanes; 2]
            && self.devices.iter().zip(host.lanes.iter()).all(fits)
        {
            return Ok(());
        }
        let what = format!("the workspace is not of these {lanes} GPUs with slots of {words} words");
        Err(Error::new(ErrorKind::Argument, prepared.problem.operation().name(), what)
            .advise("use the workspace that was made for what was prepared"))
    }
}
