//! The operations on batches in parts: each GPU is given its own.

use batchla_core::{
    BatchLayout, BatchMut, BatchRef, BatchedDeterminant, BatchedFactorize, BatchedInvert, BatchedSolve, Determinant,
    DeterminantArgs, Element, Error, ErrorKind, FactorizeArgs, FactorsRef, InvertArgs, ReportMut, Scalar, SolveArgs,
    Source,
};

use super::memory::GroupMemory;
use super::{CudaGroup, GroupPrepared, GroupWorkspace};
use crate::backend::{Cuda, CudaPrepared};
use crate::memory::{DeviceArray, DeviceMemory};
use crate::workspace::CudaWorkspace;

/// The part of an array that lies on a GPU.
fn at<E: Element>(parts: &[DeviceArray<E>], gpu: usize) -> Result<&DeviceArray<E>, Error> {
    parts.get(gpu).ok_or_else(|| missing(parts.len()))
}

fn at_mut<E: Element>(parts: &mut [DeviceArray<E>], gpu: usize) -> Result<&mut DeviceArray<E>, Error> {
    let there = parts.len();
    parts.get_mut(gpu).ok_or_else(|| missing(there))
}

fn missing(there: usize) -> Error {
    Error::new(ErrorKind::Argument, "run", format!("an operand has {there} parts, and there are more GPUs"))
        .advise("use memory of this group of GPUs")
}

/// The part of a batch that lies on a GPU; one matrix that serves all is there whole.
fn part<'a, T: Scalar>(
    batch: &BatchRef<'a, T, GroupMemory>,
    gpu: usize,
    count: usize,
) -> Result<BatchRef<'a, T, DeviceMemory>, Error> {
    let layout = of(batch.layout(), count)?;
    // SAFETY: a whole array of elements.
    unsafe { BatchRef::from_span(at(batch.span().parts(), gpu)?.slice(), layout) }
}

fn of(layout: &BatchLayout, count: usize) -> Result<BatchLayout, Error> {
    if layout.batch() == 1 { Ok(*layout) } else { layout.with_batch(count) }
}

fn source<'a, T: Scalar>(
    source: &Source<'a, T, GroupMemory>,
    gpu: usize,
    count: usize,
) -> Result<Source<'a, T, DeviceMemory>, Error> {
    Ok(match source {
        Source::InPlace => Source::InPlace,
        Source::Matrix(a) => Source::Matrix(part(a, gpu, count)?),
        Source::Factors(factors) => Source::Factors(FactorsRef {
            lu: part(&factors.lu, gpu, count)?,
            pivots: at(factors.pivots.parts(), gpu)?.slice(),
            outcomes: at(factors.outcomes.parts(), gpu)?.slice(),
        }),
    })
}

/// Results, in parts.
struct Out<'a, T: Scalar> {
    layout: BatchLayout,
    parts: &'a mut [DeviceArray<T>],
}

impl<'a, T: Scalar> Out<'a, T> {
    fn new(batch: BatchMut<'a, T, GroupMemory>) -> Self {
        Self { layout: *batch.layout(), parts: batch.into_span().into_parts() }
    }

    fn part(&mut self, gpu: usize, count: usize) -> Result<BatchMut<'_, T, DeviceMemory>, Error> {
        let layout = of(&self.layout, count)?;
        // SAFETY: a whole array of elements.
        unsafe { BatchMut::from_span(at_mut(self.parts, gpu)?.slice_mut(), layout) }
    }
}

/// A report, in parts.
struct Reports<'a, T: Scalar> {
    outcomes: &'a mut [DeviceArray<u32>],
    determinants: Option<&'a mut [DeviceArray<Determinant<T>>]>,
    conditions: Option<&'a mut [DeviceArray<T::Real>]>,
}

impl<'a, T: Scalar> Reports<'a, T> {
    fn new(report: ReportMut<'a, T, GroupMemory>) -> Self {
        Self {
            outcomes: report.outcomes.into_parts(),
            determinants: report.determinants.map(|to| to.into_parts()),
            conditions: report.conditions.map(|to| to.into_parts()),
        }
    }

    fn part(&mut self, gpu: usize) -> Result<ReportMut<'_, T, DeviceMemory>, Error> {
        let mut report = ReportMut::new(at_mut(self.outcomes, gpu)?.slice_mut());
        if let Some(to) = &mut self.determinants {
            report = report.with_determinants(at_mut(to, gpu)?.slice_mut());
        }
        if let Some(to) = &mut self.conditions {
            report = report.with_conditions(at_mut(to, gpu)?.slice_mut());
        }
        Ok(report)
    }
}

/// A GPU's part of a run.
struct Part<'a> {
    gpu: &'a Cuda,
    number: usize,
    /// Results that lie there.
    count: usize,
    prepared: &'a CudaPrepared,
    scratch: &'a mut CudaWorkspace,
}

impl CudaGroup {
    /// Queues each GPU's part of a run over so many results.
    fn each(
        &self,
        prepared: &GroupPrepared,
        workspace: &mut GroupWorkspace,
        batch: usize,
        mut queue: impl FnMut(Part<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (gpus, there) = (self.gpus.len(), [prepared.devices.len(), workspace.devices.len()]);
        if there != [gpus; 2] {
            let what = format!("prepared for {} GPUs, with workspace of {}, on {gpus}", there[0], there[1]);
            return Err(Error::new(ErrorKind::Argument, prepared.problem.operation().name(), what)
                .advise("run with what this group of GPUs prepared"));
        }
        let devices = prepared.devices.iter().zip(&mut workspace.devices);
        for (((number, gpu), (prepared, scratch)), range) in
            self.gpus.iter().enumerate().zip(devices).zip(self.division(batch))
        {
            if !range.is_empty() {
                queue(Part { gpu, number, count: range.len(), prepared, scratch })?;
            }
        }
        Ok(())
    }
}

impl<T: Scalar> BatchedFactorize<T> for CudaGroup {
    fn run_factorize(
        &self,
        prepared: &GroupPrepared,
        args: FactorizeArgs<'_, T, GroupMemory>,
        workspace: &mut GroupWorkspace,
    ) -> Result<(), Error> {
        args.check(&prepared.problem)?;
        let FactorizeArgs { source: a, lu, pivots, report, .. } = args;
        let (batch, pivots) = (lu.batch(), pivots.into_parts());
        let (mut out, mut report) = (Out::new(lu), Reports::new(report));
        self.each(prepared, workspace, batch, |Part { gpu, number, count, prepared, scratch }| {
            let (a, mut lu) = (source(&a, number, count)?, out.part(number, count)?);
            let pivots = at_mut(pivots, number)?.slice_mut();
            gpu.run_factorize(prepared, FactorizeArgs::new(&a, &mut lu, pivots, report.part(number)?), scratch)
        })
    }
}

impl<T: Scalar> BatchedInvert<T> for CudaGroup {
    fn run_invert(
        &self,
        prepared: &GroupPrepared,
        args: InvertArgs<'_, T, GroupMemory>,
        workspace: &mut GroupWorkspace,
    ) -> Result<(), Error> {
        args.check(&prepared.problem)?;
        let InvertArgs { source: a, x, report, .. } = args;
        let batch = x.batch();
        let (mut out, mut report) = (Out::new(x), Reports::new(report));
        self.each(prepared, workspace, batch, |Part { gpu, number, count, prepared, scratch }| {
            let (a, mut x) = (source(&a, number, count)?, out.part(number, count)?);
            gpu.run_invert(prepared, InvertArgs::new(&a, &mut x, report.part(number)?), scratch)
        })
    }
}

impl<T: Scalar> BatchedSolve<T> for CudaGroup {
    fn run_solve(
        &self,
        prepared: &GroupPrepared,
        args: SolveArgs<'_, T, GroupMemory>,
        workspace: &mut GroupWorkspace,
    ) -> Result<(), Error> {
        args.check(&prepared.problem)?;
        let SolveArgs { source: a, b, x, report, .. } = args;
        let batch = x.batch();
        let (mut out, mut report) = (Out::new(x), Reports::new(report));
        self.each(prepared, workspace, batch, |Part { gpu, number, count, prepared, scratch }| {
            let (a, mut x) = (source(&a, number, count)?, out.part(number, count)?);
            let b = b.as_ref().map(|b| part(b, number, count)).transpose()?;
            gpu.run_solve(prepared, SolveArgs::new(&a, b.as_ref(), &mut x, report.part(number)?), scratch)
        })
    }
}

impl<T: Scalar> BatchedDeterminant<T> for CudaGroup {
    fn run_determinant(
        &self,
        prepared: &GroupPrepared,
        args: DeterminantArgs<'_, T, GroupMemory>,
        workspace: &mut GroupWorkspace,
    ) -> Result<(), Error> {
        args.check(&prepared.problem)?;
        let DeterminantArgs { source: a, report, .. } = args;
        let (batch, mut report) = (a.layout().map_or(0, BatchLayout::batch), Reports::new(report));
        self.each(prepared, workspace, batch, |Part { gpu, number, count, prepared, scratch }| {
            let a = source(&a, number, count)?;
            gpu.run_determinant(prepared, DeterminantArgs::new(&a, report.part(number)?), scratch)
        })
    }
}
