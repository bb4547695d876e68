//! The host level: backends over host memory as objects, chosen when the program runs.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use num_complex::Complex;

use crate::backend::Backend;
use crate::determinant::{BatchedDeterminant, DeterminantArgs};
use crate::error::{Error, ErrorKind};
use crate::explanation::Explanation;
use crate::factorize::{BatchedFactorize, FactorizeArgs};
use crate::invert::{BatchedInvert, InvertArgs};
use crate::memory::HostMemory;
use crate::plan::{Options, Plan, Prepared};
use crate::problem::Problem;
use crate::scalar::Scalar;
use crate::solve::{BatchedSolve, SolveArgs};

/// Any backend over host memory, as an object: chosen when the program runs, open to other people's backends.
///
/// Satisfied by itself by every [`Backend`] over [`HostMemory`] that has all operations for all scalars. A backend with
/// memory of its own comes in through [`Staged`](crate::Staged).
pub trait HostBackend:
    HostOperations<f32>
    + HostOperations<f64>
    + HostOperations<Complex<f32>>
    + HostOperations<Complex<f64>>
    + Debug
    + Send
    + Sync
{
    /// [`Backend::name`].
    fn host_name(&self) -> &str;
    /// [`Backend::describe`].
    fn host_describe(&self) -> String;
    /// [`Backend::prepare`].
    ///
    /// # Errors
    /// As there.
    fn host_prepare(&self, problem: &Problem, options: &Options) -> Result<HostPrepared, Error>;
    /// [`Backend::explain`].
    ///
    /// # Errors
    /// As there.
    fn host_explain(&self, problem: &Problem, options: &Options) -> Result<Explanation, Error>;
    /// [`Backend::workspace`].
    ///
    /// # Errors
    /// As there.
    fn host_workspace(&self, prepared: &HostPrepared) -> Result<HostWorkspace, Error>;
}

/// The operations of a [`HostBackend`] for one scalar.
pub trait HostOperations<T: Scalar> {
    /// [`BatchedFactorize::run_factorize`].
    ///
    /// # Errors
    /// As there.
    fn host_factorize(
        &self,
        prepared: &HostPrepared,
        args: FactorizeArgs<'_, T, HostMemory>,
        workspace: &mut HostWorkspace,
    ) -> Result<(), Error>;

    /// [`BatchedInvert::run_invert`].
    ///
    /// # Errors
    /// As there.
    fn host_invert(
        &self,
        prepared: &HostPrepared,
        args: InvertArgs<'_, T, HostMemory>,
        workspace: &mut HostWorkspace,
    ) -> Result<(), Error>;

    /// [`BatchedSolve::run_solve`].
    ///
    /// # Errors
    /// As there.
    fn host_solve(
        &self,
        prepared: &HostPrepared,
        args: SolveArgs<'_, T, HostMemory>,
        workspace: &mut HostWorkspace,
    ) -> Result<(), Error>;

    /// [`BatchedDeterminant::run_determinant`].
    ///
    /// # Errors
    /// As there.
    fn host_determinant(
        &self,
        prepared: &HostPrepared,
        args: DeterminantArgs<'_, T, HostMemory>,
        workspace: &mut HostWorkspace,
    ) -> Result<(), Error>;
}

/// The [`Prepared`] of some backend, its type erased.
#[derive(Clone, Debug)]
pub struct HostPrepared(Arc<dyn ErasedPrepared>);

/// The workspace of some backend, its type erased.
#[derive(Debug)]
pub struct HostWorkspace(Box<dyn ErasedWorkspace>);

trait ErasedPrepared: Prepared {
    fn as_any(&self) -> &dyn Any;
}

impl<P: Prepared> ErasedPrepared for P {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

trait ErasedWorkspace: Debug + Send {
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

impl<W: Debug + Send + 'static> ErasedWorkspace for W {
    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Prepared for HostPrepared {
    fn problem(&self) -> &Problem {
        self.0.problem()
    }
    fn plan(&self) -> &dyn Plan {
        self.0.plan()
    }
    fn workspace_bytes(&self) -> u64 {
        self.0.workspace_bytes()
    }
}

impl HostPrepared {
    fn of<B: Backend>(&self, backend: &B) -> Result<&B::Prepared, Error> {
        self.0.as_any().downcast_ref().ok_or_else(|| foreign(backend.name(), "prepared"))
    }
}

impl HostWorkspace {
    fn of<B: Backend>(&mut self, backend: &B) -> Result<&mut B::Workspace, Error> {
        (*self.0).as_any_mut().downcast_mut().ok_or_else(|| foreign(backend.name(), "workspace"))
    }
}

fn foreign(name: &str, what: &str) -> Error {
    Error::new(ErrorKind::Argument, what, format!("the {what} given to backend {name} is another backend's"))
        .advise("run with what this backend prepared")
}

impl<B> HostBackend for B
where
    B: Backend<Memory = HostMemory>
        + HostOperations<f32>
        + HostOperations<f64>
        + HostOperations<Complex<f32>>
        + HostOperations<Complex<f64>>,
{
    fn host_name(&self) -> &str {
        self.name()
    }
    fn host_describe(&self) -> String {
        self.describe()
    }
    fn host_prepare(&self, problem: &Problem, options: &Options) -> Result<HostPrepared, Error> {
        Ok(HostPrepared(Arc::new(self.prepare(problem, options)?)))
    }
    fn host_explain(&self, problem: &Problem, options: &Options) -> Result<Explanation, Error> {
        self.explain(problem, options)
    }
    fn host_workspace(&self, prepared: &HostPrepared) -> Result<HostWorkspace, Error> {
        Ok(HostWorkspace(Box::new(self.workspace(prepared.of(self)?)?)))
    }
}

impl<T, B> HostOperations<T> for B
where
    T: Scalar,
    B: Backend<Memory = HostMemory> + BatchedFactorize<T> + BatchedInvert<T> + BatchedSolve<T> + BatchedDeterminant<T>,
{
    fn host_factorize(
        &self,
        prepared: &HostPrepared,
        args: FactorizeArgs<'_, T, HostMemory>,
        workspace: &mut HostWorkspace,
    ) -> Result<(), Error> {
        self.run_factorize(prepared.of(self)?, args, workspace.of(self)?)
    }
    fn host_invert(
        &self,
        prepared: &HostPrepared,
        args: InvertArgs<'_, T, HostMemory>,
        workspace: &mut HostWorkspace,
    ) -> Result<(), Error> {
        self.run_invert(prepared.of(self)?, args, workspace.of(self)?)
    }
    fn host_solve(
        &self,
        prepared: &HostPrepared,
        args: SolveArgs<'_, T, HostMemory>,
        workspace: &mut HostWorkspace,
    ) -> Result<(), Error> {
        self.run_solve(prepared.of(self)?, args, workspace.of(self)?)
    }
    fn host_determinant(
        &self,
        prepared: &HostPrepared,
        args: DeterminantArgs<'_, T, HostMemory>,
        workspace: &mut HostWorkspace,
    ) -> Result<(), Error> {
        self.run_determinant(prepared.of(self)?, args, workspace.of(self)?)
    }
}
