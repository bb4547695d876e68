//! The inversion's numbers.

use std::fmt;

use batchla_core::{Numbers, Problem, Receipt, ScalarKind};

use super::{Family, Request, WARP, resident_blocks, scalar_bytes};
use crate::limits::Limits;

/// When solved block columns correct the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Correction {
    /// A block column is corrected by all solved ones just before it is solved.
    Delayed,
    /// A solved block column at once corrects all that remain.
    Timely,
}

/// Threads and shared memory of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resources {
    /// One launch for all block columns, with what the largest needs.
    Static,
    /// One launch a block column, with what it needs.
    Dynamic,
}

/// How `A^-1` is computed from `A = P L U`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetriPlan {
    /// Columns of a block.
    pub block: usize,
    /// Threads of a block, at most.
    pub threads: usize,
    /// Rows that a thread works on at once.
    pub rows: usize,
    /// Blocks a multiprocessor that the compiler leaves room for.
    pub blocks: usize,
    /// See [`Correction`].
    pub correction: Correction,
    /// See [`Resources`].
    pub resources: Resources,
    /// Whether columns go to their places in the result at once; otherwise by a copy at the end.
    pub direct: bool,
    /// Whether `U^-1` needs a place of its own beside the factors.
    pub separate: bool,
    /// Lines of the triangle that are in shared memory at a time, at most.
    pub lines: usize,
}

impl GetriPlan {
    pub(super) fn choose(
        family: &Family,
        request: &Request<'_>,
        problem: &Problem,
        limits: &Limits,
    ) -> Result<Self, String> {
        let (scalar, order) = (problem.scalar(), problem.order());
        let (block, rows, registers) = numbers(scalar, order);
        let block = request.number_or("inverse-block", 1..=64, block)?;
        let rows = request.number_or("inverse-rows", 1..=8, rows)?;
        let most = limits.threads_per_block as usize;
        let threads = order.div_ceil(rows).next_multiple_of(WARP).clamp(WARP, most);
        let threads = request.number_or("inverse-threads", WARP..=most, threads)?;
        if !threads.is_multiple_of(WARP) {
            return Err(format!("{threads} threads are no whole warps"));
        }
        let blocks =
            request.number_or("inverse-blocks", 1..=32, resident_blocks(thread_class(threads), registers, limits))?;
        let mut plan = Self {
            block,
            threads,
            rows,
            blocks,
            correction: family.correction,
            resources: family.resources.unwrap_or(Resources::Static),
            direct: !problem.out().is_row_major(),
            separate: threads * rows < order || family.correction == Correction::Timely,
            lines: order.max(1),
        };
        let room = (limits.shared_bytes_per_block as usize).saturating_sub(plan.place_bytes(order));
        plan.lines = (room / plan.line_bytes(scalar)).min(order).max(1);
        // Timely correction has a block column's lines at hand at once.
        let least = if plan.correction == Correction::Timely { block.min(order).max(1) } else { 1 };
        if plan.place_bytes(order) + least * plan.line_bytes(scalar) > limits.shared_bytes_per_block as usize {
            return Err(format!("order {order} is more than the shared memory of {} can list", limits.name));
        }
        Ok(plan)
    }

    /// The row of the table that an order is in.
    pub(super) fn row(scalar: ScalarKind, order: usize) -> Numbers {
        let (block, rows, registers) = numbers(scalar, order);
        let numbers = format!("inverse-block={block} inverse-rows={rows} registers={registers}");
        Numbers { row: format!("getri, {scalar}, order {order}: {numbers}"), receipt: RECEIPT }
    }

    /// The block that the kernel is compiled for; one kernel serves the orders of a class.
    pub(crate) fn thread_class(&self) -> usize {
        thread_class(self.threads)
    }

    /// Blocks of columns.
    pub(crate) fn block_columns(&self, order: usize) -> usize {
        order.div_ceil(self.block)
    }

    fn line_bytes(&self, scalar: ScalarKind) -> usize {
        let pack = 16 / scalar_bytes(scalar);
        (self.block.div_ceil(pack) + 1) * pack * scalar_bytes(scalar)
    }

    fn place_bytes(&self, order: usize) -> usize {
        (order * 4).next_multiple_of(16)
    }

    /// Shared memory of a launch that has so many lines of the triangle at hand.
    pub(crate) fn shared_bytes(&self, scalar: ScalarKind, order: usize, lines: usize) -> usize {
        self.place_bytes(order) + lines.min(self.lines) * self.line_bytes(scalar)
    }
}

const RECEIPT: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-20",
    "batchla bench plans --inverse left-looking:inverse-block=… at orders 32 to 512 of f64, 128 of f32 and c64, none of c32; no record was kept",
);

fn thread_class(threads: usize) -> usize {
    threads.next_power_of_two().max(64)
}

/// Columns of a block, rows and registers a thread. Measured on an H200, 2026-11-20: f64 at orders 32 to 512, f32 and c64 at 128; c32 follows f64, and
/// what is beyond 512 only keeps registers from spilling.
fn numbers(scalar: ScalarKind, order: usize) -> (usize, usize, usize) {
    match (scalar, order) {
        (ScalarKind::F32, 0..=512) => (16, 1, 80),
        (ScalarKind::F32, _) => (8, 1, 64),
        (ScalarKind::F64 | ScalarKind::C32, 0..=160) => (8, 1, 80),
        (ScalarKind::F64 | ScalarKind::C32, 161..=256) => (16, 2, 168),
        (ScalarKind::F64 | ScalarKind::C32, 257..=512) => (16, 1, 128),
        (ScalarKind::F64 | ScalarKind::C32, _) => (8, 1, 64),
        (ScalarKind::C64, 0..=512) => (8, 1, 128),
        (ScalarKind::C64, _) => (4, 1, 64),
    }
}

impl fmt::Display for GetriPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { block, threads, rows, blocks, correction, resources, lines, .. } = self;
        write!(
            f,
            "block={block} threads={threads} rows={rows} blocks={blocks} lines={lines} {correction:?}/{resources:?}"
        )?;
        f.write_str(if self.direct { " direct" } else { " by a copy" })
    }
}
