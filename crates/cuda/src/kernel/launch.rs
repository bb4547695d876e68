//! A launch, put together piece by piece: kernel, shape, arguments.

use batchla_core::{Element, Error, ErrorKind};

use super::loaded::Kernel;
use crate::driver::{Arguments, DevicePointer, KernelArgument};
use crate::memory::{DeviceSlice, DeviceSliceMut};
use crate::stream::Stream;

/// Blocks that one launch can have.
pub const LARGEST_GRID: u64 = (1 << 31) - 1;

/// How many of the arrays may be at home on other streams.
const FOREIGN: usize = 12;

/// A kernel about to be queued on a stream. Nothing of it is on the heap.
#[derive(Debug)]
pub struct Launch<'a> {
    kernel: &'a Kernel,
    stream: &'a Stream,
    grid: u64,
    block: u32,
    shared_bytes: u32,
    arguments: Arguments,
    foreign: [Option<&'a Stream>; FOREIGN],
    refusal: Option<&'static str>,
}

impl<'a> Launch<'a> {
    /// A launch of one block of one thread, until said otherwise.
    pub fn new(kernel: &'a Kernel, stream: &'a Stream) -> Self {
        let (arguments, foreign) = (Arguments::default(), [None; FOREIGN]);
        Self { kernel, stream, grid: 1, block: 1, shared_bytes: 0, arguments, foreign, refusal: None }
    }

    /// Blocks, up to [`LARGEST_GRID`]. With none, nothing is queued.
    #[must_use]
    pub fn grid(self, blocks: u64) -> Self {
        Self { grid: blocks, ..self }
    }

    /// Threads a block.
    #[must_use]
    pub fn block(self, threads: u32) -> Self {
        Self { block: threads, ..self }
    }

    /// Bytes of dynamic shared memory a block.
    #[must_use]
    pub fn shared_bytes(self, bytes: u32) -> Self {
        Self { shared_bytes: bytes, ..self }
    }

    /// The next argument, by value: a number, a `repr(C)` struct, or an address whose use the caller orders.
    #[must_use]
    pub fn argument(mut self, argument: impl KernelArgument) -> Self {
        self.arguments.push(argument);
        self
    }

    /// The next argument: the address of memory that the kernel reads. If it is at home on another stream, the kernel waits for that
    /// stream, and what is queued there later, also the memory's end, for the kernel.
    #[must_use]
    pub fn slice<E: Element>(mut self, slice: &DeviceSlice<'a, E>) -> Self {
        self.order(slice.stream());
        self.argument(DevicePointer(slice.as_raw()))
    }

    /// The next argument: the address of memory that the kernel writes. Ordered as [`Launch::slice`].
    #[must_use]
    pub fn slice_mut<E: Element>(mut self, slice: &DeviceSliceMut<'a, E>) -> Self {
        self.order(slice.stream());
        self.argument(DevicePointer(slice.as_raw()))
    }

    /// Orders the launch with memory at home on `home`, whose addresses come by value.
    #[must_use]
    pub(crate) fn ordered_with(mut self, home: &'a Stream) -> Self {
        self.order(home);
        self
    }

    fn order(&mut self, home: &'a Stream) {
        if home.same(self.stream) || self.foreign.iter().flatten().any(|other| other.same(home)) {
            return;
        }
        if !home.device().same(self.stream.device()) {
            self.refusal = Some("an argument lies on another device");
        }
        match self.foreign.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(home),
            None => self.refusal = Some("the arguments are at home on too many streams"),
        }
    }

    /// Queues the kernel and returns at once. `operation` names it in the error of whatever later call finds that it went wrong.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] where the shape is not one that the device can run; what the device reports, also of earlier work.
    ///
    /// # Safety
    /// The arguments are those of the kernel's signature, in number, order and type; the kernel touches no memory but that of its
    /// arguments, within its bounds; addresses given by value stay valid, and untouched by others, until the stream has passed the kernel.
    pub unsafe fn launch(self, operation: &'static str) -> Result<(), Error> {
        let (stream, kernel) = (self.stream, self.kernel);
        stream.device().alive(operation)?;
        self.check(operation)?;
        if self.grid == 0 {
            return Ok(());
        }
        kernel.allow_shared_bytes(self.shared_bytes)?;
        for home in self.foreign.into_iter().flatten() {
            stream.wait_for(home)?;
        }
        let (grid, block, shared_bytes) = (self.grid as u32, self.block, self.shared_bytes);
        let driver = stream.device().driver();
        // SAFETY: the caller's promise; memory of other streams is ordered before and after.
        let queued =
            unsafe { driver.launch(kernel.handle(), grid, block, shared_bytes, stream.handle(), &self.arguments) };
        stream.check(operation, queued)?;
        stream.remember(operation, kernel.shared_name(), grid, block, shared_bytes);
        self.foreign.into_iter().flatten().try_for_each(|home| home.wait_for(stream))
    }

    fn check(&self, operation: &str) -> Result<(), Error> {
        let limits = self.stream.device().limits();
        let threads = self.kernel.attributes().threads_per_block.min(limits.threads_per_block);
        let why = if let Some(refusal) = self.refusal {
            refusal.to_owned()
        } else if self.arguments.overflows() {
            "there are more arguments than a launch has room for".to_owned()
        } else if self.grid > LARGEST_GRID {
            format!("{} blocks are more than a grid has ({LARGEST_GRID})", self.grid)
        } else if self.block == 0 || self.block > threads {
            format!("{} threads a block are none or more than it can have ({threads})", self.block)
        } else if self.shared_bytes > limits.shared_bytes_per_block {
            let there = limits.shared_bytes_per_block;
            format!("{} bytes of shared memory a block are more than it can have ({there})", self.shared_bytes)
        } else {
            return Ok(());
        };
        let what = format!("kernel {} cannot be launched: {why}", self.kernel.name());
        Err(Error::new(ErrorKind::Argument, operation, what))
    }
}
