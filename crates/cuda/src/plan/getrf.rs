//! The factorisation's numbers.

use std::fmt;

use batchla_core::ScalarKind;

use super::{Family, Request, WARP, resident_blocks, scalar_bytes};
use crate::limits::Limits;

/// On which side of a factored panel the work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Looking {
    /// A panel takes its updates from the left, just before it is factored.
    Left,
    /// A factored panel updates everything on its right.
    Right,
}

/// How rows are interchanged beside the panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interchange {
    /// One exchange after another, on both sides at once.
    Serial,
    /// All of a panel's at once, on both sides.
    Grouped,
    /// All at once on the left; on the right when a panel is loaded.
    Delayed,
}

/// How a pivot is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Search {
    /// Within each warp, then among the warps: one barrier.
    Warps,
    /// By a binary tree in shared memory: a barrier a level.
    Tree,
}

/// How `A = P L U` is computed: one team of threads a matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetrfPlan {
    /// Columns of a panel.
    pub panel: usize,
    /// Threads that work on one matrix.
    pub threads: usize,
    /// Rows of the panel that a thread holds in registers; 0: the panel lies in shared memory.
    pub rows: usize,
    /// Columns of the streamed part that are fetched at a time.
    pub ahead: usize,
    /// Matrices a block.
    pub teams: usize,
    /// Blocks a multiprocessor that the compiler leaves room for.
    pub blocks: usize,
    /// See [`Looking`].
    pub looking: Looking,
    /// See [`Interchange`].
    pub interchange: Interchange,
    /// See [`Search`].
    pub search: Search,
    /// Bytes of shared memory a block whose size depends on the order.
    pub dynamic_shared_bytes: usize,
}

/// Up to which order, which panel, rows a thread, columns fetched at a time and registers a thread are best.
struct Tuned {
    order: usize,
    panel: usize,
    rows: usize,
    ahead: usize,
    registers: usize,
}

const fn tuned(order: usize, panel: usize, rows: usize, ahead: usize, registers: usize) -> Tuned {
    Tuned { order, panel, rows, ahead, registers }
}

/// Measured on an H200, 2026-11-20, at orders 16, 32, 48, 64, 96, 128, 190, 256 and 512 (f64 also 1024), batches of 10 000 (256: 4 000, 512: 1 000, 1024: 200);
/// between and beyond those, as their neighbours.
fn table(scalar: ScalarKind) -> &'static [Tuned] {
    const F32: &[Tuned] = &[
        tuned(32, 16, 1, 16, 128),
        tuned(48, 8, 2, 8, 96),
        tuned(64, 16, 2, 16, 168),
        tuned(112, 8, 1, 8, 80),
        tuned(160, 8, 2, 8, 96),
        tuned(256, 16, 2, 16, 168),
        tuned(1024, 16, 2, 4, 128),
        tuned(2048, 8, 4, 8, 128),
    ];
    const F64: &[Tuned] = &[tuned(112, 8, 1, 8, 128), tuned(1024, 8, 2, 8, 128), tuned(2048, 4, 4, 4, 128)];
    const C32: &[Tuned] = &[tuned(160, 8, 1, 8, 128), tuned(1024, 8, 2, 8, 128), tuned(2048, 4, 4, 4, 128)];
    const C64: &[Tuned] = &[
        tuned(32, 4, 1, 4, 128),
        tuned(112, 8, 1, 2, 168),
        tuned(224, 8, 1, 8, 168),
        tuned(512, 8, 2, 8, 255),
        tuned(1024, 4, 2, 4, 128),
        tuned(2048, 2, 4, 2, 128),
    ];
    match scalar {
        ScalarKind::F32 => F32,
        ScalarKind::F64 => F64,
        ScalarKind::C32 => C32,
        ScalarKind::C64 => C64,
    }
}

/// Threads of a block of small matrices.
const SMALL_BLOCK: usize = 128;

impl GetrfPlan {
    pub(super) fn choose(
        family: &Family,
        request: &Request<'_>,
        scalar: ScalarKind,
        order: usize,
        limits: &Limits,
    ) -> Result<Self, String> {
        let Family { looking, interchange, search, .. } = *family;
        let row = table(scalar).iter().find(|row| order <= row.order && !family.shared_panel);
        let (mut panel, own_rows, ahead, registers) =
            row.map_or((8, 0, 8, 128), |row| (row.panel, row.rows, row.ahead, row.registers));
        let rows = request.number_or("rows", 0..=8, own_rows)?;
        if rows == 0 {
            // In shared memory, as wide as it fits.
            let limit = limits.shared_bytes_per_block as usize;
            while panel > 1 && Self::shared_bytes(panel, 256, 0, 1, scalar, order) > limit {
                panel /= 2;
            }
        }
        let panel = request.number_or("panel", 1..=64, panel)?;
        let most = limits.threads_per_block as usize;
        let threads = match rows {
            0 => order.next_multiple_of(WARP).clamp(WARP, 256),
            1 if order <= WARP => order.next_power_of_two().max(4),
            rows => order.div_ceil(rows).next_multiple_of(WARP).max(WARP),
        };
        let threads = request.number_or("threads", 4..=most, threads)?;
        let whole = threads.is_multiple_of(WARP) || (threads < WARP && threads.is_power_of_two() && rows == 1);
        if !whole || (rows > 0 && threads * rows < order) || threads > most {
            return Err(format!(
                "{threads} threads of {rows} rows cannot hold a panel of order {order}: threads come in warps of {WARP}, or in powers of two below \
                 that with one row each, and at most {most}"
            ));
        }
        let panel = if threads < WARP { panel.min(threads) } else { panel };
        let ahead = request.number_or("ahead", 1..=64, ahead)?.min(panel);
        let tree = search == Search::Tree;
        let mut own_teams = if rows == 1 && order <= WARP && threads <= WARP { SMALL_BLOCK / threads } else { 1 };
        let least_teams = (WARP / threads).max(1);
        while own_teams > least_teams
            && Self::fixed_bytes(panel, threads, own_teams, scalar, tree) > STATIC_SHARED_BYTES
        {
            own_teams /= 2;
        }
        let teams = request.number_or("teams", 1..=256, own_teams)?;
        if teams > 1 && (threads > WARP || rows == 0) {
            return Err(format!(
                "{teams} matrices a block need teams of one warp at most with rows in registers, not of {threads} threads"
            ));
        }
        if !(threads * teams).is_multiple_of(WARP) {
            return Err(format!("{teams} teams of {threads} threads are no whole warps"));
        }
        let fixed = Self::fixed_bytes(panel, threads, teams, scalar, tree);
        if fixed > STATIC_SHARED_BYTES {
            return Err(format!(
                "a panel of {panel} columns takes {fixed} bytes of shared memory, {STATIC_SHARED_BYTES} are there"
            ));
        }
        let blocks = resident_blocks(threads * teams, registers, limits);
        let blocks = request.number_or("blocks", 1..=32, blocks)?;
        let all = Self::shared_bytes(panel, threads, rows, teams, scalar, order);
        if all > limits.shared_bytes_per_block as usize {
            return Err(format!(
                "order {order} needs {all} bytes of shared memory a block, {} has {}",
                limits.name, limits.shared_bytes_per_block
            ));
        }
        let dynamic_shared_bytes = Self::dynamic_bytes(panel, threads, rows, teams, scalar, order);
        Ok(Self { panel, threads, rows, ahead, teams, blocks, looking, interchange, search, dynamic_shared_bytes })
    }

    fn dynamic_bytes(
        panel: usize,
        threads: usize,
        rows: usize,
        teams: usize,
        scalar: ScalarKind,
        order: usize,
    ) -> usize {
        let places = order.next_multiple_of(threads) * 4;
        let in_registers = rows > 0;
        let panel_bytes = if in_registers { 0 } else { (order + 1) * panel * scalar_bytes(scalar) };
        teams * (panel_bytes.next_multiple_of(16) + if in_registers { places } else { 2 * places })
    }

    /// All shared memory of a block.
    fn shared_bytes(
        panel: usize,
        threads: usize,
        rows: usize,
        teams: usize,
        scalar: ScalarKind,
        order: usize,
    ) -> usize {
        Self::fixed_bytes(panel, threads, teams, scalar, true)
            + Self::dynamic_bytes(panel, threads, rows, teams, scalar, order)
    }

    /// What does not depend on the order: `Team` of `panel.cuh`, and the tree of a search.
    fn fixed_bytes(panel: usize, threads: usize, teams: usize, scalar: ScalarKind, tree: bool) -> usize {
        let element = scalar_bytes(scalar);
        let pack = 16 / element;
        let line = (panel.div_ceil(pack) + 1) * pack * element;
        let candidate = ((line + element).next_multiple_of(8) + 12).next_multiple_of(16);
        let team = 3 * panel * line + 2 * threads.div_ceil(WARP) * candidate + 5 * panel * 4 + 4;
        teams * team.next_multiple_of(16) + if tree { threads * 16 } else { 0 }
    }
}

/// Shared memory that a block has without asking.
const STATIC_SHARED_BYTES: usize = 48 << 10;

impl fmt::Display for GetrfPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { panel, threads, rows, ahead, teams, blocks, .. } = self;
        write!(f, "panel={panel} threads={threads} rows={rows} ahead={ahead} teams={teams} blocks={blocks}")?;
        write!(f, " {:?}/{:?}/{:?}", self.looking, self.interchange, self.search)
    }
}
