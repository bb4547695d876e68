use batchla_core::{Batch, Report, SourceKind};

use super::*;

fn diagonal<T: Scalar>(batch: usize, n: usize) -> Result<Batch<T>, Error> {
    Batch::from_fn(batch, n, n, |_, i, j| if i == j { T::from_f64(2.0, 0.0) } else { zero() })
}

/// Inverts diagonal matrices of order 3 with this workspace.
fn invert_with(workspace: &mut ReferenceWorkspace) -> Result<Batch<f64>, Error> {
    let a = diagonal::<f64>(2, 3)?;
    let problem = Problem::invert::<f64>(SourceKind::Matrix, *a.layout(), *a.layout())?;
    let prepared = Reference.prepare(&problem, &Options::default())?;
    let (mut x, mut report) = (Batch::zeros(*a.layout())?, Report::allocate(&Reference, 2, problem.extras())?);
    let source = Source::Matrix(a.view());
    Reference.run_invert(&prepared, InvertArgs::new(&source, &mut x.view_mut(), report.view_mut()), workspace)?;
    Ok(x)
}

fn workspace<T: Scalar>(n: usize) -> Result<ReferenceWorkspace, Error> {
    let layout = BatchLayout::column_major(1, n, n)?;
    let problem = Problem::invert::<T>(SourceKind::Matrix, layout, layout)?;
    Reference.workspace(&Reference.prepare(&problem, &Options::default())?)
}

#[test]
fn a_workspace_serves_orders_up_to_its_own_and_its_scalar_alone() -> Result<(), Error> {
    for n in [3, 4, 9] {
        assert_eq!(invert_with(&mut workspace::<f64>(n)?)?.get(1, 2, 2), Some(0.5), "order {n}");
    }
    for mut other in [workspace::<f64>(2)?, workspace::<f64>(0)?, workspace::<f32>(3)?, workspace::<Complex<f64>>(3)?] {
        let refused = invert_with(&mut other).map_err(|error| error.kind()).err();
        assert_eq!(refused, Some(ErrorKind::Argument));
    }
    let without_pivots = ReferenceWorkspace { pivots: vec![0; 2], ..workspace::<f64>(3)? };
    let without_column =
        ReferenceWorkspace { numbers: Box::new(HostArray::<f64>::zeroed(11)?), ..workspace::<f64>(3)? };
    for mut lacking in [without_pivots, without_column] {
        assert!(invert_with(&mut lacking).is_err());
    }
    Ok(())
}

#[test]
fn exchanges_with_rows_that_there_are_not_give_no_solution_and_no_panic() -> Result<(), Error> {
    let lu = diagonal::<f64>(2, 2)?;
    for (pivots, outcomes) in [
        ([0, 1, 0, 1], [Outcome::Regular; 2]),
        ([0, 1, 0, 2], [Outcome::Regular, Outcome::NotFinite]),
        ([9, 1, 0, 1], [Outcome::NotFinite, Outcome::Regular]),
    ] {
        let factors = FactorsRef { lu: lu.view(), pivots: &pivots[..], outcomes: &[0, 0][..] };
        let inverse = Reference.invert_factored(factors)?;
        assert_eq!(inverse.report.read_outcomes()?, outcomes);
        for (b, outcome) in outcomes.into_iter().enumerate() {
            let x = inverse.batch.get(b, 1, 1).unwrap_or(0.0);
            assert!(if outcome.is_regular() { x == 0.5 } else { x.is_nan() }, "{pivots:?}: {x}");
        }
    }
    Ok(())
}

#[test]
fn a_one_norm_is_the_largest_column_sum() -> Result<(), Error> {
    let a = Batch::from_fn(1, 2, 3, |_, i, j| [[1.0, -5.0, 0.0], [3.0, 4.0, -2.0]][i][j])?;
    assert_eq!(a.view().matrix(0).map(|a| one_norm(&a)), Some(9.0));
    Ok(())
}

#[test]
fn the_textbook_is_the_one_plan() -> Result<(), Error> {
    let layout = BatchLayout::column_major(1, 2, 2)?;
    let problem = Problem::invert::<f32>(SourceKind::Matrix, layout, layout)?;
    let prepared = Reference.prepare(&problem, &Options::default().with_plan("textbook"))?;
    assert_eq!((prepared.plan().name(), prepared.plan().arithmetic()), ("textbook", "textbook"));
    assert_eq!((prepared.problem(), prepared.workspace_bytes()), (&problem, 6 * 4 + 2 * 4));
    assert!(Reference.prepare(&problem, &Options::default().with_plan("text")).is_err());
    Ok(())
}
