//! One operation on one batch, in place: ours beside the plain loop, on equally many threads, checked before anything is timed.

use std::error::Error;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use batchla::{
    Backend, Batch, BatchLayout, BatchedFactorize, BatchedInvert, Cpu, FactorizeArgs, InvertArgs, MatrixRef, Options,
    Outcome, Prepared, Problem, ReportMut, Source, SourceKind,
};
use batchla_cpu::CpuScalar;
use batchla_testkit::{Generator, LIMIT, factorization_ratio, inverse_ratio};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::plain;

/// The operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Task {
    /// Factorisation.
    Lu,
    /// Factorisation and inverse.
    Inverse,
    /// Factorisation of matrices that are all singular: a column in the middle is zero. Only where it is asked for.
    Singular,
}

impl Task {
    /// Those of regular matrices.
    pub(crate) const ALL: [Self; 2] = [Self::Lu, Self::Inverse];

    /// In lower case.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lu => "lu",
            Self::Inverse => "inverse",
            Self::Singular => "singular",
        }
    }
}

/// Whose turn it is.
#[derive(Clone, Copy)]
pub(crate) enum Side<'p, T> {
    /// The CPU backend, prepared beforehand.
    Ours,
    /// The plain loop.
    Plain,
    /// Another library. (Not every benchmark has any.)
    #[allow(dead_code)]
    Peer(&'p dyn Peer<T>),
}

impl<T> Side<'_, T> {
    /// As it is called in a record.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Ours => "batchla",
            Self::Plain => "faer",
            Self::Peer(peer) => peer.name(),
        }
    }
}

/// Another library, which computes dense column-major matrices one by one on rayon's threads, in their place.
pub(crate) trait Peer<T>: Sync {
    /// As it is called in a record.
    fn name(&self) -> &str;
    /// Puts the packed factors of every matrix in its place, and its pivots, of whatever kind, into `pivots`.
    fn factorize(&self, matrices: &mut [T], pivots: &mut [u32], order: usize);
    /// Puts the inverse of every matrix in its place.
    fn invert(&self, matrices: &mut [T], order: usize);
    /// The sequential exchanges, counted from 0, that a matrix' pivots amount to.
    fn exchanges(&self, pivots: &[u32]) -> Vec<u32>;
}

/// Equally many threads for both sides.
#[derive(Debug)]
pub(crate) struct Threads {
    cpu: Cpu,
    pool: ThreadPool,
    /// Of ours.
    options: Options,
    /// Whether results go apart from the input.
    apart: bool,
}

impl Threads {
    /// So many, or one for each core.
    pub(crate) fn new(threads: Option<usize>) -> Result<Self, Box<dyn Error>> {
        let cpu = match threads {
            Some(threads) => Cpu::builder().threads(threads).build()?,
            None => Cpu::new(),
        };
        let pool = ThreadPoolBuilder::new().num_threads(cpu.threads()).build()?;
        Ok(Self { cpu, pool, options: Options::default(), apart: false })
    }

    /// Has ours follow the plan of a name, not the planner's choice. (Not every benchmark asks for one.)
    #[allow(dead_code)]
    pub(crate) fn with_plan(mut self, plan: Option<String>) -> Self {
        self.options.plan = plan;
        self
    }

    /// Has ours and the plain loop put results apart from the input, not in its place. (Nor is this one.)
    #[allow(dead_code)]
    pub(crate) fn with_results_apart(mut self, apart: bool) -> Self {
        self.apart = apart;
        self
    }

    /// How many.
    pub(crate) fn count(&self) -> usize {
        self.cpu.threads()
    }

    /// One line about the machine.
    pub(crate) fn describe(&self) -> String {
        self.cpu.describe()
    }
}

/// One operation on one batch of normal matrices.
pub(crate) struct Contest<'a, T: CpuScalar> {
    threads: &'a Threads,
    task: Task,
    prepared: <Cpu as Backend>::Prepared,
    workspace: <Cpu as Backend>::Workspace,
    input: Batch<T>,
    data: Batch<T>,
    /// Exchanges of ours, permutations of the plain loop.
    pivots: Vec<u32>,
    outcomes: Vec<u32>,
}

impl<'a, T: CpuScalar> Contest<'a, T> {
    /// A batch of so many, or one that keeps the plain loop busy for about `work`.
    ///
    /// # Errors
    /// Memory; and a side whose results are wrong.
    pub(crate) fn new(
        threads: &'a Threads,
        task: Task,
        order: usize,
        (batch, work): (Option<NonZeroUsize>, Duration),
    ) -> Result<Self, Box<dyn Error>> {
        let batch = match batch {
            Some(batch) => batch.get(),
            None => Self::batch_for(threads, task, order, work)?,
        };
        let mut contest = Self::of(threads, task, order, batch)?;
        contest.check(Side::Ours)?;
        // What faer makes of a zero pivot is not finite: there its time alone counts.
        if task != Task::Singular {
            contest.check(Side::Plain)?;
        }
        Ok(contest)
    }

    fn batch_for(threads: &'a Threads, task: Task, order: usize, work: Duration) -> Result<usize, batchla::Error> {
        const MOST_BYTES: usize = 1 << 28;
        let few = 4 * threads.count();
        let most = (MOST_BYTES / (order * order * size_of::<T>())).max(few);
        let mut trial = Self::of(threads, task, order, (1_000_000 / order.pow(3)).clamp(few, most))?;
        trial.time(Side::Plain)?;
        let matrices_a_second = trial.batch() as f64 / trial.time(Side::Plain)?.as_secs_f64();
        let batch = ((work.as_secs_f64() * matrices_a_second) as usize).clamp(few, most);
        Ok(batch.next_multiple_of(threads.count()))
    }

    fn of(threads: &'a Threads, task: Task, order: usize, batch: usize) -> Result<Self, batchla::Error> {
        let layout = BatchLayout::column_major(batch, order, order)?;
        let source = if threads.apart { SourceKind::Matrix } else { SourceKind::InPlace };
        let problem = match task {
            Task::Lu | Task::Singular => Problem::factorize::<T>(source, layout, layout)?,
            Task::Inverse => Problem::invert::<T>(source, layout, layout)?,
        };
        let prepared = threads.cpu.prepare(&problem, &threads.options)?;
        let workspace = threads.cpu.workspace(&prepared)?;
        let mut input = Generator::Normal.batch(layout, 1)?;
        if task == Task::Singular {
            for matrix in input.as_mut_slice().chunks_exact_mut(order * order) {
                matrix[order / 2 * order..][..order].fill(num_traits::zero());
            }
        }
        let (pivots, outcomes) = (vec![0; batch * order], vec![0; batch]);
        Ok(Self { threads, task, prepared, workspace, input, data: Batch::zeros(layout)?, pivots, outcomes })
    }

    /// Matrices.
    pub(crate) fn batch(&self) -> usize {
        self.input.batch()
    }

    /// How long one run takes. In place it starts from a fresh copy of the input, made before the clock starts.
    pub(crate) fn time(&mut self, side: Side<'_, T>) -> Result<Duration, batchla::Error> {
        if !self.threads.apart {
            self.data.as_mut_slice().copy_from_slice(self.input.as_slice());
        }
        let start = Instant::now();
        match side {
            Side::Ours => self.run_ours()?,
            Side::Plain => self.run_plain(),
            Side::Peer(peer) => self.run_peer(peer),
        }
        Ok(start.elapsed())
    }

    fn run_ours(&mut self) -> Result<(), batchla::Error> {
        let Self { prepared, workspace, .. } = self;
        let source = if self.threads.apart { Source::Matrix(self.input.view()) } else { Source::InPlace };
        let (mut data, report) = (self.data.view_mut(), ReportMut::new(&mut self.outcomes[..]));
        match self.task {
            Task::Lu | Task::Singular => {
                let args = FactorizeArgs::new(&source, &mut data, &mut self.pivots, report);
                self.threads.cpu.run_factorize(prepared, args, workspace)
            }
            Task::Inverse => {
                self.threads.cpu.run_invert(prepared, InvertArgs::new(&source, &mut data, report), workspace)
            }
        }
    }

    fn run_plain(&mut self) {
        let (order, matrices) = (self.input.layout().rows(), self.data.as_mut_slice());
        let from = self.threads.apart.then(|| self.input.as_slice());
        match self.task {
            Task::Lu | Task::Singular => {
                self.threads.pool.install(|| plain::factorize(from, matrices, &mut self.pivots, order))
            }
            Task::Inverse => self.threads.pool.install(|| plain::invert(from, matrices, order)),
        }
    }

    fn run_peer(&mut self, peer: &dyn Peer<T>) {
        let (order, matrices) = (self.input.layout().rows(), self.data.as_mut_slice());
        match self.task {
            Task::Lu | Task::Singular => {
                self.threads.pool.install(|| peer.factorize(matrices, &mut self.pivots, order))
            }
            Task::Inverse => self.threads.pool.install(|| peer.invert(matrices, order)),
        }
    }

    /// Runs a side and looks at all outcomes, and at the first and the last of its results.
    pub(crate) fn check(&mut self, side: Side<'_, T>) -> Result<(), Box<dyn Error>> {
        // What one side leaves must not pass for the other's.
        self.data.as_mut_slice().fill(num_traits::zero());
        self.pivots.fill(u32::MAX);
        self.outcomes.fill(Outcome::Regular.to_word());
        self.time(side)?;
        let expected = match (self.task, side) {
            (Task::Singular, Side::Ours) => Outcome::Singular { column: self.input.layout().rows() / 2 },
            _ => Outcome::Regular,
        };
        if let Some(b) = self.outcomes.iter().position(|&word| Outcome::from_word(word) != expected) {
            let (problem, outcome) = (self.prepared.problem(), Outcome::from_word(self.outcomes[b]));
            return Err(format!("{}, {problem}: matrix {b} is {outcome}, not {expected}", side.name()).into());
        }
        let (input, data) = (self.input.view(), self.data.view());
        for b in [0, self.batch() - 1] {
            let pair = input.matrix(b).zip(data.matrix(b));
            let ratio = pair.map_or(f64::INFINITY, |(a, result)| self.ratio(side, b, a, result));
            // A singular matrix of order 1 is zero: no residual is small beside it.
            let zero = self.task == Task::Singular && self.input.layout().rows() == 1;
            if !(zero || ratio < LIMIT) {
                let problem = self.prepared.problem();
                return Err(format!("{}, {problem}, matrix {b}: residual ratio {ratio:.3}", side.name()).into());
            }
        }
        Ok(())
    }

    fn ratio(&self, side: Side<'_, T>, b: usize, a: MatrixRef<'_, T>, result: MatrixRef<'_, T>) -> f64 {
        let pivots = &self.pivots[b * a.rows()..(b + 1) * a.rows()];
        match (self.task, side) {
            (Task::Lu | Task::Singular, Side::Ours) => factorization_ratio(a, result, pivots),
            (Task::Lu | Task::Singular, Side::Plain) => factorization_ratio(a, result, &plain::exchanges(pivots)),
            (Task::Lu | Task::Singular, Side::Peer(peer)) => factorization_ratio(a, result, &peer.exchanges(pivots)),
            (Task::Inverse, _) => inverse_ratio(a, result),
        }
    }
}
