//! The compiling itself, on all cores.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use batchla_cuda::{Compiler, DiskCache, LazyNvrtc, Limits};

use super::matrix::{self, Needed};
use super::record::Row;

/// Makes the assembler write what a kernel takes into the log. It changes no code, and is not part of what names a kernel.
const VERBOSE: &str = "--ptxas-options=-v";

/// As much as a program's first thread has: a compiler may use a lot.
const STACK: usize = 8 << 20;

/// Compilers by name.
pub(super) type Compilers = BTreeMap<String, LazyNvrtc>;

/// Those of some folders.
pub(super) fn compilers(folders: &[PathBuf]) -> Result<Compilers, batchla::Error> {
    let named = |folder| {
        let compiler = LazyNvrtc::in_folder(folder);
        Ok((compiler.version()?, compiler))
    };
    folders.iter().map(named).collect()
}

/// Compiles what there is a compiler for, and hands over what each takes as it comes; gives the failures. What there is no compiler for is told by whoever asked for it.
pub(super) fn rows(
    needed: &[&Needed],
    compilers: &Compilers,
    mut each: impl FnMut(Row) -> Result<(), Box<dyn Error>>,
) -> Result<Vec<String>, Box<dyn Error>> {
    let compile = |one: &Needed, compiler: &LazyNvrtc| {
        let image = compiler.compile(&one.specification.clone().option(VERBOSE), one.architecture)?;
        let rows = Row::of_log(one, &image.log);
        if rows.iter().any(|row| row.entry == one.specification.entry()) {
            return Ok(rows);
        }
        Err(format!("the log of {} does not say what it takes: {}", one.specification, image.log).into())
    };
    on_all_cores(needed, compilers, compile, |rows| rows.into_iter().try_for_each(&mut each))
}

/// Fills a folder with what the conformance suite needs on an architecture, compiled by the NVRTC of a folder.
pub(crate) fn fill(nvrtc: &Path, architecture: &str, folder: &Path) -> Result<(), Box<dyn Error>> {
    let compilers = compilers(&[nvrtc.to_owned()])?;
    let version = compilers.keys().next().ok_or("no compiler was named")?;
    let needed = matrix::conformance(version, known(architecture)?)?;
    println!("{} compilations for {architecture} by {version}", needed.len());
    let cache = DiskCache::at(folder).at_most(u64::MAX);
    let compile = |one: &Needed, compiler: &LazyNvrtc| {
        let image = compiler.compile(&one.specification, one.architecture)?;
        cache.store(&one.digest, &one.specification.about(one.architecture, version), &image.bytes);
        Ok(())
    };
    let failures = on_all_cores(&needed.iter().collect::<Vec<_>>(), &compilers, compile, Ok)?;
    match failures.first() {
        None if folder.read_dir()?.count() < needed.len() => {
            Err("the folder does not hold all that was compiled".into())
        }
        None => Ok(()),
        Some(first) => Err(format!("{} compilations failed, the first: {first}", failures.len()).into()),
    }
}

fn known(architecture: &str) -> Result<&'static str, String> {
    let found = Limits::PRESETS.into_iter().find(|known| *known == architecture);
    found.ok_or_else(|| format!("{architecture} is none of {}", Limits::PRESETS.join(", ")))
}

/// Compiles on as many threads as there are cores; `each` has what comes of it, here and one after another. Gives the failures.
fn on_all_cores<T: Send>(
    needed: &[&Needed],
    compilers: &Compilers,
    compile: impl Fn(&Needed, &LazyNvrtc) -> Result<T, Box<dyn Error>> + Sync,
    mut each: impl FnMut(T) -> Result<(), Box<dyn Error>>,
) -> Result<Vec<String>, Box<dyn Error>> {
    let (next, (sender, receiver)) = (AtomicUsize::new(0), mpsc::channel());
    let work = |sender: mpsc::Sender<Result<T, String>>| {
        while let Some(one) = needed.get(next.fetch_add(1, Ordering::Relaxed)) {
            let Some(compiler) = compilers.get(&one.nvrtc) else { continue };
            // Nobody listens any more where a row could not be written.
            if sender.send(compile(one, compiler).map_err(|why| why.to_string().replace('\n', "; "))).is_err() {
                break;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism()?.get().min(needed.len()) {
            let sender = sender.clone();
            thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || work(sender))?;
        }
        drop(sender);
        let mut failures = Vec::new();
        for (result, done) in receiver.into_iter().zip(1..) {
            match result {
                Ok(compiled) => each(compiled)?,
                Err(failure) => failures.push(failure),
            }
            if done % 200 == 0 {
                println!("{done} of {}", needed.len());
            }
        }
        Ok(failures)
    })
}
