//! The matrices of a trial: kinds that come again and again.

use batchla_core::{Batch, BatchLayout, Error, Scalar, ScalarKind};
use batchla_testkit::Generator;

use super::Trial;

/// Matrix `b` is of kind `b % Trial::KINDS`.
pub(super) fn matrices<T: Scalar>(batch: usize, order: usize) -> Result<Batch<T>, Error> {
    let layout = BatchLayout::column_major(batch, order, order)?;
    let normal: Batch<T> = Generator::Normal.batch(layout, 7)?;
    let ties: Batch<T> = Generator::SmallIntegers.batch(layout, 7)?;
    let single = matches!(T::KIND, ScalarKind::F32 | ScalarKind::C32);
    let power = |of_single: i32, of_double: i32| 2_f64.powi(if single { of_single } else { of_double });
    // Pivots below `least`, or from `most` on, are divided by: their reciprocals are not used.
    let (tiny, least, most) = (power(-70, -500), power(-62, -479), power(63, 479));
    let number = |x| T::from_f64(x, 0.0);
    // Of so large a size, |re| + |im|.
    let sized = |size: f64| if T::IS_COMPLEX { T::from_f64(0.75 * size, 0.25 * size) } else { number(size) };
    let middle = order / 2;
    Batch::from_fn(batch, order, order, |b, i, j| {
        let at = |batch: &Batch<T>, i: usize, j: usize| batch.as_slice()[(b * order + j) * order + i];
        let x = at(&normal, i, j);
        match b % Trial::KINDS {
            // Its largest column is the last.
            1 if j + 1 == order => x + at(&normal, i, 0) * number(4.0),
            2 => x * number(tiny),
            3 if j == middle && i + 1 == order => T::nan(),
            4 => at(&ties, i, j),
            // The second column's largest stand in two warps, and the first of them, as rows stand then, in the later warp; in those that follow the largest is
            // another of its lane's rows.
            5 if order > 40 => match (i, j) {
                (40, 0) => number(2.0),
                (0, 0 | 1) | (32, 1) => T::one(),
                _ if i == j + 32 && j > 1 => number(4.0),
                _ if i == j && j > 1 => number(3.0),
                _ => T::zero(),
            },
            6 if j == middle => T::zero(),
            // Pivots at both ends of what may be divided by through its reciprocal.
            7 if i == j && i < 2 => sized(if i == 0 { least } else { most }),
            7 => x * number(tiny),
            8 if i == 0 && j == 0 => sized(most),
            8 => x * number(power(55, 470)),
            // Parts of one size.
            9 if i >= j => T::from_f64(tiny, tiny),
            // Zeros of either sign.
            10 if i == j => number(-tiny),
            10 if i + 1 == order => number(tiny / 2.0),
            11 if i == j => T::from_f64(0.0, -tiny),
            11 if i > j => T::from_f64(0.0, -0.0),
            9..=11 => T::zero(),
            // A column whose elements differ in their last bits.
            12 if j == 0 => number(1.0 + i as f64 * power(-20, -40)),
            // Tiny pivots and usual ones.
            13 if j % 2 == 0 => x * number(tiny),
            _ => x,
        }
    })
}
