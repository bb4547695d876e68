//! Which backend a command runs on.

use batchla::{AnyBackend, Cpu, Error, ErrorKind};
use batchla_testkit::Reference;
use clap::{Args, ValueEnum};

/// Options that choose a backend.
#[derive(Debug, Args)]
pub(crate) struct BackendChoice {
    /// Where to compute
    #[arg(long, value_enum, default_value_t = Name::Auto)]
    backend: Name,

    /// Threads of the CPU backend [default: one for each core]
    #[arg(long, value_name = "N", conflicts_with = "device")]
    threads: Option<usize>,

    /// The GPU of the CUDA backend, by its number among those that CUDA_VISIBLE_DEVICES shows; several, as 0,1 or all, share each batch [default: 0]
    #[arg(long, value_name = "N")]
    device: Option<String>,

    /// The plan to compute by, instead of the planner's own: `batchla plan` tells which there are, and what speaks against each
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,
}

/// How many threads compare; for commands that need no backend.
#[derive(Debug, Args)]
pub(crate) struct Threads {
    /// Threads [default: one for each core]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    /// The best of this machine, a GPU before the CPU, or what the environment variable BATCHLA_BACKEND names
    Auto,
    /// An NVIDIA GPU
    Cuda,
    /// All cores, or as many threads as --threads says
    Cpu,
    /// Textbook loops on one thread: slow, to compare with
    Reference,
}

impl BackendChoice {
    /// The backend that was asked for.
    pub(crate) fn backend(&self) -> Result<AnyBackend, Error> {
        let backend = self.unforced()?;
        Ok(match &self.plan {
            Some(plan) => backend.with_plan(plan.as_str()),
            None => backend,
        })
    }

    fn unforced(&self) -> Result<AnyBackend, Error> {
        Threads { threads: self.threads }.share()?;
        match (self.backend, self.threads, self.device.as_deref()) {
            (Name::Auto, None, None) => batchla::auto(),
            (Name::Auto, Some(threads), _) => Ok(cpu(threads)?.because("a number of threads was asked for")),
            (Name::Auto, None, Some(device)) => Ok(cuda(device)?.because("a GPU was asked for by number")),
            (Name::Cuda, None, device) => cuda(device.unwrap_or("0")),
            (Name::Cpu, None, None) => batchla::backend("cpu"),
            (Name::Cpu, Some(threads), None) => cpu(threads),
            (Name::Reference, None | Some(1), None) => Ok(AnyBackend::new(Reference)),
            (Name::Cuda, Some(_), _) => Err(contradiction("--threads is for the CPU backend", "cpu")),
            (Name::Cpu | Name::Reference, _, Some(_)) => Err(contradiction("--device is for the CUDA backend", "cuda")),
            (Name::Reference, Some(threads), None) => {
                let what = format!("the reference works on one thread, not on {threads}");
                Err(Error::new(ErrorKind::Argument, "backend", what)
                    .advise("leave --threads out, or use --backend cpu"))
            }
        }
    }
}

impl Threads {
    /// Has the whole program compare on so many threads.
    pub(crate) fn share(&self) -> Result<(), Error> {
        match self.threads {
            Some(0) => Err(Error::new(ErrorKind::Argument, "threads", "0 threads compute nothing")
                .advise("ask for at least one, or leave --threads out")),
            Some(count) if count > rayon::max_num_threads() => {
                let what = format!("{count} threads are too many");
                Err(Error::new(ErrorKind::Argument, "threads", what)
                    .advise(format!("ask for at most {}, or leave --threads out", rayon::max_num_threads())))
            }
            Some(count) => rayon::ThreadPoolBuilder::new().num_threads(count).build_global().map_err(|e| {
                Error::new(ErrorKind::Unavailable, "threads", format!("{count} threads could not be started"))
                    .advise("ask for fewer")
                    .caused_by(e)
            }),
            None => Ok(()),
        }
    }
}

fn contradiction(what: &str, name: &str) -> Error {
    Error::new(ErrorKind::Argument, "backend", what).advise(format!("leave it out, or use --backend {name}"))
}

fn cpu(threads: usize) -> Result<AnyBackend, Error> {
    Ok(AnyBackend::new(Cpu::builder().threads(threads).build()?))
}

fn cuda(devices: &str) -> Result<AnyBackend, Error> {
    batchla::backend(&name_of_gpus(devices))
}

/// By numbers, or as a backend is named.
fn name_of_gpus(devices: &str) -> String {
    format!("cuda:{}", devices.strip_prefix("cuda:").unwrap_or(devices))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_go_by_their_numbers_and_by_the_name_of_a_backend() {
        for (given, name) in [("0", "cuda:0"), ("0,1", "cuda:0,1"), ("all", "cuda:all"), ("cuda:0", "cuda:0")] {
            assert_eq!(name_of_gpus(given), name);
        }
    }
}
