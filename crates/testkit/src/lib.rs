//! The kit that holds every backend of **batchla** to the same proof.
//!
//! - [`Generator`]: seeded matrices of many kinds, and what is known of them beforehand.
//! - [`conformance!`] and [`run`]: the suite that every backend must pass; [`cross_check`] holds two backends against each other.
//! - [`Ratios`]: how far results are from exact, in units of what rounding must be allowed; [`DoubleDouble`].
//! - [`Reference`]: textbook loops that satisfy core's traits, checked against matrices worked by hand.

mod agreement;
mod conformance;
mod double_double;
mod generate;
mod reference;
mod residual;

pub use crate::agreement::{Agreement, Choice, compare_pivots, cross_check};
pub use crate::conformance::{CHECKS, Complete, Order, Scope, Tally, Verdict, assert_conforms, check, run};
pub use crate::double_double::DoubleDouble;
pub use crate::generate::{Defect, Expected, Generator, Place, right_hand_sides};
pub use crate::reference::{Reference, ReferencePrepared, ReferenceWorkspace, Textbook};
pub use crate::residual::{
    LIMIT, Ratios, Worst, factorization_ratio, factorization_ratios, growth, inverse_ratio, inverse_ratios,
    solution_ratio, solution_ratios,
};
