//! Matrices spread over a type's exponent range.

use batchla_core::Scalar;

use super::deviates::Deviates;
use super::{Range, from_fn, random};
use crate::double_double::ldexp;

pub(super) fn scaled<W: Scalar<Real = f64>>(n: usize, fraction: f64, range: Range, deviates: &mut Deviates) -> Vec<W> {
    let exponent = (fraction * f64::from(range.max)).round() as i32;
    random::normal::<W>(n, deviates).into_iter().map(|x| times_power(x, exponent)).collect()
}

/// Line `k = line(i, j)` of `n` is scaled by `2^(−fraction·e·k/(n−1))`, its exponent rounded.
pub(super) fn graded<W: Scalar<Real = f64>>(
    n: usize,
    fraction: f64,
    range: Range,
    deviates: &mut Deviates,
    line: fn(usize, usize) -> usize,
) -> Vec<W> {
    let step = fraction * f64::from(range.max) / n.saturating_sub(1).max(1) as f64;
    from_fn(n, |i, j| {
        let exponent = -(step * line(i, j) as f64).round() as i32;
        times_power(deviates.element::<W>(Deviates::normal), exponent)
    })
}

/// `x · 2^exponent`.
pub(super) fn times_power<W: Scalar<Real = f64>>(x: W, exponent: i32) -> W {
    W::from_parts(ldexp(x.re(), exponent), ldexp(x.im(), exponent))
}
