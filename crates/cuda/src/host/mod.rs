//! Host batches on one or several GPUs: in chunks, with copies up, kernels and copies down at the same time.
//!
//! | step | question | file |
//! | --- | --- | --- |
//! | 1 | which plan, and how many matrices at a time? | `prepared.rs`, `slot.rs` |
//! | 2 | what goes up with a chunk, what runs, and what comes down? | `run.rs` |
//! | 3 | who takes which chunk when, and what waits for what? | `pipeline.rs` |
//! | 4 | how do bytes move? | `../staging` |

mod pipeline;
mod prepared;
mod run;
mod slot;

use std::fmt;
use std::sync::Arc;

use batchla_core::{Backend, Element, Error, ErrorKind, Explanation, HostArray, HostMemory, Options, Problem};

use self::prepared::Division;
pub use self::prepared::{CudaHostPrepared, CudaHostWorkspace};
use crate::backend::{Cuda, explain_for};
use crate::device::Device;
use crate::environment::Environment;
use crate::stream::Stream;

/// Host batches on one GPU or on several: LU, inverse, solve and determinant from host memory to host memory.
///
/// A batch goes through the device in chunks. While one is computed, the next is copied up and the one before is copied down, so a long run takes as
/// long as the slowest of the three. Page-locked memory ([`PinnedArray`](crate::PinnedArray)) is copied directly; other memory goes through page-locked
/// buffers that several threads fill and empty, and reaches about two thirds of the link's rate. Device memory bounds no batch: chunks are as large
/// as helps, and as fits [`CudaHost::with_memory_bytes`].
///
/// Several GPUs take chunks from one queue, so a slow one takes fewer. One plan, which all of them can run, is chosen for the whole
/// batch. Bits depend on neither chunks nor GPUs: they are those of that plan on any one of them.
///
/// A run waits for its results. Where it fails, what it had begun is waited for, results are left in part, and the other GPUs, and
/// this one unless it is lost, can be used again.
///
/// ```no_run
/// use batchla_core::{Batch, BatchedInvert};
/// use batchla_cuda::CudaHost;
///
/// let gpus = CudaHost::all()?.with_memory_bytes(4 << 30);
/// let a = Batch::<f64>::from_fn(1_000_000, 64, 64, |_, i, j| if i == j { 2.0 } else { 1.0 / (1 + i + j) as f64 })?;
/// let inverse = gpus.invert(&a)?; // 33 GB through 4 GiB of each GPU
/// assert!(inverse.report.all_regular());
/// # Ok::<(), batchla_core::Error>(())
/// ```
#[derive(Clone)]
pub struct CudaHost {
    lanes: Arc<[Lane]>,
    memory_bytes: Option<u64>,
    chunk: Option<usize>,
}

/// A GPU with the streams of its chunks: its own runs the kernels.
struct Lane {
    gpu: Cuda,
    up: Stream,
    down: Stream,
}

impl CudaHost {
    /// Host batches on these GPUs.
    ///
    /// The bound of [`CudaHost::with_memory_bytes`] is what the environment variable `BATCHLA_DEVICE_MEMORY` says, where it is set.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] where there are none, one is there twice, or the variable is no number of bytes; what a device reports.
    pub fn new(gpus: impl IntoIterator<Item = Cuda>) -> Result<Self, Error> {
        let lane = |gpu: Cuda| -> Result<Lane, Error> {
            let (up, down) = (Stream::new(gpu.device())?, Stream::new(gpu.device())?);
            Ok(Lane { gpu, up, down })
        };
        let lanes: Arc<[Lane]> = gpus.into_iter().map(lane).collect::<Result<_, _>>()?;
        distinct(lanes.iter().map(|lane| &lane.gpu))?;
        Ok(Self { lanes, memory_bytes: Environment::read().device_memory()?, chunk: None })
    }

    /// Host batches on the GPUs of these ordinals.
    ///
    /// # Errors
    /// As [`CudaHost::new`]; [`ErrorKind::Unavailable`] where one of them is not there.
    pub fn open(ordinals: impl IntoIterator<Item = usize>) -> Result<Self, Error> {
        let open = |ordinal| Cuda::on(&Device::open(ordinal)?);
        Self::new(ordinals.into_iter().map(open).collect::<Result<Vec<_>, _>>()?)
    }

    /// Host batches on every GPU that the driver shows.
    ///
    /// # Errors
    /// As [`CudaHost::open`]; [`ErrorKind::Unavailable`] where there is no driver or no GPU.
    pub fn all() -> Result<Self, Error> {
        // Where there is none, opening the first says why.
        Self::open(0..Device::list()?.len().max(1))
    }

    /// Takes at most so many bytes of each GPU's memory for a run, instead of a quarter of it: chunks become smaller, bits stay. Code of
    /// kernels and the driver's own memory are not counted.
    #[must_use]
    pub fn with_memory_bytes(self, memory_bytes: u64) -> Self {
        Self { memory_bytes: Some(memory_bytes), ..self }
    }

    /// Works on so many matrices at a time, instead of as many as seem to help; to measure and to test.
    #[must_use]
    pub fn with_chunk(self, matrices: usize) -> Self {
        Self { chunk: Some(matrices), ..self }
    }

    /// The GPUs.
    pub fn gpus(&self) -> impl ExactSizeIterator<Item = &Cuda> {
        self.lanes.iter().map(|lane| &lane.gpu)
    }
}

/// Refuses no GPU at all, and one that is there twice.
pub(crate) fn distinct<'a>(gpus: impl Iterator<Item = &'a Cuda> + Clone) -> Result<(), Error> {
    let refuse = |what: String| Err(Error::new(ErrorKind::Argument, "use GPUs", what).advise("name each GPU once"));
    if gpus.clone().next().is_none() {
        return refuse("no GPU was given".to_owned());
    }
    for (k, gpu) in gpus.clone().enumerate() {
        if gpus.clone().skip(k + 1).any(|other| other.device().same(gpu.device())) {
            return refuse(format!("GPU {} was given twice", gpu.device().ordinal()));
        }
    }
    Ok(())
}

/// Every GPU in words.
pub(crate) fn describe<'a>(gpus: impl Iterator<Item = &'a Cuda>) -> String {
    gpus.map(|gpu| gpu.device().to_string()).collect::<Vec<_>>().join("; ")
}

impl fmt::Debug for CudaHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaHost({})", self.describe())
    }
}

impl Backend for CudaHost {
    type Memory = HostMemory;
    type Stream = ();
    type Prepared = CudaHostPrepared;
    type Workspace = CudaHostWorkspace;

    fn name(&self) -> &str {
        "cuda"
    }
    fn describe(&self) -> String {
        describe(self.gpus())
    }
    fn stream(&self) -> &() {
        &()
    }
    fn prepare(&self, problem: &Problem, options: &Options) -> Result<CudaHostPrepared, Error> {
        CudaHostPrepared::new(self, problem, options)
    }
    fn explain(&self, problem: &Problem, options: &Options) -> Result<Explanation, Error> {
        // What runs are chunks of dense matrices.
        let division = Division::of(self, problem, options)?;
        let mut explanation = explain_for(self.gpus(), &division.packed, options)?;
        explanation.problem = problem.clone();
        explanation.part = explanation.part.min(division.chunk);
        explanation.workspace_bytes = division.bytes_on(self.lanes.len());
        Ok(explanation)
    }
    fn workspace(&self, prepared: &CudaHostPrepared) -> Result<CudaHostWorkspace, Error> {
        CudaHostWorkspace::new(self, prepared)
    }
    fn allocate<E: Element>(&self, len: usize) -> Result<HostArray<E>, Error> {
        HostArray::zeroed(len)
    }
    fn write<E: Element>(&self, from: &[E], to: &mut [E]) -> Result<(), Error> {
        HostMemory::write(from, to)
    }
    fn synchronize(&self) -> Result<(), Error> {
        self.gpus().try_for_each(Cuda::synchronize)
    }
}
