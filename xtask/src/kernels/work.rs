//! The compiling itself: NVRTC compiles one kernel at a time in a process, so each core gets a process.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::str::FromStr;
use std::sync::mpsc;

use batchla_cuda::{Compiler, DiskCache, LazyNvrtc, Limits};

use super::matrix::{self, Needed};
use super::record::{Record, Row};

/// Makes the assembler write what a kernel takes into the log. It changes no code, and is not part of what names a kernel.
const VERBOSE: &str = "--ptxas-options=-v";

/// What a process prints before the words of a failure.
const FAILURE: &str = "failed: ";

/// One of so many parts.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    index: usize,
    count: usize,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parsed = text.split_once('/').and_then(|(index, count)| Some((index.parse().ok()?, count.parse().ok()?)));
        let (index, count) = parsed.ok_or("a part is written like 0/2")?;
        if index < count { Ok(Self { index, count }) } else { Err("parts are counted from 0".to_owned()) }
    }
}

/// The compilers of some folders, by name.
pub(super) fn compilers(folders: &[PathBuf]) -> Result<BTreeMap<String, LazyNvrtc>, batchla::Error> {
    let named = |folder| {
        let compiler = LazyNvrtc::in_folder(folder);
        Ok((compiler.version()?, compiler))
    };
    folders.iter().map(named).collect()
}

/// Compiles one part and prints a row, or a failure, a line.
pub(super) fn run(
    record: &Path,
    folders: &[PathBuf],
    part: &Part,
    keep: Option<&[String]>,
) -> Result<ExitCode, Box<dyn Error>> {
    let compilers = compilers(folders)?;
    let (needed, cache) = match keep {
        Some([architecture, folder]) => {
            let version = compilers.keys().next().ok_or("no compiler was named")?;
            (matrix::conformance(version, known(architecture)?)?, DiskCache::at(folder).at_most(u64::MAX))
        }
        _ => {
            let record = Record::read(record)?;
            let mut needed = matrix::recorded()?;
            needed.retain(|one| !record.has(&one.key()));
            (needed, DiskCache::off())
        }
    };
    for one in needed.iter().skip(part.index).step_by(part.count) {
        // What there is no compiler for is told by whoever asked for it.
        let Some(compiler) = compilers.get(&one.nvrtc) else { continue };
        match compile(one, compiler, &cache) {
            Ok(rows) => rows.iter().for_each(|row| println!("{row}")),
            Err(why) => println!("{FAILURE}{}", why.to_string().replace('\n', "; ")),
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn known(architecture: &str) -> Result<&'static str, String> {
    let found = Limits::PRESETS.into_iter().find(|known| *known == architecture);
    found.ok_or_else(|| format!("{architecture} is none of {}", Limits::PRESETS.join(", ")))
}

fn compile(one: &Needed, compiler: &LazyNvrtc, cache: &DiskCache) -> Result<Vec<Row>, Box<dyn Error>> {
    if cache.folder().is_some() {
        let image = compiler.compile(&one.specification, one.architecture)?;
        let about = format!("{} for {} by {}", one.specification, one.architecture, compiler.version()?);
        cache.store(&one.digest, &about, &image.bytes);
        return Ok(Vec::new());
    }
    let image = compiler.compile(&one.specification.clone().option(VERBOSE), one.architecture)?;
    let rows = Row::of_log(one, &image.log);
    if !rows.iter().any(|row| row.entry == one.specification.entry()) {
        return Err(format!("the log of {} does not say what it takes: {}", one.specification, image.log).into());
    }
    Ok(rows)
}

/// Shares the work among processes, one a core; hands every row over as it comes, and gives the failures.
pub(super) fn share(
    root: &Path,
    arguments: Vec<OsString>,
    count: usize,
    mut each: impl FnMut(Row) -> Result<(), Box<dyn Error>>,
) -> Result<Vec<String>, Box<dyn Error>> {
    let cores = std::thread::available_parallelism()?.get().min(count);
    let (sender, receiver) = mpsc::channel();
    let mut children = Vec::new();
    for index in 0..cores {
        let mut command = Command::new(env::current_exe()?);
        command.arg("kernels").arg("--part").arg(format!("{index}/{cores}")).args(&arguments).current_dir(root);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let (sender, output) = (sender.clone(), child.stdout.take().ok_or("a process has no output")?);
        std::thread::spawn(move || BufReader::new(output).lines().for_each(|line| drop(sender.send(line))));
        children.push(child);
    }
    drop(sender);
    let mut failures = Vec::new();
    let mut compiled = BTreeSet::new();
    for line in receiver {
        let line = line?;
        match (line.strip_prefix(FAILURE), Row::parse(&line)) {
            (None, Some(row)) => {
                if compiled.insert(row.digest.clone()) && compiled.len().is_multiple_of(200) {
                    println!("{} of {count}", compiled.len());
                }
                each(row)?;
            }
            (failure, _) => failures.push(failure.unwrap_or(&line).to_owned()),
        }
    }
    for mut child in children {
        let status = child.wait()?;
        if !status.success() {
            failures.push(format!("a process that compiled ended early: {status}"));
        }
    }
    Ok(failures)
}

/// Fills a folder with what the conformance suite needs on an architecture, compiled by the NVRTC of a folder.
pub(crate) fn fill(root: &Path, nvrtc: &Path, architecture: &str, cache: &Path) -> Result<(), Box<dyn Error>> {
    let version = LazyNvrtc::in_folder(nvrtc).version()?;
    let count = matrix::conformance(&version, known(architecture)?)?.len();
    println!("{count} compilations for {architecture} by {version}");
    let arguments = ["--nvrtc".into(), nvrtc.into(), "--keep".into(), architecture.into(), cache.into()];
    let failures = share(root, arguments.to_vec(), count, |_| Ok(()))?;
    match failures.first() {
        None if fs::read_dir(cache)?.count() < count => Err("the folder does not hold all that was compiled".into()),
        None => Ok(()),
        Some(first) => Err(format!("{} compilations failed, the first: {first}", failures.len()).into()),
    }
}
