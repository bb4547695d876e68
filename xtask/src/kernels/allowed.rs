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
    allow("getrf", &["SCALAR=0", "NB=16", "ROWS=2"], 128),
    allow("getrf", &["SCALAR=0", "NB=8", "ROWS=1"], 12),
    allow("getrf", &["SCALAR=1", "NB=8", "ROWS=1"], 60),
    allow("getrf", &["SCALAR=1", "NB=12", "ROWS=1"], 100),
    allow("getrf", &["SCALAR=1", "NB=16", "ROWS=1"], 72),
    allow("getrf", &["SCALAR=1", "NB=12", "ROWS=2"], 224),
    allow("getrf", &["SCALAR=2", "NB=8", "ROWS=1"], 88),
    allow("getrf", &["SCALAR=2", "NB=12", "ROWS=1"], 28),
    allow("getrf", &["SCALAR=2", "NB=16", "ROWS=1"], 20),
    allow("getrf", &["SCALAR=3", "NB=8", "ROWS=1"], 132),
    allow("getrf", &["SCALAR=3", "NB=12", "ROWS=1"], 44),
    allow("getrf", &["SCALAR=3", "NB=4", "ROWS=1"], 8),
    // Order 1024, in blocks of 512 threads; not measured against another.
    allow("getrf", &["SCALAR=2", "NB=12", "ROWS=2"], 204),
    allow("getrf", &["SCALAR=3", "NB=4", "ROWS=2"], 48),
    // On chip: f64 of order 16, inverse, 100 000, 0.39 so and 0.43 with a block more; of order 48, 10 000, 0.68 and 0.79; f32 of order 16, 0.29 and 0.32 without spills;
    // LU of f64 of order 32, 10 000, 0.104 both ways.
    allow("getrf", &["SCALAR=0", "NB=4", "ROWS=1"], 12),
    allow("getrf", &["SCALAR=0", "NB=8", "ROWS=1", "TEAMS=4"], 48),
    allow("getrf", &["SCALAR=0", "NB=8", "ROWS=1", "TEAMS=2"], 48),
    allow("getrf", &["SCALAR=0", "NB=8", "ROWS=2"], 24),
    allow("getrf", &["SCALAR=1", "NB=8", "ROWS=1", "TEAMS=2"], 76),
    allow("getrf", &["SCALAR=1", "NB=8", "ROWS=1", "TEAMS=4"], 76),
    allow("getrf_getri", &["SCALAR=0", "NB=4", "ROWS=1"], 12),
    allow("getrf_getri", &["SCALAR=0", "NB=8", "ROWS=1"], 164),
    allow("getrf_getri", &["SCALAR=0", "NB=8", "ROWS=2"], 104),
    allow("getrf_getri", &["SCALAR=1", "NB=4", "ROWS=1"], 4),
    allow("getrf_getri", &["SCALAR=1", "NB=8", "ROWS=1"], 92),
    allow("getrf_getri", &["SCALAR=1", "NB=8", "ROWS=2"], 104),
    allow("getrf_getri", &["SCALAR=2", "NB=4", "ROWS=1"], 4),
    allow("getrf_getri", &["SCALAR=3", "NB=4", "ROWS=1"], 24),
    // A register or two too many for as many blocks; what it costs was not measured.
    allow("getri", &["SCALAR=1", "NB=8"], 16),
    allow("getri", &["SCALAR=2", "NB=8"], 16),
    allow("trtri", &["SCALAR=1", "NB=8"], 16),
    allow("trtri", &["SCALAR=2", "NB=8"], 16),
    allow("trtri", &["SCALAR=3", "NB=4"], 16),
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
