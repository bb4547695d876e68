//! The CPU backend beside faer with rayon, nalgebra, and the LAPACK of libraries that are named, also by their routines for batches: a table, and a plot.
//!
//! ```text
//! OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 BATCHLA_BENCH_LAPACK=/path/libmkl_rt.so.2:/path/libopenblas.so cargo bench --bench peers
//! cargo bench --bench peers -- --scalars f64 --orders 8,64 --out some.csv
//! ```
//!
//! All take turns in one process, on equally many threads over the batch, each run from a fresh copy of the input made outside the clock.
//! The ratio of a side is the median over the rounds of the plain loop's time over its own, with its 95 % interval.

mod contest;
mod generic;
mod lapack;
mod median;
mod plain;
mod receipt;

use std::error::Error;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use batchla::{Complex, ScalarKind};
use batchla_cpu::CpuScalar;
use clap::Parser;
use plotters::prelude::*;

use crate::contest::{Contest, Side, Task, Threads};
use crate::generic::Nalgebra;
use crate::lapack::{Lapack, LapackScalar};
use crate::median::Median;

/// Times the CPU backend against other libraries.
#[derive(Parser)]
#[command(bin_name = "cargo bench --bench peers --")]
struct Args {
    /// Number types: f32, f64, c32, c64
    #[arg(long, value_delimiter = ',', value_parser = scalar, default_values_t = ScalarKind::ALL)]
    scalars: Vec<ScalarKind>,
    /// Operations
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = Task::ALL)]
    tasks: Vec<Task>,
    /// Orders
    #[arg(long, value_delimiter = ',', default_values_t = [4usize, 8, 16, 24, 32, 48, 64, 96, 128, 190, 256])]
    orders: Vec<usize>,
    /// Rounds a row; each times all sides
    #[arg(long, default_value_t = 15)]
    rounds: usize,
    /// Milliseconds that the plain loop takes for one batch, about
    #[arg(long, default_value_t = 4)]
    work: u64,
    /// Threads of every side [default: one for each core]
    #[arg(long)]
    threads: Option<usize>,
    /// The file to write, with a plot of the same name beside it [default: benches/record/<cpu>/<date>-cpu-peers.csv]
    #[arg(long)]
    out: Option<PathBuf>,
    /// What `cargo bench` passes
    #[arg(long, hide = true)]
    bench: bool,
}

fn scalar(name: &str) -> Result<ScalarKind, String> {
    ScalarKind::ALL.into_iter().find(|kind| kind.name() == name).ok_or_else(|| format!("no such number type: {name}"))
}

/// What was measured of one side at one order.
struct Row {
    task: Task,
    scalar: ScalarKind,
    order: usize,
    side: String,
    batch: usize,
    microseconds: f64,
    ratio: Median,
}

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let paths = std::env::var_os("BATCHLA_BENCH_LAPACK").unwrap_or_default();
    let libraries = std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty());
    let libraries = libraries.map(|path| Lapack::load(&path)).collect::<Result<Vec<_>, _>>()?;
    if libraries.is_empty() {
        println!("no LAPACK beside: BATCHLA_BENCH_LAPACK names no library");
    }
    let threads = Threads::new(args.threads)?;
    println!("{}", threads.describe());
    println!("task    scalar order  batch side                 µs  ratio  95 % interval");
    let mut rows = Vec::new();
    for &task in &args.tasks {
        for &scalar in &args.scalars {
            for &order in &args.orders {
                let place = (task, order);
                match scalar {
                    ScalarKind::F32 => measure::<f32>(&args, &threads, &libraries, place, &mut rows)?,
                    ScalarKind::F64 => measure::<f64>(&args, &threads, &libraries, place, &mut rows)?,
                    ScalarKind::C32 => measure::<Complex<f32>>(&args, &threads, &libraries, place, &mut rows)?,
                    ScalarKind::C64 => measure::<Complex<f64>>(&args, &threads, &libraries, place, &mut rows)?,
                }
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = args.out.clone().unwrap_or_else(|| receipt::path(root, "cpu-peers"));
    write(&path, &threads, &rows)?;
    draw(&path.with_extension("svg"), &args, &rows)?;
    println!("written to {}", path.display());
    Ok(())
}

/// Rounds in which all sides take turns, each first as often as the others.
fn measure<T: CpuScalar + LapackScalar + nalgebra::ComplexField>(
    args: &Args,
    threads: &Threads,
    libraries: &[Lapack],
    (task, order): (Task, usize),
    rows: &mut Vec<Row>,
) -> Result<(), Box<dyn Error>> {
    let mut contest = Contest::<T>::new(threads, task, order, (None, Duration::from_millis(args.work)))?;
    let lapacks = libraries.iter().map(Lapack::side::<T>).collect::<Result<Vec<_>, _>>()?;
    let batches: Vec<_> = libraries.iter().filter_map(Lapack::batch_side::<T>).collect();
    let mut sides = vec![Side::Plain, Side::Ours, Side::Peer(&Nalgebra)];
    sides.extend(lapacks.iter().map(|lapack| Side::Peer(lapack)));
    sides.extend(batches.iter().map(|batch| Side::Peer(batch)));
    for side in &sides {
        contest.check(*side)?;
    }
    let mut times = vec![Vec::new(); sides.len()];
    for round in 0..args.rounds.max(1) {
        for turn in 0..sides.len() {
            let at = (round + turn) % sides.len();
            times[at].push(contest.time(sides[at])?.as_secs_f64() * 1e6 / contest.batch() as f64);
        }
    }
    let plain = times[0].clone();
    for (side, mut times) in sides.iter().zip(times) {
        let mut ratios: Vec<f64> = plain.iter().zip(&times).map(|(plain, time)| plain / time).collect();
        let (microseconds, ratio) = (Median::of(&mut times).value, Median::of(&mut ratios));
        let (batch, name) = (contest.batch(), side.name().to_owned());
        let Median { value, low, high } = ratio;
        let numbers = format!("{microseconds:>10.3}  {value:>5.2}  {low:.2} to {high:.2}");
        println!("{:<7} {:<6} {order:>5} {batch:>6} {name:<12} {numbers}", task.name(), T::KIND);
        rows.push(Row { task, scalar: T::KIND, order, side: name, batch, microseconds, ratio });
    }
    Ok(())
}

fn write(path: &Path, threads: &Threads, rows: &[Row]) -> Result<(), Box<dyn Error>> {
    let given: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let notes = [
        ("machine", threads.describe()),
        ("threads", threads.count().to_string()),
        ("load before", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned()),
        ("command", ["cargo bench --bench peers --", &given.join(" ")].join(" ")),
        ("columns", "median microseconds a matrix; ratio: the median over the rounds of faer's time over the side's; low, high: its 95 % interval".to_owned()),
    ];
    // Under another name until it is whole: half a record must not pass for one.
    let unfinished = path.with_extension("tmp");
    let mut file = receipt::create(&unfinished, &notes)?;
    writeln!(file, "task,scalar,order,batch,side,us,ratio,low,high")?;
    for Row { task, scalar, order, side, batch, microseconds, ratio: Median { value, low, high } } in rows {
        let task = task.name();
        writeln!(file, "{task},{scalar},{order},{batch},{side},{microseconds:.4},{value:.4},{low:.4},{high:.4}")?;
    }
    file.flush()?;
    Ok(std::fs::rename(unfinished, path)?)
}

/// Told apart also by those who do not see all colours (Okabe, Ito 2002).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 0, 0),
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
];

/// A panel for each operation and type: how many times faster than the plain loop, over the order.
fn draw(path: &Path, args: &Args, rows: &[Row]) -> Result<(), Box<dyn Error>> {
    let (across, down) = (args.scalars.len(), args.tasks.len());
    let area = SVGBackend::new(path, (400 * across as u32, 320 * down as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    let least = *args.orders.iter().min().unwrap_or(&1) as f64;
    let most = *args.orders.iter().max().unwrap_or(&1) as f64;
    for (at, panel) in area.split_evenly((down, across)).iter().enumerate() {
        let (task, scalar) = (args.tasks[at / across], args.scalars[at % across]);
        let mine: Vec<&Row> = rows.iter().filter(|row| row.task == task && row.scalar == scalar).collect();
        let top = mine.iter().map(|row| row.ratio.value).fold(2.0, f64::max) * 1.2;
        let mut chart = ChartBuilder::on(panel)
            .caption(format!("{} {scalar}: times as fast as faer", task.name()), ("sans-serif", 15))
            .margin(8)
            .x_label_area_size(30)
            .y_label_area_size(40)
            .build_cartesian_2d((least..most.max(least + 1.0)).log_scale(), (0.1..top).log_scale())?;
        chart.configure_mesh().x_desc("order").draw()?;
        let mut sides: Vec<&str> = mine.iter().map(|row| row.side.as_str()).collect();
        sides.dedup();
        sides.sort_unstable();
        sides.dedup();
        for (i, side) in sides.into_iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            let points = mine.iter().filter(|row| row.side == side).map(|row| (row.order as f64, row.ratio.value));
            chart
                .draw_series(LineSeries::new(points, colour.stroke_width(2)))?
                .label(side)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 14, y)], colour.stroke_width(2)));
        }
        chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?;
    }
    Ok(area.present()?)
}
