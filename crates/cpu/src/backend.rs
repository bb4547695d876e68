//! The handle: how many threads, and the [`Backend`] trait.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;

use batchla_core::{
    Backend, Complex, Element, Error, ErrorKind, Explanation, HostArray, HostMemory, Operation, Options, Plan,
    Prepared, Problem, Scalar, ScalarKind, Transpose,
};

use crate::call::Pool;
use crate::parallel::{Results, for_each};
use crate::plan::CpuPlan;
use crate::routines::{Recursive, Routines};
use crate::scratch::{Scratch, Threads};
use crate::simd::{InstructionSet, Simd};
use crate::team::Team;
use crate::workspace::{CpuWorkspace, Shape};

/// A [`Scalar`] that faer computes with: all four.
pub trait CpuScalar: Simd + Routines + Recursive {}

impl CpuScalar for f32 {}
impl CpuScalar for f64 {}
impl CpuScalar for Complex<f32> {}
impl CpuScalar for Complex<f64> {}

/// The CPU: a cheap handle to threads of its own, whose clones share them. Work is done on return.
///
/// On Linux a thread that has woken up on its caller's core is kept off that of its latest caller from then on, by its affinity, unless it may run nowhere else.
#[derive(Clone, Debug)]
pub struct Cpu {
    pool: Option<Arc<Pool>>,
    grain: Option<NonZeroUsize>,
    instruction_set: InstructionSet,
}

/// How a [`Cpu`] is made: see [`Cpu::builder`].
#[derive(Clone, Copy, Debug, Default)]
pub struct CpuOptions {
    threads: Option<usize>,
    grain: Option<usize>,
    instruction_set: Option<InstructionSet>,
}

impl CpuOptions {
    /// Works with so many threads, instead of one for each core. The caller's own is one of them.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self { threads: Some(threads), ..self }
    }

    /// Hands out so many matrices at a time, instead of a number that grows as the order shrinks. Changes the speed, never a result.
    #[must_use]
    pub fn grain(self, matrices: usize) -> Self {
        Self { grain: Some(matrices), ..self }
    }

    /// Works with an instruction set other than the widest that the machine has. Changes the speed, and no bit of the plans of our own.
    #[must_use]
    pub fn instruction_set(self, instruction_set: InstructionSet) -> Self {
        Self { instruction_set: Some(instruction_set), ..self }
    }

    /// Starts the threads.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for no threads, more than there can be, or a grain of zero; [`ErrorKind::Unavailable`] where the system
    /// gives no threads, or the machine has no such instruction set.
    pub fn build(self) -> Result<Cpu, Error> {
        let refuse = |what: String, advice: &str| Err(Error::new(ErrorKind::Argument, "cpu", what).advise(advice));
        let threads = self.threads.unwrap_or_else(cores);
        if threads == 0 || threads > rayon::max_num_threads() {
            let advice = "ask for one or more, or leave the number out to use all cores";
            return refuse(format!("{threads} threads cannot work"), advice);
        }
        let grain = self.grain.map(NonZeroUsize::new);
        if grain == Some(None) {
            return refuse("no matrices at a time".to_owned(), "ask for one or more, or leave the number out");
        }
        let instruction_set = self.instruction_set.unwrap_or_else(InstructionSet::widest);
        if !instruction_set.is_available() {
            let what = format!("this machine has no {instruction_set}");
            let advice = "leave the instruction set out to use the widest that there is";
            return Err(Error::new(ErrorKind::Unavailable, "cpu", what).advise(advice));
        }
        Ok(Cpu { pool: pool(threads)?, grain: grain.flatten(), instruction_set })
    }
}

fn cores() -> usize {
    available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Threads beside the caller's; none where one is enough.
fn pool(threads: usize) -> Result<Option<Arc<Pool>>, Error> {
    if threads <= 1 {
        return Ok(None);
    }
    let pool = Pool::new(threads - 1).map_err(|error| {
        Error::new(ErrorKind::Unavailable, "cpu", format!("{threads} threads could not be started: {error}"))
            .advise("ask for fewer threads")
            .caused_by(error)
    })?;
    Ok(Some(Arc::new(pool)))
}

impl Cpu {
    /// All cores; where the system gives no threads, the caller's alone.
    pub fn new() -> Self {
        let pool = pool(cores()).unwrap_or_else(|error| {
            log::warn!("working on one thread: {error}");
            None
        });
        Self { pool, grain: None, instruction_set: InstructionSet::widest() }
    }

    /// A choice of threads and grain.
    pub fn builder() -> CpuOptions {
        CpuOptions::default()
    }

    /// Threads that work.
    pub fn threads(&self) -> usize {
        self.pool.as_ref().map_or(1, |pool| pool.count() + 1)
    }

    /// Does `work` for all results, stretch by stretch, on this handle's threads.
    pub(crate) fn for_each<T: Scalar>(
        &self,
        prepared: &CpuPrepared,
        threads: Threads<'_, T>,
        results: Results<'_, T>,
        work: impl Fn(&mut Scratch<T>, Results<'_, T>, &Team) + Sync,
    ) {
        let together = prepared.plan.together();
        let default = || default_grain(&prepared.problem, self.threads(), prepared.plan.most_together());
        let grain = self.grain.map_or_else(default, NonZeroUsize::get).min(prepared.problem.batch().max(1));
        let grain = grain.next_multiple_of(together);
        let large = multiplications(&prepared.problem) >= LARGE && prepared.plan.shares_matrices();
        for_each(self.pool.as_deref(), (grain, large), threads, results, work);
    }
}

impl Default for Cpu {
    fn default() -> Self {
        Self::new()
    }
}

/// As many matrices as make up some 10 to 30 µs of work, fewer where there would be too few stretches for the threads: enough to hide what handing
/// them out costs, little enough to keep all threads busy to the end. Four times as many as may be computed `together`, where these still are many stretches: the next
/// ones of a stretch are asked for while others are computed.
fn default_grain(problem: &Problem, threads: usize, together: usize) -> usize {
    let of = |operations: usize| (operations / multiplications(problem)).clamp(1, 1024);
    let some = if together > 1 { (4 * together).min(problem.batch() / (16 * threads)) } else { 1 };
    (problem.batch() / (4 * threads)).clamp(of(100_000), of(300_000).max(some))
}

/// Multiplications of real numbers that a matrix takes, but for a factor of 3 at most.
fn multiplications(problem: &Problem) -> usize {
    let order = problem.order().max(1);
    let real = if matches!(problem.scalar(), ScalarKind::C32 | ScalarKind::C64) { 4 } else { 1 };
    order.saturating_mul(order).saturating_mul(order.max(problem.right_hand_sides())).saturating_mul(real)
}

/// Matrices of so many multiplications are worth to wake up threads for.
const LARGE: usize = 6_000_000;

/// What [`Cpu`] prepares.
#[derive(Clone, Debug)]
pub struct CpuPrepared {
    problem: Problem,
    plan: CpuPlan,
    threads: usize,
}

impl CpuPrepared {
    pub(crate) fn cpu_plan(&self) -> &CpuPlan {
        &self.plan
    }

    /// What factors are solved with; nothing but solution transposes.
    pub(crate) fn transpose(&self) -> Transpose {
        if self.problem.operation() == Operation::Solve { self.problem.transpose() } else { Transpose::None }
    }

    /// The shape of the scratch memory.
    pub(crate) fn shape(&self) -> Shape {
        Shape::of(&self.problem, &self.plan)
    }
}

impl Prepared for CpuPrepared {
    fn problem(&self) -> &Problem {
        &self.problem
    }
    fn plan(&self) -> &dyn Plan {
        &self.plan
    }
    fn workspace_bytes(&self) -> u64 {
        self.shape().bytes(self.threads)
    }
}

impl Backend for Cpu {
    type Memory = HostMemory;
    type Stream = ();
    type Prepared = CpuPrepared;
    type Workspace = CpuWorkspace;

    fn name(&self) -> &str {
        "cpu"
    }
    fn describe(&self) -> String {
        let threads = self.threads();
        let plural = if threads == 1 { "" } else { "s" };
        format!("CPU with {} cores, {}: {threads} thread{plural}", cores(), self.instruction_set)
    }
    fn stream(&self) -> &() {
        &()
    }
    fn prepare(&self, problem: &Problem, options: &Options) -> Result<CpuPrepared, Error> {
        let plan = CpuPlan::choose_on(self.instruction_set, self.threads(), problem, options)?;
        log::debug!("{problem}: {plan}");
        Ok(CpuPrepared { problem: problem.clone(), plan, threads: self.threads() })
    }
    fn explain(&self, problem: &Problem, options: &Options) -> Result<Explanation, Error> {
        let mut explanation = CpuPlan::explain_on(self.instruction_set, self.threads(), problem, options)?;
        explanation.device = self.describe();
        explanation.workspace_bytes = self.prepare(problem, options)?.workspace_bytes();
        Ok(explanation)
    }
    fn workspace(&self, prepared: &CpuPrepared) -> Result<CpuWorkspace, Error> {
        CpuWorkspace::new(prepared.shape(), self.threads())
    }
    fn allocate<E: Element>(&self, len: usize) -> Result<HostArray<E>, Error> {
        HostArray::zeroed(len)
    }
    fn write<E: Element>(&self, from: &[E], to: &mut [E]) -> Result<(), Error> {
        HostMemory::write(from, to)
    }
    fn synchronize(&self) -> Result<(), Error> {
        Ok(())
    }
}
