//! Loaded kernels: each compiled once, by whoever needs it first.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use batchla_core::{Error, ErrorKind};

use super::disk::DiskCache;
use super::loaded::{Kernel, Module};
use super::source::{Digest, Specification};
use crate::driver::{Driver, ModuleHandle};

/// Machine code, or PTX that ends in a zero byte; and what the compiler said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// What the driver loads.
    pub bytes: Vec<u8>,
    /// Warnings; often empty.
    pub log: String,
}

/// Where a kernel's machine code came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was loaded already.
    Memory,
    /// An earlier process left it on disk.
    Disk,
    /// It was compiled.
    Compiled,
}

/// What compiles kernels.
pub trait Compiler: Debug + Send + Sync + 'static {
    /// Its name and version; part of what names a compiled kernel.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`](batchla_core::ErrorKind::Unavailable) where there is no such compiler.
    fn version(&self) -> Result<String, Error>;

    /// Compiles for an architecture, for example `sm_90`.
    ///
    /// # Errors
    /// [`ErrorKind::Compile`](batchla_core::ErrorKind::Compile) with the log; [`ErrorKind::Unavailable`](batchla_core::ErrorKind::Unavailable).
    fn compile(&self, specification: &Specification, architecture: &str) -> Result<Image, Error>;
}

/// One compiled source: its module and the kernels taken from it so far.
#[derive(Debug)]
struct Loaded {
    module: Arc<Module>,
    kernels: HashMap<String, Kernel>,
}

/// Holds up those that need the same kernel, and nobody else, while it is compiled.
type Slot = Arc<Mutex<Option<Loaded>>>;

/// The kernels of a device.
#[derive(Debug)]
pub(crate) struct KernelCache {
    slots: Mutex<HashMap<Digest, Slot>>,
    disk: DiskCache,
    compiler: Arc<dyn Compiler>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KernelCache {
    pub(crate) fn new(compiler: Arc<dyn Compiler>, disk: DiskCache) -> Self {
        Self { slots: Mutex::default(), disk, compiler }
    }

    /// Name and version of what compiles.
    pub(crate) fn compiler(&self) -> Result<String, Error> {
        self.compiler.version()
    }

    pub(crate) fn kernel(
        &self,
        driver: &Arc<dyn Driver>,
        architecture: &str,
        specification: &Specification,
    ) -> Result<(Kernel, Origin), Error> {
        let version = self.compiler.version()?;
        let digest = specification.digest(architecture, &version);
        let slot = Arc::clone(locked(&self.slots).entry(digest).or_default());
        let mut slot = locked(&slot);
        let (loaded, origin) = match &mut *slot {
            Some(loaded) => (loaded, Origin::Memory),
            empty => {
                let (handle, origin) = self.load(driver, architecture, specification, &version, &digest)?;
                let module = Arc::new(Module::of(driver, handle));
                (empty.insert(Loaded { module, kernels: HashMap::new() }), origin)
            }
        };
        if let Some(kernel) = loaded.kernels.get(specification.entry()) {
            return Ok((kernel.clone(), origin));
        }
        let kernel = Kernel::of(&loaded.module, specification)?;
        loaded.kernels.insert(specification.entry().to_owned(), kernel.clone());
        Ok((kernel, origin))
    }

    fn load(
        &self,
        driver: &Arc<dyn Driver>,
        architecture: &str,
        specification: &Specification,
        version: &str,
        digest: &Digest,
    ) -> Result<(ModuleHandle, Origin), Error> {
        if let Some(bytes) = self.disk.load(digest) {
            match driver.load_module(&bytes) {
                Ok(module) => {
                    log::debug!("loaded {specification} from disk");
                    return Ok((module, Origin::Disk));
                }
                // A full GPU, or one that is lost, says nothing of the image.
                Err(error) if error.kind() != ErrorKind::Compile => return Err(error.into_error("load kernel")),
                Err(error) => {
                    log::warn!("{specification} from disk was refused and will be compiled again: {error}");
                    self.disk.remove(digest);
                }
            }
        }
        let start = Instant::now();
        let image = self.compiler.compile(specification, architecture)?;
        let (bytes, ms) = (image.bytes.len(), start.elapsed().as_millis());
        log::info!("compiled {specification} for {architecture} by {version} in {ms} ms, {bytes} bytes");
        if !image.log.is_empty() {
            log::debug!("the compiler on {specification}: {}", image.log);
        }
        let module = driver.load_module(&image.bytes);
        if module.as_ref().err().is_none_or(|error| error.kind() != ErrorKind::Compile) {
            self.disk.store(digest, &specification.about(architecture, version), &image.bytes);
        }
        let module = module.map_err(|error| {
            if error.kind() != ErrorKind::Compile {
                return error.into_error("load kernel");
            }
            let what = format!("{specification} was compiled by {version}, but the driver refused it: {error}");
            let advice = error.clone().into_error("load kernel").advice().to_owned();
            Error::new(error.kind(), "load kernel", what).advise(advice).caused_by(error)
        })?;
        Ok((module, Origin::Compiled))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use batchla_core::ErrorKind;

    use super::super::source::KernelSource;
    use super::*;
    use crate::driver::code;
    use crate::driver::fake::{Fake, FakeCompiler, Step};
    use crate::limits::Limits;

    const SOURCE: KernelSource = KernelSource { name: "a.cu", text: "text", headers: &[] };

    struct Bench {
        fake: Arc<Fake>,
        compiler: Arc<FakeCompiler>,
        cache: KernelCache,
    }

    fn bench(compiler: FakeCompiler, disk: DiskCache) -> Bench {
        let fake = Arc::new(Fake::new(Limits::preset("sm_90").unwrap()));
        let compiler = Arc::new(compiler);
        let cache = KernelCache::new(Arc::<FakeCompiler>::clone(&compiler), disk);
        Bench { fake, compiler, cache }
    }

    impl Bench {
        fn kernel(&self, specification: &Specification) -> Result<Kernel, Error> {
            let driver: Arc<dyn Driver> = Arc::<Fake>::clone(&self.fake);
            self.cache.kernel(&driver, "sm_90", specification).map(|(kernel, _)| kernel)
        }
    }

    fn order(n: usize) -> Specification {
        Specification::new(SOURCE, "getrf").define("N", n)
    }

    #[test]
    fn threads_that_need_one_kernel_compile_it_once() {
        let bench = bench(FakeCompiler::slow(Duration::from_millis(30)), DiskCache::off());
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|i| {
                    let bench = &bench;
                    scope.spawn(move || bench.kernel(&order(10 + i % 2)).unwrap())
                })
                .collect();
            threads.into_iter().for_each(|thread| drop(thread.join().unwrap()));
        });
        assert_eq!(bench.compiler.compiled().len(), 2, "{:?}", bench.compiler.compiled());
    }

    #[test]
    fn different_kernels_are_compiled_side_by_side() {
        let bench = bench(FakeCompiler::slow(Duration::from_millis(300)), DiskCache::off());
        let start = Instant::now();
        std::thread::scope(|scope| {
            for i in 0..8 {
                let bench = &bench;
                scope.spawn(move || bench.kernel(&order(i)).map(drop));
            }
        });
        assert!(start.elapsed() < Duration::from_millis(8 * 300), "one after the other: {:?}", start.elapsed());
    }

    #[test]
    fn kernels_of_one_source_share_its_module() {
        let bench = bench(FakeCompiler::default(), DiskCache::off());
        let one = bench.kernel(&Specification::new(SOURCE, "one")).unwrap();
        let two = bench.kernel(&Specification::new(SOURCE, "two")).unwrap();
        assert_eq!((one.name(), two.name(), bench.fake.leaks()[4]), ("one", "two", 1));
        drop((one, two, bench.cache));
        assert_eq!(bench.fake.leaks()[4], 0, "unloaded with the last handle");
    }

    #[test]
    fn a_kernel_on_disk_is_not_compiled_again_and_a_damaged_one_is() {
        let folder = tempfile::tempdir().unwrap();
        let disk = || DiskCache::at(folder.path().join("kernels"));
        let compiled = || {
            let bench = bench(FakeCompiler::default(), disk());
            bench.kernel(&order(3)).unwrap();
            bench.compiler.compiled().len()
        };
        assert_eq!((compiled(), compiled()), (1, 0));
        let entry = std::fs::read_dir(disk().folder().unwrap()).unwrap().next().unwrap().unwrap().path();
        std::fs::write(entry, "damage").unwrap();
        assert_eq!((compiled(), compiled()), (1, 0));
    }

    #[test]
    fn a_kernel_on_disk_that_the_driver_refuses_is_compiled_again() {
        let folder = tempfile::tempdir().unwrap();
        let disk = || DiskCache::at(folder.path().join("kernels"));
        bench(FakeCompiler::default(), disk()).kernel(&order(3)).unwrap();
        let bench = bench(FakeCompiler::default(), disk());
        bench.fake.fail(Step::LoadModule, 0, code::NO_BINARY_FOR_GPU);
        bench.kernel(&order(3)).unwrap();
        assert_eq!(bench.compiler.compiled().len(), 1);
    }

    #[test]
    fn a_full_gpu_costs_no_kernel_its_place_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let disk = || DiskCache::at(folder.path().join("kernels"));
        // The first compiles it, and has no room for it; nor has the second.
        for compiled in [1, 0] {
            let bench = bench(FakeCompiler::default(), disk());
            bench.fake.fail(Step::LoadModule, 0, code::OUT_OF_MEMORY);
            assert_eq!(bench.kernel(&order(3)).unwrap_err().kind(), ErrorKind::OutOfMemory);
            bench.kernel(&order(3)).unwrap();
            assert_eq!(bench.compiler.compiled().len(), compiled, "it is on disk");
        }
    }

    #[test]
    fn a_failed_compilation_is_reported_each_time_and_blocks_nobody() {
        let bench = bench(FakeCompiler::refusing("line 3: no"), DiskCache::off());
        for _ in 0..2 {
            let error = bench.kernel(&order(3)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Compile);
            assert!(error.to_string().contains("line 3: no"), "{error}");
        }
    }

    #[test]
    fn more_shared_memory_than_there_is_is_refused_in_words() {
        let bench = bench(FakeCompiler::default(), DiskCache::off());
        let kernel = bench.kernel(&order(3)).unwrap();
        kernel.allow_shared_bytes(227 << 10).unwrap();
        let error = kernel.allow_shared_bytes((227 << 10) + 1).unwrap_err();
        assert!(error.to_string().contains("232449 bytes of shared memory a block"), "{error}");
        assert_eq!(kernel.blocks_per_multiprocessor(1024, 0).unwrap(), 2);
    }
}
