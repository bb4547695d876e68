//! `X = U⁻¹ L⁻¹ P⁻¹` in every lane, in the place of the factors: `U` is inverted, then `X L = U⁻¹` solved from the last panel of columns on.

use std::ops::Range;

use batchla_core::Scalar;

use super::exchanges::Exchanges;
use super::leading_dimension;
use super::tile::{COLUMNS, for_columns, load, part, rows, store, subtract};
use super::tiny;
use crate::simd::{Lanes, MOST_LANES, Vector, Work, outline};

/// Inverts the factored matrices of a group. Lanes whose factors are not finite, or have a zero on the diagonal, get anything.
pub struct Getri<'a, T> {
    pub(crate) a: &'a mut [T],
    /// Room for [`COLUMNS`] columns.
    pub(crate) aside: &'a mut [T],
    pub(crate) order: usize,
    pub(crate) exchanges: &'a [u32],
    /// Whether columns come to their places here, and not as the matrices are handed over.
    pub(crate) exchange: bool,
}

impl<T: Scalar> Work<T> for Getri<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        let Self { a, aside, order: n, exchanges, exchange } = self;
        if L::PARTS == 1 && n == KNOWN {
            outline::<L, _>(OfKnownOrder(Self { a, aside, order: n, exchanges, exchange }));
        } else {
            invert(L::from_numbers_mut(a), L::from_numbers_mut(aside), n, exchanges, exchange);
        }
    }
}

/// An order that is often met, and whose sweeps take a tenth less where the compiler knows it; those of complex matrices do not.
const KNOWN: usize = 16;

/// Inverts matrices of that order.
struct OfKnownOrder<'a, T>(Getri<'a, T>);

impl<T: Scalar> Work<T> for OfKnownOrder<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        let Getri { a, aside, exchanges, exchange, .. } = self.0;
        invert(L::from_numbers_mut(a), L::from_numbers_mut(aside), KNOWN, exchanges, exchange);
    }
}

/// Inverts the factored matrices of a group; without `exchange`, which the smallest do not look at, columns of each lane are in the order of the rows of `U`.
#[inline(always)]
pub(super) fn invert<L: Lanes, E: Exchanges<L> + ?Sized>(
    a: &mut [L],
    aside: &mut [L],
    n: usize,
    exchanges: &E,
    exchange: bool,
) {
    match n {
        2 => return tiny::invert::<L, E, 2>(a, exchanges),
        3 => return tiny::invert::<L, E, 3>(a, exchanges),
        4 => return tiny::invert::<L, E, 4>(a, exchanges),
        _ => {}
    }
    let ld = leading_dimension(n);
    let whole = n / COLUMNS * COLUMNS;
    for j in (0..whole).step_by(COLUMNS) {
        invert_upper::<L, COLUMNS>(a, ld, j);
    }
    for j in whole..n {
        invert_upper::<L, 1>(a, ld, j);
    }
    for j in (whole..n).rev() {
        solve_lower::<L, 1>(a, aside, (n, ld), j);
    }
    for j in (0..whole).step_by(COLUMNS).rev() {
        solve_lower::<L, COLUMNS>(a, aside, (n, ld), j);
    }
    for k in (0..if exchange { n } else { 0 }).rev() {
        let index = exchanges.index(n, k);
        if n - k <= 2 * L::COUNT {
            for_columns!(0..n, |i, R| choose_column::<L, R>(a, (n, ld), k, i, index));
        } else {
            let mut rows = [0; MOST_LANES];
            index.store_counts(&mut rows);
            for_columns!(0..n, |i, R| exchange_columns::<L, R>(a, ld, k, i, &rows));
        }
    }
}

/// Rows of a tile.
const ROWS: usize = 4;

/// `C` columns of `U⁻¹` from `j` on, from those before: minus their sum, weighted by `U`'s columns, times the reciprocal of its diagonal.
#[inline(always)]
fn invert_upper<L: Lanes, const C: usize>(a: &mut [L], ld: usize, j: usize) {
    let (x, u) = a.split_at_mut(j * ld);
    let corner = load::<L, C, C>(u, j, ld);
    let mut diagonal = [L::zero(); C];
    for c in 0..C {
        diagonal[c] = corner[c][c].any_reciprocal();
    }
    let mut i = 0;
    while j - i >= ROWS {
        invert_rows::<L, ROWS, C>(x, u, ld, i, j, &corner, &diagonal);
        i += ROWS;
    }
    while i < j {
        invert_rows::<L, 1, C>(x, u, ld, i, j, &corner, &diagonal);
        i += 1;
    }
    for c in 0..C {
        u[j + c + c * ld] = diagonal[c];
        for r in 0..c {
            let mut sum = L::zero();
            for k in r..c {
                sum = sum.minus_product(u[j + r + k * ld], corner[c][k]);
            }
            u[j + r + c * ld] = sum.times(diagonal[c]);
        }
    }
}

/// The rows of these columns from `i` on, which are above the diagonal. Those below are `U`'s still.
#[inline(always)]
fn invert_rows<L: Lanes, const R: usize, const C: usize>(
    x: &[L],
    u: &mut [L],
    ld: usize,
    i: usize,
    j: usize,
    corner: &[[L; C]; C],
    diagonal: &[L; C],
) {
    let mut sum = [[L::zero(); R]; C];
    for k in 0..R {
        for r in 0..=k {
            let x = x[i + r + (i + k) * ld];
            for c in 0..C {
                sum[c][r] = sum[c][r].minus_product(x, u[i + k + c * ld]);
            }
        }
    }
    subtract::<L, R, C, false>(&mut sum, |k| rows(x, i + (i + R + k) * ld), part(u, ld, 0, i + R..j));
    for c in 0..C {
        for r in 0..R {
            for k in 0..c {
                sum[c][r] = sum[c][r].minus_product(sum[k][r], corner[c][k]);
            }
            sum[c][r] = sum[c][r].times(diagonal[c]);
        }
    }
    store(u, i, ld, sum);
}

/// `C` columns of `X` from `j` on, once those after are done: minus their sum, weighted by `L`'s columns, which are set aside.
#[inline(always)]
fn solve_lower<L: Lanes, const C: usize>(a: &mut [L], l: &mut [L], (n, ld): (usize, usize), j: usize) {
    let (before, after) = a.split_at_mut((j + C) * ld);
    let x = &mut before[j * ld..];
    // Row by row: the copy of a column would be a call.
    for i in j + 1..n {
        for c in 0..C.min(i - j) {
            l[c * ld + i] = x[c * ld + i];
            x[c * ld + i] = L::zero();
        }
    }
    let mut i = 0;
    while n - i >= ROWS {
        solve_rows::<L, ROWS, C>(x, after, l, (n, ld), i, j);
        i += ROWS;
    }
    while i < n {
        solve_rows::<L, 1, C>(x, after, l, (n, ld), i, j);
        i += 1;
    }
}

#[inline(always)]
fn solve_rows<L: Lanes, const R: usize, const C: usize>(
    x: &mut [L],
    after: &[L],
    l: &[L],
    (n, ld): (usize, usize),
    i: usize,
    j: usize,
) {
    // The products are summed before the difference, as LAPACK's are: where growth cancels, one by one loses it.
    let mut sum = [[L::zero(); R]; C];
    subtract::<L, R, C, true>(&mut sum, |k| rows(after, i + k * ld), part(l, ld, 0, j + C..n));
    let mut done = load::<L, R, C>(x, i, ld);
    for c in (0..C).rev() {
        for k in (c + 1..C).rev() {
            let l = l[j + k + c * ld];
            for r in 0..R {
                sum[c][r] = sum[c][r].minus_product(done[k][r], l);
            }
        }
        for r in 0..R {
            done[c][r] = done[c][r].plus(sum[c][r]);
        }
    }
    store(x, i, ld, done);
}

/// Exchanges columns `k` and, of each lane, that of its number in `rows`, in `R` rows from `i` on, lane by lane.
#[inline(always)]
fn exchange_columns<L: Lanes, const R: usize>(a: &mut [L], ld: usize, k: usize, i: usize, rows: &[u32; MOST_LANES]) {
    // Numbers, not vectors: a load of a vector would wait for the store of a lane.
    let reals = L::Vector::as_reals_mut(L::as_vectors_mut(a));
    for lane in 0..L::COUNT {
        let p = rows[lane] as usize;
        for r in 0..L::PARTS * R {
            let at = |column: usize| ((i + column * ld) * L::PARTS + r) * L::COUNT + lane;
            reals.swap(at(k), at(p));
        }
    }
}

/// Exchanges columns `k` and `index`, in `R` rows from `i` on, by looking at every column.
#[inline(always)]
fn choose_column<L: Lanes, const R: usize>(a: &mut [L], (n, ld): (usize, usize), k: usize, i: usize, index: L::Vector) {
    let one = L::count(1);
    let old = rows::<L, R>(a, i + k * ld);
    let (mut new, mut column) = (old, L::count(k));
    for other in a[(k + 1) * ld..n * ld].chunks_exact_mut(ld) {
        column = column.add(one);
        let here = column.equals(index);
        let other = &mut other[i..i + R];
        for r in 0..R {
            let x = other[r];
            new[r] = L::select(here, x, new[r]);
            other[r] = L::select(here, old[r], x);
        }
    }
    store(a, i + k * ld, ld, [new]);
}
