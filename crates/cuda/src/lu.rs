//! `A = P L U` on the device.

use batchla_core::{Backend, BatchedFactorize, Error, FactorizeArgs, Prepared, Scalar, Source};

use crate::backend::{Cuda, CudaPrepared};
use crate::driver::DevicePointer;
use crate::memory::DeviceMemory;
use crate::run::{DeviceFactors, Lying, Run};
use crate::workspace::CudaWorkspace;

impl<T: Scalar> BatchedFactorize<T> for Cuda {
    fn run_factorize(
        &self,
        prepared: &CudaPrepared,
        args: FactorizeArgs<'_, T, DeviceMemory>,
        workspace: &mut CudaWorkspace,
    ) -> Result<(), Error> {
        args.check(prepared.problem())?;
        let FactorizeArgs { source, lu, pivots, report, .. } = args;
        let out = Lying(lu.share());
        let a = match &source {
            Source::Matrix(a) => Lying(a.reborrow()),
            _ => Lying(lu.share()),
        };
        let (batch, outcomes) = (lu.batch(), &report.outcomes);
        let determinants = report.determinants.as_ref();
        let homes = [
            Some(out.home()),
            Some(a.home()),
            Some(pivots.stream()),
            Some(outcomes.stream()),
            determinants.map(|determinants| determinants.stream()),
        ];
        let run = Run::new(prepared, self.stream(), workspace, &homes)?;
        let factors = DeviceFactors {
            lu: out.operand(0, batch),
            pivots: DevicePointer(pivots.as_raw()),
            rows: DevicePointer(0),
            status: DevicePointer(outcomes.as_raw()),
        };
        run.getrf(a.operand(0, batch), &factors, batch)?;
        match determinants {
            Some(to) if prepared.problem().extras().determinant => {
                run.determinant(&factors, DevicePointer(to.as_raw()), batch)
            }
            _ => Ok(()),
        }
    }
}
