//! What threads do to memory, as they are watched; and copies that go on beside them.
//!
//! A copy is done when its own thread waits for it, the latest that a GPU may do it. Until then what it goes to is nobody's: to read it,
//! or to write it, is a fault, of the thread that copies too.

use std::collections::{HashMap, VecDeque};
use std::ptr;

use super::{Block, WARP};
use crate::fault::Kind;
use crate::hooks::Access;
use crate::memory::WORD;
use crate::shadow::{Now, Trouble};

/// Watched accesses of a block, after which it is taken to be endless.
const ENDLESS: u64 = 1 << 26;

/// A copy from global to shared memory that has begun.
#[derive(Clone, Copy, Debug)]
struct Copy {
    to: usize,
    from: usize,
    bytes: usize,
    group: u32,
}

/// The copies of a block's threads.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// Of each thread, in the order in which they began.
    begun: Vec<VecDeque<Copy>>,
    /// Groups that each thread has ended.
    groups: Vec<u32>,
    /// The words that copies go to: whose, and where it began. Kept where accesses are watched.
    under_way: HashMap<usize, (u32, usize)>,
}

impl Copies {
    pub(super) fn new(threads: u32) -> Self {
        let threads = threads as usize;
        Self { begun: vec![VecDeque::new(); threads], groups: vec![0; threads], under_way: HashMap::new() }
    }

    /// What goes to where an access goes.
    fn look(&self, address: usize, bytes: usize, access: Access) -> Result<(), Trouble> {
        let Some(&(thread, at)) = words(address, bytes).find_map(|word| self.under_way.get(&word)) else {
            return Ok(());
        };
        let did = if access == Access::Read { "reads" } else { "writes" };
        let what = format!("{did} {bytes} bytes of shared memory that a copy is still to bring");
        Err((Kind::Copy, what, Some((format!("thread {thread} began it"), at))))
    }
}

fn words(address: usize, bytes: usize) -> impl Iterator<Item = usize> {
    address / WORD..(address + bytes).div_ceil(WORD)
}

impl Block {
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

    fn look(&mut self, address: usize, bytes: usize, access: Access, at: usize) -> Result<(), Trouble> {
        let thread = self.here.thread;
        let Some(shadow) = &mut self.shadow else { return Ok(()) };
        self.accesses += 1;
        if self.accesses > ENDLESS {
            return Err((Kind::Endless, format!("is at its block's access number {ENDLESS}"), None));
        }
        if self.stacks[thread as usize].contains(&address) {
            return Ok(());
        }
        if !self.copies.under_way.is_empty() {
            self.copies.look(address, bytes, access)?;
        }
        let synchronized = self.warps[(thread / WARP) as usize].synchronized;
        shadow.access(Now { thread, synchronized, at }, address, bytes, access)
    }

    /// Begins a copy.
    ///
    /// # Safety
    /// As [`Block::exchange`].
    pub(crate) unsafe fn copy(block: *mut Self, to: usize, from: usize, bytes: usize, at: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            Self::access(block, from, bytes, Access::Read, at);
            Self::access(block, to, bytes, Access::Write, at);
        }
        // SAFETY: as above; nothing waits while this is borrowed.
        let (copies, thread, watched) =
            unsafe { (&mut (*block).copies, (*block).here.thread, (*block).shadow.is_some()) };
        let group = copies.groups[thread as usize];
        copies.begun[thread as usize].push_back(Copy { to, from, bytes, group });
        if watched {
            copies.under_way.extend(words(to, bytes).map(|word| (word, (thread, at))));
        }
    }

    /// Ends the running thread's group of copies.
    pub(crate) fn commit(&mut self) {
        self.copies.groups[self.here.thread as usize] += 1;
    }

    /// Does the copies of all groups that the running thread has ended, but of the latest `pending`.
    ///
    /// # Safety
    /// As [`Block::exchange`].
    pub(crate) unsafe fn finish_copies(block: *mut Self, pending: u32, at: usize) {
        // SAFETY: the caller's promise; the borrow ends before the fibre may stop.
        while let Some(Copy { to, from, bytes, .. }) = unsafe { (*block).next_copy(pending) } {
            // SAFETY: within bounds, or the accesses stop the thread where they are watched; the kernel would do the same.
            unsafe {
                Self::access(block, from, bytes, Access::Read, at);
                Self::access(block, to, bytes, Access::Write, at);
                let from = ptr::with_exposed_provenance::<u8>(from);
                ptr::copy_nonoverlapping(from, ptr::with_exposed_provenance_mut(to), bytes);
            }
        }
    }

    fn next_copy(&mut self, pending: u32) -> Option<Copy> {
        let thread = self.here.thread as usize;
        let until = self.copies.groups[thread].saturating_sub(pending);
        let copy = self.copies.begun[thread].pop_front_if(|copy| copy.group < until)?;
        for word in words(copy.to, copy.bytes) {
            self.copies.under_way.remove(&word);
        }
        Some(copy)
    }
}
