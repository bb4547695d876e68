//! What core gives every backend: ways to the device and back, and the cross-check of two.

use batchla_core::{
    Backend, Batch, BatchLayout, BatchedFactorize, BatchedInvert, Complex, Determinant, DeterminantArgs, Error,
    ErrorKind, Extras, InvertArgs, Options, Outcome, Prepared, Problem, Report, ReportMut, Scalar, Source, SourceKind,
    Staged,
};
use batchla_testkit::{Generator, Order, Reference, Scope, cross_check, run};

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

#[test]
fn an_explanation_tells_what_will_be_prepared() -> Result<(), Error> {
    let layout = BatchLayout::column_major(7, 3, 3)?;
    let problem = Problem::invert::<f64>(SourceKind::Matrix, layout, layout)?;
    for options in [Options::default(), Options::default().with_plan("textbook")] {
        let explained = Reference.explain(&problem, &options)?;
        // The matrix and a column of eight bytes an element, and three pivots of four.
        assert_eq!(explained.workspace_bytes, 12 * 8 + 3 * 4);
        assert_eq!(explained.workspace_bytes, Reference.prepare(&problem, &options)?.workspace_bytes());
        assert_eq!((explained.name.as_str(), &explained.problem), ("textbook", &problem));
    }
    Ok(())
}

#[test]
fn a_report_tells_outcomes_determinants_and_conditions_where_they_were_wanted() -> Result<(), Error> {
    // diag(2, 4), whose inverse is diag(1/2, 1/4), a matrix of ones, and one that is not finite.
    let a = Batch::<f64>::from_fn(3, 2, 2, |b, i, j| match b {
        0 => [[2.0, 0.0], [0.0, 4.0]][i][j],
        1 => 1.0,
        _ => f64::NAN,
    })?;
    let (source, mut x) = (Source::Matrix(a.view()), Batch::zeros(*a.layout())?);
    let plain = Problem::invert::<f64>(SourceKind::Matrix, *a.layout(), *a.layout())?;
    let mut run = |extras: Extras| -> Result<Report<f64>, Error> {
        let prepared = Reference.prepare(&plain.clone().with_extras(extras)?, &Options::default())?;
        let mut report = Report::allocate(&Reference, 3, extras)?;
        let (mut x, mut workspace) = (x.view_mut(), Reference.workspace(&prepared)?);
        Reference.run_invert(&prepared, InvertArgs::new(&source, &mut x, report.view_mut()), &mut workspace)?;
        Ok(report)
    };
    let report = run(Extras::none().with_determinant().with_condition())?;
    let outcomes = [Outcome::Regular, Outcome::Singular { column: 1 }, Outcome::NotFinite];
    assert_eq!(report.read_outcomes()?, outcomes);
    assert!(report.outcomes().eq(outcomes.into_iter().enumerate()) && !report.all_regular());
    let values = |all: &[Determinant<f64>]| all.iter().map(|d| d.value()).collect::<Vec<_>>();
    let near = |all: &[f64]| all.len() == 3 && (all[0] - 8.0).abs() < 1e-14 && all[1] == 0.0 && all[2].is_nan();
    assert!(report.determinants().is_some_and(|all| near(&values(all))));
    assert!(report.read_determinants()?.is_some_and(|all| near(&values(&all))));
    let known = |all: &[f64]| all.len() == 3 && all[..2] == [2.0, f64::INFINITY] && all[2].is_nan();
    assert!(report.conditions().is_some_and(known));
    assert!(report.read_conditions()?.is_some_and(|all| known(&all)));
    let report = run(Extras::none())?;
    assert!(report.determinants().is_none() && report.read_determinants()?.is_none());
    assert!(report.conditions().is_none() && report.read_conditions()?.is_none());
    Ok(())
}

#[test]
fn a_batch_without_a_failed_matrix_is_all_regular() -> Result<(), Error> {
    assert!(Reference.invert(&two()?)?.report.all_regular());
    Ok(())
}

#[test]
fn a_staged_backend_is_the_one_underneath_with_every_layout_and_extra() -> Result<(), Error> {
    fn conforms<T: Scalar>() {
        let scope = Scope { orders: &[0, 1, 2, 5, 17], thorough: 5, many: None, huge: None, ..Scope::QUICK };
        for (name, verdict) in run::<T, _>(&Staged::new(Reference), &scope, &Options::default()) {
            assert!(verdict.is_ok(), "{name}: {verdict:?}");
        }
    }
    conforms::<f64>();
    conforms::<Complex<f32>>();
    let (staged, layout) = (Staged::new(Reference), BatchLayout::row_major(2, 3, 3)?.with_group_stride(20)?);
    let problem = Problem::invert::<f64>(SourceKind::Matrix, layout, layout)?;
    let prepared = staged.prepare(&problem, &Options::default())?;
    assert_eq!((staged.name(), prepared.problem(), prepared.workspace_bytes()), (Reference.name(), &problem, 108));
    assert_eq!(staged.explain(&problem, &Options::default())?.workspace_bytes, 108);
    Ok(())
}
