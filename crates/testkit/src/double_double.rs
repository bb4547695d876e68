//! Numbers of about 106 bits as unevaluated sums of two `f64`, and the sums of products that residuals are made of.

use std::ops::{Add, Mul, Neg, Sub};

/// `hi + lo` with `|lo|` at most half a unit in the last place of `hi` (Dekker 1971). Sums and products have a relative
/// error of a few 2⁻¹⁰⁶ while nothing over- or underflows.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct DoubleDouble {
    hi: f64,
    lo: f64,
}

impl DoubleDouble {
    /// `a + b` exactly (Knuth's TwoSum).
    pub fn sum(a: f64, b: f64) -> Self {
        let (hi, lo) = two_sum(a, b);
        Self { hi, lo }
    }

    /// `a * b` exactly.
    pub fn product(a: f64, b: f64) -> Self {
        let hi = a * b;
        Self { hi, lo: a.mul_add(b, -hi) }
    }

    /// The nearest `f64`.
    pub fn hi(self) -> f64 {
        self.hi
    }

    /// What [`DoubleDouble::hi`] lacks.
    pub fn lo(self) -> f64 {
        self.lo
    }

    /// Absolute value.
    #[must_use]
    pub fn abs(self) -> Self {
        if self.hi < 0.0 { -self } else { self }
    }
}

impl From<f64> for DoubleDouble {
    fn from(x: f64) -> Self {
        Self { hi: x, lo: 0.0 }
    }
}

impl Neg for DoubleDouble {
    type Output = Self;

    fn neg(self) -> Self {
        Self { hi: -self.hi, lo: -self.lo }
    }
}

impl Add for DoubleDouble {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let (hi, lo) = two_sum(self.hi, other.hi);
        let (low, rest) = two_sum(self.lo, other.lo);
        let (hi, lo) = fast_two_sum(hi, lo + low);
        let (hi, lo) = fast_two_sum(hi, lo + rest);
        Self { hi, lo }
    }
}

impl Sub for DoubleDouble {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for DoubleDouble {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let Self { hi, lo } = Self::product(self.hi, other.hi);
        let (hi, lo) = fast_two_sum(hi, lo + (self.hi * other.lo + self.lo * other.hi));
        Self { hi, lo }
    }
}

/// The upper 26 bits of each number (Veltkamp's splitting), which [`add_products`] wants of its vector.
pub(crate) fn heads(x: &[f64]) -> Vec<f64> {
    x.iter().map(|&x| head(x)).collect()
}

/// `(hi + lo)[i] += factor * x[i]` in twice the working precision: the loop of Ogita, Rump and Oishi's Dot2, by columns.
///
/// Dekker's product rather than a fused multiply-add, which is a call into the C library where the target's baseline lacks
/// the instruction; so the loop vectorises everywhere.
pub(crate) fn add_products(hi: &mut [f64], lo: &mut [f64], factor: f64, x: &[f64], heads: &[f64]) {
    let n = hi.len();
    let (lo, x, heads) = (&mut lo[..n], &x[..n], &heads[..n]);
    let factor_head = head(factor);
    let factor_tail = factor - factor_head;
    for i in 0..n {
        let tail = x[i] - heads[i];
        let product = factor * x[i];
        let error = factor_head * heads[i] - product + factor_head * tail + factor_tail * heads[i] + factor_tail * tail;
        let (sum, rounded) = two_sum(hi[i], product);
        hi[i] = sum;
        lo[i] += rounded + error;
    }
}

/// `x · 2^exponent` for all of `x`, rounded only where the result is subnormal.
pub(crate) fn ldexp_all(x: &mut [f64], mut exponent: i32) {
    // No single `f64` brings the smallest number to the largest.
    while exponent != 0 {
        let step = exponent.clamp(-1022, 1023);
        let factor = f64::from_bits(((step + 1023) as u64) << 52);
        x.iter_mut().for_each(|x| *x *= factor);
        exponent -= step;
    }
}

/// `x · 2^exponent`, rounded only where the result is subnormal.
pub(crate) fn ldexp(x: f64, exponent: i32) -> f64 {
    let mut x = [x];
    ldexp_all(&mut x, exponent);
    x[0]
}

/// The `e` for which `2^e ≤ |x| < 2^(e+1)`; 0 for zero and what is not finite.
pub(crate) fn exponent(x: f64) -> i32 {
    if x == 0.0 || !x.is_finite() {
        return 0;
    }
    let biased = |x: f64| ((x.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    if x.is_normal() { biased(x) } else { biased(x * TWO_TO_THE_54) - 54 }
}

const TWO_TO_THE_54: f64 = 18_014_398_509_481_984.0;

fn head(x: f64) -> f64 {
    let wide = 134_217_729.0 * x;
    wide - (wide - x)
}

/// `a + b` rounded, and the error of that.
pub(crate) fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, (a - (sum - part)) + (b - part))
}

/// As [`two_sum`], for `|a| ≥ |b|`.
fn fast_two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    (sum, b - (sum - a))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn integer(x: DoubleDouble) -> i128 {
        x.hi as i128 + x.lo as i128
    }

    #[test]
    fn a_third_times_three_is_one_to_twice_the_precision() {
        let third = DoubleDouble::from(1.0 / 3.0) + DoubleDouble::from(1.0 / 3.0 * f64::EPSILON / 4.0);
        let one = third * DoubleDouble::from(3.0);
        assert!((one - DoubleDouble::from(1.0)).abs().hi() < 1e-31, "{one:?}");
    }

    #[test]
    fn both_parts_are_there_to_see_and_turn_their_signs_together() {
        let little = 2f64.powi(-60);
        let x = DoubleDouble::sum(3.0, -little);
        assert_eq!((x.hi(), x.lo()), (3.0, -little));
        assert_eq!(((-x).hi(), (-x).lo()), (-3.0, little));
        assert_eq!((x.abs(), (-x).abs()), (x, x));
        assert!(DoubleDouble::from(0.0).abs().hi().is_sign_positive());
        // Where the upper parts cancel, all of the lower ones is left.
        let least = 2f64.powi(-120);
        let rest = DoubleDouble::sum(1.0, little) + DoubleDouble::sum(-1.0, least);
        assert_eq!((rest.hi(), rest.lo()), (little, least));
    }

    #[test]
    fn powers_of_two_are_exact_to_both_ends_of_the_range() {
        let least = f64::from_bits(1);
        assert_eq!(ldexp(1.0, -1074), least);
        assert_eq!(ldexp(least, 1074 + 1023), 2f64.powi(1023));
        assert_eq!(ldexp(2f64.powi(1023), -1023 - 1074), least);
        assert_eq!((ldexp(1.0, 5000), ldexp(1.0, -5000)), (f64::INFINITY, 0.0));
        assert_eq!([1.0, 1.5, 0.75, least, f64::MAX, -8.0].map(exponent), [0, 0, -1, -1074, 1023, 3]);
        assert_eq!([0.0, f64::NAN, f64::INFINITY].map(exponent), [0, 0, 0]);
    }

    proptest! {
        #[test]
        fn sums_and_products_of_integers_are_the_integers(a in -(1i64 << 53)..(1 << 53), b in -(1i64 << 53)..(1 << 53)) {
            let (x, y) = (a as f64, b as f64);
            prop_assert_eq!(integer(DoubleDouble::sum(x, y)), i128::from(a) + i128::from(b));
            prop_assert_eq!(integer(DoubleDouble::product(x, y)), i128::from(a) * i128::from(b));
            let wide = DoubleDouble::product(x, 1024.0) + DoubleDouble::from(y);
            prop_assert_eq!(integer(wide), i128::from(a) * 1024 + i128::from(b));
            prop_assert_eq!(integer(wide * DoubleDouble::from(8191.0)), (i128::from(a) * 1024 + i128::from(b)) * 8191);
        }

        #[test]
        fn sums_and_differences_keep_both_parts(
            a in -(1i64 << 50)..(1 << 50), b in -(1i64 << 50)..(1 << 50), c in -(1i64 << 50)..(1 << 50), d in -(1i64 << 50)..(1 << 50),
        ) {
            let (p, q) = (DoubleDouble::product(a as f64, b as f64), DoubleDouble::product(c as f64, d as f64));
            let (m, n) = (i128::from(a) * i128::from(b), i128::from(c) * i128::from(d));
            for (x, exact) in [(p + q, m + n), (p - q, m - n)] {
                prop_assert!((integer(x) - exact).abs() <= 1);
                // No part of the one is in the other.
                prop_assert_eq!(x.hi(), x.hi() + x.lo());
            }
        }

        #[test]
        fn columns_of_products_are_summed_as_if_by_integers(
            terms in prop::collection::vec((-(1i64 << 52)..(1 << 52), -(1i64 << 50)..(1 << 50)), 1..50),
        ) {
            let (mut hi, mut lo) = ([0.0], [0.0]);
            let mut exact = 0i128;
            for (a, b) in terms {
                let x = [b as f64];
                add_products(&mut hi, &mut lo, a as f64, &x, &heads(&x));
                exact += i128::from(a) * i128::from(b);
            }
            // Products have up to 102 bits, of which Dot2 keeps about 106 in all.
            let error = (integer(DoubleDouble::sum(hi[0], lo[0])) - exact).abs();
            prop_assert!(error < 1 << 12, "{error}");
        }
    }
}
