//! Large matrices: strips of columns factored one after the other, by a block a matrix, and between them the trailing matrices, by many.

use std::fmt;

use batchla_core::{Numbers, Problem, Receipt, ScalarKind, SourceKind};

use super::chip::{column_stride, has_fast_doubles, tensor_step};
use super::resident::{MOST_ORDER, ResidentPlan};
use super::streamed_table::{Tuned, tuned};
use super::{Request, WARP, scalar_bytes, spread};
use crate::limits::Limits;

/// Strips of columns, and the products with them that the columns behind take.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Strips {
    /// Columns of a strip.
    pub width: usize,
    /// Strips whose products the columns behind them take at once.
    pub together: usize,
    /// Columns of a tile: a block's share of the trailing matrix.
    pub tile: usize,
    /// Sixteens of rows that a warp has in registers at a time, where products go by matrix instructions.
    pub rows: usize,
    /// Steps, or columns, of `L` that are on their way.
    pub ahead: usize,
    /// Warps of a block.
    pub warps: usize,
    /// Whether products go by matrix instructions. The bits are the same.
    pub tensor: bool,
    /// Blocks a multiprocessor that the compiler leaves room for.
    pub blocks: usize,
    /// How the end of the matrix is factored, once the chip takes it, and its order.
    pub finish: Option<(usize, ResidentPlan)>,
}

/// Columns of the triangles that rows of `U` in a tile are solved with.
pub(crate) const TRIANGLE: usize = 8;

impl Strips {
    pub(super) fn choose(
        request: &Request<'_>,
        scalar: ScalarKind,
        order: usize,
        limits: &Limits,
    ) -> Result<Self, String> {
        let step = tensor_step(scalar);
        let can = step.is_some() && has_fast_doubles(limits);
        let tensor = request.number_or("tensor", 0..=1, usize::from(can))? == 1;
        if tensor && step.is_none() {
            return Err(format!("matrix instructions need doubles; not {scalar}"));
        }
        let (together, rows, ahead, blocks) = match scalar {
            ScalarKind::F64 if tensor => (2, 2, 4, 3),
            ScalarKind::C64 if tensor => (1, 1, 2, 3),
            ScalarKind::F32 => (1, 1, 4, 4),
            _ => (1, 1, 4, 3),
        };
        let mut strips = Self {
            width: request.number_or("width", 8..=128, width(scalar, order))?,
            together: request.number_or("together", 1..=8, together)?,
            tile: request.number_or("tile", 4..=128, 32)?,
            rows: request.number_or("tile-rows", 1..=2, rows)?,
            ahead: request.number_or("tile-ahead", 1..=8, ahead)?,
            warps: request.number_or("tile-warps", 1..=16, 4)?,
            tensor,
            blocks: request.number_or("tile-blocks", 1..=32, blocks)?,
            finish: None,
        };
        let finish = request.number_or("finish", 0..=MOST_ORDER, largest(scalar, order))?;
        let limit = limits.shared_bytes_per_block as usize;
        let asked = |key| request.number(key, 0..=usize::MAX).map(|number| number.is_some());
        while !asked("together")? && strips.together > 1 && strips.shared_bytes(scalar, order) > limit {
            strips.together -= 1;
        }
        while !asked("width")? && strips.width > 16 && strips.shared_bytes(scalar, order) > limit {
            strips.width /= 2;
        }
        while !asked("tile-ahead")? && strips.ahead > 1 && !strips.width.is_multiple_of(strips.turn(step)) {
            strips.ahead /= 2;
        }
        let Self { width, tile, warps, .. } = strips;
        // Columns that a warp has.
        let broad = if tensor { 8 * step.unwrap_or(1) / strips.rows } else { 32 };
        let turn = strips.turn(step);
        if !width.is_multiple_of(TRIANGLE) || !width.is_multiple_of(turn) {
            return Err(format!("strips of {width} columns are no whole {TRIANGLE} and {turn}"));
        }
        // Columns that a warp solves for: a step of products, or a lane's.
        let least = if tensor { step.unwrap_or(1) } else { 4 };
        let shared = tile.is_multiple_of(warps) && tile / warps >= least;
        let fits = shared && tile.is_multiple_of(broad) && warps.is_multiple_of(tile / broad);
        if !fits || tile > warps * WARP {
            return Err(format!("{warps} warps do not share tiles of {tile} columns, of which each has {broad}"));
        }
        let bytes = strips.shared_bytes(scalar, order);
        if bytes > limit {
            return Err(format!(
                "a tile of {tile} columns of order {order} takes {bytes} bytes of shared memory a block, {} has {limit}",
                limits.name
            ));
        }
        // At least one strip, so that what is left lies where the result does.
        let left = order.saturating_sub(order.saturating_sub(finish).next_multiple_of(width).max(width));
        strips.finish = ResidentPlan::finishing(scalar, left, limits).filter(|_| finish > 0).map(|plan| (left, plan));
        Ok(strips)
    }

    /// Columns of `L` that are on their way, `step` being those of a matrix instruction.
    fn turn(&self, step: Option<usize>) -> usize {
        self.ahead * step.filter(|_| self.tensor).unwrap_or(1)
    }

    /// Columns whose products those behind them take at once.
    pub(crate) fn depth(&self) -> usize {
        self.width * self.together
    }

    /// How many columns of a matrix are factored by strips.
    pub(crate) fn columns(&self, order: usize) -> usize {
        order - self.finish.as_ref().map_or(0, |(left, _)| *left)
    }

    /// Threads of a block.
    pub(crate) fn threads(&self) -> usize {
        self.warps * WARP
    }

    /// Shared memory of a block: `Trailing` of `trailing.cuh`.
    pub(crate) fn shared_bytes(&self, scalar: ScalarKind, order: usize) -> usize {
        let stride = column_stride(scalar, self.depth(), true);
        let lines = if self.tensor { 0 } else { self.depth() * self.tile };
        let elements = self.tile * stride + (2 * TRIANGLE * stride).max(lines);
        elements * scalar_bytes(scalar) + (self.depth() + order) * 4
    }
}

impl fmt::Display for Strips {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { width, together, tile, rows, ahead, warps, tensor, blocks, finish } = self;
        write!(f, "strips of {width}, {together} together, tiles of {tile}: rows={rows} ahead={ahead} warps={warps}")?;
        write!(f, " tensor={} blocks={blocks}", u8::from(*tensor))?;
        finish.as_ref().map_or(Ok(()), |(left, plan)| write!(f, ", the last {left}: {plan}"))
    }
}

/// The largest order that is finished on chip.
const fn largest(scalar: ScalarKind, order: usize) -> usize {
    match (scalar, order) {
        (ScalarKind::C64, _) => 160,
        (ScalarKind::F64, ..=288) => 192,
        _ => MOST_ORDER,
    }
}

/// Columns of a strip, as measured: what is left is an order that LU on chip is fast for, as a little below 128, 160, 192 or 256.
fn width(scalar: ScalarKind, order: usize) -> usize {
    let leaving = |left: usize| order.saturating_sub(left).next_multiple_of(16).max(16);
    match (scalar, order) {
        // Few, all alike, and what is left is as much as the chip takes.
        (ScalarKind::F32, _) => {
            let columns = order.saturating_sub(MOST_ORDER).max(1);
            columns.div_ceil(columns.div_ceil(128)).next_multiple_of(16).max(32)
        }
        (ScalarKind::C32, ..=224) | (ScalarKind::C64, ..=208) => leaving(128),
        (ScalarKind::C32, ..=256) => leaving(192).max(48),
        (ScalarKind::C32, ..=272 | 289..=304) | (ScalarKind::F64, 321..=352) => 48,
        (ScalarKind::C64, 225..=240) => 80,
        _ => 64,
    }
}

/// From which order on that is faster.
const fn first(scalar: ScalarKind) -> usize {
    match scalar {
        ScalarKind::F32 | ScalarKind::F64 => 257,
        ScalarKind::C32 => 169,
        ScalarKind::C64 => 161,
    }
}

/// Whether the planner takes it.
pub(super) fn is_best(problem: &Problem, limits: &Limits) -> bool {
    problem.source() != SourceKind::Factors
        && problem.order() >= first(problem.scalar())
        && !spread::is_best(problem, limits)
}

/// Why not, where it does not.
pub(super) fn reason(problem: &Problem) -> String {
    if problem.source() == SourceKind::Factors {
        return "what starts from factors has its LU already".to_owned();
    }
    format!("slower up to order {} ({RECEIPT})", first(problem.scalar()) - 1)
}

/// Why another plan was not chosen where this is.
pub(super) fn advantage(scalar: ScalarKind) -> String {
    format!("slower from order {} on ({RECEIPT})", first(scalar))
}

/// Numbers of the kernel that factors strips.
pub(super) fn numbers(scalar: ScalarKind, order: usize) -> Tuned {
    let rows = order.div_ceil(256).clamp(1, 4);
    let (panel, ahead, registers) = match (scalar, rows) {
        (ScalarKind::F32, 1 | 2) => (16, 4, 80),
        (ScalarKind::F32, _) => (8, 4, 128),
        (ScalarKind::C32, 1 | 2) => (8, 4, 80),
        (ScalarKind::F64 | ScalarKind::C64, 1 | 2) => (8, 4, 128),
        _ => (4, 4, 128),
    };
    // Beyond, panels in registers would take more threads than a block has.
    if order > 2048 { tuned(order, 8, 0, [8, 0], 128) } else { tuned(order, panel, rows, [ahead, 3], registers) }
}

/// The row that these are.
pub(super) fn row(plan: &Strips, scalar: ScalarKind, order: usize) -> Numbers {
    let Tuned { panel, rows, registers, .. } = numbers(scalar, order);
    let row = format!("getrf, {scalar}, large: panel={panel} rows={rows} registers={registers} width={}", plan.width);
    let receipt = if matches!(scalar, ScalarKind::F64 | ScalarKind::C64) { &BY_INSTRUCTIONS } else { &RECEIPT };
    Numbers { row, receipt: receipt.clone() }
}

static RECEIPT: Receipt = Receipt::new(
    "NVIDIA H100",
    "2026-11-26",
    "batchla bench plans left-looking resident blocked: benches/record/nvidia-h100/2026-11-26/choices-finish.csv",
);

/// Of doubles, whose ends on chip have become faster since.
static BY_INSTRUCTIONS: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-28",
    "batchla bench plans blocked blocked:finish=… blocked:width=…: benches/record/nvidia-h200/2026-11-28/choices-strips.csv",
);
