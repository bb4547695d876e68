//! The backend: a device, a stream, and what is prepared for them.

use std::fmt;

use batchla_core::{Backend, Element, Error, ErrorKind, Explanation, Options, Plan, Prepared, Problem};

use crate::device::Device;
use crate::kernel::loaded::Kernel;
use crate::kernel::source::Specification;
use crate::memory::{DeviceArray, DeviceMemory, DeviceSliceMut};
use crate::plan::CudaPlan;
use crate::stream::Stream;
use crate::workspace::{CudaWorkspace, Parts};

/// Batched LU, inverse, solve and determinant on an NVIDIA GPU.
///
/// A handle to a device and a stream: clones queue on the same stream, [`Cuda::with_stream`] gives one for another. Kernels are compiled for the GPU
/// at hand when a problem is first prepared, and kept on disk. Runs only queue work; whoever reads results, outcomes included, waits.
///
/// ```no_run
/// use batchla_core::{Backend, Batch, BatchedInvert};
/// use batchla_cuda::Cuda;
///
/// let gpu = Cuda::new()?;
/// let host = Batch::<f64>::from_fn(10_000, 64, 64, |_, i, j| if i == j { 2.0 } else { 1.0 / (1 + i + j) as f64 })?;
/// let a = gpu.to_device(&host)?;
/// let inverse = gpu.invert(&a)?; // on the device, perhaps still being computed
/// let inverse = gpu.to_host(&inverse.batch)?; // waits
/// # Ok::<(), batchla_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Cuda {
    device: Device,
    stream: Stream,
}

impl Cuda {
    /// The first GPU, with a stream of its own.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] where there is no driver, no GPU, or one too old; [`ErrorKind::Device`] where the GPU is there but fails.
    pub fn new() -> Result<Self, Error> {
        Self::on(&Device::open(0)?)
    }

    /// A device, with a stream of its own.
    ///
    /// # Errors
    /// What the device reports.
    pub fn on(device: &Device) -> Result<Self, Error> {
        Ok(Self::with_stream(&Stream::new(device)?))
    }

    /// A stream and its device.
    pub fn with_stream(stream: &Stream) -> Self {
        Self { device: stream.device().clone(), stream: stream.clone() }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cuda({})", self.device)
    }
}

/// Streams over which launches are dealt out that serve a matrix each.
const LANES: usize = 8;

/// A problem with its plan, its kernels and the size of its workspace.
#[derive(Debug)]
pub struct CudaPrepared {
    problem: Problem,
    plan: CudaPlan,
    parts: Parts,
    kernels: Vec<(String, Kernel)>,
    /// Streams beside the run's own, for plans that launch a kernel a matrix.
    lanes: Vec<Stream>,
}

impl CudaPrepared {
    pub(crate) fn parts(&self) -> &Parts {
        &self.parts
    }

    /// How it will be run, in this backend's own words.
    pub fn cuda_plan(&self) -> &CudaPlan {
        &self.plan
    }

    /// Each kernel by its symbol.
    pub fn kernels(&self) -> impl ExactSizeIterator<Item = (&str, &Kernel)> {
        self.kernels.iter().map(|(entry, kernel)| (entry.as_str(), kernel))
    }

    pub(crate) fn kernel(&self, entry: &str) -> Result<&Kernel, Error> {
        self.kernels().find(|(name, _)| *name == entry).map(|(_, kernel)| kernel).ok_or_else(|| {
            Error::new(ErrorKind::Argument, self.problem_operation(), format!("{entry} was not prepared"))
                .advise("prepare the problem that is run")
        })
    }

    pub(crate) fn lanes(&self) -> &[Stream] {
        &self.lanes
    }

    pub(crate) fn problem_operation(&self) -> &'static str {
        self.problem.operation().name()
    }

    pub(crate) fn right_hand_sides(&self) -> usize {
        self.problem.right_hand_sides()
    }
}

impl Prepared for CudaPrepared {
    fn problem(&self) -> &Problem {
        &self.problem
    }
    fn plan(&self) -> &dyn Plan {
        &self.plan
    }
    fn workspace_bytes(&self) -> u64 {
        self.parts.bytes
    }
}

impl Backend for Cuda {
    type Memory = DeviceMemory;
    type Stream = Stream;
    type Prepared = CudaPrepared;
    type Workspace = CudaWorkspace;

    fn name(&self) -> &str {
        "cuda"
    }

    fn describe(&self) -> String {
        self.device.to_string()
    }

    fn stream(&self) -> &Stream {
        &self.stream
    }

    fn prepare(&self, problem: &Problem, options: &Options) -> Result<CudaPrepared, Error> {
        let limits = self.device.limits();
        let (plan, chosen) = CudaPlan::choose_tuned(problem, options, limits, self.device.tuned())?;
        let parts = Parts::of(problem, &plan, limits)?;
        log::debug!("{problem}: {plan}, chosen {chosen}");
        let kernels = load(&self.device, &plan.specifications(problem))?;
        let streamed = plan.getrf.as_ref().and_then(|getrf| getrf.steps.as_ref()).is_some_and(|steps| steps.streamed);
        let lanes =
            (0..if streamed { LANES } else { 0 }).map(|_| Stream::new(&self.device)).collect::<Result<_, _>>()?;
        let prepared = CudaPrepared { problem: problem.clone(), plan, parts, kernels, lanes };
        prepared.allow_shared_bytes()?;
        Ok(prepared)
    }

    fn explain(&self, problem: &Problem, options: &Options) -> Result<Explanation, Error> {
        let mut explanation = CudaPlan::explain(problem, options, self.device.limits(), self.device.tuned())?;
        explanation.device = self.describe();
        Ok(explanation)
    }

    fn workspace(&self, prepared: &CudaPrepared) -> Result<CudaWorkspace, Error> {
        let words = usize::try_from(prepared.parts.bytes.div_ceil(4)).unwrap_or(usize::MAX);
        // SAFETY: a run writes each part of its workspace before it reads it.
        let memory = unsafe { DeviceArray::uninitialized(&self.stream, words) }?;
        Ok(CudaWorkspace { memory })
    }

    fn allocate<E: Element>(&self, len: usize) -> Result<DeviceArray<E>, Error> {
        DeviceArray::zeroed(&self.stream, len)
    }

    fn write<E: Element>(&self, from: &[E], to: DeviceSliceMut<'_, E>) -> Result<(), Error> {
        DeviceMemory::write(from, to)
    }

    fn synchronize(&self) -> Result<(), Error> {
        self.stream.synchronize()
    }
}

impl CudaPrepared {
    /// Tells the driver about large blocks of shared memory, so that a run need not.
    fn allow_shared_bytes(&self) -> Result<(), Error> {
        let (plan, order) = (&self.plan, self.plan.order());
        let mut most = vec![("permutation", order * 4)];
        most.extend(
            plan.resident
                .iter()
                .flat_map(|resident| ["getrf", "getrf_getri"].map(|entry| (entry, resident.dynamic_shared_bytes))),
        );
        if let Some(getrf) = &plan.getrf {
            most.extend([
                ("getrf", getrf.dynamic_shared_bytes),
                ("getrf_panel", getrf.dynamic_shared_bytes),
                ("laswp", order * 4),
            ]);
            most.extend(getrf.steps.as_ref().map(|steps| ("getrf_update", steps.update.dynamic_shared_bytes)));
        }
        most.extend(plan.getrs.as_ref().map(|getrs| ("getrs", getrs.shared_bytes)));
        if let Some(getri) = &plan.getri {
            let bytes = getri.shared_bytes(plan.scalar(), order, order);
            most.extend([("trtri", bytes), ("getri", bytes)]);
        }
        for (entry, bytes) in most {
            if let Ok(kernel) = self.kernel(entry) {
                kernel.allow_shared_bytes(bytes as u32)?;
            }
        }
        Ok(())
    }
}

/// Loads kernels, compiling side by side what has to be compiled.
fn load(device: &Device, specifications: &[Specification]) -> Result<Vec<(String, Kernel)>, Error> {
    let loaded: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            specifications.iter().map(|specification| scope.spawn(move || device.kernel(specification))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(interrupted()))).collect()
    });
    specifications.iter().zip(loaded).map(|(one, kernel)| Ok((one.entry().to_owned(), kernel?))).collect()
}

fn interrupted() -> Error {
    Error::new(ErrorKind::Compile, "prepare", "a thread that compiled a kernel ended early").advise("report this")
}
