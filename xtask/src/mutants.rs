//! `cargo xtask mutants`: the kernels' text changed mechanically, one place at a time; what no run shows is listed, with the reason.

mod change;
mod trials;

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use change::Mutant;

/// Which mutants.
#[derive(clap::Args)]
pub(crate) struct Mutants {
    /// Only those of these files
    #[arg(long = "file", value_name = "FILE")]
    files: Vec<String>,
    /// All but those of these files
    #[arg(long = "but", value_name = "FILE")]
    but: Vec<String>,
    /// Only those that are listed as survivors
    #[arg(long)]
    survivors: bool,
    /// Only those that are listed without a reason
    #[arg(long)]
    unexplained: bool,
    /// Only those of lines that this commit has not
    #[arg(long, value_name = "COMMIT")]
    since: Option<String>,
    /// Only the K-th of N parts
    #[arg(long, value_name = "K/N", value_parser = shard, default_value = "0/1")]
    shard: (usize, usize),
    /// One mutant, by its number: says what shows it
    #[arg(long, hide = true)]
    one: Option<usize>,
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
    parts.filter(|(k, n)| k < n).ok_or_else(|| format!("{text:?} is not K/N with K below N"))
}

/// Where survivors are listed: file, what the line was, what it became, and why nothing shows it.
const SURVIVORS: &str = "crates/emulated/survivors.tsv";
/// Seconds of processor time that a mutant may take; one that never ends is shown by that.
const PATIENCE: u32 = 150;

/// What shows a mutant, found by a process of its own: some changes never end.
fn shown_apart(index: usize) -> Result<Option<String>, Box<dyn Error>> {
    let script = format!("ulimit -t {PATIENCE}; exec \"$0\" mutants --one {index}");
    let output = Command::new("sh").args(["-c", &script]).arg(env::current_exe()?).output()?;
    if !output.status.success() {
        return Ok(Some("the end of its process".to_owned()));
    }
    Ok(String::from_utf8(output.stdout)?.trim().strip_prefix("shown by ").map(str::to_owned))
}

/// What identifies a mutant while lines move.
type Key = [String; 3];

fn key(mutant: &Mutant) -> Key {
    [mutant.file.to_owned(), mutant.was.clone(), mutant.now.clone()]
}

/// The listed survivors, with their reasons.
fn listed(root: &Path) -> Result<BTreeMap<Key, String>, Box<dyn Error>> {
    let path = root.join(SURVIVORS);
    let text = if path.exists() { fs::read_to_string(path)? } else { String::new() };
    let rows = text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect::<Vec<_>>());
    rows.map(|row| match <[String; 4]>::try_from(row) {
        Ok([file, was, now, why]) => Ok(([file, was, now], why)),
        Err(row) => Err(format!("{SURVIVORS}: {row:?} has not four columns").into()),
    })
    .collect()
}

/// What shows each of some mutants, as many at a time as there are cores.
fn shown_of(all: &[Mutant], chosen: &[usize]) -> Result<BTreeMap<usize, Option<String>>, Box<dyn Error>> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| -> Result<(), String> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let work = || -> Result<(), String> {
            while let Some(&index) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                let shown = shown_apart(index).map_err(|error| error.to_string())?;
                let Mutant { file, line, now, .. } = &all[index];
                println!("{file}:{line}: {now}: {}", shown.as_deref().unwrap_or("survives"));
                found.lock().map_err(|error| error.to_string())?.insert(index, shown);
            }
            Ok(())
        };
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker ended early".to_owned())?)
    })?;
    Ok(found.into_inner()?)
}

/// The text that a file of the kernels has in a commit, if there is one; none where it is not there.
fn text_in(root: &Path, commit: Option<&str>, file: &str) -> Result<String, Box<dyn Error>> {
    let Some(commit) = commit else { return Ok(String::new()) };
    let git = |arguments: &[&str]| Command::new("git").args(arguments).current_dir(root).output();
    if !git(&["rev-parse", "--verify", "--quiet", &format!("{commit}^{{commit}}")])?.status.success() {
        return Err(format!("{commit} is no commit of this repository").into());
    }
    Ok(String::from_utf8(git(&["show", &format!("{commit}:crates/cuda/src/kernels/{file}")])?.stdout)?)
}

pub(crate) fn run(root: &Path, options: &Mutants) -> Result<ExitCode, Box<dyn Error>> {
    let all = change::mutants()?;
    if let Some(one) = options.one {
        match trials::shown(all.get(one).ok_or("there is no such mutant")?)? {
            Some(what) => println!("shown by {what}"),
            None => println!("survives"),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (k, n) = options.shard;
    let named = |file: &str, names: &[String]| names.iter().any(|name| name == file);
    let wanted = |file: &str| (options.files.is_empty() || named(file, &options.files)) && !named(file, &options.but);
    let mut survivors = listed(root)?;
    let again = |mutant: &Mutant| match survivors.get(&key(mutant)) {
        Some(why) => why.is_empty() || !options.unexplained,
        None => !options.survivors && !options.unexplained,
    };
    let mut chosen = Vec::new();
    for of_file in all.chunk_by(|one, next| one.file == next.file) {
        let old = text_in(root, options.since.as_deref(), of_file[0].file)?;
        // Lines that are the same are known by their number among them.
        let same = |text: &str, line: &str| text.lines().filter(|other| other.trim() == line.trim()).count();
        let new = |mutant: &Mutant| {
            mutant.text.lines().nth(mutant.line - 1).is_none_or(|line| same(&old, line) != same(mutant.text, line))
        };
        chosen.extend(of_file.iter().map(|mutant| wanted(mutant.file) && again(mutant) && new(mutant)));
    }
    let chosen: Vec<usize> = (0..all.len()).filter(|&at| chosen[at] && at % n == k).collect();
    println!("{} of {} mutants", chosen.len(), all.len());
    trials::unchanged()?;
    let mut by = BTreeMap::<String, usize>::new();
    survivors.retain(|kept, _| all.iter().any(|mutant| key(mutant) == *kept));
    // Saved file by file: what was found stays found.
    for of_file in chosen.chunk_by(|&one, &next| all[one].file == all[next].file) {
        let found = shown_of(&all, of_file)?;
        let known = survivors.clone();
        found.keys().for_each(|&index| drop(survivors.remove(&key(&all[index]))));
        for (index, shown) in found {
            if shown.is_none() {
                let key = key(&all[index]);
                let why = known.get(&key).cloned().unwrap_or_default();
                survivors.insert(key, why);
            }
            *by.entry(shown.unwrap_or_else(|| "nothing".to_owned())).or_default() += 1;
        }
        let rows = survivors.iter().map(|([file, was, now], why)| format!("{file}\t{was}\t{now}\t{why}\n"));
        fs::write(root.join(SURVIVORS), "file\twas\tnow\twhy\n".to_owned() + &rows.collect::<String>())?;
    }
    by.iter().for_each(|(what, count)| println!("{count:5} shown by {what}"));
    let unexplained = survivors.values().filter(|why| why.is_empty()).count();
    println!("{SURVIVORS}: {} survive, {unexplained} of them without a reason", survivors.len());
    Ok(if unexplained == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
