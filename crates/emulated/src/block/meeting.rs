//! What threads of a block do together: they bring something, wait for the others, and are given what all brought.

use std::ptr;

use super::{Block, WARP};
use crate::fault::{Fault, Kind};
use crate::hooks::Exchanged;

/// The names of what threads meet in, as the stand-in numbers them.
const MEETINGS: [&str; 11] = [
    "__syncwarp",
    "__ballot_sync",
    "__any_sync",
    "__all_sync",
    "__reduce_max_sync",
    "__shfl_sync",
    "__shfl_xor_sync",
    "__syncthreads",
    "__syncthreads_or",
    "__syncthreads_and",
    "__syncthreads_count",
];
/// Orders what lanes do to memory, as no other exchange does.
const SYNC_WARP: u32 = 0;

/// Threads that wait for each other, and what they bring.
#[derive(Debug, Default)]
pub(super) struct Meeting {
    /// Which lanes of a warp; all threads of the block where zero.
    pub(super) lanes: u32,
    pub(super) kind: u32,
    pub(super) at: usize,
    pub(super) arrived: Vec<u32>,
    pub(super) brought: Exchanged,
    pub(super) given: Exchanged,
    pub(super) votes: u32,
    pub(super) voted: u32,
}

/// A warp: what its lanes meet in, by who takes part, and how often they have synchronised.
#[derive(Debug, Default)]
pub(super) struct Warp {
    #[allow(clippy::vec_box, reason = "lanes keep the address of what they were given")]
    pub(super) meetings: Vec<Box<Meeting>>,
    pub(super) synchronized: u32,
}

impl Meeting {
    /// A thread arrives, with what it brings. True where it is the last of so many.
    pub(super) fn join(&mut self, thread: u32, lane: u32, kind: u32, at: usize, value: u64, expected: u32) -> bool {
        if self.arrived.is_empty() {
            (self.kind, self.at, self.votes) = (kind, at, 0);
            (self.brought.ballot, self.brought.largest) = (0, 0);
        }
        self.arrived.push(thread);
        self.brought.value[lane as usize] = value;
        self.brought.ballot |= u32::from(value != 0) << lane;
        self.brought.largest = self.brought.largest.max(value as u32);
        self.votes += u32::from(value != 0);
        self.arrived.len() as u32 == expected
    }
}

impl Block {
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

    /// Why nobody can go on.
    pub(super) fn stuck(&mut self, ended: usize) -> Fault {
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
}
