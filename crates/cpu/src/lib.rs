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
//! | 2 | which plan? | `plan.rs`: [`CpuPlan`] |
//! | 3 | who works on which matrices? | `parallel.rs`, on threads that `call.rs` calls and `seats.rs` keeps off the caller's core; who helps, once none are left to begin, `team.rs` |
//! | 4 | which steps make up an operation? | `lu.rs`, `invert.rs`, `solve.rs`, `determinant.rs`; of the plans of our own, `groups.rs` |
//! | 5 | which routines, in how much memory? | `engine.rs`, `group.rs`; compiled once, `routines.rs` |
//! | 6 | how is a group computed, a matrix a lane? | `interleaved/`; the smallest, many groups at a time, `interleaved/stretch.rs` |
//! | | how is one matrix computed, by tiles? | `blocked/` |
//! | | on which vectors? | `simd/`: [`InstructionSet`] |
//! | | by faer's products? | `getrf.rs`, `getri.rs`, `getrs.rs`, on `level3.rs` (faer) and `vector.rs` |
//!
//! Every matrix is copied to an aligned place in its thread's scratch memory, computed there, its columns by several threads where these have nothing
//! else to do and plan `blocked` computes a large one, and written out. The plans of our own take the same steps for each element in the same order, with fused multiply-adds, whatever the vectors, tiles or neighbours. So bits
//! depend on nothing but the elements and the plan's arithmetic: not on the layout, the place in the batch, the batch's size, the
//! number of threads or the grain; nor, for the plans of our own, on the instruction set. faer's products also go by the sizes of the caches, so plan `faer` has the
//! same bits on processors of one kind alone.

mod backend;
mod blocked;
mod call;
mod determinant;
mod engine;
mod explanation;
mod getrf;
mod getri;
mod getrs;
mod group;
mod groups;
mod interleaved;
mod invert;
mod level3;
mod lu;
mod parallel;
mod plan;
mod routines;
mod scalar;
mod scratch;
mod seats;
mod simd;
mod solve;
mod team;
mod vector;
mod workspace;

pub use crate::backend::{Cpu, CpuOptions, CpuPrepared, CpuScalar};
pub use crate::plan::CpuPlan;
pub use crate::simd::InstructionSet;
pub use crate::workspace::CpuWorkspace;
