//! Why a problem is run as it is: the plan, what it takes, where it came from, and what was not chosen.

use std::borrow::Cow;
use std::fmt;

use crate::plan::{Plan, Rejection};
use crate::problem::Problem;

/// The answer to "which plan, and why": plain data, made without running anything. Prints as a few lines.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// What is to be done.
    pub problem: Problem,
    /// What it is to be done on.
    pub device: String,
    /// The name by which [`Options::plan`](crate::Options::plan) forces the plan.
    pub name: String,
    /// The plan in one line.
    pub plan: String,
    /// The id of its arithmetic: plans of equal ids give equal bits.
    pub arithmetic: String,
    /// Who chose it.
    pub chosen: Chosen,
    /// Where its numbers come from; nothing where the backend does not say.
    pub numbers: Vec<Numbers>,
    /// What runs, in order, for each part of the batch.
    pub steps: Vec<Step>,
    /// Matrices of such a part: all of the batch, unless the workspace is bounded.
    pub part: usize,
    /// Bytes of workspace.
    pub workspace_bytes: u64,
    /// Every other plan that could have been chosen or forced, and why it was not.
    pub rejected: Vec<Rejection>,
}

/// Who chose a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Chosen {
    /// The caller, by name.
    ByName,
    /// The backend, by the problem and the device, from the tables that come with it.
    ByPlanner,
    /// A row of a table that was measured by the user: the file.
    ByTuning(String),
}

/// Where some of a plan's numbers come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// What they are for, and for which problems: a row of a table, in words.
    pub row: String,
    /// How they were found.
    pub receipt: Receipt,
}

/// How a number was found, so that it can be found again.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Receipt {
    /// The device it was measured on.
    pub device: Cow<'static, str>,
    /// When, as 2026-01-31.
    pub date: Cow<'static, str>,
    /// By which command, or in which record.
    pub command: Cow<'static, str>,
}

impl Receipt {
    /// A receipt that is known when the program is compiled.
    pub const fn new(device: &'static str, date: &'static str, command: &'static str) -> Self {
        Self { device: Cow::Borrowed(device), date: Cow::Borrowed(date), command: Cow::Borrowed(command) }
    }
}

/// A kernel that is launched, or a routine that threads of a CPU go through.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its name.
    pub name: Cow<'static, str>,
    /// How often it is launched for a part of the batch.
    pub launches: usize,
    /// Threads of a block; on a CPU, threads that work.
    pub threads: usize,
    /// Matrices that a block, or a thread of a CPU, works on at once.
    pub matrices: usize,
    /// Bytes of shared memory of a block, fixed and asked for.
    pub shared_bytes: usize,
    /// How much of a multiprocessor its blocks are expected to fill; none where that was not planned for.
    pub occupancy: Option<Occupancy>,
}

/// How many blocks a multiprocessor works on at once, and what allows no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Blocks.
    pub blocks: usize,
    /// Their warps.
    pub warps: usize,
    /// Warps that a multiprocessor could hold.
    pub most_warps: usize,
    /// What there is no more of.
    pub bound: &'static str,
}

impl Explanation {
    /// What a plan says of itself. Steps, numbers and rejections are for the backend to add.
    pub fn new(problem: &Problem, plan: &dyn Plan, device: String, chosen: Chosen) -> Self {
        Self {
            problem: problem.clone(),
            device,
            name: plan.name().to_owned(),
            plan: plan.to_string(),
            arithmetic: plan.arithmetic().to_owned(),
            chosen,
            numbers: Vec::new(),
            steps: Vec::new(),
            part: problem.batch(),
            workspace_bytes: 0,
            rejected: Vec::new(),
        }
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ByName => f.write_str("by name"),
            Self::ByPlanner => f.write_str("by the planner"),
            Self::ByTuning(file) => write!(f, "by the tuner, from {file}"),
        }
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}: {}", self.device, self.date, self.command)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, launches, threads, matrices, shared_bytes, occupancy } = self;
        write!(f, "{name:<12} x{launches:<4} {threads:>4} threads  {matrices:>3} at once")?;
        if *shared_bytes > 0 {
            write!(f, "  {shared_bytes:>7} bytes shared")?;
        }
        occupancy.map_or(Ok(()), |occupancy| write!(f, "  {occupancy}"))
    }
}

impl fmt::Display for Occupancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { blocks, warps, most_warps, bound } = self;
        write!(f, "{blocks} blocks a multiprocessor, {warps} of {most_warps} warps, bound by {bound}")
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "problem     {}", self.problem)?;
        writeln!(f, "on          {}", self.device)?;
        writeln!(f, "plan        {}", self.plan)?;
        writeln!(f, "chosen      {}", self.chosen)?;
        writeln!(f, "arithmetic  {}: plans of this id give the same bits", self.arithmetic)?;
        let parts = self.problem.batch().div_ceil(self.part.max(1));
        let many = if parts > 1 { format!(", for {parts} parts of {} matrices", self.part) } else { String::new() };
        writeln!(f, "workspace   {} bytes{many}", self.workspace_bytes)?;
        for (what, lines) in [
            ("runs", self.steps.iter().map(ToString::to_string).collect::<Vec<_>>()),
            ("numbers", self.numbers.iter().map(|one| format!("{} ({})", one.row, one.receipt)).collect()),
            ("not chosen", self.rejected.iter().map(|one| format!("{}: {}", one.plan, one.reason)).collect()),
        ] {
            for (i, line) in lines.iter().enumerate() {
                writeln!(f, "{:<11} {line}", if i == 0 { what } else { "" })?;
            }
        }
        Ok(())
    }
}
