//! The planner's own kernels that may spill registers, each with its reason.

use super::record::Row;

/// Bytes a thread that a kernel with these constants may store to and load from local memory.
struct Allowance {
    entry: &'static str,
    /// All of these must be among the kernel's constants.
    constants: &'static [&'static str],
    bytes: u32,
}

/// None so far.
const fn allow(entry: &'static str, constants: &'static [&'static str], bytes: u32) -> Allowance {
    Allowance { entry, constants, bytes }
}

const ALLOWANCES: &[Allowance] = &[
    // Two blocks a multiprocessor that spill a little were faster on an H200 than one that does not: 12.8 against 15.8 ms for 1 000 of order 512.
    allow("getrf", &["SCALAR=0", "NB=16", "ROWS=2", "AHEAD=4"], 128),
    // The same for two rows a thread at order 512: 21.5 ms, against 29.1 with a panel of 16 and one block (f64); 25.2 against 40.2 with one block (c32).
    allow("getrf", &["SCALAR=1", "NB=8", "ROWS=2"], 64),
    allow("getrf", &["SCALAR=2", "NB=8", "ROWS=2"], 128),
    // At order 128 a spill with three blocks measured 10.0 ms for 10 000; a panel of 4 columns without any, 15.2.
    allow("getrf", &["SCALAR=3", "NB=8", "ROWS=1"], 32),
    // Order 1024 alone, in blocks of 512 threads; not measured against another.
    allow("getrf", &["SCALAR=3", "NB=4", "ROWS=2"], 48),
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
