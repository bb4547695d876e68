//! `cargo xtask emulated`: the kernels proved without a GPU, all of it: what the ordinary test run does and every plan through the whole suite.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

pub(crate) fn run(root: &Path) -> Result<ExitCode, Box<dyn Error>> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.args(["test", "--package", "batchla-emulated", "--", "--include-ignored"]);
    let status = command.env("BATCHLA_REQUIRE", "emulated").current_dir(root).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
