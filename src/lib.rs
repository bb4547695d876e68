//! Batched linear algebra for many small dense matrices: LU, inverse, solve and determinant behind one set of traits.
//!
//! ```
//! use batchla::{Batch, BatchedInvert};
//!
//! let backend = batchla::auto()?; // the best backend of this machine; `backend.why()` says how it was chosen
//! let a = Batch::<f64>::from_fn(1000, 3, 3, |b, i, j| if i == j { 2.0 + b as f64 } else { 1.0 })?;
//! let inverse = backend.invert(&a)?; // Err: the call failed (shape, memory, device)
//! for (b, outcome) in inverse.outcomes() {
//!     assert!(outcome.is_regular(), "matrix {b}: {outcome}"); // per matrix: Regular, Singular { column }, NotFinite
//! }
//! let product: f64 = (0..3).map(|k| inverse.batch.get(7, 0, k).unwrap() * a.get(7, k, 0).unwrap()).sum();
//! assert!((product - 1.0).abs() < 1e-15);
//! # Ok::<(), batchla::Error>(())
//! ```
//!
//! - Backends: [`auto`] and [`backend`] give an [`AnyBackend`], chosen when the program runs; [`Cpu`] and [`Cuda`] are known when
//!   it is compiled. Code that should run on any of them is generic: `fn f<B: BatchedInvert<f64>>(backend: &B)`.
//!   [`AnyBackend`] takes and gives host memory, and so does [`CudaHost`], over one GPU or several; with [`Cuda`] itself, data stays on the GPU.
//! - Data: [`Batch`] owns, [`BatchRef`] and [`BatchMut`] borrow; [`BatchLayout`] says where elements lie. [`npy`] reads and
//!   writes NumPy files.
//! - Operations: [`BatchedFactorize`], [`BatchedInvert`], [`BatchedSolve`], [`BatchedDeterminant`].
//! - Failure: a failed matrix is an [`Outcome`], a failed call an [`Error`].
//! - [`guide`]: from NumPy, SciPy, PyTorch and MATLAB to batchla; failure, layouts, numerics, plans.

mod any;
mod choice;
#[cfg(feature = "cuda")]
mod gpu;
pub mod guide;

pub use batchla_core::*;
#[cfg(feature = "cpu")]
pub use batchla_cpu::Cpu;
#[cfg(feature = "cuda")]
pub use batchla_cuda as cuda;
#[cfg(feature = "cuda")]
pub use batchla_cuda::{Cuda, CudaHost};
pub use batchla_npy as npy;

pub use crate::any::AnyBackend;
pub use crate::choice::{auto, backend, backends};

/// The README's examples are tests too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
