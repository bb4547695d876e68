//! The numbers of kernels that work on a matrix on chip, as measured.

use batchla_core::{Receipt, ScalarKind};

use super::resident_receipts::*;

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
    /// How the row was measured.
    pub(super) receipt: &'static Receipt,
}

impl Tuned {
    const fn by(self, receipt: &'static Receipt) -> Self {
        Self { receipt, ..self }
    }

    pub(super) const fn by_thread(&self) -> bool {
        self.rows == self.order
    }
}

pub(super) const fn tuned(order: usize, panel: usize, rows: usize, helpers: usize, registers: usize) -> Tuned {
    let receipt = if order > 48 { &RECEIPT } else { &SMALL };
    Tuned { order, panel, rows, helpers, registers, window: 0, tensor: false, receipt }
}

/// Up to this order a thread has a matrix of its own.
const fn thread(order: usize, registers: usize) -> Tuned {
    tuned(order, 8, order, 0, registers).by(&THREAD)
}

const fn tensor(order: usize, panel: usize, rows: usize, helpers: usize, registers: usize) -> Tuned {
    Tuned { tensor: true, ..tuned(order, panel, rows, helpers, registers) }
}

const fn window(window: usize, row: Tuned) -> Tuned {
    Tuned { window, ..row }
}

/// Beyond the last row left-looking plans are faster or, where the kernel inverts, LU and inversion by windows. Rows that name no receipt were the first: orders up to 36 one by one (batches of
/// 10 000, of 100 000 up to 8 and at 16), above at 48, 64, 80, 96, 112, 128, 160, 190 (batches of 10 000) and 256 (batches of 4 000). Panels of four columns are for complex matrices, where
/// registers hold no wider panel, a wider one was slower, or four divides an order better than eight; beside those, for doubles of orders 34 to 36.
pub(super) fn table(scalar: ScalarKind, inverts: bool) -> &'static [Tuned] {
    const F32: &[Tuned] = &[
        thread(8, 128),
        tuned(12, 16, 1, 0, 48).by(&REGISTERS),
        tuned(16, 16, 1, 0, 56),
        tuned(28, 32, 1, 0, 64).by(&REGISTERS),
        tuned(32, 32, 1, 0, 80),
        tuned(36, 36, 2, 0, 128).by(&TUNED_F32),
        tuned(56, 8, 2, 1, 64).by(&WINDOWS),
        tuned(64, 8, 2, 1, 96).by(&TUNED_F32),
        tuned(80, 8, 3, 1, 200).by(&ROWS),
        tuned(88, 8, 3, 2, 96).by(&DEALT),
        tuned(96, 8, 3, 2, 128).by(&TUNED_F32),
        tuned(112, 8, 4, 1, 168).by(&TUNED_F32),
        tuned(128, 8, 4, 3, 168).by(&TUNED_F32),
        window(32, tuned(160, 8, 1, 1, 168)),
        window(56, tuned(168, 8, 1, 1, 255)).by(&WINDOWS),
        window(48, tuned(192, 8, 1, 1, 255)).by(&WINDOWS),
        window(40, tuned(200, 8, 1, 1, 255)).by(&DIVIDING),
        window(32, tuned(256, 8, 1, 1, 255)),
    ];
    const F32_INVERSE: &[Tuned] = &[
        thread(7, 96).by(&THREAD_INVERSE),
        tuned(8, 8, 1, 0, 64).by(&SMALL_INVERSE),
        tuned(12, 12, 2, 0, 80).by(&TWO_ROWS_INVERSE),
        tuned(16, 16, 1, 0, 64).by(&SMALL_INVERSE),
        tuned(20, 32, 1, 0, 96).by(&REGISTERS_INVERSE),
        tuned(32, 32, 1, 0, 128).by(&SMALL_INVERSE),
        tuned(35, 36, 2, 0, 168).by(&SMALL_INVERSE),
        tuned(36, 8, 2, 0, 96).by(&ABOVE_A_WARP_INVERSE),
        tuned(40, 8, 2, 0, 96).by(&WINDOWS),
        tuned(48, 8, 2, 0, 128).by(&TUNED_F32_INVERSE),
        tuned(56, 8, 2, 0, 168).by(&CREWS_INVERSE),
        tuned(64, 8, 2, 1, 96).by(&TUNED_F32_INVERSE),
        tuned(72, 8, 3, 0, 168).by(&CREWS_INVERSE),
        tuned(80, 8, 3, 1, 200).by(&CREWS_INVERSE),
        tuned(88, 8, 3, 2, 96).by(&TUNED_F32_INVERSE),
        tuned(96, 8, 3, 2, 128).by(&TUNED_F32_INVERSE),
        tuned(112, 8, 4, 1, 200).by(&CREWS_INVERSE),
        tuned(128, 8, 4, 3, 128).by(&TUNED_F32_INVERSE),
    ];
    const F64: &[Tuned] = &[
        thread(7, 168),
        tuned(14, 16, 1, 0, 72).by(&REGISTERS),
        tuned(16, 16, 1, 0, 80),
        tuned(28, 28, 1, 0, 96).by(&REGISTERS),
        tuned(32, 32, 1, 0, 128),
        tuned(33, 36, 2, 0, 255).by(&ROWS), // and solutions of 34 to 36
        tuned(36, 4, 2, 0, 128).by(&ABOVE_A_WARP),
        tensor(40, 8, 2, 0, 168).by(&ROWS),
        tensor(56, 8, 2, 1, 128).by(&TUNED_F64),
        tensor(64, 8, 2, 1, 168).by(&TUNED_F64),
        tensor(72, 8, 3, 1, 168).by(&ROWS),
        tensor(80, 8, 3, 2, 168).by(&CREWS),
        tensor(88, 8, 3, 2, 168).by(&DEALT),
        window(48, tensor(96, 8, 1, 1, 255)).by(&DEALT),
        window(64, tensor(104, 8, 1, 1, 255)).by(&WINDOWS),
        window(32, tensor(160, 8, 1, 1, 255)).by(&HELD),
        window(16, tensor(192, 8, 1, 1, 255)).by(&HELD),
        window(16, tensor(256, 8, 8, 1, 255)).by(&HELD),
    ];
    const F64_INVERSE: &[Tuned] = &[
        thread(6, 168).by(&THREAD_INVERSE),
        tuned(8, 8, 1, 0, 64).by(&SMALL_INVERSE),
        tuned(12, 12, 2, 0, 96).by(&TWO_ROWS_INVERSE),
        tuned(16, 16, 1, 0, 96).by(&SMALL_INVERSE),
        tuned(20, 20, 2, 0, 128).by(&TWO_ROWS_INVERSE),
        tuned(28, 28, 1, 0, 128).by(&REGISTERS_INVERSE),
        tuned(32, 32, 1, 0, 168).by(&SMALL_INVERSE),
        tensor(36, 8, 2, 0, 168).by(&ABOVE_A_WARP_INVERSE),
        tensor(40, 8, 2, 0, 168).by(&ROWS_INVERSE),
        tensor(48, 8, 2, 1, 128).by(&TUNED_F64_INVERSE),
        tensor(64, 8, 2, 1, 168).by(&TUNED_F64_INVERSE),
        tensor(80, 8, 3, 2, 168).by(&ROWS_INVERSE),
        tensor(88, 8, 3, 3, 168).by(&CREWS_INVERSE),
    ];
    const C32: &[Tuned] = &[
        thread(6, 168),
        tuned(8, 8, 1, 0, 128),
        tuned(15, 16, 1, 0, 80),
        tuned(16, 16, 1, 0, 64).by(&REGISTERS),
        tuned(24, 24, 1, 0, 96).by(&REGISTERS),
        tuned(32, 32, 1, 0, 128),
        tuned(44, 4, 2, 1, 80).by(&NARROW),
        tuned(52, 4, 2, 1, 96).by(&NARROW),
        tuned(56, 8, 2, 1, 168).by(&TUNED_C32),
        tuned(60, 4, 2, 1, 112).by(&NARROW),
        tuned(64, 8, 2, 1, 168).by(&TUNED_C32),
        tuned(72, 4, 3, 2, 128).by(&NARROW),
        tuned(80, 8, 3, 2, 168).by(&ROWS),
        window(28, tuned(84, 4, 1, 1, 128)).by(&CREWS),
        window(48, tuned(88, 8, 1, 1, 255)).by(&WINDOWS),
        window(32, tuned(96, 8, 1, 1, 255)).by(&SETTLED),
        window(28, tuned(100, 4, 1, 1, 255)).by(&NARROW),
        window(32, tuned(128, 8, 1, 1, 255)).by(&SETTLED),
        window(24, tuned(136, 8, 1, 1, 255)).by(&SETTLED),
        window(32, tuned(160, 4, 1, 1, 255)).by(&SETTLED),
        window(28, tuned(168, 4, 1, 1, 255)).by(&DIVIDING),
        window(16, tuned(192, 8, 1, 1, 255)).by(&SETTLED),
        window(32, tuned(216, 4, 1, 1, 255)).by(&SETTLED),
        window(16, tuned(256, 4, 1, 1, 255)).by(&SETTLED),
    ];
    const C32_INVERSE: &[Tuned] = &[
        thread(4, 96).by(&THREAD_INVERSE_C32),
        thread(5, 128).by(&THREAD_INVERSE),
        tuned(8, 8, 1, 0, 96).by(&SMALL_INVERSE),
        tuned(28, 28, 1, 0, 128).by(&SMALL_INVERSE),
        tuned(32, 8, 2, 0, 255).by(&TWO_ROWS_INVERSE),
        tuned(36, 4, 2, 0, 128).by(&NARROW_INVERSE),
        tuned(40, 8, 2, 0, 168).by(&CREWS_INVERSE),
        tuned(44, 4, 2, 0, 112).by(&CREWS_INVERSE),
        tuned(48, 8, 2, 0, 200).by(&CREWS_INVERSE),
        tuned(52, 4, 2, 1, 112).by(&CREWS_INVERSE),
        tuned(56, 8, 2, 0, 200).by(&CREWS_INVERSE),
        tuned(60, 4, 2, 1, 128).by(&NARROW_INVERSE),
        tuned(64, 8, 2, 1, 168),
        tuned(68, 4, 3, 2, 112).by(&NARROW_INVERSE),
        tuned(72, 8, 3, 2, 168),
        tuned(80, 4, 3, 2, 112).by(&NARROW_INVERSE),
    ];
    const C64: &[Tuned] = &[
        thread(5, 168),
        tuned(6, 6, 1, 0, 96),
        tuned(8, 8, 1, 0, 168),
        tuned(12, 12, 1, 0, 96),
        tuned(16, 16, 1, 0, 128).by(&REGISTERS),
        tuned(19, 19, 1, 0, 128).by(&REGISTERS),
        tuned(28, 28, 1, 0, 168),
        tuned(32, 32, 1, 0, 255),
        tensor(40, 4, 2, 1, 128).by(&NARROW),
        tensor(52, 4, 2, 1, 168).by(&NARROW),
        tensor(56, 8, 2, 1, 255).by(&ROWS),
        window(32, tensor(64, 4, 1, 1, 168)).by(&NARROW),
        window(24, tensor(68, 4, 1, 1, 168)).by(&BY_LINES),
        window(24, tensor(72, 8, 1, 1, 255)).by(&SETTLED),
        window(16, tensor(96, 4, 1, 1, 168)).by(&BY_LINES),
        window(16, tensor(160, 4, 1, 1, 255)).by(&HELD),
        window(32, tensor(168, 4, 1, 3, 255)).by(&SETTLED),
        window(16, tensor(180, 4, 1, 1, 255)).by(&SETTLED),
        window(28, tensor(184, 4, 1, 3, 255)).by(&DIVIDING),
        window(24, tensor(192, 4, 1, 3, 255)).by(&SETTLED),
        window(16, tensor(256, 4, 1, 3, 255)).by(&HELD),
    ];
    const C64_INVERSE: &[Tuned] = &[
        thread(5, 168).by(&THREAD_INVERSE),
        tuned(8, 8, 1, 0, 168).by(&SMALL_INVERSE),
        tuned(12, 12, 1, 0, 128).by(&SMALL_INVERSE),
        tuned(16, 16, 1, 0, 128).by(&REGISTERS_INVERSE),
        tuned(23, 24, 1, 0, 168).by(&REGISTERS_INVERSE),
        tensor(32, 4, 1, 0, 112).by(&INSTRUCTIONS_INVERSE),
        tensor(36, 4, 2, 1, 128).by(&NARROW_INVERSE),
        tensor(40, 4, 2, 0, 200).by(&CREWS_INVERSE),
        tensor(52, 4, 2, 1, 168).by(&NARROW_INVERSE),
        tensor(56, 8, 2, 1, 255),
        tensor(60, 4, 2, 1, 168).by(&NARROW_INVERSE),
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

/// For so few matrices that all of them are on the chip at once, and for doubles where there are no matrix instructions: the row whose matrices have more threads each, if there is one for an order.
pub(super) fn row_of_few(scalar: ScalarKind, inverts: bool, order: usize) -> Option<Tuned> {
    const F64: &[Tuned] = &[
        window(56, tensor(168, 8, 1, 3, 255)).by(&WINDOWS),
        window(48, tensor(192, 8, 1, 3, 255)),
        window(40, tensor(200, 8, 8, 3, 255)).by(&SETTLED),
        window(48, tensor(208, 8, 8, 3, 255)).by(&SETTLED),
        window(32, tensor(256, 8, 8, 3, 255)).by(&SETTLED),
    ];
    const C32_INVERSE: &[Tuned] = &[tuned(32, 8, 1, 0, 128).by(&FEW_INVERSE)];
    let (first, rows) = match (scalar, inverts) {
        (ScalarKind::F64, false) => (161, F64),
        (ScalarKind::C32, true) => (29, C32_INVERSE),
        _ => return None,
    };
    rows.iter().find(|row| (first..=row.order).contains(&order)).copied()
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
