//! The kernels of the CUDA backend, proved without a GPU.
//!
//! The very text that NVRTC compiles for a GPU is compiled here by the host's C++ compiler, against a small stand-in for CUDA C++
//! (`stand_in/cuda.h`), and run block by block: the threads of a block are fibres that take turns, and whatever they do together (barriers,
//! votes, shuffles, reductions) is a meeting that the last to arrive ends. All of it stands behind the driver trait of `batchla-cuda`, so that an
//! emulated device is a [`Cuda`] like any other: its plans, launches, workspace and errors are the real ones.
//!
//! ```
//! use batchla_core::{Backend, Batch, BatchedInvert};
//! use batchla_emulated::{Checks, Emulated};
//!
//! # fn main() -> Result<(), batchla_core::Error> {
//! let gpu = match Emulated::new("sm_90").seed(3).checks(Checks::All).open() {
//!     Err(error) if error.kind() == batchla_core::ErrorKind::Unavailable => return Ok(()), // no C++ compiler here
//!     opened => opened?,
//! };
//! let host = Batch::<f64>::from_fn(3, 5, 5, |_, i, j| if i == j { 4.0 } else { 1.0 })?;
//! let inverse = gpu.invert(&gpu.to_device(&host)?)?;
//! assert!(inverse.report.read_outcomes()?.iter().all(|outcome| outcome.is_regular()));
//! # Ok(())
//! # }
//! ```
//!
//! | file | what it holds |
//! | --- | --- |
//! | `compiler.rs` | the host's compiler in NVRTC's place; kernel text changed on purpose, for mutants |
//! | `stand_in/` | CUDA C++ for the host compiler; what its instrumentation calls |
//! | `module.rs` | a compiled kernel, loaded: entries, shared arrays, source lines |
//! | `driver.rs`, `emulation.rs` | the driver's calls; what the device holds, and how it does its work |
//! | `block.rs`, `block/` | a block of threads as fibres; what they do together, and to memory |
//! | `shadow.rs` | what is remembered of every word of memory, or its bytes, and the faults that show from it |
//! | `hooks.rs` | the functions that compiled kernels call |
//! | `trial.rs` | a small problem through one step of the kernels, and all that it leaves |
//! | `memory.rs`, `fault.rs` | device memory; what a report says |

mod block;
mod compiler;
mod driver;
mod emulation;
mod fault;
mod hooks;
mod memory;
mod module;
mod shadow;
mod trial;

use std::sync::Arc;

use batchla_core::{Error, ErrorKind};
use batchla_cuda::{Cuda, Device, DiskCache, Environment, Limits};

use crate::compiler::{Edit, HostCompiler};
use crate::emulation::Emulation;
pub use crate::trial::{Gaps, Left, Step, Trial};

/// What is watched while kernels run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checks {
    /// Barriers and exchanges that not all reach.
    #[default]
    None,
    /// Every access to memory too: bounds, memory that nobody wrote, races; and what C++ leaves undefined. Ten to fifty times slower.
    All,
}

/// An emulated GPU about to be opened.
#[derive(Clone, Debug)]
pub struct Emulated {
    architecture: String,
    seed: u64,
    checks: Checks,
    edits: Vec<Edit>,
    memory_bytes: u64,
    ordinal: usize,
    largest_grid: u32,
    shared_bytes: Option<u32>,
    exact_orders: bool,
}

impl Emulated {
    /// A GPU of an architecture, for example `sm_70`: see [`Limits::preset`].
    pub fn new(architecture: &str) -> Self {
        let memory_bytes = 8 << 30;
        Self {
            architecture: architecture.to_owned(),
            seed: 0,
            checks: Checks::None,
            edits: Vec::new(),
            memory_bytes,
            largest_grid: u32::MAX,
            shared_bytes: None,
            exact_orders: false,
            ordinal: 0,
        }
    }

    /// Permutes the order in which the threads of a block, and the blocks of a launch, take turns. Nothing may come of it.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// What is watched.
    #[must_use]
    pub fn checks(self, checks: Checks) -> Self {
        Self { checks, ..self }
    }

    /// Its number among several; 0 until said otherwise.
    #[must_use]
    pub fn ordinal(self, ordinal: usize) -> Self {
        Self { ordinal, ..self }
    }

    /// Device memory, on which the size of workspaces depends; 8 GiB until said otherwise, none of it taken beforehand.
    #[must_use]
    pub fn memory_bytes(self, memory_bytes: u64) -> Self {
        Self { memory_bytes, ..self }
    }

    /// Shared memory of a block, where it is not to be the architecture's: with little of it, what is shared goes by parts that else only large
    /// orders have.
    #[must_use]
    pub fn shared_bytes(self, shared_bytes: u32) -> Self {
        Self { shared_bytes: Some(shared_bytes), ..self }
    }

    /// Compiles kernels for single orders and for classes of orders, as plans for GPUs have them. Until said otherwise one serves all: it is dear to compile here, and run seldom.
    #[must_use]
    pub fn exact_orders(self) -> Self {
        Self { exact_orders: true, ..self }
    }

    /// Runs launches by so many blocks at most, each of which then takes several matrices, as in batches beyond what a grid has. Nothing may
    /// come of it.
    #[must_use]
    pub fn largest_grid(self, blocks: u32) -> Self {
        Self { largest_grid: blocks.max(1), ..self }
    }

    /// Plants a fault: in the kernel text `file`, what stands there exactly once becomes something else. Compiling fails where it does not.
    #[must_use]
    pub fn edit(mut self, file: &str, from: &str, to: &str) -> Self {
        self.edits.push(Edit { file: file.to_owned(), from: from.to_owned(), to: to.to_owned() });
        self
    }

    /// What it can do, on which plans depend.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for an architecture that there is not.
    pub fn limits(&self) -> Result<Limits, Error> {
        let limits = Limits::preset(&self.architecture).ok_or_else(|| {
            let what = format!("{} is none of {}", self.architecture, Limits::PRESETS.join(", "));
            Error::new(ErrorKind::Argument, "open emulator", what)
        })?;
        let name = format!("{}, emulated", limits.name);
        let shared_bytes_per_block = self.shared_bytes.unwrap_or(limits.shared_bytes_per_block);
        let &Self { memory_bytes, exact_orders, .. } = self;
        Ok(Limits { name, memory_bytes, shared_bytes_per_block, exact_orders, ..limits })
    }

    /// Opens it. Compiled kernels are kept where those for GPUs are, but for ones with planted faults.
    ///
    /// A kernel's fault loses the device, as on a GPU; the error of the launch names kernel, block, thread and source line.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] where there is no C++17 compiler; [`ErrorKind::Argument`] for an architecture that there is not.
    pub fn open(self) -> Result<Cuda, Error> {
        let limits = self.limits()?;
        let kept = DiskCache::of(&Environment::read());
        let compiler = HostCompiler::find(self.checks, self.edits, kept)?;
        let driver = Arc::new(Emulation::new(limits, self.seed, self.checks, self.largest_grid));
        // The compiler keeps what is whole; the device's own cache would keep planted faults too.
        Cuda::on(&Device::with(driver, self.ordinal, Arc::new(compiler), DiskCache::off())?)
    }
}
