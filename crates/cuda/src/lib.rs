//! The CUDA backend of **batchla**: batched LU, inverse, solve and determinant on NVIDIA GPUs.
//!
//! # The data's way
//!
//! | step | question | file |
//! | --- | --- | --- |
//! | 3 | which problem? | `batchla_core`'s `Problem`; `backend.rs` prepares it |
//! | 4 | which kernel, which numbers? | `plan/` (`getrf.rs`, `getri.rs`, `getrs.rs`; forced, `request.rs`; explained, `explanation.rs`; what there is to choose from, `space.rs`), from `tuned/` where the tuner has been, and `limits.rs`; the kernels that a plan needs, with their constants, `plan/specification.rs`; their text, `kernels.rs` and `kernels/`; scratch memory, `workspace.rs` |
//! | 5 | where is the machine code? | `kernel/source.rs` (text, constants, digest), `kernel/cache.rs` (memory, then disk, then compiler), `kernel/disk.rs`, `kernel/nvrtc/` |
//! | 6 | run it | `lu.rs`, `invert.rs`, `solve.rs`, `determinant.rs`: which steps, in which order; `factors.rs`, what they start from; `run.rs`, a step each, in parts that fit `workspace.rs`; `operand.rs`, where a kernel finds a batch; `kernel/launch.rs`, on `stream.rs`; captured, `graph.rs`; timed, `event.rs` |
//! | 7 | how did each matrix fare? | outcome words, written by the kernels; `batchla_core`'s `Report` reads them when asked |
//! | – | where do numbers lie? | `memory.rs`, `pinned.rs`; to the host and back by `staging/` |
//! | – | from host memory, in chunks? in parts on several GPUs? | `host/`; `group/` |
//! | – | beforehand, for many problems? | `warm.rs`; where there is no GPU, `ahead.rs` |
//! | – | which GPU? | `device.rs`, what it offers in `limits.rs`, the driver behind it in `driver/` |
//!
//! Driver and compiler are found when the program runs, and a machine without them is an [`Error`](batchla_core::Error) of kind
//! [`Unavailable`](batchla_core::ErrorKind::Unavailable), not a program that does not start. Without the feature `driver`, what needs no
//! GPU is still here: kernel sources, limits, the folder of compiled kernels.

#[cfg(feature = "driver")]
mod ahead;
#[cfg(feature = "driver")]
mod backend;
#[cfg(feature = "driver")]
mod determinant;
#[cfg(feature = "driver")]
mod device;
#[cfg(feature = "driver")]
#[doc(hidden)]
pub mod driver;
mod environment;
#[cfg(feature = "driver")]
mod event;
#[cfg(feature = "driver")]
mod factors;
#[cfg(feature = "driver")]
mod graph;
#[cfg(feature = "driver")]
mod group;
#[cfg(feature = "driver")]
mod host;
#[cfg(feature = "driver")]
mod invert;
mod kernel;
mod kernels;
mod limits;
#[cfg(feature = "driver")]
mod lu;
#[cfg(feature = "driver")]
mod memory;
#[cfg(feature = "driver")]
mod operand;
#[cfg(feature = "driver")]
mod pinned;
mod plan;
#[cfg(feature = "driver")]
mod run;
#[cfg(feature = "driver")]
mod solve;
#[cfg(feature = "driver")]
mod spread;
#[cfg(feature = "driver")]
mod staging;
#[cfg(feature = "driver")]
mod steps;
#[cfg(feature = "driver")]
mod stream;
#[cfg(feature = "driver")]
mod strips;
mod tuned;
#[cfg(feature = "driver")]
mod warm;
mod workspace;

pub use crate::environment::Environment;
pub use crate::kernel::disk::{DiskCache, DiskEntry};
pub use crate::kernel::source::{BASE_OPTIONS, CONFIGURATION, Digest, KernelSource, Specification};
pub use crate::limits::Limits;
pub use crate::plan::{
    Axis, Copies, Correction, CudaPlan, GetrfPlan, GetriPlan, GetrsPlan, Interchange, Looking, ResidentPlan, Resources,
    Search, Space, Steps, Strips,
};
pub use crate::tuned::{Tuned, TunedEarlier, TunedLayout, TunedRow, TunedTable};
#[cfg(feature = "driver")]
pub use crate::{
    ahead::compile_ahead,
    backend::{Cuda, CudaPrepared},
    device::Device,
    driver::{DevicePointer, FunctionAttributes, KernelArgument},
    event::Event,
    graph::Graph,
    group::{CudaGroup, GroupArray, GroupMemory, GroupPrepared, GroupSlice, GroupSliceMut, GroupWorkspace},
    host::{CudaHost, CudaHostPrepared, CudaHostWorkspace},
    kernel::cache::{Compiler, Image, Origin},
    kernel::launch::{LARGEST_GRID, Launch},
    kernel::loaded::Kernel,
    kernel::nvrtc::LazyNvrtc,
    memory::{DeviceArray, DeviceMemory, DeviceSlice, DeviceSliceMut},
    pinned::PinnedArray,
    stream::Stream,
    warm::Warmed,
    workspace::CudaWorkspace,
};
