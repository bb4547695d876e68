//! `cargo xtask <task>`: what is done to the workspace beside building it.

mod accuracy;
mod bundle;
mod emulated;
mod fuzz;
mod kernels;
mod miri;
mod mutants;
// Benchmarks have no test harness of their own.
#[cfg(test)]
#[path = "../../benches/median.rs"]
mod median;
#[path = "../../benches/receipt.rs"]
mod receipt;
mod streaming;
mod validate;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;

/// Tasks of the workspace. Speed is recorded by `cargo bench --bench ratio`.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// All that must hold before a pull request: format, lints, tests, documentation, examples
    Validate,
    /// The residuals of our inverses beside SciPy's on the same matrices, as a table and a record.
    /// Exits with 1 where one of ours is not accurate enough, with 77 where there was no SciPy to compare with
    Accuracy(accuracy::Accuracy),
    /// The kernels run on the CPU: every plan through the whole conformance suite, every access watched
    Emulated,
    /// What proves the CUDA backend on a machine that has a GPU and no Rust: tests, program, data and a script, in the folder `bundle`
    GpuBundle(bundle::Bundle),
    /// Every kernel of the CUDA backend, compiled for every architecture with no GPU at hand; what is recorded is not compiled again.
    /// Exits with 1 where one does not compile, spills though it must not, or is not recorded
    Kernels(kernels::Kernels),
    /// The kernels' text changed mechanically (each barrier dropped, each comparison flipped, each loop cut short), one place at a time, and run on
    /// the CPU; what no run shows is listed in `crates/emulated/survivors.tsv`, with the reason.
    /// Exits with 1 where one has none
    Mutants(mutants::Mutants),
    /// What reaches memory by pointers, under Miri. Exits with 77 where there is no nightly toolchain with it
    Miri,
    /// The reading of `.npy` and `.npz` files under libFuzzer. Exits with 77 where there is no nightly toolchain with cargo-fuzz
    Fuzz(fuzz::Fuzz),
    /// A file larger than the memory it gets, inverted from disk to disk by the program with and without a bound, and by NumPy.
    /// Exits with 1 where the bound is not kept, or costs more than a tenth of the time
    Streaming(streaming::Streaming),
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the workspace has no folder")?;
    match Task::parse() {
        Task::Validate => validate::run(root),
        Task::Accuracy(options) => accuracy::run(root, &options),
        Task::Emulated => emulated::run(root),
        Task::GpuBundle(options) => bundle::run(root, &options),
        Task::Kernels(options) => kernels::run(root, &options),
        Task::Mutants(options) => mutants::run(root, &options),
        Task::Miri => miri::run(root),
        Task::Fuzz(options) => fuzz::run(root, &options),
        Task::Streaming(options) => streaming::run(root, &options),
    }
}
