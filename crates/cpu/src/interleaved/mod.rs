//! One matrix a lane: as many matrices as a vector has lanes, element by element side by side.
//!
//! Element (i, j) of a group is vector `i + j ld`. Each element takes the very steps that [`blocked`](crate::blocked) takes for it, in the same
//! order: the two give the same bits.

#![allow(missing_debug_implementations)] // Work is done, not printed.
#![allow(clippy::manual_memcpy)] // A copy of memory is a call, and its result no longer in registers.

mod choose;
mod exchanges;
mod getrf;
mod getri;
mod getrs;
mod next;
mod pack;
mod pivot;
mod rearranged;
mod stretch;
mod tile;
mod tiny;

pub(crate) use self::getri::Getri;
pub(crate) use self::getrs::Getrs;
pub(crate) use self::pack::{Pack, Unpack, columns_move};
pub(crate) use self::rearranged::PackGetrf;
pub(crate) use self::stretch::Stretch;

/// Columns to set aside for an inversion.
pub(crate) use self::tile::COLUMNS;

/// The distance of columns, in vectors. Columns a large power of two apart compete for the same few places of the cache.
pub(crate) fn leading_dimension(order: usize) -> usize {
    if order > 0 && order.is_multiple_of(32) { order + 1 } else { order }
}
