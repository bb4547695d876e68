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
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Name {
    /// The best of this machine, or what the environment variable BATCHLA_BACKEND names
    Auto,
    /// All cores, or as many threads as --threads says
    Cpu,
    /// Textbook loops on one thread: slow, to compare with
    Reference,
}

impl BackendChoice {
    /// The backend that was asked for.
    pub(crate) fn backend(&self) -> Result<AnyBackend, Error> {
        match (self.backend, self.threads) {
            (Name::Auto, None) => batchla::auto(),
            (Name::Auto, Some(threads)) => Ok(cpu(threads)?.because("a number of threads was asked for")),
            (Name::Cpu, None) => batchla::backend("cpu"),
            (Name::Cpu, Some(threads)) => cpu(threads),
            (Name::Reference, None | Some(1)) => Ok(AnyBackend::new(Reference)),
            (Name::Reference, Some(threads)) => {
                let what = format!("the reference works on one thread, not on {threads}");
                Err(Error::new(ErrorKind::Argument, "backend", what)
                    .advise("leave --threads out, or use --backend cpu"))
            }
        }
    }
}

fn cpu(threads: usize) -> Result<AnyBackend, Error> {
    Ok(AnyBackend::new(Cpu::builder().threads(threads).build()?))
}
