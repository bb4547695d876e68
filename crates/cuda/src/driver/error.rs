//! What the driver reports, in its own words, and as an [`Error`] of ours.

use std::borrow::Cow;

use batchla_core::{Error, ErrorKind};

/// The driver's codes that something here depends on.
pub mod code {
    /// An argument is out of range, or an allocation was lost.
    pub const INVALID_VALUE: u32 = 1;
    /// Memory is exhausted.
    pub const OUT_OF_MEMORY: u32 = 2;
    /// The library is a stand-in to link with, not a driver.
    pub const STUB_LIBRARY: u32 = 34;
    /// The driver is older than what it is asked for.
    pub const INSUFFICIENT_DRIVER: u32 = 35;
    /// There is no GPU, or none is visible.
    pub const NO_DEVICE: u32 = 100;
    /// The image holds no code for this GPU.
    pub const NO_BINARY_FOR_GPU: u32 = 209;
    /// A handle that is none.
    pub const INVALID_HANDLE: u32 = 400;
    /// A name that the module does not have.
    pub const NOT_FOUND: u32 = 500;
    /// Not an error: the work is not done yet.
    pub const NOT_READY: u32 = 600;
    /// A kernel touched memory that is not its own.
    pub const ILLEGAL_ADDRESS: u32 = 700;
    /// A block needs more registers or shared memory than there are.
    pub const LAUNCH_OUT_OF_RESOURCES: u32 = 701;
    /// A kernel ended in a fault.
    pub const LAUNCH_FAILED: u32 = 719;
    /// Work was asked of a capturing stream that cannot be captured.
    pub const STREAM_CAPTURE_UNSUPPORTED: u32 = 900;
    /// Captured work would depend on work outside the capture.
    pub const STREAM_CAPTURE_ISOLATION: u32 = 905;
}

/// A failed call to the driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} ({code}): {text}, reported by {call}")]
pub struct DriverError {
    /// The function of the driver that reported it; the cause may be earlier work.
    pub call: &'static str,
    /// CUDA's number.
    pub code: u32,
    /// CUDA's name of the number.
    pub name: Cow<'static, str>,
    /// CUDA's text.
    pub text: Cow<'static, str>,
}

impl DriverError {
    /// Whether the device's context is lost for this process.
    pub fn is_sticky(&self) -> bool {
        matches!(self.code, 4 | 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721)
    }

    /// Whether it says that there is no GPU, rather than one that does not work.
    pub fn is_absence(&self) -> bool {
        matches!(self.code, code::STUB_LIBRARY | code::NO_DEVICE)
    }

    /// What sort of error this is.
    pub fn kind(&self) -> ErrorKind {
        match self.code {
            code::OUT_OF_MEMORY => ErrorKind::OutOfMemory,
            3 | 34 | 35 | 36 | 46 | 100..=102 | 802..=809 => ErrorKind::Unavailable,
            200 | 209 | 218 | 221..=223 | 225 | 300..=303 | code::NOT_FOUND => ErrorKind::Compile,
            _ => ErrorKind::Device,
        }
    }

    /// As the error of an operation of ours, with what can be done about it.
    pub fn into_error(self, operation: &str) -> Error {
        let advice = match self.code {
            code::OUT_OF_MEMORY => "work on the batch in parts, or free what else is on the device",
            3 | 34 | 35 | 36 | 803 | 804 => "install an NVIDIA driver that fits the GPU and CUDA 12 or newer",
            46 | 100..=102 => "check nvidia-smi and CUDA_VISIBLE_DEVICES; without a GPU, use the CPU backend",
            200 | 209 | 218 | 222 => "update the NVIDIA driver, or compile with an NVRTC no newer than it",
            900..=908 => "prepare, allocate, read and synchronise outside a capture",
            _ if self.is_sticky() => {
                "the device is lost for this process: restart it; compute-sanitizer finds the access that did it"
            }
            _ => "",
        };
        Error::new(self.kind(), operation, self.to_string()).advise(advice).caused_by(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: u32) -> DriverError {
        DriverError { call: "cuCall", code, name: "CUDA_ERROR_SOME".into(), text: "some text".into() }
    }

    #[test]
    fn the_drivers_words_and_call_reach_the_user() {
        let error = error(700).into_error("synchronize");
        let text = error.to_string();
        assert!(text.contains("CUDA_ERROR_SOME (700): some text, reported by cuCall"), "{text}");
        assert!(error.advice().contains("restart"), "{text}");
    }

    #[test]
    fn codes_are_sorted_by_what_a_caller_can_do() {
        for (code, kind) in [
            (code::OUT_OF_MEMORY, ErrorKind::OutOfMemory),
            (code::NO_DEVICE, ErrorKind::Unavailable),
            (803, ErrorKind::Unavailable),
            (code::NO_BINARY_FOR_GPU, ErrorKind::Compile),
            (code::ILLEGAL_ADDRESS, ErrorKind::Device),
            (code::INVALID_VALUE, ErrorKind::Device),
            (12_345, ErrorKind::Device),
        ] {
            assert_eq!(error(code).kind(), kind, "{code}");
        }
        let absent = |code| crate::device::Device::is_absent(&error(code).into_error("open device"));
        assert!(absent(code::NO_DEVICE) && absent(code::STUB_LIBRARY));
        assert!([code::INSUFFICIENT_DRIVER, 46, 802, 803, 999].into_iter().all(|code| !absent(code)));
        assert!(error(719).is_sticky() && !error(code::OUT_OF_MEMORY).is_sticky());
    }
}
