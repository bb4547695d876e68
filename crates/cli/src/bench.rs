//! `batchla bench`: measurements on this machine.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use batchla::cuda::Device;
use batchla::{Cuda, Error, ErrorKind, ScalarKind};
use batchla_bench::{
    Campaign, Figure, GPUS_HEADER, Gpus, HOST_HEADER, HostPath, ORDERS_HEADER, Orders, Page, Routine, Speed, Table,
    cold, contest, is_cold, measured, paper, start,
};
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};

use crate::backend::BackendChoice;
use crate::{FAILURE, SUCCESS, print};

/// Measure: any backend on this machine, or the GPU at hand beside its peers.
#[derive(Debug, Args)]
#[command(after_help = ALL_EXAMPLES)]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    Speed(SpeedOptions),
    Paper(Paper),
    Peers(Peers),
    Plans(Plans),
    Start(Start),
    Host(HostOptions),
    Orders(OrdersOptions),
    Gpus(GpusOptions),
}

const ALL_EXAMPLES: &str = "\
Examples:
  batchla bench speed                          LU and inversion on this machine, beside NumPy and the roofline
  batchla bench peers --magma python3          a GPU beside cuBLAS and MAGMA
  batchla bench paper                          the figures of Liu et al. 2023
  batchla bench host                           from host memory to host memory, beside the link
  batchla bench gpus                           all GPUs beside one";

/// Measure LU and inversion from host memory to host memory, on any backend.
///
/// Beside ours stand NumPy's inverse, where a Python has NumPy, and for CPUs the roofline: the fastest matrix product and the fastest copy of this
/// machine, measured on the same threads. Written are speed.csv, speed.md, and drawings of GFLOP/s and of the share of the roofline over the order, as
/// SVG, and as PNG where the machine has fonts. A time counts only if residuals are small. For a GPU alone, its data in place: `batchla bench peers`.
#[derive(Debug, Args)]
#[command(after_help = SPEED_EXAMPLES)]
struct SpeedOptions {
    /// Which types
    #[arg(long, value_name = "TYPES", value_delimiter = ',', value_parser = scalar, default_value = "c32,c64,f32,f64")]
    scalars: Vec<ScalarKind>,

    /// Which orders
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "4,8,16,24,32,48,64,96,128,192,256,384,512")]
    orders: Vec<usize>,

    /// How many matrices [default: as many as take 64 MiB]
    #[arg(long, value_name = "COUNT", value_parser = at_least_one)]
    batch: Option<usize>,

    /// How often each is measured; the median counts
    #[arg(long, value_name = "COUNT", default_value_t = 7, value_parser = at_least_one)]
    repetitions: usize,

    /// A Python that may have NumPy; `none` leaves it out
    #[arg(long, value_name = "PYTHON", default_value = "python3")]
    numpy: String,

    /// Folder of the record [default: benches/record/CPU/DATE]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,

    /// Print the rows as JSON, one object a line
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    backend: BackendChoice,
}

const SPEED_EXAMPLES: &str = "\
Examples:
  batchla bench speed
  batchla bench speed --scalars f64 --orders 8,16,32,64 --repetitions 15 --output speed
  batchla bench speed --backend cpu --threads 2 --numpy none --json

Exit code:
  0  the record was written
  1  the call failed, or a result was wrong; rows measured until then are in the table";

/// Draw figures 10 to 18 of Liu et al. 2023 again, on the GPU at hand.
///
/// 10, 11: LU and inversion by panel and block width. 12, 13: LU against cuBLAS and MAGMA. 14, 15: inversion against them. 16: versions of
/// row interchange. 17: timely against delayed correction. 18: static against dynamic resources. magma: the steps of MAGMA's slides,
/// v1 to v5. families: other ways to do an LU.
///
/// Every contestant gets the same kind of random matrices in device memory, and its time, the median of the repetitions, counts only if its
/// residuals are small. Each measurement is a line on standard error and, at once, a row of paper.csv; after each figure its drawing
/// (SVG) and paper.md, with the paper's numbers beside those measured, are written. cuBLAS is looked for when the program runs; without it
/// its columns are empty.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
struct Paper {
    /// Which figures, in which order
    #[arg(long, value_name = "NAMES", value_delimiter = ',', default_values = paper::NAMES)]
    figures: Vec<String>,

    /// Which orders
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = paper::ORDERS)]
    orders: Vec<usize>,

    #[command(flatten)]
    how: How,
}

/// Measure LU, inversion and solution beside cuBLAS and MAGMA, at orders small and large, LU and inversion also of 100 matrices and of one: peers.csv, peers.md and
/// drawings.
#[derive(Debug, Args)]
struct Peers {
    /// Which figures, in which order
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = PossibleValuesParser::new(contest::NAMES), default_values = contest::NAMES)]
    figures: Vec<String>,

    /// Which orders
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = contest::ORDERS)]
    orders: Vec<usize>,

    #[command(flatten)]
    how: How,
}

/// Measure plans beside each other, beside cuBLAS and beside a copy of the matrices, than which little can be faster: plans.csv, plans.md and a drawing.
#[derive(Debug, Args)]
struct Plans {
    /// By name, perhaps with numbers: left-looking:panel=16,rows=2
    #[arg(value_name = "PLAN", required = true)]
    plans: Vec<String>,

    /// Of the inversion, not of LU
    #[arg(long)]
    inverse: bool,

    /// Of the solution with one right-hand side, not of LU
    #[arg(long, conflicts_with = "inverse")]
    solve: bool,

    /// Of the solution with as many right-hand sides as the order, not of LU
    #[arg(long, conflicts_with_all = ["inverse", "solve"])]
    solve_many: bool,

    /// Which orders
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = paper::ORDERS)]
    orders: Vec<usize>,

    #[command(flatten)]
    how: How,
}

/// What all records share.
#[derive(Debug, Args)]
struct How {
    /// Which types
    #[arg(long, value_name = "TYPES", value_delimiter = ',', value_parser = scalar, default_value = "c32,c64,f32,f64")]
    scalars: Vec<ScalarKind>,

    /// How many matrices; two fifths of them above order 190, a tenth above 384
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = at_least_one)]
    batch: usize,

    /// How often each is measured; the median counts
    #[arg(long, value_name = "COUNT", default_value_t = 7, value_parser = at_least_one)]
    repetitions: usize,

    /// Begin nothing more after so many minutes; the page says what was left out [default: no limit]
    #[arg(long, value_name = "M", value_parser = minutes)]
    minutes: Option<Duration>,

    /// Folder of the record [default: benches/record/GPU/DATE]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,

    /// libcublas, or the folder that it is in, if it is not where libraries and CUDA toolkits are
    #[arg(long, value_name = "PATH")]
    cublas: Option<PathBuf>,

    /// A Python whose PyTorch has MAGMA, to measure it too, in a process of its own while ours wait
    #[arg(long, value_name = "PYTHON")]
    magma: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  batchla bench paper                                        all figures
  batchla bench paper --figures 12,13 --scalars f64          one contest, one type
  batchla bench paper --magma python3                        MAGMA beside cuBLAS
  batchla bench paper --minutes 8 --output record            what fits into eight minutes
  batchla bench paper --orders 16,32 --batch 100000          other problems

Exit code:
  0  the record was written
  1  there is no GPU, or the call failed; rows measured until then are in the table";

/// Measure how long a program waits for its first result: 10 000 inverses of 64 x 64 float64 matrices, from host memory to host memory.
#[derive(Debug, Args)]
struct Start {
    /// With no compiled kernels on disk: a new, empty folder holds them for this run
    #[arg(long)]
    cold: bool,
}

/// Measure inversion from host memory to host memory beside the rate of the link: host.csv, host.md.
///
/// First page-locked copies, up, down, and both at once; then inversions from ordinary memory, from page-locked memory, into memory that was not
/// touched before, and through a third of the batch's size on the device. Every bit is compared with the inverses of one GPU with its data in place.
#[derive(Debug, Args)]
struct HostOptions {
    /// Gigabytes of the batch (10^9 bytes); as many again for the result
    #[arg(long, value_name = "GB", default_value_t = 10.0, value_parser = above_zero)]
    gigabytes: f64,

    /// Order of the matrices
    #[arg(long, value_name = "N", default_value_t = 64)]
    order: usize,

    #[command(flatten)]
    gpus: GpuOptions,
}

/// Measure how long a process takes that meets many orders: 200 of them, from 1 to 200, a batch of 100 of each; orders.csv, orders.md.
///
/// Three times: with no compiled kernels on disk (a new, empty folder is used, and NVRTC's own cache is off), with all on disk, with all loaded. Kernels are made ready at once, then
/// each order is inverted from host memory to host memory.
#[derive(Debug, Args)]
struct OrdersOptions {
    /// The largest order
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = at_least_one)]
    most: usize,

    /// How many matrices of each
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = at_least_one)]
    batch: usize,

    #[command(flatten)]
    gpus: GpuOptions,
}

/// Measure inversion on several GPUs beside one, of batches that lie in parts on them and of host batches: gpus.csv, gpus.md.
#[derive(Debug, Args)]
struct GpusOptions {
    /// Which orders
    #[arg(long, value_name = "N", value_delimiter = ',', default_values_t = [16, 64, 128, 256])]
    orders: Vec<usize>,

    /// How many matrices
    #[arg(long, value_name = "COUNT", default_value_t = 20_000, value_parser = at_least_one)]
    batch: usize,

    #[command(flatten)]
    gpus: GpuOptions,
}

/// What measurements of the way to the GPU share.
#[derive(Debug, Args)]
struct GpuOptions {
    /// Which GPUs, by their numbers [default: the first; for `gpus`, all]
    #[arg(long, value_name = "N", value_delimiter = ',')]
    device: Option<Vec<usize>>,

    /// How often each is measured; the median counts
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = at_least_one)]
    repetitions: usize,

    /// Folder of the record [default: benches/record/GPU/DATE]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
}

impl GpuOptions {
    fn open(&self, or: impl FnOnce() -> Result<Vec<usize>, Error>) -> Result<Vec<Cuda>, Error> {
        let ordinals = self.device.clone().map_or_else(or, Ok)?;
        ordinals.into_iter().map(|ordinal| Cuda::on(&Device::open(ordinal)?)).collect()
    }

    fn record(
        &self,
        table: (&str, &str),
        gpu: &Device,
        measure: impl FnOnce(&mut Table, &mut dyn FnMut(&str)) -> Result<(), Error>,
    ) -> Result<u8, Error> {
        // Where standard error is closed, the record is still written.
        let mut tell = |line: &str| drop(writeln!(std::io::stderr(), "{line}"));
        let folder = measured(table, (gpu, &command()), self.output.clone(), &mut tell, measure)?;
        print("bench", &format!("written to {}", folder.display()))
    }
}

impl Bench {
    /// Runs the command; gives the exit code.
    pub(crate) fn run(self) -> Result<u8, Error> {
        match self.what {
            What::Speed(speed) => speed.run(),
            What::Paper(Paper { figures, orders, how }) => {
                let figures = figures.iter().map(|name| paper::figure(name).ok_or_else(|| unknown(name)));
                how.run(Page::PAPER, figures.collect::<Result<_, _>>()?, orders)
            }
            What::Peers(Peers { figures, orders, how }) => {
                let all = contest::beside_peers();
                let named = |name: &String| all.iter().find(|figure| figure.name == name).cloned();
                how.run(Page::PEERS, figures.iter().filter_map(named).collect(), orders)
            }
            What::Plans(Plans { plans, inverse, solve, solve_many, orders, how }) => {
                let routine = match (inverse, solve, solve_many) {
                    (true, ..) => Routine::Inverse,
                    (_, true, _) => Routine::Solve,
                    (_, _, true) => Routine::SolveMany,
                    _ => Routine::Lu,
                };
                how.run(Page::PLANS, vec![contest::of_plans(routine, &plans)], orders)
            }
            What::Start(Start { cold: true }) => {
                Ok(if cold(["bench", "start"])?.success() { SUCCESS } else { FAILURE })
            }
            What::Start(_) => first_result(),
            What::Host(HostOptions { gigabytes, order, gpus: options }) => {
                let gpus = options.open(|| Ok(vec![0]))?;
                let (device, bytes) = (gpus[0].device().clone(), (gigabytes * 1e9) as usize);
                let host = HostPath { gpus, order, bytes, repetitions: options.repetitions };
                options.record(("host", HOST_HEADER), &device, |table, tell| host.run(table, tell))
            }
            What::Orders(_) if !is_cold() => {
                Ok(if cold(std::env::args_os().skip(1))?.success() { SUCCESS } else { FAILURE })
            }
            What::Orders(OrdersOptions { most, batch, gpus: options }) => {
                let device = options.open(|| Ok(vec![0]))?[0].device().clone();
                let orders = Orders { orders: (1..=most).collect(), batch };
                options
                    .record(("orders", ORDERS_HEADER), &device, |table, tell| orders.run(device.ordinal(), table, tell))
            }
            What::Gpus(GpusOptions { orders, batch, gpus: options }) => {
                let gpus = options.open(|| Ok((0..Device::list()?.len().max(1)).collect()))?;
                let device = gpus[0].device().clone();
                let beside = Gpus { gpus, orders, batch, repetitions: options.repetitions };
                options.record(("gpus", GPUS_HEADER), &device, |table, tell| beside.run(table, tell))
            }
        }
    }
}

impl SpeedOptions {
    fn run(self) -> Result<u8, Error> {
        let Self { scalars, orders, batch, repetitions, numpy, output, json, backend } = self;
        let python = (numpy != "none").then_some(numpy);
        let backend = backend.backend()?;
        let speed = Speed { backend, scalars, orders, batch, repetitions, python, output, command: command() };
        // Where standard error is closed, the record is still written.
        let (folder, results) = speed.run(&mut |line| drop(writeln!(std::io::stderr(), "{line}")))?;
        if !json {
            return print("bench", &format!("written to {}", folder.display()));
        }
        let rows = results.rows.iter().map(|row| {
            serde_json::json!({
                "figure": row.figure, "scalar": row.scalar.name(), "order": row.order, "batch": row.batch, "contestant": row.contestant,
                "median_ms": row.timing.median_ms, "min_ms": row.timing.min_ms, "gflops": row.timing.gflops,
                "residual_ratio": row.timing.residual, "share_of_roofline": row.speedup,
            })
            .to_string()
        });
        print("bench", &rows.collect::<Vec<_>>().join("\n"))
    }
}

/// How the program was called.
pub(crate) fn command() -> String {
    format!("batchla {}", std::env::args().skip(1).collect::<Vec<_>>().join(" "))
}

impl How {
    fn run(self, page: Page, figures: Vec<Figure>, orders: Vec<usize>) -> Result<u8, Error> {
        let Self { scalars, batch, repetitions, minutes: limit, output, cublas, magma } = self;
        let command = command();
        let campaign =
            Campaign { page, figures, scalars, orders, batch, repetitions, limit, output, cublas, magma, command };
        // Where standard error is closed, the record is still written.
        let folder = campaign.run(&mut |line| drop(writeln!(std::io::stderr(), "{line}")))?;
        print("bench", &format!("written to {}", folder.display()))
    }
}

fn unknown(name: &str) -> Error {
    Error::new(ErrorKind::Argument, "bench paper", format!("there is no figure {name:?}"))
        .advise(format!("there are {}", paper::NAMES.join(", ")))
}

fn first_result() -> Result<u8, Error> {
    let start = start()?;
    let mut text = format!("{:.3} s from the start of the process to the first result, of which", start.seconds());
    for (name, seconds) in &start.parts {
        text.push_str(&format!("\n  {name:<9} {seconds:>8.3} s"));
    }
    print("bench", &format!("{text}\nplan {}", start.plan))
}

pub(crate) fn scalar(text: &str) -> Result<ScalarKind, String> {
    let known = ScalarKind::ALL.into_iter().find(|kind| kind.name() == text);
    known.ok_or_else(|| "the types are f32, f64, c32 and c64".to_owned())
}

pub(crate) fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|&count| count > 0).ok_or_else(|| "not a number above zero".to_owned())
}

fn above_zero(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|&number: &f64| number > 0.0 && number < 1e6)
        .ok_or_else(|| "not a number above zero".to_owned())
}

pub(crate) fn minutes(text: &str) -> Result<Duration, String> {
    let minutes = text.parse().ok().filter(|&minutes: &f64| minutes > 0.0);
    let duration = minutes.and_then(|minutes| Duration::try_from_secs_f64(60.0 * minutes).ok());
    duration.ok_or_else(|| "not a number of minutes".to_owned())
}
