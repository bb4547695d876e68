//! batchla.
pub use batchla_core::*;
