//! One matrix at a time, its columns in vectors: blocked routines without allocation, whose products are tiles in registers.
//!
//! Element (i, j) is lane `i % lanes` of vector `i / lanes + j ld`; the last vector of a column is padded. Each element takes the very steps
//! that [`interleaved`](crate::interleaved) takes for it, in the same order, whatever the tiles: the two give the same bits.

#![allow(missing_debug_implementations)] // Work is done, not printed.
#![allow(clippy::manual_memcpy)] // A copy of memory is a call, and its result no longer in registers.

mod getrf;
mod getri;
mod getrs;
mod laswp;
mod pack;
pub(crate) mod pairs;
mod panel;
mod rows;
mod tile;

use batchla_core::ScalarKind;

pub(crate) use self::getrf::BlockedGetrf;
pub(crate) use self::getri::BlockedGetri;
pub(crate) use self::getrs::{BlockedGetrs, Transposed};
pub(crate) use self::pack::{PackColumns, UnpackColumns};
pub(crate) use self::pairs::Pairs;

/// Columns of a panel, and the most of a tile.
pub(crate) const COLUMNS: usize = 8;

/// The distance of columns, in numbers: whole vectors, and an odd number of cache lines or vectors. Columns a power of two apart compete for
/// the same few places of the cache.
pub(crate) fn leading_dimension(order: usize, lanes: usize, scalar: ScalarKind) -> usize {
    let unit = (lanes * scalar.bytes()).max(64);
    let mut ld = order.max(1).checked_next_multiple_of(lanes).unwrap_or(usize::MAX);
    while ld < usize::MAX - lanes && ld.saturating_mul(scalar.bytes()) % (2 * unit) != unit {
        ld += lanes;
    }
    ld
}
