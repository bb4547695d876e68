//! Code that is generic over the backend: written once, run on any, with the data staying where the backend keeps it.

use batchla::{Backend, Batch, BatchRef, BatchedInvert, BatchedSolve, Cpu, Error, Memory, Real, Scalar};
use batchla_testkit::Reference;

/// The largest difference between `A⁻¹ b` by the inverse and by a solve, over a batch.
fn inverse_against_solve<T, B>(backend: &B, a: &Batch<T>, b: &Batch<T>) -> Result<f64, Error>
where
    T: Scalar,
    B: BatchedInvert<T> + BatchedSolve<T>,
{
    let (a, b) = (backend.to_device(a)?, backend.to_device(b)?); // no copy is visible here: a GPU keeps both
    let x = backend.solve(&a, &b)?.x;
    let inverse = backend.invert(&a)?.batch;
    let (x, inverse, b) = (backend.to_host(&x)?, backend.to_host(&inverse)?, backend.to_host(&b)?);
    let n = inverse.layout().rows();
    let mut worst = 0.0f64;
    for ((x, inverse), b) in x.view().matrices().zip(inverse.view().matrices()).zip(b.view().matrices()) {
        for i in 0..n {
            let product: T = (0..n).map(|k| inverse.at(i, k) * b.at(k, 0)).sum();
            worst = worst.max((product - x.at(i, 0)).modulus().to_f64());
        }
    }
    Ok(worst)
}

/// A function that needs nothing but an inversion says just that.
fn trace_of_inverses<B: BatchedInvert<f64>>(backend: &B, a: BatchRef<'_, f64, B::Memory>) -> Result<f64, Error> {
    let layout = *a.layout();
    let inverse = backend.invert(a)?.batch;
    let mut host = vec![0.0; layout.span()];
    B::Memory::read(inverse.slice(), &mut host)?;
    Ok((0..layout.batch()).map(|b| (0..layout.rows()).map(|i| host[layout.offset(b, i, i)]).sum::<f64>()).sum())
}

fn main() -> Result<(), Error> {
    let a = Batch::<f64>::from_fn(
        100,
        16,
        16,
        |b, i, j| if i == j { 8.0 } else { ((b + 2 * i + 3 * j) % 5) as f64 / 5.0 },
    )?;
    let b = Batch::<f64>::from_fn(100, 16, 1, |b, i, _| (b + i) as f64)?;
    let (cpu, any) = (Cpu::new(), batchla::auto()?);
    for (name, error) in [
        ("cpu", inverse_against_solve(&cpu, &a, &b)?),
        ("reference", inverse_against_solve(&Reference, &a, &b)?),
        (any.name(), inverse_against_solve(&any, &a, &b)?),
    ] {
        println!("{name}: inverse and solve differ by at most {error:.1e}");
        assert!(error < 1e-11);
    }
    let (one, other) = (trace_of_inverses(&cpu, a.view())?, trace_of_inverses(&Reference, a.view())?);
    assert!((one - other).abs() < 1e-10, "{one} and {other}");
    Ok(())
}
