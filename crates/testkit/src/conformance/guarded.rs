//! Runs whose memory is guarded: gaps and tails are filled, and held against what they were.

use batchla_core::{
    Backend, Batch, BatchLayout, BatchMut, BatchedDeterminant, BatchedFactorize, BatchedInvert, BatchedSolve,
    Determinant, DeterminantArgs, Error, Extras, FactorizeArgs, FactorsRef, InvertArgs, Memory, Operation, Options,
    Outcome, Prepared, Problem, Real, Report, ReportMut, Scalar, SolveArgs, Source, SourceKind, Transpose,
};

use super::order::Order;

/// Everything that a backend must offer for one scalar.
pub trait Complete<T: Scalar>:
    BatchedFactorize<T> + BatchedInvert<T> + BatchedSolve<T> + BatchedDeterminant<T>
{
}

impl<T: Scalar, B> Complete<T> for B where
    B: BatchedFactorize<T> + BatchedInvert<T> + BatchedSolve<T> + BatchedDeterminant<T>
{
}

/// Elements behind each batch that nobody may touch.
const TAIL: usize = 16;
/// What pivots and outcome words are filled with before a run: no run may leave one unwritten or write behind them.
const UNWRITTEN: u32 = 0xA5A5_A5A5;

/// Where a run finds its matrices and leaves its results.
#[derive(Clone, Copy, Debug)]
pub(super) enum Route {
    /// The result overwrites the input.
    InPlace(Order),
    /// From a batch in one order into a batch in another.
    Between(Order, Order),
}

impl Route {
    fn from(self) -> Order {
        match self {
            Self::InPlace(order) | Self::Between(order, _) => order,
        }
    }

    fn to(self) -> Order {
        match self {
            Self::InPlace(order) | Self::Between(_, order) => order,
        }
    }
}

/// What a run left, on the host; batches dense and column-major.
#[derive(Clone, Debug)]
pub(super) struct Left<T: Scalar> {
    pub(super) out: Batch<T>,
    pub(super) pivots: Vec<u32>,
    pub(super) outcomes: Vec<Outcome>,
    pub(super) determinants: Option<Vec<Determinant<T>>>,
    pub(super) conditions: Option<Vec<T::Real>>,
    pub(super) arithmetic: String,
}

impl<T: Scalar> Left<T> {
    /// The elements of matrix `b`.
    pub(super) fn matrix(&self, b: usize) -> &[T] {
        let area = self.out.layout().rows() * self.out.layout().cols();
        &self.out.as_slice()[b * area..(b + 1) * area]
    }

    /// The pivots of matrix `b`.
    pub(super) fn pivots_of(&self, b: usize) -> &[u32] {
        let n = self.out.layout().rows();
        &self.pivots[b * n..(b + 1) * n]
    }
}

/// A backend, the options that every run of it is prepared with, and guarded memory.
#[derive(Debug)]
pub(super) struct Guarded<'a, B> {
    pub(super) backend: &'a B,
    pub(super) options: &'a Options,
}

/// A value that no computation gives, for gaps in results.
fn sentinel<T: Scalar>() -> T {
    T::from_f64(-1234.5, 77.25)
}

/// The bits of a number; all NaN are one.
pub(super) fn bits<T: Scalar>(x: T) -> [u64; 2] {
    [x.re(), x.im()].map(|part| {
        let part = part.to_f64();
        if part.is_nan() { f64::NAN.to_bits() } else { part.to_bits() }
    })
}

impl<B: Backend> Guarded<'_, B> {
    /// A batch in this backend's memory, its gaps and a tail behind it filled with `gap`.
    fn lay_out<T: Scalar>(&self, host: &Batch<T>, layout: BatchLayout, gap: T) -> Result<Batch<T, B::Memory>, Error> {
        let mut memory = vec![gap; layout.span() + TAIL];
        BatchMut::new(&mut memory, layout)?.copy_from(&host.view())?;
        let mut array = self.backend.allocate(memory.len())?;
        self.backend.write(&memory, B::Memory::slice_mut(&mut array))?;
        Batch::from_array(array, layout)
    }

    /// Reads such a batch back after holding its gaps against `gap`.
    fn take_back<T: Scalar>(&self, batch: &Batch<T, B::Memory>, gap: T, what: &str) -> Result<Batch<T>, String> {
        let mut memory = vec![T::default(); B::Memory::slice_len(&batch.slice())];
        B::Memory::read(batch.slice(), &mut memory).map_err(in_words)?;
        let layout = *batch.layout();
        let mut ours = vec![false; memory.len()];
        for b in 0..layout.batch() {
            for j in 0..layout.cols() {
                for i in 0..layout.rows() {
                    ours[layout.offset(b, i, j)] = true;
                }
            }
        }
        for (at, (&x, ours)) in memory.iter().zip(ours).enumerate() {
            if !ours && bits(x) != bits(gap) {
                return Err(format!("{what} {layout}: the gap at element {at} was overwritten with {x}"));
            }
        }
        let dense = BatchLayout::column_major(layout.batch(), layout.rows(), layout.cols()).map_err(in_words)?;
        let view = batchla_core::BatchRef::new(&memory, layout).map_err(in_words)?;
        view.to_layout(dense).map_err(in_words)
    }

    /// Holds an input that should only be read against what it was.
    fn unchanged<T: Scalar>(&self, device: &Batch<T, B::Memory>, host: &Batch<T>, what: &str) -> Result<(), String> {
        let now = self.take_back(device, T::nan(), what)?;
        match (now.as_slice().iter().zip(host.as_slice())).position(|(&x, &y)| bits(x) != bits(y)) {
            None => Ok(()),
            Some(at) => Err(format!("{what} {}: input element {at} was changed", device.layout())),
        }
    }

    fn words(&self, len: usize) -> Result<Words<B>, Error> {
        let mut array = self.backend.allocate(len + TAIL)?;
        self.backend.write(&vec![UNWRITTEN; len + TAIL], B::Memory::slice_mut(&mut array))?;
        Ok(array)
    }

    fn read_words(&self, array: &Words<B>, len: usize, what: &str) -> Result<Vec<u32>, String> {
        let mut words = vec![0; len + TAIL];
        B::Memory::read(B::Memory::slice(array), &mut words).map_err(in_words)?;
        if words[len..].iter().any(|&word| word != UNWRITTEN) {
            return Err(format!("{what} were written behind their end"));
        }
        words.truncate(len);
        match words.iter().position(|&word| word == UNWRITTEN) {
            Some(at) => Err(format!("{what}: number {at} was not written")),
            None => Ok(words),
        }
    }

    /// Factors the host batch `a`.
    pub(super) fn factorize<T: Scalar>(&self, a: &Batch<T>, route: Route, extras: Extras) -> Result<Left<T>, String>
    where
        B: Complete<T>,
    {
        self.run(Operation::Factorize, Given::Matrices(a), None, route, extras)
    }

    /// Inverts.
    pub(super) fn invert<T: Scalar>(&self, a: Given<'_, T>, route: Route, extras: Extras) -> Result<Left<T>, String>
    where
        B: Complete<T>,
    {
        self.run(Operation::Invert, a, None, route, extras)
    }

    /// Solves `op(A) X = b`.
    pub(super) fn solve<T: Scalar>(
        &self,
        a: Given<'_, T>,
        b: &Batch<T>,
        route: Route,
        transpose: Transpose,
    ) -> Result<Left<T>, String>
    where
        B: Complete<T>,
    {
        self.run(Operation::Solve, a, Some((b, transpose)), route, Extras::none())
    }

    /// Determinants.
    pub(super) fn determinant<T: Scalar>(&self, a: Given<'_, T>, order: Order) -> Result<Left<T>, String>
    where
        B: Complete<T>,
    {
        self.run(Operation::Determinant, a, None, Route::Between(order, order), Extras::none().with_determinant())
    }

    /// Any operation: lays the operands out, prepares, runs, reads everything back, and holds inputs and gaps against what they were.
    fn run<T: Scalar>(
        &self,
        operation: Operation,
        given: Given<'_, T>,
        right: Option<(&Batch<T>, Transpose)>,
        route: Route,
        extras: Extras,
    ) -> Result<Left<T>, String>
    where
        B: Complete<T>,
    {
        let matrices = given.matrices();
        let (batch, n) = (matrices.batch(), matrices.layout().rows());
        let in_place = matches!(route, Route::InPlace(_));
        // A solve overwrites its right-hand sides, factorisation and inversion their matrices, the rest nothing.
        let kind = match given {
            Given::Factors(_) => SourceKind::Factors,
            Given::Matrices(_) if in_place && right.is_none() => SourceKind::InPlace,
            Given::Matrices(_) => SourceKind::Matrix,
        };
        let results = match right {
            Some((b, _)) if batch == 1 || b.batch() == 0 => b.batch(),
            _ => batch,
        };
        let columns = right.map_or(n, |(b, _)| b.layout().cols());
        let overwritten = right.map_or(matrices, |(b, _)| b);
        let work = || -> Result<_, Error> {
            let from = route.from().layout(batch, n, n)?;
            let to = route.to().layout(results, n, columns)?;
            let b = right.map(|(b, _)| route.from().layout(b.batch(), n, columns)).transpose()?;
            let problem = match (operation, right) {
                (Operation::Factorize, _) => Problem::factorize::<T>(kind, from, to)?,
                (Operation::Invert, _) => Problem::invert::<T>(kind, from, to)?,
                (_, Some((_, transpose))) => Problem::solve::<T>(kind, from, b.filter(|_| !in_place), to, transpose)?,
                _ => Problem::determinant::<T>(kind, from)?,
            };
            let problem = problem.with_extras(extras)?;
            let prepared = self.backend.prepare(&problem, self.options)?;
            let mut workspace = self.backend.workspace(&prepared)?;
            let input = Input::new(self, given, from)?;
            let right = right.zip(b).map(|((b, _), layout)| self.lay_out(b, layout, T::nan())).transpose()?;
            // What a run leaves out is NaN then, not a zero that may be right.
            let unwritten = || Batch::from_fn(results, n, columns, |_, _, _| T::nan());
            let start = if in_place { overwritten } else { &unwritten()? };
            let mut out = self.lay_out(start, to, sentinel())?;
            let (mut pivots, mut outcomes) = (self.words(batch * n)?, self.words(results)?);
            let mut report = Report::allocate(self.backend, results, extras)?;
            let source = if kind == SourceKind::InPlace { Source::InPlace } else { input.source() };
            let b = right.as_ref().filter(|_| !in_place).map(Batch::view);
            let (prepared_ref, workspace) = (&prepared, &mut workspace);
            match operation {
                Operation::Factorize => self.backend.run_factorize(
                    prepared_ref,
                    FactorizeArgs::new(
                        &source,
                        &mut out.view_mut(),
                        B::Memory::slice_mut(&mut pivots),
                        report_view(&mut report, &mut outcomes),
                    ),
                    workspace,
                )?,
                Operation::Invert => self.backend.run_invert(
                    prepared_ref,
                    InvertArgs::new(&source, &mut out.view_mut(), report_view(&mut report, &mut outcomes)),
                    workspace,
                )?,
                Operation::Solve => self.backend.run_solve(
                    prepared_ref,
                    SolveArgs::new(&source, b.as_ref(), &mut out.view_mut(), report_view(&mut report, &mut outcomes)),
                    workspace,
                )?,
                _ => self.backend.run_determinant(
                    prepared_ref,
                    DeterminantArgs::new(&source, report_view(&mut report, &mut outcomes)),
                    workspace,
                )?,
            }
            Ok((input, right, out, pivots, outcomes, report, prepared.plan().arithmetic().to_owned()))
        };
        let (input, right_device, out, pivots, outcomes, report, arithmetic) = work().map_err(in_words)?;
        let name = operation.name();
        self.unchanged(&input.matrices, matrices, name)?;
        if let (Some(device), Some((b, _))) = (&right_device, right) {
            self.unchanged(device, b, name)?;
        }
        let factored = operation == Operation::Factorize;
        let outcomes = self.read_words(&outcomes, results, &format!("{name} outcomes"))?;
        Ok(Left {
            out: self.take_back(&out, sentinel(), name)?,
            pivots: if factored { self.read_words(&pivots, batch * n, "pivots")? } else { Vec::new() },
            outcomes: outcomes.into_iter().map(Outcome::from_word).collect(),
            determinants: report.read_determinants().map_err(in_words)?,
            conditions: report.read_conditions().map_err(in_words)?,
            arithmetic,
        })
    }
}

type Words<B> = <<B as Backend>::Memory as Memory>::Array<u32>;

/// What an operation starts from, on the host.
#[derive(Clone, Copy, Debug)]
pub(super) enum Given<'a, T: Scalar> {
    /// Matrices.
    Matrices(&'a Batch<T>),
    /// What [`Guarded::factorize`] left of them.
    Factors(&'a Left<T>),
}

impl<'a, T: Scalar> Given<'a, T> {
    fn matrices(self) -> &'a Batch<T> {
        match self {
            Self::Matrices(a) => a,
            Self::Factors(left) => &left.out,
        }
    }
}

/// The same in the backend's memory: matrices, or factors with their pivots and outcomes.
struct Input<T: Scalar, M: Memory> {
    matrices: Batch<T, M>,
    words: Option<(M::Array<u32>, M::Array<u32>)>,
}

impl<T: Scalar, M: Memory> Input<T, M> {
    fn new<B: Backend<Memory = M>>(
        guarded: &Guarded<'_, B>,
        given: Given<'_, T>,
        layout: BatchLayout,
    ) -> Result<Self, Error> {
        let array = |words: &[u32]| -> Result<_, Error> {
            let mut array = guarded.words(words.len())?;
            guarded.backend.write(words, M::slice_mut(&mut array))?;
            Ok(array)
        };
        let words = match given {
            Given::Matrices(_) => None,
            Given::Factors(left) => {
                let outcomes: Vec<u32> = left.outcomes.iter().map(|outcome| outcome.to_word()).collect();
                Some((array(&left.pivots)?, array(&outcomes)?))
            }
        };
        Ok(Self { matrices: guarded.lay_out(given.matrices(), layout, T::nan())?, words })
    }

    fn source(&self) -> Source<'_, T, M> {
        match &self.words {
            None => Source::Matrix(self.matrices.view()),
            Some((pivots, outcomes)) => Source::Factors(FactorsRef {
                lu: self.matrices.view(),
                pivots: M::slice(pivots),
                outcomes: M::slice(outcomes),
            }),
        }
    }
}

/// The report, its outcomes in guarded words.
fn report_view<'a, T: Scalar, M: Memory>(
    report: &'a mut Report<T, M>,
    outcomes: &'a mut M::Array<u32>,
) -> ReportMut<'a, T, M> {
    let mut view = report.view_mut();
    view.outcomes = M::slice_mut(outcomes);
    view
}

pub(super) fn in_words(error: Error) -> String {
    format!("the call failed: {error}")
}

#[cfg(test)]
mod tests;
