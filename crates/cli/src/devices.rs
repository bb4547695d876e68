//! `batchla devices`: what there is to compute on.

use batchla::{AnyBackend, Backend, Batch, BatchedInvert, Error, ErrorKind};
use batchla_testkit::Reference;
use clap::Args;
use serde::Serialize;

use crate::backend::Threads;
use crate::{SUCCESS, print};

/// Tell which backends work on this machine, and what is wrong with the others.
///
/// Each is tried: it inverts one matrix. --backend takes the name in the first column, --device the number of a GPU, or `all`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Devices {
    /// Only this backend
    #[arg(long, value_name = "NAME", value_parser = ["cuda", "cpu", "reference"])]
    backend: Option<String>,

    /// Print one JSON object a line, one for each device
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    threads: Threads,
}

const EXAMPLES: &str = "\
Examples:
  batchla devices
  batchla devices --backend cuda --json

Exit code:
  0  one of them works
  1  none does";

#[derive(Serialize)]
struct Found {
    backend: &'static str,
    works: bool,
    /// What it is, or why it does not work.
    what: String,
    /// Whether it is taken where none is asked for.
    chosen: bool,
}

impl Devices {
    /// Runs the command; gives the exit code.
    pub(crate) fn run(&self) -> Result<u8, Error> {
        self.threads.share()?;
        let wanted = |name: &&str| self.backend.as_deref().is_none_or(|backend| backend == *name);
        let mut found = Vec::new();
        for name in ["cuda", "cpu", "reference"].into_iter().filter(wanted) {
            match name {
                "cuda" => found.extend(gpus()),
                "cpu" => found.push(tried(name, batchla::backend("cpu"))),
                _ => found.push(tried(name, Ok(AnyBackend::new(Reference)))),
            }
        }
        let chosen = batchla::auto().ok().map(|backend| backend.describe());
        for device in &mut found {
            device.chosen = device.works && Some(&device.what) == chosen.as_ref();
        }
        let lines: Vec<String> = found.iter().map(|device| self.line(device)).collect::<Result<_, _>>()?;
        print("devices", &lines.join("\n"))?;
        if found.iter().any(|device| device.works) {
            return Ok(SUCCESS);
        }
        Err(Error::new(ErrorKind::Unavailable, "devices", "no backend works").advise("see above what is wrong"))
    }

    fn line(&self, device: &Found) -> Result<String, Error> {
        if self.json {
            return serde_json::to_string(device)
                .map_err(|e| Error::new(ErrorKind::Io, "devices", "the answer is no JSON").caused_by(e));
        }
        let works = if device.works { "works" } else { "-" };
        let chosen = if device.chosen { "  (taken where none is asked for)" } else { "" };
        Ok(format!("{:<10} {works:<6} {}{chosen}", device.backend, device.what))
    }
}

/// Every GPU that the driver shows, or why there is none; and all of them together, where there are several.
fn gpus() -> Vec<Found> {
    let open = |ordinal: usize| batchla::backend(&format!("cuda:{ordinal}"));
    let mut found = vec![tried("cuda", open(0))];
    for ordinal in 1.. {
        match open(ordinal) {
            Ok(gpu) => found.push(tried("cuda", Ok(gpu))),
            Err(_) => break,
        }
    }
    if found.len() > 1 {
        let mut all = tried("cuda", batchla::backend("cuda:all"));
        all.what = if all.works { format!("all {} GPUs together", found.len()) } else { all.what };
        found.push(all);
    }
    found
}

fn tried(backend: &'static str, opened: Result<AnyBackend, Error>) -> Found {
    let trial = opened.and_then(|opened| {
        let a = Batch::<f64>::from_fn(1, 2, 2, |_, i, j| if i == j { 2.0 } else { 0.0 })?;
        match opened.invert(&a)?.batch.get(0, 1, 1) {
            Some(0.5) => Ok(opened.describe()),
            other => Err(Error::new(ErrorKind::Device, "try", format!("the inverse of 2 was computed as {other:?}"))),
        }
    });
    match trial {
        Ok(what) => Found { backend, works: true, what, chosen: false },
        Err(error) => Found { backend, works: false, what: error.to_string(), chosen: false },
    }
}
