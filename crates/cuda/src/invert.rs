//! `A⁻¹` on the device.

use batchla_core::{Backend, BatchedInvert, Determinant, Error, InvertArgs, Prepared, Scalar};

use crate::backend::{Cuda, CudaPrepared};
use crate::driver::DevicePointer;
use crate::factors::DeviceSource;
use crate::memory::DeviceMemory;
use crate::operand::Operand;
use crate::run::{Lying, Run};
use crate::workspace::CudaWorkspace;

impl<T: Scalar> BatchedInvert<T> for Cuda {
    fn run_invert(
        &self,
        prepared: &CudaPrepared,
        args: InvertArgs<'_, T, DeviceMemory>,
        workspace: &mut CudaWorkspace,
    ) -> Result<(), Error> {
        let problem = prepared.problem();
        args.check(problem)?;
        let InvertArgs { source, x, report, .. } = args;
        let (batch, order) = (x.batch(), problem.order());
        let x = Lying(x.share());
        let Some(source) = DeviceSource::new(&source, Some(x.0.reborrow())) else { return Ok(()) };
        let (outcomes, determinants, conditions) = (&report.outcomes, &report.determinants, &report.conditions);
        let [a, pivots, given] = source.homes();
        let homes = [
            a,
            pivots,
            given,
            Some(x.home()),
            Some(outcomes.stream()),
            determinants.as_ref().map(|to| to.stream()),
            conditions.as_ref().map(|to| to.stream()),
        ];
        let run = Run::new(prepared, self.stream(), workspace, &homes)?;
        let element = |raw: u64, at: usize, bytes: usize| DevicePointer(raw + (at * bytes) as u64);
        let determinants = determinants.as_ref().filter(|_| problem.extras().determinant).map(|to| to.as_raw());
        let conditions = conditions.as_ref().filter(|_| problem.extras().condition).map(|to| to.as_raw());

        for first in (0..batch).step_by(run.parts().chunk.max(1)) {
            let count = run.parts().chunk.min(batch - first);
            let status = element(outcomes.as_raw(), first, 4);
            let condition = conditions.map(|raw| element(raw, first, size_of::<T::Real>()));
            if let (Some(to), Some(a)) = (condition, source.matrices(first, batch)) {
                run.lange(a, None, to, count)?;
            }
            let determinant = determinants.map(|raw| element(raw, first, size_of::<Determinant<T>>()));
            match source.matrices(first, batch).filter(|_| prepared.cuda_plan().inverts_on_chip()) {
                Some(a) => {
                    run.getrf_getri(a, x.operand(first, batch), determinant.unwrap_or_default(), status, count)?;
                }
                None => {
                    let factors = source.factored(&run, status, first, count, order)?;
                    // Before the factors' place is overwritten.
                    determinant.map_or(Ok(()), |to| run.determinant(&factors, to, count))?;
                    let unknown = Operand::columns(run.scratch(run.parts().unknown), prepared.cuda_plan().leading());
                    run.getri(&factors, unknown, x.operand(first, batch), count)?;
                }
            }
            if let Some(to) = condition {
                run.lange(x.operand(first, batch), Some(status), to, count)?;
            }
        }
        Ok(())
    }
}
