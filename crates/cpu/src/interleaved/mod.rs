//! One matrix a lane: as many matrices as a vector has lanes, element by element side by side.
//!
//! Element (i, j) of a group is vector `i + j n`. Each element takes the very steps that [`blocked`](crate::blocked) takes for it, in the same
//! order: the two give the same bits.

mod getrf;
mod getri;
mod getrs;
mod group;
mod pack;
mod tile;

pub(crate) use group::{Group, Spoiled};
pub(crate) use getrf::Getrf;
pub(crate) use getri::Getri;
pub(crate) use getrs::Getrs;
pub(crate) use pack::{Pack, Unpack};
