use super::*;
use crate::reference::Reference;

const GAP: f64 = -7.5;

fn guarded<R>(see: impl FnOnce(Guarded<'_, Reference>) -> Result<R, String>) -> Result<R, String> {
    see(Guarded { backend: &Reference, options: &Options::default() })
}

/// Matrices of 3 x 2 whose element (i, j) of matrix b is `100 b + 10 i + j`.
fn numbered() -> Result<Batch<f64>, String> {
    Batch::from_fn(3, 3, 2, |b, i, j| (100 * b + 10 * i + j) as f64).map_err(in_words)
}

#[test]
fn all_nan_are_one_and_signs_of_zeros_and_imaginary_parts_are_told_apart() {
    use batchla_core::Complex;
    assert_eq!(bits(f64::NAN), bits(-f64::NAN));
    assert_ne!(bits(0.0), bits(-0.0));
    assert_ne!(bits(1.0), bits(f64::NAN));
    assert_ne!(bits(Complex::new(1.0, 0.0)), bits(Complex::new(1.0, 2.0)));
}

#[test]
fn every_element_may_be_written_and_no_gap_or_tail() -> Result<(), String> {
    let host = numbered()?;
    for order in Order::ALL {
        let layout = order.layout(3, 3, 2).map_err(in_words)?;
        let ours: Vec<usize> =
            (0..3).flat_map(|b| (0..2).flat_map(move |j| (0..3).map(move |i| layout.offset(b, i, j)))).collect();
        for at in 0..layout.span() + TAIL {
            let back = guarded(|guarded| {
                let mut laid = guarded.lay_out(&host, layout, GAP).map_err(in_words)?;
                laid.as_mut_slice()[at] = -1.0;
                guarded.take_back(&laid, GAP, "a test")
            });
            match ours.contains(&at) {
                true => assert_eq!(back?.as_slice().iter().filter(|&&x| x == -1.0).count(), 1, "{order:?}, {at}"),
                false => {
                    assert!(back.is_err_and(|what| what.contains(&format!("gap at element {at} "))), "{order:?}, {at}")
                }
            }
        }
        let whole =
            guarded(|guarded| guarded.take_back(&guarded.lay_out(&host, layout, GAP).map_err(in_words)?, GAP, ""))?;
        assert_eq!(whole.as_slice(), host.as_slice(), "{order:?}");
    }
    Ok(())
}

#[test]
fn an_input_that_was_written_is_seen() -> Result<(), String> {
    let host = numbered()?;
    let layout = Order::PaddedRows.layout(3, 3, 2).map_err(in_words)?;
    let after = |at: Option<usize>| {
        guarded(|guarded| {
            let mut laid = guarded.lay_out(&host, layout, f64::nan()).map_err(in_words)?;
            at.into_iter().for_each(|at| laid.as_mut_slice()[at] = 0.5);
            guarded.unchanged(&laid, &host, "a test")
        })
    };
    assert_eq!(after(None), Ok(()));
    assert!(after(Some(layout.offset(2, 1, 1))).is_err_and(|what| what.contains("input element 16 was changed")));
    assert!(after(Some(layout.offset(0, 0, 1) + 1)).is_err_and(|what| what.contains("gap")));
    Ok(())
}

#[test]
fn words_must_all_be_written_and_none_behind_them() -> Result<(), String> {
    let after = |written: &[usize]| {
        guarded(|guarded| {
            let mut words = guarded.words(3).map_err(in_words)?;
            written.iter().for_each(|&at| words[at] = at as u32);
            guarded.read_words(&words, 3, "pivots")
        })
    };
    assert_eq!(after(&[0, 1, 2]), Ok(vec![0, 1, 2]));
    assert!(after(&[0, 2]).is_err_and(|what| what.contains("number 1 was not written")));
    assert!(after(&[0, 1, 2, 3]).is_err_and(|what| what.contains("behind their end")));
    assert!(after(&[0, 1, 2, 3 + TAIL - 1]).is_err_and(|what| what.contains("behind their end")));
    Ok(())
}
