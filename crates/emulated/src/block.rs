//! One block of threads, run by one thread of the operating system: each is a fibre that goes on until it must wait for others.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use corosensei::stack::{DefaultStack, Stack};
use corosensei::{Coroutine, CoroutineResult, Yielder};

use crate::fault::{Fault, Kind};
use crate::hooks::{Access, Exchanged, Here, while_running};
use crate::meeting::{MEETINGS, Meeting, SYNC_WARP, Warp};
use crate::module::Entry;
use crate::shadow::{Now, Shadow};

const WARP: u32 = 32;
/// Bytes of a fibre's stack. Only what is used of it takes memory.
const STACK: usize = 256 << 10;

/// Watched accesses of a block, after which it is taken to be endless.
const ENDLESS: u64 = 1 << 28;

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

    /// Why nobody can go on.
    fn stuck(&mut self, ended: usize) -> Fault {
        let threads = self.here.threads;
        let waiting = |found: &dyn Fn(u32) -> bool| {
            let all = self.waiting.iter().enumerate();
            all.filter_map(|(thread, at)| at.map(|(kind, at)| (thread as u32, kind, at)))
                .find(|(_, kind, _)| found(*kind))
        };
        // Lanes that wait for lanes of their warp come first: a barrier is then missed because of them.
        let in_warp = waiting(&|kind| kind < 7);
        let Some((thread, kind, at)) = in_warp.or_else(|| waiting(&|_| true)) else {
            return self.fault(Kind::Barrier, "never goes on".to_owned(), 0, None);
        };
        let name = MEETINGS[kind as usize];
        let elsewhere = self
            .waiting
            .iter()
            .enumerate()
            .find_map(|(other, waits)| waits.filter(|waits| *waits != (kind, at)).map(|waits| (other, waits)));
        let other =
            elsewhere.map(|(other, (kind, at))| (format!("thread {other} waits in {}", MEETINGS[kind as usize]), at));
        let (fault, there, of) = if in_warp.is_some() {
            let first = thread / WARP * WARP;
            let lanes = &self.waiting[first as usize..(first + WARP).min(threads) as usize];
            (Kind::Exchange, lanes.iter().filter(|waits| **waits == Some((kind, at))).count(), "lanes of its warp")
        } else {
            (Kind::Barrier, self.waiting.iter().filter(|waits| waits.is_some()).count(), "threads of its block")
        };
        let what = format!("waits in {name}, where {there} {of} are; {ended} of {threads} threads have ended");
        self.here.thread = thread;
        self.fault(fault, what, at, other)
    }

    /// Adds the running thread to a meeting. True where it is the last that was waited for.
    fn arrive(&mut self, warp: Option<(usize, usize)>, kind: u32, at: usize, value: u64) -> bool {
        let thread = self.here.thread;
        let meeting = match warp {
            Some((warp, meeting)) => &mut *self.warps[warp].meetings[meeting],
            None => &mut self.barrier,
        };
        if !meeting.arrived.is_empty() && meeting.kind != kind {
            let (first, name, other) = (meeting.arrived[0], MEETINGS[meeting.kind as usize], meeting.at);
            let fault = if warp.is_some() { Kind::Exchange } else { Kind::Barrier };
            let what = format!("comes to {}", MEETINGS[kind as usize]);
            self.fault = Some(self.fault(fault, what, at, Some((format!("thread {first} waits in {name}"), other))));
            return false;
        }
        let expected = match warp {
            Some(_) => meeting.lanes.count_ones(),
            None => self.here.threads,
        };
        self.waiting[thread as usize] = Some((kind, at));
        meeting.join(thread, thread % WARP, kind, at, value, expected)
    }

    /// Waits for lanes of the warp, and gives what each brought.
    ///
    /// # Safety
    /// Called on a fibre of this block, of which nothing is borrowed.
    pub(crate) unsafe fn exchange(block: *mut Self, kind: u32, lanes: u32, value: u64, at: usize) -> *const Exchanged {
        // SAFETY: the caller's promise; the borrow ends before the fibre waits.
        let given = unsafe { (*block).join_lanes(kind, lanes, value, at) };
        // SAFETY: as above.
        unsafe { Self::wait(block) };
        given
    }

    fn join_lanes(&mut self, kind: u32, lanes: u32, value: u64, at: usize) -> *const Exchanged {
        let (warp, lane) = ((self.here.thread / WARP) as usize, self.here.thread % WARP);
        if lanes >> lane & 1 == 0 {
            let what = format!("is not among the lanes {lanes:#x} of the {} that it calls", MEETINGS[kind as usize]);
            self.fault = Some(self.fault(Kind::Exchange, what, at, None));
            return ptr::null();
        }
        let meetings = &mut self.warps[warp].meetings;
        let found = meetings.iter().position(|meeting| meeting.lanes == lanes);
        let index = found.unwrap_or_else(|| {
            meetings.push(Box::new(Meeting { lanes, ..Meeting::default() }));
            meetings.len() - 1
        });
        if self.arrive(Some((warp, index)), kind, at, value) {
            let meeting = &mut self.warps[warp].meetings[index];
            meeting.given = meeting.brought;
            let arrived = std::mem::take(&mut meeting.arrived);
            // Only this one orders what lanes do to memory.
            self.warps[warp].synchronized += u32::from(kind == SYNC_WARP);
            self.release(arrived);
        }
        &raw const self.warps[warp].meetings[index].given
    }

    /// Waits for the block, and gives how many threads voted for.
    ///
    /// # Safety
    /// As [`Block::exchange`].
    pub(crate) unsafe fn barrier(block: *mut Self, kind: u32, vote: u32, at: usize) -> u32 {
        // SAFETY: the caller's promise; the borrow ends before the fibre waits.
        unsafe { (*block).join_block(kind, vote, at) };
        // SAFETY: as above.
        unsafe { Self::wait(block) };
        // SAFETY: as above. A thread reads it before it can come to the next barrier, which is what changes it.
        unsafe { (*block).barrier.voted }
    }

    fn join_block(&mut self, kind: u32, vote: u32, at: usize) {
        if self.arrive(None, kind, at, u64::from(vote)) {
            self.barrier.voted = self.barrier.votes;
            let arrived = std::mem::take(&mut self.barrier.arrived);
            if let Some(shadow) = &mut self.shadow {
                shadow.pass_barrier();
            }
            self.release(arrived);
        }
    }

    unsafe fn wait(block: *mut Self) {
        // SAFETY: a yielder lives as long as its fibre, which is the running one.
        unsafe { (*(&(*block).yielders)[(*block).here.thread as usize]).suspend(()) };
    }

    /// Looks at an access to memory; a thread at fault never goes on.
    ///
    /// # Safety
    /// As [`Block::exchange`].
    pub(crate) unsafe fn access(block: *mut Self, address: usize, bytes: usize, access: Access, at: usize) {
        // SAFETY: the caller's promise; the borrow ends before the fibre waits.
        let found = unsafe { (*block).look(address, bytes, access, at) };
        if let Err((kind, what, other)) = found {
            // SAFETY: as above.
            unsafe { Self::stop(block, kind, what, at, other) };
        }
    }

    fn look(&mut self, address: usize, bytes: usize, access: Access, at: usize) -> Result<(), crate::shadow::Trouble> {
        let thread = self.here.thread;
        let Some(shadow) = &mut self.shadow else { return Ok(()) };
        self.accesses += 1;
        if self.accesses > ENDLESS {
            return Err((Kind::Endless, format!("is at its block's access number {ENDLESS}"), None));
        }
        if self.stacks[thread as usize].contains(&address) {
            return Ok(());
        }
        let synchronized = self.warps[(thread / WARP) as usize].synchronized;
        shadow.access(Now { thread, synchronized, at }, address, bytes, access)
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
