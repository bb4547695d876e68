//! The numbers of kernels that read a matrix once and write it once.

use std::fmt;

use batchla_core::{Numbers, Operation, Problem, Receipt, ScalarKind, SourceKind};

use super::{Request, STATIC_SHARED_BYTES, WARP, resident_blocks, scalar_bytes};
use crate::limits::Limits;

/// How a matrix is factored, or inverted at once, without leaving the chip: one team of threads a matrix, which lies in shared memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResidentPlan {
    /// Columns of a panel.
    pub panel: usize,
    /// Threads that work on one matrix.
    pub threads: usize,
    /// Rows of a panel that a thread holds in registers.
    pub rows: usize,
    /// Matrices a block.
    pub teams: usize,
    /// Blocks a multiprocessor that the compiler leaves room for.
    pub blocks: usize,
    /// Whether the launch gives the inverse; otherwise the factors.
    pub inverts: bool,
    /// Bytes of shared memory a block whose size depends on the order.
    pub dynamic_shared_bytes: usize,
}

/// Up to which order, which panel, rows and registers a thread are best.
#[derive(Clone, Copy)]
struct Tuned {
    order: usize,
    panel: usize,
    rows: usize,
    registers: usize,
}

const fn tuned(order: usize, panel: usize, rows: usize, registers: usize) -> Tuned {
    Tuned { order, panel, rows, registers }
}

/// Beyond the last row left-looking plans are faster. Measured on an H200, 2026-11-21, beside those, at orders 2, 4, 6, 8, 12 and 16 (batches of
/// 100 000), 20 to 33 by fours, 40 to 64 by eights, 80 and 96 (batches of 10 000); f32 between 96 and 128 as at 128.
fn table(scalar: ScalarKind, inverts: bool) -> &'static [Tuned] {
    const F32: &[Tuned] = &[tuned(16, 8, 1, 80), tuned(32, 8, 1, 96), tuned(64, 8, 2, 128), tuned(112, 8, 1, 128)];
    const F32_INVERSE: &[Tuned] = &[tuned(16, 8, 1, 80), tuned(64, 8, 2, 128), tuned(128, 8, 1, 128)];
    const F64: &[Tuned] = &[tuned(12, 4, 1, 96), tuned(32, 8, 1, 96), tuned(64, 8, 2, 168), tuned(80, 8, 1, 168)];
    const F64_INVERSE: &[Tuned] =
        &[tuned(12, 4, 1, 96), tuned(32, 8, 1, 128), tuned(56, 8, 2, 168), tuned(96, 8, 1, 168)];
    const C32: &[Tuned] = &[tuned(16, 4, 1, 96), tuned(32, 4, 1, 128), tuned(64, 8, 2, 168), tuned(80, 8, 1, 128)];
    const C32_INVERSE: &[Tuned] =
        &[tuned(16, 4, 1, 96), tuned(32, 4, 1, 128), tuned(56, 4, 1, 96), tuned(80, 8, 1, 168)];
    const C64: &[Tuned] = &[tuned(16, 4, 1, 128), tuned(32, 4, 1, 96), tuned(40, 4, 2, 168)];
    const C64_INVERSE: &[Tuned] = &[tuned(32, 4, 1, 128), tuned(40, 4, 2, 168), tuned(64, 4, 1, 168)];
    match (scalar, inverts) {
        (ScalarKind::F32, false) => F32,
        (ScalarKind::F32, true) => F32_INVERSE,
        (ScalarKind::F64, false) => F64,
        (ScalarKind::F64, true) => F64_INVERSE,
        (ScalarKind::C32, false) => C32,
        (ScalarKind::C32, true) => C32_INVERSE,
        (ScalarKind::C64, false) => C64,
        (ScalarKind::C64, true) => C64_INVERSE,
    }
}

pub(super) const RECEIPT: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-21",
    "batchla bench plans resident left-looking at orders 2 to 96: benches/record/nvidia-h200/2026-11-21/plans-*.csv",
);

/// Threads of a block of small matrices.
const SMALL_BLOCK: usize = 64;

impl ResidentPlan {
    /// The last order at which such plans are faster than left-looking ones.
    pub(super) fn best_up_to(problem: &Problem) -> usize {
        table(problem.scalar(), problem.operation() == Operation::Invert).last().map_or(0, |row| row.order)
    }

    /// The row of the table that a problem is in; the last one beyond it.
    pub(super) fn row(problem: &Problem) -> Option<Numbers> {
        let (scalar, order, inverts) = (problem.scalar(), problem.order(), problem.operation() == Operation::Invert);
        let rows = table(scalar, inverts);
        let &Tuned { order: last, panel, rows, registers } =
            rows.iter().find(|row| order <= row.order).or(rows.last())?;
        let what = if inverts { "inverse" } else { "LU" };
        let numbers = format!("panel={panel} rows={rows} registers={registers}");
        Some(Numbers { row: format!("{what} on chip, {scalar}, orders up to {last}: {numbers}"), receipt: RECEIPT })
    }

    /// Whether the planner chooses such a plan by itself.
    pub(super) fn is_best(problem: &Problem, limits: &Limits) -> bool {
        let served = problem.order() <= Self::best_up_to(problem);
        served && matches!(Self::choose(&Request::default(), problem, limits), Ok(Some(_)))
    }

    /// Nothing where the problem starts from factors, or the chip is too small for a matrix.
    pub(super) fn choose(request: &Request<'_>, problem: &Problem, limits: &Limits) -> Result<Option<Self>, String> {
        if problem.source() == SourceKind::Factors {
            return Ok(None);
        }
        let (scalar, order, inverts) = (problem.scalar(), problem.order(), problem.operation() == Operation::Invert);
        let rows = table(scalar, inverts);
        let own = rows.iter().find(|row| order <= row.order).or(rows.last()).copied();
        let own = own.unwrap_or(tuned(order, 8, 1, 128));
        let most = limits.threads_per_block as usize;
        let rows = request.number_or("rows", 1..=8, own.rows.max(order.div_ceil(most)))?;
        let lines = order.div_ceil(rows);
        let threads = if lines <= WARP { lines.next_power_of_two() } else { lines.next_multiple_of(WARP) };
        let threads = request.number_or("threads", 1..=most, threads)?;
        let whole = threads.is_multiple_of(WARP) || (threads < WARP && threads.is_power_of_two());
        if !whole || threads * rows < order || threads > most {
            return Err(format!(
                "{threads} threads of {rows} rows cannot hold a panel of order {order}: threads come in warps of {WARP}, or in powers of two below \
                 that, and at most {most}"
            ));
        }
        let pack = 16 / scalar_bytes(scalar);
        let panel = request.number_or("panel", 1..=64, own.panel.min(order.next_multiple_of(pack).max(pack)))?;
        if !panel.is_multiple_of(pack) {
            return Err(format!("panels of {panel} columns are no whole {pack}, which 16 bytes hold"));
        }
        let (teams, blocks, dynamic_shared_bytes) = ((SMALL_BLOCK / threads).max(1), 1, 0);
        let mut plan = Self { panel, threads, rows, teams, blocks, inverts, dynamic_shared_bytes };
        let limit = limits.shared_bytes_per_block as usize;
        let fits =
            |plan: &Self| plan.fixed_bytes(scalar) <= STATIC_SHARED_BYTES && plan.shared_bytes(scalar, order) <= limit;
        let least_teams = (WARP / threads).max(1);
        if !fits(&Self { teams: least_teams, panel: own.panel, ..plan.clone() }) {
            return Ok(None);
        }
        while plan.teams > least_teams && !fits(&plan) {
            plan.teams /= 2;
        }
        plan.teams = request.number_or("teams", 1..=256, plan.teams)?;
        if plan.teams > 1 && threads > WARP || !(threads * plan.teams).is_multiple_of(WARP) {
            return Err(format!(
                "{} matrices a block need teams of one warp at most that make whole warps, not of {threads} threads",
                plan.teams
            ));
        }
        if !fits(&plan) {
            return Err(format!(
                "{} matrices a block with panels of {panel} columns take {} bytes of shared memory beside {} that are there without asking, of at \
                 most {limit} and {STATIC_SHARED_BYTES}",
                plan.teams,
                plan.dynamic_bytes(scalar, order),
                plan.fixed_bytes(scalar)
            ));
        }
        let registers = request.number_or("registers", 24..=255, own.registers)?;
        let by_registers = resident_blocks(threads * plan.teams, registers, limits);
        plan.blocks = request.number_or("blocks", 1..=32, by_registers)?;
        plan.dynamic_shared_bytes = plan.dynamic_bytes(scalar, order);
        Ok(Some(plan))
    }

    /// What depends on the order: `Chip` of `resident.cuh`.
    fn dynamic_bytes(&self, scalar: ScalarKind, order: usize) -> usize {
        let (bytes, pack) = (scalar_bytes(scalar), 16 / scalar_bytes(scalar));
        let stride = (order.div_ceil(pack) | 1) * pack;
        self.teams * (stride * order * bytes + order.next_multiple_of(4) * (bytes + 8))
    }

    /// What does not: `Election` of `panel.cuh`.
    fn fixed_bytes(&self, scalar: ScalarKind) -> usize {
        self.teams * election_bytes(scalar, self.panel, self.threads)
    }

    pub(super) fn shared_bytes(&self, scalar: ScalarKind, order: usize) -> usize {
        self.fixed_bytes(scalar) + self.dynamic_bytes(scalar, order)
    }
}

/// Bytes of a line of a block column in shared memory.
pub(super) fn line_bytes(scalar: ScalarKind, columns: usize) -> usize {
    (columns.div_ceil(16 / scalar_bytes(scalar)) + 1) * 16
}

/// `Election` of `panel.cuh`.
pub(super) fn election_bytes(scalar: ScalarKind, panel: usize, threads: usize) -> usize {
    let line = line_bytes(scalar, panel);
    let candidate = (line + scalar_bytes(scalar) + 12).next_multiple_of(16);
    let warps = threads.div_ceil(WARP);
    let (kept, lines) = if warps <= 2 { (panel, 1) } else { (2, panel) };
    (kept * warps * candidate + lines * line + (5 * panel + 2) * 4).next_multiple_of(16)
}

impl fmt::Display for ResidentPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { panel, threads, rows, teams, blocks, inverts, .. } = self;
        let what = if *inverts { "inverse" } else { "LU" };
        write!(f, "{what} on chip panel={panel} threads={threads} rows={rows} teams={teams} blocks={blocks}")
    }
}
