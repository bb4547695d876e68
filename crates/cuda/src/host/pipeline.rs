//! Chunks on their way: two threads a GPU, one that copies up and queues kernels, one that copies down.
//!
//! A chunk has a slot to itself from the first byte copied up until the last is copied down. Kernels wait on the device for the copies up, the
//! copies down for the kernels; the host waits only for a slot to come free, and for page-locked buffers.

use std::collections::VecDeque;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

use batchla_core::{Backend, Error, ErrorKind};

use super::prepared::LaneWorkspace;
use super::{CudaHost, Lane};
use crate::driver::{DevicePointer, DriverResult};
use crate::event::Event;
use crate::staging::{Ring, Side, with_ring};
use crate::workspace::CudaWorkspace;

/// Host memory that goes up or comes down with each chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    pub(super) side: Side,
    /// Bytes of a group of so many matrices.
    pub(super) group_bytes: usize,
    pub(super) lanes: usize,
    /// Its place in a slot.
    pub(super) part: u64,
    /// Whether its one matrix serves all, and goes with every chunk.
    pub(super) shared: bool,
}

impl Leg {
    /// The bytes of some results' operands.
    fn range(&self, results: &Range<usize>) -> Range<usize> {
        if self.shared {
            return 0..self.group_bytes;
        }
        results.start / self.lanes * self.group_bytes..results.end.div_ceil(self.lanes) * self.group_bytes
    }
}

/// Queues the kernels of a chunk: the GPU's number, its scratch memory, the slot's address, how many results.
pub(super) type Launch<'a> = dyn Fn(usize, &mut CudaWorkspace, u64, usize) -> Result<(), Error> + Sync + 'a;

/// What all threads of a run share.
pub(super) struct Run<'a> {
    operation: &'static str,
    batch: usize,
    chunk: usize,
    up: &'a [Leg],
    down: &'a [Leg],
    launch: &'a Launch<'a>,
    /// The first matrix that nobody took yet.
    next: AtomicUsize,
    /// What went wrong first; everybody stops then.
    failure: Mutex<Option<Error>>,
}

/// A chunk whose kernels are queued.
struct Queued {
    slot: usize,
    results: Range<usize>,
    ran: Event,
}

impl<'a> Run<'a> {
    pub(super) fn new(
        operation: &'static str,
        [batch, chunk]: [usize; 2],
        [up, down]: [&'a [Leg]; 2],
        launch: &'a Launch<'a>,
    ) -> Self {
        Self { operation, batch, chunk, up, down, launch, next: AtomicUsize::new(0), failure: Mutex::default() }
    }

    /// Takes the batch through the GPUs; returns when nothing is under way any more.
    ///
    /// # Safety
    /// The legs' memory has so many matrices, and is nobody else's to write, or, going up, to write elsewhere, during the call.
    pub(super) unsafe fn through(&self, host: &CudaHost, workspace: &mut [LaneWorkspace]) -> Result<(), Error> {
        let gpus = host.lanes.iter().zip(workspace).enumerate();
        if self.batch <= self.chunk {
            gpus.take(1).for_each(|(number, (lane, memory))| self.whole(number, lane, memory));
        } else {
            thread::scope(|scope| gpus.for_each(|(number, (lane, memory))| self.shared(scope, number, lane, memory)));
        }
        // Whatever failed, nothing touches the caller's memory afterwards.
        host.lanes.iter().for_each(|lane| lane.settle(|settled| self.note(lane, settled)));
        locked(&self.failure).take().map_or(Ok(()), Err)
    }

    /// A batch of one chunk, on one GPU and this thread.
    fn whole(&self, number: usize, lane: &Lane, memory: &mut LaneWorkspace) {
        let Ways { free, freed, queued, coming } = Ways::new(1);
        let slots = memory.addresses();
        let fed = self.feed(number, lane, &mut memory.scratch, &slots, &freed, queued);
        self.note(lane, fed.and_then(|()| self.drain(lane, &slots, &coming, &free)));
    }

    /// One GPU's share of a batch, by two threads.
    fn shared<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        number: usize,
        lane: &'scope Lane,
        memory: &'scope mut LaneWorkspace,
    ) {
        let (slots, Ways { free, freed, queued, coming }) = (memory.addresses(), Ways::new(memory.slots.len()));
        let (also, scratch) = (slots.clone(), &mut memory.scratch);
        let up = Box::new(move || self.feed(number, lane, scratch, &slots, &freed, queued));
        let down = Box::new(move || self.drain(lane, &also, &coming, &free));
        for work in [up as Box<dyn FnOnce() -> Result<(), Error> + Send>, down] {
            let guarded = move || {
                // A panic stops the others too.
                let done = catch_unwind(AssertUnwindSafe(work));
                self.note(lane, done.unwrap_or_else(|_| Err(self.no_thread().advise("report this"))));
            };
            let spawned = thread::Builder::new().name("batchla chunks".to_owned()).spawn_scoped(scope, guarded);
            self.note(lane, spawned.map(drop).map_err(|error| self.no_thread().caused_by(error)));
        }
    }

    /// Keeps what went wrong first, with the GPU on which it did, and so has the others stop.
    fn note(&self, lane: &Lane, done: Result<(), Error>) {
        if let Err(error) = done {
            locked(&self.failure).get_or_insert_with(|| lane.name(error));
        }
    }

    fn no_thread(&self) -> Error {
        let what = "a thread that takes chunks to a GPU did not start or ended early";
        Error::new(ErrorKind::Device, self.operation, what)
    }

    /// Copies chunks up and queues their kernels, as slots come free.
    fn feed(
        &self,
        number: usize,
        lane: &Lane,
        scratch: &mut CudaWorkspace,
        slots: &[u64],
        freed: &Receiver<usize>,
        queued: Sender<Queued>,
    ) -> Result<(), Error> {
        let (up, run) = (&lane.up, lane.gpu.stream());
        // The slots are allocated in the order of the run's stream.
        up.wait_for(run)?;
        with_ring(up, |ring| {
            // A slot first, then a chunk: whoever is slow takes fewer. No more come free where the other thread failed.
            while self.next.load(Ordering::Relaxed) < self.batch {
                let Ok(slot) = freed.recv() else { break };
                let first = self.next.fetch_add(self.chunk, Ordering::Relaxed);
                if first >= self.batch || locked(&self.failure).is_some() {
                    break;
                }
                let results = first..self.batch.min(first + self.chunk);
                for leg in self.up {
                    // SAFETY: `through`'s promise; the slot is this chunk's, and what was in it was copied down.
                    up.check(self.operation, unsafe { leg.send(ring, lane, &results, slots[slot]) })?;
                }
                run.wait_for(up)?;
                (self.launch)(number, scratch, slots[slot], results.len())?;
                let ran = run.record()?;
                if queued.send(Queued { slot, results, ran }).is_err() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Copies the results of chunks down, and gives their slots free.
    fn drain(&self, lane: &Lane, slots: &[u64], coming: &Receiver<Queued>, free: &Sender<usize>) -> Result<(), Error> {
        let down = &lane.down;
        with_ring(down, |ring| {
            // Chunks whose copies down are queued: two, so that the link does not wait for the host.
            let mut copied: VecDeque<(usize, Event)> = VecDeque::new();
            loop {
                let next = match (copied.len(), coming.try_recv()) {
                    // With nothing to wait for but a chunk, there is time to empty buffers.
                    (0, Err(TryRecvError::Empty)) => {
                        down.check(self.operation, ring.settle())?;
                        coming.recv().map_err(|_| TryRecvError::Disconnected)
                    }
                    (_, next) => next,
                };
                match next {
                    Ok(Queued { slot, results, ran }) => {
                        down.wait_for_event(&ran)?;
                        for leg in self.down {
                            // SAFETY: `through`'s promise; settled below, and waited for by `Lane::settle`.
                            down.check(self.operation, unsafe { leg.fetch(ring, lane, &results, slots[slot]) })?;
                        }
                        copied.push_back((slot, down.record()?));
                        if copied.len() > 1 {
                            free_oldest(&mut copied, free)?;
                        }
                    }
                    Err(TryRecvError::Disconnected) if copied.is_empty() => break,
                    Err(_) => free_oldest(&mut copied, free)?,
                }
            }
            down.check(self.operation, ring.settle())
        })
    }
}

impl Leg {
    /// # Safety
    /// As [`Run::through`]; the slot is at `slot`.
    unsafe fn send(&self, ring: &mut Ring, lane: &Lane, results: &Range<usize>, slot: u64) -> DriverResult<()> {
        let range = self.range(results);
        if range.is_empty() {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { ring.send(&lane.up, self.side, range, DevicePointer(slot + self.part)) }
    }

    /// # Safety
    /// As [`Leg::send`].
    unsafe fn fetch(&self, ring: &mut Ring, lane: &Lane, results: &Range<usize>, slot: u64) -> DriverResult<()> {
        let range = self.range(results);
        if range.is_empty() {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { ring.fetch(&lane.down, DevicePointer(slot + self.part), self.side, range) }
    }
}

impl Lane {
    /// The error of this GPU.
    fn name(&self, error: Error) -> Error {
        let text = error.to_string();
        let what = text.strip_suffix(&format!("; {}", error.advice())).unwrap_or(&text);
        let gpu = format!("GPU {}", self.gpu.device().ordinal());
        Error::new(error.kind(), gpu, what).advise(error.advice()).caused_by(error)
    }

    /// Waits for all that was begun, on each stream whatever the others report.
    fn settle(&self, mut note: impl FnMut(Result<(), Error>)) {
        [&self.up, self.gpu.stream(), &self.down].into_iter().for_each(|stream| note(stream.synchronize()));
    }
}

impl LaneWorkspace {
    fn addresses(&self) -> Vec<u64> {
        self.slots.iter().map(|slot| slot.slice().as_raw()).collect()
    }
}

/// The ways between the two threads of a GPU.
struct Ways {
    free: Sender<usize>,
    freed: Receiver<usize>,
    queued: Sender<Queued>,
    coming: Receiver<Queued>,
}

impl Ways {
    fn new(slots: usize) -> Self {
        let ((free, freed), (queued, coming)) = (channel(), channel());
        for slot in 0..slots {
            let _ = free.send(slot);
        }
        Self { free, freed, queued, coming }
    }
}

/// Waits for the oldest copy down, and gives its slot free.
fn free_oldest(copied: &mut VecDeque<(usize, Event)>, free: &Sender<usize>) -> Result<(), Error> {
    if let Some((slot, done)) = copied.pop_front() {
        done.synchronize()?;
        // Where nobody waits for it, no chunk is left.
        let _ = free.send(slot);
    }
    Ok(())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
