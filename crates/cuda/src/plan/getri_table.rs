//! Windows of an inversion, as measured.

use batchla_core::{Receipt, ScalarKind};

/// From this order on few matrices are shared out to blocks of so many threads, each of which has a row.
pub(super) const FIRST_SHARED_OUT: usize = 200;
pub(super) const PART: usize = 64;

/// Columns of a window of few matrices, of which no columns are copied.
pub(super) fn window_of_few(scalar: ScalarKind, order: usize, tensor: bool) -> usize {
    match (scalar, tensor, order) {
        (ScalarKind::F32, _, 257..) | (ScalarKind::F64, true, 241..) => 32,
        (ScalarKind::F64, true, _) => 24,
        (ScalarKind::C64, false, _) => 8,
        _ => 16,
    }
}

/// Beyond this order block columns of lines are the planner's: no windows were timed there.
pub(super) const MOST_BY_WINDOWS: usize = 512;

static FIRST: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-21",
    "batchla bench plans --inverse resident:inverse-window=…,inverse-rows=…,inverse-blocks=…: benches/record/nvidia-h200/2026-11-21/choices-inverse.csv",
);

/// With copies.
static COPIED: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-27",
    "the inversion's kernel alone, by events on its stream: benches/record/nvidia-h200/2026-11-27/choices-inverse.csv; batchla bench plans --inverse resident:inverse-window=…,inverse-copies=… times it with LU",
);

/// Narrower, where sixteen columns do not divide the last order of the class.
static NARROW: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-27",
    "batchla bench plans resident:inverse-window=8 resident:inverse-window=16 --inverse: benches/record/nvidia-h200/2026-11-27/choices-inverse-narrow.csv",
);

/// Of two rows a thread, and of windows twice as wide, tried again in f32.
static AGAIN: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-29",
    "batchla bench plans --inverse resident resident:inverse-window=…,inverse-rows=…,inverse-blocks=…: benches/record/nvidia-h200/2026-11-29/choices-windows-inverse.csv",
);

/// Of few matrices.
pub(super) static FEW: Receipt = Receipt::new(
    "NVIDIA H100",
    "2026-11-26",
    "batchla bench plans --inverse resident resident:inverse-parts=… --batch …: benches/record/nvidia-h100/2026-11-26/choices-spread-inverse.csv",
);

/// Columns of a window, rows and registers a thread, and how they were measured: all but those without matrix instructions at 65 orders of the four types together, with copies of solved columns on chip and without. Without matrix instructions,
/// doubles are a guess.
pub(super) fn windows(scalar: ScalarKind, order: usize, tensor: bool) -> ((usize, usize, usize), &'static Receipt) {
    let (first, copied, again) =
        (|numbers| (numbers, &FIRST), |numbers| (numbers, &COPIED), |numbers| (numbers, &AGAIN));
    match (scalar, tensor, order) {
        (ScalarKind::F32, _, 129..=136) => again((8, 2, 80)),
        (ScalarKind::F32, _, 161..=168) => again((8, 2, 96)),
        (ScalarKind::F32, _, 169..=192 | 273..=280 | 289..=296 | 305..=312 | 321..=336) => again((16, 2, 80)),
        (ScalarKind::F32, _, 217..=224 | 281..=288 | 313..=320) => again((32, 1, 96)),
        (ScalarKind::F32, _, 0..=160) => copied((16, 1, 96)),
        (ScalarKind::F32, _, 161..=240 | 257..=336) => copied((16, 1, 80)),
        (ScalarKind::F32, _, 241..=256 | 401..=464) => copied((32, 1, 128)),
        (ScalarKind::F32, _, 337..=400) => copied((32, 2, 168)),
        (ScalarKind::F32, _, _) => copied((32, 2, 128)),
        (ScalarKind::F64, true, 0..=184 | 193..=224) => copied((16, 1, 128)),
        (ScalarKind::F64, true, 185..=192 | 225..=240 | 257..=304) => copied((24, 1, 128)),
        (ScalarKind::F64, true, _) => copied((32, 1, 128)),
        (ScalarKind::F64, false, 0..=128) => first((16, 1, 168)),
        (ScalarKind::F64, false, _) => first((16, 2, 168)),
        (ScalarKind::C32, _, 0..=80) => copied((16, 1, 128)),
        (ScalarKind::C32, _, 81..=88) => ((8, 1, 80), &NARROW),
        (ScalarKind::C32, _, 129..=160) => copied((16, 1, 96)),
        (ScalarKind::C32, _, 89..=208 | 257..=400) => copied((16, 1, 80)),
        (ScalarKind::C32, _, _) => copied((32, 1, 128)),
        (ScalarKind::C64, true, 0..=80) => copied((8, 1, 128)),
        (ScalarKind::C64, true, 81..=96) => copied((8, 1, 168)),
        (ScalarKind::C64, true, 97..=128 | 161..=176) => copied((16, 1, 168)),
        (ScalarKind::C64, true, 177..=192 | 257..=384) => copied((24, 1, 128)),
        (ScalarKind::C64, true, _) => copied((16, 1, 128)),
        (ScalarKind::C64, false, _) => first((8, 1, 168)),
    }
}
