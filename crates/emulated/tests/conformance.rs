use batchla_core::{Complex, Error, Options};
use batchla_cuda::Cuda;
use batchla_emulated::{Checks, Emulated};
use batchla_testkit::{Scope, conformance};

fn gpu(architecture: &str, checks: Checks, seed: u64) -> Result<Cuda, Error> {
    Emulated::new(architecture).checks(checks).seed(seed).open()
}
conformance!(emulated_f64, f64, Scope::EMULATED, gpu("sm_90", Checks::None, 0));
const SMALL: Scope = Scope { name: "checked", orders: &[1, 3, 17, 33], thorough: 3, many: None, huge: None };
conformance!(checked_f64, f64, SMALL, gpu("sm_90", Checks::All, 0));
