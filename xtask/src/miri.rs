//! `cargo xtask miri`: what reaches memory by pointers, step by step under an interpreter that watches every one of them.

use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode};

/// The exit code of a run that did not take place, as in automake.
const SKIPPED: u8 = 77;

/// What is run, and what is looked at with it.
const RUNS: [(&str, &str); 3] = [
    ("core's batches, views, layouts and the data of other crates", "-p batchla-core --lib --all-features"),
    ("the reading and writing of files", "-p batchla-npy --lib"),
    ("the CPU backend's packed memory", "-p batchla-cpu --test pointers"),
];

pub(crate) fn run(root: &Path) -> Result<ExitCode, Box<dyn Error>> {
    let there = Command::new("cargo").args(["+nightly", "miri", "--version"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        println!(
            "SKIPPED: there is no nightly toolchain with Miri (rustup toolchain add nightly --component miri,rust-src)"
        );
        return Ok(ExitCode::from(SKIPPED));
    }
    for (what, arguments) in RUNS {
        println!("Miri on {what}");
        let mut miri = Command::new("cargo");
        miri.args(["+nightly", "miri", "test"]).args(arguments.split(' '));
        // Files are read, and time is asked for; pointers keep what they were made from; sums are the processor's, to the bit.
        miri.env("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-strict-provenance -Zmiri-deterministic-floats");
        // A step takes a thousand times as long.
        miri.env("PROPTEST_CASES", "4");
        let status = miri.current_dir(root).env_remove("CARGO").env_remove("RUSTUP_TOOLCHAIN").status()?;
        if !status.success() {
            return Ok(ExitCode::FAILURE);
        }
    }
    Ok(ExitCode::SUCCESS)
}
