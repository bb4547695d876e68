//! What results of a matrix that failed have to be.

use batchla_core::{Determinant, Outcome, Scalar};
use num_traits::{Float, zero};

/// Whether all parts are NaN.
pub(super) fn all_nan<T: Scalar>(x: T) -> bool {
    Float::is_nan(x.re()) && (!T::IS_COMPLEX || Float::is_nan(x.im()))
}

/// NaN of a matrix that is not finite, zero of a singular one.
pub(super) fn is_determinant_of_failed<T: Scalar>(given: Determinant<T>, outcome: Outcome) -> bool {
    match outcome {
        Outcome::NotFinite => all_nan(given.sign) && Float::is_nan(given.log_abs),
        _ => given.sign == zero() && given.log_abs == Float::neg_infinity(),
    }
}

/// NaN of a matrix that is not finite, infinite of a singular one.
pub(super) fn is_condition_of_failed<T: Scalar>(given: T::Real, outcome: Outcome) -> bool {
    match outcome {
        Outcome::NotFinite => Float::is_nan(given),
        _ => given == Float::infinity(),
    }
}
