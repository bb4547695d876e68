//! A small problem run through one step of the kernels, and all that it leaves, to the bit.
//!
//! All plans of a scalar type are one arithmetic, so whatever a sound kernel leaves is what any other sound one does.

mod matrices;

use batchla_core::{
    Backend, Batch, BatchLayout, BatchedDeterminant, BatchedFactorize, BatchedInvert, BatchedSolve, Complex,
    DeterminantArgs, Error, Extras, FactorizeArgs, FactorsRef, InvertArgs, Memory, Options, Problem, Real, Report,
    Scalar, ScalarKind, SolveArgs, Source, SourceKind, Strides, Transpose,
};
use batchla_cuda::{Cuda, CudaPlan, DeviceMemory, Limits, Specification};

use matrices::matrices;

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
    /// The same where solutions take the right-hand sides' place.
    SystemInPlace,
}

/// How matrices lie, where it is not side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gaps {
    /// They do.
    None,
    /// Those that are given have an element between one and the next.
    Given,
    /// Results have.
    Results,
    /// Of those that are given the longer stride steps over the whole batch.
    Across,
    /// Of those that are given rows are an order apart, and columns the whole batch.
    Loose,
    /// Factors lie interleaved.
    Lanes,
}

/// A problem of a few matrices: regular ones, one with a zero column, one with a NaN below its diagonal, some whose pivots tie, some whose pivots are tiny or huge.
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
    /// What is between them.
    pub gaps: Gaps,
    /// Matrices: one of each of the first kinds, up to [`Trial::KINDS`], or more, and then kinds come again.
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

impl Trial {
    /// Matrices of different kinds.
    pub const KINDS: usize = 14;

    /// Matrices of which a thread takes one each and a warp goes on to another: two blocks of 64 threads, and one more.
    pub const MANY: usize = 2 * 64 + 1;

    /// Of the seven kinds that show most, columns first and side by side.
    #[must_use]
    pub const fn new(scalar: ScalarKind, order: usize, plan: &'static str, step: Step) -> Self {
        Self { scalar, order, plan, step, rows_first: false, gaps: Gaps::None, batch: 7 }
    }

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

    /// The kernels that it runs on a GPU with such limits.
    ///
    /// # Errors
    /// Where there is no such plan.
    pub fn kernels(&self, limits: &Limits) -> Result<Vec<Specification>, Error> {
        let problems = match self.scalar {
            ScalarKind::F32 => self.problems::<f32>(),
            ScalarKind::F64 => self.problems::<f64>(),
            ScalarKind::C32 => self.problems::<Complex<f32>>(),
            ScalarKind::C64 => self.problems::<Complex<f64>>(),
        };
        let mut all = Vec::new();
        for problem in problems? {
            all.extend(CudaPlan::choose(&problem, &self.options(), limits)?.specifications(&problem));
        }
        Ok(all)
    }

    /// What is prepared, one after the other.
    fn problems<T: Scalar>(&self) -> Result<Vec<Problem>, Error> {
        // Factors are those of a trial that lies columns first.
        let a = self.factors()?;
        let (given, out, factors) = (self.given()?, self.layout(self.order)?, SourceKind::Factors);
        let factorize = || Problem::factorize::<T>(SourceKind::Matrix, given, out);
        Ok(match self.step {
            Step::Factorize => vec![factorize()?],
            Step::Invert => vec![Problem::invert::<T>(factors, a, out)?],
            Step::Solve(transpose) => {
                vec![Problem::solve::<T>(factors, a, self.right_hand_sides()?, self.layout(COLUMNS)?, transpose)?]
            }
            Step::System | Step::SystemInPlace => {
                let (b, out) = (self.right_hand_sides()?, self.layout(COLUMNS)?);
                vec![Problem::solve::<T>(SourceKind::Matrix, given, b, out, Transpose::None)?]
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
        let (n, area) = (self.order, self.order * self.order);
        let apart = |row, col| BatchLayout::new(self.batch, n, n, Strides { lanes: 1, group: area, row, col });
        let far = area * self.batch;
        match self.gaps {
            Gaps::Given => Self { gaps: Gaps::None, ..*self }.layout(n)?.with_group_stride(area + 1),
            Gaps::Across if self.rows_first => apart(far, 1),
            Gaps::Across => apart(1, far),
            Gaps::Loose => apart(n, far),
            _ => Self { gaps: Gaps::None, ..*self }.layout(n),
        }
    }

    /// Where factors lie that are started from.
    fn factors(&self) -> Result<BatchLayout, Error> {
        match self.gaps {
            Gaps::Lanes => BatchLayout::interleaved(self.batch, self.order, self.order, 2),
            _ => self.columns_first(self.order),
        }
    }

    /// Where right-hand sides lie; nothing where solutions take their place.
    fn right_hand_sides(&self) -> Result<Option<BatchLayout>, Error> {
        (self.step != Step::SystemInPlace).then(|| self.columns_first(COLUMNS)).transpose()
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
        if matches!(self.step, Step::System | Step::SystemInPlace) {
            let a = upload(gpu, &host)?;
            self.solve(gpu, Source::Matrix(a.view()), *host.layout(), Transpose::None, &mut left)?;
        }
        if matches!(self.step, Step::Factorize | Step::All | Step::System | Step::SystemInPlace) {
            return Ok(Left(left));
        }
        let plain = Self { plan: "left-looking", rows_first: false, gaps: Gaps::None, ..*self };
        let (lu, mut pivots, outcomes) = plain.factorize(sound, &host)?;
        let lu = lu.to_layout(self.factors()?)?;
        // The first matrix's last exchange is none.
        pivots[self.order - 1] = self.order as u32;
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
        let (mut lu, mut pivots) = (unwritten::<T>(gpu, out)?, gpu.allocate::<u32>(self.batch * self.order)?);
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
        let (mut x, mut report) = (unwritten::<T>(gpu, out)?, Report::allocate(gpu, self.batch, extras)?);
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
        let single = matches!(T::KIND, ScalarKind::F32 | ScalarKind::C32);
        let b = Batch::from_fn(self.batch, self.order, COLUMNS, |b, i, j| match (b, i, j) {
            (5, 0, 1) => T::nan(),
            // Its matrix has tiny pivots: the last solution alone is beyond all numbers.
            (16, 0, 10) => T::from_f64(2_f64.powi(if single { 100 } else { 600 }), 0.0),
            _ => T::from_f64((1 + (b + 3 * i + 7 * j) % 11) as f64, (i % 3) as f64),
        })?;
        let given = self.right_hand_sides()?;
        let problem = Problem::solve::<T>(source.kind(), a, given, out, transpose)?;
        let prepared = gpu.prepare(&problem, &self.options())?;
        let mut workspace = gpu.workspace(&prepared)?;
        let mut x = if given.is_some() { unwritten(gpu, out)? } else { upload(gpu, &b.to_layout(out)?)? };
        let mut report = Report::allocate(gpu, self.batch, Extras::none())?;
        let (b, mut view) = (gpu.to_device(&b)?, x.view_mut());
        let right = given.map(|_| b.view());
        let arguments = SolveArgs::new(&source, right.as_ref(), &mut view, report.view_mut());
        gpu.run_solve(&prepared, arguments, &mut workspace)?;
        gpu.to_host(&x)?.as_slice().iter().for_each(|&x| push(left, x));
        tell(&report, left)
    }
}

/// Where a result goes: not what a kernel that forgets it would leave.
fn unwritten<T: Scalar>(gpu: &Cuda, out: BatchLayout) -> Result<Batch<T, DeviceMemory>, Error> {
    upload(gpu, &Batch::from_fn(out.batch(), out.rows(), out.cols(), |_, _, _| T::from_f64(7.0, 5.0))?.to_layout(out)?)
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
