//! Kernels made ready beforehand: those of many problems, compiled side by side.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use batchla_core::{Error, ErrorKind, Options, Problem};

use crate::backend::{Cuda, plan_for};
use crate::device::Device;
use crate::host::CudaHost;
use crate::kernel::cache::Origin;
use crate::kernel::loaded::Kernel;
use crate::kernel::source::Specification;

/// A kernel that was made ready.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warmed {
    /// The kernel with its constants, in words.
    pub kernel: String,
    /// Where its machine code came from.
    pub origin: Origin,
    /// How long that took, on one thread.
    pub time: Duration,
}

impl Cuda {
    /// Makes everything ready that running these problems takes, but for their memory: chooses plans, and compiles, side by side on all cores, the
    /// kernels that are neither loaded nor on disk. Preparing one of the problems then compiles nothing.
    ///
    /// What is compiled is one kernel or a few for each scalar type, operation, kind of source and class of orders: of larger orders only the numbers of
    /// the plan are constants of a kernel (threads, panel, rows a thread); for matrices that stay on chip the order is one too, unless
    /// [`Limits::exact_orders`](crate::Limits::exact_orders) is off. Of the layouts it only matters whether columns of the input and of the
    /// result are contiguous, of the batch whether it is few matrices. Kernels that several problems share are there once. The answer has every kernel, in the
    /// order of the problems.
    ///
    /// ```no_run
    /// use batchla_core::{BatchLayout, Options, Problem, SourceKind};
    /// let gpu = batchla_cuda::Cuda::new()?;
    /// let problem = |n| {
    ///     let a = BatchLayout::column_major(1, n, n)?;
    ///     Problem::invert::<f64>(SourceKind::Matrix, a, a)
    /// };
    /// let problems = (1..=200).map(problem).collect::<Result<Vec<_>, _>>()?;
    /// println!("{} kernels are ready", gpu.warm(&problems, &Options::default())?.len());
    /// # Ok::<(), batchla_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Backend::prepare`](batchla_core::Backend::prepare), for the first problem of which a kernel cannot be had; the others are ready.
    pub fn warm(&self, problems: &[Problem], options: &Options) -> Result<Vec<Warmed>, Error> {
        warm(&[self], problems, options)
    }
}

impl CudaHost {
    /// As [`Cuda::warm`], for host batches, on each GPU in turn: kernels that one of them had compiled are on disk for its like.
    ///
    /// # Errors
    /// As there.
    pub fn warm(&self, problems: &[Problem], options: &Options) -> Result<Vec<Warmed>, Error> {
        let packed: Vec<_> = problems.iter().map(Problem::packed).collect::<Result<_, _>>()?;
        warm(&self.gpus().collect::<Vec<_>>(), &packed, options)
    }
}

fn warm(gpus: &[&Cuda], problems: &[Problem], options: &Options) -> Result<Vec<Warmed>, Error> {
    let (mut wanted, mut known) = (Vec::new(), HashSet::new());
    for problem in problems {
        let (plan, _) = plan_for(gpus.iter().copied(), problem, options)?;
        let new = |one: &Specification| known.insert((one.entry().to_owned(), text_of(one)));
        wanted.extend(plan.specifications(problem).into_iter().filter(new));
    }
    let mut all = Vec::new();
    for gpu in gpus {
        let warmed = |(specification, loaded): (&Specification, Result<Loaded, Error>)| {
            let Loaded { origin, time, .. } = loaded?;
            Ok(Warmed { kernel: specification.to_string(), origin, time })
        };
        let warmed: Result<Vec<_>, Error> = wanted.iter().zip(load(gpu.device(), &wanted)).map(warmed).collect();
        all.extend(warmed?);
    }
    Ok(all)
}

/// A kernel, where its code came from, and how long that took.
pub(crate) struct Loaded {
    pub(crate) kernel: Kernel,
    origin: Origin,
    time: Duration,
}

/// Loads kernels, compiling side by side what has to be compiled.
pub(crate) fn load(device: &Device, specifications: &[Specification]) -> Vec<Result<Loaded, Error>> {
    side_by_side(specifications, |specification| {
        let start = Instant::now();
        let (kernel, origin) = device.kernel_from(specification)?;
        Ok(Loaded { kernel, origin, time: start.elapsed() })
    })
}

/// Does something for each kernel that may have it compiled, on as many threads as there are cores.
pub(crate) fn side_by_side<T: Send>(
    specifications: &[Specification],
    one: impl Fn(&Specification) -> Result<T, Error> + Sync,
) -> Vec<Result<T, Error>> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(specifications.len());
    if threads <= 1 {
        return specifications.iter().map(&one).collect();
    }
    // Kernels of one source are compiled together: all but the first of them come last, so that nobody waits for another's compiler.
    let mut sources = HashSet::new();
    let (first, others): (Vec<_>, Vec<_>) =
        (0..specifications.len()).partition(|&k| sources.insert(text_of(&specifications[k])));
    let order = [first, others].concat();
    let slots: Vec<Mutex<Option<Result<T, Error>>>> = specifications.iter().map(|_| Mutex::default()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(&k) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            let done = one(&specifications[k]);
            *slots[k].lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        }
    };
    // Not rayon's threads: a compiler may use a lot of stack, and blocks them for long.
    thread::scope(|scope| {
        let spawn = |_| {
            let thread = thread::Builder::new().name("batchla compile".to_owned()).stack_size(STACK);
            // Where a thread is not to be had, the others do its work.
            thread.spawn_scoped(scope, work).ok()
        };
        let spawned: Vec<_> = (1..threads).filter_map(spawn).collect();
        work();
        // What a thread that panicked has left undone is missing below.
        spawned.into_iter().for_each(|thread| drop(thread.join()));
    });
    let taken = |slot: Mutex<Option<Result<T, Error>>>| {
        let done = slot.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.unwrap_or_else(|| Err(interrupted()))
    };
    slots.into_iter().map(taken).collect()
}

/// What names a source with its constants; cheaper than its digest.
pub(crate) fn text_of(one: &Specification) -> (&'static str, String) {
    (one.source().name, one.configuration())
}

/// As much as a program's first thread has.
const STACK: usize = 8 << 20;

fn interrupted() -> Error {
    Error::new(ErrorKind::Compile, "prepare", "a thread that compiled a kernel ended early").advise("report this")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use batchla_core::{Backend, BatchLayout, SourceKind};

    use super::*;
    use crate::driver::fake::{Fake, FakeCompiler};
    use crate::kernel::disk::DiskCache;
    use crate::limits::Limits;

    fn inversions(orders: impl Iterator<Item = usize>) -> Vec<Problem> {
        let problem = |n| {
            let a = BatchLayout::column_major(3, n, n).unwrap();
            Problem::invert::<f64>(SourceKind::Matrix, a, a).unwrap()
        };
        orders.map(problem).collect()
    }

    fn gpu(compiler: &Arc<FakeCompiler>, disk: DiskCache) -> Cuda {
        let limits = Limits { exact_orders: false, ..Limits::preset("sm_90").unwrap() };
        let driver = Arc::new(Fake::new(limits));
        let compiler = Arc::<FakeCompiler>::clone(compiler);
        Cuda::on(&Device::with(driver, 0, compiler, disk).unwrap()).unwrap()
    }

    #[test]
    fn what_was_warmed_is_prepared_without_a_compiler_and_each_kernel_is_compiled_once() {
        let (folder, options) = (tempfile::tempdir().unwrap(), Options::default());
        let disk = || DiskCache::at(folder.path().join("kernels"));
        let compiler = Arc::new(FakeCompiler::default());
        let cuda = gpu(&compiler, disk());
        let problems = inversions((1..60).chain(20..40));
        let warmed = cuda.warm(&problems, &options).unwrap();
        let compiled = compiler.compiled().len();
        assert_eq!(warmed.iter().filter(|one| one.origin == Origin::Compiled).count(), compiled);
        // Kernels are of classes of orders.
        assert!(compiled > 1 && compiled < 59, "{compiled}");
        for problem in &problems {
            cuda.prepare(problem, &options).unwrap();
        }
        let again = cuda.warm(&problems, &options).unwrap();
        assert!(again.iter().all(|one| one.origin == Origin::Memory));
        assert_eq!((compiler.compiled().len(), again.len()), (compiled, warmed.len()));
        // Another process finds them on disk.
        let other = gpu(&compiler, disk()).warm(&problems, &options).unwrap();
        assert!(other.iter().all(|one| one.origin != Origin::Compiled));
        assert_eq!(compiler.compiled().len(), compiled);
    }

    #[test]
    fn kernels_of_many_problems_are_compiled_side_by_side() {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let compiler = Arc::new(FakeCompiler::slow(Duration::from_millis(300)));
        gpu(&compiler, DiskCache::off()).warm(&inversions(1..200), &Options::default()).unwrap();
        assert!(compiler.most_at_once() >= cores.min(2) && compiler.most_at_once() <= cores);
    }

    #[test]
    fn one_kernel_that_does_not_compile_is_the_error_of_all() {
        let compiler = Arc::new(FakeCompiler::refusing("line 3: no"));
        let error = gpu(&compiler, DiskCache::off()).warm(&inversions(3..9), &Options::default()).unwrap_err();
        assert!(error.kind() == ErrorKind::Compile && error.to_string().contains("line 3: no"), "{error}");
    }
}
