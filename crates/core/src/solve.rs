//! Solution of linear systems.

use crate::backend::{Backend, ReportMut, check_operands};
use crate::batch::{Batch, BatchMut, BatchRef};
use crate::error::{Error, ErrorKind};
use crate::memory::{HostMemory, Memory};
use crate::outcome::Outcome;
use crate::plan::Options;
use crate::problem::{Extras, Operation, Problem, Transpose, broadcast};
use crate::report::Report;
use crate::scalar::Scalar;
use crate::source::{FactorsRef, Source};

/// What [`BatchedSolve::run_solve`] works on.
#[derive(Debug)]
#[non_exhaustive]
pub struct SolveArgs<'a, T: Scalar, M: Memory> {
    /// The matrices or their factors; never [`Source::InPlace`].
    pub source: Source<'a, T, M>,
    /// The right-hand sides; `None` where they lie in `x`.
    pub b: Option<BatchRef<'a, T, M>>,
    /// Out: the solutions.
    pub x: BatchMut<'a, T, M>,
    /// Out: one outcome a solution.
    pub report: ReportMut<'a, T, M>,
}

impl<'a, T: Scalar, M: Memory> SolveArgs<'a, T, M> {
    /// Puts the operands together.
    pub fn new(
        source: &'a Source<'_, T, M>,
        b: Option<&'a BatchRef<'_, T, M>>,
        x: &'a mut BatchMut<'_, T, M>,
        report: ReportMut<'a, T, M>,
    ) -> Self {
        Self { source: source.reborrow(), b: b.map(BatchRef::reborrow), x: x.reborrow(), report }
    }

    /// Holds the operands against what was prepared; to be called first by every backend.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] naming both.
    pub fn check(&self, prepared: &Problem) -> Result<(), Error> {
        let b = self.b.as_ref().map(BatchRef::layout);
        check_operands(Operation::Solve, prepared, &self.source, b, Some(self.x.layout()), &self.report)
    }
}

/// Solution of `op(A) X = B` for each matrix of a batch, from the matrices in one call or from their factors.
///
/// `B` has one or many columns. One matrix may serve a whole batch of right-hand sides, and one right-hand side a whole
/// batch of matrices: its batch is then one.
///
/// **Numerics.** Backward error `‖B − op(A) X‖ / (n ‖A‖ ‖X‖ ε)` below 30 times the growth of the factorisation, as LAPACK's `gesv`. Solutions of a
/// failed matrix are all NaN; a solution that is not finite makes its outcome [`Outcome::NotFinite`]. Outcomes belong to solutions: one factored matrix
/// that serves a batch gives each of them its outcome.
///
/// **Cost.** 2 n² flops a right-hand side, and 2/3 n³ a matrix from matrices; four times that for complex types.
///
/// See [`BatchedFactorize`](crate::BatchedFactorize) for the contract that all `run_` methods share.
#[doc(alias = "gesv")]
#[doc(alias = "getrs")]
pub trait BatchedSolve<T: Scalar>: Backend {
    /// Queues the solution of the prepared problem ([`Operation::Solve`](crate::Operation::Solve)).
    ///
    /// # Errors
    /// Where the operands are not those prepared, or the device fails.
    fn run_solve(
        &self,
        prepared: &Self::Prepared,
        args: SolveArgs<'_, T, Self::Memory>,
        workspace: &mut Self::Workspace,
    ) -> Result<(), Error>;

    /// Solves `A X = B` in one call that keeps no factors; both operands are only read.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where the operands do not fit each other; memory; the device.
    fn solve<'a, 'b>(
        &self,
        a: impl Into<BatchRef<'a, T, Self::Memory>>,
        b: impl Into<BatchRef<'b, T, Self::Memory>>,
    ) -> Result<Solution<T, Self::Memory>, Error> {
        let a = a.into();
        solve_source(self, Source::Matrix(a.reborrow()), b.into(), Transpose::None)
    }

    /// Solves `op(A) X = B` in one call; else as [`BatchedSolve::solve`].
    ///
    /// # Errors
    /// As [`BatchedSolve::solve`].
    fn solve_transposed<'a, 'b>(
        &self,
        a: impl Into<BatchRef<'a, T, Self::Memory>>,
        b: impl Into<BatchRef<'b, T, Self::Memory>>,
        transpose: Transpose,
    ) -> Result<Solution<T, Self::Memory>, Error> {
        let a = a.into();
        solve_source(self, Source::Matrix(a.reborrow()), b.into(), transpose)
    }

    /// Solves from borrowed factors (see [`LuRecord::factors`](crate::LuRecord::factors)) in the place of `b`.
    ///
    /// # Errors
    /// As [`BatchedSolve::solve`].
    fn solve_factored<'b>(
        &self,
        factors: FactorsRef<'_, T, Self::Memory>,
        b: impl Into<BatchMut<'b, T, Self::Memory>>,
        transpose: Transpose,
    ) -> Result<Report<T, Self::Memory>, Error> {
        solve_in_place(self, Source::Factors(factors), b.into(), transpose)
    }
}

pub(crate) fn solve_source<T: Scalar, B: BatchedSolve<T>>(
    backend: &B,
    source: Source<'_, T, B::Memory>,
    b: BatchRef<'_, T, B::Memory>,
    transpose: Transpose,
) -> Result<Solution<T, B::Memory>, Error> {
    let a = *source.layout().ok_or_else(|| crate::determinant::source_in_place("solve"))?;
    let batch = broadcast(a.batch(), b.batch()).ok_or_else(|| {
        Error::new(ErrorKind::Shape, "solve", format!("{} matrices and {} right-hand sides", a.batch(), b.batch()))
            .advise("make the batches equal, or one of them 1")
    })?;
    let layout = b.layout().packed()?.with_batch(batch)?;
    let problem = Problem::solve::<T>(source.kind(), a, Some(*b.layout()), layout, transpose)?;
    let mut x = backend.allocate_batch(layout)?;
    let report = run(backend, &problem, source, Some(b.reborrow()), x.view_mut())?;
    Ok(Solution { x, report })
}

pub(crate) fn solve_in_place<T: Scalar, B: BatchedSolve<T>>(
    backend: &B,
    source: Source<'_, T, B::Memory>,
    mut x: BatchMut<'_, T, B::Memory>,
    transpose: Transpose,
) -> Result<Report<T, B::Memory>, Error> {
    let a = *source.layout().ok_or_else(|| crate::determinant::source_in_place("solve"))?;
    let problem = Problem::solve::<T>(source.kind(), a, None, *x.layout(), transpose)?;
    run(backend, &problem, source, None, x.reborrow())
}

fn run<T: Scalar, B: BatchedSolve<T>>(
    backend: &B,
    problem: &Problem,
    source: Source<'_, T, B::Memory>,
    b: Option<BatchRef<'_, T, B::Memory>>,
    mut x: BatchMut<'_, T, B::Memory>,
) -> Result<Report<T, B::Memory>, Error> {
    let prepared = backend.prepare(problem, &Options::default())?;
    let mut workspace = backend.workspace(&prepared)?;
    let mut report = Report::allocate(backend, problem.batch(), Extras::none())?;
    backend.run_solve(&prepared, SolveArgs::new(&source, b.as_ref(), &mut x, report.view_mut()), &mut workspace)?;
    Ok(report)
}

/// The solutions of a batch of systems, where they were computed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Solution<T: Scalar, M: Memory = HostMemory> {
    /// The solutions; all NaN for a failed matrix.
    pub x: Batch<T, M>,
    /// One outcome a solution.
    pub report: Report<T, M>,
}

impl<T: Scalar> Solution<T> {
    /// Each solution and how its matrix fared.
    pub fn outcomes(&self) -> impl ExactSizeIterator<Item = (usize, Outcome)> + '_ {
        self.report.outcomes()
    }
}
