//! A GPU: its driver, its limits, its compiled kernels, and what went wrong on it for good.

use std::fmt;
use std::sync::{Arc, OnceLock};

use batchla_core::{Error, ErrorKind};

use crate::driver::fake::Fake;
use crate::driver::{Driver, DriverError, DriverResult, Properties, Real};
use crate::environment::Environment;
use crate::kernel::cache::{Compiler, KernelCache, Origin};
use crate::kernel::disk::DiskCache;
use crate::kernel::loaded::Kernel;
use crate::kernel::nvrtc::{LazyNvrtc, Preference};
use crate::kernel::source::Specification;
use crate::limits::Limits;
use crate::staging::StagingPool;
use crate::tuned::Tuned;

/// An open GPU. A cheap handle: clones are the same GPU with the same kernels.
#[derive(Clone)]
pub struct Device(Arc<Inner>);

struct Inner {
    ordinal: usize,
    properties: Properties,
    architecture: String,
    kernels: KernelCache,
    tuned: Tuned,
    staging: StagingPool,
    lost: OnceLock<String>,
    // Last, so that what belongs to it goes before it.
    driver: Arc<dyn Driver>,
}

impl Device {
    /// Opens a GPU by its ordinal among those that the driver shows.
    ///
    /// Compiled kernels are kept in the folder that `BATCHLA_CACHE_DIR` names (`off`: nowhere), else in the user's cache folder, up to
    /// `BATCHLA_CACHE_SIZE`. Plans that the tuner has found for this GPU are read from the folder that `BATCHLA_TUNED_DIR` names (`off`: none), else
    /// from the user's data folder.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] where there is no driver, too old a one, or no such GPU.
    pub fn open(ordinal: usize) -> Result<Self, Error> {
        let environment = Environment::read();
        let driver = Arc::new(Real::open(ordinal)?);
        let properties = driver.properties().map_err(|e| e.into_error("open device"))?;
        let preference = Preference::of(properties.driver_version, properties.limits.compute_capability);
        let compiler = Arc::new(LazyNvrtc::new(&environment.toolkits, preference));
        let disk = DiskCache::of(&environment);
        let tuned = environment.tuned.map_or_else(Tuned::none, |folder| Tuned::load(&folder, &properties.limits));
        let device = Self::with(driver, ordinal, compiler, disk)?.with_tuned(tuned);
        log::debug!("opened {device}");
        Ok(device)
    }

    /// Whether an error of [`Device::open`] says that this machine shows no GPU, rather than that there is something that does not work:
    /// a driver that is too old or fails, a GPU that another process has for itself.
    pub fn is_absent(error: &Error) -> bool {
        use libloading::Error as Loader;
        let source = std::error::Error::source(error);
        let says_absent = source.and_then(|source| source.downcast_ref()).is_none_or(DriverError::is_absence);
        // A library that lacks a function is there.
        let lacks = |error: &Loader| matches!(error, Loader::DlSym { .. } | Loader::GetProcAddress { .. });
        error.kind() == ErrorKind::Unavailable
            && says_absent
            && !source.and_then(|source| source.downcast_ref()).is_some_and(lacks)
    }

    /// What the GPUs that the driver shows are, by their ordinals. Takes no memory of them.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] where there is no driver, or too old a one.
    pub fn list() -> Result<Vec<Limits>, Error> {
        Real::list()
    }

    /// A device of any driver, compiler and cache.
    ///
    /// # Errors
    /// What the driver reports.
    #[doc(hidden)]
    pub fn with(
        driver: Arc<dyn Driver>,
        ordinal: usize,
        compiler: Arc<dyn Compiler>,
        disk: DiskCache,
    ) -> Result<Self, Error> {
        let properties = driver.properties().map_err(|e| e.into_error("open device"))?;
        let architecture = properties.limits.architecture();
        let kernels = KernelCache::new(compiler, disk);
        let staging = StagingPool::new(Arc::clone(&driver));
        let (tuned, lost) = (Tuned::none(), OnceLock::new());
        Ok(Self(Arc::new(Inner { ordinal, properties, architecture, kernels, tuned, staging, lost, driver })))
    }

    /// The same with tables of plans, before there is a second handle to it.
    #[doc(hidden)]
    #[must_use]
    pub fn with_tuned(mut self, tuned: Tuned) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.tuned = tuned;
        }
        self
    }

    /// A device without a GPU, for tests: whatever it is asked to compile compiles, and launches are recorded.
    ///
    /// # Errors
    /// None.
    #[doc(hidden)]
    pub fn fake(limits: Limits) -> Result<(Self, Arc<Fake>), Error> {
        let fake = Arc::new(Fake::new(limits));
        let compiler = Arc::new(crate::driver::fake::FakeCompiler::default());
        let device = Self::with(Arc::<Fake>::clone(&fake), 0, compiler, DiskCache::off())?;
        Ok((device, fake))
    }

    /// Its number among the GPUs that the driver shows.
    pub fn ordinal(&self) -> usize {
        self.0.ordinal
    }

    /// What it offers a kernel.
    pub fn limits(&self) -> &Limits {
        &self.0.properties.limits
    }

    /// The plans that the tuner has found for it.
    pub fn tuned(&self) -> &Tuned {
        &self.0.tuned
    }

    /// The newest CUDA that its driver supports, as 12040 for 12.4.
    pub fn driver_version(&self) -> u32 {
        self.0.properties.driver_version
    }

    /// Bytes of its memory that are free, and all.
    ///
    /// # Errors
    /// What the device reports, also of earlier work.
    pub fn memory(&self) -> Result<(u64, u64), Error> {
        self.check("memory", self.driver().memory())
    }

    /// A kernel, compiled and loaded: from memory, else from disk, else by NVRTC. May take seconds the first time.
    ///
    /// # Errors
    /// [`ErrorKind::Compile`] with the compiler's log; [`ErrorKind::Unavailable`] where there is no NVRTC; the device.
    pub fn kernel(&self, specification: &Specification) -> Result<Kernel, Error> {
        self.kernel_from(specification).map(|(kernel, _)| kernel)
    }

    /// [`Device::kernel`], and where its machine code came from.
    pub(crate) fn kernel_from(&self, specification: &Specification) -> Result<(Kernel, Origin), Error> {
        self.alive("load kernel")?;
        let result = self.0.kernels.kernel(&self.0.driver, &self.0.architecture, specification);
        result.map_err(|error| {
            let cause = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<DriverError>());
            match cause.filter(|cause| cause.is_sticky()) {
                Some(lost) => self.explain("load kernel", lost.clone(), String::new),
                None => error,
            }
        })
    }

    /// Name and version of the compiler that makes its kernels.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] where there is none.
    pub fn compiler(&self) -> Result<String, Error> {
        self.0.kernels.compiler()
    }

    pub(crate) fn driver(&self) -> &dyn Driver {
        &*self.0.driver
    }

    pub(crate) fn staging(&self) -> &StagingPool {
        &self.0.staging
    }

    /// Whether two handles are of one GPU.
    pub(crate) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.ordinal == other.0.ordinal && self.limits() == other.limits())
    }

    /// The error of a device that was lost.
    pub(crate) fn alive(&self, operation: &str) -> Result<(), Error> {
        let Some(first) = self.0.lost.get() else { return Ok(()) };
        Err(Error::new(ErrorKind::Device, operation, format!("the device was lost earlier: {first}"))
            .advise("restart the process; compute-sanitizer finds the access that did it"))
    }

    /// A result of the driver as one of ours. A device that is lost is remembered.
    pub(crate) fn check<T>(&self, operation: &str, result: DriverResult<T>) -> Result<T, Error> {
        result.map_err(|error| self.explain(operation, error, String::new))
    }

    /// An error of the driver, with the work that may have caused it, where it came from earlier work.
    pub(crate) fn explain(&self, operation: &str, error: DriverError, earlier: impl FnOnce() -> String) -> Error {
        if !error.is_sticky() {
            return error.into_error(operation);
        }
        if let Err(lost) = self.alive(operation) {
            return lost.caused_by(error);
        }
        let earlier = earlier();
        let what = if earlier.is_empty() { error.to_string() } else { format!("{error}; {earlier}") };
        let advice = error.clone().into_error(operation).advice().to_owned();
        log::error!("the device is lost: {what}");
        let _ = self.0.lost.set(what.clone());
        Error::new(error.kind(), operation, what).advise(advice).caused_by(error)
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("ordinal", &self.0.ordinal).field("name", &self.limits().name).finish()
    }
}

/// In one line: the GPU and its driver.
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.driver_version();
        let (ordinal, limits) = (self.ordinal(), self.limits());
        write!(f, "GPU {ordinal}: {limits}; driver of CUDA {}.{}", version / 1000, version % 1000 / 10)
    }
}
