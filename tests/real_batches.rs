//! The batches of `examples/data`, or of the folder `data` where the tests run, on the chosen backend and on the CPU.
//!
//! Without a GPU both are the CPU; what is printed says which was chosen, and why.

use std::path::PathBuf;

use batchla::npy::{AnyBatch, read_any};
use batchla::{AnyBackend, Batch, BatchedFactorize, BatchedInvert, Error, Outcome, Scalar};
use batchla_testkit::{LIMIT, factorization_ratios, inverse_ratios};

/// The files, in order; none where there is no such folder.
fn files() -> Vec<PathBuf> {
    let own = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/data"));
    let folder = if own.is_dir() { own } else { PathBuf::from("data") };
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let mut files: Vec<_> = entries.map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "npy"));
    files.sort();
    files
}

/// A GPU where there is one, and nothing else where `BATCHLA_REQUIRE` asks for one.
fn chosen() -> Result<AnyBackend, Error> {
    let required = std::env::var("BATCHLA_REQUIRE").unwrap_or_default();
    if required.split(',').any(|name| name.trim() == "cuda") { batchla::backend("cuda") } else { batchla::auto() }
}

fn compare<T: Scalar>(a: &Batch<T>) -> Result<(), Error> {
    let (chosen, cpu) = (chosen()?, batchla::backend("cpu")?);
    let (lu, expected) = (chosen.factorize(a)?, cpu.factorize(a)?);
    let outcomes: Vec<Outcome> = lu.outcomes().map(|(_, outcome)| outcome).collect();
    assert!(outcomes.iter().copied().eq(expected.outcomes().map(|(_, outcome)| outcome)));
    let pivots: Vec<u32> = (0..a.batch()).filter_map(|b| lu.pivots(b)).flatten().copied().collect();
    let ratios = factorization_ratios(a, lu.lu(), &pivots, &outcomes);
    assert!(ratios.compared == a.batch() && ratios.below(LIMIT), "{ratios}");
    println!("{}: LU of {}: {ratios}", chosen.why(), a.layout());

    let (inverse, expected) = (chosen.invert(a)?, cpu.invert(a)?);
    let outcomes: Vec<Outcome> = inverse.outcomes().map(|(_, outcome)| outcome).collect();
    assert!(outcomes.iter().copied().eq(expected.outcomes().map(|(_, outcome)| outcome)));
    let ratios = inverse_ratios(a, &inverse.batch, &outcomes);
    assert!(ratios.compared == a.batch() && ratios.below(LIMIT), "{ratios}");
    println!("inverse of {}: {ratios}", a.layout());
    Ok(())
}

#[test]
fn real_batches_fare_on_the_chosen_backend_as_on_the_cpu() -> Result<(), Error> {
    let files = files();
    assert!(files.len() >= 2, "{files:?}");
    for file in files {
        match read_any(&file)? {
            AnyBatch::F32(a) => compare(&a)?,
            AnyBatch::F64(a) => compare(&a)?,
            AnyBatch::C32(a) => compare(&a)?,
            AnyBatch::C64(a) => compare(&a)?,
        }
    }
    Ok(())
}
