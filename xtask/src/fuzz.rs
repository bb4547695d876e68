//! `cargo xtask fuzz`: the reading of `.npy` and `.npz` files under libFuzzer.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use clap::Args;

/// The exit code of a run that did not take place, as in automake.
const SKIPPED: u8 = 77;

/// Any bytes as a file.
#[derive(Args)]
pub(crate) struct Fuzz {
    /// How long
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    seconds: u64,
}

pub(crate) fn run(root: &Path, options: &Fuzz) -> Result<ExitCode, Box<dyn Error>> {
    let there = Command::new("cargo").args(["+nightly", "fuzz", "--version"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        println!(
            "SKIPPED: there is no nightly toolchain with cargo-fuzz (rustup toolchain add nightly; cargo install cargo-fuzz)"
        );
        return Ok(ExitCode::from(SKIPPED));
    }
    let crate_root = root.join("crates/npy");
    let corpus = crate_root.join("fuzz/corpus/read");
    fs::create_dir_all(&corpus)?;
    for entry in fs::read_dir(root.join("examples/data"))? {
        let path = entry?.path();
        if let (Some(name), Some("npy")) = (path.file_name(), path.extension().and_then(|extension| extension.to_str()))
        {
            // The front, and a few numbers: what is behind them teaches nothing.
            let bytes = fs::read(&path)?;
            fs::write(corpus.join(name), &bytes[..bytes.len().min(4096)])?;
        }
    }
    let limit = format!("-max_total_time={}", options.seconds);
    let mut fuzz = Command::new("cargo");
    fuzz.args([
        "+nightly",
        "fuzz",
        "run",
        "read",
        "--",
        &limit,
        "-max_len=65536",
        "-malloc_limit_mb=256",
        "-rss_limit_mb=1024",
    ]);
    // cargo-fuzz has a folder of its own.
    let status = fuzz.current_dir(crate_root).env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN").status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
