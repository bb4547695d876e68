//! Batches in parts on two emulated GPUs: whatever is asked of them, the bits are those of one.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use batchla_core::{
    Batch, BatchLayout, BatchedDeterminant, BatchedFactorize, BatchedInvert, BatchedSolve, Complex, Error, ErrorKind,
    Extras, Options, Scalar, Transpose,
};
use batchla_cuda::{Cuda, CudaGroup};
use batchla_emulated::{Checks, Emulated};
use batchla_testkit::Generator;

/// One GPU, and two of which one is older; none without a compiler.
fn gpus() -> Option<(Cuda, CudaGroup)> {
    let gpu = |name: &str, ordinal| Emulated::new(name).checks(Checks::None).ordinal(ordinal).open();
    let opened =
        (|| -> Result<_, Error> { Ok((gpu("sm_80", 9)?, CudaGroup::new([gpu("sm_90", 0)?, gpu("sm_80", 1)?])?)) })();
    match opened {
        Err(error) if error.kind() == ErrorKind::Unavailable => {
            let required = std::env::var("BATCHLA_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|name| name == "emulated"), "{error}");
            println!("skipped: {error}");
            None
        }
        opened => Some(opened.unwrap()),
    }
}

fn bits<T: Scalar>(values: &[T]) -> Vec<[u64; 2]> {
    values.iter().map(|x| [x.re(), x.im()].map(|part| batchla_core::Real::to_f64(part).to_bits())).collect()
}

/// The bits of everything that there is to compute of some matrices.
fn all<T: Scalar, B>(backend: &B, host: &Batch<T>, right: &Batch<T>) -> Result<Vec<Vec<[u64; 2]>>, Error>
where
    B: BatchedFactorize<T> + BatchedInvert<T> + BatchedSolve<T> + BatchedDeterminant<T>,
{
    let words = |words: Vec<u32>| words.into_iter().map(|word| [u64::from(word), 0]).collect::<Vec<_>>();
    let mut all = Vec::new();
    let (a, b) = (backend.to_device(host)?, backend.to_device(right)?);
    let mut keep = |batch: &Batch<T, B::Memory>| -> Result<(), Error> {
        all.push(bits(backend.to_host(batch)?.as_slice()));
        Ok(())
    };
    let extras = Extras::none().with_determinant().with_condition();
    let inverse = backend.invert_with(&a, extras, &Options::default())?;
    keep(&inverse.batch)?;
    let factors = backend.factorize(&a)?;
    keep(factors.lu())?;
    keep(&factors.solve(&b)?.x)?;
    keep(&backend.solve_transposed(&a, &b, Transpose::Transpose)?.x)?;
    keep(&backend.invert_factored(factors.view())?.batch)?;
    let mut place = backend.to_device(host)?;
    backend.invert_in_place(&mut place)?;
    keep(&place)?;
    all.push(words(factors.record().read_pivots()?));
    let determinants = [inverse.report.read_determinants()?, backend.determinant(&a)?.report.read_determinants()?];
    for values in determinants.into_iter().flatten() {
        all.push(values.iter().flat_map(|value| bits(&[value.sign, T::from_real(value.log_abs)])).collect());
    }
    let conditions = inverse.report.read_conditions()?.unwrap_or_default();
    all.push(bits(&conditions.into_iter().map(T::from_real).collect::<Vec<_>>()));
    let outcomes = [inverse.report.read_outcomes()?, factors.record().report().read_outcomes()?];
    all.extend(outcomes.map(|all| words(all.iter().map(|outcome| outcome.to_word()).collect())));
    Ok(all)
}

fn right<T: Scalar>(batch: usize, rows: usize, cols: usize) -> Batch<T> {
    let part = |b: usize, i: usize, j: usize| ((7 * b + 3 * i + 5 * j) % 11) as f64 - 4.5;
    Batch::from_fn(batch, rows, cols, |b, i, j| T::from_f64(part(b, i, j), part(j, b, i))).unwrap()
}

fn bits_are_those_of_one_gpu<T: Scalar>() {
    let Some((one, two)) = gpus() else { return };
    let layouts = [
        BatchLayout::column_major(100, 5, 5).unwrap(),
        BatchLayout::row_major(33, 7, 7).unwrap(),
        BatchLayout::interleaved(70, 4, 4, 8).unwrap(),
        BatchLayout::column_major(20, 9, 9).unwrap(),
        BatchLayout::column_major(1, 9, 9).unwrap(),
        BatchLayout::column_major(0, 3, 3).unwrap(),
        BatchLayout::column_major(40, 0, 0).unwrap(),
    ];
    for layout in layouts {
        let mut a = Generator::Uniform.batch::<T>(layout, 5).unwrap();
        // A singular matrix in the second part, where there is one.
        for k in 0..layout.rows().min(if layout.batch() > 65 { usize::MAX } else { 0 }) {
            let at = layout.offset(65, k, 1);
            a.as_mut_slice()[at] = T::from_f64(0.0, 0.0);
        }
        for (batch, cols) in [(layout.batch(), 3), (1, 2)] {
            if batch == 1 && layout.batch() == 0 {
                continue;
            }
            let right = right(batch, layout.rows(), cols);
            assert_eq!(all(&two, &a, &right).unwrap(), all(&one, &a, &right).unwrap(), "{layout}, {batch} right");
        }
    }
}

#[test]
fn real_bits_are_those_of_one_gpu() {
    bits_are_those_of_one_gpu::<f64>();
}

#[test]
fn complex_bits_are_those_of_one_gpu() {
    bits_are_those_of_one_gpu::<Complex<f32>>();
}

#[test]
fn one_matrix_serves_right_hand_sides_on_both() {
    let Some((one, two)) = gpus() else { return };
    let a = Generator::Uniform.batch::<f64>(BatchLayout::column_major(1, 6, 6).unwrap(), 1).unwrap();
    let b = right(90, 6, 1);
    fn solved<B: BatchedSolve<f64>>(backend: &B, a: &Batch<f64>, b: &Batch<f64>) -> Batch<f64> {
        let x = backend.solve(&backend.to_device(a).unwrap(), &backend.to_device(b).unwrap()).unwrap().x;
        backend.to_host(&x).unwrap()
    }
    assert_eq!(bits(solved(&two, &a, &b).as_slice()), bits(solved(&one, &a, &b).as_slice()));
}
