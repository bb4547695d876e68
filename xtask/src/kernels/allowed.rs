//! The planner's own kernels that may spill registers, each with its reason.

use super::record::Row;

/// Bytes a thread that a kernel with these constants may store to and load from local memory.
struct Allowance {
    entry: &'static str,
    /// All of these must be among the kernel's constants.
    constants: &'static [&'static str],
    bytes: u32,
}

const fn allow(entry: &'static str, constants: &'static [&'static str], bytes: u32) -> Allowance {
    Allowance { entry, constants, bytes }
}

const ALLOWANCES: &[Allowance] = &[
    // On an H200 as many blocks a multiprocessor as fit beat fewer that spill nothing: f64 of order 128, ms for 10 000, 3.69 with 80 registers, 3.86 with 96;
    // f64 of order 512, 1 000, 16.0 with 128 registers and two blocks, more than 17 in all other ways; c64 of order 512, 39.8 so and 42.9 with a wider panel.
    allow("getrf", &["SCALAR=0", "NB=16", "ROWS=1"], 192),
    allow("getrf", &["SCALAR=1", "NB=8", "ROWS=1"], 60),
    allow("getrf", &["SCALAR=1", "NB=16", "ROWS=1"], 20),
    allow("getrf", &["SCALAR=2", "NB=8", "ROWS=1"], 88),
    allow("getrf", &["SCALAR=2", "NB=16", "ROWS=1"], 20),
    allow("getrf", &["SCALAR=3", "NB=8", "ROWS=1"], 148),
    // Complex matrices that are one panel, of orders up to 16, on an H200: inverses of c64 take 0.96 of the time with 128 registers, solutions 0.90 to 0.98, those of c32 0.91 to 1.00 with 96
    // (benches/record/nvidia-h200/2026-11-29/choices-registers-inverse.csv and choices-registers-solution.csv). What spills elsewhere was not measured.
    allow("getrf_getri", &["SCALAR=3", "NB=16", "WINDOW=0"], 32),
    allow("gesv", &["SCALAR=3", "NB=16"], 136),
    allow("gesv", &["SCALAR=2", "NB=16"], 8),
    // Shared out to many blocks: 8 matrices of order 512 take 1.03 ms so on an H100, 1.21 by panels of eight columns, which spill nothing.
    allow("getrf_spread", &["SCALAR=3", "NB=12"], 224),
    // Strips of large matrices: three blocks a multiprocessor, or two of c64 by panels of eight, beat what spills nothing. On an H100, all strips of order 512 but the first, 1 000 matrices, to the end:
    // f32 2.3 ms with 80 registers, 2.7 with 128; c32 4.5 and 4.9; c64 6.7, and by panels of four 7.6; of order 1024, 200, all of LU of c64 32.9 by panels of four in four rows a thread, 37.6 in other
    // ways. What spills elsewhere was not measured.
    allow("getrf_strip", &["SCALAR=0", "NB=16"], 408),
    allow("getrf_strip", &["SCALAR=1", "NB=8", "ROWS=2"], 288),
    allow("getrf_strip", &["SCALAR=2", "NB=8", "ROWS=1"], 112),
    allow("getrf_strip", &["SCALAR=2", "NB=8", "ROWS=2"], 444),
    allow("getrf_strip", &["SCALAR=3", "NB=8"], 656),
    allow("getrf_strip", &["SCALAR=3", "NB=4", "ROWS=4"], 212),
    // Their rows of L on the way to their places, read and written once.
    allow("getrf_settle", &["SCALAR=0", "NB=16"], 36),
    // What is behind strips: addresses, before and after the loop; with rows first, and elsewhere, more. Four blocks of f32 take 6.1 ms for 1 000 matrices of order 512, three with tiles of twice the
    // columns, which spill nothing, 6.4 (an H100).
    allow("getrf_trailing", &["SCALAR=0"], 252),
    // Pieces of two heights, and of f64 four steps of L on their way: on an H200 these spill 92 bytes at most, with rows first 268, and take 0.94 (f64 of order 512; with two steps, which spill nothing,
    // 0.96) and 0.95 (c32) of the time of pieces of one height, which spilt nothing. What spills elsewhere, c64 without matrix instructions among it, was not measured.
    allow("getrf_trailing", &["SCALAR=1"], 148),
    allow("getrf_trailing", &["SCALAR=2"], 412),
    allow("getrf_trailing", &["SCALAR=3"], 180),
    // Their end on chip, as LU by windows below: 48 bytes at most on an H100.
    allow("getrf_finish", &["SCALAR=0"], 160),
    allow("getrf_finish", &["SCALAR=1"], 512),
    allow("getrf_finish", &["SCALAR=2"], 120),
    allow("getrf_finish", &["SCALAR=3"], 100),
    allow("getrf_finish", &["SCALAR=3", "ORDER=172"], 116),
    // On chip: as many blocks a multiprocessor as shared memory holds beat fewer that spill nothing, wherever both were measured on an H200 (batches of 10 000): LU of
    // f32 of order 32, 0.0419 ms with 80 registers, 0.0451 with 128. Rows first spill more.
    allow("getrf", &["SCALAR=0", "HELPERS=0"], 56),
    allow("getrf", &["SCALAR=1", "HELPERS=0"], 32),
    allow("getrf", &["SCALAR=2", "HELPERS=0"], 104),
    allow("getrf_getri", &["SCALAR=0", "HELPERS=0"], 116),
    allow("getrf_getri", &["SCALAR=1", "HELPERS=0"], 16),
    // Rows that are posted without a branch: what spills is less than what is saved, LU of f32 of order 64 0.237 ms before and 0.208 with them
    // (benches/record/nvidia-h200/2026-11-22/choices-panel.csv). With lanes in pairs, inverses of order 64 spill twenty bytes more on an H200 and take 1.3 % longer; of 80, 96 and 128, which spill
    // no more there, they take 0.5 to 1.4 % less (benches/record/nvidia-h200/2026-11-27/lanes-in-pairs.csv). What spills elsewhere was not measured.
    allow("getrf_getri", &["SCALAR=0", "HELPERS=1"], 52),
    allow("getrf_getri", &["SCALAR=0", "HELPERS=1", "ORDER=64"], 128),
    allow("getrf_getri", &["SCALAR=0", "HELPERS=2"], 68),
    allow("getrf_getri", &["SCALAR=0", "HELPERS=2", "ORDER=88"], 144),
    allow("getrf_getri", &["SCALAR=0", "HELPERS=3"], 20),
    allow("getrf_getri", &["SCALAR=0", "HELPERS=3", "ORDER=128"], 32),
    // More blocks and helpers than registers for them: LU of f32 of order 48, 0.125 ms for 10 000, 0.133 with blocks that spill nothing; inverse of f64 of order 80, 1.25 and 1.49
    // (benches/record/nvidia-h200/2026-11-24/choices-rows.csv and choices-rows-inverse.csv).
    allow("getrf", &["SCALAR=0", "HELPERS=1", "BLOCKS=16"], 200),
    allow("getrf", &["SCALAR=0", "HELPERS=2", "BLOCKS=6"], 20),
    allow("getrf", &["SCALAR=1", "HELPERS=2", "WINDOW=0"], 16),
    allow("getrf_getri", &["SCALAR=3", "HELPERS=1"], 80),
    // Panels of four columns, and as many blocks as shared memory holds: of order 40, 10 000 on an H200, LU of c64 0.273 ms with 128 registers, 0.278 with 168, which spill nothing; LU of
    // c32 0.166 with 80, 0.173 with 96. What spills elsewhere was not measured.
    allow("getrf", &["SCALAR=2", "NB=4", "HELPERS=1", "WINDOW=0"], 40),
    allow("getrf", &["SCALAR=2", "NB=4", "HELPERS=1", "WINDOW=0", "ORDER=40"], 64),
    allow("getrf", &["SCALAR=3", "NB=4", "HELPERS=1", "WINDOW=0"], 76),
    allow("getrf_getri", &["SCALAR=3", "NB=4", "HELPERS=1"], 128),
    // Sums in whole steps: of f64 of orders 80 and 88, on an H200, 0.5 to 1.6 % faster than by a ragged one, which spilled 16.
    allow("getrf_getri", &["SCALAR=1", "HELPERS=2"], 28),
    // Of f64 of order 48 for 10 000, 0.37 ms so, 0.41 with 144 registers and with 168, on an H200. On an A100 it spills twelve bytes, which was not measured.
    allow("getrf_getri", &["SCALAR=1", "HELPERS=1", "ORDER=48"], 24),
    // By windows: a thread has all the registers that there are, and one warp as many rows as the order has, then half as many. On an H100 and an H200 real ones spill 16 bytes at most, complex ones none.
    // Most spills where NVRTC is 12.9, or where there are no matrix instructions; what it costs there was not measured.
    allow("getrf", &["SCALAR=0", "WINDOW=32", "HELPERS=1"], 220),
    allow("getrf", &["SCALAR=0", "WINDOW=40", "HELPERS=1"], 32),
    allow("getrf", &["SCALAR=0", "WINDOW=48", "HELPERS=1"], 16),
    allow("getrf", &["SCALAR=0", "WINDOW=56", "HELPERS=1"], 16),
    allow("getrf", &["SCALAR=1", "WINDOW=24", "HELPERS=3"], 480),
    // Columns held in registers: f64 of order 256 spills 90 bytes so on an H200 and takes 0.91 of the time of wider windows on chip, which spill 8, c64 of order 80 16 and 0.93
    // (4 000 and 2 000 matrices in turns with the plans before, without a record). What spills elsewhere was not measured.
    allow("getrf", &["SCALAR=1", "WINDOW=16", "HELPERS=1"], 268),
    allow("getrf", &["SCALAR=1", "WINDOW=32", "HELPERS=1"], 80),
    allow("getrf", &["SCALAR=1", "WINDOW=16", "HELPERS=1", "ORDER=200"], 288),
    allow("getrf", &["SCALAR=1", "WINDOW=16", "HELPERS=1", "ORDER=232"], 348),
    allow("getrf", &["SCALAR=3", "NB=4", "WINDOW=16", "HELPERS=1"], 48),
    // Six blocks of c64 of orders 89 to 96 spill 64 bytes on an H200 and take 0.97 of the time of four, which spill nothing
    // (benches/record/nvidia-h200/2026-11-28/choices-lines.csv, order 96).
    allow("getrf", &["SCALAR=3", "NB=4", "WINDOW=16", "HELPERS=1", "ORDER=96"], 72),
    allow("getrf", &["SCALAR=1", "WINDOW=32", "HELPERS=3"], 476),
    allow("getrf", &["SCALAR=1", "WINDOW=40", "HELPERS=3"], 456),
    allow("getrf", &["SCALAR=1", "WINDOW=48", "HELPERS=3"], 32),
    allow("getrf", &["SCALAR=1", "WINDOW=56", "HELPERS=3"], 32),
    // Origins and exchanges in bytes leave more blocks or a larger L1, and elsewhere than on an H200, where these spill no more than before, take a register or two to be read; what it costs was not measured.
    allow("getrf", &["SCALAR=0", "HELPERS=1", "BLOCKS=16", "ORDER=40"], 204),
    allow("getrf", &["SCALAR=0", "HELPERS=2", "BLOCKS=6", "ORDER=88"], 32),
    allow("getrf", &["SCALAR=0", "WINDOW=40", "HELPERS=1", "ORDER=200"], 64),
    allow("getrf_finish", &["SCALAR=0", "ORDER=256"], 176),
    allow("getrf_getri", &["SCALAR=1", "HELPERS=0", "ORDER=40"], 28),
    // Inverses by windows, likewise: on an H200 and an H100 fewer blocks with more registers, of which there are most in benches/record/nvidia-h200/2026-11-27/choices-inverse.csv, were slower at these
    // orders. One kernel for eight orders spills more than that for one. Sweeps that ask no questions where the answer is known are text from end to end, of which the compiler loads more ahead than it has
    // registers for: those named by an order spill more so, and take on an H200 0.94 (c32 190), 0.96 (c32 352), 0.97 (f64 232) and 0.98 (c64 144) of the time that they took
    // (benches/record/nvidia-h200/2026-11-27/inverse-questions.csv and inverse-questions-second.csv). With lines discarded and fewer columns written f64 of 232 and c32 of 168 spill more, and take 1.00 and
    // 1.01 of it (benches/record/nvidia-h200/2026-11-27/inverse-discards.csv). What spills elsewhere was not measured.
    allow("getri_resident", &["SCALAR=0", "NB=16"], 312),
    allow("getri_resident", &["SCALAR=0", "NB=16", "ORDER=192"], 348),
    allow("getri_resident", &["SCALAR=0", "NB=32"], 284),
    allow("getri_resident", &["SCALAR=0", "NB=32", "ORDER=512"], 352),
    allow("getri_resident", &["SCALAR=1", "NB=16"], 32),
    allow("getri_resident", &["SCALAR=1", "NB=24"], 40),
    allow("getri_resident", &["SCALAR=1", "NB=24", "ORDER=232"], 76),
    allow("getri_resident", &["SCALAR=1", "NB=32"], 280),
    // Two rows a thread, on an H200 0.97 of the time of one at 136, where 8 bytes are read back with rows first, and 0.96 at 168, where none are
    // (benches/record/nvidia-h200/2026-11-29/choices-windows-inverse.csv). What spills elsewhere was not measured.
    allow("getri_resident", &["SCALAR=0", "NB=8", "ORDER=136"], 160),
    allow("getri_resident", &["SCALAR=0", "NB=8", "ORDER=168"], 40),
    // Windows of eight take 2.80 ms so, of sixteen, which spill more, 3.24 (benches/record/nvidia-h200/2026-11-27/choices-inverse-narrow.csv).
    allow("getri_resident", &["SCALAR=2", "NB=8", "ORDER=88"], 80),
    allow("getri_resident", &["SCALAR=2", "NB=16"], 120),
    allow("getri_resident", &["SCALAR=2", "NB=16", "ORDER=112"], 136),
    allow("getri_resident", &["SCALAR=2", "NB=16", "ORDER=168"], 136),
    allow("getri_resident", &["SCALAR=2", "NB=16", "ORDER=192"], 164),
    allow("getri_resident", &["SCALAR=2", "NB=16", "ORDER=352"], 176),
    allow("getri_resident", &["SCALAR=2", "NB=32"], 60),
    allow("getri_resident", &["SCALAR=2", "NB=32", "ORDER=232"], 148),
    allow("getri_resident", &["SCALAR=3", "NB=8"], 200),
    allow("getri_resident", &["SCALAR=3", "NB=16"], 280),
    allow("getri_resident", &["SCALAR=3", "NB=16", "ORDER=144"], 472),
    allow("getri_resident", &["SCALAR=3", "NB=24"], 340),
    // Solutions: the shares that were fastest on an H200, with 128 registers where shared memory holds more than one block: benches/record/nvidia-h200/2026-11-22/choices-solution.csv. c64 of order 64 spills most: 3.5 ms for
    // 10 000 and as many right-hand sides; with half as many a block, which spill less, it was 4.1 where this was 3.8. One panel: a right-hand side a lane, f32 of order 28 0.142 ms, 0.147 with
    // four at a time, which spill nothing; of 32 it is 0.215 and 0.190.
    allow("getrs_resident", &["SCALAR=0"], 60),
    allow("getrs_resident", &["SCALAR=1"], 44),
    // Without matrix instructions: eight rows of U of four columns take 64 registers. What it costs was not measured.
    allow("getrs_resident", &["SCALAR=1", "TENSOR=0"], 380),
    allow("getrs_resident", &["SCALAR=2", "BAND=0"], 92),
    allow("getrs_resident", &["SCALAR=3", "BAND=64"], 1012),
    allow("getrs_resident", &["SCALAR=3", "BAND=128"], 80),
    allow("gesv", &["SCALAR=0", "COLUMNS=0"], 216),
    allow("gesv", &["SCALAR=1", "COLUMNS=0"], 148),
    // Elements of U⁻¹ wait in registers beside the sums: on an H200, which spills at order 1024 alone, faster than summing where they lie. What spills elsewhere was not measured.
    allow("getri", &["SCALAR=0", "NB=8"], 116),
    allow("getri", &["SCALAR=0", "NB=16"], 124),
    allow("getri", &["SCALAR=1", "NB=8"], 8),
    allow("getri", &["SCALAR=2", "NB=8"], 72),
    allow("getri", &["SCALAR=3", "NB=4"], 60),
    // A register or two too many for as many blocks; what it costs was not measured.
    allow("trtri", &["SCALAR=2", "NB=8"], 16),
    allow("trtri", &["SCALAR=3", "NB=4"], 24),
];

/// Whether a kernel that spills is allowed to, and as much as it does.
pub(super) fn may_spill(row: &Row) -> bool {
    let resources = row.resources;
    ALLOWANCES.iter().any(|allowance| {
        allowance.entry == row.entry
            && allowance.constants.iter().all(|wanted| row.constants.split(' ').any(|there| there == *wanted))
            && resources.spill_stores.max(resources.spill_loads) <= allowance.bytes
    })
}
