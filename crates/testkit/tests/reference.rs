//! The reference backend under the whole suite.

use batchla_core::Complex;
use batchla_testkit::{Reference, Scope, conformance};

conformance!(reference_f32, f32, Scope::FULL, Ok(Reference));
conformance!(reference_f64, f64, Scope::FULL, Ok(Reference));
conformance!(reference_c32, Complex<f32>, Scope::FULL, Ok(Reference));
conformance!(reference_c64, Complex<f64>, Scope::FULL, Ok(Reference));
