//! One matrix a lane: as many matrices as a vector has lanes, element by element side by side.
//!
//! Element (i, j) of a group is vector `i + j n`. Each element takes the very steps that [`blocked`](crate::blocked) takes for it, in the same
//! order: the two give the same bits.

#![allow(missing_debug_implementations)] // Work is done, not printed.

mod getrf;
mod getri;
mod getrs;
mod group;
mod pack;
mod tile;

use batchla_core::{Complex, Scalar};

pub(crate) use self::getrf::Getrf;
pub(crate) use self::getri::Getri;
pub(crate) use self::getrs::Getrs;
pub(crate) use self::group::Group;
pub(crate) use self::group::Spoiled;
pub(crate) use self::pack::{Pack, Unpack};
use crate::simd::{InstructionSet, MOST_LANES, dispatch};

/// The routines, compiled for a scalar: here, once, and not wherever they are called from.
pub trait Interleaved: Scalar {
    /// Takes matrices over.
    fn pack(set: InstructionSet, work: Pack<'_, '_, Self>);
    /// Hands matrices over.
    fn unpack(set: InstructionSet, work: Unpack<'_, '_, Self>);
    /// Factors; gives the column of the first zero pivot of each lane.
    fn getrf(set: InstructionSet, work: Getrf<'_, Self>) -> [u32; MOST_LANES];
    /// Inverts.
    fn getri(set: InstructionSet, work: Getri<'_, Self>);
    /// Solves.
    fn getrs(set: InstructionSet, work: Getrs<'_, Self>);
    /// Tells lanes that are not finite.
    fn spoiled(set: InstructionSet, work: Spoiled<'_, Self>) -> u32;
}

macro_rules! interleaved {
    ($($scalar:ty)*) => { $(
        impl Interleaved for $scalar {
            fn pack(set: InstructionSet, work: Pack<'_, '_, Self>) {
                dispatch(set, work);
            }
            fn unpack(set: InstructionSet, work: Unpack<'_, '_, Self>) {
                dispatch(set, work);
            }
            fn getrf(set: InstructionSet, work: Getrf<'_, Self>) -> [u32; MOST_LANES] {
                dispatch(set, work)
            }
            fn getri(set: InstructionSet, work: Getri<'_, Self>) {
                dispatch(set, work);
            }
            fn getrs(set: InstructionSet, work: Getrs<'_, Self>) {
                dispatch(set, work);
            }
            fn spoiled(set: InstructionSet, work: Spoiled<'_, Self>) -> u32 {
                dispatch(set, work)
            }
        }
    )* };
}

interleaved!(f32 f64 Complex<f32> Complex<f64>);
