//! `cargo xtask kernels`: every kernel that the plans need, compiled by both compilers for every architecture, with no GPU at hand.
//!
//! What each takes (registers, shared memory, spills) is recorded in `crates/cuda/kernels.csv`. A kernel is named by the digest of its
//! text, its constants, the architecture and the compiler; what is recorded under its digest is not compiled again.

mod allowed;
mod matrix;
mod problems;
mod record;
mod times;
mod work;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use self::matrix::Needed;
use self::record::{Record, Row};
pub(crate) use self::work::fill;

/// How kernels are compiled and checked.
#[derive(Debug, clap::Args)]
pub(crate) struct Kernels {
    /// A folder with a libnvrtc; once for each of NVRTC 12.9 and 13.0. Not needed where everything is recorded
    #[arg(long, value_name = "FOLDER")]
    nvrtc: Vec<PathBuf>,

    /// Write what was compiled into the record, and drop what nothing needs any more
    #[arg(long)]
    record: bool,

    /// Only measure: compile what the planner's own plans need on this architecture, by the one compiler named, one kernel after another, and write the seconds
    /// of each into a CSV file. Minutes
    #[arg(long, requires = "nvrtc", conflicts_with = "record", value_names = ["ARCH", "FILE"], num_args = 2)]
    times: Option<Vec<String>>,
}

/// Compiles what is not recorded, and checks all.
pub(crate) fn run(root: &Path, options: &Kernels) -> Result<ExitCode, Box<dyn Error>> {
    let path = root.join("crates/cuda/kernels.csv");
    if let Some([architecture, file]) = options.times.as_deref() {
        return times::run(&options.nvrtc, architecture, Path::new(file));
    }
    let start = Instant::now();
    let needed = matrix::recorded()?;
    let mut record = Record::read(&path)?;
    let missing: Vec<_> = needed.iter().filter(|one| !record.has(&one.key())).collect();
    println!("{} compilations are needed, {} of them are not recorded", needed.len(), missing.len());
    let mut news = 0;
    let mut failures = work::rows(&missing, &work::compilers(&options.nvrtc)?, |row| {
        record.add(row);
        news += 1;
        // Minutes of work survive an interruption.
        if options.record && news % 100 == 0 {
            record.write(&path, &needed)?;
        }
        Ok(())
    })?;
    let uncompiled: Vec<_> = needed.iter().filter(|one| !record.has(&one.key())).collect();
    for one in uncompiled.iter().take(5) {
        failures.push(format!("{} for {} by {} was not compiled", one.specification, one.architecture, one.nvrtc));
    }
    let spills = spills(&needed, &record);
    spills.iter().for_each(|line| println!("{line}"));
    failures.extend((!spills.is_empty()).then(|| {
        format!(
            "{} kernels of the planner's own plans spill registers and are not on the list of those that may",
            spills.len()
        )
    }));
    if options.record {
        let rows = record.write(&path, &needed)?;
        println!("{rows} rows written to crates/cuda/kernels.csv");
    } else {
        let again = "run `cargo xtask kernels --record` with the folders of both compilers";
        let unneeded = record.unneeded(&needed);
        failures.extend(
            (!missing.is_empty())
                .then(|| format!("{} compilations are not in crates/cuda/kernels.csv: {again}", missing.len())),
        );
        failures.extend(
            (unneeded > 0)
                .then(|| format!("crates/cuda/kernels.csv has {unneeded} compilations that nothing needs: {again}")),
        );
    }
    for failure in &failures {
        println!("FAILED: {failure}");
    }
    println!(
        "{} in {:.1} s",
        if failures.is_empty() { "all is well" } else { "failed" },
        start.elapsed().as_secs_f64()
    );
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Kernels of the planner's own plans that spill though nobody said that they may.
fn spills(needed: &[Needed], record: &Record) -> Vec<String> {
    let mut all = Vec::new();
    for one in needed {
        for row in
            record.rows(&one.key()).iter().filter(|row| row.resources.spill_stores + row.resources.spill_loads > 0)
        {
            let Some(orders) = one.promised.get(&row.entry) else { continue };
            if !allowed::may_spill(row) {
                all.push(describe(row, orders));
            }
        }
    }
    all.sort();
    all
}

fn describe(row: &Row, orders: &[usize]) -> String {
    let orders: Vec<_> = orders.iter().map(usize::to_string).collect();
    let Row { architecture, nvrtc, entry, constants, resources, .. } = row;
    format!(
        "{entry} of orders {} for {architecture} by {nvrtc}: {} registers, {} bytes spilled, {} read back ({constants})",
        orders.join(" "),
        resources.registers,
        resources.spill_stores,
        resources.spill_loads
    )
}
