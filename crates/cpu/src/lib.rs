//! The CPU backend of **batchla**: batched LU, inverse, solve and determinant on rayon's threads, with faer's products.
//!
//! ```
//! use batchla_core::{Batch, BatchedInvert};
//! let cpu = batchla_cpu::Cpu::new();
//! let a = Batch::<f64>::from_fn(3, 2, 2, |b, i, j| if i == j { 2.0 } else { b as f64 })?;
//! let inverse = cpu.invert(&a)?;
//! assert_eq!(inverse.batch.get(0, 1, 1), Some(0.5));
//! assert!(!inverse.report.all_regular(), "the last matrix is singular");
//! # Ok::<(), batchla_core::Error>(())
//! ```
//!
//! # The data's way
//!
//! | step | question | file |
//! | --- | --- | --- |
//! | 1 | how many threads, which workspace? | `backend.rs`, `workspace.rs`, `scratch.rs` |
//! | 2 | which plan? | `plan.rs`: [`CpuPlan`], from the problem alone |
//! | 3 | who works on which matrices? | `parallel.rs` |
//! | 4 | which steps make up an operation? | `lu.rs`, `invert.rs`, `solve.rs`, `determinant.rs` |
//! | 5 | how is one matrix computed? | `getrf.rs`, `small.rs`, `getri.rs`, `getrs.rs`, on `level3.rs` (faer) and `vector.rs` |
//!
//! Every matrix is copied, column by column, to an aligned place in its thread's scratch memory, computed there by one thread,
//! and written out. So its bits depend on nothing but its elements and the plan: not on its layout, its place in the batch, the number of
//! threads or the grain.

mod backend;
mod determinant;
mod getrf;
mod getri;
mod getrs;
mod invert;
mod level3;
mod lu;
mod parallel;
mod plan;
mod scratch;
mod small;
mod solve;
mod vector;
mod workspace;

pub use crate::backend::{Cpu, CpuOptions, CpuPrepared, CpuScalar};
pub use crate::plan::CpuPlan;
pub use crate::workspace::CpuWorkspace;
