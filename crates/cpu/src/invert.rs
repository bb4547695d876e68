//! Inversion: factors, then the inverse from them.

use batchla_core::{BatchedInvert, Error, HostMemory, InvertArgs, Outcome, Prepared};
use num_traits::Float;

use crate::backend::{Cpu, CpuPrepared, CpuScalar};
use crate::lu::{Factored, check_pivots};
use crate::parallel::Results;
use crate::scratch::{Columns, Square};
use crate::workspace::CpuWorkspace;

impl<T: CpuScalar> BatchedInvert<T> for Cpu {
    fn run_invert(
        &self,
        prepared: &CpuPrepared,
        args: InvertArgs<'_, T, HostMemory>,
        workspace: &mut CpuWorkspace,
    ) -> Result<(), Error> {
        let problem = prepared.problem();
        args.check(problem)?;
        let InvertArgs { source, x, report, .. } = args;
        check_pivots(&source, problem)?;
        let (threads, _) = workspace.places(prepared.shape(), self.threads())?.split();
        let results = Results::new(report, x.batch()).with_matrices(x);
        if let Some(engine) = prepared.cpu_plan().engine() {
            self.for_each_factored_group(prepared, engine, &source, threads, results, |factored, aside, to| {
                factored.invert(aside, to);
            });
            return Ok(());
        }
        self.for_each_factored(prepared, &source, threads, results, |factored, x, one| {
            let Factored { lu, outcome: factored, norm } = factored;
            let Some(mut inverse) = one.matrix else { return };
            let outcome = if factored.is_regular() { lu.invert(x) } else { factored };
            if outcome.is_regular() {
                x.unpack(&mut inverse);
            } else {
                inverse.fill_with(|_, _| T::nan());
            }
            *one.outcome = outcome.to_word();
            if let Some(determinant) = one.determinant {
                *determinant = lu.determinant(factored);
            }
            if let (Some(condition), Some(norm)) = (one.condition, norm) {
                *condition = match outcome {
                    Outcome::Regular => norm * x.one_norm(),
                    Outcome::Singular { .. } => Float::infinity(),
                    Outcome::NotFinite => Float::nan(),
                };
            }
        });
        Ok(())
    }
}

impl<T: CpuScalar> Square<T> {
    /// The inverse from finite factors with no zero on the diagonal.
    ///
    /// Where blocks overflow on the way, our own loops, which divide late, have the last word.
    fn invert(&self, x: &mut Columns<T>) -> Outcome {
        let (lu, ld) = (self.columns.as_slice(), self.columns.ld());
        if self.has_reciprocals() {
            T::invert_by_blocks(lu, x.as_mut_slice(), ld, &self.pivots);
            if x.finite() {
                return Outcome::Regular;
            }
        }
        T::invert_by_columns(lu, x.as_mut_slice(), ld, &self.pivots);
        if x.finite() { Outcome::Regular } else { Outcome::NotFinite }
    }
}
