//! How long a program waits for its first result.

use std::ffi::OsStr;
use std::process::{Command, ExitStatus};
use std::time::Instant;

use batchla_core::{
    Backend, Batch, BatchLayout, BatchedInvert, Error, ErrorKind, Extras, HostMemory, InvertArgs, Options, Prepared,
    Problem, Report, Source, SourceKind,
};
use batchla_cuda::CudaHost;
use batchla_testkit::{Generator, LIMIT, inverse_ratio};

const BATCH: usize = 10_000;
const ORDER: usize = 64;

/// What keeps the compiler from a cache of its own, which NVRTC has since 12.9.
const NO_CACHE: (&str, &str) = ("CUDA_CACHE_DISABLE", "1");

/// The parts of the wait, in seconds, each with its name.
#[derive(Clone, Debug)]
pub struct Start {
    /// In order of time.
    pub parts: Vec<(&'static str, f64)>,
    /// The plan that ran.
    pub plan: String,
}

impl Start {
    /// Seconds from the start of the process to the result in host memory. The making of the input is no part of it.
    pub fn seconds(&self) -> f64 {
        self.parts.iter().map(|(_, seconds)| seconds).sum()
    }
}

/// Inverts a first batch, from host memory to host memory.
///
/// # Errors
/// [`ErrorKind::Unavailable`] without a GPU; what the device reports; a wrong result.
pub fn start() -> Result<Start, Error> {
    let mut parts: Vec<_> = since_process_began().map(|seconds| ("process", seconds)).into_iter().collect();
    let mut clock = Instant::now();
    let mut part = |name| {
        let now = Instant::now();
        parts.push((name, (now - std::mem::replace(&mut clock, now)).as_secs_f64()));
    };
    let host = CudaHost::open([0])?;
    part("context");
    let layout = BatchLayout::column_major(BATCH, ORDER, ORDER)?;
    let problem = Problem::invert::<f64>(SourceKind::Matrix, layout, layout)?;
    let prepared = host.prepare(&problem, &Options::default())?;
    part("prepare");
    let different = Generator::Uniform.batch::<f64>(layout.with_batch(64)?, 1)?;
    let values = different.as_slice().iter().copied().cycle().take(layout.span()).collect();
    let a = Batch::from_vec(values, layout)?;
    part("input");
    let mut workspace = host.workspace(&prepared)?;
    let mut report = Report::<f64, HostMemory>::allocate(&host, BATCH, Extras::none())?;
    let mut inverse = Batch::zeros(layout)?;
    part("memory");
    let (source, mut x) = (Source::Matrix(a.view()), inverse.view_mut());
    host.run_invert(&prepared, InvertArgs::new(&source, &mut x, report.view_mut()), &mut workspace)?;
    part("run");
    parts.retain(|(name, _)| *name != "input");
    let last = a.view().matrix(BATCH - 1).zip(inverse.view().matrix(BATCH - 1));
    let ratio = last.map_or(f64::INFINITY, |(a, x)| inverse_ratio(a, x));
    if ratio.is_nan() || ratio >= LIMIT {
        let what = format!("the result is wrong: residual ratio {ratio:.1}");
        return Err(Error::new(ErrorKind::Device, "bench start", what).advise("do not use its time"));
    }
    Ok(Start { parts, plan: prepared.plan().to_string() })
}

/// Runs this program again with such arguments, in a process whose folder of compiled kernels is new and empty, and whose compiler
/// remembers nothing either.
///
/// # Errors
/// [`ErrorKind::Io`].
pub fn cold(arguments: impl IntoIterator<Item: AsRef<OsStr>>) -> Result<ExitStatus, Error> {
    let failed = |error| Error::new(ErrorKind::Io, "bench", "the program cannot run itself").caused_by(error);
    let folder = tempfile::tempdir().map_err(failed)?;
    let program = std::env::current_exe().map_err(failed)?;
    let mut again = Command::new(program);
    again.args(arguments).env("BATCHLA_CACHE_DIR", folder.path()).env(NO_CACHE.0, NO_CACHE.1);
    again.status().map_err(failed)
}

/// Whether the compiler remembers nothing in this process.
pub fn is_cold() -> bool {
    std::env::var_os(NO_CACHE.0).is_some_and(|value| value == NO_CACHE.1)
}

/// Seconds since the process began, to a hundredth, where the system tells.
fn since_process_began() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let uptime = std::fs::read_to_string("/proc/uptime").ok()?;
    // Behind the program's name, which may hold blanks: the 20th word, in the hundredths of a second that Linux counts for programs.
    let began: f64 = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()?;
    let now: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    Some((now - began / 100.0).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_tells_when_the_process_began() {
        if cfg!(target_os = "linux") {
            let seconds = since_process_began().unwrap();
            assert!((0.0..3600.0).contains(&seconds), "{seconds}");
        }
    }
}
