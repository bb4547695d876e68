//! What a GPU must do beyond the conformance suite: graphs, many streams, enormous batches, one arithmetic in every plan.
//! Without a GPU every test says `skipped` and why; `BATCHLA_REQUIRE=cuda` makes that a failure.
#![cfg(feature = "driver")]
#![allow(clippy::unwrap_used, clippy::panic)] // Tests fail by panicking.

use std::sync::{Mutex, PoisonError};

use batchla_core::{
    Backend, Batch, BatchLayout, BatchedFactorize, BatchedInvert, Complex, Error, ErrorKind, Extras, FactorizeArgs,
    InvertArgs, Memory, Options, Prepared, Problem, Report, Scalar, Source, SourceKind,
};
use batchla_cuda::{Cuda, CudaPlan, Device, DeviceMemory};
use batchla_testkit::{Generator, Reference, factorization_ratio};

/// The GPU, one for all tests; without one, says so.
fn gpu() -> Option<Cuda> {
    static DEVICE: Mutex<Option<Device>> = Mutex::new(None);
    let mut device = DEVICE.lock().unwrap_or_else(PoisonError::into_inner);
    if device.is_none() {
        match Device::open(0) {
            Ok(opened) => *device = Some(opened),
            Err(error) if error.kind() == ErrorKind::Unavailable && !required() => {
                println!("skipped: {error}");
                return None;
            }
            Err(error) => panic!("{error}"),
        }
    }
    Some(Cuda::on(device.as_ref().unwrap()).unwrap())
}

fn required() -> bool {
    std::env::var("BATCHLA_REQUIRE").is_ok_and(|names| names.split(',').any(|name| name == "cuda"))
}

fn random<T: Scalar>(batch: usize, order: usize, seed: u64) -> Batch<T> {
    Generator::Normal.batch(BatchLayout::column_major(batch, order, order).unwrap(), seed).unwrap()
}

#[test]
fn what_was_prepared_is_captured_in_a_graph_and_replayed_on_new_input() -> Result<(), Error> {
    let Some(cuda) = gpu() else { return Ok(()) };
    let layout = BatchLayout::column_major(100, 40, 40)?;
    let first = random::<f64>(100, 40, 1);
    let mut a = cuda.to_device(&first)?;
    let mut x = cuda.allocate_batch::<f64>(layout)?;
    let mut report = Report::allocate(&cuda, 100, Extras::none())?;
    let prepared = cuda.prepare(&Problem::invert::<f64>(SourceKind::Matrix, layout, layout)?, &Options::default())?;
    let mut workspace = cuda.workspace(&prepared)?;
    let graph = cuda.stream().capture(|| {
        let source = Source::Matrix(a.view());
        cuda.run_invert(&prepared, InvertArgs::new(&source, &mut x.view_mut(), report.view_mut()), &mut workspace)
    })?;
    for seed in [1, 2, 3] {
        let host = random::<f64>(100, 40, seed);
        cuda.write(host.as_slice(), a.slice_mut())?;
        // SAFETY: the batches, the workspace and the kernels that the graph uses are alive until its work has been read.
        unsafe { graph.launch(cuda.stream()) }?;
        let replayed = cuda.to_host(&x)?;
        let plain = cuda.to_host(&cuda.invert(&a)?.batch)?;
        assert_eq!(replayed.as_slice(), plain.as_slice(), "seed {seed}");
        assert!(report.read_outcomes()?.iter().all(|outcome| outcome.is_regular()));
    }
    Ok(())
}

/// Factors and exchanges, by a plan of one's own.
fn factors<T: Scalar>(cuda: &Cuda, a: &Batch<T, DeviceMemory>, options: &Options) -> Result<(Vec<T>, Vec<u32>), Error> {
    let layout = *a.layout();
    let prepared = cuda.prepare(&Problem::factorize::<T>(SourceKind::Matrix, layout, layout)?, options)?;
    let mut lu = cuda.allocate_batch::<T>(layout)?;
    let mut pivots = cuda.allocate::<u32>(layout.batch() * layout.rows())?;
    let mut report = Report::allocate(cuda, layout.batch(), Extras::none())?;
    let source = Source::Matrix(a.view());
    cuda.run_factorize(
        &prepared,
        FactorizeArgs::new(&source, &mut lu.view_mut(), pivots.slice_mut(), report.view_mut()),
        &mut cuda.workspace(&prepared)?,
    )?;
    let mut exchanges = vec![0; pivots.len()];
    DeviceMemory::read(pivots.slice(), &mut exchanges)?;
    Ok((cuda.to_host(&lu)?.as_slice().to_vec(), exchanges))
}

fn every_plan_gives_the_same_bits_for<T: Scalar>(cuda: &Cuda) -> Result<(), Error> {
    let numbers = ["left-looking:panel=4,inverse-block=4", "left-looking:panel=14,inverse-block=20,inverse-rows=2"];
    for order in [5, 33, 100] {
        let a = cuda.to_device(&random::<T>(9, order, order as u64))?;
        let mut expected = None;
        for plan in CudaPlan::NAMES.into_iter().chain(numbers) {
            let options = Options::default().with_plan(plan);
            let inverse = cuda.invert_with(&a, Extras::none(), &options)?;
            let found = (factors(cuda, &a, &options)?, cuda.to_host(&inverse.batch)?.as_slice().to_vec());
            let first = expected.get_or_insert_with(|| found.clone());
            assert!(found == *first, "{plan}, {} of order {order}", T::KIND);
        }
    }
    Ok(())
}

#[test]
fn every_plan_gives_the_same_bits_of_f32() -> Result<(), Error> {
    gpu().map_or(Ok(()), |cuda| every_plan_gives_the_same_bits_for::<f32>(&cuda))
}

#[test]
fn every_plan_gives_the_same_bits_of_f64() -> Result<(), Error> {
    gpu().map_or(Ok(()), |cuda| every_plan_gives_the_same_bits_for::<f64>(&cuda))
}

#[test]
fn every_plan_gives_the_same_bits_of_c32() -> Result<(), Error> {
    gpu().map_or(Ok(()), |cuda| every_plan_gives_the_same_bits_for::<Complex<f32>>(&cuda))
}

#[test]
fn every_plan_gives_the_same_bits_of_c64() -> Result<(), Error> {
    gpu().map_or(Ok(()), |cuda| every_plan_gives_the_same_bits_for::<Complex<f64>>(&cuda))
}

/// Of a batch that keeps the GPU busy, the first matrix alone, which is shared out to many blocks.
fn one_matrix_alone_has_its_bits_of_a_large_batch_for<T: Scalar>(cuda: &Cuda) -> Result<(), Error> {
    for order in [160, 230, 333, 600] {
        let many = random::<T>(60, order, order as u64);
        let (many, one) = (cuda.to_device(&many)?, cuda.to_device(&random::<T>(1, order, order as u64))?);
        let options = Options::default();
        let (all, alone) = (factors(cuda, &many, &options)?, factors(cuda, &one, &options)?);
        let same = all.0[..order * order] == alone.0[..] && all.1[..order] == alone.1[..];
        assert!(same, "LU, {} of order {order}", T::KIND);
        let inverse = |a| Ok::<_, Error>(cuda.to_host(&cuda.invert(a)?.batch)?.as_slice()[..order * order].to_vec());
        assert!(inverse(&many)? == inverse(&one)?, "inverse, {} of order {order}", T::KIND);
    }
    Ok(())
}

#[test]
fn one_matrix_alone_has_its_bits_of_a_large_batch() -> Result<(), Error> {
    let Some(cuda) = gpu() else { return Ok(()) };
    one_matrix_alone_has_its_bits_of_a_large_batch_for::<f32>(&cuda)?;
    one_matrix_alone_has_its_bits_of_a_large_batch_for::<f64>(&cuda)?;
    one_matrix_alone_has_its_bits_of_a_large_batch_for::<Complex<f32>>(&cuda)?;
    one_matrix_alone_has_its_bits_of_a_large_batch_for::<Complex<f64>>(&cuda)
}

#[test]
fn a_batch_of_more_than_two_to_the_31_elements_is_factored_to_its_end() -> Result<(), Error> {
    let Some(cuda) = gpu() else { return Ok(()) };
    let (order, batch) = (200, 60_000);
    let layout = BatchLayout::column_major(batch, order, order)?;
    assert!(layout.span() > 1 << 31);
    if cuda.device().memory()?.0 < 4 * layout.span() as u64 + (1 << 30) {
        println!("skipped: the GPU has too little free memory");
        return Ok(());
    }
    // The same few matrices again and again: what each must give is known.
    let few = random::<f32>(8, order, 7);
    let each = order * order;
    let host: Vec<f32> = (0..batch).flat_map(|b| few.as_slice()[b % 8 * each..][..each].iter().copied()).collect();
    let mut a = cuda.to_device(&Batch::from_array(host.into(), layout)?)?;
    let record = cuda.factorize_in_place(&mut a)?;
    assert!(record.report().read_outcomes()?.iter().all(|outcome| outcome.is_regular()));
    let found = cuda.to_host(&a)?;
    let expected = cuda.to_host(cuda.factorize(&cuda.to_device(&few)?)?.lu())?;
    for b in (0..batch).step_by(997).chain(batch - 100..batch) {
        assert!(found.as_slice()[b * each..][..each] == expected.as_slice()[b % 8 * each..][..each], "matrix {b}");
    }
    Ok(())
}

#[test]
fn host_threads_with_streams_of_their_own_do_not_disturb_each_other() -> Result<(), Error> {
    let Some(cuda) = gpu() else { return Ok(()) };
    let a = random::<f64>(300, 50, 3);
    let expected = cuda.to_host(&cuda.invert(&cuda.to_device(&a)?)?.batch)?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let own = Cuda::on(cuda.device())?;
                    for _ in 0..10 {
                        let found = own.to_host(&own.invert(&own.to_device(&a)?)?.batch)?;
                        assert!(found.as_slice() == expected.as_slice());
                    }
                    Ok::<(), Error>(())
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap())
    })
}

#[test]
fn data_of_one_stream_is_used_and_dropped_on_another() -> Result<(), Error> {
    let Some(cuda) = gpu() else { return Ok(()) };
    let other = Cuda::on(cuda.device())?;
    let host = random::<f64>(2000, 64, 4);
    let expected = cuda.to_host(&cuda.invert(&cuda.to_device(&host)?)?.batch)?;
    for _ in 0..5 {
        let a = cuda.to_device(&host)?;
        let inverse = other.invert(&a)?;
        drop(a); // while the other stream may still read it
        let reused = cuda.to_device(&random::<f64>(2000, 64, 5))?;
        let found = other.to_host(&inverse.batch)?;
        assert!(found.as_slice() == expected.as_slice());
        drop(reused);
    }
    Ok(())
}

#[test]
fn large_orders_go_through_a_panel_in_shared_memory() -> Result<(), Error> {
    let Some(cuda) = gpu() else { return Ok(()) };
    for order in [1500, 3000] {
        let a = random::<f64>(2, order, 9);
        let device = cuda.to_device(&a)?;
        let factored = cuda.factorize(&device)?;
        let (lu, pivots) = (cuda.to_host(factored.lu())?, factored.record().read_pivots()?);
        let (a, lu) = (a.view().matrix(1).unwrap(), lu.view().matrix(1).unwrap());
        let ratio = factorization_ratio(a, lu, &pivots[order..]);
        assert!(ratio < 30.0, "order {order}: {ratio}");
        assert!(cuda.invert(&device)?.report.read_outcomes()?.iter().all(|outcome| outcome.is_regular()));
    }
    Ok(())
}

#[test]
fn a_workspace_of_another_problem_is_refused() -> Result<(), Error> {
    let Some(cuda) = gpu() else { return Ok(()) };
    let layout = |order| BatchLayout::column_major(100, order, order);
    let prepare = |order| -> Result<_, Error> {
        cuda.prepare(&Problem::invert::<f64>(SourceKind::Matrix, layout(order)?, layout(order)?)?, &Options::default())
    };
    let (small, large) = (prepare(8)?, prepare(300)?);
    let mut workspace = cuda.workspace(&small)?;
    let a = cuda.to_device(&random::<f64>(100, 300, 1))?;
    let mut x = cuda.allocate_batch::<f64>(layout(300)?)?;
    let mut report = Report::allocate(&cuda, 100, Extras::none())?;
    let source = Source::Matrix(a.view());
    let error = cuda
        .run_invert(&large, InvertArgs::new(&source, &mut x.view_mut(), report.view_mut()), &mut workspace)
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
    assert!(error.to_string().contains(&large.workspace_bytes().to_string()), "{error}");
    Ok(())
}

#[test]
fn hilbert_matrices_fare_as_the_reference_says() -> Result<(), Error> {
    let Some(cuda) = gpu() else { return Ok(()) };
    let hilbert = Batch::<f64>::from_fn(3, 12, 12, |b, i, j| 1.0 / (i + j + 1 + b) as f64)?;
    let found = cuda.invert(&cuda.to_device(&hilbert)?)?;
    let expected: Vec<_> = Reference.invert(&hilbert)?.outcomes().map(|(_, outcome)| outcome).collect();
    assert_eq!(found.report.read_outcomes()?, expected);
    Ok(())
}
