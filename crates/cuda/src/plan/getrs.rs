//! The solution's numbers.

use std::fmt;

use batchla_core::{Numbers, Receipt, ScalarKind};

use super::chip::{column_stride, has_fast_doubles, order_on_chip, tensor_step};
use super::{Request, WARP, resident_blocks, scalar_bytes};
use crate::limits::Limits;

/// How `op(A) X = B` is computed from `A = P L U`: a block takes a matrix and some right-hand sides, which stay on chip.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetrsPlan {
    /// Columns of a panel of the triangles, which come to the chip one after the other; 0: they are read where they lie, whatever the order.
    pub panel: usize,
    /// Right-hand sides of a block.
    pub columns: usize,
    /// Right-hand sides of a group of its warps; where there are more warps than groups, each has rows of its own.
    pub share: usize,
    /// Rows of these that are solved together; 0: all.
    pub band: usize,
    /// Threads of a block.
    pub threads: usize,
    /// Blocks a multiprocessor that the compiler leaves room for; 0: it is not told.
    pub blocks: usize,
    /// Whether products go by the matrix instructions for doubles. The bits are the same.
    pub tensor: bool,
    /// Bytes of shared memory a block: the right-hand sides, and what goes with panels.
    pub shared_bytes: usize,
}

/// Right-hand sides of a warp, at least: the columns of a tile of products.
const SHARE: usize = 8;

impl GetrsPlan {
    pub(super) fn choose(
        request: &Request<'_>,
        scalar: ScalarKind,
        order: usize,
        right_hand_sides: usize,
        limits: &Limits,
    ) -> Result<Self, String> {
        let own = Shares::of(scalar, order, right_hand_sides);
        let panel = request.number_or("solve-panel", 0..=32, own.panel)?;
        if panel == 0 {
            return Self::from_memory(scalar, order, right_hand_sides, limits);
        }
        let share = request.number_or("solve-share", SHARE..=WARP, own.share)?;
        let band = request.number_or("solve-band", 0..=256, own.band)?;
        let fits = |columns| bytes((panel, columns, band), scalar, order) <= limits.shared_bytes_per_block as usize;
        let step = panel.max(share);
        let asked = request.number("solve-columns", SHARE..=128)?;
        let fewer = (1..=own.columns.div_ceil(step)).rev().map(|shares| shares * step);
        let Some(columns) = asked.or_else(|| fewer.into_iter().find(|&columns| fits(columns))) else {
            return Self::from_memory(scalar, order, right_hand_sides, limits);
        };
        if !fits(columns) {
            return Err(format!(
                "{columns} right-hand sides of order {order} and panels of {panel} columns take {} bytes of shared memory, {} has {} a block",
                bytes((panel, columns, band), scalar, order),
                limits.name,
                limits.shared_bytes_per_block
            ));
        }
        let pack = 16 / scalar_bytes(scalar);
        if !panel.is_power_of_two() || !panel.is_multiple_of(pack) || !columns.is_multiple_of(panel) {
            return Err(format!(
                "panels of {panel} columns are no power of two, no whole {pack} or no part of {columns} right-hand sides"
            ));
        }
        let warps = request.number_or("solve-warps", 1..=16, (columns / share * own.split).clamp(1, 16))?;
        if !share.is_power_of_two() || !columns.is_multiple_of(share) || !warps.is_multiple_of(columns / share) {
            return Err(format!(
                "{columns} right-hand sides and {warps} warps do not make equal groups of {share}, a power of two"
            ));
        }
        let split = warps * share / columns;
        let height = band / split;
        // One band for all rows is as high as a power of two.
        let divides = if band == 0 { split.is_power_of_two() } else { band.is_multiple_of(split) };
        if !band.is_multiple_of(panel)
            || !divides
            || !height.is_multiple_of(16)
            || !(height * share).is_multiple_of(4 * WARP * pack)
        {
            return Err(format!(
                "bands of {band} rows are no whole panels of {panel} columns, or {split} warps do not have whole tiles of them"
            ));
        }
        let can = tensor_step(scalar).is_some_and(|step| panel.is_multiple_of(step));
        let tensor = request.number_or("tensor", 0..=1, usize::from(can && has_fast_doubles(limits)))? == 1 && can;
        let threads = warps * WARP;
        let shared_bytes = bytes((panel, columns, band), scalar, order);
        let by_shared = limits.blocks_by_shared_bytes(shared_bytes);
        let fit = resident_blocks(threads, REGISTERS, limits).min(by_shared).max(1);
        let blocks = request.number_or("solve-blocks", 1..=32, fit)?;
        Ok(Self { panel, columns, share, band, threads, blocks, tensor, shared_bytes })
    }

    fn from_memory(scalar: ScalarKind, order: usize, right_hand_sides: usize, limits: &Limits) -> Result<Self, String> {
        let limit = limits.shared_bytes_per_block as usize;
        let bytes = |columns: usize| order * columns * scalar_bytes(scalar);
        let mut columns = right_hand_sides.clamp(1, SHARE).next_power_of_two();
        while columns > 1 && bytes(columns) > limit {
            columns /= 2;
        }
        if bytes(columns) > limit {
            return Err(format!(
                "a right-hand side of order {order} takes {} bytes of shared memory, {} has {limit} a block",
                bytes(1),
                limits.name
            ));
        }
        let threads = order.next_multiple_of(WARP).clamp(WARP, 256);
        Ok(Self {
            panel: 0,
            columns,
            share: columns,
            band: order,
            threads,
            blocks: 0,
            tensor: false,
            shared_bytes: bytes(columns),
        })
    }

    /// What the plan is from.
    pub(super) fn row(&self, scalar: ScalarKind, order: usize) -> Numbers {
        let Self { panel, columns, share, band, threads, .. } = self;
        let warps = threads / WARP;
        let numbers = format!(
            "solve-panel={panel} solve-columns={columns} solve-share={share} solve-warps={warps} solve-band={band}"
        );
        Numbers { row: format!("getrs, {scalar}, order {order}: {numbers}"), receipt: RECEIPT }
    }

    /// The kernel.
    pub(crate) fn entry(&self) -> &'static str {
        if self.panel == 0 { "getrs" } else { "getrs_resident" }
    }
}

/// `SystemsChip` of `getrs_resident.cu`.
fn bytes((panel, columns, band): (usize, usize, usize), scalar: ScalarKind, order: usize) -> usize {
    let order = order_on_chip(order, panel);
    let stride = |rows| column_stride(scalar, rows, true);
    let panels = stride(if band == 0 { order } else { band }) * 2 * panel;
    (stride(order) * columns + panels + order) * scalar_bytes(scalar)
}

/// How right-hand sides are shared out: columns of a panel (0: triangles are not brought to the chip), right-hand sides of a block and of a group of its warps, warps
/// of a group, rows of a band.
struct Shares {
    panel: usize,
    columns: usize,
    share: usize,
    split: usize,
    band: usize,
}

/// Registers a thread.
const REGISTERS: usize = 128;

const RECEIPT: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-22",
    "batchla bench plans --solve-many resident:solve-panel=…,solve-columns=…: benches/record/nvidia-h200/2026-11-22/choices-solution.csv",
);

impl Shares {
    /// Measured on an H200, 2026-11-22, at orders 48, 64, 96, 128, 190, 256 and 512 with as many right-hand sides, and with one. Between, and with other numbers of
    /// them, it is a guess.
    fn of(scalar: ScalarKind, order: usize, right_hand_sides: usize) -> Self {
        // Few: one warp, or two.
        match (scalar, right_hand_sides) {
            (ScalarKind::C64, 0..=2) => return Self::new(0, 8, 8, 1, 0),
            (_, 0..=8) => return Self::new(8, 8, 8, 1, 0),
            (_, 9..=16) => return Self::new(8, 16, 8, 1, 0),
            _ => {}
        }
        let most = match (scalar, order) {
            (ScalarKind::F64 | ScalarKind::C32, 0..=64) => Self::new(8, 64, 16, 1, 0),
            (ScalarKind::F64 | ScalarKind::C32, 65..=112) => Self::new(8, 48, 16, 1, 0),
            (ScalarKind::F64 | ScalarKind::C32, 113..=256) => Self::new(16, 64, 16, 2, 0),
            (ScalarKind::F64, _) => Self::new(8, 32, 16, 4, 0),
            (ScalarKind::C32, _) => Self::new(16, 32, 16, 4, 128),
            (ScalarKind::F32, 0..=64) => Self::new(16, 64, 16, 1, 0),
            (ScalarKind::F32, 65..=112) => Self::new(16, 48, 16, 1, 0),
            (ScalarKind::F32, 113..=192) => Self::new(16, 64, 16, 1, 0),
            (ScalarKind::F32, _) => Self::new(16, 64, 16, 2, 0),
            (ScalarKind::C64, 0..=64) => Self::new(16, 64, 16, 2, 64),
            (ScalarKind::C64, 65..=112) => Self::new(16, 48, 16, 2, 64),
            (ScalarKind::C64, 113..=160) => Self::new(16, 32, 8, 2, 64),
            (ScalarKind::C64, 161..=192) => Self::new(16, 48, 16, 4, 64),
            (ScalarKind::C64, 193..=320) => Self::new(16, 32, 8, 4, 128),
            (ScalarKind::C64, _) => Self::new(16, 16, 8, 4, 128),
        };
        // As many blocks as it takes, with as few as may be.
        let each = right_hand_sides.div_ceil(right_hand_sides.div_ceil(most.columns));
        let columns = each.next_multiple_of(most.share.max(most.panel));
        Self { columns, ..most }
    }

    const fn new(panel: usize, columns: usize, share: usize, split: usize, band: usize) -> Self {
        Self { panel, columns, share, split, band }
    }
}

impl fmt::Display for GetrsPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { panel, columns, share, band, threads, blocks, tensor, .. } = self;
        write!(f, "panel={panel} columns={columns} threads={threads}")?;
        if *panel == 0 {
            return Ok(());
        }
        write!(f, " share={share} band={band} blocks={blocks} tensor={}", u8::from(*tensor))
    }
}
