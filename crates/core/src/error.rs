//! A failed call: what was asked, what was wrong with it, and what to do.

use std::error::Error as StdError;
use std::fmt;

/// What sort of thing went wrong, for code that wants to react to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A layout overlaps itself, overflows 64 bits, or does not fit the memory it describes.
    Layout,
    /// Shapes of two operands do not fit each other, or a matrix that must be square is not.
    Shape,
    /// An argument is out of its range or contradicts another.
    Argument,
    /// The backend has no way to do this (see [`Rejection`](crate::Rejection)).
    Unsupported,
    /// Memory of the host or the device is exhausted.
    OutOfMemory,
    /// There is no such device, driver or library on this machine.
    Unavailable,
    /// The device or its driver failed while working.
    Device,
    /// A kernel could not be compiled or loaded.
    Compile,
    /// A file could not be read or written, or does not hold what it claims.
    Io,
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Layout => "layout",
            Self::Shape => "shape",
            Self::Argument => "argument",
            Self::Unsupported => "unsupported",
            Self::OutOfMemory => "out of memory",
            Self::Unavailable => "unavailable",
            Self::Device => "device",
            Self::Compile => "compile",
            Self::Io => "input/output",
        })
    }
}

/// A call that failed as a whole. A matrix that fails is not an error but an [`Outcome`](crate::Outcome).
///
/// Prints as `operation: what was wrong (with shapes); what to do`; for debugging, where `main` returns it and `unwrap` panics, with what caused it below.
#[derive(thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<Detail>);

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")?;
        let mut cause = self.source();
        while let Some(next) = cause {
            write!(f, "\n  caused by: {next}")?;
            cause = next.source();
        }
        Ok(())
    }
}

// Boxed, so that `Result<(), Error>` is one word wide.
#[derive(Debug, thiserror::Error)]
#[error("{operation}: {problem}{}{advice}", if advice.is_empty() { "" } else { "; " })]
struct Detail {
    kind: ErrorKind,
    operation: String,
    problem: String,
    advice: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error of `kind` in `operation`; `problem` names the shapes or values at fault.
    pub fn new(kind: ErrorKind, operation: impl Into<String>, problem: impl Into<String>) -> Self {
        Self(Box::new(Detail {
            kind,
            operation: operation.into(),
            problem: problem.into(),
            advice: String::new(),
            source: None,
        }))
    }

    /// Adds what the caller can do about it.
    #[must_use]
    pub fn advise(mut self, advice: impl Into<String>) -> Self {
        self.0.advice = advice.into();
        self
    }

    /// Keeps the error that caused this one; [`source`](StdError::source) gives it back.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What sort of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation that failed, for example `invert`.
    pub fn operation(&self) -> &str {
        &self.0.operation
    }

    /// What the caller can do about it; empty where nothing helps.
    pub fn advice(&self) -> &str {
        &self.0.advice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_main_and_unwrap_show_is_the_message_with_its_causes() {
        let inner = Error::new(ErrorKind::Io, "read", "3 bytes are missing");
        let error =
            Error::new(ErrorKind::Shape, "invert", "5 x 3 is not square").advise("pass square ones").caused_by(inner);
        assert_eq!(error.to_string(), "invert: 5 x 3 is not square; pass square ones");
        let shown = format!("{:?}", Box::<dyn StdError>::from(error));
        assert_eq!(shown, "invert: 5 x 3 is not square; pass square ones\n  caused by: read: 3 bytes are missing");
    }
}
