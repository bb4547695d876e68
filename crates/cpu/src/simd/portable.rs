//! Vectors as arrays: the compiler makes NEON or SSE of them.

use batchla_core::Real;
use num_traits::Float;

use super::{Lanes, SimdReal, TABLE, Vector, Work};

/// `N` numbers.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
pub struct Array<R, const N: usize>([R; N]);

impl<R: Real, const N: usize> Array<R, N> {
    #[inline(always)]
    fn map2(self, other: Self, f: impl Fn(R, R) -> R) -> Self {
        let mut result = self.0;
        for i in 0..N {
            result[i] = f(self.0[i], other.0[i]);
        }
        Self(result)
    }
}

impl<R: SimdReal, const N: usize> Vector for Array<R, N>
where
    [Self; N]: AsRef<[Self]> + AsMut<[Self]>,
{
    type Real = R;
    type Mask = [bool; N];
    type Block = [Self; N];
    const LANES: usize = N;
    const LOOKS_UP: bool = false;

    #[inline(always)]
    fn splat(x: R) -> Self {
        Self([x; N])
    }
    #[inline(always)]
    fn from_lanes(of: impl Fn(usize) -> R) -> Self {
        let mut result = [num_traits::zero(); N];
        for i in 0..N {
            result[i] = of(i);
        }
        Self(result)
    }
    #[inline(always)]
    fn load(from: &[R]) -> Self {
        let mut result = [num_traits::zero(); N];
        result.copy_from_slice(&from[..N]);
        Self(result)
    }
    #[inline(always)]
    fn load_part(from: &[R]) -> Self {
        let mut result = [num_traits::zero(); N];
        result[..from.len()].copy_from_slice(from);
        Self(result)
    }
    #[inline(always)]
    fn look_up(table: &[Self; TABLE], _vectors: usize, places: &[u8]) -> Self {
        let mut result = [num_traits::zero(); N];
        for (x, place) in result.iter_mut().zip(places) {
            *x = Self::as_reals(table)[*place as usize];
        }
        Self(result)
    }
    #[inline(always)]
    fn store(self, to: &mut [R]) {
        to[..N].copy_from_slice(&self.0);
    }
    #[inline(always)]
    fn store_part(self, to: &mut [R]) {
        to.copy_from_slice(&self.0[..to.len()]);
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.map2(other, |a, b| a + b)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.map2(other, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.map2(other, |a, b| a / b)
    }
    #[inline(always)]
    fn mul_add(self, factor: Self, term: Self) -> Self {
        let mut result = self.0;
        for i in 0..N {
            result[i] = Float::mul_add(self.0[i], factor.0[i], term.0[i]);
        }
        Self(result)
    }
    #[inline(always)]
    fn minus_product(self, factor: Self, term: Self) -> Self {
        let mut result = self.0;
        for i in 0..N {
            result[i] = Float::mul_add(-self.0[i], factor.0[i], term.0[i]);
        }
        Self(result)
    }
    #[inline(always)]
    fn abs(self) -> Self {
        self.map2(self, |a, _| Float::abs(a))
    }
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        self.map2(other, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn above(self, other: Self) -> [bool; N] {
        let mut mask = [false; N];
        for i in 0..N {
            mask[i] = self.0[i] > other.0[i];
        }
        mask
    }
    #[inline(always)]
    fn equals(self, other: Self) -> [bool; N] {
        let mut mask = [false; N];
        for i in 0..N {
            mask[i] = self.0[i] == other.0[i];
        }
        mask
    }
    #[inline(always)]
    fn select(mask: [bool; N], yes: Self, no: Self) -> Self {
        let mut result = no.0;
        for i in 0..N {
            result[i] = if mask[i] { yes.0[i] } else { no.0[i] };
        }
        Self(result)
    }
    #[inline(always)]
    fn store_counts(self, to: &mut [u32]) {
        for (to, x) in to[..N].iter_mut().zip(self.0) {
            *to = x.to_f64() as u32;
        }
    }
    #[inline(always)]
    fn counting() -> Self {
        let mut result = [num_traits::zero(); N];
        for i in 0..N {
            result[i] = R::from_f64(i as f64, 0.0);
        }
        Self(result)
    }
    #[inline(always)]
    fn largest(self) -> Self {
        let mut most = self.0[0];
        for i in 1..N {
            most = if self.0[i] > most { self.0[i] } else { most };
        }
        Self::splat(most)
    }
    #[inline(always)]
    fn spread(self, lane: usize) -> Self {
        Self::splat(self.0[lane % N])
    }
    #[inline(always)]
    fn mask(bits: u32) -> [bool; N] {
        let mut mask = [false; N];
        for i in 0..N {
            mask[i] = bits >> i & 1 == 1;
        }
        mask
    }
    #[inline(always)]
    fn bits(mask: [bool; N]) -> u32 {
        mask.into_iter().enumerate().fold(0, |bits, (lane, chosen)| bits | u32::from(chosen) << lane)
    }
    #[inline(always)]
    fn zip(self, other: Self) -> (Self, Self) {
        let (mut first, mut second) = (self.0, self.0);
        for i in 0..N {
            first[i] = if i % 2 == 0 { self.0[i / 2] } else { other.0[i / 2] };
            second[i] = if i % 2 == 0 { self.0[(N + i) / 2] } else { other.0[(N + i) / 2] };
        }
        (Self(first), Self(second))
    }
    #[inline(always)]
    fn unzip(self, other: Self) -> (Self, Self) {
        let (mut even, mut odd) = (self.0, self.0);
        for i in 0..N / 2 {
            (even[i], odd[i]) = (self.0[2 * i], self.0[2 * i + 1]);
            (even[N / 2 + i], odd[N / 2 + i]) = (other.0[2 * i], other.0[2 * i + 1]);
        }
        (Self(even), Self(odd))
    }
    #[inline(always)]
    fn block(x: Self) -> [Self; N] {
        [x; N]
    }
    #[inline(always)]
    fn transpose(block: [Self; N]) -> [Self; N] {
        let mut result = block;
        for i in 0..N {
            for k in 0..N {
                result[i].0[k] = block[k].0[i];
            }
        }
        result
    }
    #[inline(always)]
    fn outline<L: Lanes<Vector = Self>, W: Work<L::Number>>(work: W) -> W::Output {
        work.run_in_plain_code::<L>()
    }
    #[inline(always)]
    fn from_reals(reals: &[R]) -> &[Self] {
        // SAFETY: a vector is valid for whatever numbers there are, and of their layout.
        unsafe { reals.align_to().1 }
    }
    #[inline(always)]
    fn from_reals_mut(reals: &mut [R]) -> &mut [Self] {
        // SAFETY: an array of numbers is valid for whatever numbers there are, and of their layout.
        unsafe { reals.align_to_mut().1 }
    }
    #[inline(always)]
    fn as_reals(vectors: &[Self]) -> &[R] {
        // SAFETY: numbers, one after another, without gaps.
        unsafe { std::slice::from_raw_parts(vectors.as_ptr().cast(), vectors.len() * N) }
    }
    #[inline(always)]
    fn as_reals_mut(vectors: &mut [Self]) -> &mut [R] {
        // SAFETY: as above; whatever is written is a number.
        unsafe { std::slice::from_raw_parts_mut(vectors.as_mut_ptr().cast(), vectors.len() * N) }
    }
}

macro_rules! vectors {
    ($real:ty, $lanes:literal, $avx512:ident, $avx2:ident) => {
        impl SimdReal for $real {
            #[cfg(target_arch = "x86_64")]
            type Avx512 = super::x86::$avx512;
            #[cfg(target_arch = "x86_64")]
            type Avx2 = super::x86::$avx2;
            type Portable = Array<$real, $lanes>;
        }
    };
}

vectors!(f32, 4, F32x16, F32x8);
vectors!(f64, 2, F64x8, F64x4);
