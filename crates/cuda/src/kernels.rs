//! The kernels' text. All of it is valid CUDA C++ on its own; `batchla_config.h`, the only generated file, holds the constants.

use crate::kernel::source::KernelSource;

macro_rules! header {
    ($name:literal) => {
        ($name, include_str!(concat!("kernels/", $name)))
    };
}

macro_rules! source {
    ($name:literal, $($header:literal),*) => {
        KernelSource { name: $name, text: include_str!(concat!("kernels/", $name)), headers: &[$(header!($header)),*] }
    };
}

macro_rules! factorization {
    ($name:literal $(, $more:literal)*) => {
        source!(
            $name,
            "scalar.cuh",
            "instruction.cuh",
            "warp.cuh",
            "operand.cuh",
            "block.cuh",
            "panel.cuh",
            "team.cuh",
            "search.cuh",
            "getf2.cuh",
            "columns.cuh",
            "update.cuh",
            "fragments.cuh",
            "laswp.cuh",
            "factor.cuh"
            $(, $more)*
        )
    };
}

/// `A = P L U`, in one launch.
pub(crate) const GETRF: KernelSource = factorization!("getrf.cu");
/// `A = P L U`, in many: `getrf_panel` and `getrf_update`.
pub(crate) const GETRF_STEPS: KernelSource = factorization!("getrf_steps.cu");
/// The interchange of rows between those.
pub(crate) const LASWP: KernelSource = source!(
    "laswp.cu",
    "scalar.cuh",
    "instruction.cuh",
    "warp.cuh",
    "operand.cuh",
    "block.cuh",
    "panel.cuh",
    "team.cuh",
    "columns.cuh",
    "laswp.cuh"
);
/// `A = P L U` of few matrices, a launch a panel: `getrf_spread` and `getrf_settle`.
pub(crate) const GETRF_SPREAD: KernelSource = factorization!("getrf_spread.cu", "origin.cuh");
/// `A = P L U` by strips of columns: `getrf_strip`.
pub(crate) const GETRF_STRIP: KernelSource = factorization!("getrf_strip.cu");
macro_rules! resident {
    ($name:literal $(, $more:literal)*) => {
        source!(
            $name,
            "scalar.cuh",
            "instruction.cuh",
            "warp.cuh",
            "operand.cuh",
            "block.cuh",
            "panel.cuh",
            "streaming.cuh",
            "resident.cuh",
            "tile.cuh"
            $(, $more)*
        )
    };
}

/// `A = P L U`, each matrix on chip, or a window of its columns.
pub(crate) const GETRF_RESIDENT: KernelSource =
    resident!("getrf_resident.cu", "search.cuh", "getf2.cuh", "lookahead.cuh", "held.cuh", "window.cuh");
/// The end of an `A = P L U` by strips: `getrf_finish`.
pub(crate) const GETRF_FINISH: KernelSource =
    resident!("getrf_finish.cu", "search.cuh", "getf2.cuh", "lookahead.cuh", "held.cuh", "window.cuh");
/// `A⁻¹` from `A`, each matrix on chip.
pub(crate) const GETRF_GETRI: KernelSource =
    resident!("getrf_getri.cu", "search.cuh", "getf2.cuh", "lookahead.cuh", "rows.cuh", "det.cuh");
/// What the columns behind a strip take: `getrf_trailing`.
pub(crate) const GETRF_TRAILING: KernelSource =
    resident!("getrf_trailing.cu", "search.cuh", "getf2.cuh", "lookahead.cuh", "origin.cuh", "trailing.cuh");
macro_rules! thread {
    ($name:literal) => {
        source!($name, "scalar.cuh", "instruction.cuh", "warp.cuh", "operand.cuh", "det.cuh", "thread.cuh")
    };
}

/// `A = P L U`, a matrix a thread.
pub(crate) const GETRF_THREAD: KernelSource = thread!("getrf_thread.cu");
/// `A⁻¹` from `A`, a matrix a thread.
pub(crate) const GETRF_GETRI_THREAD: KernelSource = thread!("getrf_getri_thread.cu");
/// `A X = B`, each matrix one panel.
pub(crate) const GESV: KernelSource = resident!("gesv.cu", "search.cuh", "getf2.cuh", "lookahead.cuh");
/// `A⁻¹` from factors, a block column on chip: `getri_resident`.
pub(crate) const GETRI_RESIDENT: KernelSource = resident!("getri_resident.cu", "rows.cuh");

/// `A⁻¹` from factors: `trtri` and `getri`.
pub(crate) const GETRI: KernelSource =
    source!("getri.cu", "scalar.cuh", "instruction.cuh", "warp.cuh", "operand.cuh", "block.cuh", "triangle.cuh");
/// `op(A) X = B` from factors, right-hand sides on chip: `getrs_resident`.
pub(crate) const GETRS_RESIDENT: KernelSource = resident!("getrs_resident.cu");
/// `op(A) X = B` from factors.
pub(crate) const GETRS: KernelSource = source!("getrs.cu", "scalar.cuh", "instruction.cuh", "warp.cuh", "operand.cuh");
/// `permutation` and `lacpy`.
pub(crate) const PERMUTATION: KernelSource =
    source!("permutation.cu", "scalar.cuh", "instruction.cuh", "warp.cuh", "operand.cuh");
/// `determinant` and `lange`.
pub(crate) const DET: KernelSource =
    source!("det.cu", "scalar.cuh", "instruction.cuh", "warp.cuh", "operand.cuh", "det.cuh");
/// `spread` and `fill_failed`.
pub(crate) const OUTCOME: KernelSource = source!("outcome.cu", "scalar.cuh", "operand.cuh");
