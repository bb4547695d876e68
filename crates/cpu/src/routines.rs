//! The routines, compiled for every scalar and instruction set here, once, and not wherever they are called from.

use batchla_core::{Complex, Scalar};

use crate::blocked::{BlockedGetrf, BlockedGetri, BlockedGetrs, PackColumns, Transposed, UnpackColumns};
use crate::interleaved::{Getrf, Getri, Getrs, Pack, Stretch, Unpack};
use crate::simd::{InstructionSet, Lanes, MOST_LANES, Vector, Work, dispatch};

macro_rules! routines {
    ($($(#[$doc:meta])* $name:ident($work:ty) -> $output:ty;)*) => {
        /// The routines of a scalar.
        pub trait Routines: Scalar {
            $($(#[$doc])* fn $name(set: InstructionSet, work: $work) -> $output;)*
        }
        routines!(@all f32 { $($name($work) -> $output;)* });
        routines!(@all f64 { $($name($work) -> $output;)* });
        routines!(@all Complex<f32> { $($name($work) -> $output;)* });
        routines!(@all Complex<f64> { $($name($work) -> $output;)* });
    };
    (@all $scalar:ty { $($name:ident($work:ty) -> $output:ty;)* }) => {
        impl Routines for $scalar {
            $(fn $name(set: InstructionSet, work: $work) -> $output {
                dispatch(set, work)
            })*
        }
    };
}

routines! {
    /// Takes matrices over, one a lane.
    pack(Pack<'_, '_, Self>) -> ();
    /// Hands matrices over, one a lane.
    unpack(Unpack<'_, '_, Self>) -> ();
    /// Factors in every lane; gives the column of the first zero pivot of each.
    getrf(Getrf<'_, Self>) -> [u32; MOST_LANES];
    /// Inverts in every lane.
    getri(Getri<'_, Self>) -> ();
    /// Solves in every lane.
    getrs(Getrs<'_, Self>) -> ();
    /// Factors or inverts matrices one after another; gives how many.
    stretch(Stretch<'_, Self>) -> usize;
    /// Takes one matrix over.
    pack_columns(PackColumns<'_, '_, Self>) -> ();
    /// Hands one matrix over.
    unpack_columns(UnpackColumns<'_, '_, Self>) -> ();
    /// Factors one matrix; gives the column of the first zero pivot.
    blocked_getrf(BlockedGetrf<'_, Self>) -> u32;
    /// Inverts one matrix.
    blocked_getri(BlockedGetri<'_, Self>) -> ();
    /// Solves with one matrix.
    blocked_getrs(BlockedGetrs<'_, Self>) -> ();
    /// Transposes one matrix.
    transposed(Transposed<'_, Self>) -> ();
    /// Tells lanes that are not finite.
    spoiled(Spoiled<'_, Self>) -> u32;
}

/// Which lanes hold something that is not finite: bit by bit.
#[derive(Debug)]
pub struct Spoiled<'a, T> {
    pub(crate) a: &'a [T],
}

impl<T: Scalar> Work<T> for Spoiled<'_, T> {
    type Output = u32;

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) -> u32 {
        let zero = L::Vector::splat(num_traits::zero());
        let mut sums = [zero; 4];
        let (fours, rest) = L::from_numbers(self.a).as_chunks::<4>();
        for four in fours {
            for (sum, x) in sums.iter_mut().zip(four) {
                *sum = x.spoil(*sum);
            }
        }
        for x in rest {
            sums[0] = x.spoil(sums[0]);
        }
        let sum = sums[0].add(sums[1]).add(sums[2]).add(sums[3]);
        let mut lanes = [num_traits::one(); MOST_LANES];
        sum.store(&mut lanes);
        (0..L::COUNT).filter(|&lane| lanes[lane] != num_traits::zero()).fold(0, |bits, lane| bits | 1 << lane)
    }
}
