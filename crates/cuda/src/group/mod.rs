//! Several GPUs as one: batches that lie in parts on each, worked on in one call.

mod memory;
mod run;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use batchla_core::{
    Backend, Batch, BatchLayout, Element, Error, ErrorKind, Explanation, Options, Plan, Prepared, Problem, Scalar,
};

pub use self::memory::{GroupArray, GroupMemory, GroupSlice, GroupSliceMut};
use crate::backend::{Cuda, CudaPrepared, explain_for, plan_for};
use crate::device::Device;
use crate::host::{describe, distinct};
use crate::stream::Stream;
use crate::workspace::CudaWorkspace;

/// Matrices that stay together on a GPU, so that interleaved batches can be divided as others.
const UNIT: usize = 32;

/// Several GPUs as one backend: a batch lies in parts, a stretch of matrices on each GPU, and every call works on all parts at once.
///
/// The peer of [`Cuda`]: data stays on the devices, runs only queue work. Batches of one matrix lie on every GPU, so that one matrix may serve all.
/// One plan, which all of the GPUs can run, is chosen for a batch, and bits are those of that plan on any one of them. For host batches there
/// is [`CudaHost`](crate::CudaHost), which also gives a slow GPU less to do.
///
/// ```no_run
/// use batchla_core::{Backend, Batch, BatchedInvert};
/// use batchla_cuda::CudaGroup;
///
/// let gpus = CudaGroup::all()?;
/// let host = Batch::<f64>::from_fn(10_000, 64, 64, |_, i, j| if i == j { 2.0 } else { 1.0 / (1 + i + j) as f64 })?;
/// let a = gpus.to_device(&host)?; // a part on each
/// let inverse = gpus.invert(&a)?; // perhaps still being computed
/// let inverse = gpus.to_host(&inverse.batch)?; // waits
/// # Ok::<(), batchla_core::Error>(())
/// ```
#[derive(Clone)]
pub struct CudaGroup {
    gpus: Arc<[Cuda]>,
    streams: Arc<Vec<Stream>>,
}

/// What [`CudaGroup`] prepares: one plan, and its kernels on each GPU.
#[derive(Debug)]
pub struct GroupPrepared {
    problem: Problem,
    devices: Vec<CudaPrepared>,
}

/// Scratch memory on each GPU for one run at a time of what was prepared.
#[derive(Debug)]
pub struct GroupWorkspace {
    devices: Vec<CudaWorkspace>,
}

impl CudaGroup {
    /// These GPUs, each with its stream.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] where there are none, or one is there twice.
    pub fn new(gpus: impl IntoIterator<Item = Cuda>) -> Result<Self, Error> {
        let gpus: Arc<[Cuda]> = gpus.into_iter().collect();
        distinct(gpus.iter())?;
        let streams = Arc::new(gpus.iter().map(|gpu| gpu.stream().clone()).collect());
        Ok(Self { gpus, streams })
    }

    /// Every GPU that the driver shows.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] where there is no driver or no GPU; what a device reports.
    pub fn all() -> Result<Self, Error> {
        // Where there is none, opening the first says why.
        let open = |ordinal| Cuda::on(&Device::open(ordinal)?);
        Self::new((0..Device::list()?.len().max(1)).map(open).collect::<Result<Vec<_>, _>>()?)
    }

    /// The GPUs.
    pub fn gpus(&self) -> &[Cuda] {
        &self.gpus
    }

    /// Which matrices of a batch lie on each GPU: equal stretches of whole multiples of 32, in the order of the GPUs. A batch of one lies on all.
    ///
    /// ```no_run
    /// let gpus = batchla_cuda::CudaGroup::all()?; // two
    /// assert_eq!(gpus.division(10_000), [0..5024, 5024..10_000]);
    /// assert_eq!((gpus.division(20), gpus.division(1)), (vec![0..20, 20..20], vec![0..1, 0..1]));
    /// # Ok::<(), batchla_core::Error>(())
    /// ```
    pub fn division(&self, batch: usize) -> Vec<Range<usize>> {
        let (units, gpus) = (batch.div_ceil(UNIT), self.gpus.len());
        if batch == 1 {
            return vec![0..1; gpus];
        }
        let mut start = 0;
        let part = |gpu: usize| {
            let end = batch.min(start + share(units, gpus, gpu) * UNIT);
            std::mem::replace(&mut start, end)..end
        };
        (0..gpus).map(part).collect()
    }
}

/// The units of a GPU: those that do not come out even go to the first.
fn share(units: usize, gpus: usize, gpu: usize) -> usize {
    units / gpus + usize::from(gpu < units % gpus)
}

impl fmt::Debug for CudaGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaGroup({})", self.describe())
    }
}

impl Prepared for GroupPrepared {
    fn problem(&self) -> &Problem {
        &self.problem
    }
    fn plan(&self) -> &dyn Plan {
        self.devices[0].plan()
    }
    fn workspace_bytes(&self) -> u64 {
        self.devices.iter().map(Prepared::workspace_bytes).sum()
    }
}

impl Backend for CudaGroup {
    type Memory = GroupMemory;
    type Stream = Vec<Stream>;
    type Prepared = GroupPrepared;
    type Workspace = GroupWorkspace;

    fn name(&self) -> &str {
        "cuda"
    }

    fn describe(&self) -> String {
        describe(self.gpus.iter())
    }

    fn stream(&self) -> &Vec<Stream> {
        &self.streams
    }

    fn prepare(&self, problem: &Problem, options: &Options) -> Result<GroupPrepared, Error> {
        let (plan, limits) = plan_for(self.gpus.iter(), problem, options)?;
        let units = problem.batch().div_ceil(UNIT);
        let device = |(number, gpu): (usize, &Cuda)| {
            // As many as a smaller batch may have there too.
            let most = share(units, self.gpus.len(), number).saturating_mul(UNIT).max(1).min(problem.batch());
            gpu.prepare_as(&problem.with_batch(most)?, plan.clone(), &limits)
        };
        let devices = self.gpus.iter().enumerate().map(device).collect::<Result<_, _>>()?;
        Ok(GroupPrepared { problem: problem.clone(), devices })
    }

    fn explain(&self, problem: &Problem, options: &Options) -> Result<Explanation, Error> {
        explain_for(self.gpus.iter(), problem, options)
    }

    fn workspace(&self, prepared: &GroupPrepared) -> Result<GroupWorkspace, Error> {
        let devices = self.gpus.iter().zip(&prepared.devices).map(|(gpu, prepared)| gpu.workspace(prepared));
        Ok(GroupWorkspace { devices: devices.collect::<Result<_, _>>()? })
    }

    /// Divided as a batch of `len` matrices of one element.
    fn allocate<E: Element>(&self, len: usize) -> Result<GroupArray<E>, Error> {
        self.allocate_each(len, 1)
    }

    fn allocate_each<E: Element>(&self, batch: usize, each: usize) -> Result<GroupArray<E>, Error> {
        let part = |(gpu, range): (&Cuda, Range<usize>)| gpu.allocate_each(range.len(), each);
        let parts = self.gpus.iter().zip(self.division(batch)).map(part).collect::<Result<_, _>>()?;
        Ok(GroupArray::of(parts, batch == 1))
    }

    /// Divided by matrices.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`]; [`ErrorKind::Unsupported`] where a stretch of matrices is no stretch of memory: 32 is no multiple of the lanes, or
    /// elements of all matrices are interleaved.
    fn allocate_batch<T: Scalar>(&self, layout: BatchLayout) -> Result<Batch<T, GroupMemory>, Error> {
        let (strides, span) = (layout.strides(), layout.span());
        let group = layout.with_batch(strides.lanes.min(layout.batch()))?.span();
        if layout.batch() > 1 && (!UNIT.is_multiple_of(strides.lanes) || group > strides.group) {
            let what = format!("{layout} cannot be divided over GPUs");
            return Err(Error::new(ErrorKind::Unsupported, "allocate", what)
                .advise("put matrices, or groups of 2, 4, 8, 16 or 32 interleaved ones, one after another"));
        }
        let part = |(gpu, range): (&Cuda, Range<usize>)| {
            let at =
                |matrix: usize| if matrix == layout.batch() { span } else { matrix / strides.lanes * strides.group };
            gpu.allocate(if range.is_empty() || span == 0 { 0 } else { at(range.end) - at(range.start) })
        };
        let parts = self.gpus.iter().zip(self.division(layout.batch())).map(part).collect::<Result<_, _>>()?;
        Batch::from_array(GroupArray::of(parts, layout.batch() == 1), layout)
    }

    fn write<E: Element>(&self, from: &[E], to: GroupSliceMut<'_, E>) -> Result<(), Error> {
        GroupMemory::write(from, to)
    }

    fn synchronize(&self) -> Result<(), Error> {
        // Each is waited for, whatever the others report.
        let all: Vec<_> = self.gpus.iter().map(Cuda::synchronize).collect();
        all.into_iter().collect()
    }
}
