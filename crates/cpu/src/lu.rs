//! Factorisation, and the step that every operation begins with: a matrix's factors, in scratch memory.

use batchla_core::{
    BatchRef, BatchedFactorize, Determinant, Error, ErrorKind, FactorizeArgs, HostMemory, MatrixRef, Outcome, Prepared,
    Problem, Scalar, Source,
};
use num_traits::Float;

use crate::backend::{Cpu, CpuPrepared, CpuScalar};
use crate::getrf::getrf;
use crate::interleaved::getrf_interleaved;
use crate::parallel::{One, Results};
use crate::plan::CpuPlan;
use crate::scratch::{Columns, Group, Scratch, Square, Threads};
use crate::vector::LANES;
use crate::workspace::CpuWorkspace;

/// What was taken from a source into scratch memory.
#[derive(Clone, Copy)]
enum Taken {
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
        let plan = prepared.cpu_plan();
        self.for_each(prepared, threads, results, |Scratch { group, x }, mut results| {
            loop {
                let mut ones: [Option<One<'_, T>>; LANES] = [const { None }; LANES];
                let mut taken = [Taken::Nothing; LANES];
                let mut norms = [None; LANES];
                let mut count = 0;
                for (square, one) in group.squares.iter_mut().zip(results.by_ref()) {
                    taken[count] = square.take(source, one.index, one.matrix.as_ref().map(|a| a.share()));
                    norms[count] = one.condition.is_some().then(|| square.columns.one_norm());
                    ones[count] = Some(one);
                    count += 1;
                }
                if count == 0 {
                    return;
                }
                let outcomes = group.factor(taken, count, plan);
                for (lane, one) in ones.into_iter().enumerate() {
                    let (Some(one), Some(lu)) = (one, group.squares.get(lane)) else { break };
                    finish(Factored { lu, outcome: outcomes[lane], norm: norms[lane] }, x, one);
                }
            }
        });
    }
}

impl<T: CpuScalar> Group<T> {
    /// Takes over the matrix that serves all, and factors it unless it comes as factors.
    pub(crate) fn factor_one(&mut self, source: &Source<'_, T, HostMemory>, plan: &CpuPlan) -> Outcome {
        let mut taken = [Taken::Nothing; LANES];
        if let Some(square) = self.squares.first_mut() {
            taken[0] = square.take(source, 0, None);
        }
        self.factor(taken, 1, plan)[0]
    }

    /// Factors what was taken, unless it came as factors.
    ///
    /// What is not finite in the matrix or on the way is so in the factors too: no operation of the factorisation
    /// puts a finite number in its place. So looking through the factors is enough.
    fn factor(&mut self, taken: [Taken; LANES], count: usize, plan: &CpuPlan) -> [Outcome; LANES] {
        let mut outcomes = [Outcome::NotFinite; LANES];
        let mut zero_pivots = [None; LANES];
        if plan.together() > 1 && matches!(taken[0], Taken::Matrix) {
            getrf_interleaved(&mut self.squares[..count], &mut self.lanes, &mut zero_pivots);
        }
        for (lane, square) in self.squares.iter_mut().take(count).enumerate() {
            let ld = square.columns.ld();
            let outcome = match taken[lane] {
                Taken::Matrix => {
                    if plan.together() == 1 {
                        zero_pivots[lane] = getrf(square.columns.as_mut_slice(), ld, &mut square.pivots, plan.panel());
                    }
                    zero_pivots[lane].map_or(Outcome::Regular, |column| Outcome::Singular { column })
                }
                Taken::Factors(outcome) => outcome,
                Taken::Nothing => continue,
            };
            if square.columns.finite() {
                outcomes[lane] = outcome;
            }
        }
        outcomes
    }
}

impl<T: Scalar> Square<T> {
    /// Takes over matrix `index` of a source, or the one that serves all.
    fn take(&mut self, source: &Source<'_, T, HostMemory>, index: usize, in_place: Option<MatrixRef<'_, T>>) -> Taken {
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
    match exchanges.iter().position(|&p| p as usize >= order) {
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
        self.for_each_factored(prepared, &source, threads, results, |factored, _, one| {
            let Factored { lu: a, outcome, .. } = factored;
            let Some(mut lu) = one.matrix else { return };
            lu.copy_from_columns(a.columns.as_slice(), a.columns.ld());
            one.pivots.copy_from_slice(&a.pivots);
            *one.outcome = outcome.to_word();
            if let Some(determinant) = one.determinant {
                *determinant = a.determinant(outcome);
            }
        });
        Ok(())
    }
}
