//! Vectors of the processor, behind one trait: code written once runs on AVX-512, AVX2 with FMA, and anything else.
//!
//! Every operation is one IEEE operation a lane, and [`Vector::mul_add`] is fused everywhere: the same steps give the same bits on every
//! instruction set, however many lanes its vectors have.

mod lanes;
mod portable;
mod stream;
#[cfg(target_arch = "x86_64")]
mod x86;

use std::fmt;

use batchla_core::{Real, Scalar};

pub(crate) use lanes::{Lanes, Simd};
pub(crate) use stream::Streams;

/// The most lanes that any vector has.
pub(crate) const MOST_LANES: usize = 16;

/// Vectors of a table that numbers are looked up in.
pub(crate) const TABLE: usize = 8;

/// A vector of real numbers.
pub trait Vector: Copy + Send + Sync + 'static {
    /// The number in each lane.
    type Real: SimdReal;
    /// A choice of lanes.
    type Mask: Copy;
    /// As many vectors as there are lanes.
    type Block: Copy + AsRef<[Self]> + AsMut<[Self]>;
    /// Lanes.
    const LANES: usize;
    /// Whether [`Vector::look_up`] is quick.
    const LOOKS_UP: bool;

    /// `x` in every lane.
    fn splat(x: Self::Real) -> Self;
    /// In each lane what `of` gives for it, which is asked lane by lane.
    fn from_lanes(of: impl Fn(usize) -> Self::Real) -> Self;
    /// The numbers at the start of a slice, which is long enough.
    fn load(from: &[Self::Real]) -> Self;
    /// The numbers of a slice that may be shorter; zero in lanes beyond it.
    fn load_part(from: &[Self::Real]) -> Self;
    /// The numbers at some places, one for each lane, of the first few vectors of a table.
    fn look_up(table: &[Self; TABLE], vectors: usize, places: &[u8]) -> Self;
    /// Puts the numbers at the start of a slice, which is long enough.
    fn store(self, to: &mut [Self::Real]);
    /// Puts as many numbers as a slice holds.
    fn store_part(self, to: &mut [Self::Real]);
    /// Asks for what lies at an address, whatever it is, to be brought near.
    #[inline(always)]
    fn prefetch(_place: *const Self::Real) {}
    /// Writes past the caches, where the processor can: other threads may not see it before a [`fence`](Self::fence).
    #[inline(always)]
    fn stream(self, to: &mut Self) {
        *to = self;
    }
    /// Ends writing past the caches.
    #[inline(always)]
    fn fence() {}
    /// Sum.
    fn add(self, other: Self) -> Self;
    /// Product.
    fn mul(self, other: Self) -> Self;
    /// Quotient.
    fn div(self, other: Self) -> Self;
    /// `self * factor + term`, rounded once.
    fn mul_add(self, factor: Self, term: Self) -> Self;
    /// `term - self * factor`, rounded once.
    fn minus_product(self, factor: Self, term: Self) -> Self;
    /// Absolute value.
    fn abs(self) -> Self;
    /// The larger number; the other's where this one is NaN.
    fn larger(self, other: Self) -> Self;
    /// The lanes that are above another's; never one with NaN.
    fn above(self, other: Self) -> Self::Mask;
    /// The lanes that equal another's.
    fn equals(self, other: Self) -> Self::Mask;
    /// Lanes of `yes` where chosen, else of `no`.
    fn select(mask: Self::Mask, yes: Self, no: Self) -> Self;
    /// The numbers, which count something, as integers at the start of a slice, which is long enough.
    fn store_counts(self, to: &mut [u32]);
    /// 0, 1, 2 and so on.
    fn counting() -> Self;
    /// The largest of numbers that are not negative, in every lane. Where one is NaN, whatever there is.
    fn largest(self) -> Self;
    /// One lane.
    #[inline(always)]
    fn lane_mask(lane: usize) -> Self::Mask {
        Self::mask(1 << lane)
    }
    /// The lanes after one.
    #[inline(always)]
    fn lanes_after(lane: usize) -> Self::Mask {
        Self::mask(!1 << lane)
    }
    /// The number of one lane, in every lane.
    fn spread(self, lane: usize) -> Self;
    /// The lanes that are chosen bit by bit.
    fn mask(bits: u32) -> Self::Mask;
    /// The chosen lanes, bit by bit.
    fn bits(mask: Self::Mask) -> u32;
    /// Whether every lane is chosen.
    #[inline(always)]
    fn all(mask: Self::Mask) -> bool {
        Self::bits(mask) == u32::MAX >> (32 - Self::LANES)
    }
    /// The lanes of two vectors in turn: the first half of the sequence and the second.
    fn zip(self, other: Self) -> (Self, Self);
    /// The even and the odd lanes of two vectors, one after the other; undoes [`Vector::zip`].
    fn unzip(self, other: Self) -> (Self, Self);
    /// A block of equal vectors.
    fn block(x: Self) -> Self::Block;
    /// Vector `i` takes lane `i` of every vector.
    fn transpose(block: Self::Block) -> Self::Block;

    /// Does work in a function of its own, compiled for the vector's instruction set.
    fn outline<L: Lanes<Vector = Self>, W: Work<L::Number>>(work: W) -> W::Output;

    /// Aligned memory as vectors.
    fn from_reals(reals: &[Self::Real]) -> &[Self];
    /// Aligned memory as vectors, to write.
    fn from_reals_mut(reals: &mut [Self::Real]) -> &mut [Self];
    /// Vectors as memory.
    fn as_reals(vectors: &[Self]) -> &[Self::Real];
    /// Vectors as memory, to write.
    fn as_reals_mut(vectors: &mut [Self]) -> &mut [Self::Real];
}

/// A real number and its vectors.
pub trait SimdReal: Real {
    /// Its vectors of 512 bits.
    #[cfg(target_arch = "x86_64")]
    type Avx512: Vector<Real = Self>;
    /// Its vectors of 256 bits.
    #[cfg(target_arch = "x86_64")]
    type Avx2: Vector<Real = Self>;
    /// Its vectors of 128 bits, as the compiler makes them.
    type Portable: Vector<Real = Self>;
}

/// What the processor's vectors are used through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum InstructionSet {
    /// Vectors of 128 bits in plain code: NEON, or whatever the compiler makes of it. Slow where there is no fused multiply-add.
    Portable,
    /// AVX2 with FMA.
    Avx2,
    /// AVX-512 (F, VL, DQ).
    Avx512,
}

impl InstructionSet {
    /// All, the narrowest first.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// The widest that this machine has.
    pub fn widest() -> Self {
        Self::ALL.into_iter().rev().find(|set| set.is_available()).unwrap_or(Self::Portable)
    }

    /// Whether this machine has it.
    pub fn is_available(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => {
                Self::Avx2.is_available()
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
            }
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// Lanes of its vectors of `R`.
    pub(crate) fn lanes<R: Real>(self) -> usize {
        let bytes = match self {
            Self::Portable => 16,
            Self::Avx2 => 32,
            Self::Avx512 => 64,
        };
        bytes / size_of::<R>()
    }
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        })
    }
}

/// Work that is compiled for every instruction set. `run` and all that it calls are `#[inline(always)]`, or they are compiled for the
/// smallest one.
///
/// The functions that it is compiled to are this trait's, for the compiler works on a type's functions where the type is: side by side with those of other modules.
pub trait Work<T: Scalar>: Sized {
    /// What it computes beside what it writes.
    type Output;

    /// Does the work on vectors of numbers.
    fn run<L: Lanes<Number = T>>(self) -> Self::Output;

    /// The same in a function of its own, compiled for AVX-512.
    ///
    /// # Safety
    /// The processor has what is named.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx2,fma,bmi1,bmi2")]
    #[inline(never)]
    unsafe fn run_with_avx512<L: Lanes<Number = T>>(self) -> Self::Output {
        self.run::<L>()
    }

    /// The same for AVX2.
    ///
    /// # Safety
    /// The processor has what is named.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,bmi1,bmi2")]
    #[inline(never)]
    unsafe fn run_with_avx2<L: Lanes<Number = T>>(self) -> Self::Output {
        self.run::<L>()
    }

    /// The same for whatever processor.
    #[inline(never)]
    fn run_in_plain_code<L: Lanes<Number = T>>(self) -> Self::Output {
        self.run::<L>()
    }
}

/// Does work in a function of its own: what is called in several places is compiled once, and what is compiled alone keeps its numbers in
/// registers.
#[inline(always)]
pub(crate) fn outline<L: Lanes, W: Work<L::Number>>(work: W) -> W::Output {
    L::Vector::outline::<L, W>(work)
}

/// Does work on an instruction set that this machine has.
pub(crate) fn dispatch<T: Simd, W: Work<T>>(set: InstructionSet, work: W) -> W::Output {
    match set {
        #[cfg(target_arch = "x86_64")]
        InstructionSet::Avx512 | InstructionSet::Avx2 => x86::run(set, work),
        _ => portable(work),
    }
}

/// Does work in plain code.
fn portable<T: Simd, W: Work<T>>(work: W) -> W::Output {
    work.run_in_plain_code::<T::Lanes<<T::Real as SimdReal>::Portable>>()
}
