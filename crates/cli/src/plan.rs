//! `batchla plan`: which plan would run, and why.

use batchla::cuda::{CudaPlan, Device, Environment, Limits, Tuned};
use batchla::{
    Backend, BatchLayout, Complex, Cpu, Error, ErrorKind, Explanation, Options, Problem, Scalar, ScalarKind,
    SourceKind, Transpose,
};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::bench::{at_least_one, scalar};
use crate::print;

/// Tell which plan would compute a problem, what it takes, and why it and no other.
///
/// Nothing is computed, and no GPU is needed: --gpu names one. Without it the plan is that for the GPU at hand, or for an NVIDIA H200 where there is none.
/// A plan of CUDA is a family of kernels with its numbers: `left-looking`, or `left-looking:panel=16,threads=128` where some of them are asked for.
///
/// Told is what is launched, for each part of the batch: threads and shared memory of a block, matrices that it works on at once, and how many
/// blocks a multiprocessor is expected to hold, bound by what.
///
/// Then where its numbers come from: the row of the table, measured on which GPU, when, and how. Then why each other plan was not chosen;
/// those that are there to be compared with run only by name (--plan, here and in every command that computes).
///
/// And the id of its arithmetic: plans of one id give the same bits for the same matrix.
///
/// The matrices choose no plan. The batch's size may, among plans of one arithmetic: on a GPU few large matrices are each shared out to many blocks (`spread`).
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Plan {
    /// The type: f32, f64, c32 or c64
    #[arg(value_name = "TYPE", value_parser = scalar)]
    scalar: ScalarKind,

    /// The order of the matrices
    #[arg(value_name = "N")]
    order: usize,

    /// What is to be computed
    #[arg(long, value_enum, default_value_t = What::Invert)]
    op: What,

    /// It starts from factors, not from matrices
    #[arg(long)]
    factors: bool,

    /// Right-hand sides of a solution
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = at_least_one)]
    rhs: usize,

    /// How many matrices
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    batch: usize,

    /// How the matrices lie, those of the result too
    #[arg(long, value_enum, default_value_t = Layout::ColumnMajor)]
    layout: Layout,

    /// Also the determinant
    #[arg(long)]
    determinant: bool,

    /// Also the condition number
    #[arg(long)]
    condition: bool,

    /// The plan by this name, perhaps with numbers, instead of the planner's own
    #[arg(long, value_name = "NAME")]
    plan: Option<String>,

    /// For this GPU: an architecture (sm_70, sm_80, sm_86, sm_89, sm_90, sm_100, sm_120), or a part of the name of one that is known, as A100
    #[arg(long, value_name = "GPU")]
    gpu: Option<String>,

    /// For which backend
    #[arg(long, value_enum, default_value_t = Where::Cuda)]
    backend: Where,

    /// Threads of the CPU backend [default: one for each core]
    #[arg(long, value_name = "N", conflicts_with = "gpu")]
    threads: Option<usize>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  batchla plan f64 128                                     the inverse of 128 x 128 matrices
  batchla plan f64 128 --op factorize --gpu sm_80          LU on an A100, without one
  batchla plan c32 40 --layout row-major --json
  batchla plan f64 300 --plan left-looking:panel=8         what these numbers would take
  batchla plan f32 16 --backend cpu --threads 8 --batch 3

Exit code:
  0  there is a plan
  1  there is none, or not the one asked for; the reason is told";

/// An operation, as commands about plans are asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum What {
    Factorize,
    Invert,
    Solve,
    Determinant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Layout {
    ColumnMajor,
    RowMajor,
    /// 32 neighbouring matrices, element by element
    Interleaved,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Where {
    Cuda,
    Cpu,
}

impl Plan {
    /// Runs the command; gives the exit code.
    pub(crate) fn run(&self) -> Result<u8, Error> {
        let problem = match self.scalar {
            ScalarKind::F32 => self.problem::<f32>(),
            ScalarKind::F64 => self.problem::<f64>(),
            ScalarKind::C32 => self.problem::<Complex<f32>>(),
            ScalarKind::C64 => self.problem::<Complex<f64>>(),
        }?;
        let options = self.plan.as_deref().map_or(Options::default(), |plan| Options::default().with_plan(plan));
        let explanation = match self.backend {
            Where::Cuda => self.on_a_gpu(&problem, &options)?,
            Where::Cpu => {
                if self.gpu.is_some() {
                    return Err(Error::new(ErrorKind::Argument, "plan", "--gpu is for the CUDA backend")
                        .advise("leave it out, or use --backend cuda"));
                }
                let cpu = Cpu::builder();
                self.threads.map_or(cpu, |threads| cpu.threads(threads)).build()?.explain(&problem, &options)?
            }
        };
        let text = if self.json { as_json(&explanation) } else { explanation.to_string() };
        print("plan", text.trim_end())
    }

    fn problem<T: Scalar>(&self) -> Result<Problem, Error> {
        let layout = |cols| match self.layout {
            Layout::ColumnMajor => BatchLayout::column_major(self.batch, self.order, cols),
            Layout::RowMajor => BatchLayout::row_major(self.batch, self.order, cols),
            Layout::Interleaved => BatchLayout::interleaved(self.batch, self.order, cols, 32),
        };
        let source = if self.factors { SourceKind::Factors } else { SourceKind::Matrix };
        let a = layout(self.order)?;
        let problem = match self.op {
            What::Factorize => Problem::factorize::<T>(source, a, a),
            What::Invert => Problem::invert::<T>(source, a, a),
            What::Solve => Problem::solve::<T>(source, a, None, layout(self.rhs)?, Transpose::None),
            What::Determinant => Problem::determinant::<T>(source, a),
        }?;
        let own = problem.extras();
        let extras = if self.determinant { own.with_determinant() } else { own };
        problem.with_extras(if self.condition { extras.with_condition() } else { extras })
    }

    fn on_a_gpu(&self, problem: &Problem, options: &Options) -> Result<Explanation, Error> {
        if self.threads.is_some() {
            return Err(Error::new(ErrorKind::Argument, "plan", "--threads is for the CPU backend")
                .advise("leave it out, or use --backend cpu"));
        }
        let (limits, whose) = match &self.gpu {
            Some(wanted) => (known("plan", wanted)?, "by name"),
            None => match Device::list().ok().and_then(|gpus| gpus.into_iter().next()) {
                Some(limits) => (limits, "the GPU at hand"),
                None => (known("plan", "sm_90")?, "there is no GPU here; name one with --gpu"),
            },
        };
        let tuned = Environment::read().tuned.map_or_else(Tuned::none, |folder| Tuned::load(&folder, &limits));
        let mut explanation = CudaPlan::explain(problem, options, &limits, &tuned)?;
        explanation.device = format!("{limits}; {whose}");
        Ok(explanation)
    }
}

/// The limits of a GPU by its architecture, or by a part of its name.
pub(crate) fn known(command: &'static str, wanted: &str) -> Result<Limits, Error> {
    let all: Vec<Limits> = Limits::PRESETS.into_iter().filter_map(Limits::preset).collect();
    let lower = wanted.to_lowercase();
    let by_name = |limits: &&Limits| !lower.is_empty() && limits.name.to_lowercase().contains(&lower);
    let named = |limits: &&Limits| limits.architecture() == lower;
    all.iter().find(named).or_else(|| all.iter().find(by_name)).cloned().ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|limits| format!("{} ({})", limits.architecture(), limits.name)).collect();
        Error::new(ErrorKind::Argument, command, format!("the limits of a GPU {wanted:?} are not known"))
            .advise(format!("name one of {}", names.join(", ")))
    })
}

fn as_json(explanation: &Explanation) -> String {
    let steps = explanation.steps.iter().map(|step| {
        let occupancy = step.occupancy.map(|occupancy| {
            json!({
                "blocks": occupancy.blocks, "warps": occupancy.warps, "most_warps": occupancy.most_warps, "bound": occupancy.bound,
            })
        });
        json!({
            "name": step.name, "launches": step.launches, "threads": step.threads, "matrices": step.matrices,
            "shared_bytes": step.shared_bytes, "occupancy": occupancy,
        })
    });
    let numbers = explanation.numbers.iter().map(|numbers| {
        let receipt = &numbers.receipt;
        json!({ "row": numbers.row, "device": receipt.device, "date": receipt.date, "command": receipt.command })
    });
    let rejected =
        explanation.rejected.iter().map(|one| json!({ "plan": one.plan, "reason": one.reason })).collect::<Vec<_>>();
    json!({
        "problem": explanation.problem.to_string(),
        "device": explanation.device,
        "name": explanation.name,
        "plan": explanation.plan,
        "chosen": explanation.chosen.to_string(),
        "arithmetic": explanation.arithmetic,
        "steps": steps.collect::<Vec<_>>(),
        "part": explanation.part,
        "workspace_bytes": explanation.workspace_bytes,
        "numbers": numbers.collect::<Vec<_>>(),
        "rejected": rejected,
    })
    .to_string()
}
