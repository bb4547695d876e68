//! The operations on host batches: what goes up with a chunk, what runs on it, what comes down.

use batchla_core::{
    Backend, BatchLayout, BatchMut, BatchRef, BatchedDeterminant, BatchedFactorize, BatchedInvert, BatchedSolve,
    Determinant, DeterminantArgs, Error, FactorizeArgs, HostMemory, InvertArgs, Operation, Prepared, ReportMut, Scalar,
    SolveArgs, Source,
};

use super::CudaHost;
use super::pipeline::{Leg, Run};
use super::prepared::{CudaHostPrepared, CudaHostWorkspace};
use super::slot::{Chunk, SlotParts, group_bytes};
use crate::backend::Cuda;
use crate::staging::Side;
use crate::workspace::CudaWorkspace;

/// The operands of a run, as host memory that goes up and comes down.
struct Operands {
    batch: usize,
    one_matrix: bool,
    one_right: bool,
    up: Vec<Leg>,
    down: Vec<Leg>,
}

/// `count` elements for each matrix.
fn each<E>(start: *mut E, count: usize, part: u64, shared: bool) -> Leg {
    Leg { side: Side::plain(start.cast()), group_bytes: count * size_of::<E>(), lanes: 1, part, shared }
}

fn batch<T: Scalar>(start: *mut T, layout: &BatchLayout, part: u64, shared: bool) -> Leg {
    let side = Side::of(start.cast(), layout, size_of::<T>());
    Leg { side, group_bytes: group_bytes(layout, T::KIND), lanes: layout.strides().lanes, part, shared }
}

impl Operands {
    /// Those of a run that was checked. `right`: right-hand sides that are not in the results' place.
    fn new<T: Scalar>(
        prepared: &CudaHostPrepared,
        source: &Source<'_, T, HostMemory>,
        right: Option<&BatchRef<'_, T>>,
        out: Option<BatchMut<'_, T>>,
        pivots: Option<&mut [u32]>,
        report: ReportMut<'_, T, HostMemory>,
    ) -> Self {
        let (parts, problem): (&SlotParts, _) = (&prepared.parts, prepared.problem());
        let matrices = source.layout().map(BatchLayout::batch);
        let count = out.as_ref().map(BatchMut::batch).or(matrices).unwrap_or(0);
        let shared = |operand: usize| operand == 1 && count != 1;
        let one_matrix = matrices.is_some_and(shared);
        let one_right = right.is_some_and(|right| shared(right.batch()));
        let (mut up, mut down) = (Vec::new(), Vec::new());
        match source {
            Source::InPlace => {}
            Source::Matrix(a) => up.push(batch(a.span().as_ptr().cast_mut(), a.layout(), parts.a, one_matrix)),
            Source::Factors(factors) => {
                up.push(batch(factors.lu.span().as_ptr().cast_mut(), factors.lu.layout(), parts.a, one_matrix));
                up.push(each(factors.pivots.as_ptr().cast_mut(), problem.order(), parts.pivots, one_matrix));
                up.push(each(factors.outcomes.as_ptr().cast_mut(), 1, parts.given, one_matrix));
            }
        }
        up.extend(right.map(|right| batch(right.span().as_ptr().cast_mut(), right.layout(), parts.b, one_right)));
        if let Some(out) = out {
            let layout = *out.layout();
            let results = batch(out.into_span().as_mut_ptr(), &layout, parts.out, false);
            // What is overwritten goes up first.
            let overwritten =
                matches!(source, Source::InPlace) || problem.operation() == Operation::Solve && right.is_none();
            up.extend(overwritten.then_some(results));
            down.push(results);
        }
        down.extend(pivots.map(|pivots| each(pivots.as_mut_ptr(), problem.order(), parts.pivots, false)));
        down.push(each(report.outcomes.as_mut_ptr(), 1, parts.outcomes, false));
        let extras = problem.extras();
        let determinants = report.determinants.filter(|_| extras.determinant);
        down.extend(determinants.map(|to| each::<Determinant<T>>(to.as_mut_ptr(), 1, parts.determinants, false)));
        let conditions = report.conditions.filter(|_| extras.condition);
        down.extend(conditions.map(|to| each::<T::Real>(to.as_mut_ptr(), 1, parts.conditions, false)));
        Self { batch: count, one_matrix, one_right, up, down }
    }
}

impl CudaHost {
    /// Takes the operands through the GPUs, each chunk through `kernels`.
    fn through(
        &self,
        prepared: &CudaHostPrepared,
        workspace: &mut CudaHostWorkspace,
        operands: &Operands,
        kernels: impl Fn(&Cuda, &Chunk<'_>, &mut CudaWorkspace) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        workspace.check(self, prepared)?;
        let launch = |number: usize, scratch: &mut CudaWorkspace, start: u64, count: usize| {
            let gpu = &self.lanes[number].gpu;
            let chunk = Chunk {
                prepared: &prepared.devices[number],
                parts: &prepared.parts,
                start,
                stream: gpu.stream(),
                count,
                one_matrix: operands.one_matrix,
                one_right: operands.one_right,
            };
            kernels(gpu, &chunk, scratch)
        };
        let (operation, sizes) = (prepared.problem().operation().name(), [operands.batch, prepared.chunk]);
        let run = Run::new(operation, sizes, [&operands.up, &operands.down], &launch);
        // SAFETY: the operands of a run that was checked, borrowed by the caller until it returns; results are its alone.
        unsafe { run.through(self, &mut workspace.devices) }
    }
}

impl<T: Scalar> BatchedFactorize<T> for CudaHost {
    fn run_factorize(
        &self,
        prepared: &CudaHostPrepared,
        args: FactorizeArgs<'_, T, HostMemory>,
        workspace: &mut CudaHostWorkspace,
    ) -> Result<(), Error> {
        args.check(prepared.problem())?;
        let FactorizeArgs { source, lu, pivots, report, .. } = args;
        let operands = Operands::new(prepared, &source, None, Some(lu), Some(pivots), report);
        self.through(prepared, workspace, &operands, |gpu, chunk, scratch| {
            let pivots = chunk.slice_mut(chunk.parts.pivots, chunk.count * chunk.prepared.problem().order());
            let (source, mut lu) = (chunk.source::<T>()?, chunk.out()?);
            gpu.run_factorize(chunk.prepared, FactorizeArgs::new(&source, &mut lu, pivots, chunk.report()), scratch)
        })
    }
}

impl<T: Scalar> BatchedInvert<T> for CudaHost {
    fn run_invert(
        &self,
        prepared: &CudaHostPrepared,
        args: InvertArgs<'_, T, HostMemory>,
        workspace: &mut CudaHostWorkspace,
    ) -> Result<(), Error> {
        args.check(prepared.problem())?;
        let InvertArgs { source, x, report, .. } = args;
        let operands = Operands::new(prepared, &source, None, Some(x), None, report);
        self.through(prepared, workspace, &operands, |gpu, chunk, scratch| {
            let (source, mut x) = (chunk.source::<T>()?, chunk.out()?);
            gpu.run_invert(chunk.prepared, InvertArgs::new(&source, &mut x, chunk.report()), scratch)
        })
    }
}

impl<T: Scalar> BatchedSolve<T> for CudaHost {
    fn run_solve(
        &self,
        prepared: &CudaHostPrepared,
        args: SolveArgs<'_, T, HostMemory>,
        workspace: &mut CudaHostWorkspace,
    ) -> Result<(), Error> {
        args.check(prepared.problem())?;
        let SolveArgs { source, b, x, report, .. } = args;
        let operands = Operands::new(prepared, &source, b.as_ref(), Some(x), None, report);
        self.through(prepared, workspace, &operands, |gpu, chunk, scratch| {
            let (source, b, mut x) = (chunk.source::<T>()?, chunk.right()?, chunk.out()?);
            gpu.run_solve(chunk.prepared, SolveArgs::new(&source, b.as_ref(), &mut x, chunk.report()), scratch)
        })
    }
}

impl<T: Scalar> BatchedDeterminant<T> for CudaHost {
    fn run_determinant(
        &self,
        prepared: &CudaHostPrepared,
        args: DeterminantArgs<'_, T, HostMemory>,
        workspace: &mut CudaHostWorkspace,
    ) -> Result<(), Error> {
        args.check(prepared.problem())?;
        let DeterminantArgs { source, report, .. } = args;
        let operands = Operands::new(prepared, &source, None, None, None, report);
        self.through(prepared, workspace, &operands, |gpu, chunk, scratch| {
            let source = chunk.source::<T>()?;
            gpu.run_determinant(chunk.prepared, DeterminantArgs::new(&source, chunk.report()), scratch)
        })
    }
}
