//! Inversion.

use crate::backend::{Backend, ReportMut, check_operands};
use crate::batch::{Batch, BatchMut, BatchRef};
use crate::error::Error;
use crate::layout::BatchLayout;
use crate::memory::{HostMemory, Memory};
use crate::outcome::Outcome;
use crate::plan::Options;
use crate::problem::{Extras, Operation, Problem};
use crate::report::Report;
use crate::scalar::Scalar;
use crate::source::{FactorsRef, Source};

/// What [`BatchedInvert::run_invert`] works on.
#[derive(Debug)]
#[non_exhaustive]
pub struct InvertArgs<'a, T: Scalar, M: Memory> {
    /// The matrices ([`Source::InPlace`] where they lie in `x`) or their factors.
    pub source: Source<'a, T, M>,
    /// Out: the inverses.
    pub x: BatchMut<'a, T, M>,
    /// Out: outcomes, and extras where prepared.
    pub report: ReportMut<'a, T, M>,
}

impl<'a, T: Scalar, M: Memory> InvertArgs<'a, T, M> {
    /// Puts the operands together.
    pub fn new(source: &'a Source<'_, T, M>, x: &'a mut BatchMut<'_, T, M>, report: ReportMut<'a, T, M>) -> Self {
        Self { source: source.reborrow(), x: x.reborrow(), report }
    }

    /// Holds the operands against what was prepared; to be called first by every backend.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) naming both.
    pub fn check(&self, prepared: &Problem) -> Result<(), Error> {
        check_operands(Operation::Invert, prepared, &self.source, None, Some(self.x.layout()), &self.report)
    }
}

/// Inversion: `X = A⁻¹` for each square matrix of a batch.
///
/// **Numerics.** Left residual `‖I − XA‖ / (n ‖A‖ ‖X‖ ε)` below 30, and below three times what LAPACK's `getrf` and `getri` reach on the same
/// matrix (or below 1). The inverse of a singular matrix, and of one that is or becomes not finite, is all NaN. The same matrix gives the
/// same bits wherever it stands in whatever batch.
///
/// **Cost.** 2 n³ flops a matrix, four times that for complex types.
///
/// See [`BatchedFactorize`](crate::BatchedFactorize) for the contract that all `run_` methods share.
///
/// Sources of the algorithm: LAPACK's `getri`; batched on GPUs, Liu et al. 2023.
#[doc(alias = "getri")]
#[doc(alias = "matinv")]
pub trait BatchedInvert<T: Scalar>: Backend {
    /// Queues the inversion of the prepared problem ([`Operation::Invert`](crate::Operation::Invert)).
    ///
    /// # Errors
    /// Where the operands are not those prepared, or the device fails.
    fn run_invert(
        &self,
        prepared: &Self::Prepared,
        args: InvertArgs<'_, T, Self::Memory>,
        workspace: &mut Self::Workspace,
    ) -> Result<(), Error>;

    /// Inverts a batch into memory of its own; the input is only read.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](crate::ErrorKind::Shape) for matrices that are not square; memory; the device.
    fn invert<'a>(&self, a: impl Into<BatchRef<'a, T, Self::Memory>>) -> Result<Inverse<T, Self::Memory>, Error> {
        self.invert_with(a, Extras::none(), &Options::default())
    }

    /// Inverts a batch as [`BatchedInvert::invert`], with determinants or condition numbers beside it, or by a forced plan.
    ///
    /// # Errors
    /// As [`BatchedInvert::invert`]; [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) where the forced plan cannot serve.
    fn invert_with<'a>(
        &self,
        a: impl Into<BatchRef<'a, T, Self::Memory>>,
        extras: Extras,
        options: &Options,
    ) -> Result<Inverse<T, Self::Memory>, Error> {
        let a = a.into();
        invert_source(self, Source::Matrix(a.reborrow()), extras, options)
    }

    /// Inverts a batch into another of the caller's; the input is only read.
    ///
    /// # Errors
    /// As [`BatchedInvert::invert`]; [`ErrorKind::Shape`](crate::ErrorKind::Shape) where `x` has other dimensions.
    fn invert_into<'a, 'x>(
        &self,
        a: impl Into<BatchRef<'a, T, Self::Memory>>,
        x: impl Into<BatchMut<'x, T, Self::Memory>>,
    ) -> Result<Report<T, Self::Memory>, Error> {
        let (a, mut x) = (a.into(), x.into());
        let layout = *a.layout();
        invert_to(self, Source::Matrix(a.reborrow()), layout, x.reborrow(), Extras::none(), &Options::default())
    }

    /// Inverts a batch in its own memory.
    ///
    /// # Errors
    /// As [`BatchedInvert::invert`].
    fn invert_in_place<'a>(
        &self,
        a: impl Into<BatchMut<'a, T, Self::Memory>>,
    ) -> Result<Report<T, Self::Memory>, Error> {
        let mut a = a.into();
        let layout = *a.layout();
        invert_to(self, Source::InPlace, layout, a.reborrow(), Extras::none(), &Options::default())
    }

    /// Inverts from borrowed factors into memory of its own (see [`LuRecord::factors`](crate::LuRecord::factors)).
    ///
    /// # Errors
    /// As [`BatchedInvert::invert`].
    fn invert_factored(&self, factors: FactorsRef<'_, T, Self::Memory>) -> Result<Inverse<T, Self::Memory>, Error> {
        invert_source(self, Source::Factors(factors), Extras::none(), &Options::default())
    }
}

pub(crate) fn invert_source<T: Scalar, B: BatchedInvert<T>>(
    backend: &B,
    source: Source<'_, T, B::Memory>,
    extras: Extras,
    options: &Options,
) -> Result<Inverse<T, B::Memory>, Error> {
    let layout = *source.layout().ok_or_else(|| crate::determinant::source_in_place("invert"))?;
    layout.order("invert")?;
    let mut batch = backend.allocate_batch(layout.packed()?)?;
    let report = invert_to(backend, source, layout, batch.view_mut(), extras, options)?;
    Ok(Inverse { batch, report })
}

fn invert_to<T: Scalar, B: BatchedInvert<T>>(
    backend: &B,
    source: Source<'_, T, B::Memory>,
    a: BatchLayout,
    mut x: BatchMut<'_, T, B::Memory>,
    extras: Extras,
    options: &Options,
) -> Result<Report<T, B::Memory>, Error> {
    let problem = Problem::invert::<T>(source.kind(), a, *x.layout())?.with_extras(extras)?;
    let prepared = backend.prepare(&problem, options)?;
    let mut workspace = backend.workspace(&prepared)?;
    let mut report = Report::allocate(backend, a.batch(), extras)?;
    backend.run_invert(&prepared, InvertArgs::new(&source, &mut x, report.view_mut()), &mut workspace)?;
    Ok(report)
}

/// The inverses of a batch, where they were computed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Inverse<T: Scalar, M: Memory = HostMemory> {
    /// The inverses; all NaN for a failed matrix.
    pub batch: Batch<T, M>,
    /// Outcomes and extras.
    pub report: Report<T, M>,
}

impl<T: Scalar> Inverse<T> {
    /// Each matrix and how it fared.
    pub fn outcomes(&self) -> impl ExactSizeIterator<Item = (usize, Outcome)> + '_ {
        self.report.outcomes()
    }
}
