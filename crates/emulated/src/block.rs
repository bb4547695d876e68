//! One block of threads, run by one thread of the operating system: each is a fibre that goes on until it must wait for others.

mod access;
mod meeting;

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::fault::{Fault, Kind};
use crate::hooks::{Here, while_running};
use crate::module::Entry;
use crate::shadow::Shadow;
use access::Copies;
use meeting::{Meeting, Warp};

const WARP: u32 = 32;
/// Bytes of a fibre's stack. Only what is used of it takes memory.
const STACK: usize = 256 << 10;

type Fibre = Coroutine<(), (), (), DefaultStack>;

/// The block that runs, and all that its threads share.
pub(crate) struct Block {
    pub(crate) here: Here,
    /// Stacks for its fibres.
    spare: Vec<DefaultStack>,
    yielders: Vec<*const Yielder<(), ()>>,
    stacks: Vec<Range<usize>>,
    /// Where each thread waits, and in what.
    waiting: Vec<Option<(u32, usize)>>,
    ready: VecDeque<u32>,
    barrier: Meeting,
    warps: Vec<Warp>,
    order: Option<fastrand::Rng>,
    shadow: Option<Shadow>,
    accesses: u64,
    copies: Copies,
    fault: Option<Fault>,
}

/// Stacks that no block uses at present.
static STACKS: Mutex<Vec<DefaultStack>> = Mutex::new(Vec::new());

fn stacks() -> MutexGuard<'static, Vec<DefaultStack>> {
    STACKS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Block {
    fn drop(&mut self) {
        stacks().append(&mut self.spare);
    }
}

impl Block {
    /// `threads` a block. `seed` permutes the order in which threads take turns; 0 is ascending.
    pub(crate) fn new(threads: u32, blocks: u32, seed: u64, shadow: Option<Shadow>) -> Self {
        let spare = {
            let mut all = stacks();
            let rest = all.len().saturating_sub(threads as usize);
            all.split_off(rest)
        };
        Self {
            spare,
            here: Here { thread: 0, block: 0, threads, blocks },
            yielders: Vec::new(),
            stacks: Vec::new(),
            waiting: Vec::new(),
            ready: VecDeque::new(),
            barrier: Meeting::default(),
            warps: Vec::new(),
            order: (seed != 0).then(|| fastrand::Rng::with_seed(seed)),
            shadow,
            accesses: 0,
            copies: Copies::default(),
            fault: None,
        }
    }

    /// Runs block `index` of a kernel to its end.
    ///
    /// # Safety
    /// The arguments are those of the kernel's signature, and what they point to is alive and of nobody else's concern.
    pub(crate) unsafe fn run(
        &mut self,
        index: u32,
        entry: Entry,
        arguments: *mut *mut c_void,
    ) -> Result<(), Box<Fault>> {
        let threads = self.here.threads;
        self.here.block = index;
        self.yielders = vec![ptr::null(); threads as usize];
        self.waiting = vec![None; threads as usize];
        self.barrier = Meeting::default();
        self.accesses = 0;
        self.copies = Copies::new(threads);
        self.warps = (0..threads.div_ceil(WARP)).map(|_| Warp::default()).collect();
        if let Some(shadow) = &mut self.shadow {
            shadow.begin_block();
        }
        let mut fibres = Vec::with_capacity(threads as usize);
        self.stacks.clear();
        let block: *mut Self = self;
        for thread in 0..threads {
            let Some(stack) = self.spare.pop().or_else(|| DefaultStack::new(STACK).ok()) else {
                let what = "cannot be given a stack: the host has too little memory".to_owned();
                return Err(Box::new(self.fault(Kind::Barrier, what, 0, None)));
            };
            self.stacks.push(stack.limit().get()..stack.base().get());
            fibres.push(Some(Fibre::with_stack(stack, move |yielder, ()| {
                // SAFETY: the block outlives its fibres, and is not borrowed while one runs; the caller's promise.
                unsafe {
                    (&mut (*block).yielders)[thread as usize] = yielder;
                    entry(arguments);
                }
            })));
        }
        let all: Vec<u32> = (0..threads).collect();
        self.release(all);
        while_running(block, || {
            // SAFETY: the block is this one; borrows of it end before a fibre goes on.
            while let Some(thread) = unsafe { (*block).next() } {
                let Some(fibre) = &mut fibres[thread as usize] else { continue };
                if let CoroutineResult::Return(()) = fibre.resume(())
                    && let Some(ended) = fibres[thread as usize].take()
                {
                    // SAFETY: as above.
                    unsafe { (*block).spare.push(ended.into_stack()) };
                }
            }
        });
        if self.fault.is_none() && fibres.iter().any(Option::is_some) {
            self.fault = Some(self.stuck(fibres.iter().filter(|fibre| fibre.is_none()).count()));
        }
        for mut fibre in fibres.into_iter().flatten() {
            // SAFETY: what a kernel holds on its stack needs no end: numbers and references.
            unsafe { fibre.force_reset() };
            self.spare.push(fibre.into_stack());
        }
        self.fault.take().map_or(Ok(()), |fault| Err(Box::new(fault)))
    }

    /// The thread whose turn it is; none after a fault.
    fn next(&mut self) -> Option<u32> {
        self.here.thread = self.ready.pop_front().filter(|_| self.fault.is_none())?;
        Some(self.here.thread)
    }

    /// Lets threads go on, in the order of the seed.
    fn release(&mut self, mut threads: Vec<u32>) {
        match &mut self.order {
            Some(order) => order.shuffle(&mut threads),
            None => threads.sort_unstable(),
        }
        for &thread in &threads {
            self.waiting[thread as usize] = None;
        }
        self.ready.extend(threads);
    }

    fn fault(&self, kind: Kind, what: String, at: usize, other: Option<(String, usize)>) -> Fault {
        Fault { kind, what, block: self.here.block, thread: self.here.thread, at, other }
    }

    unsafe fn wait(block: *mut Self) {
        // SAFETY: a yielder lives as long as its fibre, which is the running one.
        unsafe { (*(&(*block).yielders)[(*block).here.thread as usize]).suspend(()) };
    }

    /// Ends the launch with a fault of the running thread.
    ///
    /// # Safety
    /// As [`Block::exchange`].
    pub(crate) unsafe fn stop(block: *mut Self, kind: Kind, what: String, at: usize, other: Option<(String, usize)>) {
        // SAFETY: the caller's promise.
        unsafe { (*block).fault = Some((*block).fault(kind, what, at, other)) };
        // SAFETY: as above.
        unsafe { Self::wait(block) };
    }
}
