//! What a run asks of the driver, over one that is none.
#![cfg(feature = "driver")]
#![allow(clippy::unwrap_used)] // Tests fail by panicking.

use std::sync::Arc;

use batchla_core::{
    Backend, BatchLayout, BatchedDeterminant, BatchedInvert, BatchedSolve, DeterminantArgs, Error, Extras, InvertArgs,
    Options, Problem, Report, SolveArgs, Source, SourceKind, Transpose,
};
use batchla_cuda::driver::fake::{Call, Fake};
use batchla_cuda::{Cuda, Device, Limits};

fn bench(memory_bytes: u64) -> Result<(Cuda, Arc<Fake>), Error> {
    let limits = Limits { memory_bytes, ..Limits::preset("sm_90").unwrap() };
    let (device, fake) = Device::fake(limits)?;
    Ok((Cuda::on(&device)?, fake))
}

fn launched(fake: &Fake) -> Vec<String> {
    fake.launches().into_iter().map(|launch| launch.function).collect()
}

#[test]
fn a_run_launches_and_does_nothing_else() -> Result<(), Error> {
    let (cuda, fake) = bench(1 << 30)?;
    let layout = BatchLayout::column_major(10, 20, 20)?;
    let problem = Problem::invert::<f64>(SourceKind::Matrix, layout, layout)?
        .with_extras(Extras::none().with_determinant().with_condition())?;
    for (plan, launches) in [
        ("left-looking", vec!["lange", "getrf", "determinant", "trtri", "getri", "lange"]),
        ("resident", vec!["lange", "getrf_getri", "lange"]),
        ("resident:inverse-window=8", vec!["lange", "getrf", "determinant", "getri_resident", "lange"]),
    ] {
        let prepared = cuda.prepare(&problem, &Options::default().with_plan(plan))?;
        let mut workspace = cuda.workspace(&prepared)?;
        let (a, mut x) = (cuda.allocate_batch::<f64>(layout)?, cuda.allocate_batch::<f64>(layout)?);
        let mut report = Report::allocate(&cuda, 10, problem.extras())?;
        let (before, earlier) = (fake.calls().len(), launched(&fake).len());
        let source = Source::Matrix(a.view());
        cuda.run_invert(&prepared, InvertArgs::new(&source, &mut x.view_mut(), report.view_mut()), &mut workspace)?;
        let during = fake.calls().split_off(before);
        assert!(during.iter().all(|call| matches!(call, Call::Launch { .. })), "{during:?}");
        assert_eq!(launched(&fake)[earlier..], launches);
    }
    assert!(fake.faults().is_empty(), "{:?}", fake.faults());
    Ok(())
}

#[test]
fn a_batch_larger_than_the_workspace_goes_through_it_in_parts() -> Result<(), Error> {
    // A sixteenth of the memory holds two of these matrices.
    let (cuda, fake) = bench(16 * 3 * 100 * 100 * 8)?;
    let layout = BatchLayout::column_major(5, 100, 100)?;
    let prepared = cuda.prepare(&Problem::determinant::<f64>(SourceKind::Matrix, layout)?, &Options::default())?;
    let mut workspace = cuda.workspace(&prepared)?;
    let a = cuda.allocate_batch::<f64>(layout)?;
    let mut report = Report::allocate(&cuda, 5, Extras::none().with_determinant())?;
    cuda.run_determinant(
        &prepared,
        DeterminantArgs::new(&Source::Matrix(a.view()), report.view_mut()),
        &mut workspace,
    )?;
    let counts: Vec<_> = fake.launches().iter().filter(|one| one.function == "getrf").map(|one| one.u64(5)).collect();
    assert_eq!(counts, [Some(2), Some(2), Some(1)]);
    Ok(())
}

#[test]
fn one_matrix_is_factored_once_for_a_whole_batch_of_right_hand_sides() -> Result<(), Error> {
    let (cuda, fake) = bench(1 << 30)?;
    let (a, x) = (BatchLayout::column_major(1, 20, 20)?, BatchLayout::column_major(50, 20, 3)?);
    let problem = Problem::solve::<f64>(SourceKind::Matrix, a, None, x, Transpose::None)?;
    let prepared = cuda.prepare(&problem, &Options::default())?;
    let mut workspace = cuda.workspace(&prepared)?;
    let (a, mut x) = (cuda.allocate_batch::<f64>(a)?, cuda.allocate_batch::<f64>(x)?);
    let mut report = Report::allocate(&cuda, 50, Extras::none())?;
    let source = Source::Matrix(a.view());
    cuda.run_solve(&prepared, SolveArgs::new(&source, None, &mut x.view_mut(), report.view_mut()), &mut workspace)?;
    assert_eq!(launched(&fake), ["getrf", "spread", "getrs_resident", "fill_failed"]);
    assert_eq!(fake.launches()[0].u64(5), Some(1));
    Ok(())
}

#[test]
fn one_matrix_serves_what_was_prepared_for_one_each() -> Result<(), Error> {
    let (cuda, fake) = bench(1 << 30)?;
    let (each, one) = (BatchLayout::column_major(50, 20, 20)?, BatchLayout::column_major(1, 20, 20)?);
    let x = BatchLayout::column_major(50, 20, 3)?;
    let prepared =
        cuda.prepare(&Problem::solve::<f64>(SourceKind::Matrix, each, None, x, Transpose::None)?, &Options::default())?;
    let mut workspace = cuda.workspace(&prepared)?;
    let (a, mut x) = (cuda.allocate_batch::<f64>(one)?, cuda.allocate_batch::<f64>(x)?);
    let mut report = Report::allocate(&cuda, 50, Extras::none())?;
    let source = Source::Matrix(a.view());
    cuda.run_solve(&prepared, SolveArgs::new(&source, None, &mut x.view_mut(), report.view_mut()), &mut workspace)?;
    assert_eq!(launched(&fake), ["gesv"]);
    Ok(())
}

#[test]
fn dynamic_resources_launch_each_block_column_with_what_it_needs() -> Result<(), Error> {
    let (cuda, fake) = bench(1 << 30)?;
    let layout = BatchLayout::column_major(3, 96, 96)?;
    let problem = Problem::invert::<f64>(SourceKind::Matrix, layout, layout)?;
    let prepared = cuda.prepare(&problem, &Options::default().with_plan("dynamic:inverse-block=32"))?;
    let mut workspace = cuda.workspace(&prepared)?;
    let (a, mut x) = (cuda.allocate_batch::<f64>(layout)?, cuda.allocate_batch::<f64>(layout)?);
    let mut report = Report::allocate(&cuda, 3, Extras::none())?;
    let source = Source::Matrix(a.view());
    cuda.run_invert(&prepared, InvertArgs::new(&source, &mut x.view_mut(), report.view_mut()), &mut workspace)?;
    let of = |name: &str| -> Vec<_> {
        fake.launches()
            .into_iter()
            .filter(|one| one.function == name)
            .map(|one| (one.block, one.shared_bytes))
            .collect()
    };
    let (upper, lower) = (of("trtri"), of("getri"));
    assert_eq!(upper.iter().map(|one| one.0).collect::<Vec<_>>(), [32, 64, 96]);
    assert!(upper.is_sorted_by(|a, b| a.1 < b.1) && lower.is_sorted_by(|a, b| a.1 < b.1), "{upper:?} {lower:?}");
    assert_eq!(lower.len(), 3);
    Ok(())
}
