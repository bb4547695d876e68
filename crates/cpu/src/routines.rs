//! The routines, compiled for every scalar and instruction set here, once, and not wherever they are called from.

use batchla_core::{Complex, Scalar, Transpose};
use faer::traits::ComplexField;

use crate::blocked::{
    BlockedGetrs, ExchangeRows, FactorPanel, InvertLower, InvertUpper, PackColumns, Pairs, SumLower, SumUpper,
    Transposed, UnpackColumns, Update,
};
use crate::interleaved::{Getri, Getrs, Pack, PackGetrf, Stretch, Unpack};
use crate::simd::{InstructionSet, Lanes, MOST_LANES, Vector, Work, dispatch};
use crate::{getrf, getri, getrs, vector};

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
    /// Hands matrices over, one a lane; tells lanes that are not finite.
    unpack(Unpack<'_, '_, Self>) -> u32;
    /// Takes matrices over and factors them, one a lane; gives the column of the first zero pivot of each.
    pack_getrf(PackGetrf<'_, '_, Self>) -> [u32; MOST_LANES];
    /// Inverts in every lane.
    getri(Getri<'_, Self>) -> ();
    /// Solves in every lane.
    getrs(Getrs<'_, Self>) -> ();
    /// Factors or inverts matrices one after another; gives how many.
    stretch(Stretch<'_, Self>) -> usize;
    /// Factors, and inverts, small matrices two at a time; gives how many.
    pairs(Pairs<'_, Self>) -> usize;
    /// Takes one matrix over.
    pack_columns(PackColumns<'_, '_, Self>) -> ();
    /// Hands one matrix over; tells whether it is not finite.
    unpack_columns(UnpackColumns<'_, '_, Self>) -> u32;
    /// Factors a panel of one matrix; gives the row of the first zero pivot.
    factor_panel(FactorPanel<'_, Self>) -> Option<usize>;
    /// Applies panels to columns on their right.
    update(Update<'_, Self>) -> ();
    /// Makes exchanges of rows.
    exchange_rows(ExchangeRows<'_, Self>) -> ();
    /// Sums what columns before contribute to columns of the upper triangle's inverse.
    sum_upper(SumUpper<'_, Self>) -> ();
    /// Inverts columns of the upper triangle.
    invert_upper(InvertUpper<'_, Self>) -> ();
    /// Sums what columns after contribute to columns of the inverse.
    sum_lower(SumLower<'_, Self>) -> ();
    /// Solves for columns of the inverse.
    invert_lower(InvertLower<'_, Self>) -> ();
    /// Solves with one matrix.
    blocked_getrs(BlockedGetrs<'_, Self>) -> ();
    /// Transposes one matrix.
    transposed(Transposed<'_, Self>) -> ();
    /// Tells lanes that are not finite.
    spoiled(Spoiled<'_, Self>) -> u32;
}

/// The same of the plan `faer`, on the widest vectors at hand.
macro_rules! recursive {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $of:ty),*) -> $output:ty, by $by:path;)*) => {
        /// The routines of a scalar that faer computes with.
        pub trait Recursive: ComplexField {
            $($(#[$doc])* fn $name($($argument: $of),*) -> $output;)*
        }
        recursive!(@all f32 { $($name($($argument: $of),*) -> $output, $by;)* });
        recursive!(@all f64 { $($name($($argument: $of),*) -> $output, $by;)* });
        recursive!(@all Complex<f32> { $($name($($argument: $of),*) -> $output, $by;)* });
        recursive!(@all Complex<f64> { $($name($($argument: $of),*) -> $output, $by;)* });
    };
    (@all $scalar:ty { $($name:ident($($argument:ident: $of:ty),*) -> $output:ty, $by:path;)* }) => {
        impl Recursive for $scalar {
            $(fn $name($($argument: $of),*) -> $output {
                $by($($argument),*)
            })*
        }
    };
}

recursive! {
    /// Factors; gives the column of the first zero pivot.
    factor_recursively(a: &mut [Self], ld: usize, pivots: &mut [u32]) -> Option<usize>, by getrf::getrf;
    /// Inverts from factors.
    invert_by_columns(lu: &[Self], x: &mut [Self], ld: usize, pivots: &[u32]) -> (), by getri::getri;
    /// The same by blocks.
    invert_by_blocks(lu: &[Self], x: &mut [Self], ld: usize, pivots: &[u32]) -> (), by getri::getri_by_blocks;
    /// Solves from factors.
    solve_by_columns(lu: &[Self], x: &mut [Self], ld: usize, pivots: &[u32], transpose: Transpose) -> (), by getrs::getrs;
    /// The same by blocks.
    solve_by_blocks(lu: &[Self], x: &mut [Self], ld: usize, pivots: &[u32], transpose: Transpose) -> (), by getrs::getrs_by_blocks;
    /// Whether all elements of whole chunks are finite.
    all_finite(column: &[Self]) -> bool, by vector::all_finite;
}

/// Which lanes hold something that is not finite: bit by bit.
#[derive(Debug)]
pub struct Spoiled<'a, T> {
    pub(crate) a: &'a [T],
    /// Places from a column to the next, a place being what a lane or a vector has at once, and how many of them are the column's: what is
    /// beyond may be left from other matrices.
    pub(crate) ld: usize,
    pub(crate) rows: usize,
}

impl<T: Scalar> Work<T> for Spoiled<'_, T> {
    type Output = u32;

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) -> u32 {
        let (mut sums, a) = (Sums::<L>::default(), L::from_numbers(self.a));
        if self.rows == self.ld {
            sums.add(L::as_vectors(a));
        } else {
            a.chunks_exact(self.ld).for_each(|column| sums.add(L::as_vectors(&column[..self.rows])));
        }
        sums.spoiled()
    }
}

/// Zero in every lane, made NaN by numbers that are not finite. Several side by side, so that none waits for the one before.
#[derive(Debug)]
pub(crate) struct Sums<L: Lanes>([L::Vector; 4]);

impl<L: Lanes> Default for Sums<L> {
    #[inline(always)]
    fn default() -> Self {
        Self([L::Vector::splat(num_traits::zero()); 4])
    }
}

impl<L: Lanes> Sums<L> {
    /// Looks at vectors.
    #[inline(always)]
    pub(crate) fn add(&mut self, vectors: &[L::Vector]) {
        let zero = L::Vector::splat(num_traits::zero());
        let (fours, rest) = vectors.as_chunks::<4>();
        for four in fours {
            for (sum, x) in self.0.iter_mut().zip(four) {
                *sum = x.mul_add(zero, *sum);
            }
        }
        for x in rest {
            self.0[0] = x.mul_add(zero, self.0[0]);
        }
    }

    /// The lanes that saw something that is not finite, bit by bit.
    #[inline(always)]
    pub(crate) fn spoiled(&self) -> u32 {
        let [a, b, c, d] = self.0;
        let sum = a.add(b).add(c.add(d));
        !L::Vector::bits(sum.equals(L::Vector::splat(num_traits::zero()))) & (u32::MAX >> (32 - L::COUNT))
    }
}

/// Whether all numbers are finite.
#[inline(always)]
pub(crate) fn finite<L: Lanes>(a: &[L]) -> bool {
    let mut sums = Sums::<L>::default();
    sums.add(L::as_vectors(a));
    sums.spoiled() == 0
}
