//! Few matrices: each shared out to many blocks, where one a matrix would leave most of the GPU idle.

use batchla_core::{Numbers, Problem, Receipt, ScalarKind, SourceKind};

use super::streamed_table::{Tuned, tuned};
use crate::limits::Limits;

/// From which order on.
const fn first(scalar: ScalarKind) -> usize {
    match scalar {
        ScalarKind::F32 => 224,
        ScalarKind::F64 => 257,
        ScalarKind::C32 => 160,
        ScalarKind::C64 => 192,
    }
}

/// So many matrices at most leave most of a GPU idle.
fn most(each: usize, limits: &Limits) -> usize {
    limits.multiprocessors as usize / each
}

/// Multiprocessors that a matrix must have for itself where its LU is shared out: more where strips, whose products are by many blocks in any case, are fast.
fn each(problem: &Problem) -> usize {
    match (problem.scalar(), problem.order()) {
        (ScalarKind::F64, _) | (ScalarKind::F32, 400..) | (ScalarKind::C64, 384..) => 8,
        _ => 6,
    }
}

/// Whether a problem has so few matrices that the sweeps of their inversion are shared out.
pub(super) fn few(problem: &Problem, limits: &Limits) -> bool {
    problem.a().batch().max(1) <= most(6, limits)
}

/// Whether the planner shares the matrices of a problem out so.
pub(super) fn is_best(problem: &Problem, limits: &Limits) -> bool {
    let few = problem.a().batch().max(1) <= most(each(problem), limits);
    problem.source() != SourceKind::Factors && problem.order() >= first(problem.scalar()) && few
}

/// Why not, where it is not.
pub(super) fn reason(problem: &Problem, limits: &Limits) -> String {
    if problem.source() == SourceKind::Factors {
        return "what starts from factors has its LU already".to_owned();
    }
    let (first, most) = (first(problem.scalar()), most(each(problem), limits));
    format!("faster from order {first} on, for {most} matrices at most ({RECEIPT})")
}

/// Why another plan was not chosen where this is.
pub(super) fn advantage() -> String {
    format!("slower for so few matrices, which leave most of the GPU idle ({RECEIPT})")
}

/// Numbers of the kernel: a block has one block column, a thread few of its rows, in registers while there are four at most. More would spill.
pub(super) fn numbers(scalar: ScalarKind, order: usize) -> Tuned {
    let rows = order.div_ceil(512).max(1);
    let panel = match (scalar, rows) {
        (_, 1) | (ScalarKind::F32, 2) => 12,
        (ScalarKind::C64, 2) | (ScalarKind::F64 | ScalarKind::C32 | ScalarKind::C64, 3..=4) => 4,
        _ => 8,
    };
    // All of the panel on the left is on its way while the block column is.
    tuned(order, panel, if rows > 4 { 0 } else { rows }, [panel, 2], 128)
}

/// The row that these are.
pub(super) fn row(scalar: ScalarKind, order: usize) -> Numbers {
    let Tuned { panel, rows, ahead, .. } = numbers(scalar, order);
    Numbers {
        row: format!("getrf, {scalar}, few matrices: panel={panel} rows={rows} ahead={ahead}"),
        receipt: RECEIPT.clone(),
    }
}

static RECEIPT: Receipt = Receipt::new(
    "NVIDIA H100",
    "2026-11-26",
    "batchla bench plans left-looking resident blocked spread --batch …: benches/record/nvidia-h100/2026-11-26/choices-spread.csv and choices-few.csv",
);
