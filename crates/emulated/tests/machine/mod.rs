//! An emulated GPU for a test, or word that there is none.

use batchla_core::ErrorKind;
use batchla_cuda::Cuda;
use batchla_emulated::Emulated;

/// Opens it. Without a C++ compiler, says so; where `BATCHLA_REQUIRE` names `emulated`, that is a failure.
pub(crate) fn open(emulated: Emulated) -> Option<Cuda> {
    let required = std::env::var("BATCHLA_REQUIRE").is_ok_and(|names| names.split(',').any(|name| name == "emulated"));
    match emulated.open() {
        Err(error) if error.kind() == ErrorKind::Unavailable && !required => {
            println!("skipped: {error}");
            None
        }
        opened => Some(opened.unwrap()),
    }
}
