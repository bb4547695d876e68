//! The numbers of kernels that factor a panel at a time and stream the rest of the matrix past it, as measured.

use batchla_core::{Numbers, Receipt, ScalarKind};

/// Up to which order, which panel, rows a thread, columns fetched at a time, such fetches and registers a thread are best.
#[derive(Clone, Copy)]
pub(super) struct Tuned {
    pub(super) order: usize,
    pub(super) panel: usize,
    pub(super) rows: usize,
    pub(super) ahead: usize,
    pub(super) stages: usize,
    pub(super) registers: usize,
    pub(super) tensor: bool,
}

pub(super) const fn tuned(
    order: usize,
    panel: usize,
    rows: usize,
    [ahead, stages]: [usize; 2],
    registers: usize,
) -> Tuned {
    Tuned { order, panel, rows, ahead, stages, registers, tensor: false }
}

const fn tensor(order: usize, panel: usize, rows: usize, streamed: [usize; 2], registers: usize) -> Tuned {
    Tuned { tensor: true, ..tuned(order, panel, rows, streamed, registers) }
}

/// Measured on an H200, 2026-11-21, at orders 16, 24, 40, 64, 96, 128, 190 and 256, batches of 10 000 (256: 4 000), and by the tuner, 2026-11-22, from 257 to 512
/// (`benches/record/nvidia-h200/2026-11-22/tune-*-factorize-large`; with matrix instructions, and to 1024, `choices-streamed.csv` beside it); between those, as their
/// neighbours, and beyond them, to keep registers from spilling.
pub(super) fn table(scalar: ScalarKind) -> &'static [Tuned] {
    const F32: &[Tuned] = &[
        tuned(16, 16, 1, [16, 0], 128),
        tuned(48, 8, 1, [4, 3], 64),
        tuned(256, 16, 1, [4, 3], 80),
        tuned(352, 16, 1, [8, 3], 64),
        tuned(384, 16, 1, [8, 3], 80),
        tuned(480, 16, 1, [8, 3], 64),
        tuned(512, 16, 2, [8, 3], 128),
        tuned(896, 16, 1, [8, 3], 64),
        tuned(1024, 16, 2, [8, 3], 128),
        tuned(2048, 8, 4, [4, 3], 128),
    ];
    const F64: &[Tuned] = &[
        tuned(16, 8, 1, [8, 0], 128),
        tuned(160, 8, 1, [4, 3], 80),
        tuned(224, 12, 1, [4, 3], 96),
        tuned(256, 16, 1, [4, 3], 128),
        tuned(308, 12, 2, [4, 2], 128),
        tuned(320, 16, 2, [4, 3], 168),
        tensor(512, 16, 1, [8, 3], 128),
        tensor(768, 16, 2, [8, 2], 128),
        tuned(1024, 12, 2, [4, 2], 128),
        tuned(2048, 4, 4, [4, 2], 128),
    ];
    const C32: &[Tuned] = &[
        tuned(16, 8, 1, [8, 0], 128),
        tuned(160, 8, 1, [4, 3], 80),
        tuned(224, 12, 1, [4, 3], 96),
        tuned(256, 16, 1, [4, 3], 128),
        tuned(440, 12, 1, [4, 3], 80),
        tuned(640, 12, 1, [4, 3], 96),
        tuned(896, 12, 1, [2, 3], 64),
        tuned(1024, 12, 2, [2, 3], 128),
        tuned(2048, 4, 4, [4, 2], 128),
    ];
    const C64: &[Tuned] = &[
        tuned(16, 4, 1, [4, 0], 128),
        tuned(160, 8, 1, [4, 3], 128),
        tuned(224, 12, 1, [4, 3], 128),
        tuned(256, 8, 1, [4, 3], 128),
        tuned(368, 12, 1, [4, 3], 128),
        tuned(400, 12, 1, [2, 3], 168),
        tuned(490, 12, 1, [4, 3], 128),
        tuned(512, 8, 1, [4, 3], 128),
        tuned(1024, 4, 2, [4, 2], 128),
        tuned(2048, 2, 4, [2, 2], 128),
    ];
    match scalar {
        ScalarKind::F32 => F32,
        ScalarKind::F64 => F64,
        ScalarKind::C32 => C32,
        ScalarKind::C64 => C64,
    }
}

const RECEIPT: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-21",
    "batchla bench plans left-looking:panel=… at orders 16 to 512; no record was kept",
);
/// Of orders above 256, in the row up to order `last`.
fn large(scalar: ScalarKind, last: usize) -> Receipt {
    macro_rules! record {
        ($scalar:literal) => {
            concat!(
                "batchla tune ",
                $scalar,
                " --op factorize --orders 257..512: benches/record/nvidia-h200/2026-11-22/tune-",
                $scalar,
                "-factorize-large/tune.csv"
            )
        };
    }
    let command = match (scalar, last) {
        (ScalarKind::F32, 480 | 896 | 1024) | (ScalarKind::F64, 512 | 768) | (ScalarKind::C32, 896) => {
            "batchla bench plans left-looking:tensor=…,rows=…,registers=…: benches/record/nvidia-h200/2026-11-22/choices-streamed.csv"
        }
        (ScalarKind::F32, _) => record!("f32"),
        (ScalarKind::F64, _) => record!("f64"),
        (ScalarKind::C32, _) => record!("c32"),
        (ScalarKind::C64, _) => record!("c64"),
    };
    Receipt::new("NVIDIA H200", "2026-11-22", command)
}

/// The row of the table that an order is in; none beyond the last.
pub(super) fn row(scalar: ScalarKind, order: usize) -> Option<Numbers> {
    let &Tuned { order: last, panel, rows, ahead, stages, registers, tensor } =
        table(scalar).iter().find(|row| order <= row.order)?;
    let tensor = u8::from(tensor);
    let numbers =
        format!("panel={panel} rows={rows} ahead={ahead} stages={stages} registers={registers} tensor={tensor}");
    let receipt = if last > 256 { large(scalar, last) } else { RECEIPT };
    Some(Numbers { row: format!("getrf, {scalar}, orders up to {last}: {numbers}"), receipt })
}
