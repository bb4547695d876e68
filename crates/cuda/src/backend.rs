//! The backend: a device, a stream, and what is prepared for them.

use std::fmt;

use batchla_core::{Backend, Element, Error, ErrorKind, Explanation, Options, Plan, Prepared, Problem};

use crate::device::Device;
use crate::host::describe;
use crate::kernel::loaded::Kernel;
use crate::limits::Limits;
use crate::memory::{DeviceArray, DeviceMemory, DeviceSliceMut};
use crate::plan::CudaPlan;
use crate::stream::Stream;
use crate::tuned::Tuned;
use crate::warm::load;
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

    /// [`Backend::prepare`] by a plan that was chosen already, for a device of these limits or more.
    pub(crate) fn prepare_as(&self, problem: &Problem, plan: CudaPlan, limits: &Limits) -> Result<CudaPrepared, Error> {
        let parts = Parts::of(problem, &plan, limits)?;
        let specifications = plan.specifications(problem);
        let kernels = specifications
            .iter()
            .zip(load(&self.device, &specifications))
            .map(|(one, loaded)| Ok((one.entry().to_owned(), loaded?.kernel)))
            .collect::<Result<_, Error>>()?;
        let streamed = plan.getrf.as_ref().and_then(|getrf| getrf.steps.as_ref()).is_some_and(|steps| steps.streamed);
        let lanes =
            (0..if streamed { LANES } else { 0 }).map(|_| Stream::new(&self.device)).collect::<Result<_, _>>()?;
        let prepared = CudaPrepared { problem: problem.clone(), plan, parts, kernels, lanes };
        prepared.allow_shared_bytes()?;
        Ok(prepared)
    }
}

/// One plan that all of some GPUs can run, and what all of them offer.
pub(crate) fn plan_for<'a>(
    gpus: impl Iterator<Item = &'a Cuda>,
    problem: &Problem,
    options: &Options,
) -> Result<(CudaPlan, Limits), Error> {
    let (limits, tuned) = common(gpus)?;
    let (plan, chosen) = CudaPlan::choose_tuned(problem, options, &limits, &tuned)?;
    log::debug!("{problem}: {plan}, chosen {chosen}");
    Ok((plan, limits))
}

/// That plan in words: what it takes, and why it and no other.
pub(crate) fn explain_for<'a>(
    gpus: impl Iterator<Item = &'a Cuda>,
    problem: &Problem,
    options: &Options,
) -> Result<Explanation, Error> {
    let gpus: Vec<_> = gpus.collect();
    let (limits, tuned) = common(gpus.iter().copied())?;
    let mut explanation = CudaPlan::explain(problem, options, &limits, &tuned)?;
    explanation.device = describe(gpus.into_iter());
    Ok(explanation)
}

/// What all of some GPUs offer, and what was measured on them where they are of one kind.
fn common<'a>(gpus: impl Iterator<Item = &'a Cuda>) -> Result<(Limits, Tuned), Error> {
    let devices: Vec<_> = gpus.map(|gpu| &gpu.device).collect();
    let limits = Limits::least(devices.iter().map(|device| device.limits()))
        .ok_or_else(|| Error::new(ErrorKind::Argument, "prepare", "no GPU was given").advise("give at least one"))?;
    let alike = devices.iter().all(|device| device.limits().name == limits.name);
    Ok((limits, if alike { devices[0].tuned().clone() } else { Tuned::none() }))
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
        let (plan, limits) = plan_for(std::iter::once(self), problem, options)?;
        self.prepare_as(problem, plan, &limits)
    }

    fn explain(&self, problem: &Problem, options: &Options) -> Result<Explanation, Error> {
        explain_for(std::iter::once(self), problem, options)
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
                ("getrf_spread", getrf.dynamic_shared_bytes),
                ("getrf_settle", getrf.dynamic_shared_bytes),
                ("getrf_strip", getrf.dynamic_shared_bytes),
                ("laswp", order * 4),
            ]);
            if let Some(strips) = &getrf.strips {
                most.push(("getrf_trailing", strips.shared_bytes(plan.scalar(), order)));
                most.extend(strips.finish.as_ref().map(|(_, plan)| ("getrf_finish", plan.dynamic_shared_bytes)));
            }
            most.extend(getrf.steps.as_ref().map(|steps| ("getrf_update", steps.update.dynamic_shared_bytes)));
        }
        most.extend(plan.getrs.as_ref().map(|getrs| (getrs.entry(), getrs.shared_bytes)));
        if let Some(getri) = &plan.getri {
            let bytes = getri.shared_bytes(plan.scalar(), order, order);
            most.extend(["trtri", "getri", "getri_resident"].map(|entry| (entry, bytes)));
        }
        for (entry, bytes) in most {
            if let Ok(kernel) = self.kernel(entry) {
                kernel.allow_shared_bytes(bytes as u32)?;
            }
        }
        Ok(())
    }
}
