use batchla_core::Determinant;

use super::*;

fn left() -> Result<Left<f64>, String> {
    Ok(Left {
        out: Batch::from_fn(2, 2, 2, |_, i, j| (10 * i + j) as f64).map_err(in_words)?,
        pivots: vec![0, 1, 0, 1],
        outcomes: vec![Outcome::Regular; 2],
        determinants: Some(vec![Determinant { sign: 1.0, log_abs: 2.0 }; 2]),
        conditions: Some(vec![3.0; 2]),
        arithmetic: "a".to_owned(),
    })
}

type Spoil = fn(&mut Left<f64>);

#[test]
fn whatever_differs_of_a_matrix_is_named_and_its_neighbour_is_not_asked() -> Result<(), String> {
    let spoilt = |spoil: Spoil| -> Result<[Option<String>; 2], String> {
        let (one, mut other) = (left()?, left()?);
        spoil(&mut other);
        Ok([0, 1].map(|b| difference((&one, b), (&other, b))))
    };
    assert_eq!(spoilt(|_| {})?, [None, None]);
    let spoils: [(&str, Spoil); 6] = [
        ("element 3 is 11 and 5", |left| left.out.as_mut_slice()[7] = 5.0),
        ("the outcomes are", |left| left.outcomes[1] = Outcome::NotFinite),
        ("the pivots are", |left| left.pivots[2] = 1),
        ("determinants or conditions", |left| left.determinants.iter_mut().for_each(|d| d[1].sign = -1.0)),
        ("determinants or conditions", |left| left.determinants.iter_mut().for_each(|d| d[1].log_abs = 2.5)),
        ("determinants or conditions", |left| left.conditions.iter_mut().for_each(|c| c[1] = f64::NAN)),
    ];
    for (words, spoil) in spoils {
        let [first, second] = spoilt(spoil)?;
        assert_eq!(first, None, "{words}");
        assert!(second.as_ref().is_some_and(|what| what.contains(words)), "{second:?}, not {words}");
    }
    // Without factors there are no pivots to compare.
    let mut none = left()?;
    none.pivots.clear();
    assert_eq!(difference((&none, 1), (&none, 1)), None);
    Ok(())
}

#[test]
fn right_hand_sides_are_nowhere_zero_and_all_different() -> Result<(), String> {
    let b = right_hand_sides::<f64>(3, 5, 3)?;
    assert!(b.as_slice().iter().all(|&x| (1.0..=11.0).contains(&x)));
    let columns: std::collections::HashSet<String> =
        b.as_slice().chunks(5).map(|column| format!("{column:?}")).collect();
    assert_eq!(columns.len(), 9);
    Ok(())
}
