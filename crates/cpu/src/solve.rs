//! Solution: factors, then substitution; one matrix that serves many right-hand sides is factored once.

use batchla_core::{BatchedSolve, Error, HostMemory, MatrixRef, Outcome, Prepared, SolveArgs, Transpose};

use crate::backend::{Cpu, CpuPrepared, CpuScalar};
use crate::lu::{check_pivots, serving};
use crate::parallel::{One, Results};
use crate::scratch::{Columns, Square};
use crate::workspace::CpuWorkspace;

impl<T: CpuScalar> BatchedSolve<T> for Cpu {
    fn run_solve(
        &self,
        prepared: &CpuPrepared,
        args: SolveArgs<'_, T, HostMemory>,
        workspace: &mut CpuWorkspace,
    ) -> Result<(), Error> {
        let problem = prepared.problem();
        args.check(problem)?;
        let SolveArgs { source, b, x, report, .. } = args;
        check_pivots(&source, problem)?;
        let (threads, shared) = workspace.places(prepared.shape(), self.threads())?.split();
        let transpose = problem.transpose();
        let one_serves_all = x.batch() > 1 && source.layout().is_some_and(|a| a.batch() == 1);
        let results = Results::new(report, x.batch()).with_matrices(x);

        let finish = |lu: &Square<T>, factored: Outcome, x: &mut Columns<T>, one: One<'_, T>| {
            let Some(mut solution) = one.matrix else { return };
            let given = match &b {
                None => Some(solution.share()),
                Some(b) => serving(b, one.index),
            };
            let outcome = match given {
                Some(given) if factored.is_regular() => lu.solve(x, given, transpose),
                _ => factored,
            };
            if outcome.is_regular() {
                x.unpack(&mut solution);
            } else {
                solution.fill_with(|_, _| T::nan());
            }
            *one.outcome = outcome.to_word();
        };
        if let Some(engine) = prepared.cpu_plan().engine() {
            if one_serves_all {
                let place = (threads, &mut shared.group);
                self.solve_with_one(prepared, engine, &source, place, results, (b.as_ref(), transpose));
            } else {
                self.for_each_factored_group(prepared, engine, &source, threads, results, |lu, aside, to| {
                    let x = (aside.x, lu.team);
                    lu.solve(x, b.as_ref(), transpose, to);
                });
            }
        } else if one_serves_all {
            let shared = &mut shared.a;
            let taken = shared.take(&source, 0, None);
            let outcome = shared.factor(taken);
            let lu = &*shared;
            self.for_each(prepared, threads, results, |scratch, results, _| {
                results.for_each(|one| finish(lu, outcome, &mut scratch.x, one));
            });
        } else {
            self.for_each_factored(prepared, &source, threads, results, |factored, x, one| {
                finish(factored.lu, factored.outcome, x, one);
            });
        }
        Ok(())
    }
}

impl<T: CpuScalar> Square<T> {
    /// The solutions for right-hand sides `b`, from finite factors with no zero on the diagonal.
    ///
    /// Where blocks overflow on the way, our own loops, which divide late, have the last word.
    fn solve(&self, x: &mut Columns<T>, b: MatrixRef<'_, T>, transpose: Transpose) -> Outcome {
        let (lu, ld) = (self.columns.as_slice(), self.columns.ld());
        x.pack(b);
        if self.has_reciprocals() {
            T::solve_by_blocks(lu, x.as_mut_slice(), ld, &self.pivots, transpose);
            if x.finite() {
                return Outcome::Regular;
            }
            x.pack(b);
        }
        T::solve_by_columns(lu, x.as_mut_slice(), ld, &self.pivots, transpose);
        if x.finite() { Outcome::Regular } else { Outcome::NotFinite }
    }
}
