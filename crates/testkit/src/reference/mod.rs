//! The plain backend that every other is measured against: textbook loops, one matrix after another, on one thread.

mod lu;
mod substitution;

use std::any::Any;
use std::fmt;

use batchla_core::{
    Backend, BatchLayout, BatchMut, BatchedDeterminant, BatchedFactorize, BatchedInvert, BatchedSolve, Complex,
    Determinant, DeterminantArgs, Element, Error, ErrorKind, FactorizeArgs, FactorsRef, HostArray, HostMemory,
    InvertArgs, MatrixMut, MatrixRef, Options, Outcome, Plan, Prepared, Problem, Rejection, Scalar, ScalarKind,
    SolveArgs, Source, Transpose,
};
use num_traits::{Float, zero};

/// Textbook LU, substitution, inversion and determinants over host memory.
///
/// Slow and plain, so that it can be read and believed; checked in its own tests against matrices worked by hand. Complex division is
/// [`Scalar::divide`], safe against overflow on the way.
///
/// ```
/// use batchla_core::{Batch, BatchedInvert};
/// use batchla_testkit::Reference;
///
/// let a = Batch::<f64>::from_fn(1, 2, 2, |_, i, j| [[4.0, 3.0], [6.0, 3.0]][i][j])?;
/// let x = Reference.invert(&a)?.batch;
/// assert_eq!(x.get(0, 1, 0), Some(1.0));
/// # Ok::<(), batchla_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

/// The one plan of [`Reference`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Textbook;

/// A problem that [`Reference`] will run.
#[derive(Clone, Debug)]
pub struct ReferencePrepared {
    problem: Problem,
    workspace: usize,
}

/// Scratch of [`Reference`]: a `Vec` of the problem's scalar, and pivots.
#[derive(Debug)]
pub struct ReferenceWorkspace {
    numbers: Box<dyn Any + Send>,
    pivots: Vec<u32>,
}

impl fmt::Display for Textbook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("textbook: one matrix after another on one thread")
    }
}

impl Plan for Textbook {
    fn name(&self) -> &str {
        "textbook"
    }
    fn arithmetic(&self) -> &str {
        "textbook"
    }
}

impl Prepared for ReferencePrepared {
    fn problem(&self) -> &Problem {
        &self.problem
    }
    fn plan(&self) -> &dyn Plan {
        &Textbook
    }
    fn workspace_bytes(&self) -> u64 {
        (self.workspace * self.problem.scalar().bytes() + 4 * self.problem.order()) as u64
    }
}

impl Backend for Reference {
    type Memory = HostMemory;
    type Stream = ();
    type Prepared = ReferencePrepared;
    type Workspace = ReferenceWorkspace;

    fn name(&self) -> &str {
        "reference"
    }
    fn describe(&self) -> String {
        "reference: textbook loops on one thread".to_owned()
    }
    fn stream(&self) -> &() {
        &()
    }
    fn prepare(&self, problem: &Problem, options: &Options) -> Result<ReferencePrepared, Error> {
        if let Some(plan) = options.plan.as_ref().filter(|&plan| plan != Textbook.name()) {
            let reason = "there is no such plan; the plans are: textbook".to_owned();
            return Err(Rejection { plan: plan.clone(), reason }.into_error(problem));
        }
        let n = problem.order();
        // The matrix and one column beside it.
        let workspace = n.checked_add(1).and_then(|columns| n.checked_mul(columns)).ok_or_else(|| {
            Error::new(ErrorKind::OutOfMemory, problem.operation().name(), format!("order {n} overflows 64 bits"))
                .advise("use smaller matrices")
        })?;
        Ok(ReferencePrepared { problem: problem.clone(), workspace })
    }
    fn workspace(&self, prepared: &ReferencePrepared) -> Result<ReferenceWorkspace, Error> {
        let len = prepared.workspace;
        let numbers: Box<dyn Any + Send> = match prepared.problem.scalar() {
            ScalarKind::F32 => Box::new(HostArray::<f32>::zeroed(len)?),
            ScalarKind::F64 => Box::new(HostArray::<f64>::zeroed(len)?),
            ScalarKind::C32 => Box::new(HostArray::<Complex<f32>>::zeroed(len)?),
            ScalarKind::C64 => Box::new(HostArray::<Complex<f64>>::zeroed(len)?),
        };
        Ok(ReferenceWorkspace { numbers, pivots: vec![0; prepared.problem.order()] })
    }
    fn allocate<E: Element>(&self, len: usize) -> Result<HostArray<E>, Error> {
        HostArray::zeroed(len)
    }
    fn write<E: Element>(&self, from: &[E], to: &mut [E]) -> Result<(), Error> {
        HostMemory::write(from, to)
    }
    fn synchronize(&self) -> Result<(), Error> {
        Ok(())
    }
}

impl ReferenceWorkspace {
    fn scratch<T: Scalar>(&mut self, n: usize) -> Result<Scratch<'_, T>, Error> {
        let small = || {
            Error::new(ErrorKind::Argument, "run", format!("the workspace is not one for {} of order {n}", T::KIND))
                .advise("run with the workspace of what was prepared")
        };
        let numbers = self.numbers.downcast_mut::<HostArray<T>>().ok_or_else(small)?;
        if numbers.len() < n * (n + 1) || self.pivots.len() < n {
            return Err(small());
        }
        let (matrix, column) = numbers.split_at_mut(n * n);
        let matrix = BatchMut::new(matrix, BatchLayout::column_major(1, n, n)?)?.into_matrices().next();
        Ok(Scratch { matrix: matrix.ok_or_else(small)?, column: &mut column[..n], pivots: &mut self.pivots[..n] })
    }
}

/// A matrix, a column and pivots of one order.
struct Scratch<'a, T: Scalar> {
    matrix: MatrixMut<'a, T>,
    column: &'a mut [T],
    pivots: &'a mut [u32],
}

/// Factors of one matrix, borrowed from a batch or just made.
struct Factored<'a, T: Scalar> {
    lu: MatrixRef<'a, T>,
    pivots: &'a [u32],
    outcome: Outcome,
}

impl<'a, T: Scalar> Factored<'a, T> {
    /// Matrix `b` of a batch of factors.
    fn borrowed(factors: &FactorsRef<'a, T, HostMemory>, b: usize) -> Option<Self> {
        let n = factors.lu.layout().rows();
        let pivots = &factors.pivots[b * n..(b + 1) * n];
        // Exchanges that are none come from the caller, not from a factorisation: no solution, and no panic.
        let valid = pivots.iter().all(|&p| (p as usize) < n);
        let outcome = if valid { Outcome::from_word(factors.outcomes[b]) } else { Outcome::NotFinite };
        Some(Self { lu: factors.lu.matrix(b)?, pivots, outcome })
    }

    /// Factors `a` in `lu`.
    fn made(a: MatrixRef<'_, T>, lu: &'a mut MatrixMut<'_, T>, pivots: &'a mut [u32]) -> Self {
        lu.fill_with(|i, j| a.at(i, j));
        let outcome = lu::factor(lu, pivots);
        Self { lu: lu.share(), pivots, outcome }
    }

    fn determinant(&self) -> Determinant<T> {
        Determinant::from_factors(self.outcome, |k| self.lu.at(k, k), self.pivots)
    }
}

/// `max_j sum_i |a_ij|` of a finite matrix.
fn one_norm<T: Scalar>(a: &MatrixRef<'_, T>) -> T::Real {
    let column = |j| (0..a.rows()).map(|i| a.at(i, j).modulus()).sum();
    (0..a.cols()).map(column).fold(zero(), Float::max)
}

impl<T: Scalar> BatchedFactorize<T> for Reference {
    fn run_factorize(
        &self,
        prepared: &ReferencePrepared,
        args: FactorizeArgs<'_, T, HostMemory>,
        _workspace: &mut ReferenceWorkspace,
    ) -> Result<(), Error> {
        args.check(&prepared.problem)?;
        let n = prepared.problem.order();
        let FactorizeArgs { source, lu, pivots, mut report, .. } = args;
        for (b, mut lu) in lu.into_matrices().enumerate() {
            if let Source::Matrix(a) = &source
                && let Some(a) = a.matrix(b)
            {
                lu.fill_with(|i, j| a.at(i, j));
            }
            let pivots = &mut pivots[b * n..(b + 1) * n];
            let outcome = lu::factor(&mut lu, pivots);
            report.outcomes[b] = outcome.to_word();
            if let Some(determinants) = &mut report.determinants {
                determinants[b] = Factored { lu: lu.share(), pivots, outcome }.determinant();
            }
        }
        Ok(())
    }
}

impl<T: Scalar> BatchedInvert<T> for Reference {
    fn run_invert(
        &self,
        prepared: &ReferencePrepared,
        args: InvertArgs<'_, T, HostMemory>,
        workspace: &mut ReferenceWorkspace,
    ) -> Result<(), Error> {
        args.check(&prepared.problem)?;
        let InvertArgs { source, x, mut report, .. } = args;
        let Scratch { mut matrix, column: row, pivots } = workspace.scratch::<T>(prepared.problem.order())?;
        for (b, mut x) in x.into_matrices().enumerate() {
            let mut norm = zero();
            let factored = match &source {
                Source::Factors(factors) => Factored::borrowed(factors, b),
                Source::Matrix(a) => a.matrix(b).map(|a| {
                    norm = one_norm(&a);
                    Factored::made(a, &mut matrix, pivots)
                }),
                Source::InPlace => {
                    norm = one_norm(&x.share());
                    Some(Factored::made(x.share(), &mut matrix, pivots))
                }
            };
            let Some(factored) = factored else { continue };
            let outcome = invert(&factored, row, &mut x);
            report.outcomes[b] = outcome.to_word();
            if let Some(determinants) = &mut report.determinants {
                determinants[b] = factored.determinant();
            }
            if let Some(conditions) = &mut report.conditions {
                conditions[b] = match outcome {
                    Outcome::Regular => norm * one_norm(&x.share()),
                    Outcome::Singular { .. } => Float::infinity(),
                    Outcome::NotFinite => Float::nan(),
                };
            }
        }
        Ok(())
    }
}

/// Row `i` of `X = A⁻¹` solves `Aᵀ y = e_i`: by rows the left residual `I − XA` is small, by columns the right one would be.
fn invert<T: Scalar>(factored: &Factored<'_, T>, row: &mut [T], x: &mut MatrixMut<'_, T>) -> Outcome {
    let mut outcome = factored.outcome;
    if outcome.is_regular() {
        for i in 0..x.rows() {
            row.fill(zero());
            row[i] = num_traits::one();
            substitution::solve(factored.lu, factored.pivots, Transpose::Transpose, row);
            for (j, &y) in row.iter().enumerate() {
                x.set(i, j, y);
            }
            if !row.iter().all(|y| y.finite()) {
                outcome = Outcome::NotFinite;
            }
        }
    }
    if !outcome.is_regular() {
        x.fill_with(|_, _| T::nan());
    }
    outcome
}

impl<T: Scalar> BatchedSolve<T> for Reference {
    fn run_solve(
        &self,
        prepared: &ReferencePrepared,
        args: SolveArgs<'_, T, HostMemory>,
        workspace: &mut ReferenceWorkspace,
    ) -> Result<(), Error> {
        args.check(&prepared.problem)?;
        let SolveArgs { source, b: right, x, report, .. } = args;
        let Scratch { mut matrix, column, pivots } = workspace.scratch::<T>(prepared.problem.order())?;
        let one_of = |batch: usize, b: usize| if batch == 1 { 0 } else { b };
        for (b, mut x) in x.into_matrices().enumerate() {
            let factored = match &source {
                Source::Factors(factors) => Factored::borrowed(factors, one_of(factors.lu.batch(), b)),
                Source::Matrix(a) => a.matrix(one_of(a.batch(), b)).map(|a| Factored::made(a, &mut matrix, pivots)),
                Source::InPlace => None,
            };
            let Some(factored) = factored else { continue };
            if let Some(right) = right.as_ref().and_then(|right| right.matrix(one_of(right.batch(), b))) {
                x.fill_with(|i, j| right.at(i, j));
            }
            let mut outcome = factored.outcome;
            for j in (0..x.cols()).filter(|_| factored.outcome.is_regular()) {
                (0..x.rows()).for_each(|i| column[i] = x.at(i, j));
                substitution::solve(factored.lu, factored.pivots, prepared.problem.transpose(), column);
                (0..x.rows()).for_each(|i| x.set(i, j, column[i]));
                if outcome.is_regular() && !column.iter().all(|y| y.finite()) {
                    outcome = Outcome::NotFinite;
                }
            }
            if !outcome.is_regular() {
                x.fill_with(|_, _| T::nan());
            }
            report.outcomes[b] = outcome.to_word();
        }
        Ok(())
    }
}

impl<T: Scalar> BatchedDeterminant<T> for Reference {
    fn run_determinant(
        &self,
        prepared: &ReferencePrepared,
        args: DeterminantArgs<'_, T, HostMemory>,
        workspace: &mut ReferenceWorkspace,
    ) -> Result<(), Error> {
        args.check(&prepared.problem)?;
        let DeterminantArgs { source, mut report, .. } = args;
        let Scratch { mut matrix, pivots, .. } = workspace.scratch::<T>(prepared.problem.order())?;
        for b in 0..source.layout().map_or(0, BatchLayout::batch) {
            let factored = match &source {
                Source::Factors(factors) => Factored::borrowed(factors, b),
                Source::Matrix(a) => a.matrix(b).map(|a| Factored::made(a, &mut matrix, pivots)),
                Source::InPlace => None,
            };
            let Some(factored) = factored else { continue };
            report.outcomes[b] = factored.outcome.to_word();
            if let Some(determinants) = &mut report.determinants {
                determinants[b] = factored.determinant();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
