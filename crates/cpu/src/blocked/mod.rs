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

/// The body for each number below another, upwards or down, as a constant: what is found by a variable lies in memory.
macro_rules! for_each_constant {
    ($of:ident, |$c:ident| $body:expr) => { for_each_constant!($of, |$c| $body, 0 1 2 3 4 5 6 7) };
    ($of:ident down, |$c:ident| $body:expr) => { for_each_constant!($of, |$c| $body, 7 6 5 4 3 2 1 0) };
    ($of:ident, |$c:ident| $body:expr, $($number:literal)*) => {
        $({
            const $c: usize = $number;
            if $c < $of {
                $body
            }
        })*
    };
}

mod getrf;
mod getri;
mod getrs;
mod laswp;
mod pack;
pub(crate) mod pairs;
mod panel;
mod tile;
mod trtri;

use batchla_core::ScalarKind;

pub(crate) use self::getrf::{Update, getrf};
pub(crate) use self::getri::{InvertLower, SumLower, columns_aside, getri};
pub(crate) use self::getrs::{BlockedGetrs, Transposed};
pub(crate) use self::laswp::ExchangeRows;
pub(crate) use self::pack::{PackColumns, UnpackColumns, columns_move};
pub(crate) use self::pairs::Pairs;
pub(crate) use self::panel::FactorPanel;
pub(crate) use self::trtri::{InvertUpper, SumUpper};

/// Columns of a panel, but where a vector has more numbers; and the most of a tile.
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
