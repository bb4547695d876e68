//! A backend chosen when the program runs, under the same suite as those known when it is compiled.

use batchla::{
    AnyBackend, Backend, Batch, BatchLayout, BatchedFactorize, BatchedInvert, Complex, Error, Options, Problem,
    SourceKind, Staged,
};
use batchla_testkit::{Reference, Scope, conformance};

conformance!(any_f32, f32, Scope::QUICK, batchla::backend("cpu"));
conformance!(any_f64, f64, Scope::QUICK, batchla::auto());
conformance!(any_c32, Complex<f32>, Scope::QUICK, batchla::backend("cpu"));
conformance!(any_c64, Complex<f64>, Scope::QUICK, Ok(AnyBackend::new(Reference)));

// Without a GPU these say `skipped`; `BATCHLA_REQUIRE=cuda` makes that a failure.
conformance!(cuda_any_f32, f32, Scope::QUICK, batchla::backend("cuda"));
conformance!(cuda_any_c64, Complex<f64>, Scope::QUICK, batchla::backend("cuda"));

// Upload, run, download: here from host memory to host memory, which is how every device backend becomes an object.
conformance!(staged_f64, f64, Scope::QUICK, Ok(AnyBackend::new(Staged::new(Reference))));
conformance!(staged_c32, Complex<f32>, Scope::QUICK, Ok(Staged::new(Reference)));

#[test]
fn it_says_why_it_was_chosen() -> Result<(), Error> {
    assert!(!batchla::auto()?.why().is_empty());
    assert_eq!(batchla::backend("cpu")?.because("a test").why(), "a test");
    Ok(())
}

#[test]
fn what_one_backend_prepared_another_refuses() -> Result<(), Error> {
    let (one, other) = (AnyBackend::new(Reference), batchla::backend("cpu")?);
    let layout = BatchLayout::column_major(1, 2, 2)?;
    let problem = Problem::invert::<f64>(SourceKind::InPlace, layout, layout)?;
    let prepared = one.prepare(&problem, &Options::default())?;
    let error = other.workspace(&prepared).unwrap_err();
    assert_eq!(error.kind(), batchla::ErrorKind::Argument);
    Ok(())
}

#[test]
fn factors_left_in_place_solve_and_invert() -> Result<(), Error> {
    use batchla::{BatchedSolve, Transpose};
    let backend = batchla::auto()?;
    let mut a = Batch::<f64>::from_fn(3, 2, 2, |b, i, j| [[0.0, 2.0], [1.0, b as f64]][i][j])?;
    let record = backend.factorize_in_place(&mut a)?;
    assert_eq!(record.pivots(1), Some(&[1, 1][..]));
    let mut x = Batch::<f64>::from_fn(3, 2, 1, |_, i, _| [4.0, 3.0][i])?;
    backend.solve_factored(record.factors(&a), &mut x, Transpose::None)?;
    assert_eq!((x.get(1, 0, 0), x.get(1, 1, 0)), (Some(1.0), Some(2.0)));
    let inverse = backend.invert_factored(record.factors(&a))?;
    assert_eq!(inverse.batch.get(0, 1, 0), Some(0.5));
    Ok(())
}
