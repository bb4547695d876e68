//! What threads of a block do together: they bring something, wait for the others, and are given what all brought.

use crate::hooks::Exchanged;

/// The names of what threads meet in, as the stand-in numbers them.
pub(crate) const MEETINGS: [&str; 11] = [
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
pub(crate) const SYNC_WARP: u32 = 0;

/// Threads that wait for each other, and what they bring.
#[derive(Debug, Default)]
pub(crate) struct Meeting {
    /// Which lanes of a warp; all threads of the block where zero.
    pub(crate) lanes: u32,
    pub(crate) kind: u32,
    pub(crate) at: usize,
    pub(crate) arrived: Vec<u32>,
    pub(crate) brought: Exchanged,
    pub(crate) given: Exchanged,
    pub(crate) votes: u32,
    pub(crate) voted: u32,
}

/// A warp: what its lanes meet in, by who takes part, and how often they have synchronised.
#[derive(Debug, Default)]
pub(crate) struct Warp {
    #[allow(clippy::vec_box, reason = "lanes keep the address of what they were given")]
    pub(crate) meetings: Vec<Box<Meeting>>,
    pub(crate) synchronized: u32,
}

impl Meeting {
    /// A thread arrives, with what it brings. True where it is the last of so many.
    pub(crate) fn join(&mut self, thread: u32, lane: u32, kind: u32, at: usize, value: u64, expected: u32) -> bool {
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
