//! Vectors of scalars: of real numbers as they are, of complex numbers as two planes.

use batchla_core::{Complex, Scalar};
use num_traits::{Float, One};

use super::{SimdReal, Vector};
use crate::scalar::{over, reciprocal};

/// A scalar, and its vectors on vectors of real numbers.
pub trait Simd: Scalar<Real: SimdReal> {
    /// As many of it as `V` has lanes.
    type Lanes<V: Vector<Real = Self::Real>>: Lanes<Number = Self, Vector = V>;
}

impl Simd for f32 {
    type Lanes<V: Vector<Real = f32>> = Plain<V>;
}
impl Simd for f64 {
    type Lanes<V: Vector<Real = f64>> = Plain<V>;
}
impl Simd for Complex<f32> {
    type Lanes<V: Vector<Real = f32>> = Planes<V>;
}
impl Simd for Complex<f64> {
    type Lanes<V: Vector<Real = f64>> = Planes<V>;
}

/// One scalar a lane.
pub trait Lanes: Copy + Send + Sync + 'static {
    /// The scalar.
    type Number: Simd<Real = <Self::Vector as Vector>::Real>;
    /// What its parts lie in.
    type Vector: Vector;
    /// Vectors that it is made of.
    const PARTS: usize;
    /// Lanes.
    const COUNT: usize = Self::Vector::LANES;

    /// `x` in every lane.
    fn splat(x: Self::Number) -> Self;
    /// Sum.
    fn plus(self, other: Self) -> Self;
    /// Product: of complex numbers by two fused multiply-adds.
    fn times(self, other: Self) -> Self;
    /// `self - l u`: two steps a part of complex numbers, `l.re u` first, every product fused with the difference.
    fn minus_product(self, l: Self, u: Self) -> Self;
    /// Quotient: of complex numbers by the reciprocal, where that keeps clear of overflow and underflow.
    fn over(self, divisor: Self) -> Self;
    /// `1 / x`, where [`Lanes::is_moderate`].
    fn reciprocal(self) -> Self;
    /// Whether [`Lanes::reciprocal`] may be used in every lane.
    fn is_moderate(self) -> bool;
    /// Whether a number of some [`size`](Lanes::size) has a reciprocal that neither overflows nor loses digits.
    fn has_reciprocal(size: <Self::Vector as Vector>::Real) -> bool;
    /// [`Lanes::reciprocal`] of a number that is in every lane, whose size is given: of a real one, it is there before the number is.
    fn reciprocal_of_size(self, size: <Self::Vector as Vector>::Real) -> Self;
    /// `|re| + |im|`.
    fn size(self) -> Self::Vector;
    /// Lanes of `yes` where chosen, else of `no`.
    fn select(mask: <Self::Vector as Vector>::Mask, yes: Self, no: Self) -> Self;
    /// Complex conjugate.
    fn conj(self) -> Self;
    /// The scalar of one lane, in every lane.
    fn spread(self, lane: usize) -> Self;

    /// Aligned memory as vectors of scalars.
    fn from_numbers(numbers: &[Self::Number]) -> &[Self];
    /// Aligned memory as vectors of scalars, to write.
    fn from_numbers_mut(numbers: &mut [Self::Number]) -> &mut [Self];
    /// As vectors of real numbers.
    fn as_vectors(all: &[Self]) -> &[Self::Vector];
    /// As vectors of real numbers, to write.
    fn as_vectors_mut(all: &mut [Self]) -> &mut [Self::Vector];

    /// `1 / x`, whatever it is: in every lane the bits of [`Lanes::reciprocal`] where that may be used in it.
    #[inline(always)]
    fn any_reciprocal(self) -> Self {
        if self.is_moderate() { self.reciprocal() } else { reciprocal_lane_by_lane(self) }
    }

    /// The scalar with these parts in every lane; the second counts for complex numbers only.
    fn spread_parts(re: <Self::Vector as Vector>::Real, im: <Self::Vector as Vector>::Real) -> Self;
    /// Numbers from memory, as many as there are; zero in lanes beyond.
    fn from_memory(parts: &[<Self::Vector as Vector>::Real]) -> Self;
    /// Numbers to memory, as many as it holds.
    fn to_memory(self, parts: &mut [<Self::Vector as Vector>::Real]);
    /// Numbers as the real numbers that they consist of.
    fn reals(numbers: &[Self::Number]) -> &[<Self::Vector as Vector>::Real];
    /// The same, to write.
    fn reals_mut(numbers: &mut [Self::Number]) -> &mut [<Self::Vector as Vector>::Real];

    /// A count, in every lane of a vector of real numbers.
    #[inline(always)]
    fn count(count: usize) -> Self::Vector {
        Self::Vector::splat(<Self::Number as Scalar>::Real::from_f64(count as f64, 0.0))
    }

    /// Zero in every lane.
    #[inline(always)]
    fn zero() -> Self {
        Self::splat(num_traits::zero())
    }

    /// One lane of one vector.
    #[inline(always)]
    fn lane(all: &[Self], at: usize, lane: usize) -> Self::Number {
        let reals = Self::Vector::as_reals(Self::as_vectors(std::slice::from_ref(&all[at])));
        let imaginary = if Self::PARTS == 2 { reals[Self::COUNT + lane] } else { num_traits::zero() };
        Self::Number::from_parts(reals[lane], imaginary)
    }

    /// Writes one lane of one vector.
    #[inline(always)]
    fn set_lane(all: &mut [Self], at: usize, lane: usize, x: Self::Number) {
        let reals = Self::Vector::as_reals_mut(Self::as_vectors_mut(std::slice::from_mut(&mut all[at])));
        reals[lane] = x.re();
        if Self::PARTS == 2 {
            reals[Self::COUNT + lane] = x.im();
        }
    }
}

#[cold]
#[inline(never)]
fn reciprocal_lane_by_lane<L: Lanes>(mut x: L) -> L {
    for lane in 0..L::COUNT {
        let reciprocal = reciprocal(L::lane(&[x], 0, lane));
        L::set_lane(std::slice::from_mut(&mut x), 0, lane, reciprocal);
    }
    x
}

#[cold]
#[inline(never)]
fn over_lane_by_lane<L: Lanes>(x: L, divisor: L) -> L {
    let mut quotients = x;
    for lane in 0..L::COUNT {
        let (x, d) = (L::lane(&[x], 0, lane), L::lane(&[divisor], 0, lane));
        L::set_lane(std::slice::from_mut(&mut quotients), 0, lane, over(x, d));
    }
    quotients
}

/// Real numbers.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Plain<V>(V);

impl<V: Vector> Lanes for Plain<V>
where
    V::Real: Simd<Real = V::Real>,
{
    type Number = V::Real;
    type Vector = V;
    const PARTS: usize = 1;

    #[inline(always)]
    fn splat(x: V::Real) -> Self {
        Self(V::splat(x))
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self(self.0.add(other.0))
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        Self(self.0.mul(other.0))
    }
    #[inline(always)]
    fn minus_product(self, l: Self, u: Self) -> Self {
        Self(l.0.minus_product(u.0, self.0))
    }
    #[inline(always)]
    fn over(self, divisor: Self) -> Self {
        Self(self.0.div(divisor.0))
    }
    #[inline(always)]
    fn reciprocal(self) -> Self {
        Self(V::splat(num_traits::one()).div(self.0))
    }
    #[inline(always)]
    fn is_moderate(self) -> bool {
        let least = V::splat(Float::min_positive_value());
        // The least size itself has a finite reciprocal, but is rare enough to be left to the slow way.
        V::all(self.0.abs().above(least))
    }
    #[inline(always)]
    fn has_reciprocal(size: V::Real) -> bool {
        size >= V::Real::SAFE_MINIMUM && size <= V::Real::max_value()
    }
    #[inline(always)]
    fn reciprocal_of_size(self, size: V::Real) -> Self {
        Self(V::splat(size.recip().copysign(V::as_reals(&[self.0])[0])))
    }
    #[inline(always)]
    fn size(self) -> V {
        self.0.abs()
    }
    #[inline(always)]
    fn select(mask: V::Mask, yes: Self, no: Self) -> Self {
        Self(V::select(mask, yes.0, no.0))
    }
    #[inline(always)]
    fn conj(self) -> Self {
        self
    }
    #[inline(always)]
    fn spread(self, lane: usize) -> Self {
        Self(self.0.spread(lane))
    }
    #[inline(always)]
    fn spread_parts(re: V::Real, _im: V::Real) -> Self {
        Self(V::splat(re))
    }
    #[inline(always)]
    fn from_memory(parts: &[V::Real]) -> Self {
        Self(if parts.len() == V::LANES { V::load(parts) } else { V::load_part(parts) })
    }
    #[inline(always)]
    fn to_memory(self, parts: &mut [V::Real]) {
        if parts.len() == V::LANES { self.0.store(parts) } else { self.0.store_part(parts) }
    }
    #[inline(always)]
    fn reals(numbers: &[V::Real]) -> &[V::Real] {
        numbers
    }
    #[inline(always)]
    fn reals_mut(numbers: &mut [V::Real]) -> &mut [V::Real] {
        numbers
    }
    #[inline(always)]
    fn from_numbers(numbers: &[V::Real]) -> &[Self] {
        let vectors = V::from_reals(numbers);
        // SAFETY: `repr(transparent)`.
        unsafe { std::slice::from_raw_parts(vectors.as_ptr().cast(), vectors.len()) }
    }
    #[inline(always)]
    fn from_numbers_mut(numbers: &mut [V::Real]) -> &mut [Self] {
        let vectors = V::from_reals_mut(numbers);
        // SAFETY: `repr(transparent)`.
        unsafe { std::slice::from_raw_parts_mut(vectors.as_mut_ptr().cast(), vectors.len()) }
    }
    #[inline(always)]
    fn as_vectors(all: &[Self]) -> &[V] {
        // SAFETY: `repr(transparent)`.
        unsafe { std::slice::from_raw_parts(all.as_ptr().cast(), all.len()) }
    }
    #[inline(always)]
    fn as_vectors_mut(all: &mut [Self]) -> &mut [V] {
        // SAFETY: `repr(transparent)`.
        unsafe { std::slice::from_raw_parts_mut(all.as_mut_ptr().cast(), all.len()) }
    }
}

/// Complex numbers: all real parts, then all imaginary parts.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Planes<V> {
    re: V,
    im: V,
}

impl<V: Vector> Lanes for Planes<V>
where
    V::Real: SimdReal,
    Complex<V::Real>: Simd<Real = V::Real>,
{
    type Number = Complex<V::Real>;
    type Vector = V;
    const PARTS: usize = 2;

    #[inline(always)]
    fn splat(x: Complex<V::Real>) -> Self {
        Self { re: V::splat(x.re), im: V::splat(x.im) }
    }
    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        Self { re: self.re.add(other.re), im: self.im.add(other.im) }
    }
    #[inline(always)]
    fn times(self, other: Self) -> Self {
        let (re, im) = (self.re.mul(other.re), self.im.mul(other.re));
        Self { re: self.im.minus_product(other.im, re), im: self.re.mul_add(other.im, im) }
    }
    #[inline(always)]
    fn minus_product(self, l: Self, u: Self) -> Self {
        let (re, im) = (l.re.minus_product(u.re, self.re), l.im.minus_product(u.re, self.im));
        Self { re: l.im.mul_add(u.im, re), im: l.re.minus_product(u.im, im) }
    }
    #[inline(always)]
    fn over(self, divisor: Self) -> Self {
        if divisor.is_moderate() { self.times(divisor.reciprocal()) } else { over_lane_by_lane(self, divisor) }
    }
    #[inline(always)]
    fn reciprocal(self) -> Self {
        let square = self.im.mul_add(self.im, self.re.mul(self.re));
        let scale = V::splat(num_traits::one()).div(square);
        Self { re: self.re.mul(scale), im: self.im.mul(V::splat(-<V::Real as One>::one())).mul(scale) }
    }
    #[inline(always)]
    fn is_moderate(self) -> bool {
        let least = <V::Real as Float>::min_positive_value().sqrt();
        let size = self.size();
        V::all(size.above(V::splat(least))) && V::all(V::splat(least.recip()).above(size))
    }
    #[inline(always)]
    fn has_reciprocal(size: V::Real) -> bool {
        let least = <V::Real as Float>::min_positive_value().sqrt();
        size > least && size < least.recip()
    }
    #[inline(always)]
    fn reciprocal_of_size(self, _size: V::Real) -> Self {
        self.reciprocal()
    }
    #[inline(always)]
    fn size(self) -> V {
        self.re.abs().add(self.im.abs())
    }
    #[inline(always)]
    fn select(mask: V::Mask, yes: Self, no: Self) -> Self {
        Self { re: V::select(mask, yes.re, no.re), im: V::select(mask, yes.im, no.im) }
    }
    #[inline(always)]
    fn conj(self) -> Self {
        Self { re: self.re, im: self.im.mul(V::splat(-<V::Real as One>::one())) }
    }
    #[inline(always)]
    fn spread(self, lane: usize) -> Self {
        Self { re: self.re.spread(lane), im: self.im.spread(lane) }
    }
    #[inline(always)]
    fn spread_parts(re: V::Real, im: V::Real) -> Self {
        Self { re: V::splat(re), im: V::splat(im) }
    }
    #[inline(always)]
    fn from_memory(parts: &[V::Real]) -> Self {
        let (first, second) = if parts.len() == 2 * V::LANES {
            (V::load(parts), V::load(&parts[V::LANES..]))
        } else {
            let (first, second) = parts.split_at(parts.len().min(V::LANES));
            (V::load_part(first), V::load_part(second))
        };
        let (re, im) = first.unzip(second);
        Self { re, im }
    }
    #[inline(always)]
    fn to_memory(self, parts: &mut [V::Real]) {
        let (first, second) = self.re.zip(self.im);
        if parts.len() == 2 * V::LANES {
            first.store(parts);
            second.store(&mut parts[V::LANES..]);
        } else {
            let (one, other) = parts.split_at_mut(parts.len().min(V::LANES));
            first.store_part(one);
            second.store_part(other);
        }
    }
    #[inline(always)]
    fn reals(numbers: &[Complex<V::Real>]) -> &[V::Real] {
        // SAFETY: a complex number is two real ones, `repr(C)`.
        unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), 2 * numbers.len()) }
    }
    #[inline(always)]
    fn reals_mut(numbers: &mut [Complex<V::Real>]) -> &mut [V::Real] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), 2 * numbers.len()) }
    }
    #[inline(always)]
    fn from_numbers(numbers: &[Complex<V::Real>]) -> &[Self] {
        let vectors = V::from_reals(Self::reals(numbers));
        // SAFETY: two vectors one after another, `repr(C)`.
        unsafe { std::slice::from_raw_parts(vectors.as_ptr().cast(), vectors.len() / 2) }
    }
    #[inline(always)]
    fn from_numbers_mut(numbers: &mut [Complex<V::Real>]) -> &mut [Self] {
        let vectors = V::from_reals_mut(Self::reals_mut(numbers));
        // SAFETY: two vectors one after another, `repr(C)`.
        unsafe { std::slice::from_raw_parts_mut(vectors.as_mut_ptr().cast(), vectors.len() / 2) }
    }
    #[inline(always)]
    fn as_vectors(all: &[Self]) -> &[V] {
        // SAFETY: two vectors one after another, `repr(C)`.
        unsafe { std::slice::from_raw_parts(all.as_ptr().cast(), 2 * all.len()) }
    }
    #[inline(always)]
    fn as_vectors_mut(all: &mut [Self]) -> &mut [V] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(all.as_mut_ptr().cast(), 2 * all.len()) }
    }
}
