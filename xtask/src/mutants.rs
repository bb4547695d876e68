//! `cargo xtask mutants`: the kernels' text changed mechanically, one place at a time; what no run shows is listed.

use std::collections::BTreeMap;
use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use batchla::{BatchLayout, Extras, Options, Problem, ScalarKind, SourceKind, Transpose};
use batchla_cuda::{CudaPlan, Limits};
use batchla_emulated::{Checks, Emulated, Step, Trial};
use batchla_testkit::{Scope, check};

/// Which mutants.
#[derive(clap::Args)]
pub(crate) struct Mutants {
    /// Only those of files whose name contains this
    #[arg(long)]
    file: Option<String>,
    /// One mutant, by its number: says whether it is shown
    #[arg(long, hide = true)]
    one: Option<usize>,
}

/// A changed place.
#[derive(Clone, Debug)]
struct Mutant {
    file: &'static str,
    line: usize,
    was: String,
    now: String,
    text: &'static str,
    changed: String,
}

/// Where survivors are listed.
const SURVIVORS: &str = "crates/emulated/survivors.csv";
/// How long a mutant may take; one that never ends is shown by that.
const PATIENCE: Duration = Duration::from_secs(300);

/// Every file of the kernels' text.
fn files() -> Result<BTreeMap<&'static str, &'static str>, Box<dyn Error>> {
    let a = BatchLayout::row_major(1, 8, 8)?;
    let extras = Extras::none().with_determinant().with_condition();
    let invert = || Problem::invert::<f64>(SourceKind::Matrix, a, a)?.with_extras(extras);
    let planned = [
        ("left-looking", invert()?),
        ("resident", invert()?),
        ("resident", Problem::factorize::<f64>(SourceKind::Matrix, a, a)?),
        ("multi-kernel-two-level", Problem::factorize::<f64>(SourceKind::Matrix, a, a)?),
        ("left-looking", Problem::solve::<f64>(SourceKind::Factors, a, None, a, Transpose::None)?),
    ];
    let limits = Limits::preset("sm_90").ok_or("no such preset")?;
    let mut files = BTreeMap::new();
    for (plan, problem) in &planned {
        let options = Options::default().with_plan(*plan);
        for specification in CudaPlan::choose(problem, &options, &limits)?.specifications(problem) {
            let source = specification.source();
            files.insert(source.name, source.text);
            files.extend(source.headers.iter().copied());
        }
    }
    Ok(files)
}

/// What one line may become: without its barrier, with a comparison flipped, with a loop one shorter.
fn changes(line: &str) -> Vec<String> {
    let code = line.split("//").next().unwrap_or_default();
    let mut all = Vec::new();
    if code.trim_start().starts_with('#') || code.contains("static_assert") || code.contains("template") {
        return all;
    }
    for barrier in ["team_sync();", "__syncthreads();", "Lanes::sync();"] {
        if code.contains(barrier) {
            all.push(line.replacen(barrier, ";", 1));
        }
    }
    let flips = [("<", "<="), ("<=", "<"), (">", ">="), (">=", ">"), ("==", "!="), ("!=", "==")];
    for (from, to) in flips {
        let from = format!(" {from} ");
        for (at, _) in code.match_indices(&from) {
            all.push(format!("{} {to} {}", &line[..at], &line[at + from.len()..]));
        }
    }
    if code.contains("for (") {
        all.extend(code.match_indices(" < ").map(|(at, _)| format!("{} + 1{}", &line[..at], &line[at..])));
    }
    all
}

fn mutants(filter: Option<&str>) -> Result<Vec<Mutant>, Box<dyn Error>> {
    let mut all = Vec::new();
    for (file, text) in files()? {
        if filter.is_some_and(|filter| !file.contains(filter)) {
            continue;
        }
        for (number, line) in text.lines().enumerate() {
            for now in changes(line) {
                let lines = text.lines().enumerate().map(|(at, line)| if at == number { &now } else { line });
                let changed = lines.map(|line| format!("{line}\n")).collect();
                let (was, now) = (line.trim().to_owned(), now.trim().to_owned());
                all.push(Mutant { file, line: number + 1, was, now, text, changed });
            }
        }
    }
    Ok(all)
}

/// The runs that may show a mutant of a file, the likeliest first.
fn trials(file: &str) -> Vec<(&'static str, Trial)> {
    let trial = |scalar, order, plan, step, rows_first| Trial { scalar, order, plan, step, rows_first };
    let (f64, c32, c64) = (ScalarKind::F64, ScalarKind::C32, ScalarKind::C64);
    let factorize = vec![
        ("sm_90", trial(f64, 40, "left-looking", Step::Factorize, false)),
        ("sm_70", trial(c32, 7, "left-looking", Step::Factorize, true)),
        ("sm_90", trial(f64, 40, "tree-search", Step::Factorize, true)),
        ("sm_70", trial(f64, 40, "shared-panel", Step::Factorize, true)),
        ("sm_90", trial(f64, 33, "interchange-serial", Step::Factorize, false)),
        ("sm_90", trial(ScalarKind::F32, 33, "right-looking", Step::Factorize, true)),
        ("sm_70", trial(f64, 70, "left-looking:panel=14,ahead=4,rows=2", Step::Factorize, false)),
    ];
    let steps = vec![
        ("sm_90", trial(f64, 40, "multi-kernel-two-level:width=8,together=2", Step::Factorize, false)),
        ("sm_90", trial(f64, 33, "multi-kernel-batched:width=8", Step::Factorize, true)),
        ("sm_70", trial(f64, 33, "multi-kernel:width=8", Step::Factorize, false)),
    ];
    let resident = vec![
        ("sm_90", trial(f64, 48, "resident", Step::All, false)),
        ("sm_70", trial(c32, 7, "resident", Step::All, true)),
        ("sm_90", trial(f64, 41, "resident:rows=1", Step::All, true)),
        ("sm_90", trial(ScalarKind::F32, 37, "resident:panel=4,rows=2", Step::All, false)),
    ];
    let invert = vec![
        ("sm_90", trial(f64, 40, "left-looking", Step::Invert, false)),
        ("sm_90", trial(f64, 40, "left-looking", Step::Invert, true)),
        ("sm_90", trial(f64, 33, "timely", Step::Invert, false)),
        ("sm_90", trial(c64, 21, "dynamic", Step::Invert, true)),
        ("sm_90", trial(f64, 70, "left-looking:inverse-threads=32,inverse-block=5", Step::Invert, false)),
    ];
    let solve = vec![
        ("sm_90", trial(f64, 40, "left-looking", Step::Solve(Transpose::None), false)),
        ("sm_90", trial(c64, 33, "left-looking", Step::Solve(Transpose::ConjugateTranspose), true)),
    ];
    let determinant = vec![
        ("sm_90", trial(f64, 33, "left-looking", Step::Determinant, false)),
        ("sm_90", trial(c64, 35, "left-looking", Step::All, false)),
    ];
    match file {
        "getri.cu" | "triangle.cuh" | "permutation.cu" => invert,
        "getrs.cu" | "outcome.cu" => solve,
        "det.cu" => determinant,
        "det.cuh" => [determinant, resident].concat(),
        "resident.cuh" | "crout.cuh" | "getrf_resident.cu" | "getrf_getri.cu" => resident,
        "getrf_steps.cu" | "laswp.cu" => steps,
        "scalar.cuh" | "warp.cuh" | "operand.cuh" => [factorize, invert, solve, determinant].concat(),
        _ => [factorize, resident].concat(),
    }
}

/// What shows a mutant; nothing where no run does.
fn shown(mutant: &Mutant) -> Result<Option<String>, Box<dyn Error>> {
    let planted = |architecture: &str, seed| {
        Emulated::new(architecture).seed(seed).checks(Checks::All).edit(mutant.file, mutant.text, &mutant.changed)
    };
    let sound = Emulated::new("sm_80").open()?;
    for (architecture, trial) in trials(mutant.file) {
        match trial.run(&planted(architecture, 3).open()?, &sound) {
            Err(error) => return Ok(Some(error.to_string().lines().next().unwrap_or_default().to_owned())),
            Ok(left) if left != trial.run(&sound, &sound)? => return Ok(Some("results".to_owned())),
            Ok(_) => {}
        }
    }
    let scope = Scope { name: "mutants", orders: &[0, 1, 3], thorough: 3, many: None, huge: None };
    let suite = [
        "extremes_of_the_range_keep_the_contract",
        "empty_batches_and_orders_zero_and_one_work",
        "one_bad_matrix_spares_its_neighbours",
    ];
    for name in suite {
        if check::<f64, _>(&planted("sm_90", 0).open()?, name, &scope, &Options::default()).is_err() {
            return Ok(Some(format!("conformance: {name}")));
        }
    }
    Ok(None)
}

/// Runs one mutant in a process of its own: true where it is shown, also by never ending.
fn shown_apart(index: usize) -> Result<bool, Box<dyn Error>> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["mutants", "--one", &index.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
    let (mut child, start) = (command.spawn()?, Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(!status.success());
        }
        if start.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Ok(true);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn run(root: &Path, options: &Mutants) -> Result<ExitCode, Box<dyn Error>> {
    let all = mutants(None)?;
    if let Some(one) = options.one {
        let mutant = all.get(one).ok_or("there is no such mutant")?;
        let shown = shown(mutant)?;
        println!("{}:{}: {}: {shown:?}", mutant.file, mutant.line, mutant.now);
        // Success: it survived.
        return Ok(if shown.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let chosen: Vec<usize> = (0..all.len())
        .filter(|&at| options.file.as_ref().is_none_or(|filter| all[at].file.contains(filter.as_str())))
        .collect();
    println!("{} mutants of {} files", chosen.len(), files()?.len());
    let (next, survivors) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let failed = std::thread::scope(|scope| -> Result<(), String> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let work = || -> Result<(), String> {
            while let Some(&index) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) {
                if !shown_apart(index).map_err(|error| error.to_string())? {
                    let Mutant { file, line, now, .. } = &all[index];
                    println!("survives: {file}:{line}: {now}");
                    survivors.lock().map_err(|error| error.to_string())?.push(index);
                }
            }
            Ok(())
        };
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().map_err(|_| "a worker ended early".to_owned())?)
    });
    failed?;
    let mut survivors = survivors.into_inner()?;
    survivors.sort_unstable();
    println!("{} of {} survive", survivors.len(), chosen.len());
    if options.file.is_none() {
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        let rows = survivors.iter().map(|&at| {
            let Mutant { file, line, was, now, .. } = &all[at];
            format!("{file},{line},{},{}\n", quoted(was), quoted(now))
        });
        let header =
            format!("# {} of {} mechanical mutants survive\nfile,line,was,now\n", survivors.len(), chosen.len());
        fs::write(root.join(SURVIVORS), header + &rows.collect::<String>())?;
    }
    Ok(ExitCode::SUCCESS)
}
