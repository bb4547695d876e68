//! One matrix at a time, its columns in vectors: blocked routines without allocation, whose products are tiles in registers.
//!
//! Element (i, j) is lane `i % lanes` of vector `i / lanes + j ld`; the last vector of a column is padded. Each element takes the very steps
//! that [`interleaved`](crate::interleaved) takes for it, in the same order, whatever the tiles: the two give the same bits.

#![allow(missing_debug_implementations)] // Work is done, not printed.
#![allow(clippy::manual_memcpy)] // A copy of memory is a call, and its result no longer in registers.

/// The work with tiles of as many columns as there are registers for.
macro_rules! with_tiles {
    ($lanes:ident, $work:ident($($argument:expr),*)) => {
        if $lanes::PARTS == 1 && size_of::<$lanes>() == 64 {
            $work::<$lanes, { $crate::blocked::COLUMNS }>($($argument),*);
        } else {
            $work::<$lanes, 4>($($argument),*);
        }
    };
}

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

pub(crate) use self::getrf::{Update, getrf};
pub(crate) use self::getri::{InvertLower, InvertUpper, SumLower, SumUpper, columns_aside, getri};
pub(crate) use self::getrs::{BlockedGetrs, Transposed};
pub(crate) use self::laswp::ExchangeRows;
pub(crate) use self::pack::{PackColumns, UnpackColumns, columns_move};
pub(crate) use self::pairs::Pairs;
pub(crate) use self::panel::FactorPanel;

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
