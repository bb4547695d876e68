//! The vocabulary of **batchla**: batched linear algebra for many small dense matrices.
//!
//! This crate names no backend. It holds
//!
//! | for | what |
//! | --- | --- |
//! | callers | [`Batch`], [`BatchRef`], [`BatchMut`], [`BatchLayout`]; [`BatchedFactorize`], [`BatchedInvert`], [`BatchedSolve`], [`BatchedDeterminant`]; [`Factors`], [`Inverse`], [`Solution`], [`Determinants`]; [`Outcome`], [`Error`] |
//! | callers that run one shape again and again | [`Problem`], [`Options`], [`Backend::prepare`], [`Prepared`], the `run_` methods and their args; why a plan was chosen, [`Explanation`] |
//! | authors of a backend | [`Backend`], [`Memory`], [`Plan`], [`Rejection`], [`Staged`], [`HostBackend`] |
//!
//! A failed matrix is data ([`Outcome`]); a failed call is an [`Error`].

mod array;
mod backend;
mod batch;
mod determinant;
mod error;
mod explanation;
mod factorize;
mod host;
mod interop;
mod invert;
mod layout;
mod matrices;
mod matrix;
mod memory;
mod outcome;
mod plan;
mod problem;
mod report;
mod scalar;
mod solve;
mod source;
mod span;
mod staged;

pub use num_complex::Complex;

pub use crate::array::{ALIGNMENT, HostArray};
pub use crate::backend::{Backend, ReportMut};
pub use crate::batch::{Batch, BatchMut, BatchRef};
pub use crate::determinant::{BatchedDeterminant, Determinant, DeterminantArgs, Determinants};
pub use crate::error::{Error, ErrorKind};
pub use crate::explanation::{Chosen, Explanation, Numbers, Occupancy, Receipt, Step};
pub use crate::factorize::{BatchedFactorize, FactorizeArgs, Factors, LuRecord};
pub use crate::host::{HostBackend, HostOperations, HostPrepared, HostWorkspace};
pub use crate::invert::{BatchedInvert, Inverse, InvertArgs};
pub use crate::layout::{BatchLayout, Strides};
pub use crate::matrices::MatricesMut;
pub use crate::matrix::{MatrixMut, MatrixRef};
pub use crate::memory::{Element, HostMemory, Memory, too_long};
pub use crate::outcome::{Outcome, lapack_pivots, permutation};
pub use crate::plan::{Options, Plan, Prepared, Rejection};
pub use crate::problem::{Extras, Operation, Problem, Transpose};
pub use crate::report::Report;
pub use crate::scalar::{Real, Scalar, ScalarKind};
pub use crate::solve::{BatchedSolve, Solution, SolveArgs};
pub use crate::source::{FactorsRef, Source, SourceKind};
pub use crate::span::{HostSpan, HostSpanMut};
pub use crate::staged::Staged;
