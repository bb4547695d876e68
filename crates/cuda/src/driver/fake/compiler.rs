//! A compiler for a driver that runs nothing.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use batchla_core::{Error, ErrorKind};

use crate::kernel::cache::{Compiler, Image};
use crate::kernel::source::Specification;

/// A compiler whose images hold nothing but a name.
#[derive(Debug, Default)]
pub struct FakeCompiler {
    compiled: Mutex<Vec<String>>,
    /// How many are being compiled, and the most that ever were.
    at_once: Mutex<(usize, usize)>,
    delay: Duration,
    failure: Option<&'static str>,
}

impl FakeCompiler {
    /// A compiler that takes its time.
    pub fn slow(delay: Duration) -> Self {
        Self { delay, ..Self::default() }
    }

    /// A compiler that refuses everything with a message.
    pub fn refusing(failure: &'static str) -> Self {
        Self { failure: Some(failure), ..Self::default() }
    }

    /// The most that were ever compiled at once.
    pub fn most_at_once(&self) -> usize {
        self.at_once.lock().unwrap_or_else(PoisonError::into_inner).1
    }

    fn count(&self, step: isize) {
        let mut at_once = self.at_once.lock().unwrap_or_else(PoisonError::into_inner);
        at_once.0 = at_once.0.saturating_add_signed(step);
        at_once.1 = at_once.1.max(at_once.0);
    }

    /// What was compiled, in order.
    pub fn compiled(&self) -> Vec<String> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Compiler for FakeCompiler {
    fn version(&self) -> Result<String, Error> {
        Ok("no compiler 1.0".into())
    }

    fn compile(&self, specification: &Specification, architecture: &str) -> Result<Image, Error> {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).push(specification.to_string());
        self.count(1);
        std::thread::sleep(self.delay);
        self.count(-1);
        match self.failure {
            Some(failure) => Err(Error::new(ErrorKind::Compile, "compile", failure)),
            None => Ok(Image { bytes: format!("{specification} for {architecture}").into_bytes(), log: String::new() }),
        }
    }
}
