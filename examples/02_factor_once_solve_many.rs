//! Factors once and solves for many right-hand sides, plain and transposed, and takes the determinant along.

use batchla::{Batch, BatchedFactorize, BatchedSolve, Error, Transpose};

fn main() -> Result<(), Error> {
    let backend = batchla::auto()?;
    let n = 12;
    let a = Batch::<f64>::from_fn(
        200,
        n,
        n,
        |b, i, j| if i == j { 4.0 + (b % 7) as f64 } else { 1.0 / (1 + i + j) as f64 },
    )?;
    let factors = backend.factorize(&a)?;

    for step in 0..5 {
        let transpose = if step % 2 == 0 { Transpose::None } else { Transpose::Transpose };
        let b = Batch::<f64>::from_fn(200, n, 3, |m, i, j| (m + i * step + j) as f64 % 5.0 - 2.0)?;
        let x = factors.solve_transposed(&b, transpose)?.x;
        for (m, (x, b)) in x.view().matrices().zip(b.view().matrices()).enumerate() {
            let Some(a) = a.view().matrix(m) else { continue };
            let a = if transpose == Transpose::None { a } else { a.transposed() };
            for i in 0..n {
                for j in 0..3 {
                    let product: f64 = (0..n).map(|k| a.at(i, k) * x.at(k, j)).sum();
                    assert!((product - b.at(i, j)).abs() < 1e-13, "step {step}, matrix {m}, row {i}");
                }
            }
        }
        println!("step {step}: 200 systems of order {n} with 3 right-hand sides ({transpose:?}) hold");
    }

    let determinants = factors.determinant()?;
    let d = determinants.values()[0];
    println!("det A_0 = {:.6e} (sign {}, log {:.6})", d.value(), d.sign, d.log_abs);

    // One matrix may serve a whole batch of right-hand sides; one call needs no factors.
    let one = Batch::<f64>::from_fn(1, n, n, |_, i, j| if i == j { 2.0 } else { 0.0 })?;
    let b = Batch::<f64>::from_fn(50, n, 1, |m, i, _| (m * i) as f64)?;
    let x = backend.solve(&one, &b)?.x;
    assert_eq!(x.get(49, 11, 0), Some(49.0 * 11.0 / 2.0));
    Ok(())
}
