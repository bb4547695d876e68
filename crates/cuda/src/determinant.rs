//! `det A` on the device.

use batchla_core::{Backend, BatchedDeterminant, Determinant, DeterminantArgs, Error, Prepared, Scalar};

use crate::backend::{Cuda, CudaPrepared};
use crate::driver::DevicePointer;
use crate::factors::DeviceSource;
use crate::memory::DeviceMemory;
use crate::run::Run;
use crate::workspace::CudaWorkspace;

impl<T: Scalar> BatchedDeterminant<T> for Cuda {
    fn run_determinant(
        &self,
        prepared: &CudaPrepared,
        args: DeterminantArgs<'_, T, DeviceMemory>,
        workspace: &mut CudaWorkspace,
    ) -> Result<(), Error> {
        let problem = prepared.problem();
        args.check(problem)?;
        let DeterminantArgs { source, report, .. } = args;
        let (Some(source), Some(to)) = (DeviceSource::new(&source, None), &report.determinants) else { return Ok(()) };
        let (batch, order) = (source.batch(), problem.order());
        let [a, pivots, given] = source.homes();
        let homes = [a, pivots, given, Some(report.outcomes.stream()), Some(to.stream())];
        let run = Run::new(prepared, self.stream(), workspace, &homes)?;
        let (status, to) = (DevicePointer(report.outcomes.as_raw()), DevicePointer(to.as_raw()));
        if let Some(factors) = source.given(0, batch, order) {
            run.spread(factors.status, 1, status, batch)?;
            return run.determinant(&factors, to, batch);
        }
        for first in (0..batch).step_by(run.parts().chunk.max(1)) {
            let count = run.parts().chunk.min(batch - first);
            let part = DevicePointer(status.0 + first as u64 * 4);
            let factors = source.factored(&run, part, first, count, order)?;
            run.determinant(&factors, DevicePointer(to.0 + (first * size_of::<Determinant<T>>()) as u64), count)?;
        }
        Ok(())
    }
}
