//! How a problem will be run: plans, options, and reasons against.

use std::fmt;

use crate::error::{Error, ErrorKind};
use crate::problem::Problem;

/// How the caller wants a problem prepared.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Options {
    /// The plan to use, by name, instead of the planner's choice. A plan that cannot serve the problem is an error.
    pub plan: Option<String>,
}

impl Options {
    /// Forces a plan by name.
    #[must_use]
    pub fn with_plan(self, name: impl Into<String>) -> Self {
        Self { plan: Some(name.into()) }
    }
}

/// A chosen way to run a problem. Prints as one line.
pub trait Plan: fmt::Display + fmt::Debug + Send + Sync {
    /// The name by which [`Options::plan`] forces it.
    fn name(&self) -> &str;

    /// The id of its arithmetic: plans of equal ids give equal bits for equal matrices.
    fn arithmetic(&self) -> &str;
}

/// What [`Backend::prepare`](crate::Backend::prepare) gives: plan chosen, code at hand, workspace sized.
///
/// For authors of a backend: must be usable from several threads at once; must not hold the workspace itself.
pub trait Prepared: fmt::Debug + Send + Sync + 'static {
    /// What was prepared. Runs may have a smaller batch, but otherwise these very layouts.
    fn problem(&self) -> &Problem;

    /// How it will be run.
    fn plan(&self) -> &dyn Plan;

    /// Bytes of workspace that a run needs.
    fn workspace_bytes(&self) -> u64;
}

/// Why a plan cannot serve a problem.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("plan {plan} was rejected: {reason}")]
pub struct Rejection {
    /// The plan's name.
    pub plan: String,
    /// The reason, in words.
    pub reason: String,
}

impl Rejection {
    /// The error of a problem that no plan, or not the one forced, can serve.
    pub fn into_error(self, problem: &Problem) -> Error {
        Error::new(ErrorKind::Unsupported, problem.operation().name(), format!("{problem}: {self}"))
            .advise("force no plan, or one of those that the backend names")
            .caused_by(self)
    }
}
