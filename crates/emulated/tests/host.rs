//! Host batches through emulated GPUs, in chunks that hardly fit a slot: the conformance suite, and that nothing but the plan decides the bits.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use batchla_core::{Complex, Error};
use batchla_cuda::CudaHost;
use batchla_emulated::{Checks, Emulated};
use batchla_testkit::{Scope, conformance};

/// GPUs of some architectures, as one backend over host memory; so many matrices at a time.
fn host(architectures: &[&str], checks: Checks, chunk: usize) -> Result<CudaHost, Error> {
    let gpu = |(ordinal, name): (usize, &&str)| Emulated::new(name).seed(11).checks(checks).ordinal(ordinal).open();
    let gpus: Vec<_> = architectures.iter().enumerate().map(gpu).collect::<Result<_, _>>()?;
    Ok(CudaHost::new(gpus)?.with_chunk(chunk))
}

/// Few orders, whose kernels are the device level's, and batches of more than one chunk.
const fn at(orders: &'static [usize]) -> Scope {
    Scope { name: "chunked", orders, thorough: 5, many: Some(50), huge: None }
}

conformance!(emulated_f32, f32, at(&[0, 3, 17]), host(&["sm_90"], Checks::All, 3));
conformance!(emulated_f64, f64, at(&[0, 2, 5, 33]), host(&["sm_90", "sm_90"], Checks::None, 1));
conformance!(emulated_c32, Complex<f32>, at(&[1, 3, 8]), host(&["sm_80", "sm_90"], Checks::None, 2));
conformance!(emulated_c64, Complex<f64>, at(&[2, 5, 31]), host(&["sm_70"], Checks::None, 1000));
