//! What is known of a generated matrix before any backend has seen it.

use batchla_core::{Outcome, Real, Scalar};

use super::deviates::Deviates;
use super::planted::Plan;
use super::{Defect, Generator, Range, exact};
use crate::residual::LIMIT;

/// What every correct backend must find of one matrix; `None` where rounding decides.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Expected {
    /// The outcome of factorisation.
    pub factors: Option<Outcome>,
    /// The outcome of inversion. It differs from that of factorisation where the inverse overflows.
    pub inverse: Option<Outcome>,
    /// The exchanges of partial pivoting, 0-based.
    pub pivots: Option<Vec<u32>>,
}

impl Expected {
    fn unknown() -> Self {
        Self { factors: None, inverse: None, pivots: None }
    }

    fn both(outcome: Outcome) -> Self {
        Self { factors: Some(outcome), inverse: Some(outcome), pivots: None }
    }

    fn with_pivots(self, pivots: Vec<u32>) -> Self {
        Self { pivots: Some(pivots), ..self }
    }
}

impl Generator {
    /// What is known of [`Generator::matrix`] with the same arguments.
    ///
    /// Random dense matrices ([`Generator::Normal`] and the like) are called regular, although a pivot could cancel exactly: in
    /// single precision at order 2 that happens to about one matrix in 2²⁴, and more rarely at others.
    pub fn expected<T: Scalar>(self, n: usize, seed: u64, b: usize) -> Expected {
        let still = (0..n as u32).collect();
        let regular = Expected::both(Outcome::Regular);
        if n == 0 {
            return regular.with_pivots(still);
        }
        let mut deviates = Deviates::of_matrix(seed, b);
        if let Some(flaw) = self.flaw() {
            let outcome = flaw.singular_column(n).map_or(Outcome::Regular, |column| Outcome::Singular { column });
            return Expected::both(outcome).with_pivots(exact::pivots(n, flaw, &mut deviates));
        }
        let range = Range::of(T::KIND);
        match self {
            Self::Uniform | Self::Normal | Self::PositiveDefinite | Self::BlockDiagonal => regular,
            Self::DiagonallyDominant | Self::Diagonal | Self::UpperTriangular | Self::LowerTriangular => {
                regular.with_pivots(still)
            }
            // No backward error that the limit allows reaches the smallest singular value.
            Self::Condition(kappa) if kappa * LIMIT * n as f64 * T::UNIT_ROUNDOFF.to_f64() < 1.0 => regular,
            // The inverse grows as ((1 + c) / s)ⁿ = 2^(0.55 n).
            Self::Kahan if 0.55 * (n as f64) < 0.75 * f64::from(range.max) => regular.with_pivots(still),
            Self::Kahan => Expected { inverse: None, ..regular.with_pivots(still) },
            Self::Wilkinson if n <= range.max as usize => regular.with_pivots(still),
            Self::Wilkinson => Expected::both(Outcome::NotFinite),
            Self::Scaled(fraction) | Self::GradedRows(fraction) | Self::GradedColumns(fraction)
                if fraction.abs() <= 0.75 =>
            {
                regular
            }
            Self::ZeroColumn(place) => Expected::both(Outcome::Singular { column: place.column(n) }),
            Self::Planted(_) => {
                let Plan { pivots, column, .. } = Plan::draw(n, &mut deviates);
                match self.planted(b) {
                    Some(Defect::NaN | Defect::Infinity) => Expected::both(Outcome::NotFinite),
                    Some(Defect::ZeroColumn) => Expected::both(Outcome::Singular { column }),
                    Some(Defect::Tiny) => Expected { inverse: Some(Outcome::NotFinite), ..regular.with_pivots(pivots) },
                    Some(Defect::Subnormal | Defect::Huge) | None => regular.with_pivots(pivots),
                }
            }
            _ => Expected::unknown(),
        }
    }
}
