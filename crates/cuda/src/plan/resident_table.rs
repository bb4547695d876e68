//! The numbers of kernels that work on a matrix on chip, as measured.

use batchla_core::{Receipt, ScalarKind};

/// Up to which order, which panel, rows a thread (more where the order needs them), helpers, registers a thread and window are best, and whether by matrix
/// instructions.
#[derive(Clone, Copy)]
pub(super) struct Tuned {
    pub(super) order: usize,
    pub(super) panel: usize,
    pub(super) rows: usize,
    pub(super) helpers: usize,
    pub(super) registers: usize,
    pub(super) window: usize,
    pub(super) tensor: bool,
}

impl Tuned {
    pub(super) const fn by_thread(&self) -> bool {
        self.rows == self.order
    }
}

pub(super) const fn tuned(order: usize, panel: usize, rows: usize, helpers: usize, registers: usize) -> Tuned {
    Tuned { order, panel, rows, helpers, registers, window: 0, tensor: false }
}

/// Up to this order a thread has a matrix of its own.
const fn thread(order: usize, registers: usize) -> Tuned {
    tuned(order, 8, order, 0, registers)
}

const fn tensor(order: usize, panel: usize, rows: usize, helpers: usize, registers: usize) -> Tuned {
    Tuned { tensor: true, ..tuned(order, panel, rows, helpers, registers) }
}

const fn window(window: usize, row: Tuned) -> Tuned {
    Tuned { window, ..row }
}

/// Beyond the last row left-looking plans are faster or, where the kernel inverts, LU and inversion by windows. Measured on an H200, 2026-11-21 and, up to order 48,
/// 2026-11-22: orders up to 36 one by one (batches of 10 000, of 100 000 up to 8 and at 16), above at 48, 64, 80, 96, 112, 128, 160, 190 (batches of 10 000) and 256
/// (batches of 4 000); and by the tuner, which tries every order: LU from 33 to 128 (c32 to 96, c64 to 80), inverses of f32 and f64 from 33 to 128
/// (`benches/record/nvidia-h200/2026-11-22/tune-*`); at odd and even orders from 33 to 96 once more, 2026-11-24 (`benches/record/nvidia-h200/2026-11-24/choices-*.csv`);
/// at 48 orders from 33 to 256 once more, 2026-11-24 (`benches/record/nvidia-h200/2026-11-24/choices-windows.csv`); what some of these were chosen against, on an H100
/// (`benches/record/nvidia-h100/2026-11-24/choices-windows.csv`); LU by windows of c64, of c32 beyond order 128 and of f64 beyond 192 on an H100, 2026-11-26
/// (`benches/record/nvidia-h100/2026-11-26/choices-windows.csv`), and windows that are no multiple of eight columns, or divide orders better, on an H200 that day
/// (`benches/record/nvidia-h200/2026-11-26/choices-windows.csv`). Panels of four columns are for complex matrices of which registers hold no wider panel, or whose wider panels were slower.
pub(super) fn table(scalar: ScalarKind, inverts: bool) -> &'static [Tuned] {
    const F32: &[Tuned] = &[
        thread(8, 128),
        tuned(16, 16, 1, 0, 56),
        tuned(32, 32, 1, 0, 80),
        tuned(36, 36, 2, 0, 128),
        tuned(56, 8, 2, 1, 64),
        tuned(64, 8, 2, 1, 96),
        tuned(80, 8, 3, 1, 200),
        tuned(88, 8, 3, 2, 96),
        tuned(96, 8, 3, 2, 128),
        tuned(112, 8, 4, 1, 168),
        tuned(128, 8, 4, 3, 168),
        window(32, tuned(160, 8, 1, 1, 168)),
        window(56, tuned(168, 8, 1, 1, 255)),
        window(48, tuned(192, 8, 1, 1, 255)),
        window(40, tuned(200, 8, 1, 1, 255)),
        window(32, tuned(256, 8, 1, 1, 255)),
    ];
    const F32_INVERSE: &[Tuned] = &[
        thread(7, 96),
        tuned(16, 16, 1, 0, 64),
        tuned(32, 32, 1, 0, 128),
        tuned(36, 36, 2, 0, 168),
        tuned(40, 8, 2, 0, 96),
        tuned(48, 8, 2, 0, 128),
        tuned(64, 8, 2, 1, 96),
        tuned(88, 8, 3, 2, 96),
        tuned(96, 8, 3, 2, 128),
        tuned(128, 8, 4, 3, 128),
    ];
    const F64: &[Tuned] = &[
        thread(7, 168),
        tuned(16, 16, 1, 0, 80),
        tuned(24, 24, 1, 0, 96),
        tuned(32, 32, 1, 0, 128),
        tuned(34, 36, 2, 0, 255),
        tensor(40, 8, 2, 0, 168),
        tensor(56, 8, 2, 1, 128),
        tensor(64, 8, 2, 1, 168),
        tensor(80, 8, 3, 1, 168),
        tensor(88, 8, 3, 2, 168),
        window(48, tensor(96, 8, 1, 1, 255)),
        window(64, tensor(104, 8, 1, 1, 255)),
        window(32, tensor(128, 8, 1, 1, 255)),
        window(72, tensor(144, 8, 1, 1, 255)),
        window(32, tensor(160, 8, 1, 1, 255)),
        window(56, tensor(168, 8, 1, 3, 255)),
        window(32, tensor(176, 8, 1, 1, 255)),
        window(48, tensor(192, 8, 1, 3, 255)),
        window(40, tensor(200, 8, 8, 3, 255)),
        window(48, tensor(208, 8, 8, 3, 255)),
        window(32, tensor(256, 8, 8, 3, 255)),
    ];
    const F64_INVERSE: &[Tuned] = &[
        thread(6, 168),
        tuned(8, 8, 1, 0, 64),
        tuned(12, 12, 1, 0, 80),
        tuned(16, 16, 1, 0, 96),
        tuned(20, 20, 1, 0, 128),
        tuned(32, 32, 1, 0, 168),
        tuned(36, 4, 2, 0, 96),
        tensor(40, 8, 2, 0, 168),
        tensor(48, 8, 2, 1, 128),
        tensor(64, 8, 2, 1, 168),
        tensor(88, 8, 3, 2, 168),
    ];
    const C32: &[Tuned] = &[
        thread(6, 168),
        tuned(8, 8, 1, 0, 128),
        tuned(16, 16, 1, 0, 80),
        tuned(20, 20, 1, 0, 96),
        tuned(32, 32, 1, 0, 128),
        tuned(40, 8, 2, 0, 168),
        tuned(48, 8, 2, 1, 112),
        tuned(64, 8, 2, 1, 168),
        tuned(80, 8, 3, 2, 168),
        window(48, tuned(88, 8, 1, 1, 255)),
        window(32, tuned(128, 8, 1, 1, 255)),
        window(24, tuned(136, 8, 1, 1, 255)),
        window(32, tuned(160, 4, 1, 1, 255)),
        window(28, tuned(168, 4, 1, 1, 255)),
        window(16, tuned(192, 8, 1, 1, 255)),
        window(32, tuned(216, 4, 1, 1, 255)),
        window(16, tuned(256, 4, 1, 1, 255)),
    ];
    const C32_INVERSE: &[Tuned] = &[
        thread(5, 128),
        tuned(8, 8, 1, 0, 96),
        tuned(28, 28, 1, 0, 128),
        tuned(32, 8, 1, 0, 128),
        tuned(40, 8, 2, 1, 128),
        tuned(64, 8, 2, 1, 168),
        tuned(80, 8, 3, 2, 168),
    ];
    const C64: &[Tuned] = &[
        thread(5, 168),
        tuned(6, 6, 1, 0, 96),
        tuned(8, 8, 1, 0, 168),
        tuned(12, 12, 1, 0, 96),
        tuned(16, 16, 1, 0, 255),
        tuned(28, 28, 1, 0, 168),
        tuned(32, 32, 1, 0, 255),
        tensor(40, 8, 2, 0, 255),
        tensor(56, 8, 2, 1, 255),
        window(32, tensor(64, 8, 1, 1, 255)),
        window(24, tensor(68, 4, 1, 1, 255)),
        window(24, tensor(72, 8, 1, 1, 255)),
        window(28, tensor(84, 4, 1, 1, 255)),
        window(24, tensor(100, 4, 1, 1, 255)),
        window(32, tensor(104, 4, 1, 1, 255)),
        window(28, tensor(108, 4, 1, 1, 255)),
        window(16, tensor(112, 4, 1, 1, 255)),
        window(20, tensor(116, 4, 1, 1, 255)),
        window(24, tensor(120, 4, 1, 1, 255)),
        window(28, tensor(124, 4, 1, 1, 255)),
        window(32, tensor(128, 8, 1, 1, 255)),
        window(24, tensor(140, 4, 1, 1, 255)),
        window(16, tensor(144, 4, 1, 1, 255)),
        window(32, tensor(168, 4, 1, 3, 255)),
        window(16, tensor(180, 4, 1, 1, 255)),
        window(28, tensor(184, 4, 1, 3, 255)),
        window(24, tensor(212, 4, 1, 3, 255)),
        window(16, tensor(224, 4, 1, 1, 255)),
        window(20, tensor(232, 4, 1, 3, 255)),
        window(16, tensor(240, 4, 1, 3, 255)),
        window(32, tensor(256, 4, 1, 3, 255)),
    ];
    const C64_INVERSE: &[Tuned] = &[
        thread(5, 168),
        tuned(8, 8, 1, 0, 168),
        tuned(12, 12, 1, 0, 128),
        tuned(16, 16, 1, 0, 255),
        tuned(24, 24, 1, 0, 200),
        tuned(32, 4, 1, 0, 112),
        tensor(40, 8, 2, 1, 168),
        // By windows orders from 57 on are up to 6 % faster (`benches/record/nvidia-h200/2026-11-26/choices-inverse.csv`), but take a second batch's memory.
        tensor(64, 8, 2, 1, 255),
    ];
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
    "batchla bench plans resident:panel=…,rows=…,blocks=…,teams=… at orders 48 to 256; no record was kept",
);
/// Of orders up to 48.
pub(super) const SMALL: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-22",
    "batchla bench plans resident:panel=…,rows=…,blocks=…,teams=…: benches/record/nvidia-h200/2026-11-22/choices-lu.csv",
);
/// Of threads that have a matrix each.
pub(super) const THREAD: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-22",
    "batchla bench plans resident:rows=8,registers=…: benches/record/nvidia-h200/2026-11-22/choices-thread/lu-100000.csv",
);
pub(super) const THREAD_INVERSE: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-22",
    "batchla bench plans --inverse resident:rows=8,registers=…: benches/record/nvidia-h200/2026-11-22/choices-thread/inverse-100000.csv",
);
pub(super) const SMALL_INVERSE: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-22",
    "batchla bench plans --inverse resident:panel=…,rows=…,blocks=…: benches/record/nvidia-h200/2026-11-22/choices-inverse.csv",
);

/// Of rows that were tried again once products on chip had become faster.
const ROWS: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-24",
    "batchla bench plans resident resident:helpers=…,registers=…: benches/record/nvidia-h200/2026-11-24/choices-rows.csv",
);
const ROWS_INVERSE: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-24",
    "batchla bench plans --inverse resident resident:helpers=…,registers=…: benches/record/nvidia-h200/2026-11-24/choices-rows-inverse.csv",
);

/// Of rows that were tried again once half of the rows of a panel were left out where half had become rows of U.
const DEALT: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-24",
    "batchla bench plans resident resident:helpers=…,registers=…: benches/record/nvidia-h200/2026-11-24/choices-dealt.csv",
);

/// Of windows and crews that were tried again once helpers had come to bring columns while the first panel is factored.
const WINDOWS: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-24",
    "batchla bench plans resident resident:window=…,helpers=…: benches/record/nvidia-h200/2026-11-24/choices-windows.csv",
);

/// Of windows, panels and crews that were tried again once rows of L had come to their places by way of the chip.
const SETTLED: Receipt = Receipt::new(
    "NVIDIA H100",
    "2026-11-26",
    "batchla bench plans left-looking resident:panel=…,rows=…,window=…,helpers=…: benches/record/nvidia-h100/2026-11-26/choices-windows.csv",
);

/// Of windows that divide orders better.
const DIVIDING: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-26",
    "batchla bench plans resident resident:panel=…,window=…: benches/record/nvidia-h200/2026-11-26/choices-windows.csv",
);

/// Of the row up to order `last`, where it was measured after the first tables: by the tuner, or to choose again.
pub(super) fn later_receipt(scalar: ScalarKind, inverts: bool, last: usize) -> Option<Receipt> {
    macro_rules! record {
        ($scalar:literal, $operation:literal, $orders:literal) => {
            concat!(
                "batchla tune ",
                $scalar,
                " --op ",
                $operation,
                " --orders ",
                $orders,
                ": benches/record/nvidia-h200/2026-11-22/tune-",
                $scalar,
                "-",
                $operation,
                "-middle/tune.csv"
            )
        };
    }
    let command = match (scalar, inverts, last) {
        (ScalarKind::F64, false, 128) => {
            "batchla bench plans resident:window=…: benches/record/nvidia-h200/2026-11-22/choices-window.csv"
        }
        (ScalarKind::F32, false, 200)
        | (ScalarKind::C32, false, 168)
        | (ScalarKind::C64, false, 68 | 84 | 100 | 108 | 116 | 124 | 184 | 232) => return Some(DIVIDING),
        (ScalarKind::F64, false, 200 | 208 | 256)
        | (ScalarKind::C32, false, 128..=256)
        | (ScalarKind::C64, false, 64..=256) => return Some(SETTLED),
        (ScalarKind::F32, false, 56 | 168 | 192)
        | (ScalarKind::F64, false, 104 | 144..=176)
        | (ScalarKind::C32, false, 88)
        | (ScalarKind::F32 | ScalarKind::C64, true, 40) => return Some(WINDOWS),
        (ScalarKind::F32, false, 88) | (ScalarKind::F64, false, 88 | 96) => return Some(DEALT),
        (ScalarKind::F32, false, 80)
        | (ScalarKind::F64, false, 34 | 40 | 80)
        | (ScalarKind::C32, false, 40 | 48 | 80)
        | (ScalarKind::C64, false, 40 | 56) => return Some(ROWS),
        (ScalarKind::F64, true, 40 | 88) | (ScalarKind::C32, true, 40) => return Some(ROWS_INVERSE),
        (ScalarKind::F32, false, 33..=128) => record!("f32", "factorize", "33..128"),
        (ScalarKind::F64, false, 33..=128) => record!("f64", "factorize", "33..128"),
        (ScalarKind::C32, false, 33..=96) => record!("c32", "factorize", "33..96"),
        (ScalarKind::F32, true, 37..=128) => record!("f32", "invert", "37..128"),
        (ScalarKind::F64, true, 33..=128) => record!("f64", "invert", "33..128"),
        _ => return None,
    };
    Some(Receipt::new("NVIDIA H200", "2026-11-22", command))
}

/// The row that serves an order best, or the last beyond it. Solutions are those of teams, since right-hand sides are shared out, and of one panel as long as
/// it holds the matrix: only from there do they come in the launch that factors.
pub(super) fn row(scalar: ScalarKind, inverts: bool, solves: bool, order: usize) -> Option<Tuned> {
    let mut rows = table(scalar, inverts).iter().filter(|row| !(solves && row.by_thread()));
    let serves = |row: &&Tuned| order <= if solves { row.order.max(row.panel) } else { row.order };
    rows.clone().find(serves).or(rows.next_back()).copied()
}

/// The last order of a table.
pub(super) fn last(scalar: ScalarKind, inverts: bool) -> usize {
    table(scalar, inverts).last().map_or(0, |row| row.order)
}
