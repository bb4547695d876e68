//! Any matrices in any layout: the kernels' results are as accurate as LAPACK's, every access is within
//! bounds, and inputs are not written.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod machine;

use std::sync::OnceLock;

use batchla_core::{Backend, Batch, BatchLayout, BatchedFactorize, BatchedInvert, Complex, Scalar, Strides};
use batchla_cuda::Cuda;
use batchla_emulated::{Checks, Emulated};
use batchla_testkit::{Generator, LIMIT, factorization_ratios, inverse_ratios};
use proptest::prelude::*;
use proptest::sample::select;

use machine::open;

/// Batch, order, padding of columns and of matrices, lanes, rows first.
type Shape = (usize, usize, usize, usize, usize, bool);

fn shapes() -> impl Strategy<Value = Shape> {
    // Each order has kernels of its own to compile.
    (
        1..6usize,
        select(&[1, 2, 3, 5, 8, 11]),
        0..4usize,
        0..6usize,
        prop_oneof![Just(1usize), Just(2), Just(5)],
        any::<bool>(),
    )
}

fn layout((batch, n, pad, gap, lanes, rows): Shape) -> BatchLayout {
    let line = (n + pad) * lanes;
    let (row, col) = if rows { (line, lanes) } else { (lanes, line) };
    BatchLayout::new(batch, n, n, Strides { lanes, group: line * n + gap * lanes, row, col }).unwrap()
}

fn generators() -> impl Strategy<Value = Generator> {
    prop_oneof![
        Just(Generator::Normal),
        Just(Generator::Uniform),
        Just(Generator::PositiveDefinite),
        Just(Generator::PermutedIdentity),
        Just(Generator::Kahan),
        Just(Generator::SmallIntegers),
        Just(Generator::BlockDiagonal),
        Just(Generator::Condition(1e6)),
        Just(Generator::GradedRows(0.2)),
    ]
}

/// One device for all cases; its kernels are compiled once.
fn gpu() -> Option<&'static Cuda> {
    static GPU: OnceLock<Option<Cuda>> = OnceLock::new();
    GPU.get_or_init(|| open(Emulated::new("sm_90").seed(11).checks(Checks::All))).as_ref()
}

fn holds<T: Scalar>(gpu: &Cuda, shape: Shape, generator: Generator, seed: u64) -> Result<(), TestCaseError> {
    let host: Batch<T> = generator.batch(layout(shape), seed).unwrap();
    let a = gpu.to_device(&host).unwrap();
    let factors = gpu.factorize(&a).unwrap();
    let (lu, pivots) = (gpu.to_host(factors.lu()).unwrap(), factors.record().read_pivots().unwrap());
    let inverse = gpu.invert(&a).unwrap();
    let (x, outcomes) = (gpu.to_host(&inverse.batch).unwrap(), inverse.report.read_outcomes().unwrap());
    let factored = factorization_ratios(&host, &lu, &pivots, &outcomes).worst.map_or(0.0, |worst| worst.ratio);
    let inverted = inverse_ratios(&host, &x, &outcomes).worst.map_or(0.0, |worst| worst.ratio);
    prop_assert!(factored < LIMIT && inverted < LIMIT, "{generator:?}, {shape:?}: {factored} and {inverted}");
    let after = gpu.to_host(&a).unwrap();
    let elements = |batch: &Batch<T>| -> Vec<T> {
        let (view, n) = (batch.view(), batch.layout().rows());
        let matrices = (0..batch.batch()).filter_map(|b| view.matrix(b));
        matrices.flat_map(|a| (0..n * n).map(move |at| a.at(at % n, at / n)).collect::<Vec<T>>()).collect()
    };
    prop_assert!(elements(&after) == elements(&host), "the input was written");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_batch_in_any_layout_is_inverted_f64(shape in shapes(), generator in generators(), seed in any::<u64>()) {
        let Some(gpu) = gpu() else { return Ok(()) };
        holds::<f64>(gpu, shape, generator, seed)?;
    }

    #[test]
    fn any_batch_in_any_layout_is_inverted_c32(shape in shapes(), generator in generators(), seed in any::<u64>()) {
        let Some(gpu) = gpu() else { return Ok(()) };
        holds::<Complex<f32>>(gpu, shape, generator, seed)?;
    }
}
