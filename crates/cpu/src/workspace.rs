//! The workspace of a run: scratch memory of a shape that is known beforehand.

use std::any::Any;
use std::fmt;

use batchla_core::{Complex, Error, ErrorKind, Operation, Problem, Scalar, ScalarKind};

use crate::engine::{Engine, Sizes};
use crate::plan::CpuPlan;
use crate::scratch::{Places, leading_dimension};

/// What the scratch memory of a problem depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    scalar: ScalarKind,
    pub(crate) order: usize,
    /// Columns of an inverse or of right-hand sides.
    pub(crate) result_columns: usize,
    /// Whether there is a place to share.
    pub(crate) shared: bool,
    /// How groups are computed, where they are.
    pub(crate) engine: Option<Engine>,
}

impl Shape {
    pub(crate) fn of(problem: &Problem, plan: &CpuPlan) -> Self {
        let result_columns = match problem.operation() {
            Operation::Invert => problem.order(),
            Operation::Solve => problem.right_hand_sides(),
            _ => 0,
        };
        let shared = problem.operation() == Operation::Solve;
        Self { scalar: problem.scalar(), order: problem.order(), result_columns, shared, engine: plan.engine() }
    }

    /// The memory of a thread's group.
    pub(crate) fn sizes(&self, engine: &Engine) -> Sizes {
        // Right-hand sides of a solution; columns to set aside for an inverse.
        engine.sizes(if self.shared { self.result_columns } else { 0 }, !self.shared && self.result_columns > 0)
    }

    /// Bytes of the scratch memory of `threads` threads.
    pub(crate) fn bytes(&self, threads: usize) -> u64 {
        let wide = |x: usize| x as u64;
        let element = wide(self.scalar.bytes());
        let (square, results) = if let Some(engine) = &self.engine {
            let bytes = |sizes: Sizes| sizes.bytes(self.scalar.bytes());
            let (alone, all) = (bytes(engine.sizes(0, false)), bytes(self.sizes(engine)));
            (alone, all - alone)
        } else {
            let ld = match self.scalar {
                ScalarKind::F32 => leading_dimension::<f32>(self.order),
                ScalarKind::F64 => leading_dimension::<f64>(self.order),
                ScalarKind::C32 => leading_dimension::<Complex<f32>>(self.order),
                ScalarKind::C64 => leading_dimension::<Complex<f64>>(self.order),
            };
            let columns = |cols: usize| wide(ld).saturating_mul(wide(cols)).saturating_mul(element);
            let square = columns(self.order).saturating_add(wide(self.order).saturating_mul(4));
            (square, columns(self.result_columns))
        };
        let one = square.saturating_add(results);
        wide(threads).saturating_mul(one).saturating_add(if self.shared { square } else { 0 })
    }
}

/// Scratch memory for each thread, aligned to 64 bytes.
pub struct CpuWorkspace {
    places: Box<dyn Any + Send>,
    shape: Shape,
    threads: usize,
}

impl CpuWorkspace {
    pub(crate) fn new(shape: Shape, threads: usize) -> Result<Self, Error> {
        let places: Box<dyn Any + Send> = match shape.scalar {
            ScalarKind::F32 => Box::new(Places::<f32>::new(&shape, threads)?),
            ScalarKind::F64 => Box::new(Places::<f64>::new(&shape, threads)?),
            ScalarKind::C32 => Box::new(Places::<Complex<f32>>::new(&shape, threads)?),
            ScalarKind::C64 => Box::new(Places::<Complex<f64>>::new(&shape, threads)?),
        };
        Ok(Self { places, shape, threads })
    }

    /// The places in it, if it was made for such a shape and at least as many threads.
    pub(crate) fn places<T: Scalar>(&mut self, shape: Shape, threads: usize) -> Result<&mut Places<T>, Error> {
        let refuse = |what: String| {
            Error::new(ErrorKind::Argument, "workspace", what)
                .advise("make the workspace from what was prepared, by the handle that runs it")
        };
        if self.shape != shape || self.threads < threads {
            return Err(refuse(format!("{self:?} was given to a run of {shape:?} on {threads} threads")));
        }
        self.places.downcast_mut().ok_or_else(|| refuse(format!("{shape:?} was given to a run of {}", T::KIND)))
    }
}

impl fmt::Debug for CpuWorkspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shape, threads, .. } = self;
        f.debug_struct("CpuWorkspace").field("shape", shape).field("threads", threads).finish_non_exhaustive()
    }
}
