//! `cargo xtask gpu-bundle`: what proves the CUDA backend on a machine that has a GPU and no Rust, as one folder.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::kernels;

/// What is laid into the folder `bundle`.
#[derive(Debug, clap::Args)]
pub(crate) struct Bundle {
    /// Also compile, with the libnvrtc of this folder, every kernel that the conformance suite needs. It must be of the version that
    /// the GPU machine has; there, nothing is compiled then
    #[arg(long, value_name = "FOLDER")]
    nvrtc: Option<PathBuf>,

    /// The GPU machine's architecture, for the compiled kernels
    #[arg(long, value_name = "ARCH", default_value = "sm_90", requires = "nvrtc")]
    architecture: String,
}

/// The script that runs everything there.
const RUN: &str = include_str!("run.sh");

/// What tests end with that need no GPU, and are run wherever there is Rust.
const WITHOUT_GPU: &str = "without_gpu";

/// A release without symbols: what travels should be small.
const PROFILE: [&str; 8] = [
    "--config",
    "profile.bundle.inherits=\"release\"",
    "--config",
    "profile.bundle.strip=\"symbols\"",
    "--config",
    "profile.bundle.debug=false",
    "--profile",
    "bundle",
];

/// Builds, and lays everything into a fresh folder.
pub(crate) fn run(root: &Path, options: &Bundle) -> Result<ExitCode, Box<dyn Error>> {
    let bundle = root.join("bundle");
    if bundle.exists() {
        fs::remove_dir_all(&bundle)?;
    }
    let (tests, data) = (bundle.join("tests"), bundle.join("data"));
    fs::create_dir_all(&tests)?;
    fs::create_dir_all(&data)?;
    let machine = ["test", "--no-run", "--package", "batchla-cuda", "--test", "*"];
    let facade = ["test", "--no-run", "--package", "batchla", "--test", "real_batches"];
    for (name, executable) in built(root, &machine)?.into_iter().chain(built(root, &facade)?) {
        if !name.ends_with(WITHOUT_GPU) {
            fs::copy(executable, tests.join(name))?;
        }
    }
    for (name, executable) in built(root, &["build", "--package", "batchla-cli", "--bins"])? {
        fs::copy(executable, bundle.join(name))?;
    }
    for entry in fs::read_dir(root.join("examples/data"))? {
        let entry = entry?;
        fs::copy(entry.path(), data.join(entry.file_name()))?;
    }
    script(&bundle.join("run"))?;
    if let Some(nvrtc) = &options.nvrtc {
        let folder = tempfile::tempdir()?;
        kernels::fill(nvrtc, &options.architecture, folder.path())?;
        let packed = Command::new("tar")
            .arg("-czf")
            .arg(bundle.join("cache.tar.gz"))
            .arg("-C")
            .arg(folder.path())
            .arg(".")
            .status()?;
        if !packed.success() {
            return Err(format!("tar: {packed}").into());
        }
    }
    let bytes = size(&bundle)?;
    println!("bundle: {:.1} MB; on the GPU machine: ./bundle/run", bytes as f64 * 1e-6);
    Ok(ExitCode::SUCCESS)
}

/// Names and paths of the executables that a call of cargo builds.
fn built(root: &Path, arguments: &[&str]) -> Result<Vec<(String, PathBuf)>, Box<dyn Error>> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.args(arguments).args(PROFILE).arg("--message-format=json-render-diagnostics");
    let output = command.current_dir(root).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("cargo {}: {}", arguments.join(" "), output.status).into());
    }
    let mut all = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let message: serde_json::Value = serde_json::from_str(line)?;
        let (name, executable) = (message["target"]["name"].as_str(), message["executable"].as_str());
        all.extend(name.zip(executable).map(|(name, executable)| (name.to_owned(), PathBuf::from(executable))));
    }
    if all.is_empty() {
        return Err(format!("cargo {} built no program", arguments.join(" ")).into());
    }
    Ok(all)
}

fn script(path: &Path) -> Result<(), Box<dyn Error>> {
    fs::write(path, RUN)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(())
}

/// Bytes of all files below a folder.
fn size(folder: &Path) -> Result<u64, Box<dyn Error>> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() { size(&entry.path())? } else { entry.metadata()?.len() };
    }
    Ok(bytes)
}
