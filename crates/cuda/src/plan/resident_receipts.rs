//! How the rows of the tables of kernels that work on chip were measured.

use batchla_core::Receipt;

/// Of orders from 49 on.
pub(super) static RECEIPT: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-21",
    "batchla bench plans resident:panel=…,rows=…,blocks=…,teams=… at orders 48 to 256; no record was kept",
);
/// Of orders up to 48.
pub(super) static SMALL: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-22",
    "batchla bench plans resident:panel=…,rows=…,blocks=…,teams=…: benches/record/nvidia-h200/2026-11-22/choices-lu.csv",
);
/// Of threads that have a matrix each.
pub(super) static THREAD: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-22",
    "batchla bench plans resident:rows=8,registers=…: benches/record/nvidia-h200/2026-11-22/choices-thread/lu-100000.csv",
);
pub(super) static THREAD_INVERSE: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-22",
    "batchla bench plans --inverse resident:rows=8,registers=…: benches/record/nvidia-h200/2026-11-22/choices-thread/inverse-100000.csv",
);
pub(super) static THREAD_INVERSE_C32: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-27",
    "batchla bench plans --inverse resident resident:registers=…: benches/record/nvidia-h200/2026-11-27/choices-thread-inverse-c32.csv",
);
pub(super) static SMALL_INVERSE: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-22",
    "batchla bench plans --inverse resident:panel=…,rows=…,blocks=…: benches/record/nvidia-h200/2026-11-22/choices-inverse.csv",
);

/// Of registers of small orders, each order by itself.
pub(super) static REGISTERS: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-29",
    "batchla bench plans resident resident:blocks=…: benches/record/nvidia-h200/2026-11-29/choices-registers.csv",
);
pub(super) static REGISTERS_INVERSE: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-29",
    "batchla bench plans --inverse resident resident:blocks=…: benches/record/nvidia-h200/2026-11-29/choices-registers-inverse.csv",
);

/// Of rows that were tried again once products on chip had become faster.
pub(super) static ROWS: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-24",
    "batchla bench plans resident resident:helpers=…,registers=…: benches/record/nvidia-h200/2026-11-24/choices-rows.csv",
);
pub(super) static ROWS_INVERSE: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-24",
    "batchla bench plans --inverse resident resident:helpers=…,registers=…: benches/record/nvidia-h200/2026-11-24/choices-rows-inverse.csv",
);

/// Of rows that were tried again once half of the rows of a panel were left out where half had become rows of U.
pub(super) static DEALT: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-24",
    "batchla bench plans resident resident:helpers=…,registers=…: benches/record/nvidia-h200/2026-11-24/choices-dealt.csv",
);

/// Of windows and crews that were tried again once helpers had come to bring columns while the first panel is factored.
pub(super) static WINDOWS: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-24",
    "batchla bench plans resident resident:window=…,helpers=…: benches/record/nvidia-h200/2026-11-24/choices-windows.csv",
);

/// Of windows, panels and crews that were tried again once rows of L had come to their places by way of the chip.
pub(super) static SETTLED: Receipt = Receipt::new(
    "NVIDIA H100",
    "2026-11-26",
    "batchla bench plans left-looking resident:panel=…,rows=…,window=…,helpers=…: benches/record/nvidia-h100/2026-11-26/choices-windows.csv",
);

/// Of windows whose columns are held in registers.
pub(super) static HELD: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-28",
    "batchla bench plans resident resident:panel=…,window=…,helpers=…: benches/record/nvidia-h200/2026-11-28/choices-held.csv",
);

/// Of windows of complex doubles, since copies go through L1.
pub(super) static BY_LINES: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-28",
    "batchla bench plans resident resident:panel=…,window=…,helpers=…,registers=…: benches/record/nvidia-h200/2026-11-28/choices-lines.csv",
);

/// Of windows that divide orders better.
pub(super) static DIVIDING: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-26",
    "batchla bench plans resident resident:panel=…,window=…: benches/record/nvidia-h200/2026-11-26/choices-windows.csv",
);

/// Of panels of four columns, of complex matrices and where that divides an order better.
pub(super) static NARROW: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-26",
    "batchla bench plans resident resident:panel=…,helpers=…,registers=…: benches/record/nvidia-h200/2026-11-26/choices-panels.csv",
);
pub(super) static NARROW_INVERSE: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-26",
    "batchla bench plans --inverse resident resident:panel=…,helpers=…,registers=…: benches/record/nvidia-h200/2026-11-26/choices-panels-inverse.csv",
);

/// Of two rows a thread in small inverses.
pub(super) static TWO_ROWS_INVERSE: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-29",
    "batchla bench plans --inverse resident resident:rows=2,registers=…: benches/record/nvidia-h200/2026-11-29/choices-two-rows-inverse.csv",
);

/// Of one row a thread, for as few matrices as need no more of them side by side; two rows: `…/batches/c32/peers.csv`.
pub(super) static FEW_INVERSE: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-29",
    "batchla bench peers --figures inverse-batches --scalars c32: benches/record/nvidia-h200/2026-11-29/c32/peers.csv",
);

/// Of the first orders that have more rows than a warp has threads.
pub(super) static ABOVE_A_WARP: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-29",
    "batchla bench plans resident resident:panel=…,rows=2,registers=…: benches/record/nvidia-h200/2026-11-29/choices-33-to-36.csv",
);
pub(super) static ABOVE_A_WARP_INVERSE: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-29",
    "batchla bench plans --inverse resident resident:panel=…,rows=2,registers=…: benches/record/nvidia-h200/2026-11-29/choices-33-to-36-inverse.csv",
);

/// Of matrix instructions in small inverses of complex doubles.
pub(super) static INSTRUCTIONS_INVERSE: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-29",
    "batchla bench plans --inverse resident resident:panel=…,tensor=1,registers=…: benches/record/nvidia-h200/2026-11-29/choices-instructions-inverse.csv",
);

/// Of helpers that were tried again, with registers to go with them, at all orders that differ in panels.
pub(super) static CREWS: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-29",
    "batchla bench plans resident resident:helpers=…,registers=…: benches/record/nvidia-h200/2026-11-29/choices-crews.csv",
);
pub(super) static CREWS_INVERSE: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-29",
    "batchla bench plans --inverse resident resident:panel=…,helpers=…,registers=…: benches/record/nvidia-h200/2026-11-29/choices-crews-inverse.csv",
);

macro_rules! by_the_tuner {
    ($($name:ident: $scalar:literal, $operation:literal, $orders:literal;)*) => {$(
        pub(super) static $name: Receipt = Receipt::new(
            "NVIDIA H200",
            "2026-11-22",
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
            ),
        );
    )*};
}
by_the_tuner! {
    TUNED_F32: "f32", "factorize", "33..128";
    TUNED_F64: "f64", "factorize", "33..128";
    TUNED_C32: "c32", "factorize", "33..96";
    TUNED_F32_INVERSE: "f32", "invert", "37..128";
    TUNED_F64_INVERSE: "f64", "invert", "33..128";
}
