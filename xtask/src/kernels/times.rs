//! How long kernels take to compile: what users wait for where nothing is on disk yet.

use std::error::Error;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use batchla_cuda::Compiler;

use super::{matrix, work};

/// Seconds that no kernel should take.
const ASKED: f64 = 1.3;

const HEADER: &str = "seconds,arch,nvrtc,source,entry,constants";

/// Compiles each kernel of the planner's own plans once, one after another, and writes the seconds, the longest first.
pub(super) fn run(folders: &[PathBuf], architecture: &str, path: &Path) -> Result<ExitCode, Box<dyn Error>> {
    let compilers = work::compilers(folders)?;
    let (version, compiler) = match compilers.iter().next() {
        Some(only) if compilers.len() == 1 => only,
        _ => return Err("name the folder of one compiler: --nvrtc FOLDER".into()),
    };
    let mut needed = matrix::recorded()?;
    needed.retain(|one| one.architecture == architecture && one.nvrtc == *version && !one.promised.is_empty());
    if needed.is_empty() {
        return Err(format!("nothing is recorded for {architecture} by {version}").into());
    }
    let mut file = fs::File::create(path)?; // before minutes of work, not after them
    let mut times = Vec::new();
    for (one, number) in needed.iter().zip(1..) {
        let start = Instant::now();
        compiler.compile(&one.specification, architecture)?;
        times.push((start.elapsed().as_secs_f64(), one));
        if number % 50 == 0 {
            println!("{number} of {}", needed.len());
        }
    }
    times.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let mut text = format!("# Made by `cargo xtask kernels --times {architecture} FILE --nvrtc FOLDER`.\n{HEADER}\n");
    for (seconds, one) in &times {
        let specification = &one.specification;
        let (source, entry) = (specification.source().name, specification.entry());
        text.push_str(&format!("{seconds:.2},{architecture},{version},{source},{entry},{}\n", one.constants()));
    }
    file.write_all(text.as_bytes())?;
    let longer = times.iter().filter(|(seconds, _)| *seconds > ASKED).count();
    println!(
        "{} kernels for {architecture} by {version}: median {:.2} s, most {:.2} s, {longer} longer than {ASKED} s",
        times.len(),
        times[times.len() / 2].0,
        times[0].0
    );
    Ok(ExitCode::SUCCESS)
}
