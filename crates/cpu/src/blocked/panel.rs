//! A panel of few columns, factored one after another: each takes its update from those before it while it is in registers.

use std::hint::select_unpredictable;

use batchla_core::Scalar;

use super::laswp::exchange_row;
use super::tile::{Factors, lanes_after, load, number, spread, store, subtract};
use crate::scalar::reciprocal;
use crate::simd::{Lanes, Vector, Work};

/// Columns of a panel: whole vectors.
#[inline(always)]
pub(super) fn width(lanes: usize) -> usize {
    super::COLUMNS.max(lanes)
}

/// Factors the panel whose columns are `a`, `ld` numbers apart, and whose first diagonal is in row `top`.
///
/// While the pivot of a column is looked for, the next column takes its update from those before: the one does not wait for the other.
pub struct FactorPanel<'a, T> {
    pub(super) a: &'a mut [T],
    pub(super) ld: usize,
    pub(super) order: usize,
    pub(super) top: usize,
    pub(super) exchanges: &'a mut [u32],
}

impl<T: Scalar> Work<T> for FactorPanel<'_, T> {
    /// The row of the first zero pivot.
    type Output = Option<usize>;

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) -> Option<usize> {
        let Self { a, ld, order, top, exchanges } = self;
        let (a, ld) = (L::from_numbers_mut(a), ld / L::COUNT);
        let (first, vectors, width) = (top / L::COUNT, order.div_ceil(L::COUNT), exchanges.len());
        let mut zero_pivot = None;
        let mut best = L::Vector::splat(num_traits::zero());
        for x in &a[first..vectors] {
            best = x.size().larger(best);
        }
        for k in 0..width {
            let row = top + k;
            let largest = best.largest();
            let size = L::Vector::as_reals(&[largest])[0];
            let p = first_of(&a[k * ld + first..k * ld + vectors], (largest, size), k) + top;
            exchanges[k] = p as u32;
            let (before, own) = a.split_at_mut(k * ld);
            let (own, after) = own.split_at_mut((2 * ld).min((width - k) * ld));
            if own.len() > ld {
                update(before, &mut own[ld..], (ld, vectors), first);
            }
            // Number by number, and before this column is worked on: soon vectors are loaded, and a load of a vector waits for the store of a lane.
            exchange_row(before, ld, (row, p));
            exchange_row(after, ld, (row, p));
            let (column, next) = own.split_at_mut(ld);
            let column = &mut column[..vectors];
            let factor = if L::has_reciprocal(size) {
                Some(spread(column, p).reciprocal_of_size(size))
            } else {
                zero_pivot = zero_pivot.or((number(column, p) == num_traits::zero()).then_some(row));
                other_factor(column, (row, p), order)
            };
            best = if next.is_empty() {
                exchange_and_eliminate::<L, false>(column, next, (row, p), factor)
            } else {
                exchange_and_eliminate::<L, true>(column, &mut next[..vectors], (row, p), factor)
            };
        }
        zero_pivot
    }
}

/// Applies some of the panel's first columns to another, from vector `first` on, which holds their first diagonal.
#[inline(always)]
fn update<L: Lanes>(before: &[L], own: &mut [L], (ld, vectors): (usize, usize), first: usize) {
    let mut i = first;
    match vectors - i {
        8.. => update_top::<L, 8>(before, own, ld, &mut i),
        4.. => update_top::<L, 4>(before, own, ld, &mut i),
        2.. => update_top::<L, 2>(before, own, ld, &mut i),
        _ => update_top::<L, 1>(before, own, ld, &mut i),
    }
    while vectors - i >= 8 {
        update_below::<L, 8>(before, own, ld, (first, i));
        i += 8;
    }
    while vectors - i >= 2 {
        update_below::<L, 2>(before, own, ld, (first, i));
        i += 2;
    }
    if i < vectors {
        update_below::<L, 1>(before, own, ld, (first, i));
    }
}

/// The first `R` vectors, in which the columns' own rows are eliminated from one another.
#[inline(always)]
fn update_top<L: Lanes, const R: usize>(before: &[L], own: &mut [L], ld: usize, i: &mut usize) {
    let depth = before.len() / ld;
    let mut x = load::<L, R, 1>(own, ld, *i, 0)[0];
    for top in 0..R.min(width(L::COUNT) / L::COUNT) {
        for k in top * L::COUNT..depth.min((top + 1) * L::COUNT) {
            let l = &before[k * ld + *i..][..R];
            let u = x[top].spread(k % L::COUNT);
            x[top] = L::select(lanes_after::<L>(k % L::COUNT), x[top].minus_product(l[top], u), x[top]);
            for r in top + 1..R {
                x[r] = x[r].minus_product(l[r], u);
            }
        }
    }
    store(own, ld, *i, 0, [x]);
    *i += R;
}

/// `R` vectors below, from `i` on.
#[inline(always)]
fn update_below<L: Lanes, const R: usize>(before: &[L], own: &mut [L], ld: usize, (first, i): (usize, usize)) {
    let mut x = load::<L, R, 1>(own, ld, i, 0);
    let factors = Factors { a: before, b: None, row: first * L::COUNT, ld };
    subtract::<L, R, 1, false>(&mut x, own, factors, (0, before.len() / ld), i, 0);
    store(own, ld, i, 0, x);
}

/// What to scale a column with whose pivot is not to be divided by as others are. `None` where nothing is left to scale: all is zero, or was divided.
#[cold]
#[inline(never)]
fn other_factor<L: Lanes>(column: &mut [L], (row, p): (usize, usize), order: usize) -> Option<L> {
    let pivot = number(column, p);
    if pivot.abs1() >= L::Number::SAFE_MINIMUM {
        return Some(L::splat(reciprocal(pivot)));
    }
    // Nothing to scale below a zero pivot. The update goes on, as LAPACK's does.
    if pivot != num_traits::zero() {
        for i in (row..order).filter(|&i| i != p) {
            let x = number(column, i).divide(pivot);
            L::set_lane(column, i / L::COUNT, i % L::COUNT, x);
        }
    }
    None
}

/// Exchanges rows `row` and `p` of a column, scales what is below and, where there is a `NEXT` column, eliminates it from that; gives the
/// largest sizes that are left there.
#[inline(always)]
fn exchange_and_eliminate<L: Lanes, const NEXT: bool>(
    column: &mut [L],
    next: &mut [L],
    (row, p): (usize, usize),
    factor: Option<L>,
) -> L::Vector {
    let (first, lane) = (row / L::COUNT, row % L::COUNT);
    let (own, below) = (L::Vector::lane_mask(lane), lanes_after::<L>(lane));
    let pivot = take_pivot(column, (row, p));
    let u = if NEXT { take_pivot(next, (row, p)) } else { L::zero() };
    let mut best = L::Vector::splat(num_traits::zero());
    for i in first..column.len() {
        let x = column[i];
        let l = if let Some(factor) = factor { x.times(factor) } else { x };
        column[i] = if i == first { L::select(below, l, L::select(own, pivot, x)) } else { l };
        if NEXT {
            let x = next[i];
            let rest = x.minus_product(l, u);
            if i == first {
                next[i] = L::select(below, rest, L::select(own, u, x));
                best = L::Vector::select(below, rest.size().larger(best), best);
            } else {
                next[i] = rest;
                best = rest.size().larger(best);
            }
        }
    }
    best
}

/// Gives the number in row `p`, where that of `row` takes its place: in a whole vector, which is loaded again soon.
#[inline(always)]
fn take_pivot<L: Lanes>(column: &mut [L], (row, p): (usize, usize)) -> L {
    let (old, pivot) = (spread(column, row), spread(column, p));
    let (at, lane) = (p / L::COUNT, L::Vector::lane_mask(p % L::COUNT));
    column[at] = L::select(lane, old, column[at]);
    pivot
}

/// The first row from `first` on of the largest size, which is given in all lanes and as a number; `first` where that is zero.
#[inline(always)]
fn first_of<L: Lanes>(column: &[L], (largest, size): (L::Vector, <L::Vector as Vector>::Real), first: usize) -> usize {
    if size == num_traits::zero() {
        return first;
    }
    let mut row = first;
    // All of them, from the last on: to stop where it is found would have the processor guess where.
    for (at, vectors) in column.chunks(64 / L::COUNT).enumerate().rev() {
        let mut found = 0;
        for (i, x) in vectors.iter().enumerate() {
            found |= u64::from(L::Vector::bits(x.size().equals(largest))) << (i * L::COUNT);
        }
        if at == 0 {
            found &= u64::MAX << first;
        }
        row = select_unpredictable(found != 0, at * 64 + found.trailing_zeros() as usize, row);
    }
    row
}
