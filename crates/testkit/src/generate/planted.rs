//! Single bad matrices among healthy ones.

use std::fmt;

use batchla_core::Scalar;

use super::deviates::Deviates;
use super::exact::{exchanges, undo};
use super::scaled::times_power;
use super::{Range, from_fn};

/// What is wrong with a single matrix of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Defect {
    /// One part of one element is NaN.
    NaN,
    /// One part of one element is infinite, of either sign.
    Infinity,
    /// One column is zero.
    ZeroColumn,
    /// All elements are subnormal; factors and inverse can be represented.
    Subnormal,
    /// One column is so small that the inverse overflows; the factors can be represented.
    Tiny,
    /// The elements are near the end of the range: their squares overflow, factors and inverse do not.
    Huge,
}

impl Defect {
    /// Every defect.
    pub const ALL: [Self; 6] = [Self::NaN, Self::Infinity, Self::ZeroColumn, Self::Subnormal, Self::Tiny, Self::Huge];

    /// The name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::NaN => "nan",
            Self::Infinity => "infinity",
            Self::ZeroColumn => "zero-column",
            Self::Subnormal => "subnormal",
            Self::Tiny => "tiny",
            Self::Huge => "huge",
        }
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is drawn before the elements: the exchanges of elimination and the defect's place.
pub(super) struct Plan {
    pub(super) pivots: Vec<u32>,
    row: usize,
    pub(super) column: usize,
}

impl Plan {
    pub(super) fn draw(n: usize, deviates: &mut Deviates) -> Self {
        let pivots = exchanges(n, deviates, |_| false);
        Self { pivots, row: deviates.below(n), column: deviates.below(n) }
    }
}

/// Rows in random order of a matrix with `1.5 ≤ |a_jj| < 2` and other elements of size at most `1/(4n)`: elimination finds the
/// planned exchanges, and `‖A⁻¹‖₁ ≤ 0.8`.
pub(super) fn matrix<W: Scalar<Real = f64>>(
    n: usize,
    defect: Option<Defect>,
    range: Range,
    deviates: &mut Deviates,
) -> Vec<W> {
    let Plan { pivots, row, column } = Plan::draw(n, deviates);
    let size = if W::IS_COMPLEX { 0.125 } else { 0.25 } / n.max(1) as f64;
    let mut a = from_fn(n, |i, j| {
        if i == j {
            deviates.unit::<W>().scale(1.5 + 0.5 * deviates.fraction())
        } else {
            deviates.element::<W>(Deviates::uniform).scale(size)
        }
    });
    undo(&mut a, n, &pivots);
    if n > 0 {
        match defect {
            None => {}
            Some(Defect::NaN) => spoil(&mut a[column * n + row], f64::NAN, deviates),
            Some(Defect::Infinity) => spoil(&mut a[column * n + row], f64::INFINITY, deviates),
            Some(Defect::ZeroColumn) => a[column * n..(column + 1) * n].fill(W::zero()),
            Some(Defect::Subnormal) => rescale(&mut a, range.min - 2),
            Some(Defect::Tiny) => rescale(&mut a[column * n..(column + 1) * n], range.min - 8),
            Some(Defect::Huge) => rescale(&mut a, range.max - 3),
        }
    }
    a
}

fn spoil<W: Scalar<Real = f64>>(x: &mut W, with: f64, deviates: &mut Deviates) {
    let signed = if deviates.below(2) == 0 { with } else { -with };
    *x = if deviates.below(2) == 0 || !W::IS_COMPLEX {
        W::from_parts(signed, x.im())
    } else {
        W::from_parts(x.re(), signed)
    };
}

fn rescale<W: Scalar<Real = f64>>(a: &mut [W], exponent: i32) {
    a.iter_mut().for_each(|x| *x = times_power(*x, exponent));
}
