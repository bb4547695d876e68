//! A device backend over host memory: upload, run, download.

use crate::array::HostArray;
use crate::backend::{Backend, ReportMut};
use crate::batch::{Batch, BatchMut, BatchRef};
use crate::determinant::{BatchedDeterminant, DeterminantArgs};
use crate::error::Error;
use crate::explanation::Explanation;
use crate::factorize::{BatchedFactorize, FactorizeArgs};
use crate::invert::{BatchedInvert, InvertArgs};
use crate::memory::{Element, HostMemory, Memory};
use crate::plan::{Options, Plan, Prepared};
use crate::problem::{Extras, Problem};
use crate::report::Report;
use crate::scalar::Scalar;
use crate::solve::{BatchedSolve, SolveArgs};
use crate::source::{FactorsRef, Source};

/// Runs host batches on a backend with memory of its own: each run uploads its operands (dense, in their order), runs, and
/// downloads the results; gaps of the caller's layouts are not written.
///
/// Runs allocate on the device and wait for it: code that keeps its data on the device uses the backend itself.
#[derive(Clone, Debug)]
pub struct Staged<B: Backend>(B);

/// What [`Staged`] prepares: the caller's problem, and the device's over dense layouts.
#[derive(Debug)]
pub struct StagedPrepared<P> {
    problem: Problem,
    device: P,
}

impl<B: Backend> Staged<B> {
    /// Host batches on `backend`.
    pub fn new(backend: B) -> Self {
        Self(backend)
    }

    /// The backend underneath.
    pub fn device(&self) -> &B {
        &self.0
    }
}

impl<P: Prepared> Prepared for StagedPrepared<P> {
    fn problem(&self) -> &Problem {
        &self.problem
    }
    fn plan(&self) -> &dyn Plan {
        self.device.plan()
    }
    fn workspace_bytes(&self) -> u64 {
        self.device.workspace_bytes()
    }
}

impl<B: Backend> Backend for Staged<B> {
    type Memory = HostMemory;
    type Stream = B::Stream;
    type Prepared = StagedPrepared<B::Prepared>;
    type Workspace = B::Workspace;

    fn name(&self) -> &str {
        self.0.name()
    }
    fn describe(&self) -> String {
        self.0.describe()
    }
    fn stream(&self) -> &B::Stream {
        self.0.stream()
    }
    fn prepare(&self, problem: &Problem, options: &Options) -> Result<Self::Prepared, Error> {
        let device = self.0.prepare(&problem.packed()?, options)?;
        Ok(StagedPrepared { problem: problem.clone(), device })
    }
    fn explain(&self, problem: &Problem, options: &Options) -> Result<Explanation, Error> {
        self.0.explain(&problem.packed()?, options)
    }
    fn workspace(&self, prepared: &Self::Prepared) -> Result<B::Workspace, Error> {
        self.0.workspace(&prepared.device)
    }
    fn allocate<E: Element>(&self, len: usize) -> Result<HostArray<E>, Error> {
        HostArray::zeroed(len)
    }
    fn write<E: Element>(&self, from: &[E], to: &mut [E]) -> Result<(), Error> {
        HostMemory::write(from, to)
    }
    fn synchronize(&self) -> Result<(), Error> {
        self.0.synchronize()
    }
}

/// A source in device memory.
enum DeviceSource<T: Scalar, M: Memory> {
    InPlace,
    Matrix(Batch<T, M>),
    Factors { lu: Batch<T, M>, pivots: M::Array<u32>, outcomes: M::Array<u32> },
}

impl<T: Scalar, M: Memory> DeviceSource<T, M> {
    fn upload<B: Backend<Memory = M>>(backend: &B, source: &Source<'_, T, HostMemory>) -> Result<Self, Error> {
        Ok(match source {
            Source::InPlace => Self::InPlace,
            Source::Matrix(a) => Self::Matrix(backend.to_device(a)?),
            Source::Factors(factors) => {
                let (batch, n) = (factors.lu.batch(), factors.lu.layout().rows());
                Self::Factors {
                    lu: backend.to_device(factors.lu)?,
                    pivots: upload(backend, factors.pivots, batch, n)?,
                    outcomes: upload(backend, factors.outcomes, batch, 1)?,
                }
            }
        })
    }

    fn view(&self) -> Source<'_, T, M> {
        match self {
            Self::InPlace => Source::InPlace,
            Self::Matrix(a) => Source::Matrix(a.view()),
            Self::Factors { lu, pivots, outcomes } => {
                Source::Factors(FactorsRef { lu: lu.view(), pivots: M::slice(pivots), outcomes: M::slice(outcomes) })
            }
        }
    }
}

fn upload<E: Element, B: Backend>(
    backend: &B,
    from: &[E],
    batch: usize,
    each: usize,
) -> Result<<B::Memory as Memory>::Array<E>, Error> {
    let mut array = backend.allocate_each(batch, each)?;
    backend.write(&from[..batch * each], B::Memory::slice_mut(&mut array))?;
    Ok(array)
}

/// Device memory for results: with the host's content where the source is in place, else zeros.
fn result<T: Scalar, B: Backend>(
    backend: &B,
    host: BatchRef<'_, T>,
    filled: bool,
) -> Result<Batch<T, B::Memory>, Error> {
    if filled { backend.to_device(host) } else { backend.allocate_batch(host.layout().packed()?) }
}

fn download<T: Scalar, B: Backend>(
    backend: &B,
    from: &Batch<T, B::Memory>,
    mut to: BatchMut<'_, T>,
) -> Result<(), Error> {
    to.copy_from(&backend.to_host(from)?.view())
}

fn download_report<T: Scalar, M: Memory>(from: &Report<T, M>, to: ReportMut<'_, T, HostMemory>) -> Result<(), Error> {
    let outcomes = from.read_outcomes()?;
    for (to, outcome) in to.outcomes.iter_mut().zip(&outcomes) {
        *to = outcome.to_word();
    }
    if let (Some(to), Some(values)) = (to.determinants, from.read_determinants()?) {
        to[..values.len()].copy_from_slice(&values);
    }
    if let (Some(to), Some(values)) = (to.conditions, from.read_conditions()?) {
        to[..values.len()].copy_from_slice(&values);
    }
    Ok(())
}

fn extras<P: Prepared>(prepared: &StagedPrepared<P>) -> Extras {
    prepared.problem.extras()
}

impl<T: Scalar, B: BatchedFactorize<T>> BatchedFactorize<T> for Staged<B> {
    fn run_factorize(
        &self,
        prepared: &Self::Prepared,
        args: FactorizeArgs<'_, T, HostMemory>,
        workspace: &mut B::Workspace,
    ) -> Result<(), Error> {
        args.check(&prepared.problem)?;
        let batch = args.lu.batch();
        let source = DeviceSource::upload(&self.0, &args.source)?;
        let mut lu = result(&self.0, args.lu.share(), matches!(source, DeviceSource::InPlace))?;
        let mut pivots = self.0.allocate_each(batch, prepared.problem.order())?;
        let mut report = Report::allocate(&self.0, batch, extras(prepared))?;
        self.0.run_factorize(
            &prepared.device,
            FactorizeArgs::new(
                &source.view(),
                &mut lu.view_mut(),
                B::Memory::slice_mut(&mut pivots),
                report.view_mut(),
            ),
            workspace,
        )?;
        let len = batch * prepared.problem.order();
        B::Memory::read(B::Memory::slice(&pivots), &mut args.pivots[..len])?;
        download(&self.0, &lu, args.lu)?;
        download_report(&report, args.report)
    }
}

impl<T: Scalar, B: BatchedInvert<T>> BatchedInvert<T> for Staged<B> {
    fn run_invert(
        &self,
        prepared: &Self::Prepared,
        args: InvertArgs<'_, T, HostMemory>,
        workspace: &mut B::Workspace,
    ) -> Result<(), Error> {
        args.check(&prepared.problem)?;
        let source = DeviceSource::upload(&self.0, &args.source)?;
        let mut x = result(&self.0, args.x.share(), matches!(source, DeviceSource::InPlace))?;
        let mut report = Report::allocate(&self.0, args.x.batch(), extras(prepared))?;
        self.0.run_invert(
            &prepared.device,
            InvertArgs::new(&source.view(), &mut x.view_mut(), report.view_mut()),
            workspace,
        )?;
        download(&self.0, &x, args.x)?;
        download_report(&report, args.report)
    }
}

impl<T: Scalar, B: BatchedSolve<T>> BatchedSolve<T> for Staged<B> {
    fn run_solve(
        &self,
        prepared: &Self::Prepared,
        args: SolveArgs<'_, T, HostMemory>,
        workspace: &mut B::Workspace,
    ) -> Result<(), Error> {
        args.check(&prepared.problem)?;
        let source = DeviceSource::upload(&self.0, &args.source)?;
        let b = args.b.as_ref().map(|b| self.0.to_device(b)).transpose()?;
        let mut x = result(&self.0, args.x.share(), b.is_none())?;
        let mut report = Report::allocate(&self.0, args.x.batch(), extras(prepared))?;
        self.0.run_solve(
            &prepared.device,
            SolveArgs::new(&source.view(), b.as_ref().map(Batch::view).as_ref(), &mut x.view_mut(), report.view_mut()),
            workspace,
        )?;
        download(&self.0, &x, args.x)?;
        download_report(&report, args.report)
    }
}

impl<T: Scalar, B: BatchedDeterminant<T>> BatchedDeterminant<T> for Staged<B> {
    fn run_determinant(
        &self,
        prepared: &Self::Prepared,
        args: DeterminantArgs<'_, T, HostMemory>,
        workspace: &mut B::Workspace,
    ) -> Result<(), Error> {
        args.check(&prepared.problem)?;
        let source = DeviceSource::upload(&self.0, &args.source)?;
        let batch = source.view().layout().map_or(0, |layout| layout.batch());
        let mut report = Report::allocate(&self.0, batch, extras(prepared))?;
        self.0.run_determinant(&prepared.device, DeterminantArgs::new(&source.view(), report.view_mut()), workspace)?;
        download_report(&report, args.report)
    }
}
