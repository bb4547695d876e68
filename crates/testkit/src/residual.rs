//! Residual ratios: how far a result is from exact, in units of what rounding must be allowed.
//!
//! With `ε` the unit roundoff, `n` the order and 1-norms:
//!
//! | of | ratio |
//! | --- | --- |
//! | factors | `‖P⁻¹A − LU‖ / (n ‖A‖ ε) / max(1, growth)`, `growth = max |u_ij| / max |a_ij|` |
//! | inverse | `‖I − XA‖ / (n ‖A‖ ‖X‖ ε)`, the left residual |
//! | solution | `‖b − op(A)x‖ / (n ‖op(A)‖ ‖x‖ ε)`, the worst column |
//!
//! A result is accepted below [`LIMIT`]. Operands are first brought near one by powers of two, so that nothing over- or
//! underflows; products are summed in higher precision. A ratio is never NaN: a zero or non-finite denominator, anything in
//! an operand that is not finite, and operands that do not fit each other give an infinite one. Order 0 gives 0.

mod planes;

use std::fmt;

use batchla_core::{BatchRef, MatrixRef, Outcome, Real, Scalar, Transpose};

use self::planes::{Planes, Sums, larger};

/// Below this a ratio is accepted, as in LAPACK's own tests.
pub const LIMIT: f64 = 30.0;

/// The ratio of packed factors (`L` without its diagonal below `U`) with 0-based sequential exchanges.
pub fn factorization_ratio<T: Scalar>(a: MatrixRef<'_, T>, lu: MatrixRef<'_, T>, pivots: &[u32]) -> f64 {
    let n = a.rows();
    let valid = pivots.len() == n && pivots.iter().enumerate().all(|(k, &p)| k <= p as usize && (p as usize) < n);
    if !square(&[a, lu]) || !valid {
        return f64::INFINITY;
    }
    if n == 0 {
        return 0.0;
    }
    let mut permuted = Planes::scaled(a);
    permuted.exchange_rows(pivots);
    let (l, u) = (Planes::of(lu), Planes::times_power(lu, -permuted.exponent()));
    let mut numerator = 0.0;
    let mut sums = Sums::new(n, T::IS_COMPLEX);
    for j in 0..n {
        sums.set(&permuted, j, 0);
        for k in 0..=j {
            sums.subtract_element(k, &u, k, j);
            sums.subtract_product(k + 1, &l, k, u.at(k, j));
        }
        numerator = larger(numerator, sums.norm());
    }
    let growth = growth_of(&permuted, &u);
    let ratio = ratio::<T>(n, numerator, permuted.norm());
    // Not `max`, which would take 1 for NaN.
    if growth <= 1.0 { ratio } else { failing(ratio / growth) }
}

/// `max |u_ij| / max |a_ij|` of packed factors; NaN where `u` holds a NaN, both are zero, or they do not fit each other.
pub fn growth<T: Scalar>(a: MatrixRef<'_, T>, lu: MatrixRef<'_, T>) -> f64 {
    if !square(&[a, lu]) {
        return f64::NAN;
    }
    let a = Planes::scaled(a);
    growth_of(&a, &Planes::times_power(lu, -a.exponent()))
}

fn growth_of(a: &Planes, u: &Planes) -> f64 {
    u.largest(|j| j + 1) / a.largest(|_| a.rows())
}

/// The ratio of `x` as left inverse of `a`.
pub fn inverse_ratio<T: Scalar>(a: MatrixRef<'_, T>, x: MatrixRef<'_, T>) -> f64 {
    let n = a.rows();
    if !square(&[a, x]) {
        return f64::INFINITY;
    }
    let (a, x) = (Planes::scaled(a), Planes::scaled(x));
    let mut numerator = 0.0;
    let mut sums = Sums::new(n, T::IS_COMPLEX);
    for j in 0..n {
        sums.set_unit(j, -a.exponent() - x.exponent());
        for k in 0..n {
            sums.subtract_product(0, &x, k, a.at(k, j));
        }
        numerator = larger(numerator, sums.norm());
    }
    ratio::<T>(n, numerator, a.norm() * x.norm())
}

/// The ratio of `x` as solution of `op(a) x = b`, of its worst column. A column of zeros in `x` fails, so right-hand sides have
/// none; no columns give 0.
pub fn solution_ratio<T: Scalar>(a: MatrixRef<'_, T>, op: Transpose, x: MatrixRef<'_, T>, b: MatrixRef<'_, T>) -> f64 {
    let n = a.rows();
    if !square(&[a]) || (x.rows(), x.cols()) != (n, b.cols()) || b.rows() != n {
        return f64::INFINITY;
    }
    let mut a = Planes::scaled(if op == Transpose::None { a } else { a.transposed() });
    if op == Transpose::ConjugateTranspose {
        a.conjugate();
    }
    let norm = a.norm();
    let b = Planes::of(b);
    let mut worst = 0.0;
    let mut sums = Sums::new(n, T::IS_COMPLEX);
    for j in 0..x.cols() {
        let x = Planes::scaled_column(x, j);
        sums.set(&b, j, -a.exponent() - x.exponent());
        for k in 0..n {
            sums.subtract_product(0, &a, k, x.at(k, 0));
        }
        worst = larger(worst, ratio::<T>(n, sums.norm(), norm * x.norm()));
    }
    worst
}

/// The ratios of a batch: how many were computed, and the worst.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ratios {
    /// Matrices that were compared. A run that compared nothing has proved nothing.
    pub compared: usize,
    /// The worst matrix, the first of several; `None` where none was compared.
    pub worst: Option<Worst>,
}

/// A ratio and whose it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worst {
    /// The ratio; never NaN.
    pub ratio: f64,
    /// The matrix's place in the batch.
    pub matrix: usize,
}

impl Ratios {
    /// Whether something was compared, and all of it is below `limit`.
    pub fn below(&self, limit: f64) -> bool {
        self.worst.is_some_and(|worst| worst.ratio < limit)
    }

    /// Takes in the ratio of one more matrix.
    pub fn add(&mut self, matrix: usize, ratio: f64) {
        self.compared += 1;
        let ratio = failing(ratio);
        if self.worst.is_none_or(|worst| ratio > worst.ratio) {
            self.worst = Some(Worst { ratio, matrix });
        }
    }

    fn of_regular(outcomes: &[Outcome], mut ratio: impl FnMut(usize) -> Option<f64>) -> Self {
        let mut ratios = Self::default();
        for (b, _) in outcomes.iter().enumerate().filter(|(_, outcome)| outcome.is_regular()) {
            ratios.add(b, ratio(b).unwrap_or(f64::INFINITY));
        }
        ratios
    }
}

impl fmt::Display for Ratios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.worst {
            Some(Worst { ratio, matrix }) => {
                write!(f, "worst ratio {ratio:.3} in matrix {matrix}, of {} compared", self.compared)
            }
            None => f.write_str("nothing was compared"),
        }
    }
}

/// [`factorization_ratio`] of the regular matrices of a batch; `pivots` are `n` a matrix. A matrix that an operand lacks fails.
pub fn factorization_ratios<'a, T: Scalar>(
    a: impl Into<BatchRef<'a, T>>,
    lu: impl Into<BatchRef<'a, T>>,
    pivots: &[u32],
    outcomes: &[Outcome],
) -> Ratios {
    let (a, lu) = (a.into(), lu.into());
    let n = a.layout().rows();
    Ratios::of_regular(outcomes, |b| {
        Some(factorization_ratio(a.matrix(b)?, lu.matrix(b)?, pivots.get(b * n..(b + 1) * n)?))
    })
}

/// [`inverse_ratio`] of the regular matrices of a batch. A matrix that an operand lacks fails.
pub fn inverse_ratios<'a, T: Scalar>(
    a: impl Into<BatchRef<'a, T>>,
    x: impl Into<BatchRef<'a, T>>,
    outcomes: &[Outcome],
) -> Ratios {
    let (a, x) = (a.into(), x.into());
    Ratios::of_regular(outcomes, |b| Some(inverse_ratio(a.matrix(b)?, x.matrix(b)?)))
}

/// [`solution_ratio`] of the regular solutions of a batch; one matrix or one right-hand side may serve all. A matrix that an operand
/// lacks fails.
pub fn solution_ratios<'a, T: Scalar>(
    a: impl Into<BatchRef<'a, T>>,
    op: Transpose,
    x: impl Into<BatchRef<'a, T>>,
    b: impl Into<BatchRef<'a, T>>,
    outcomes: &[Outcome],
) -> Ratios {
    let (a, x, rhs) = (a.into(), x.into(), b.into());
    let of = |operand: &BatchRef<'a, T>, b: usize| operand.matrix(if operand.batch() == 1 { 0 } else { b });
    Ratios::of_regular(outcomes, |b| Some(solution_ratio(of(&a, b)?, op, x.matrix(b)?, of(&rhs, b)?)))
}

fn square<T: Scalar>(matrices: &[MatrixRef<'_, T>]) -> bool {
    matrices.iter().all(|m| m.rows() == matrices[0].rows() && m.cols() == matrices[0].rows())
}

/// `numerator / (n denominator ε)`.
fn ratio<T: Scalar>(n: usize, numerator: f64, denominator: f64) -> f64 {
    if n == 0 {
        return 0.0;
    }
    let denominator = n as f64 * denominator * T::UNIT_ROUNDOFF.to_f64();
    if denominator > 0.0 && denominator.is_finite() { failing(numerator / denominator) } else { f64::INFINITY }
}

fn failing(ratio: f64) -> f64 {
    if ratio.is_nan() { f64::INFINITY } else { ratio }
}

#[cfg(test)]
mod tests;
