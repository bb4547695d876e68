//! The trait that every backend satisfies.

use std::fmt::Debug;

use crate::batch::{Batch, BatchRef};
use crate::determinant::Determinant;
use crate::error::{Error, ErrorKind};
use crate::explanation::{Chosen, Explanation};
use crate::layout::BatchLayout;
use crate::memory::{Element, Memory};
use crate::plan::{Options, Prepared};
use crate::problem::{Operation, Problem};
use crate::scalar::Scalar;
use crate::source::Source;

/// Something that runs batched operations: a CPU with its threads, a GPU with a stream.
///
/// A value is a cheap handle: cloning it gives another handle to the same device and stream. Work is queued on that
/// stream in order; [`Backend::synchronize`] and [`Memory::read`] wait for it. On a CPU backend work is done on return.
///
/// # For authors of a backend
/// - `prepare` may compile, read tables and caches, and take long. It must choose by the problem, never by the data, and
///   never by the batch's size where that would change a plan's arithmetic.
/// - `run_` methods (of the operation traits) must not allocate, compile, synchronise or use a default stream; they must call
///   `args.check` first, and may return before the work is done.
/// - Nothing may panic on bad input, a missing device or exhausted memory: each is an [`Error`].
pub trait Backend: Clone + Debug + Send + Sync + 'static {
    /// Where its batches live.
    type Memory: Memory;
    /// A queue of work; `()` where work is done on return.
    type Stream: Debug + Send + Sync;
    /// What [`Backend::prepare`] gives.
    type Prepared: Prepared;
    /// Scratch memory of a run; not shared between runs that may overlap.
    type Workspace: Debug + Send + 'static;

    /// A short lower-case name, for example `cpu`.
    fn name(&self) -> &str;

    /// One line about the device: what it is and what of it is used.
    fn describe(&self) -> String;

    /// The queue that this handle's work goes to.
    fn stream(&self) -> &Self::Stream;

    /// Chooses the plan for a problem and makes everything ready to run it.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] with the [`Rejection`](crate::Rejection) as its source where no plan, or not the one forced, can
    /// serve the problem; compile and device errors.
    fn prepare(&self, problem: &Problem, options: &Options) -> Result<Self::Prepared, Error>;

    /// Which plan [`Backend::prepare`] would give, what it takes, and why it and no other.
    ///
    /// # Errors
    /// As of [`Backend::prepare`].
    fn explain(&self, problem: &Problem, options: &Options) -> Result<Explanation, Error> {
        let chosen = if options.plan.is_some() { Chosen::ByName } else { Chosen::ByPlanner };
        let prepared = self.prepare(problem, options)?;
        let explanation = Explanation::new(problem, prepared.plan(), self.describe(), chosen);
        Ok(Explanation { workspace_bytes: prepared.workspace_bytes(), ..explanation })
    }

    /// Workspace for one run at a time of what was prepared.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    fn workspace(&self, prepared: &Self::Prepared) -> Result<Self::Workspace, Error>;

    /// `len` zeros.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    fn allocate<E: Element>(&self, len: usize) -> Result<<Self::Memory as Memory>::Array<E>, Error>;

    /// `each` zeros for each of `batch` matrices, one matrix after another: pivots, outcomes. Where a batch lies divided over several memories, these
    /// lie beside their matrices.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    fn allocate_each<E: Element>(
        &self,
        batch: usize,
        each: usize,
    ) -> Result<<Self::Memory as Memory>::Array<E>, Error> {
        // Where there are too many to count, there are too many to allocate.
        self.allocate(batch.saturating_mul(each))
    }

    /// Copies host data into the front of an array; the host data may be reused on return.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] where the array is shorter; the device.
    fn write<E: Element>(&self, from: &[E], to: <Self::Memory as Memory>::SliceMut<'_, E>) -> Result<(), Error>;

    /// Waits until all queued work is done.
    ///
    /// # Errors
    /// What the device reports, also of earlier work.
    fn synchronize(&self) -> Result<(), Error>;

    /// A batch of zeros.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`].
    fn allocate_batch<T: Scalar>(&self, layout: BatchLayout) -> Result<Batch<T, Self::Memory>, Error> {
        Batch::from_array(self.allocate(layout.span())?, layout)
    }

    /// A host batch in this backend's memory, in the dense layout of the same order.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`]; the device.
    fn to_device<'a, T: Scalar>(&self, host: impl Into<BatchRef<'a, T>>) -> Result<Batch<T, Self::Memory>, Error> {
        let host = host.into();
        let layout = host.layout().packed()?;
        let mut device = self.allocate_batch(layout)?;
        match host.dense_slice() {
            Some(slice) if layout == *host.layout() => self.write(slice, device.slice_mut())?,
            _ => self.write(host.to_layout(layout)?.as_slice(), device.slice_mut())?,
        }
        Ok(device)
    }

    /// A batch of this backend in host memory, in the same layout, after the work queued on it.
    ///
    /// # Errors
    /// [`ErrorKind::OutOfMemory`]; what the device reports, also of earlier work.
    fn to_host<T: Scalar>(&self, batch: &Batch<T, Self::Memory>) -> Result<Batch<T>, Error> {
        let mut host = Batch::zeros(*batch.layout())?;
        Self::Memory::read(batch.slice(), host.as_mut_slice())?;
        Ok(host)
    }
}

/// A report that a run writes.
#[derive(Debug)]
#[non_exhaustive]
pub struct ReportMut<'a, T: Scalar, M: Memory> {
    /// Out: one [`Outcome`](crate::Outcome) word a matrix.
    pub outcomes: M::SliceMut<'a, u32>,
    /// Out: one determinant a matrix, where wanted.
    pub determinants: Option<M::SliceMut<'a, Determinant<T>>>,
    /// Out: one 1-norm condition number a matrix, where wanted.
    pub conditions: Option<M::SliceMut<'a, T::Real>>,
}

impl<'a, T: Scalar, M: Memory> ReportMut<'a, T, M> {
    /// A report of outcomes alone, into memory of the caller's.
    pub fn new(outcomes: M::SliceMut<'a, u32>) -> Self {
        Self { outcomes, determinants: None, conditions: None }
    }

    /// Also determinants.
    #[must_use]
    pub fn with_determinants(self, determinants: M::SliceMut<'a, Determinant<T>>) -> Self {
        Self { determinants: Some(determinants), ..self }
    }

    /// Also condition numbers.
    #[must_use]
    pub fn with_conditions(self, conditions: M::SliceMut<'a, T::Real>) -> Self {
        Self { conditions: Some(conditions), ..self }
    }
}

/// Holds a run and its operands against what was prepared.
pub(crate) fn check_operands<T: Scalar, M: Memory>(
    run: Operation,
    prepared: &Problem,
    source: &Source<'_, T, M>,
    b: Option<&BatchLayout>,
    out: Option<&BatchLayout>,
    report: &ReportMut<'_, T, M>,
) -> Result<(), Error> {
    let operation = run.name();
    let refuse = |what: String| {
        Err(Error::new(ErrorKind::Argument, operation, format!("{what}, but {prepared} was prepared"))
            .advise("run with the operands that were prepared, or prepare again"))
    };
    if run != prepared.operation() {
        return refuse(format!("this is a run of {}", run.name()));
    }
    if T::KIND != prepared.scalar() {
        return refuse(format!("the operands are {}", T::KIND));
    }
    if source.kind() != prepared.source() {
        return refuse(format!("the source is given {}", source.kind().name()));
    }
    let same = |given: Option<&BatchLayout>, wanted: Option<&BatchLayout>| match (given, wanted) {
        (Some(given), Some(wanted)) => {
            let shape = |l: &BatchLayout| (l.rows(), l.cols(), l.strides());
            shape(given) == shape(wanted) && given.batch() <= wanted.batch()
        }
        (None, None) => true,
        _ => false,
    };
    let wanted_out = out.map(|_| prepared.out());
    let a = source.layout();
    if a.is_some_and(|a| !same(Some(a), Some(prepared.a()))) || !same(b, prepared.b()) || !same(out, wanted_out) {
        let name = |l: Option<&BatchLayout>| l.map_or("none".to_owned(), ToString::to_string);
        return refuse(format!("the layouts are {}, {}, {}", name(a), name(b), name(out)));
    }
    let batch = out.or(a).map_or(0, BatchLayout::batch);
    // Only a solve has one matrix, or one right-hand side, serve a batch.
    let serves = |operand: usize| operand == batch || operand == 1 && prepared.operation() == Operation::Solve;
    if a.is_some_and(|a| !serves(a.batch())) || b.is_some_and(|b| !serves(b.batch())) {
        return refuse(format!(
            "the batches are {:?} and {:?} for {batch} results",
            a.map(|a| a.batch()),
            b.map(|b| b.batch())
        ));
    }
    if let Source::Factors(factors) = source {
        let (matrices, n) = (factors.lu.batch(), prepared.order());
        let (pivots, outcomes) = (M::slice_len(&factors.pivots), M::slice_len(&factors.outcomes));
        if pivots < matrices * n || outcomes < matrices {
            return refuse(format!("{pivots} pivots and {outcomes} outcomes come with {matrices} factored matrices"));
        }
    }
    let extras = prepared.extras();
    let room = |wanted: bool, len: Option<usize>| !wanted || len.is_some_and(|len| len >= batch);
    if M::slice_mut_len(&report.outcomes) < batch
        || !room(extras.determinant, report.determinants.as_ref().map(M::slice_mut_len))
        || !room(extras.condition, report.conditions.as_ref().map(M::slice_mut_len))
    {
        return refuse(format!("the report has no room for {batch} results and their extras"));
    }
    Ok(())
}
