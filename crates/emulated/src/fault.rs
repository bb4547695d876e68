//! What a kernel did wrong, and where.

use std::fmt;

use batchla_cuda::driver::{DriverError, code};

/// A kind of fault that a check finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// An address that is no memory of the kernel's.
    OutOfBounds,
    /// A read of what nobody wrote.
    Uninitialized,
    /// Two threads at one word, one of them writing, with nothing between that orders them.
    Race,
    /// A touch of what a copy under way goes to.
    Copy,
    /// A barrier that some threads of the block do not reach.
    Barrier,
    /// An exchange that some lanes of the warp do not reach, or reach elsewhere.
    Exchange,
    /// What C++ leaves undefined.
    Undefined,
    /// More steps than any kernel takes.
    Endless,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OutOfBounds => "out of bounds",
            Self::Uninitialized => "uninitialised memory",
            Self::Race => "race",
            Self::Copy => "copy under way",
            Self::Barrier => "barrier not reached by all",
            Self::Exchange => "divergent warp exchange",
            Self::Undefined => "undefined behaviour",
            Self::Endless => "does not end",
        }
    }
}

/// A fault, with addresses in machine code where a report has lines.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: Kind,
    /// What was done, as the rest of a sentence that starts with the thread.
    pub(crate) what: String,
    pub(crate) block: u32,
    pub(crate) thread: u32,
    /// Where, as an address that a call returns to.
    pub(crate) at: usize,
    /// The other side of a race or a meeting: who, and where.
    pub(crate) other: Option<(String, usize)>,
}

impl Fault {
    /// As the driver reports it; `line` gives the source line of an address.
    pub(crate) fn into_error(self, kernel: &str, line: impl Fn(usize) -> String) -> DriverError {
        let (code, name) = match self.kind {
            Kind::OutOfBounds => (code::ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"),
            _ => (code::LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED"),
        };
        let at = line(self.at);
        let other = self.other.as_ref().map_or_else(String::new, |(who, at)| format!("; {who} at {}", line(*at)));
        let text = format!("{kernel}, {self} at {at}{other}");
        DriverError { call: "cuLaunchKernel", code, name: name.into(), text: text.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: block {}, thread {} {}", self.kind.name(), self.block, self.thread, self.what)
    }
}
