//! The inversion's numbers.

use std::fmt;

use batchla_core::{Numbers, Problem, Receipt, ScalarKind};

use super::chip::{has_fast_doubles, line_bytes, tensor_step};
use super::copies::{Copies, stride};
use super::getri_table::{FEW, FIRST_SHARED_OUT, MOST_BY_WINDOWS, PART, window_of_few, windows};
use super::{Family, Request, WARP, leading, resident_blocks, scalar_bytes, spread};
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
    /// Whether a block column of the triangle is on chip as it lies in memory, and one launch does all: both solves with products by tiles.
    pub resident: bool,
    /// Whether these products go by the matrix instructions for doubles. The bits are the same.
    pub tensor: bool,
    /// The last order that that kernel is compiled for, with those before it from a multiple of eight or sixteen on: their columns are as far apart in the workspace, and beyond the matrix there is the
    /// identity. 0: all orders.
    pub class: usize,
    /// Whether it is for this order alone.
    pub exact: bool,
    /// Solved columns that stay in shared memory beside those in memory, so far as there is room.
    pub copies: Copies,
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
    /// Blocks of a matrix, each with a row a thread; 0: one, whose kernel knows of no other. The bits are the same.
    pub parts: usize,
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
        if let Some(plan) = Self::by_windows(family, request, problem, limits)? {
            return Ok(plan);
        }
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
            resident: false,
            tensor: false,
            class: 0,
            exact: false,
            copies: Copies::default(),
            threads,
            rows,
            blocks,
            correction: family.correction,
            resources: family.resources.unwrap_or(Resources::Static),
            parts: 0,
            // What timely correction has begun must not lie where U⁻¹ does.
            direct: !problem.out().is_row_major() || family.correction == Correction::Timely,
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

    /// By windows, where that is faster and there is room for one, or where it was asked for.
    fn by_windows(
        family: &Family,
        request: &Request<'_>,
        problem: &Problem,
        limits: &Limits,
    ) -> Result<Option<Self>, String> {
        let (scalar, order) = (problem.scalar(), problem.order());
        let (asked, step) = (request.number("inverse-window", 0..=64)?, tensor_step(scalar));
        let served = family.correction == Correction::Delayed && family.resources.is_none();
        if asked.is_some_and(|window| window > 0) && !served {
            return Err("windows are for inversions with delayed correction, in one launch".to_owned());
        }
        let can = step.is_some_and(|step| asked.is_none_or(|window| window.is_multiple_of(step)));
        let tensor = request.number_or("tensor", 0..=1, usize::from(can && has_fast_doubles(limits)))? == 1;
        let ((window, rows, registers), _) = windows(scalar, order, tensor);
        let few = order >= FIRST_SHARED_OUT && spread::few(problem, limits);
        let window = if few { window_of_few(scalar, order, tensor) } else { window };
        let own = if (WARP + 1..=MOST_BY_WINDOWS).contains(&order)
            && request.number("inverse-block", 0..=usize::MAX)?.is_none()
        {
            window
        } else {
            0
        };
        let block = asked.unwrap_or(own);
        if block == 0 || order == 0 || !served {
            return Ok(None);
        }
        let pack = 16 / scalar_bytes(scalar);
        if !block.is_multiple_of(pack) {
            return Err(format!("windows of {block} columns are no whole {pack}, which 16 bytes hold"));
        }
        if tensor && !can {
            return Err(format!(
                "matrix instructions need doubles and windows of whole steps; not {scalar}, {block} columns"
            ));
        }
        let most = limits.threads_per_block as usize;
        let parts = request.number_or("inverse-parts", 0..=most, if few { order.div_ceil(PART) } else { 0 })?;
        let rows = request.number_or("inverse-rows", 1..=8, rows)?;
        // Whole windows, of which no column has to be asked whether it is there: doubles gain up to a tenth, numbers of four bytes and larger complex ones lose more by columns of the identity.
        let whole = tensor && block == 16 && (scalar == ScalarKind::F64 || order <= 128);
        let class = order.next_multiple_of(if whole { block } else { 8 });
        let each = class.div_ceil(if parts > 0 { parts } else { rows });
        let threads = each.next_multiple_of(WARP).clamp(WARP, most);
        let threads = request.number_or("inverse-threads", WARP..=most, threads)?;
        if !threads.is_multiple_of(WARP) {
            return Err(format!("{threads} threads are no whole warps"));
        }
        let parts = if parts > 0 { class.div_ceil(threads) } else { 0 };
        // Of few matrices no multiprocessor has many blocks.
        let registers = if parts > 0 { 255 } else { registers };
        let blocks = resident_blocks(threads, registers, limits);
        // The last order of a class has a kernel of its own, in which X lies in the result alone, but where writing it to the workspace, too, costs less than what it saves.
        let short = scalar == ScalarKind::F32 || scalar == ScalarKind::C32 && order > 128;
        let exact = usize::from(limits.exact_orders && order == class && !short);
        let exact = request.number_or("exact", 0..=1, exact)? == 1;
        let mut plan = Self {
            block,
            resident: true,
            tensor,
            class: if exact || limits.exact_orders { class } else { 0 },
            exact,
            copies: Copies::default(),
            threads,
            rows: if parts > 0 { 1 } else { class.next_multiple_of(WARP).div_ceil(threads).max(1) },
            blocks: request.number_or("inverse-blocks", 1..=32, blocks)?,
            correction: Correction::Delayed,
            resources: Resources::Static,
            parts,
            direct: !problem.out().is_row_major(),
            // What one block overwrites others still read.
            separate: parts > 0,
            lines: order,
        };
        let (needed, limit) = (plan.shared_bytes(scalar, order, order), limits.shared_bytes_per_block as usize);
        if needed > limit {
            return match asked {
                None => Ok(None),
                Some(_) => {
                    Err(format!("a window of {block} columns takes {needed} bytes of shared memory of at most {limit}"))
                }
            };
        }
        let own = plan.copies_by_room(scalar, order, limits);
        let count = request.number_or("inverse-copies", 0..=MOST_BY_WINDOWS, own)?.min(order.div_ceil(block) - 1);
        plan.copies = Copies::of_block_columns(count, block, scalar, plan.leading(order));
        let needed = plan.shared_bytes(scalar, order, order);
        if needed > limit {
            return Err(format!(
                "{count} copied block columns take {needed} bytes of shared memory of at most {limit}"
            ));
        }
        Ok(Some(plan))
    }

    /// Block columns of the result that shared memory has room for beside what as many blocks take as registers allow. None of few matrices, nor where one kernel is for all orders.
    fn copies_by_room(&self, scalar: ScalarKind, order: usize, limits: &Limits) -> usize {
        // What the compiler then spills costs more than copies save.
        let spills = scalar == ScalarKind::C64 && (193..=256).contains(&order);
        if self.parts > 0 || self.class == 0 || spills {
            return 0;
        }
        let own = self.shared_bytes(scalar, order, order);
        let blocks = self.blocks.min(limits.blocks_by_shared_bytes(own)).max(1);
        let share = limits.shared_bytes_per_multiprocessor as usize / blocks;
        let share = share - limits.reserved_shared_bytes_per_block as usize;
        let room = share.min(limits.shared_bytes_per_block as usize).saturating_sub(own);
        room / (self.block * stride(scalar, self.leading(order)) * scalar_bytes(scalar))
    }

    /// Elements from a column in the workspace to the next, and how many columns there is room for.
    pub(crate) fn leading(&self, order: usize) -> usize {
        if self.class > 0 { self.class } else { leading(order) }
    }

    /// The row of the table that the plan is from.
    pub(super) fn row(&self, scalar: ScalarKind, order: usize) -> Numbers {
        let ((block, rows, registers), receipt) =
            if self.resident { windows(scalar, order, self.tensor) } else { (numbers(scalar, order), &RECEIPT) };
        if self.parts > 0 {
            let block = window_of_few(scalar, order, self.tensor);
            let row =
                format!("getri, {scalar}, order {order}, few matrices: inverse-window={block}, {PART} rows a block");
            return Numbers { row, receipt: FEW.clone() };
        }
        let what = if self.resident { "window" } else { "block" };
        let numbers = format!("inverse-{what}={block} inverse-rows={rows} registers={registers}");
        Numbers { row: format!("getri, {scalar}, order {order}: {numbers}"), receipt: receipt.clone() }
    }

    /// The block that the kernel is compiled for; one kernel serves the orders of a class.
    pub(crate) fn thread_class(&self) -> usize {
        if self.resident { self.threads } else { thread_class(self.threads) }
    }

    /// Blocks of columns.
    pub(crate) fn block_columns(&self, order: usize) -> usize {
        order.div_ceil(self.block)
    }

    fn line_bytes(&self, scalar: ScalarKind) -> usize {
        line_bytes(scalar, self.block)
    }

    fn place_bytes(&self, order: usize) -> usize {
        (order * 4).next_multiple_of(16)
    }

    /// Shared memory of a launch that has so many lines of the triangle at hand.
    pub(crate) fn shared_bytes(&self, scalar: ScalarKind, order: usize, lines: usize) -> usize {
        if self.resident {
            // `InverseChip` of `getri_resident.cu`.
            let order = self.leading(order);
            let column = (stride(scalar, order) + 1) * scalar_bytes(scalar);
            let copies = self.copies.bytes(scalar, order);
            return self.block * (column + self.line_bytes(scalar)) + copies + order * 8;
        }
        self.place_bytes(order) + lines.min(self.lines) * self.line_bytes(scalar)
    }
}

static RECEIPT: Receipt = Receipt::new(
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
        let Self { block, tensor, exact, copies, threads, rows, blocks, correction, resources, parts, lines, .. } =
            self;
        if self.resident {
            let (tensor, exact) = (u8::from(*tensor), u8::from(*exact));
            write!(f, "window={block} threads={threads} rows={rows} blocks={blocks} tensor={tensor} exact={exact}")?;
            if *parts > 0 {
                write!(f, " parts={parts}")?;
            }
            let Copies { early, late } = copies;
            if *late > 0 {
                write!(f, " copies={early}/{late}")?;
            }
        } else {
            write!(
                f,
                "block={block} threads={threads} rows={rows} blocks={blocks} lines={lines} {correction:?}/{resources:?}"
            )?;
        }
        f.write_str(if self.direct { " direct" } else { " by a copy" })
    }
}
