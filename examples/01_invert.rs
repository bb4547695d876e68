//! Inverts a batch and checks the result: the whole way in a dozen lines.

use batchla::{Backend, Batch, BatchedInvert, Error};

fn main() -> Result<(), Error> {
    let backend = batchla::auto()?;
    println!("{} ({})", backend.describe(), backend.why());

    // 1000 matrices of order 8, each dominated by its diagonal.
    let n = 8;
    let a =
        Batch::<f64>::from_fn(
            1000,
            n,
            n,
            |b, i, j| {
                if i == j { 10.0 } else { ((7 * b + 3 * i + 5 * j) % 11) as f64 / 11.0 }
            },
        )?;
    let inverse = backend.invert(&a)?;

    let mut worst = 0.0f64;
    for ((b, outcome), (a, x)) in inverse.outcomes().zip(a.view().matrices().zip(inverse.batch.view().matrices())) {
        assert!(outcome.is_regular(), "matrix {b} is {outcome}");
        for i in 0..n {
            for j in 0..n {
                let product: f64 = (0..n).map(|k| x.at(i, k) * a.at(k, j)).sum();
                let error = (product - if i == j { 1.0 } else { 0.0 }).abs();
                assert!(error < 1e-14, "matrix {b}: (XA - I)[{i}, {j}] = {error:e}");
                worst = worst.max(error);
            }
        }
    }
    println!("1000 inverses of order {n}: the largest element of XA - I is {worst:.1e}");
    Ok(())
}
