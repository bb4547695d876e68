//! The four number types: `f32`, `f64`, `Complex<f32>`, `Complex<f64>`.

use std::fmt;
use std::iter::Sum;
use std::ops::Neg;

use num_complex::Complex;
use num_traits::{Float, NumAssign, Zero};

use crate::host::{HostBackend, HostOperations};
use crate::memory::Element;

/// Which of the four number types, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ScalarKind {
    /// `f32`, LAPACK's `s`.
    F32,
    /// `f64`, LAPACK's `d`.
    F64,
    /// `Complex<f32>`, LAPACK's `c`.
    C32,
    /// `Complex<f64>`, LAPACK's `z`.
    C64,
}

impl ScalarKind {
    /// All four, in LAPACK's order s, d, c, z.
    pub const ALL: [Self; 4] = [Self::F32, Self::F64, Self::C32, Self::C64];

    /// The name in lower case: `f32`, `f64`, `c32`, `c64` (the width is that of one real number).
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::C32 => "c32",
            Self::C64 => "c64",
        }
    }

    /// LAPACK's letter: `s`, `d`, `c`, `z`.
    pub fn letter(self) -> char {
        match self {
            Self::F32 => 's',
            Self::F64 => 'd',
            Self::C32 => 'c',
            Self::C64 => 'z',
        }
    }

    /// Bytes of one element: 4, 8, 8, 16.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F64 | Self::C32 => 8,
            Self::C64 => 16,
        }
    }
}

impl fmt::Display for ScalarKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A number that matrices are made of. Sealed: `f32`, `f64` and their complex numbers.
///
/// `num_traits` gives the arithmetic; this trait adds what numerical code over both real and complex
/// numbers needs. Ordinary division of complex numbers overflows early; [`Scalar::divide`] does not.
pub trait Scalar: Element + NumAssign + Neg<Output = Self> + Sum + fmt::Display + sealed::Dispatch {
    /// The real numbers of the same precision.
    type Real: Real;
    /// This type as a value.
    const KIND: ScalarKind;
    /// Whether there is an imaginary part.
    const IS_COMPLEX: bool;
    /// The spacing of numbers at one (2⁻²³, 2⁻⁵²), as [`f64::EPSILON`].
    const EPSILON: Self::Real;
    /// ε of the residual ratios: half of [`Scalar::EPSILON`], what LAPACK's `xLAMCH('E')` gives (2⁻²⁴, 2⁻⁵³).
    const UNIT_ROUNDOFF: Self::Real;
    /// The smallest positive number whose reciprocal does not overflow; LAPACK's `sfmin`.
    const SAFE_MINIMUM: Self::Real;

    /// `re + i im`; the imaginary part of a real type is dropped.
    fn from_parts(re: Self::Real, im: Self::Real) -> Self;
    /// The nearest number of this type to `re + i im`.
    fn from_f64(re: f64, im: f64) -> Self;
    /// The real part.
    fn re(self) -> Self::Real;
    /// The imaginary part; zero for a real type.
    fn im(self) -> Self::Real;
    /// Complex conjugate.
    fn conj(self) -> Self;
    /// `|re| + |im|`: the size by which a pivot is chosen, LAPACK's `cabs1`.
    fn abs1(self) -> Self::Real;
    /// `|x|`, without spurious overflow.
    fn modulus(self) -> Self::Real;
    /// Whether no part is NaN or infinite.
    fn finite(self) -> bool;
    /// All parts NaN.
    fn nan() -> Self;
    /// `self / divisor`, accurate wherever the quotient can be represented: complex division neither
    /// overflows nor underflows on the way (Baudin and Smith 2012, after scaling by powers of two).
    fn divide(self, divisor: Self) -> Self;

    /// A real number as this type.
    fn from_real(re: Self::Real) -> Self {
        Self::from_parts(re, num_traits::zero())
    }

    /// `self * factor` for a real factor.
    fn scale(self, factor: Self::Real) -> Self {
        Self::from_parts(self.re() * factor, self.im() * factor)
    }
}

/// A real [`Scalar`] with all of `num_traits::Float`.
pub trait Real: Scalar<Real = Self> + Float {
    /// The nearest `f64`.
    fn to_f64(self) -> f64;
}

pub(crate) mod sealed {
    use super::*;

    /// Seals [`Scalar`] and finds the host operations of a type behind a trait object.
    pub trait Dispatch: Sized {
        #[doc(hidden)]
        fn host_operations(backend: &dyn HostBackend) -> &dyn HostOperations<Self>
        where
            Self: Scalar;
    }
}

macro_rules! real_scalar {
    ($real:ty, $kind:ident) => {
        impl sealed::Dispatch for $real {
            fn host_operations(backend: &dyn HostBackend) -> &dyn HostOperations<Self> {
                backend
            }
        }

        impl Real for $real {
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
        }

        impl Scalar for $real {
            type Real = Self;
            const KIND: ScalarKind = ScalarKind::$kind;
            const IS_COMPLEX: bool = false;
            const EPSILON: Self = <$real>::EPSILON;
            const UNIT_ROUNDOFF: Self = <$real>::EPSILON / 2.0;
            const SAFE_MINIMUM: Self = <$real>::MIN_POSITIVE;

            fn from_parts(re: Self, _im: Self) -> Self {
                re
            }
            fn from_f64(re: f64, _im: f64) -> Self {
                re as $real
            }
            fn re(self) -> Self {
                self
            }
            fn im(self) -> Self {
                0.0
            }
            fn conj(self) -> Self {
                self
            }
            fn abs1(self) -> Self {
                <$real>::abs(self)
            }
            fn modulus(self) -> Self {
                <$real>::abs(self)
            }
            fn finite(self) -> bool {
                <$real>::is_finite(self)
            }
            fn nan() -> Self {
                <$real>::NAN
            }
            fn divide(self, divisor: Self) -> Self {
                self / divisor
            }
        }
    };
}

macro_rules! complex_scalar {
    ($real:ty, $kind:ident) => {
        impl sealed::Dispatch for Complex<$real> {
            fn host_operations(backend: &dyn HostBackend) -> &dyn HostOperations<Self> {
                backend
            }
        }

        impl Scalar for Complex<$real> {
            type Real = $real;
            const KIND: ScalarKind = ScalarKind::$kind;
            const IS_COMPLEX: bool = true;
            const EPSILON: $real = <$real>::EPSILON;
            const UNIT_ROUNDOFF: $real = <$real>::EPSILON / 2.0;
            const SAFE_MINIMUM: $real = <$real>::MIN_POSITIVE;

            fn from_parts(re: $real, im: $real) -> Self {
                Self { re, im }
            }
            fn from_f64(re: f64, im: f64) -> Self {
                Self { re: re as $real, im: im as $real }
            }
            fn re(self) -> $real {
                self.re
            }
            fn im(self) -> $real {
                self.im
            }
            fn conj(self) -> Self {
                Complex::conj(&self)
            }
            fn abs1(self) -> $real {
                self.re.abs() + self.im.abs()
            }
            fn modulus(self) -> $real {
                self.re.hypot(self.im)
            }
            fn finite(self) -> bool {
                self.re.is_finite() && self.im.is_finite()
            }
            fn nan() -> Self {
                Self { re: <$real>::NAN, im: <$real>::NAN }
            }
            fn divide(self, divisor: Self) -> Self {
                divide_complex(self, divisor)
            }
        }
    };
}

real_scalar!(f32, F32);
real_scalar!(f64, F64);
complex_scalar!(f32, C32);
complex_scalar!(f64, C64);

/// Robust complex division: both operands are brought near one by exact powers of two, the quotient of
/// those is computed by Smith's method with Baudin and Smith's guard, and the scale is put back in two
/// steps so that a subnormal quotient is rounded once.
fn divide_complex<R: Float>(a: Complex<R>, b: Complex<R>) -> Complex<R> {
    let size = |z: Complex<R>| z.re.abs().max(z.im.abs());
    let (a_size, b_size) = (size(a), size(b));
    let usable = |s: R| s.is_finite() && s > R::zero();
    if a.is_zero() && usable(b_size) && !b.re.is_nan() && !b.im.is_nan() {
        return a; // by the definition, 0 / |b|², and |b|² may underflow
    }
    if !usable(a_size) || !usable(b_size) || b.re.is_nan() || b.im.is_nan() || a.re.is_nan() || a.im.is_nan() {
        return a / b;
    }
    let (a, a_shift) = near_one(a, a_size);
    let (b, b_shift) = near_one(b, b_size);
    let q = if b.im.abs() <= b.re.abs() {
        smith(a.re, a.im, b.re, b.im)
    } else {
        let Complex { re, im } = smith(a.im, a.re, b.im, b.re);
        Complex::new(re, -im)
    };
    let shift = a_shift - b_shift;
    let (half, rest) = (power_of_two::<R>(shift / 2), power_of_two::<R>(shift - shift / 2));
    Complex::new(q.re * half * rest, q.im * half * rest)
}

/// `(a + ib) / (c + id)` for `|d| <= |c|`, all of moderate size.
fn smith<R: Float>(a: R, b: R, c: R, d: R) -> Complex<R> {
    let r = d / c;
    let t = c + d * r;
    if r.is_zero() {
        Complex::new((a + d * (b / c)) / t, (b - d * (a / c)) / t)
    } else {
        Complex::new((a + b * r) / t, (b - a * r) / t)
    }
}

/// `z / 2^k` and `k`, where `2^k` is about `size`.
fn near_one<R: Float>(z: Complex<R>, size: R) -> (Complex<R>, i32) {
    let (_, exponent, _) = size.integer_decode();
    let digits = (R::epsilon().recip().log2()).to_i32().unwrap_or(52);
    let shift = i32::from(exponent) + digits;
    let (half, rest) = (power_of_two::<R>(-shift / 2), power_of_two::<R>(-shift + shift / 2));
    (Complex::new(z.re * half * rest, z.im * half * rest), shift)
}

fn power_of_two<R: Float>(exponent: i32) -> R {
    (R::one() + R::one()).powi(exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complex_division_survives_the_ends_of_the_range() {
        for scale in [f64::MAX / 4.0, 1e200, 1.0, 1e-200, f64::MIN_POSITIVE] {
            let z = Complex::new(3.0 * scale.min(f64::MAX / 8.0), 2.0 * scale.min(f64::MAX / 8.0));
            let q = z.divide(z);
            assert!((q.re - 1.0).abs() < 1e-15 && q.im.abs() < 1e-15, "{scale:e}: {q}");
            assert_eq!(Complex::new(0.0, 0.0).divide(z), Complex::new(0.0, 0.0), "{scale:e}");
            let q = Complex::new(1.0f64, 0.0).divide(Complex::new(0.0, scale));
            let expected = -1.0 / scale;
            assert!(q.re == 0.0 && (q.im / expected - 1.0).abs() < 1e-15, "{scale:e}: {q}");
        }
    }

    #[test]
    fn complex_division_agrees_with_the_definition() {
        let (a, b) = (Complex::new(1.0f32, 2.0), Complex::new(3.0f32, -4.0));
        assert!((a.divide(b) - Complex::new(-0.2, 0.4)).norm() < 1e-7);
        assert_eq!(Complex::new(4.0f32, 2.0).divide(Complex::new(0.0, 2.0)), Complex::new(1.0, -2.0));
    }

    #[test]
    fn kinds_are_lapacks_in_name_letter_and_size() {
        let told = ScalarKind::ALL.map(|kind| (kind.name(), kind.letter(), kind.bytes()));
        assert_eq!(told, [("f32", 's', 4), ("f64", 'd', 8), ("c32", 'c', 8), ("c64", 'z', 16)]);
    }

    #[test]
    fn a_quotient_is_accurate_wherever_it_and_its_operands_can_be_represented() {
        let z = Complex::<f64>::new;
        let times = |x: Complex<f64>, power: i32| {
            let (half, rest) = (2f64.powi(power / 2), 2f64.powi(power - power / 2));
            z(x.re * half * rest, x.im * half * rest)
        };
        let small = [z(3.0, 2.0), z(-2.0, 3.0), z(5.0, 0.0), z(0.0, -7.0), z(1.0, -6.0)];
        for (b, q) in small.into_iter().flat_map(|b| small.map(|q| (b, q))) {
            for (dividend, divisor) in
                [(0, 0), (900, 900), (-1074, -1074), (-1074, 0), (-1074, -1000), (1010, -9), (-40, 970)]
            {
                let given = times(b * q, dividend).divide(times(b, divisor));
                let expected = times(q, dividend - divisor);
                // One unit of the subnormal numbers is all that a quotient among them can promise.
                let slack = (expected.modulus() * 1e-15).max(f64::from_bits(1));
                assert!(
                    (given - expected).modulus() <= slack,
                    "{b} 2^{dividend} / {q} 2^{divisor}: {given}, not {expected}"
                );
            }
        }
    }

    #[test]
    fn division_by_zero_is_not_finite() {
        assert!(!Complex::new(0.0f64, 0.0).divide(Complex::new(0.0, 0.0)).finite());
        assert!(!Complex::new(1.0f64, 1.0).divide(Complex::new(0.0, 0.0)).finite());
        assert!(!Complex::new(f64::NAN, 1.0).divide(Complex::new(1.0, 0.0)).finite());
    }

    #[test]
    fn the_safe_minimum_has_a_finite_reciprocal() {
        assert!(f64::SAFE_MINIMUM.recip().is_finite() && f32::SAFE_MINIMUM.recip().is_finite());
    }
}
