//! Kernels compiled where their GPU is not.

use std::collections::HashSet;
use std::time::Instant;

use batchla_core::{Error, ErrorKind, Options, Problem};

use crate::environment::Environment;
use crate::kernel::cache::{Compiler, Origin};
use crate::kernel::disk::DiskCache;
use crate::kernel::nvrtc::{LazyNvrtc, Preference};
use crate::kernel::source::Specification;
use crate::limits::Limits;
use crate::plan::CudaPlan;
use crate::tuned::Tuned;
use crate::warm::{Warmed, side_by_side, text_of};

/// Compiles what running these problems takes on a GPU that need not be here, side by side on all cores, into the folder of compiled kernels that
/// `BATCHLA_CACHE_DIR` names, else the user's. For a machine that builds what another runs: an image of a container with this folder in it compiles nothing when it starts.
///
/// The other machine takes a kernel from that folder where it would have compiled the same: from the same version of this crate, by an NVRTC of the same version, for a GPU of
/// the same architecture and, as far as plans look at them, limits ([`Limits::preset`] has those of well-known ones). It compiles what it does not find. Nothing is
/// loaded here, and no driver is needed. A batch from host memory is planned as [`packed`](Problem::packed).
///
/// ```no_run
/// use batchla_core::{BatchLayout, Options, Problem, SourceKind};
/// use batchla_cuda::{Limits, compile_ahead};
/// let limits = Limits::preset("sm_90").expect("it is known");
/// let a = BatchLayout::column_major(10_000, 64, 64)?;
/// let invert = Problem::invert::<f64>(SourceKind::Matrix, a, a)?;
/// println!("{} kernels are on disk", compile_ahead(&limits, &[invert], &Options::default())?.len());
/// # Ok::<(), batchla_core::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Unavailable`] where there is no NVRTC, or no folder to keep kernels in; [`ErrorKind::Io`] where some could not be kept, or not beside each other; [`ErrorKind::Compile`] where NVRTC has
/// given up the architecture, with what to install. The first of all errors: the other kernels are on disk.
pub fn compile_ahead(limits: &Limits, problems: &[Problem], options: &Options) -> Result<Vec<Warmed>, Error> {
    let environment = Environment::read();
    // Which driver there will be is not known: the newest, where that compiles for the GPU.
    let preference = Preference::of(u32::MAX, limits.compute_capability);
    let compiler = LazyNvrtc::new(&environment.toolkits, preference);
    let tuned = environment.tuned.as_ref().map_or_else(Tuned::none, |folder| Tuned::load(folder, limits));
    compile_into(&DiskCache::of(&environment), &compiler, (limits, &tuned), problems, options)
}

fn compile_into(
    disk: &DiskCache,
    compiler: &dyn Compiler,
    (limits, tuned): (&Limits, &Tuned),
    problems: &[Problem],
    options: &Options,
) -> Result<Vec<Warmed>, Error> {
    let folder = disk.folder().ok_or_else(|| {
        Error::new(ErrorKind::Unavailable, "compile", "there is no folder to keep compiled kernels in")
            .advise("name one by BATCHLA_CACHE_DIR that nobody else can write")
    })?;
    let (architecture, version) = (limits.architecture(), compiler.version()?);
    let (mut wanted, mut known) = (Vec::new(), HashSet::new());
    for problem in problems {
        let (plan, _) = CudaPlan::choose_tuned(problem, options, limits, tuned)?;
        wanted.extend(plan.specifications(problem).into_iter().filter(|one| known.insert(text_of(one))));
    }
    let digest = |specification: &Specification| specification.digest(&architecture, &version);
    let warmed = side_by_side(&wanted, |specification| {
        let (start, digest) = (Instant::now(), digest(specification));
        let mut origin = Origin::Disk;
        if disk.load(&digest).is_none() {
            let image = compiler.compile(specification, &architecture)?;
            disk.store(&digest, &specification.about(&architecture, &version), &image.bytes);
            origin = Origin::Compiled;
        }
        Ok(Warmed { kernel: specification.to_string(), origin, time: start.elapsed() })
    });
    let warmed = warmed.into_iter().collect::<Result<Vec<_>, Error>>()?;
    // The last of them may have taken the place of the first.
    let lost = wanted.iter().filter(|specification| disk.load(&digest(specification)).is_none()).count();
    if lost > 0 {
        let (all, most) = (wanted.len(), disk.most_bytes());
        let what = format!("{lost} of {all} kernels could not be kept in {}, to {most} bytes in all", folder.display());
        return Err(Error::new(ErrorKind::Io, "compile", what)
            .advise("see whether the disk is full, or raise BATCHLA_CACHE_SIZE"));
    }
    Ok(warmed)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use batchla_core::{BatchLayout, SourceKind};

    use super::*;
    use crate::backend::Cuda;
    use crate::device::Device;
    use crate::driver::fake::{Fake, FakeCompiler};

    fn inversions() -> Vec<Problem> {
        let problem = |n| {
            let a = BatchLayout::column_major(1000, n, n).unwrap();
            Problem::invert::<f64>(SourceKind::Matrix, a, a).unwrap()
        };
        [3, 20, 21, 150, 300].map(problem).to_vec()
    }

    #[test]
    fn what_was_compiled_ahead_is_compiled_by_no_gpu_of_that_kind() {
        let folder = tempfile::tempdir().unwrap();
        let disk = || DiskCache::at(folder.path().join("kernels"));
        let (limits, compiler, options) =
            (Limits::preset("sm_90").unwrap(), Arc::new(FakeCompiler::default()), Options::default());
        let ahead = || compile_into(&disk(), &*compiler, (&limits, &Tuned::none()), &inversions(), &options).unwrap();
        let first = ahead();
        assert!(first.len() > 4 && first.iter().all(|one| one.origin == Origin::Compiled), "{first:?}");
        assert!(ahead().iter().all(|one| one.origin == Origin::Disk));
        let gpu = |architecture| {
            let fake = Arc::new(Fake::new(Limits::preset(architecture).unwrap()));
            Cuda::on(&Device::with(fake, 0, Arc::<FakeCompiler>::clone(&compiler), disk()).unwrap()).unwrap()
        };
        let compiled = |gpu: Cuda| {
            let warmed = gpu.warm(&inversions(), &options).unwrap();
            warmed.iter().filter(|one| one.origin == Origin::Compiled).count()
        };
        assert_eq!(compiled(gpu("sm_90")), 0);
        assert!(compiled(gpu("sm_80")) > 4, "another kind's are others");
    }

    #[test]
    fn where_kernels_cannot_be_kept_none_is_called_ready() {
        let (limits, tuned, compiler) = (Limits::preset("sm_90").unwrap(), Tuned::none(), FakeCompiler::default());
        let ahead = |disk: &DiskCache| {
            compile_into(disk, &compiler, (&limits, &tuned), &inversions(), &Options::default()).unwrap_err()
        };
        let error = ahead(&DiskCache::off());
        assert!(error.kind() == ErrorKind::Unavailable && error.advice().contains("BATCHLA_CACHE_DIR"), "{error}");
        let folder = tempfile::tempdir().unwrap();
        let disk = DiskCache::at(folder.path().join("kernels"));
        std::fs::remove_dir(disk.folder().unwrap()).unwrap();
        let error = ahead(&disk);
        assert!(error.kind() == ErrorKind::Io && error.to_string().contains("could not be kept in"), "{error}");
        let small = DiskCache::at(folder.path().join("small")).at_most(300);
        let error = ahead(&small);
        assert!(error.kind() == ErrorKind::Io && error.advice().contains("BATCHLA_CACHE_SIZE"), "{error}");
    }
}
