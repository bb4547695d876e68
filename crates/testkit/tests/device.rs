//! What core gives every backend: ways to the device and back, and the cross-check of two.

use batchla_core::{
    Backend, Batch, BatchLayout, BatchedFactorize, Determinant, DeterminantArgs, Error, ErrorKind, Problem, ReportMut,
    Source, SourceKind,
};
use batchla_testkit::{Generator, Order, Reference, cross_check};

#[test]
fn batches_of_every_order_go_to_the_device_and_back() -> Result<(), Error> {
    for order in Order::ALL {
        let layout = order.layout(6, 3, 2)?;
        let host = Batch::<f64>::from_fn(6, 3, 2, |b, i, j| (100 * b + 10 * i + j) as f64)?.to_layout(layout)?;
        let device = Reference.to_device(&host)?;
        assert_eq!(*device.layout(), layout.packed()?, "{order:?}");
        let back = Reference.to_host(&device)?;
        for (b, i, j) in (0..6).flat_map(|b| (0..3).flat_map(move |i| (0..2).map(move |j| (b, i, j)))) {
            assert_eq!(back.get(b, i, j), Some((100 * b + 10 * i + j) as f64), "{order:?}");
        }
    }
    Ok(())
}

#[test]
fn two_backends_that_agree_exempt_nothing_on_random_input() -> Result<(), Error> {
    let a = Generator::Normal.batch::<f32>(BatchLayout::column_major(500, 24, 24)?, 3)?;
    let agreement = cross_check(&Reference, &Reference, &a)?;
    assert!(agreement.holds() && agreement.exempt_share() == 0.0, "{agreement}");
    assert_eq!(agreement.matrices, 500);
    Ok(())
}

/// Two matrices of order 2 that exchange different rows.
fn two() -> Result<Batch<f64>, Error> {
    Batch::from_fn(2, 2, 2, |b, i, j| [[[1.0, 2.0], [4.0, 3.0]], [[8.0, 5.0], [6.0, 7.0]]][b][i][j])
}

#[test]
fn factors_multiply_back_to_each_matrix() -> Result<(), Error> {
    let a = two()?;
    let back = Reference.factorize(&a)?.reconstruct()?;
    assert!(a.as_slice().iter().zip(back.as_slice()).all(|(x, y)| (x - y).abs() < 1e-14), "{back:?}");
    Ok(())
}

#[test]
fn each_matrix_has_its_exchanges_and_none_is_beyond_the_last() -> Result<(), Error> {
    let factors = Reference.factorize(&two()?)?;
    assert_eq!(factors.record().pivots(0), Some(&[1, 1][..]));
    assert_eq!(factors.record().pivots(1), Some(&[0, 1][..]));
    assert_eq!(factors.record().pivots(2), None);
    Ok(())
}

#[test]
fn determinants_of_other_matrices_than_were_prepared_are_refused() -> Result<(), Error> {
    let problem = Problem::determinant::<f64>(SourceKind::Matrix, BatchLayout::column_major(2, 3, 3)?)?;
    let (a, mut outcomes, mut determinants) = (two()?, [0; 2], [Determinant::zero(); 2]);
    let source = Source::Matrix(a.view());
    let report = ReportMut::new(&mut outcomes[..]).with_determinants(&mut determinants[..]);
    let refused = DeterminantArgs::new(&source, report).check(&problem).err();
    assert_eq!(
        refused.map(|error| (error.kind(), error.operation().to_owned())),
        Some((ErrorKind::Argument, "determinant".to_owned()))
    );
    Ok(())
}
