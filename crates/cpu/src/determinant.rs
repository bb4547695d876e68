//! Determinants: a factorisation of which only the diagonal is kept.

use batchla_core::{BatchLayout, BatchedDeterminant, DeterminantArgs, Error, HostMemory, Prepared};

use crate::backend::{Cpu, CpuPrepared, CpuScalar};
use crate::lu::{Factored, check_pivots};
use crate::parallel::Results;
use crate::workspace::CpuWorkspace;

impl<T: CpuScalar> BatchedDeterminant<T> for Cpu {
    fn run_determinant(
        &self,
        prepared: &CpuPrepared,
        args: DeterminantArgs<'_, T, HostMemory>,
        workspace: &mut CpuWorkspace,
    ) -> Result<(), Error> {
        let problem = prepared.problem();
        args.check(problem)?;
        let DeterminantArgs { source, report, .. } = args;
        check_pivots(&source, problem)?;
        let (threads, _) = workspace.places(prepared.shape(), self.threads())?.split();
        let results = Results::new(report, source.layout().map_or(0, BatchLayout::batch));
        if let Some(engine) = prepared.cpu_plan().engine() {
            self.for_each_factored_group(prepared, engine, &source, threads, results, |factored, _, mut to| {
                factored.report(&mut to);
            });
            return Ok(());
        }
        self.for_each_factored(prepared, &source, threads, results, |Factored { lu, outcome, .. }, _, one| {
            *one.outcome = outcome.to_word();
            if let Some(determinant) = one.determinant {
                *determinant = lu.determinant(outcome);
            }
        });
        Ok(())
    }
}
