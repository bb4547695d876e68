//! What happens when a matrix fails: it is data, it is named, and its neighbours never notice.

use batchla::{Batch, BatchedDeterminant, BatchedInvert, Error, Outcome};

fn main() -> Result<(), Error> {
    let backend = batchla::auto()?;
    let a = Batch::<f64>::from_fn(5, 3, 3, |b, i, j| match (b, i, j) {
        (1, _, 2) => 0.0,      // matrix 1: column 2 is zero
        (3, 0, 0) => f64::NAN, // matrix 3 holds a NaN
        _ if i == j => 3.0,
        _ => 1.0,
    })?;

    let inverse = backend.invert(&a)?; // an `Err` would mean that the call failed, not a matrix
    for (b, outcome) in inverse.outcomes() {
        match outcome {
            Outcome::Regular => println!("matrix {b}: inverted"),
            Outcome::Singular { column } => println!("matrix {b}: singular, the pivot of column {column} is zero"),
            Outcome::NotFinite => println!("matrix {b}: holds or becomes NaN or infinite"),
        }
    }
    let outcomes: Vec<Outcome> = inverse.outcomes().map(|(_, outcome)| outcome).collect();
    let expected =
        [Outcome::Regular, Outcome::Singular { column: 2 }, Outcome::Regular, Outcome::NotFinite, Outcome::Regular];
    assert_eq!(outcomes, expected);

    // The inverse of a failed matrix is all NaN, never stale numbers; LAPACK's `info` is there too.
    assert!(inverse.batch.get(1, 0, 0).is_some_and(f64::is_nan));
    assert_eq!(outcomes[1].info(), 3);
    // Neighbours are exactly what they would have been alone.
    assert_eq!(inverse.batch.get(0, 0, 0), inverse.batch.get(4, 0, 0));
    // The determinant of a singular matrix is zero.
    assert_eq!(backend.determinant(&a)?.values()[1].value(), 0.0);
    Ok(())
}
