//! `A = P L U` in every lane, each with exchanges of its own.
//!
//! Left-looking by panels: the exchanges so far and the columns on the left are applied to a panel's columns when their turn comes. Small
//! matrices are one panel.

use std::ops::Range;

use batchla_core::Scalar;

use super::choose::choose_some;
use super::exchanges::Exchanges;
use super::leading_dimension;
use super::next::Next;
use super::pivot::{largest, next_largest, scale};
use super::tile::{COLUMNS, Columns, for_columns, load, part, rows, store, subtract};
use super::tiny;
use crate::simd::{Lanes, MOST_LANES, Vector, Work, outline};

/// Columns of a panel.
pub(super) const PANEL: usize = 2 * COLUMNS;

/// The largest order that is one panel.
const WHOLE: usize = 16;

/// Factors the matrices of a group.
pub(super) struct Getrf<'a, T> {
    pub(crate) a: &'a mut [T],
    pub(crate) order: usize,
    /// Out: the exchanges of each lane, one lane after another.
    pub(crate) exchanges: &'a mut [u32],
    /// What to ask for meanwhile.
    pub(crate) next: &'a Next<T>,
}

impl<T: Scalar> Work<T> for Getrf<'_, T> {
    /// The column of the first zero pivot of each lane; the order where there is none.
    type Output = [u32; MOST_LANES];

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) -> [u32; MOST_LANES] {
        let Self { a, order: n, exchanges, next } = self;
        let a = L::from_numbers_mut(a);
        let mut zero_pivots = L::count(n);
        if n <= tiny::LARGEST {
            factor(a, n, exchanges, &mut zero_pivots, next);
        } else {
            factor_by_steps(a, n, exchanges, &mut zero_pivots, next);
        }
        let mut result = [0; MOST_LANES];
        zero_pivots.store_counts(&mut result);
        result
    }
}

/// Factors the matrices of a group.
#[inline(always)]
pub(super) fn factor<L: Lanes, E: Exchanges<L> + ?Sized>(
    a: &mut [L],
    n: usize,
    exchanges: &mut E,
    zero_pivots: &mut L::Vector,
    next: &Next<L::Number>,
) {
    if n <= tiny::LARGEST {
        next.ask::<L>(0..n, n);
    }
    match n {
        2 => tiny::factor::<L, E, 2>(a, exchanges, zero_pivots),
        3 => tiny::factor::<L, E, 3>(a, exchanges, zero_pivots),
        4 => tiny::factor::<L, E, 4>(a, exchanges, zero_pivots),
        _ => factor_whole(a, n, exchanges, zero_pivots, next),
    }
}

/// Factors matrices that are one panel.
#[inline(always)]
fn factor_whole<L: Lanes, E: Exchanges<L> + ?Sized>(
    a: &mut [L],
    n: usize,
    exchanges: &mut E,
    zero_pivots: &mut L::Vector,
    next: &Next<L::Number>,
) {
    let mut pivot = (0, largest::<L>(&a[..n], 0));
    while pivot.0 < n {
        let k = pivot.0;
        pivot = choose_some(a, (n, n), pivot, 0..n, exchanges, zero_pivots);
        next.ask::<L>(k..pivot.0, n);
    }
}

/// A step of a factorisation, compiled on its own: together, they leave too few registers for each.
struct Step<'a, L: Lanes, const WHICH: u8> {
    a: &'a mut [L],
    order: usize,
    panel: Range<usize>,
    exchanges: &'a mut [u32],
    zero_pivots: &'a mut L::Vector,
    next: &'a Next<L::Number>,
}

/// Factors few rows.
const ALL: u8 = 0;
/// Makes the exchanges so far in a panel's columns.
const EXCHANGE: u8 = 1;
/// Applies the columns on the left to a panel's.
const UPDATE: u8 = 2;
/// Factors a panel.
const FACTOR: u8 = 3;
/// Makes a panel's exchanges in the columns on the left.
const EXCHANGE_LEFT: u8 = 4;

impl<T: Scalar, L: Lanes<Number = T>, const WHICH: u8> Work<T> for Step<'_, L, WHICH> {
    type Output = ();

    #[inline(always)]
    fn run<Same: Lanes<Number = T>>(self) {
        let Self { a, order: n, panel, exchanges, zero_pivots, next } = self;
        let (shape, left) = ((n, leading_dimension(n)), panel.start);
        match WHICH {
            ALL => factor_whole(a, n, exchanges, zero_pivots, next),
            EXCHANGE => {
                for k in 0..left {
                    for_columns!(panel.clone(), |j, C| exchange_rows::<L, C>(a, shape, k..k + 1, j, exchanges));
                }
            }
            UPDATE => for_columns!(panel, |j, C| update::<L, C>(a, shape, left, j)),
            FACTOR => factor_panel(a, shape, panel, exchanges, zero_pivots, next),
            _ => {
                for k in panel {
                    for_columns!(0..left, |j, C| exchange_rows::<L, C>(a, shape, k..k + 1, j, exchanges));
                }
            }
        }
    }
}

/// Factors the matrices of a group, whatever the order, step by step.
#[inline(always)]
pub(super) fn factor_by_steps<L: Lanes>(
    a: &mut [L],
    n: usize,
    exchanges: &mut [u32],
    zero_pivots: &mut L::Vector,
    next: &Next<L::Number>,
) {
    macro_rules! step {
        ($which:ident, $panel:expr) => {
            outline::<L, _>(Step::<L, $which> { a, order: n, panel: $panel, exchanges, zero_pivots, next })
        };
    }
    if n <= WHOLE {
        return step!(ALL, 0..n);
    }
    for left in (0..n).step_by(PANEL) {
        let panel = left..n.min(left + PANEL);
        if left > 0 {
            step!(EXCHANGE, panel.clone());
        }
        factor_next_panel(a, n, panel, exchanges, zero_pivots, next);
    }
}

/// Factors the columns of a panel whose rows are exchanged already, and makes the new exchanges on the left too.
#[inline(always)]
pub(super) fn factor_next_panel<L: Lanes>(
    a: &mut [L],
    n: usize,
    panel: Range<usize>,
    exchanges: &mut [u32],
    zero_pivots: &mut L::Vector,
    next: &Next<L::Number>,
) {
    macro_rules! step {
        ($which:ident) => {
            outline::<L, _>(Step::<L, $which> { a, order: n, panel: panel.clone(), exchanges, zero_pivots, next })
        };
    }
    if panel.start > 0 {
        step!(UPDATE);
    }
    step!(FACTOR);
    if panel.start > 0 && n - panel.start > WHOLE {
        step!(EXCHANGE_LEFT);
    }
}

/// Factors the columns of a panel, to which those on the left are applied.
#[inline(always)]
fn factor_panel<L: Lanes>(
    a: &mut [L],
    (n, ld): (usize, usize),
    panel: Range<usize>,
    exchanges: &mut [u32],
    zero_pivots: &mut L::Vector,
    next: &Next<L::Number>,
) {
    let mut pivot = (panel.start, largest::<L>(&a[panel.start * ld..][..n], panel.start));
    while pivot.0 < panel.end {
        let (k, index) = pivot;
        // Few rows are chosen from. With many, exchanges lane by lane are faster, although vectors wait for them.
        if n - k <= WHOLE.max(2 * L::COUNT) {
            // Columns on the left wait for the panel's end, unless choosing is faster there too.
            let first = if n - panel.start <= WHOLE { 0 } else { panel.start };
            pivot = choose_some(a, (n, ld), pivot, first..panel.end, exchanges, zero_pivots);
        } else {
            Exchanges::<L>::note(exchanges, index, n, k);
            for_columns!(panel.clone(), |j, C| exchange_rows::<L, C>(a, (n, ld), k..k + 1, j, exchanges));
            scale(&mut a[k * ld..k * ld + n], k, zero_pivots);
            let soon = panel.end.min(k + 1 + COLUMNS);
            for_columns!(k + 1..soon, |j, C| eliminate::<L, C>(a, (n, ld), k, j));
            pivot = (k + 1, next_largest::<L>(a, (n, ld), k + 1, panel.end));
            for_columns!(soon..panel.end, |j, C| eliminate::<L, C>(a, (n, ld), k, j));
        }
        next.ask::<L>(k..pivot.0, n);
    }
}

/// Makes some exchanges in the rows of `C` columns from `j` on, lane by lane.
#[inline(always)]
pub(super) fn exchange_rows<L: Lanes, const C: usize>(
    a: &mut [L],
    (n, ld): (usize, usize),
    steps: impl Iterator<Item = usize>,
    j: usize,
    exchanges: &[u32],
) {
    // Numbers, not vectors: a load of a vector would wait for the store of a lane.
    let reals = L::Vector::as_reals_mut(L::as_vectors_mut(&mut a[j * ld..][..C * ld]));
    let row = L::PARTS * L::COUNT;
    for k in steps {
        for (lane, &p) in exchanges[k..].iter().step_by(n).take(L::COUNT).enumerate() {
            let (here, there) = (k * row + lane, p as usize * row + lane);
            assert!(k < ld && (p as usize) < ld);
            for c in 0..C {
                for part in 0..L::PARTS {
                    let at = c * ld * row + part * L::COUNT;
                    // SAFETY: both rows of column `c` exist.
                    unsafe {
                        let (x, y) = (*reals.get_unchecked(at + here), *reals.get_unchecked(at + there));
                        (*reals.get_unchecked_mut(at + here), *reals.get_unchecked_mut(at + there)) = (y, x);
                    }
                }
            }
        }
    }
}

/// Eliminates column `k`, which is scaled, from `C` columns from `j` on.
#[inline(always)]
fn eliminate<L: Lanes, const C: usize>(a: &mut [L], (n, ld): (usize, usize), k: usize, j: usize) {
    let (left, right) = a.split_at_mut(j * ld);
    let l = &left[k * ld..][..n];
    let mut a = Columns::<L, C>::new(right, ld, 0);
    let u = a.row(k);
    for i in k + 1..n {
        let mut x = a.row(i);
        for c in 0..C {
            x[c] = x[c].minus_product(l[i], u[c]);
        }
        a.set_row(i, x);
    }
}

/// Applies the `depth` factored columns on the left to `C` columns from `j` on, whose rows are exchanged already.
#[inline(always)]
fn update<L: Lanes, const C: usize>(a: &mut [L], (n, ld): (usize, usize), depth: usize, j: usize) {
    let (left, right) = a.split_at_mut(j * ld);
    let mut i = 0;
    while n - i >= ROWS {
        update_rows::<L, ROWS, C>(left, right, ld, depth, i);
        i += ROWS;
    }
    while i < n {
        update_rows::<L, 1, C>(left, right, ld, depth, i);
        i += 1;
    }
}

/// Rows of a tile.
const ROWS: usize = 4;

#[inline(always)]
fn update_rows<L: Lanes, const R: usize, const C: usize>(l: &[L], u: &mut [L], ld: usize, depth: usize, i: usize) {
    let mut sum = load::<L, R, C>(u, i, ld);
    let above = depth.min(i);
    subtract::<L, R, C, false>(&mut sum, |k| rows(l, i + k * ld), part(u, ld, 0, 0..above));
    if i < depth {
        for k in 0..R {
            for r in k + 1..R {
                let l = l[i + r + (i + k) * ld];
                for c in 0..C {
                    sum[c][r] = sum[c][r].minus_product(l, sum[c][k]);
                }
            }
        }
    }
    store(u, i, ld, sum);
}
