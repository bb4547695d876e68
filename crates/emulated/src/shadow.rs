//! What is remembered of every word that a launch may touch, or of its bytes once one alone was touched: who wrote it, who read it, and when.
//!
//! Two threads' accesses to one byte, one of them a write, are in order where a barrier of the block lies between them, or for lanes of one
//! warp a `__syncwarp`; everything else is a race, also between blocks, which nothing orders within a launch. Ballots and shuffles order
//! nothing, as the CUDA guide has it. Reads and writes in between are told apart by counting barriers, not by which thread happened to
//! run first, so a race is found in every order of turns.

use std::ops::Range;
use std::slice;
use std::sync::Arc;

use crate::fault::Kind;
use crate::hooks::Access;
use crate::memory::{Allocation, WORD};
use crate::module::Module;

/// What is wrong with an access: kind, words, and the other side.
pub(crate) type Trouble = (Kind, String, Option<(String, usize)>);

/// Who touches memory, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) thread: u32,
    /// How often its warp has synchronised in this block.
    pub(crate) synchronized: u32,
    pub(crate) at: usize,
}

/// An access, packed: section, synchronisations of the warp, thread and whether it was atomic, place in the code. Zero: none.
#[derive(Clone, Copy, Debug)]
struct Mark {
    section: u32,
    synchronized: u32,
    thread: u32,
    atomic: bool,
    at: u32,
}

impl Mark {
    fn pack(self) -> u128 {
        let thread = u128::from(self.thread << 1 | u32::from(self.atomic));
        u128::from(self.section) | u128::from(self.synchronized) << 32 | thread << 64 | u128::from(self.at) << 96
    }

    fn unpack(bits: u128) -> Self {
        let part = |shift: u32| (bits >> shift) as u32;
        Self {
            section: part(0),
            synchronized: part(32),
            thread: part(64) >> 1,
            atomic: part(64) & 1 == 1,
            at: part(96),
        }
    }
}

/// Marks of one word, or byte: the last writer; the last reader, the last other reader of its warp, and the last reader of another warp. With those,
/// no race of a later writer with any reader since goes unseen.
type Cell = [u128; 4];
const WRITER: usize = 0;
const READER: usize = 1;
const MATE: usize = 2;
const OTHER: usize = 3;

/// Remembers an access among a word's marks, or gives that of one before which nothing orders with it, and its place.
fn record(cell: &mut Cell, access: Access, own: Mark, unordered: impl Fn(u128) -> bool) -> Option<(usize, Mark)> {
    let against: &[usize] = if access == Access::Read { &[WRITER] } else { &[WRITER, READER, MATE, OTHER] };
    if let Some(&slot) = against.iter().find(|&&slot| unordered(cell[slot])) {
        return Some((slot, Mark::unpack(cell[slot])));
    }
    if access != Access::Read {
        cell[WRITER] = own.pack();
    }
    if access != Access::Write {
        let last = cell[READER];
        // The same reader again, with nothing since: most reads are.
        if (last ^ own.pack()) << 32 == 0 {
            return None;
        }
        if unordered(last) {
            let before = Mark::unpack(last);
            let mate = before.section == own.section && before.thread / 32 == own.thread / 32;
            cell[if mate { MATE } else { OTHER }] = last;
        }
        cell[READER] = own.pack();
    }
    None
}

/// Memory that the launch may touch.
#[derive(Debug)]
struct Region {
    range: Range<usize>,
    /// The device's; otherwise it is shared memory of this name.
    global: Option<Arc<Allocation>>,
    name: String,
    cells: Vec<Cell>,
    /// Marks of single bytes, of the words of which bytes alone were touched.
    bytes: Vec<[Cell; WORD]>,
    /// Of every word, which of these are its own, counted from one; zero: none. Empty until there are some.
    split: Vec<u32>,
}

impl Region {
    /// The marks of a word, or of those of its bytes that are among `bytes` from `offset` on.
    fn marks(&mut self, word: usize, offset: usize, bytes: usize) -> &mut [Cell] {
        let begin = word * WORD;
        let touched = offset.max(begin) - begin..(offset + bytes).min(begin + WORD) - begin;
        if touched.len() < WORD && self.split.is_empty() {
            self.split = vec![0; self.cells.len()];
        }
        match self.split.get_mut(word) {
            Some(split) if *split > 0 || touched.len() < WORD => {
                if *split == 0 {
                    self.bytes.push([self.cells[word]; WORD]);
                    *split = self.bytes.len() as u32;
                }
                &mut self.bytes[*split as usize - 1][touched]
            }
            _ => slice::from_mut(&mut self.cells[word]),
        }
    }
}

/// The memory of one launch.
#[derive(Debug)]
pub(crate) struct Shadow {
    regions: Vec<Region>,
    last: usize,
    /// Code and constants of the kernel.
    image: Range<usize>,
    /// Counts barriers and blocks.
    section: u32,
    block_start: u32,
}

impl Shadow {
    pub(crate) fn new(allocations: Vec<Arc<Allocation>>, module: &Module, dynamic_bytes: usize) -> Self {
        let memory = module.memory().expose_provenance();
        let shared = |name: &str, start: usize, bytes: usize| Region {
            range: start..start + bytes,
            global: None,
            name: format!("shared array {name}"),
            cells: Vec::new(),
            bytes: Vec::new(),
            split: Vec::new(),
        };
        let global = |allocation: Arc<Allocation>| Region {
            range: allocation.start()..allocation.start() + allocation.len(),
            name: "an allocation".to_owned(),
            global: Some(allocation),
            cells: Vec::new(),
            bytes: Vec::new(),
            split: Vec::new(),
        };
        let statics =
            module.shared.iter().map(|one| shared(&one.name, memory.wrapping_add_signed(one.offset), one.bytes));
        let mut regions: Vec<_> = allocations.into_iter().map(global).chain(statics).collect();
        regions.push(shared("memory", memory, dynamic_bytes));
        regions.sort_by_key(|region| region.range.start);
        Self { regions, last: 0, image: module.image.clone(), section: 0, block_start: 0 }
    }

    /// A block starts: shared memory holds nothing.
    pub(crate) fn begin_block(&mut self) {
        self.section += 1;
        self.block_start = self.section;
    }

    /// All threads of the block have met.
    pub(crate) fn pass_barrier(&mut self) {
        self.section += 1;
    }

    /// Looks at one access, and remembers it.
    pub(crate) fn access(&mut self, now: Now, address: usize, bytes: usize, access: Access) -> Result<(), Trouble> {
        let inside = |region: &Region| region.range.contains(&address) && address + bytes <= region.range.end;
        if !self.regions.get(self.last).is_some_and(inside) {
            let after = self.regions.partition_point(|region| region.range.start <= address);
            let found = after.checked_sub(1).filter(|&at| inside(&self.regions[at]));
            match found {
                Some(found) => self.last = found,
                None if self.image.contains(&address) && access == Access::Read => return Ok(()),
                None => return Err(self.out_of_bounds(address, bytes, access, after)),
            }
        }
        let (section, block_start, base) = (self.section, self.block_start, self.image.start);
        let region = &mut self.regions[self.last];
        if region.cells.is_empty() {
            region.cells = vec![[0; 4]; region.range.len().div_ceil(WORD)];
        }
        let offset = address - region.range.start;
        let words = offset / WORD..(offset + bytes).div_ceil(WORD);
        let shared = region.global.is_none();
        if access != Access::Write {
            let written = match &region.global {
                Some(allocation) => allocation.was_written(offset, bytes),
                None => words.clone().any(|word| {
                    let marks = region.marks(word, offset, bytes);
                    marks.iter().any(|cell| Mark::unpack(cell[WRITER]).section >= block_start)
                }),
            };
            if !written {
                let what = format!("reads {bytes} bytes that nobody wrote, {offset} bytes into {}", region.name);
                return Err((Kind::Uninitialized, what, None));
            }
        }
        if access != Access::Read
            && let Some(allocation) = &region.global
        {
            allocation.wrote(offset, bytes);
        }
        let own = Mark {
            section,
            synchronized: now.synchronized,
            thread: now.thread,
            atomic: access == Access::Atomic,
            at: now.at.wrapping_sub(base) as u32,
        };
        // Whether nothing orders an earlier access and this one.
        let unordered = |bits: u128| {
            let mark = Mark::unpack(bits);
            if mark.section == 0 || (mark.atomic && own.atomic) {
                false
            } else if mark.section < block_start {
                !shared
            } else {
                mark.section == section
                    && mark.thread != own.thread
                    && (mark.thread / 32 != own.thread / 32 || mark.synchronized == own.synchronized)
            }
        };
        for word in words {
            for cell in region.marks(word, offset, bytes) {
                if let Some((slot, mark)) = record(cell, access, own, unordered) {
                    let did = |reads: bool| if reads { "reads" } else { "writes" };
                    let block = if mark.section < block_start { " of another block" } else { "" };
                    let other = format!("thread {}{block} {} it", mark.thread, did(slot != WRITER));
                    let what = format!("{} {} at byte {offset}", did(access == Access::Read), region.name);
                    return Err((Kind::Race, what, Some((other, base + mark.at as usize))));
                }
            }
        }
        Ok(())
    }

    fn out_of_bounds(&self, address: usize, bytes: usize, access: Access, after: usize) -> Trouble {
        let did = if access == Access::Read { "reads" } else { "writes" };
        let place = match after.checked_sub(1).map(|below| &self.regions[below]) {
            Some(below) if address - below.range.end.min(address) < 1 << 20 => {
                let (len, offset) = (below.range.len(), address - below.range.start);
                format!("at byte {offset} of {}, which has {len}", below.name)
            }
            _ => format!("at {address:#x}, which is not its memory"),
        };
        (Kind::OutOfBounds, format!("{did} {bytes} bytes {place}"), None)
    }
}
