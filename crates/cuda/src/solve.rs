//! `op(A) X = B` on the device.

use batchla_core::{Backend, BatchedSolve, Error, Prepared, Scalar, SolveArgs, Transpose};

use crate::backend::{Cuda, CudaPrepared};
use crate::driver::DevicePointer;
use crate::factors::DeviceSource;
use crate::memory::DeviceMemory;
use crate::run::{Lying, Run};
use crate::workspace::CudaWorkspace;

impl<T: Scalar> BatchedSolve<T> for Cuda {
    fn run_solve(
        &self,
        prepared: &CudaPrepared,
        args: SolveArgs<'_, T, DeviceMemory>,
        workspace: &mut CudaWorkspace,
    ) -> Result<(), Error> {
        let problem = prepared.problem();
        args.check(problem)?;
        let SolveArgs { source, b, x, report, .. } = args;
        let (batch, order) = (x.batch(), problem.order());
        let x = Lying(x.share());
        let b = Lying(b.as_ref().map_or(x.0, |b| b.reborrow()));
        let Some(source) = DeviceSource::new(&source, None) else { return Ok(()) };
        let [a, pivots, given] = source.homes();
        let homes = [a, pivots, given, Some(b.home()), Some(x.home()), Some(report.outcomes.stream())];
        let run = Run::new(prepared, self.stream(), workspace, &homes)?;
        let form = match problem.transpose() {
            Transpose::None => 0,
            Transpose::Transpose => 1,
            Transpose::ConjugateTranspose => 2,
        };
        let results = DevicePointer(report.outcomes.as_raw());
        let status = run.scratch(run.parts().status);
        if let Some(a) = source.matrices(0, batch).filter(|_| batch > 0 && prepared.cuda_plan().solves_on_chip()) {
            return run.gesv(a, b.operand(0, batch), x.operand(0, batch), results, batch);
        }
        if source.batch() == 1 && batch > 1 {
            let factors = source.factored(&run, status, 0, 1, order)?;
            return run.getrs(&factors, true, b.operand(0, batch), x.operand(0, batch), results, batch, form);
        }
        for first in (0..batch).step_by(run.parts().chunk.max(1)) {
            let count = run.parts().chunk.min(batch - first);
            let factors = source.factored(&run, status, first, count, order)?;
            let to = DevicePointer(results.0 + first as u64 * 4);
            run.getrs(&factors, false, b.operand(first, batch), x.operand(first, batch), to, count, form)?;
        }
        Ok(())
    }
}
