//! A small problem run through one step of the kernels, and all that it leaves, to the bit.
//!
//! All plans of a scalar type are one arithmetic, so whatever a sound kernel leaves is what any other sound one does.

use batchla_core::{
    Backend, Batch, BatchLayout, BatchedDeterminant, BatchedFactorize, BatchedInvert, BatchedSolve, Complex,
    DeterminantArgs, Error, ErrorKind, Extras, FactorizeArgs, FactorsRef, InvertArgs, Memory, Options, Problem, Real,
    Report, Scalar, ScalarKind, SolveArgs, Source, SourceKind, Transpose,
};
use batchla_cuda::{Cuda, CudaPlan, DeviceMemory, Limits, Specification};
use batchla_testkit::Generator;

/// One routine of the kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// `getrf`.
    Factorize,
    /// `permutation`, `trtri` and `getri` or `getri_resident`, and `lacpy` where the result lies rows first.
    Invert,
    /// `permutation`, `spread`, `getrs_resident` or `getrs`, `fill_failed`.
    Solve(Transpose),
    /// `spread`, `determinant`.
    Determinant,
    /// Everything that inverts matrices, with determinants and condition numbers.
    All,
    /// Everything that solves systems: `gesv`, or `getrf` and what solves from factors.
    System,
}

/// Where there is an element between one matrix and the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// Nowhere.
    None,
    /// Between the matrices that are given.
    Given,
    /// Between results.
    Results,
}

/// A problem of a few matrices: regular ones, one with a zero column, one with a NaN below its diagonal, two whose pivots tie, one whose pivots are tiny.
#[derive(Clone, Copy, Debug)]
pub struct Trial {
    /// The type of the elements.
    pub scalar: ScalarKind,
    /// The order of the matrices.
    pub order: usize,
    /// The plan's name.
    pub plan: &'static str,
    /// What is run.
    pub step: Step,
    /// Whether matrices and results lie rows first.
    pub rows_first: bool,
    /// Where they have gaps.
    pub gaps: Gaps,
    /// Matrices: [`Trial::KINDS`], or more, and then kinds come again.
    pub batch: usize,
}

/// What a trial leaves: every element, pivot and outcome, as bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left(Vec<u64>);

/// Right-hand sides: more than a warp takes at a time.
const COLUMNS: usize = 11;

/// Factors, pivots and outcome words.
type Factored<T> = (Batch<T>, Vec<u32>, Vec<u32>);

fn push<T: Scalar>(left: &mut Vec<u64>, x: T) {
    for part in [x.re(), x.im()] {
        let part = part.to_f64();
        // A NaN's sign and payload are not promised.
        left.push(if part.is_nan() { f64::NAN.to_bits() } else { part.to_bits() });
    }
}

fn matrices<T: Scalar>(batch: usize, order: usize) -> Result<Batch<T>, Error> {
    let layout = BatchLayout::column_major(batch, order, order)?;
    let normal: Batch<T> = Generator::Normal.batch(layout, 7)?;
    let ties: Batch<T> = Generator::SmallIntegers.batch(layout, 7)?;
    let (area, bad, four) = (order * order, order / 2, T::from_f64(4.0, 0.0));
    // Pivots that are divided by: their reciprocals are not used.
    let tiny =
        T::from_f64(2_f64.powi(if matches!(T::KIND, ScalarKind::F32 | ScalarKind::C32) { -70 } else { -500 }), 0.0);
    Batch::from_fn(batch, order, order, |b, i, j| match b % Trial::KINDS {
        6 if j == bad => T::from_f64(0.0, 0.0),
        3 if j == bad && i + 1 == order => T::nan(),
        // The second column's largest stand in two warps, and the first of them, as rows stand then, in the later warp.
        5 if order > 40 => match (i, j) {
            (40, 0) => T::from_f64(2.0, 0.0),
            (0, 0 | 1) | (35, 1) => T::one(),
            _ if i == j && j > 1 => T::from_f64(3.0, 0.0),
            _ => T::zero(),
        },
        4 => ties.as_slice()[b * area + j * order + i],
        2 => normal.as_slice()[b * area + j * order + i] * tiny,
        // Its largest column is the last.
        1 if j + 1 == order => normal.as_slice()[b * area + j * order + i] + normal.as_slice()[b * area + i] * four,
        _ => normal.as_slice()[b * area + j * order + i],
    })
}

impl Trial {
    /// Matrices of different kinds.
    pub const KINDS: usize = 7;

    /// Runs it. What it starts from, where that is factors, comes from `sound`, a device whose kernels are as they should be.
    ///
    /// # Errors
    /// What the device reports: a fault of a kernel's too.
    pub fn run(&self, gpu: &Cuda, sound: &Cuda) -> Result<Left, Error> {
        match self.scalar {
            ScalarKind::F32 => self.run_in::<f32>(gpu, sound),
            ScalarKind::F64 => self.run_in::<f64>(gpu, sound),
            ScalarKind::C32 => self.run_in::<Complex<f32>>(gpu, sound),
            ScalarKind::C64 => self.run_in::<Complex<f64>>(gpu, sound),
        }
    }

    /// The kernels that it runs on a GPU of an architecture.
    ///
    /// # Errors
    /// Where there is no such architecture or plan.
    pub fn kernels(&self, architecture: &str) -> Result<Vec<Specification>, Error> {
        let limits = Limits::preset(architecture).ok_or_else(|| {
            Error::new(ErrorKind::Argument, "kernels of a trial", format!("no preset {architecture}"))
        })?;
        let problems = match self.scalar {
            ScalarKind::F32 => self.problems::<f32>(),
            ScalarKind::F64 => self.problems::<f64>(),
            ScalarKind::C32 => self.problems::<Complex<f32>>(),
            ScalarKind::C64 => self.problems::<Complex<f64>>(),
        };
        let mut all = Vec::new();
        for problem in problems? {
            all.extend(CudaPlan::choose(&problem, &self.options(), &limits)?.specifications(&problem));
        }
        Ok(all)
    }

    /// What is prepared, one after the other.
    fn problems<T: Scalar>(&self) -> Result<Vec<Problem>, Error> {
        // Factors are those of a trial that lies columns first.
        let a = self.columns_first(self.order)?;
        let (given, out, factors) = (self.given()?, self.layout(self.order)?, SourceKind::Factors);
        let factorize = || Problem::factorize::<T>(SourceKind::Matrix, given, out);
        Ok(match self.step {
            Step::Factorize => vec![factorize()?],
            Step::Invert => vec![Problem::invert::<T>(factors, a, out)?],
            Step::Solve(transpose) => {
                let b = self.columns_first(COLUMNS)?;
                vec![Problem::solve::<T>(factors, a, Some(b), self.layout(COLUMNS)?, transpose)?]
            }
            Step::System => {
                let b = self.columns_first(COLUMNS)?;
                vec![Problem::solve::<T>(SourceKind::Matrix, given, Some(b), self.layout(COLUMNS)?, Transpose::None)?]
            }
            Step::Determinant => vec![Problem::determinant::<T>(factors, a)?],
            Step::All => {
                vec![factorize()?, Problem::invert::<T>(SourceKind::Matrix, given, out)?.with_extras(extras())?]
            }
        })
    }

    fn columns_first(&self, columns: usize) -> Result<BatchLayout, Error> {
        BatchLayout::column_major(self.batch, self.order, columns)
    }

    /// Where results lie.
    fn layout(&self, columns: usize) -> Result<BatchLayout, Error> {
        let lay = if self.rows_first { BatchLayout::row_major } else { BatchLayout::column_major };
        let layout = lay(self.batch, self.order, columns)?;
        if self.gaps == Gaps::Results { layout.with_group_stride(self.order * columns + 1) } else { Ok(layout) }
    }

    /// Where matrices lie.
    fn given(&self) -> Result<BatchLayout, Error> {
        let layout = Self { gaps: Gaps::None, ..*self }.layout(self.order)?;
        if self.gaps == Gaps::Given { layout.with_group_stride(self.order * self.order + 1) } else { Ok(layout) }
    }

    fn run_in<T: Scalar>(&self, gpu: &Cuda, sound: &Cuda) -> Result<Left, Error> {
        let host = matrices::<T>(self.batch, self.order)?.to_layout(self.given()?)?;
        let mut left = Vec::new();
        if matches!(self.step, Step::Factorize | Step::All) {
            let (lu, pivots, outcomes) = self.factorize(gpu, &host)?;
            lu.as_slice().iter().for_each(|&x| push(&mut left, x));
            left.extend(pivots.iter().chain(&outcomes).map(|&word| u64::from(word)));
        }
        if self.step == Step::All {
            self.invert(gpu, Source::Matrix(upload(gpu, &host)?.view()), *host.layout(), extras(), &mut left)?;
        }
        if self.step == Step::System {
            let a = upload(gpu, &host)?;
            self.solve(gpu, Source::Matrix(a.view()), *host.layout(), Transpose::None, &mut left)?;
        }
        if matches!(self.step, Step::Factorize | Step::All | Step::System) {
            return Ok(Left(left));
        }
        let plain = Self { plan: "left-looking", rows_first: false, gaps: Gaps::None, ..*self };
        let (lu, pivots, outcomes) = plain.factorize(sound, &host)?;
        let words = |words: &[u32]| -> Result<_, Error> {
            let mut array = gpu.allocate::<u32>(words.len())?;
            gpu.write(words, array.slice_mut())?;
            Ok(array)
        };
        let (factors, pivots, outcomes) = (upload(gpu, &lu)?, words(&pivots)?, words(&outcomes)?);
        let factors = FactorsRef { lu: factors.view(), pivots: pivots.slice(), outcomes: outcomes.slice() };
        let source = Source::Factors(factors);
        match self.step {
            Step::Solve(transpose) => self.solve::<T>(gpu, source, *lu.layout(), transpose, &mut left)?,
            Step::Determinant => {
                let problem = Problem::determinant::<T>(SourceKind::Factors, *lu.layout())?;
                let prepared = gpu.prepare(&problem, &self.options())?;
                let mut workspace = gpu.workspace(&prepared)?;
                let mut report = Report::allocate(gpu, self.batch, problem.extras())?;
                gpu.run_determinant(&prepared, DeterminantArgs::new(&source, report.view_mut()), &mut workspace)?;
                tell(&report, &mut left)?;
            }
            _ => self.invert(gpu, source, *lu.layout(), Extras::none(), &mut left)?,
        }
        Ok(Left(left))
    }

    fn options(&self) -> Options {
        Options::default().with_plan(self.plan)
    }

    fn factorize<T: Scalar>(&self, gpu: &Cuda, host: &Batch<T>) -> Result<Factored<T>, Error> {
        let out = self.layout(self.order)?;
        let problem = Problem::factorize::<T>(SourceKind::Matrix, *host.layout(), out)?;
        let prepared = gpu.prepare(&problem, &self.options())?;
        let mut workspace = gpu.workspace(&prepared)?;
        let a = upload(gpu, host)?;
        let source = Source::Matrix(a.view());
        let (mut lu, mut pivots) = (gpu.allocate_batch::<T>(out)?, gpu.allocate::<u32>(self.batch * self.order)?);
        let mut report = Report::allocate(gpu, self.batch, Extras::none())?;
        let mut view = lu.view_mut();
        let arguments = FactorizeArgs::new(&source, &mut view, pivots.slice_mut(), report.view_mut());
        gpu.run_factorize(&prepared, arguments, &mut workspace)?;
        let mut exchanges = vec![0; self.batch * self.order];
        DeviceMemory::read(pivots.slice(), &mut exchanges)?;
        let outcomes = report.read_outcomes()?.into_iter().map(|outcome| outcome.to_word()).collect();
        Ok((gpu.to_host(&lu)?, exchanges, outcomes))
    }

    fn invert<T: Scalar>(
        &self,
        gpu: &Cuda,
        source: Source<'_, T, DeviceMemory>,
        a: BatchLayout,
        extras: Extras,
        left: &mut Vec<u64>,
    ) -> Result<(), Error> {
        let out = self.layout(self.order)?;
        let problem = Problem::invert::<T>(source.kind(), a, out)?.with_extras(extras)?;
        let prepared = gpu.prepare(&problem, &self.options())?;
        let mut workspace = gpu.workspace(&prepared)?;
        let (mut x, mut report) = (gpu.allocate_batch::<T>(out)?, Report::allocate(gpu, self.batch, extras)?);
        let mut view = x.view_mut();
        gpu.run_invert(&prepared, InvertArgs::new(&source, &mut view, report.view_mut()), &mut workspace)?;
        gpu.to_host(&x)?.as_slice().iter().for_each(|&x| push(left, x));
        tell(&report, left)
    }

    fn solve<T: Scalar>(
        &self,
        gpu: &Cuda,
        source: Source<'_, T, DeviceMemory>,
        a: BatchLayout,
        transpose: Transpose,
        left: &mut Vec<u64>,
    ) -> Result<(), Error> {
        let out = self.layout(COLUMNS)?;
        let given = self.columns_first(COLUMNS)?;
        let b = Batch::from_fn(self.batch, self.order, COLUMNS, |b, i, j| match (b, i, j) {
            (5, 0, 1) => T::nan(),
            _ => T::from_f64((1 + (b + 3 * i + 7 * j) % 11) as f64, (i % 3) as f64),
        })?;
        let b = gpu.to_device(&b)?;
        let problem = Problem::solve::<T>(source.kind(), a, Some(given), out, transpose)?;
        let prepared = gpu.prepare(&problem, &self.options())?;
        let mut workspace = gpu.workspace(&prepared)?;
        let (mut x, mut report) = (gpu.allocate_batch::<T>(out)?, Report::allocate(gpu, self.batch, Extras::none())?);
        let (right, mut view) = (b.view(), x.view_mut());
        let arguments = SolveArgs::new(&source, Some(&right), &mut view, report.view_mut());
        gpu.run_solve(&prepared, arguments, &mut workspace)?;
        gpu.to_host(&x)?.as_slice().iter().for_each(|&x| push(left, x));
        tell(&report, left)
    }
}

/// A batch in a device's memory as it lies, gaps and all.
fn upload<T: Scalar>(gpu: &Cuda, host: &Batch<T>) -> Result<Batch<T, DeviceMemory>, Error> {
    let mut device = gpu.allocate_batch(*host.layout())?;
    gpu.write(host.as_slice(), device.slice_mut())?;
    Ok(device)
}

fn extras() -> Extras {
    Extras::none().with_determinant().with_condition()
}

fn tell<T: Scalar>(report: &Report<T, DeviceMemory>, left: &mut Vec<u64>) -> Result<(), Error> {
    left.extend(report.read_outcomes()?.into_iter().map(|outcome| u64::from(outcome.to_word())));
    for determinant in report.read_determinants()?.into_iter().flatten() {
        push(left, determinant.sign);
        push(left, T::from_real(determinant.log_abs));
    }
    report.read_conditions()?.into_iter().flatten().for_each(|condition| push(left, T::from_real(condition)));
    Ok(())
}
