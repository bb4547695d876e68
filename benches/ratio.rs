//! How much faster the CPU backend is than the plain loop, order by order, with a verdict.
//!
//! ```text
//! cargo bench --bench ratio                                             all 320 rows, and the record
//! cargo bench --bench ratio -- --scalars f64 --tasks lu --orders 9,64   some rows, no record
//! cargo bench --bench ratio -- --help
//! ```
//!
//! Both sides take turns in one process, on equally many threads, each run from a fresh copy of the input that is made outside the clock. A
//! row is the median over the rounds of the plain loop's time over ours, and its 95 % interval. The goal: no row whose interval lies below 0.95.

mod contest;
mod median;
mod plain;
mod receipt;

use std::error::Error;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use batchla::{Complex, ScalarKind};
use batchla_cpu::CpuScalar;
use clap::Parser;

use crate::contest::{Contest, Side, Task, Threads};
use crate::median::Median;

/// The upper end of every interval reaches this.
const GOAL: f64 = 0.95;

const ORDERS: [usize; 40] = [
    1, 2, 3, 4, 8, 9, 10, 11, 12, 14, 16, 17, 19, 23, 25, 28, 32, 33, 36, 40, 45, 50, 56, 64, 65, 72, 80, 90, 100, 113,
    128, 145, 165, 190, 225, 256, 300, 384, 440, 512,
];

/// Times the CPU backend against the plain loop of faer and rayon. Exits with 1 where a row misses the goal.
#[derive(Parser)]
#[command(bin_name = "cargo bench --bench ratio --")]
struct Args {
    /// Number types: f32, f64, c32, c64
    #[arg(long, value_delimiter = ',', value_parser = scalar, default_values_t = ScalarKind::ALL)]
    scalars: Vec<ScalarKind>,
    /// Operations
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Task::ALL)]
    tasks: Vec<Task>,
    /// Orders
    #[arg(long, value_delimiter = ',', value_parser = order, default_values_t = ORDERS)]
    orders: Vec<usize>,
    /// Least rounds a row; each times both sides
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Goes on with further rounds until the whole has taken so long
    #[arg(long, default_value_t = 0.0)]
    minutes: f64,
    /// Milliseconds that the plain loop takes for one batch, about
    #[arg(long, default_value_t = 10)]
    work: u64,
    /// Matrices of a batch [default: as many as take so long]
    #[arg(long)]
    batch: Option<NonZeroUsize>,
    /// Threads of either side [default: one for each core]
    #[arg(long)]
    threads: Option<usize>,
    /// The plan that ours follows: interleaved, blocked or faer [default: the planner's choice]
    #[arg(long)]
    plan: Option<String>,
    /// Both sides put results apart from the input, not in its place
    #[arg(long)]
    apart: bool,
    /// The file to write [default: benches/record/<cpu>/<date>-cpu-ratio.csv where all rows are measured, else none]
    #[arg(long)]
    out: Option<PathBuf>,
    /// What `cargo bench` passes
    #[arg(long, hide = true)]
    bench: bool,
}

fn scalar(name: &str) -> Result<ScalarKind, String> {
    ScalarKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| format!("no such number type: {name}"))
}

fn order(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&order| order > 0).ok_or_else(|| format!("no order to measure: {text}"))
}

impl Args {
    /// Where the record goes, if there is to be one: a part must not take the place of the whole.
    fn record(&self) -> Option<PathBuf> {
        let all = self.scalars == ScalarKind::ALL && self.tasks == Task::ALL && self.orders == ORDERS;
        let usual = all && self.threads.is_none() && self.batch.is_none() && self.plan.is_none() && !self.apart;
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        self.out.clone().or_else(|| usual.then(|| receipt::path(root, "cpu-ratio")))
    }
}

/// What was measured of one order.
struct Row {
    batch: usize,
    rounds: usize,
    /// Median times of one matrix, in microseconds.
    ours: f64,
    plain: f64,
    ratio: Median,
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args = Args::parse();
    let threads = Threads::new(args.threads)?.with_plan(args.plan.clone()).with_results_apart(args.apart);
    let mut record = match args.record() {
        // Under another name until it is whole: half a record must not pass for one.
        Some(path) => Some((receipt::create(&path.with_extension("tmp"), &notes(&threads))?, path)),
        None => None,
    };
    if let Some((file, _)) = &mut record {
        writeln!(file, "task,scalar,order,batch,rounds,ours_us,plain_us,ratio,low,high")?;
    }
    println!("{}", threads.describe());
    println!("task    scalar order  batch rounds    ours µs   plain µs  ratio  95 % interval");
    let rows = args.tasks.len() * args.scalars.len() * args.orders.len();
    let (start, mut done, mut misses) = (Instant::now(), 0, Vec::new());
    for &task in &args.tasks {
        for &scalar in &args.scalars {
            for &order in &args.orders {
                let spent = start.elapsed().as_secs_f64();
                let share = (args.minutes * 60.0 - spent).max(0.0) / (rows - done) as f64;
                let Row { batch, rounds, ours, plain, ratio } = match scalar {
                    ScalarKind::F32 => measure::<f32>(&args, &threads, task, order, share)?,
                    ScalarKind::F64 => measure::<f64>(&args, &threads, task, order, share)?,
                    ScalarKind::C32 => measure::<Complex<f32>>(&args, &threads, task, order, share)?,
                    ScalarKind::C64 => measure::<Complex<f64>>(&args, &threads, task, order, share)?,
                };
                let (name, Median { value, low, high }) = (task.name(), ratio);
                let verdict = if high < GOAL { "  below the goal" } else { "" };
                let numbers = format!("{ours:>10.3} {plain:>10.3}  {value:>5.2}  {low:.2} to {high:.2}");
                println!("{name:<7} {scalar:<6} {order:>5} {batch:>6} {rounds:>6} {numbers}{verdict}");
                if let Some((file, _)) = &mut record {
                    write!(file, "{name},{scalar},{order},{batch},{rounds},")?;
                    writeln!(file, "{ours:.4},{plain:.4},{value:.4},{low:.4},{high:.4}")?;
                    file.flush()?;
                }
                if high < GOAL {
                    misses.push(format!("{name} {scalar} {order}: {high:.2}"));
                }
                done += 1;
                let left = start.elapsed().as_secs_f64() / done as f64 * (rows - done) as f64;
                eprint!("\r{done} of {rows} rows, {:.0} min {:02.0} s left \r", (left / 60.0).floor(), left % 60.0);
            }
        }
    }
    if let Some((_, path)) = record {
        std::fs::rename(path.with_extension("tmp"), &path)?;
        println!("written to {}", path.display());
    }
    println!("{} of {rows} rows reach {GOAL} with the upper end of their interval", rows - misses.len());
    misses.iter().for_each(|miss| println!("missed: {miss}"));
    Ok(if misses.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Rounds in turn, each side first every other time: at least `args.rounds`, and for `share` seconds.
fn measure<T: CpuScalar>(
    args: &Args,
    threads: &Threads,
    task: Task,
    order: usize,
    share: f64,
) -> Result<Row, Box<dyn Error>> {
    let start = Instant::now();
    let mut contest = Contest::<T>::new(threads, task, order, (args.batch, Duration::from_millis(args.work)))?;
    let (mut ours, mut plain, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    while ratios.len() < args.rounds.max(1) || start.elapsed().as_secs_f64() < share {
        let (our, its) = if ratios.len() % 2 == 0 {
            let our = contest.time(Side::Ours)?;
            (our, contest.time(Side::Plain)?)
        } else {
            let its = contest.time(Side::Plain)?;
            (contest.time(Side::Ours)?, its)
        };
        let [our, its] = [our, its].map(|time| time.as_secs_f64() * 1e6 / contest.batch() as f64);
        ours.push(our);
        plain.push(its);
        ratios.push(its / our);
    }
    let [ours, plain] = [&mut ours, &mut plain].map(|times| Median::of(times).value);
    Ok(Row { batch: contest.batch(), rounds: ratios.len(), ours, plain, ratio: Median::of(&mut ratios) })
}

/// What a record says of the run.
fn notes(threads: &Threads) -> [(&'static str, String); 5] {
    let given: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let command = ["cargo bench --bench ratio --", &given.join(" ")].join(" ");
    let columns =
        "median microseconds a matrix; ratio: the median over the rounds of plain / ours; low, high: its 95 % interval";
    [
        ("machine", threads.describe()),
        ("threads", threads.count().to_string()),
        // A machine that is busy with other things makes wide intervals.
        ("load before", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned()),
        ("command", command),
        ("columns", columns.to_owned()),
    ]
}
