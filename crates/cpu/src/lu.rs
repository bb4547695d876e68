//! Factorisation, and the step that every operation begins with: a matrix's factors, in scratch memory.

use batchla_core::{
    BatchRef, BatchedFactorize, Determinant, Error, ErrorKind, FactorizeArgs, HostMemory, MatrixMut, MatrixRef,
    Outcome, Prepared, Problem, Scalar, Source,
};
use num_traits::Float;

use crate::backend::{Cpu, CpuPrepared, CpuScalar};
use crate::parallel::{One, Results};
use crate::scratch::{Columns, Scratch, Square, Threads};
use crate::workspace::CpuWorkspace;

/// What was taken from a source into scratch memory.
#[derive(Clone, Copy)]
pub(crate) enum Taken {
    /// A matrix, not yet factored.
    Matrix,
    /// The factors of one, and how it fared.
    Factors(Outcome),
    /// Nothing: the source has no such matrix.
    Nothing,
}

/// A matrix on its way through an operation.
pub(crate) struct Factored<'a, T: Scalar> {
    /// Its factors.
    pub(crate) lu: &'a Square<T>,
    /// How it fared.
    pub(crate) outcome: Outcome,
    /// `‖A‖₁`, where the condition number is wanted.
    pub(crate) norm: Option<T::Real>,
}

impl Cpu {
    /// Takes each matrix of a source over, factors it unless it comes as factors, and lets `finish` do the rest, with a place
    /// for its result.
    pub(crate) fn for_each_factored<T: CpuScalar>(
        &self,
        prepared: &CpuPrepared,
        source: &Source<'_, T, HostMemory>,
        threads: Threads<'_, T>,
        results: Results<'_, T>,
        finish: impl Fn(Factored<'_, T>, &mut Columns<T>, One<'_, T>) + Sync,
    ) {
        self.for_each(prepared, threads, results, |Scratch { a, x, .. }, results, _| {
            for one in results {
                let taken = a.take(source, one.index, one.matrix.as_ref().map(MatrixMut::share));
                let norm = one.condition.is_some().then(|| a.columns.one_norm());
                let outcome = a.factor(taken);
                finish(Factored { lu: a, outcome, norm }, x, one);
            }
        });
    }
}

impl<T: CpuScalar> Square<T> {
    /// Takes over matrix `index` of a source, or the one that serves all.
    pub(crate) fn take(
        &mut self,
        source: &Source<'_, T, HostMemory>,
        index: usize,
        in_place: Option<MatrixRef<'_, T>>,
    ) -> Taken {
        let (from, taken) = match source {
            Source::InPlace => (in_place, Taken::Matrix),
            Source::Matrix(a) => (serving(a, index), Taken::Matrix),
            Source::Factors(factors) => {
                let b = if factors.lu.batch() == 1 { 0 } else { index };
                let order = self.pivots.len();
                self.pivots.copy_from_slice(&factors.pivots[b * order..(b + 1) * order]);
                (serving(&factors.lu, index), Taken::Factors(Outcome::from_word(factors.outcomes[b])))
            }
        };
        let Some(from) = from else { return Taken::Nothing };
        self.columns.pack(from);
        taken
    }

    /// Factors what was taken, unless it came as factors.
    ///
    /// What is not finite in the matrix or on the way is so in the factors too: no operation of the factorisation
    /// puts a finite number in its place. So looking through the factors is enough.
    pub(crate) fn factor(&mut self, taken: Taken) -> Outcome {
        let ld = self.columns.ld();
        let outcome = match taken {
            Taken::Matrix => match T::factor_recursively(self.columns.as_mut_slice(), ld, &mut self.pivots) {
                Some(column) => Outcome::Singular { column },
                None => Outcome::Regular,
            },
            Taken::Factors(outcome) => outcome,
            Taken::Nothing => Outcome::NotFinite,
        };
        if self.columns.finite() { outcome } else { Outcome::NotFinite }
    }
}

impl<T: Scalar> Square<T> {
    /// `U`'s diagonal.
    fn diagonal(&self, k: usize) -> T {
        self.columns.as_slice()[k * self.columns.ld() + k]
    }

    /// The determinant of the matrix whose factors these are.
    pub(crate) fn determinant(&self, outcome: Outcome) -> Determinant<T> {
        Determinant::from_factors(outcome, |k| self.diagonal(k), &self.pivots)
    }

    /// Whether blocks may be used from here on: faer multiplies with reciprocals of the diagonal, complex ones by way of
    /// the square of the modulus, and these must keep clear of overflow and underflow.
    pub(crate) fn has_reciprocals(&self) -> bool {
        let eight = T::Real::from_f64(8.0, 0.0);
        let (least, most) = (T::SAFE_MINIMUM * eight, (T::SAFE_MINIMUM * eight).recip());
        (0..self.pivots.len()).map(|k| self.diagonal(k).abs1()).all(|size| size >= least && size <= most)
    }
}

/// Matrix `index` of a batch, or the one that serves all.
pub(crate) fn serving<'a, T: Scalar>(batch: &BatchRef<'a, T>, index: usize) -> Option<MatrixRef<'a, T>> {
    batch.matrix(if batch.batch() == 1 { 0 } else { index })
}

/// Refuses factors whose exchanges are none: they come from the caller, and are used as indices.
pub(crate) fn check_pivots<T: CpuScalar>(source: &Source<'_, T, HostMemory>, problem: &Problem) -> Result<(), Error> {
    let Source::Factors(factors) = source else { return Ok(()) };
    let order = problem.order();
    let exchanges = &factors.pivots[..factors.lu.batch() * order];
    let valid = |at: usize, p: u32| (at % order..order).contains(&(p as usize));
    match exchanges.iter().enumerate().position(|(at, &p)| !valid(at, p)) {
        None => Ok(()),
        Some(at) => {
            let what = format!("exchange {} with row {} in a matrix of order {order}", at % order, exchanges[at]);
            Err(Error::new(ErrorKind::Argument, problem.operation().name(), what)
                .advise("pass the exchanges as they were written, counted from 0"))
        }
    }
}

impl<T: CpuScalar> BatchedFactorize<T> for Cpu {
    fn run_factorize(
        &self,
        prepared: &CpuPrepared,
        args: FactorizeArgs<'_, T, HostMemory>,
        workspace: &mut CpuWorkspace,
    ) -> Result<(), Error> {
        let problem = prepared.problem();
        args.check(problem)?;
        let (threads, _) = workspace.places(prepared.shape(), self.threads())?.split();
        let FactorizeArgs { source, lu, pivots, report, .. } = args;
        let results = Results::new(report, lu.batch()).with_matrices(lu).with_pivots(pivots, problem.order());
        if let Some(engine) = prepared.cpu_plan().engine() {
            self.for_each_factored_group(prepared, engine, &source, threads, results, |factored, _, to| {
                factored.unpack_factors(to);
            });
            return Ok(());
        }
        self.for_each_factored(prepared, &source, threads, results, |factored, _, one| {
            let Factored { lu: a, outcome, .. } = factored;
            let Some(mut lu) = one.matrix else { return };
            a.columns.unpack(&mut lu);
            one.pivots.copy_from_slice(&a.pivots);
            *one.outcome = outcome.to_word();
            if let Some(determinant) = one.determinant {
                *determinant = a.determinant(outcome);
            }
        });
        Ok(())
    }
}
