//! LU factorisation with partial pivoting, and what can be done with factors.

use crate::backend::{Backend, ReportMut, check_operands};
use crate::batch::{Batch, BatchMut, BatchRef};
use crate::determinant::{BatchedDeterminant, Determinants, determinant_of};
use crate::error::{Error, ErrorKind};
use crate::invert::{BatchedInvert, Inverse, invert_source};
use crate::layout::BatchLayout;
use crate::memory::{HostMemory, Memory};
use crate::outcome::{Outcome, permutation};
use crate::plan::Options;
use crate::problem::{Extras, Operation, Problem, Transpose};
use crate::report::Report;
use crate::scalar::Scalar;
use crate::solve::{BatchedSolve, Solution, solve_in_place, solve_source};
use crate::source::{FactorsRef, Source};

/// What [`BatchedFactorize::run_factorize`] works on.
#[derive(Debug)]
#[non_exhaustive]
pub struct FactorizeArgs<'a, T: Scalar, M: Memory> {
    /// The matrices; [`Source::InPlace`] where they lie in `lu`. Never factors.
    pub source: Source<'a, T, M>,
    /// Out: `L` (unit diagonal, not stored) below, `U` on and above the diagonal.
    pub lu: BatchMut<'a, T, M>,
    /// Out: `n` 0-based exchanges a matrix, one matrix after another.
    pub pivots: M::SliceMut<'a, u32>,
    /// Out: outcomes, and the determinants where prepared.
    pub report: ReportMut<'a, T, M>,
}

impl<'a, T: Scalar, M: Memory> FactorizeArgs<'a, T, M> {
    /// Puts the operands together.
    pub fn new(
        source: &'a Source<'_, T, M>,
        lu: &'a mut BatchMut<'_, T, M>,
        pivots: M::SliceMut<'a, u32>,
        report: ReportMut<'a, T, M>,
    ) -> Self {
        Self { source: source.reborrow(), lu: lu.reborrow(), pivots, report }
    }

    /// Holds the operands against what was prepared; to be called first by every backend.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] naming both.
    pub fn check(&self, prepared: &Problem) -> Result<(), Error> {
        check_operands(Operation::Factorize, prepared, &self.source, None, Some(self.lu.layout()), &self.report)?;
        let (there, needed) = (M::slice_mut_len(&self.pivots), self.lu.batch() * prepared.order());
        if there < needed {
            return Err(Error::new(
                ErrorKind::Argument,
                "factorize",
                format!("{prepared} gives {needed} pivots, but there is room for {there}"),
            )
            .advise("give room for the order's pivots a matrix"));
        }
        Ok(())
    }
}

/// LU factorisation with partial pivoting: `A = P L U` for each square matrix of a batch.
///
/// Each column's pivot is the first row of largest `|x|` (`|re| + |im|` for complex types), whatever the layout: row-major
/// input is not factored as its transpose. Pivots are 0-based sequential exchanges.
///
/// **Numerics.** `‖PA − LU‖ / (n ‖A‖ ε) / max(1, growth)` below 30. A zero pivot does not stop the factorisation: the outcome names the first
/// ([`Outcome::Singular`]) and the factors are those of LAPACK's `getrf`. Pivots below `sfmin` are divided by, not multiplied with their
/// reciprocal. NaN and infinities stay within their matrix and make it [`Outcome::NotFinite`]. The same matrix gives the same bits
/// wherever it stands in whatever batch.
///
/// **Cost.** 2/3 n³ flops a matrix, four times that for complex types.
///
/// # For callers
/// The comfortable methods are prepare, allocate and run in one; on a device they may return before the work is done. A
/// program that runs the same shape again and again prepares once and calls [`BatchedFactorize::run_factorize`].
///
/// # For authors of a backend
/// A `run_` method **must** first call `args.check(prepared.problem())`; **must** write every element of its outputs that their layouts
/// name, every pivot and every outcome; **must** leave matrices, padding and the neighbours of a failed matrix alone; **may** use the
/// workspace as it likes and return while work is queued; **must not** allocate, compile, synchronise, write an input, or touch anything outside the
/// layouts' elements.
///
/// Source of the algorithm: partial pivoting as LAPACK's `getrf`; batched on GPUs, Liu et al. 2023.
#[doc(alias = "getrf")]
#[doc(alias = "dgetrf")]
#[doc(alias = "sgetrf")]
#[doc(alias = "zgetrf")]
#[doc(alias = "cgetrf")]
pub trait BatchedFactorize<T: Scalar>: Backend {
    /// Queues the factorisation of the prepared problem ([`Operation::Factorize`](crate::Operation::Factorize)).
    ///
    /// # Errors
    /// Where the operands are not those prepared, or the device fails.
    fn run_factorize(
        &self,
        prepared: &Self::Prepared,
        args: FactorizeArgs<'_, T, Self::Memory>,
        workspace: &mut Self::Workspace,
    ) -> Result<(), Error>;

    /// Factors a batch into memory of its own; the input is only read.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] for matrices that are not square; memory; the device.
    fn factorize<'a>(&self, a: impl Into<BatchRef<'a, T, Self::Memory>>) -> Result<Factors<Self, T>, Error> {
        let a = a.into();
        let layout = a.layout().packed()?;
        let mut lu = self.allocate_batch(layout)?;
        let record = factorize_into(
            self,
            Source::Matrix(a.reborrow()),
            *a.layout(),
            lu.view_mut(),
            Extras::none(),
            &Options::default(),
        )?;
        Ok(Factors { backend: self.clone(), lu, record })
    }

    /// Factors a batch in its own memory, which the factors keep.
    ///
    /// # Errors
    /// As [`BatchedFactorize::factorize`]; the batch is then lost.
    fn factorize_owned(&self, mut a: Batch<T, Self::Memory>) -> Result<Factors<Self, T>, Error> {
        let record = self.factorize_in_place(&mut a)?;
        Ok(Factors { backend: self.clone(), lu: a, record })
    }

    /// Factors a batch in its own memory, LAPACK's way: afterwards `a` holds `L` and `U`.
    ///
    /// # Errors
    /// As [`BatchedFactorize::factorize`].
    fn factorize_in_place<'a>(
        &self,
        a: impl Into<BatchMut<'a, T, Self::Memory>>,
    ) -> Result<LuRecord<T, Self::Memory>, Error> {
        let mut a = a.into();
        let layout = *a.layout();
        factorize_into(self, Source::InPlace, layout, a.reborrow(), Extras::none(), &Options::default())
    }
}

fn factorize_into<T: Scalar, B: BatchedFactorize<T>>(
    backend: &B,
    source: Source<'_, T, B::Memory>,
    a: BatchLayout,
    mut lu: BatchMut<'_, T, B::Memory>,
    extras: Extras,
    options: &Options,
) -> Result<LuRecord<T, B::Memory>, Error> {
    let problem = Problem::factorize::<T>(source.kind(), a, *lu.layout())?.with_extras(extras)?;
    let prepared = backend.prepare(&problem, options)?;
    let mut workspace = backend.workspace(&prepared)?;
    let mut pivots = backend.allocate_each::<u32>(a.batch(), a.rows())?;
    let mut report = Report::allocate(backend, a.batch(), extras)?;
    let args = FactorizeArgs::new(&source, &mut lu, B::Memory::slice_mut(&mut pivots), report.view_mut());
    backend.run_factorize(&prepared, args, &mut workspace)?;
    Ok(LuRecord { order: a.rows(), pivots, report })
}

/// What a factorisation in place leaves beside the factors: pivots and outcomes.
#[derive(Debug)]
pub struct LuRecord<T: Scalar, M: Memory = HostMemory> {
    order: usize,
    pivots: M::Array<u32>,
    report: Report<T, M>,
}

impl<T: Scalar, M: Memory> LuRecord<T, M> {
    /// The record, laid beside the factors that were left in place, ready for [`BatchedSolve::solve_factored`] and its kin.
    pub fn factors<'a>(&'a self, lu: impl Into<BatchRef<'a, T, M>>) -> FactorsRef<'a, T, M> {
        FactorsRef { lu: lu.into(), pivots: M::slice(&self.pivots), outcomes: self.report.outcome_words() }
    }

    /// Outcomes and extras.
    pub fn report(&self) -> &Report<T, M> {
        &self.report
    }

    /// Reads the 0-based exchanges, `n` a matrix, one matrix after another.
    ///
    /// # Errors
    /// What the device reports, also of earlier work.
    pub fn read_pivots(&self) -> Result<Vec<u32>, Error> {
        let mut pivots = vec![0; M::slice_len(&M::slice(&self.pivots))];
        M::read(M::slice(&self.pivots), &mut pivots)?;
        Ok(pivots)
    }
}

impl<T: Scalar> LuRecord<T> {
    /// The 0-based exchanges of matrix `b`, if there is one; [`lapack_pivots`](crate::lapack_pivots) gives LAPACK's `ipiv`.
    pub fn pivots(&self, b: usize) -> Option<&[u32]> {
        let at = b.checked_mul(self.order)?;
        (b < self.report.outcomes().len()).then(|| &self.pivots[at..at + self.order])
    }
}

/// The factors `A = P L U` of a batch, in the backend's memory; they solve, invert, and give the determinant.
#[derive(Debug)]
pub struct Factors<B: Backend, T: Scalar> {
    backend: B,
    lu: Batch<T, B::Memory>,
    record: LuRecord<T, B::Memory>,
}

impl<B: Backend, T: Scalar> Factors<B, T> {
    /// The packed factors: `L` (unit diagonal, not stored) below, `U` on and above the diagonal.
    pub fn lu(&self) -> &Batch<T, B::Memory> {
        &self.lu
    }

    /// Pivots and outcomes.
    pub fn record(&self) -> &LuRecord<T, B::Memory> {
        &self.record
    }

    /// All of it, borrowed.
    pub fn view(&self) -> FactorsRef<'_, T, B::Memory> {
        self.record.factors(&self.lu)
    }

    /// Solves `A X = B` in memory of its own. `b` has one or many columns; a batch of one serves every matrix, and one
    /// factored matrix serves every right-hand side.
    ///
    /// Solutions of a failed matrix are all NaN. Cost: 2 n² flops a right-hand side.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where `b` does not fit; memory; the device.
    #[doc(alias = "getrs")]
    pub fn solve<'b>(&self, b: impl Into<BatchRef<'b, T, B::Memory>>) -> Result<Solution<T, B::Memory>, Error>
    where
        B: BatchedSolve<T>,
    {
        self.solve_transposed(b, Transpose::None)
    }

    /// Solves `op(A) X = B`, else as [`Factors::solve`].
    ///
    /// # Errors
    /// As [`Factors::solve`].
    pub fn solve_transposed<'b>(
        &self,
        b: impl Into<BatchRef<'b, T, B::Memory>>,
        transpose: Transpose,
    ) -> Result<Solution<T, B::Memory>, Error>
    where
        B: BatchedSolve<T>,
    {
        solve_source(&self.backend, Source::Factors(self.view()), b.into(), transpose)
    }

    /// Solves `op(A) X = B` in the place of `B`.
    ///
    /// # Errors
    /// As [`Factors::solve`].
    pub fn solve_in_place<'b>(
        &self,
        b: impl Into<BatchMut<'b, T, B::Memory>>,
        transpose: Transpose,
    ) -> Result<Report<T, B::Memory>, Error>
    where
        B: BatchedSolve<T>,
    {
        solve_in_place(&self.backend, Source::Factors(self.view()), b.into(), transpose)
    }

    /// Inverts the factored matrices: `X = U⁻¹ L⁻¹ P⁻¹`. Cost: 4/3 n³ flops a matrix.
    ///
    /// # Errors
    /// Memory; the device.
    #[doc(alias = "getri")]
    pub fn invert(&self) -> Result<Inverse<T, B::Memory>, Error>
    where
        B: BatchedInvert<T>,
    {
        invert_source(&self.backend, Source::Factors(self.view()), Extras::none(), &Options::default())
    }

    /// Sign or phase and logarithm of each determinant.
    ///
    /// # Errors
    /// Memory; the device.
    pub fn determinant(&self) -> Result<Determinants<T, B::Memory>, Error>
    where
        B: BatchedDeterminant<T>,
    {
        determinant_of(&self.backend, Source::Factors(self.view()))
    }

    /// Multiplies `P L U` out again, on the host, in the type's own precision: for a look at what was factored. Cost: 2/3 n³ flops
    /// a matrix on one thread.
    ///
    /// # Errors
    /// Memory; what the device reports, also of earlier work.
    pub fn reconstruct(&self) -> Result<Batch<T>, Error> {
        let lu = self.backend.to_host(&self.lu)?;
        let pivots = self.record.read_pivots()?;
        let n = self.record.order;
        let mut a = Batch::zeros(lu.layout().packed()?)?;
        for (b, mut a) in a.view_mut().into_matrices().enumerate() {
            let rows = permutation(&pivots[b * n..(b + 1) * n]);
            let Some(lu) = lu.view().matrix(b) else { continue };
            for j in 0..n {
                for (i, &row) in rows.iter().enumerate() {
                    let inner = i.min(j + 1);
                    let mut sum: T = (0..inner).map(|k| lu.at(i, k) * lu.at(k, j)).sum();
                    if i <= j {
                        sum += lu.at(i, j);
                    }
                    a.set(row as usize, j, sum);
                }
            }
        }
        Ok(a)
    }
}

impl<B: Backend<Memory = HostMemory>, T: Scalar> Factors<B, T> {
    /// Each matrix and how it fared.
    pub fn outcomes(&self) -> impl ExactSizeIterator<Item = (usize, Outcome)> + '_ {
        self.record.report.outcomes()
    }

    /// The 0-based exchanges of matrix `b`, if there is one.
    pub fn pivots(&self, b: usize) -> Option<&[u32]> {
        self.record.pivots(b)
    }
}
