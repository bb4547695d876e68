//! `cargo xtask streaming`: a file larger than the memory it gets, inverted from disk to disk by the program, and by `numpy.linalg.inv`.
//!
//! With and without a bound the bytes must be the same, the peak of memory within 1.3 times the bound, and the time within 1.1 times that of
//! the run without.

use std::error::Error;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::receipt;

/// Order of the matrices, of f64.
const ORDER: usize = 64;
const THREADS: &str = "2";
const NUMPY: &str = include_str!("streaming/invert.py");

/// A file larger than the memory it gets.
#[derive(Args)]
pub(crate) struct Streaming {
    /// Bytes of the file, in MB of 10^6
    #[arg(long, value_name = "MB", default_value_t = 6000)]
    size: usize,

    /// The bound, in MB
    #[arg(long, value_name = "MB", default_value_t = 1000)]
    memory: u64,

    /// Rounds of all contestants; the fastest counts
    #[arg(long, value_name = "COUNT", default_value_t = 3)]
    rounds: usize,

    /// Where the files lie, twice their size; else in a folder of the system's for temporary files
    #[arg(long, value_name = "FOLDER")]
    folder: Option<PathBuf>,

    /// Write the record
    #[arg(long)]
    record: bool,
}

/// A run, disk to disk.
struct Run {
    what: String,
    seconds: f64,
    computing: Option<f64>,
    peak: u64,
    version: String,
}

pub(crate) fn run(root: &Path, options: &Streaming) -> Result<ExitCode, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut build = Command::new(cargo);
    build.args(["build", "--quiet", "--release", "--package", "batchla-cli"]).current_dir(root);
    if !build.status()?.success() {
        return Err("the program cannot be built".into());
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let program = target.join("release/batchla");
    let folder = match &options.folder {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    let [a, x] = ["a.npy", "x.npy"].map(|name| folder.path().join(name));
    let batch = options.size * 1_000_000 / (8 * ORDER * ORDER);
    let (batch, order) = (batch.to_string(), ORDER.to_string());
    let made = Command::new(&program)
        .args(["generate", "normal", "--quiet", "--batch", &batch, "--order", &order, "-o"])
        .arg(&a)
        .status()?;
    if !made.success() {
        return Err("the matrices cannot be generated".into());
    }
    let bound = format!("{}MB", options.memory);
    let mut runs = Vec::new();
    let mut digests = Vec::new();
    for round in 0..options.rounds {
        let mut ways = [("unbounded", "1000TB"), ("bounded", bound.as_str())];
        // Who comes second finds another machine.
        ways.rotate_left(round % 2);
        for (what, bound) in ways {
            runs.push(ours(&program, what, bound, &a, &x)?);
            digests.push(digest(&x)?);
            fs::remove_file(&x)?;
        }
        if let Some(run) = numpy(&a, &x)? {
            runs.push(run);
            fs::remove_file(&x)?;
        }
    }
    if digests.iter().any(|digest| *digest != digests[0]) {
        return Err("the bound changes the result".into());
    }
    for Run { what, seconds, computing, peak, .. } in &runs {
        let computing = computing.map_or_else(String::new, |seconds| format!(", computing {seconds:.2} s"));
        println!("{what:<10} {seconds:>8.2} s{computing}, at most {} MB", peak / 1_000_000);
    }
    // Whatever else the machine does makes a run longer, never shorter.
    let fastest = |what: &str| runs.iter().filter(|run| run.what == what).map(|run| run.seconds).min_by(f64::total_cmp);
    let ratio = fastest("bounded").zip(fastest("unbounded")).map_or(f64::NAN, |(bounded, whole)| bounded / whole);
    let peak = runs.iter().filter(|run| run.what == "bounded").map(|run| run.peak).max().unwrap_or(u64::MAX);
    let share = peak as f64 / (1e6 * options.memory as f64);
    println!("bytes equal; bounded / unbounded {ratio:.3} (to be at most 1.1); peak / bound {share:.3} (below 1.3)");
    if let Some((ours, numpy)) = fastest("bounded").zip(fastest("numpy")) {
        println!("{:.2} times as fast as numpy.linalg.inv", numpy / ours);
    }
    if options.record {
        println!("written to {}", record(root, options, &runs)?);
    }
    Ok(if ratio <= 1.1 && share < 1.3 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn ours(program: &Path, what: &str, bound: &str, a: &Path, x: &Path) -> Result<Run, Box<dyn Error>> {
    settle()?;
    let mut command = Command::new(program);
    command.arg("invert").arg(a).arg("-o").arg(x);
    command.args(["--memory", bound, "--backend", "cpu", "--threads", THREADS, "--json", "--quiet"]);
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let summary: Value = serde_json::from_slice(&output.stdout)?;
    let seconds = summary["wall_seconds"].as_f64().ok_or("the summary has no time")?;
    let peak = summary["peak_bytes"].as_u64().ok_or("this system does not tell how much memory a process had")?;
    let version = summary["backend"].as_str().unwrap_or_default().to_owned();
    Ok(Run { what: what.to_owned(), seconds, computing: summary["seconds"].as_f64(), peak, version })
}

/// `numpy.linalg.inv` on the same file; `None` where there is no NumPy.
fn numpy(a: &Path, x: &Path) -> Result<Option<Run>, Box<dyn Error>> {
    if !Command::new("python3").args(["-c", "import numpy"]).output().is_ok_and(|output| output.status.success()) {
        return Ok(None);
    }
    settle()?;
    let mut command = Command::new("python3");
    command.args(["-c", NUMPY]).arg(a).arg(x);
    for variable in ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
        command.env(variable, THREADS);
    }
    let output = command.output()?;
    if !output.status.success() {
        return Err(format!("NumPy is there, but: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    let told: Value = serde_json::from_slice(&output.stdout)?;
    let [seconds, computing] = ["wall_seconds", "seconds"].map(|key| told[key].as_f64());
    let seconds = seconds.ok_or("NumPy told no time")?;
    let peak = told["peak_bytes"].as_u64().unwrap_or(0);
    let version = told["version"].as_str().unwrap_or_default().to_owned();
    Ok(Some(Run { what: "numpy".to_owned(), seconds, computing, peak, version }))
}

/// Waits until earlier files are on disk.
fn settle() -> Result<(), Box<dyn Error>> {
    Ok(Command::new("sync").status().map(drop)?)
}

fn digest(path: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut digest = Sha256::new();
    let (mut file, mut piece) = (File::open(path)?, vec![0; 1 << 20]);
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(digest.finalize().to_vec()),
            got => digest.update(&piece[..got]),
        }
    }
}

fn record(root: &Path, options: &Streaming, runs: &[Run]) -> Result<String, Box<dyn Error>> {
    let path = receipt::path(root, "streaming");
    let Streaming { size, memory, rounds, .. } = options;
    let columns = "from file to file in page cache or on disk, as the system has it, after a sync; computing: without reading and writing \
                   where those do not overlap; peak: VmHWM. Bounded and unbounded take chunks of at most 12 MB";
    let version =
        |what: &str| runs.iter().find(|run| run.what == what).map_or_else(String::new, |run| run.version.clone());
    let notes = [
        ("backend", version("bounded")),
        ("numpy", version("numpy")),
        ("threads", THREADS.to_owned()),
        ("command", format!("cargo xtask streaming --size {size} --memory {memory} --rounds {rounds} --record")),
        ("columns", columns.to_owned()),
    ];
    let mut file = receipt::create(&path, &notes)?;
    writeln!(file, "contestant,megabytes,order,scalar,wall_seconds,computing_seconds,peak_bytes,megabytes_a_second")?;
    for Run { what, seconds, computing, peak, .. } in runs {
        let computing = computing.map_or_else(String::new, |seconds| format!("{seconds:.3}"));
        writeln!(file, "{what},{size},{ORDER},f64,{seconds:.3},{computing},{peak},{:.1}", *size as f64 / seconds)?;
    }
    file.flush()?;
    Ok(path.strip_prefix(root)?.display().to_string())
}
