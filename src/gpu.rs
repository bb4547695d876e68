//! Whether there is a GPU, and whether it works.

use std::fmt;

use batchla_core::{Backend, Batch, BatchedFactorize, Error, ErrorKind};
use batchla_cuda::{Cuda, Device};
use log::Level;

/// Why there is no GPU to compute on.
#[derive(Debug)]
pub(crate) enum NoGpu {
    /// This machine shows none.
    Absent(Error),
    /// There is one, or its driver, and something does not work.
    Broken(Error),
}

impl NoGpu {
    /// How loudly it is told: most machines have no GPU, but nobody wants one that stands idle unnoticed.
    pub(crate) fn level(&self) -> Level {
        match self {
            Self::Absent(_) => Level::Info,
            Self::Broken(_) => Level::Warn,
        }
    }

    /// The error that says so.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Absent(error) | Self::Broken(error) => error,
        }
    }
}

impl fmt::Display for NoGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(error) => {
                // Nobody who has no GPU needs to be told how to install its driver.
                let text = error.to_string();
                write!(f, "no GPU: {}", text.strip_suffix(&format!("; {}", error.advice())).unwrap_or(&text))
            }
            Self::Broken(error) => write!(f, "the GPU cannot be used: {error}"),
        }
    }
}

/// The first GPU, after a trial.
pub(crate) fn working() -> Result<Cuda, NoGpu> {
    let opened = Cuda::new();
    let gpu =
        opened.map_err(|error| if Device::is_absent(&error) { NoGpu::Absent(error) } else { NoGpu::Broken(error) })?;
    // Whatever fails from here on, fails on a GPU that is there: a compiler that is not found, for one.
    try_out(&gpu).map_err(NoGpu::Broken)?;
    Ok(gpu)
}

/// Factors one matrix of order 1: finds the compiler, compiles a kernel or takes it from disk, loads it, runs it, reads what it wrote.
///
/// Only a run tells that all of these work; a GPU that opens may fail in any.
fn try_out(gpu: &Cuda) -> Result<(), Error> {
    let a = Batch::<f32>::from_fn(1, 1, 1, |_, _, _| 2.0)?;
    let factors = gpu.factorize(&gpu.to_device(&a)?)?;
    let (lu, outcomes) = (gpu.to_host(factors.lu())?, factors.record().report().read_outcomes()?);
    match (lu.get(0, 0, 0), outcomes.first()) {
        (Some(2.0), Some(outcome)) if outcome.is_regular() => Ok(()),
        (u, outcome) => Err(Error::new(
            ErrorKind::Device,
            "try the GPU",
            format!("the matrix (2) was factored as {u:?}, with outcome {outcome:?}"),
        )
        .advise("see what nvidia-smi -q says of its health")),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use batchla_cuda::driver::fake::{Fake, FakeCompiler, Step};
    use batchla_cuda::{DiskCache, Limits};

    use super::*;

    fn limits() -> Limits {
        Limits::preset("sm_90").unwrap()
    }

    #[test]
    fn a_gpu_that_computes_nonsense_does_not_pass_the_trial() {
        // The fake device runs nothing: its results are the zeros it was given.
        let (device, fake) = Device::fake(limits()).unwrap();
        let error = try_out(&Cuda::on(&device).unwrap()).unwrap_err();
        assert_eq!((error.kind(), fake.launches().len()), (ErrorKind::Device, 1), "{error}");
        assert!(error.to_string().contains("the matrix (2) was factored as Some(0.0)"), "{error}");
    }

    #[test]
    fn a_gpu_that_fails_on_the_way_does_not_pass_the_trial() {
        for (step, code, kind) in [
            (Step::Allocate, 2, ErrorKind::OutOfMemory),
            (Step::LoadModule, 209, ErrorKind::Compile),
            (Step::Launch, 719, ErrorKind::Device),
            (Step::Synchronize, 214, ErrorKind::Device),
        ] {
            let (device, fake) = Device::fake(limits()).unwrap();
            let gpu = Cuda::on(&device).unwrap();
            fake.fail(step, 0, code);
            assert_eq!(try_out(&gpu).unwrap_err().kind(), kind, "{step:?}");
        }
        let compiler = Arc::new(FakeCompiler::refusing("it does not know this GPU"));
        let device = Device::with(Arc::new(Fake::new(limits())), 0, compiler, DiskCache::off()).unwrap();
        let error = try_out(&Cuda::on(&device).unwrap()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Compile);
        assert!(error.to_string().contains("it does not know this GPU"), "{error}");
    }

    #[test]
    fn no_gpu_is_told_in_passing_and_a_broken_one_is_warned_of_with_advice() {
        let error = || Error::new(ErrorKind::Unavailable, "open device", "none is here").advise("buy one");
        let (absent, broken) = (NoGpu::Absent(error()), NoGpu::Broken(error()));
        assert_eq!((absent.level(), broken.level()), (Level::Info, Level::Warn));
        assert_eq!(absent.to_string(), "no GPU: open device: none is here");
        assert_eq!(broken.to_string(), "the GPU cannot be used: open device: none is here; buy one");
    }
}
