//! A backend chosen when the program runs.

use std::sync::Arc;

use batchla_core::{
    Backend, BatchedDeterminant, BatchedFactorize, BatchedInvert, BatchedSolve, DeterminantArgs, Element, Error,
    Explanation, FactorizeArgs, HostArray, HostBackend, HostMemory, HostPrepared, HostWorkspace, InvertArgs, Options,
    Problem, Scalar, SolveArgs,
};

/// A backend over host batches whose type is known only when the program runs.
///
/// It is a [`Backend`] itself: whatever is generic over backends runs on it. [`auto`](crate::auto) and
/// [`backend`](crate::backend) give one; [`AnyBackend::new`] takes any other that satisfies core's traits, in
/// [`Staged`](crate::Staged) where it has memory of its own.
///
/// ```
/// use batchla::{AnyBackend, Backend, BatchedInvert};
///
/// fn trace_of_inverse<B: BatchedInvert<f64, Memory = batchla::HostMemory>>(backend: &B) -> Result<f64, batchla::Error> {
///     let a = batchla::Batch::from_fn(1, 2, 2, |_, i, j| if i == j { 4.0 } else { 0.0 })?;
///     let x = backend.invert(&a)?.batch;
///     Ok((0..2).filter_map(|i| x.get(0, i, i)).sum())
/// }
///
/// let backend: AnyBackend = batchla::auto()?;
/// assert_eq!(trace_of_inverse(&backend)?, 0.5);
/// # Ok::<(), batchla::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AnyBackend {
    backend: Arc<dyn HostBackend>,
    why: Arc<str>,
    /// What a caller who names no plan gets.
    plan: Option<Arc<str>>,
}

impl AnyBackend {
    /// Makes an object of a backend over host memory.
    pub fn new(backend: impl HostBackend + 'static) -> Self {
        Self { backend: Arc::new(backend), why: "it was asked for".into(), plan: None }
    }

    /// Notes why this backend was chosen.
    #[must_use]
    pub fn because(self, why: impl Into<Arc<str>>) -> Self {
        Self { why: why.into(), ..self }
    }

    /// Forces a plan by name wherever a call names none, the comfortable calls included. A problem that the plan cannot serve is then an error.
    #[must_use]
    pub fn with_plan(self, name: impl Into<Arc<str>>) -> Self {
        Self { plan: Some(name.into()), ..self }
    }

    fn options(&self, given: &Options) -> Options {
        match (&self.plan, &given.plan) {
            (Some(plan), None) => given.clone().with_plan(&**plan),
            _ => given.clone(),
        }
    }

    /// Why this backend was chosen, in words.
    pub fn why(&self) -> &str {
        &self.why
    }
}

impl Backend for AnyBackend {
    type Memory = HostMemory;
    type Stream = ();
    type Prepared = HostPrepared;
    type Workspace = HostWorkspace;

    fn name(&self) -> &str {
        self.backend.host_name()
    }
    fn describe(&self) -> String {
        self.backend.host_describe()
    }
    fn stream(&self) -> &() {
        &()
    }
    fn prepare(&self, problem: &Problem, options: &Options) -> Result<HostPrepared, Error> {
        self.backend.host_prepare(problem, &self.options(options))
    }
    fn explain(&self, problem: &Problem, options: &Options) -> Result<Explanation, Error> {
        self.backend.host_explain(problem, &self.options(options))
    }
    fn workspace(&self, prepared: &HostPrepared) -> Result<HostWorkspace, Error> {
        self.backend.host_workspace(prepared)
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

impl<T: Scalar> BatchedFactorize<T> for AnyBackend {
    fn run_factorize(
        &self,
        prepared: &HostPrepared,
        args: FactorizeArgs<'_, T, HostMemory>,
        workspace: &mut HostWorkspace,
    ) -> Result<(), Error> {
        T::host_operations(&*self.backend).host_factorize(prepared, args, workspace)
    }
}

impl<T: Scalar> BatchedInvert<T> for AnyBackend {
    fn run_invert(
        &self,
        prepared: &HostPrepared,
        args: InvertArgs<'_, T, HostMemory>,
        workspace: &mut HostWorkspace,
    ) -> Result<(), Error> {
        T::host_operations(&*self.backend).host_invert(prepared, args, workspace)
    }
}

impl<T: Scalar> BatchedSolve<T> for AnyBackend {
    fn run_solve(
        &self,
        prepared: &HostPrepared,
        args: SolveArgs<'_, T, HostMemory>,
        workspace: &mut HostWorkspace,
    ) -> Result<(), Error> {
        T::host_operations(&*self.backend).host_solve(prepared, args, workspace)
    }
}

impl<T: Scalar> BatchedDeterminant<T> for AnyBackend {
    fn run_determinant(
        &self,
        prepared: &HostPrepared,
        args: DeterminantArgs<'_, T, HostMemory>,
        workspace: &mut HostWorkspace,
    ) -> Result<(), Error> {
        T::host_operations(&*self.backend).host_determinant(prepared, args, workspace)
    }
}
