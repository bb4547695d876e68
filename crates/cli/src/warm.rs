//! `batchla warm`: kernels compiled beforehand.

use std::time::Instant;

use batchla::cuda::{Limits, Origin, Warmed, compile_ahead};
use batchla::{
    BatchLayout, Complex, CudaHost, Error, ErrorKind, Options, Problem, Scalar, ScalarKind, SourceKind, Transpose,
};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::bench::{at_least_one, scalar};
use crate::plan::{What, known};
use crate::print;

/// Compile the GPU kernels of some problems now, all cores at once, so that nobody waits for them later.
///
/// They are kept on disk (BATCHLA_CACHE_DIR). A kernel serves a class of orders, batches of any size (but few matrices have, at some orders, kernels of their own, which
/// are compiled too), and one combination of type, operation, kind of source (matrices or factors), and of whether columns of input and result are contiguous.
///
/// With --gpu no GPU is needed: what is kept serves another machine, as an image of a container that is built here and run there, where NVRTC, its version too, and the GPU's
/// architecture are the same.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "batchla warm [OPTIONS] <TYPES> <ORDERS>")]
pub(crate) struct Warm {
    /// The types: f32, f64, c32, c64, with commas between
    #[arg(value_name = "TYPES", num_args = 1, value_delimiter = ',', value_parser = scalar, required = true)]
    scalars: Vec<ScalarKind>,

    /// The orders, up to 10000: 64, or 1-200, or several of these with commas between
    #[arg(value_name = "ORDERS", num_args = 1, value_delimiter = ',', value_parser = orders, required = true)]
    orders: Vec<(usize, usize)>,

    /// What is to be computed
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [What::Factorize, What::Invert, What::Solve, What::Determinant])]
    op: Vec<What>,

    /// Right-hand sides of a solution
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = at_least_one)]
    rhs: usize,

    /// How the matrices lie, those of the result too
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Layout::ColumnMajor, Layout::RowMajor])]
    layout: Vec<Layout>,

    /// The plan by this name, instead of the planner's own
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,

    /// The GPUs, by their numbers
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "0")]
    device: Vec<usize>,

    /// For this GPU, which need not be here: an architecture (sm_70, sm_80, sm_86, sm_89, sm_90, sm_100, sm_120), or a part of the name of one that is known, as A100
    #[arg(long, value_name = "GPU", conflicts_with = "device")]
    gpu: Option<String>,

    /// Print one JSON object a line, one for each kernel
    #[arg(long)]
    json: bool,
}

/// The largest order; what would be compiled is listed in memory first.
const LARGEST: usize = 10_000;

/// Matrices that keep any GPU busy.
const MANY: usize = 10_000;

const EXAMPLES: &str = "\
Examples:
  batchla warm f64 1-200                              whatever is to be done with float64 matrices up to order 200
  batchla warm f32,c32 16,32,64 --op invert --layout column-major
  BATCHLA_CACHE_DIR=kernels batchla warm f64 1-64 --gpu H200              for a machine that has one

Exit code:
  0  all kernels are ready
  1  there is no GPU (without --gpu) or no compiler, or a kernel does not compile or cannot be kept";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Layout {
    ColumnMajor,
    RowMajor,
}

/// Those that kernels are for.
enum Gpus {
    Here(CudaHost),
    Named(Limits),
}

fn orders(text: &str) -> Result<(usize, usize), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let range = first.parse().ok().zip(last.parse().ok());
    let range = range.filter(|(first, last)| first <= last);
    match range.ok_or_else(|| "neither an order nor a range like 1-200".to_owned())? {
        (_, last) if last > LARGEST => Err(format!("orders go up to {LARGEST}")),
        range => Ok(range),
    }
}

/// Where there is no GPU, what serves without one.
fn or_elsewhere(error: Error) -> Error {
    if error.kind() != ErrorKind::Unavailable {
        return error;
    }
    let advice = format!(
        "name the GPU of another machine by --gpu, as --gpu H200; or, for one of this machine, {}",
        error.advice()
    );
    error.advise(advice)
}

impl Warm {
    /// Runs the command; gives the exit code.
    pub(crate) fn run(&self) -> Result<u8, Error> {
        let gpus = match &self.gpu {
            Some(wanted) => Gpus::Named(known("warm", wanted)?),
            None => Gpus::Here(CudaHost::open(self.device.iter().copied()).map_err(or_elsewhere)?),
        };
        // Of each, many matrices and one.
        let mut problems = Vec::new();
        for &scalar in &self.scalars {
            match scalar {
                ScalarKind::F32 => self.problems::<f32>(&mut problems)?,
                ScalarKind::F64 => self.problems::<f64>(&mut problems)?,
                ScalarKind::C32 => self.problems::<Complex<f32>>(&mut problems)?,
                ScalarKind::C64 => self.problems::<Complex<f64>>(&mut problems)?,
            }
        }
        let options = self.plan.as_deref().map_or(Options::default(), |plan| Options::default().with_plan(plan));
        let begun = Instant::now();
        let kernels = match gpus {
            Gpus::Here(host) => host.warm(&problems, &options)?,
            // As the host would have them.
            Gpus::Named(limits) => {
                let packed: Vec<_> = problems.iter().map(Problem::packed).collect::<Result<_, _>>()?;
                compile_ahead(&limits, &packed, &options)?
            }
        };
        print("warm", &self.text(&kernels, problems.len() / 2, begun.elapsed().as_secs_f64())?)
    }

    fn problems<T: Scalar>(&self, all: &mut Vec<Problem>) -> Result<(), Error> {
        for order in self.orders.iter().flat_map(|&(first, last)| first..=last) {
            for (layout, count) in self.layout.iter().flat_map(|layout| [(layout, MANY), (layout, 1)]) {
                let batch = |cols: usize| match layout {
                    Layout::ColumnMajor => BatchLayout::column_major(count, order, cols),
                    Layout::RowMajor => BatchLayout::row_major(count, order, cols),
                };
                let (a, x) = (batch(order)?, batch(self.rhs)?);
                for op in &self.op {
                    all.push(match op {
                        What::Factorize => Problem::factorize::<T>(SourceKind::Matrix, a, a)?,
                        What::Invert => Problem::invert::<T>(SourceKind::Matrix, a, a)?,
                        What::Solve => Problem::solve::<T>(SourceKind::Matrix, a, Some(x), x, Transpose::None)?,
                        What::Determinant => Problem::determinant::<T>(SourceKind::Matrix, a)?,
                    });
                }
            }
        }
        Ok(())
    }

    fn text(&self, kernels: &[Warmed], problems: usize, seconds: f64) -> Result<String, Error> {
        let words = |origin| match origin {
            Origin::Memory => "loaded already",
            Origin::Disk => "from disk",
            Origin::Compiled => "compiled",
        };
        let line = |one: &Warmed| {
            let (origin, seconds) = (words(one.origin), one.time.as_secs_f64());
            if self.json {
                return json!({ "kernel": one.kernel, "origin": origin, "seconds": seconds }).to_string();
            }
            format!("{seconds:>8.3} s  {origin:<14}  {}", one.kernel)
        };
        let mut lines: Vec<String> = kernels.iter().map(line).collect();
        if !self.json {
            let compiled = kernels.iter().filter(|one| one.origin == Origin::Compiled).count();
            let count = kernels.len();
            lines.push(format!(
                "{count} kernels of {problems} problems are ready, {compiled} of them compiled, in {seconds:.3} s"
            ));
        }
        if lines.is_empty() {
            return Err(
                Error::new(ErrorKind::Argument, "warm", "no problem was named").advise("see batchla warm --help")
            );
        }
        Ok(lines.join("\n"))
    }
}
