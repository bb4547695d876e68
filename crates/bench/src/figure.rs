//! What a figure compares, as data: curves of contestants, and what somebody said about them.

use batchla_core::{BatchLayout, Error, Operation, Options, Problem, Scalar, ScalarKind, SourceKind, Transpose};
use batchla_cuda::TunedLayout;

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routine {
    /// `A = P L U`, in place.
    Lu,
    /// `A⁻¹` from `A`: LU and inversion.
    Inverse,
    /// `A X = B` from `A` and one right-hand side, in its place: LU and solution.
    Solve,
    /// The same with as many right-hand sides as the order.
    SolveMany,
}

/// Who computes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Contestant {
    /// Ours, by the name of a plan; empty: as the planner has it.
    Plan(String),
    /// cuBLAS: `getrfBatched`, and for an inverse `getriBatched` after it, for solutions `getrsBatched`.
    Cublas,
    /// cuBLAS: `matinvBatched`, up to order 32.
    CublasMatinv,
    /// MAGMA, through PyTorch in a process of its own.
    Magma,
    /// Nobody: the driver copies the matrices on the device, each read and written once. What takes no longer cannot be had from a launch of its own.
    Copy,
}

/// A curve: the fastest of its contestants at each order.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the figure.
    pub label: String,
    /// Who may run.
    pub contestants: Vec<Contestant>,
    /// It is compared with the fastest of these curves, earlier in the figure.
    pub base: Vec<String>,
    /// Matrices, where not as many as the run has.
    pub batch: Option<usize>,
}

/// What is drawn over the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// GFLOP/s.
    Speed,
    /// How many times as fast as its base a curve is.
    Speedup,
    /// What share of the roofline a curve reaches, in a row's place for the speedup.
    Share,
    /// Microseconds a matrix.
    Time,
}

impl Shows {
    /// In words, with its unit.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Speed => "GFLOP/s",
            Self::Speedup => "times as fast as the base",
            Self::Share => "share of the roofline",
            Self::Time => "µs a matrix",
        }
    }
}

/// A figure, four panels of it, one a type.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its number in the paper, or a word; its drawing is `figure-NAME.svg`.
    pub name: &'static str,
    /// What it shows.
    pub title: String,
    /// What is computed.
    pub routine: Routine,
    /// What is drawn.
    pub shows: Shows,
    /// The curves.
    pub series: Vec<Series>,
    /// What its source says.
    pub claims: Vec<Claim>,
    /// Its source and its verb, as `the paper says`.
    pub source: &'static str,
}

/// Something that a source says about a panel, in numbers.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The panel.
    pub scalar: ScalarKind,
    /// What it says.
    pub says: Says,
}

/// What can be said about a panel.
#[derive(Clone, Copy, Debug)]
pub enum Says {
    /// A curve reaches so many GFLOP/s on a TITAN V.
    Peak(&'static str, f64),
    /// A curve is between so many and so many times as fast as another at the larger orders.
    Ratio(&'static str, &'static str, f64, f64),
    /// One of these curves is the best.
    Best(&'static [&'static str]),
}

impl Routine {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lu => "LU",
            Self::Inverse => "inverse",
            Self::Solve => "solution",
            Self::SolveMany => "solutions",
        }
    }

    /// Right-hand sides of a matrix.
    pub(crate) fn columns(self, order: usize) -> usize {
        match self {
            Self::Lu | Self::Inverse => 0,
            Self::Solve => 1,
            Self::SolveMany => order,
        }
    }

    /// The problem that is prepared.
    ///
    /// # Errors
    /// As of the layout.
    pub fn problem<T: Scalar>(self, batch: usize, order: usize) -> Result<Problem, Error> {
        self.problem_lying::<T>(TunedLayout::ColumnMajor, batch, order)
    }

    /// The same of matrices that lie otherwise; right-hand sides lie column-major.
    pub(crate) fn problem_lying<T: Scalar>(
        self,
        lying: TunedLayout,
        batch: usize,
        order: usize,
    ) -> Result<Problem, Error> {
        match self.columns(order) {
            0 => lying.problem(T::KIND, self.operation(), batch, order),
            columns => {
                let x = BatchLayout::column_major(batch, order, columns)?;
                Problem::solve::<T>(SourceKind::Matrix, lying.of(batch, order)?, None, x, Transpose::None)
            }
        }
    }

    /// The same as an operation.
    pub fn operation(self) -> Operation {
        match self {
            Self::Lu => Operation::Factorize,
            Self::Inverse => Operation::Invert,
            Self::Solve | Self::SolveMany => Operation::Solve,
        }
    }
}

impl Contestant {
    /// What a plan is asked for by.
    pub(crate) fn options(plan: &str) -> Options {
        if plan.is_empty() { Options::default() } else { Options::default().with_plan(plan) }
    }

    /// In words, without commas.
    pub fn name(&self, routine: Routine) -> String {
        match (self, routine) {
            (Self::Plan(plan), _) if plan.is_empty() => "ours".to_owned(),
            (Self::Plan(plan), _) => plan.replace(',', " "),
            (Self::Cublas, Routine::Lu) => "cublas getrf".to_owned(),
            (Self::Cublas, Routine::Inverse) => "cublas getrf+getri".to_owned(),
            (Self::Cublas, Routine::Solve | Routine::SolveMany) => "cublas getrf+getrs".to_owned(),
            (Self::CublasMatinv, _) => "cublas matinv".to_owned(),
            (Self::Magma, _) => "magma".to_owned(),
            (Self::Copy, _) => "copy".to_owned(),
        }
    }
}

impl Series {
    /// A curve, compared with the fastest of others.
    pub fn new<const N: usize>(label: &str, contestants: [Contestant; N], base: &[&str]) -> Self {
        let base = base.iter().map(|&label| label.to_owned()).collect();
        Self { label: label.to_owned(), contestants: contestants.into(), base, batch: None }
    }

    /// The same of so many matrices.
    #[must_use]
    pub fn with_batch(self, batch: Option<usize>) -> Self {
        Self { batch, ..self }
    }

    /// A curve of plans.
    pub fn plans<const N: usize>(label: &str, plans: [String; N], base: &[&str]) -> Self {
        Self::new(label, plans.map(Contestant::Plan), base)
    }
}

impl Figure {
    /// Everybody who runs in it.
    pub fn contestants(&self) -> impl Iterator<Item = &Contestant> {
        self.series.iter().flat_map(|series| &series.contestants)
    }
}
