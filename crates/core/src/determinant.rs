//! Determinants as sign (or phase) and logarithm, and the trait that computes them.

use crate::backend::{Backend, ReportMut, check_operands};
use crate::batch::BatchRef;
use crate::error::Error;
use crate::memory::{HostMemory, Memory};
use crate::outcome::Outcome;
use crate::plan::Options;
use crate::problem::{Extras, Operation, Problem};
use crate::report::Report;
use crate::scalar::{Real, Scalar};
use crate::source::Source;

/// `det A = sign * exp(log_abs)`: does not overflow where the plain value would.
///
/// `sign` has modulus 1 (a phase for complex types); a singular matrix has `sign` 0 and `log_abs` −∞, a matrix
/// that is not finite NaN in both.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Determinant<T: Scalar> {
    /// The sign or phase, of modulus 1; zero for a singular matrix.
    pub sign: T,
    /// The natural logarithm of the modulus.
    pub log_abs: T::Real,
}

impl<T: Scalar> Determinant<T> {
    /// The determinant of a singular matrix.
    pub fn zero() -> Self {
        Self { sign: num_traits::zero(), log_abs: num_traits::Float::neg_infinity() }
    }

    /// The determinant of a matrix that is not finite.
    pub fn nan() -> Self {
        Self { sign: T::nan(), log_abs: num_traits::Float::nan() }
    }

    /// The product of `U`'s diagonal and the sign of the exchanges, for a matrix whose factors have the given outcome.
    ///
    /// `diagonal(k)` is `U[k, k]`, `pivots` the 0-based exchanges. The phases are multiplied and brought back to modulus
    /// one, the logarithms of the moduli added in the type's own precision, in order of `k`.
    pub fn from_factors(outcome: Outcome, diagonal: impl Fn(usize) -> T, pivots: &[u32]) -> Self {
        match outcome {
            Outcome::NotFinite => return Self::nan(),
            Outcome::Singular { .. } => return Self::zero(),
            Outcome::Regular => {}
        }
        let mut sign: T = num_traits::one();
        let mut log_abs: T::Real = num_traits::zero();
        for (k, &p) in pivots.iter().enumerate() {
            let (phase, logarithm) = polar(diagonal(k));
            sign *= if p as usize == k { phase } else { -phase };
            if T::IS_COMPLEX {
                sign = sign.divide(T::from_real(sign.modulus()));
            }
            log_abs += logarithm;
        }
        Self { sign, log_abs }
    }

    /// The plain value; overflows to infinity and underflows to zero as its type does.
    pub fn value(self) -> T {
        let size = num_traits::Float::exp(self.log_abs);
        // Zero times infinity is none of its parts.
        let part = |x: T::Real| if x == num_traits::zero() { x } else { x * size };
        T::from_parts(part(self.sign.re()), part(self.sign.im()))
    }

    /// `log |det A|` in double precision.
    pub fn log_abs_f64(self) -> f64 {
        self.log_abs.to_f64()
    }
}

/// Phase, and logarithm of the modulus, of a finite number. That of a complex one may be beyond the type's largest number: then half of it is looked at.
fn polar<T: Scalar>(u: T) -> (T, T::Real) {
    let (mut u, mut modulus, mut beyond) = (u, u.modulus(), num_traits::zero());
    if !modulus.finite() {
        let two = T::from_f64(2.0, 0.0).re();
        u = u.scale(num_traits::Float::recip(two));
        (modulus, beyond) = (u.modulus(), num_traits::Float::ln(two));
    }
    (u.divide(T::from_real(modulus)), num_traits::Float::ln(modulus) + beyond)
}

/// The determinants of a batch, where they were computed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Determinants<T: Scalar, M: Memory = HostMemory> {
    /// Outcomes and determinants.
    pub report: Report<T, M>,
}

impl<T: Scalar> Determinants<T> {
    /// Sign and logarithm of each matrix's determinant.
    pub fn values(&self) -> &[Determinant<T>] {
        self.report.determinants().unwrap_or(&[])
    }

    /// Each matrix and how it fared.
    pub fn outcomes(&self) -> impl ExactSizeIterator<Item = (usize, Outcome)> + '_ {
        self.report.outcomes()
    }
}

/// What [`BatchedDeterminant::run_determinant`] works on.
#[derive(Debug)]
#[non_exhaustive]
pub struct DeterminantArgs<'a, T: Scalar, M: Memory> {
    /// The matrices (only read) or their factors; never [`Source::InPlace`].
    pub source: Source<'a, T, M>,
    /// Out: outcomes and, always, determinants.
    pub report: ReportMut<'a, T, M>,
}

impl<'a, T: Scalar, M: Memory> DeterminantArgs<'a, T, M> {
    /// Puts the operands together.
    pub fn new(source: &'a Source<'_, T, M>, report: ReportMut<'a, T, M>) -> Self {
        Self { source: source.reborrow(), report }
    }

    /// Holds the operands against what was prepared; to be called first by every backend.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) or [`ErrorKind::Shape`](crate::ErrorKind::Shape) naming both.
    pub fn check(&self, prepared: &Problem) -> Result<(), Error> {
        check_operands(Operation::Determinant, prepared, &self.source, None, None, &self.report)
    }
}

/// Determinants: `det A = sign * exp(log_abs)` for each matrix.
///
/// See [`BatchedFactorize`](crate::BatchedFactorize) for the contract that all `run_` methods share.
#[doc(alias = "slogdet")]
pub trait BatchedDeterminant<T: Scalar>: Backend {
    /// Queues the determinants of the prepared problem ([`Operation::Determinant`](crate::Operation::Determinant)).
    ///
    /// # Errors
    /// Where the operands are not those prepared, or the device fails.
    fn run_determinant(
        &self,
        prepared: &Self::Prepared,
        args: DeterminantArgs<'_, T, Self::Memory>,
        workspace: &mut Self::Workspace,
    ) -> Result<(), Error>;

    /// Computes sign or phase and logarithm of each matrix's determinant: a factorisation that keeps nothing else.
    ///
    /// The input is only read. Cost: 2/3 n³ flops a matrix (four times that for complex types).
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) for matrices that are not square; memory; the device.
    fn determinant<'a>(
        &self,
        a: impl Into<BatchRef<'a, T, Self::Memory>>,
    ) -> Result<Determinants<T, Self::Memory>, Error>
    where
        Self: Sized,
    {
        let a = a.into();
        determinant_of(self, Source::Matrix(a.reborrow()))
    }
}

pub(crate) fn determinant_of<T: Scalar, B: BatchedDeterminant<T>>(
    backend: &B,
    source: Source<'_, T, B::Memory>,
) -> Result<Determinants<T, B::Memory>, Error> {
    let layout = *source.layout().ok_or_else(|| source_in_place("determinant"))?;
    let problem = Problem::determinant::<T>(source.kind(), layout)?;
    let prepared = backend.prepare(&problem, &Options::default())?;
    let mut workspace = backend.workspace(&prepared)?;
    let mut report = Report::allocate(backend, layout.batch(), Extras::none().with_determinant())?;
    backend.run_determinant(&prepared, DeterminantArgs::new(&source, report.view_mut()), &mut workspace)?;
    Ok(Determinants { report })
}

pub(crate) fn source_in_place(operation: &str) -> Error {
    Error::new(crate::ErrorKind::Argument, operation, "the matrices cannot be worked on in place")
        .advise("pass the matrices or their factors")
}

#[cfg(test)]
mod tests {
    use num_complex::Complex;

    use super::*;

    #[test]
    fn sign_and_logarithm_of_hand_worked_factors() {
        let d = Determinant::<f64>::from_factors(Outcome::Regular, |k| [2.0, -3.0][k], &[1, 1]);
        assert_eq!(d.sign, 1.0);
        assert!((d.value() - 6.0).abs() < 1e-14);
        let i = Complex::new(0.0f32, 2.0);
        let d = Determinant::from_factors(Outcome::Regular, |_| i, &[0, 1]);
        assert!((d.value() - Complex::new(-4.0, 0.0)).norm() < 1e-5);
        let d = Determinant::from_factors(Outcome::Regular, |k| [i, Complex::new(1.0, 1.0)][k], &[0, 1]);
        assert!((d.value() - Complex::new(-2.0, 2.0)).norm() < 1e-5);
    }

    #[test]
    fn empty_is_one_singular_is_zero_and_nan_stays() {
        assert_eq!(Determinant::<f64>::from_factors(Outcome::Regular, |_| 0.0, &[]).value(), 1.0);
        assert_eq!(Determinant::<f64>::zero().value(), 0.0);
        assert!(Determinant::<f64>::nan().value().is_nan());
    }

    #[test]
    fn what_overflows_leaves_no_nan() {
        // The modulus of this finite number is beyond its type.
        let large = Complex::new(f64::MAX, f64::MAX);
        let d = Determinant::from_factors(Outcome::Regular, |_| large, &[0]);
        assert!((d.log_abs - (f64::MAX.ln() + 2f64.sqrt().ln())).abs() < 1e-12, "{d:?}");
        assert!((d.sign - Complex::new(0.5f64.sqrt(), 0.5f64.sqrt())).norm() < 1e-15, "{d:?}");
        // Ten to the power of 400: a part that is zero stays so.
        let ten =
            Determinant::from_factors(Outcome::Regular, |_| Complex::new(10.0, 0.0), &(0..400).collect::<Vec<_>>());
        assert_eq!(ten.value(), Complex::new(f64::INFINITY, 0.0));
    }

    #[test]
    fn logarithms_do_not_overflow() {
        let d = Determinant::<f32>::from_factors(Outcome::Regular, |_| 1e38, &[0, 1, 2]);
        assert!(d.value().is_infinite() && (d.log_abs_f64() - 3.0 * 87.498_23).abs() < 1e-2);
    }
}
