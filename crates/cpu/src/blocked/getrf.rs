//! `A = P L U` of one matrix: recursive, LAPACK's `getrf2`, down to panels that are factored column by column.

use batchla_core::Scalar;

use super::laswp::{ExchangeRows, exchange_rows};
use super::panel::{FactorPanel, width};
use super::tile::{Factors, lanes_after, spread, subtract_product};
use crate::backend::CpuScalar;
use crate::simd::{InstructionSet, Lanes, MOST_LANES, Vector, Work};
use crate::team::Team;

/// Factors the matrix of order `exchanges.len()`, its columns `ld` numbers apart; gives the column of the first zero pivot, or the order.
///
/// Panel by panel: after panel `p`, counted from 1, the widest block of panels that ends with it and whose number divides `p` is applied to as many
/// columns on its right, which the team shares. That is what the recursion comes to.
pub(crate) fn getrf<T: CpuScalar>(
    set: InstructionSet,
    team: &Team,
    a: &mut [T],
    ld: usize,
    exchanges: &mut [u32],
) -> usize {
    let (order, width) = (exchanges.len(), width(set.lanes::<<T as Scalar>::Real>()));
    let (panels, mut first_zero) = (order.div_ceil(width), order);
    for panel in 1..=panels {
        let (top, end) = ((panel - 1) * width, order.min(panel * width));
        let columns =
            FactorPanel { a: &mut a[top * ld..end * ld], ld, order, top, exchanges: &mut exchanges[top..end] };
        first_zero = first_zero.min(T::factor_panel(set, columns).unwrap_or(order));
        // The blocks that this panel ends become one: the left half is behind by the exchanges of the right one.
        for level in 0..panel.trailing_zeros() {
            let (left, middle) = ((panel - (2 << level)) * width, (panel - (1 << level)) * width);
            catch_up(set, &mut a[left * ld..middle * ld], ld, middle, &exchanges[middle..end]);
        }
        let applied = width << panel.trailing_zeros();
        let (first, last) = (end - applied.min(end), order.min(end + applied));
        if end < last {
            let (left, right) = a.split_at_mut(end * ld);
            let (l, exchanges) = (&left[first * ld..], &exchanges[first..end]);
            team.share(&mut right[..(last - end) * ld], ld, (end - first) * (order - first), |_, columns| {
                T::update(set, Update { l, columns, ld, order, top: first, exchanges });
            });
        }
    }
    let mut blocks = panels & panels.saturating_sub(1);
    while blocks > 0 {
        let left = blocks & (blocks - 1);
        let (from, to) = (left * width, blocks * width);
        catch_up(set, &mut a[from * ld..to * ld], ld, to, &exchanges[to..]);
        blocks = left;
    }
    first_zero
}

/// Makes exchanges in columns on their left.
fn catch_up<T: CpuScalar>(set: InstructionSet, a: &mut [T], ld: usize, top: usize, exchanges: &[u32]) {
    T::exchange_rows(set, ExchangeRows { a, ld, top, exchanges });
}

/// Applies factored columns, whose first diagonal is in row `top`, to columns on their right.
pub struct Update<'a, T> {
    l: &'a [T],
    columns: &'a mut [T],
    /// The distance of columns, in numbers.
    ld: usize,
    order: usize,
    top: usize,
    /// Those of the factored columns.
    exchanges: &'a [u32],
}

impl<T: Scalar> Work<T> for Update<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        let Self { l, columns, ld, order, top, exchanges } = self;
        let (l, columns, ld, depth) =
            (L::from_numbers(l), L::from_numbers_mut(columns), ld / L::COUNT, exchanges.len());
        let factors = Factors { a: l, b: None, row: top, ld };
        let (vectors, width) = (((top + depth) / L::COUNT, order.div_ceil(L::COUNT)), columns.len() / ld);
        exchange_rows(columns, ld, top, exchanges);
        solve_unit_lower(l, columns, ld, top, depth);
        subtract_product::<L, false>(columns, factors, depth, vectors, width);
    }
}

/// `B := L⁻¹ B` in `depth` rows from row `top` on, which begins a vector, for the unit triangle in the columns of `l`.
///
/// Two vectors at a time take what comes from those above, as fast as a product does; the second takes what comes from the first alone.
#[inline(always)]
fn solve_unit_lower<L: Lanes>(l: &[L], b: &mut [L], ld: usize, top: usize, depth: usize) {
    let width = b.len() / ld;
    for start in (0..depth).step_by(L::COUNT) {
        let (i, second) = ((top + start) / L::COUNT, start / L::COUNT % 2 == 1);
        // From which column on is missing, and in how many vectors.
        let (first, vectors) = if second { (start - L::COUNT, 1) } else { (0, 2.min((depth - start) / L::COUNT)) };
        if first < start {
            let factors = Factors { a: &l[first * ld..], b: None, row: top + first, ld };
            subtract_product::<L, false>(b, factors, start - first, (i, i + vectors), width);
        }
        let mut columns = b.chunks_exact_mut(L::COUNT * ld);
        for square in &mut columns {
            solve_square(&l[start * ld..], square, ld, i);
        }
        for column in columns.into_remainder().chunks_exact_mut(ld) {
            solve_vector(&l[start * ld..], column, ld, i);
        }
    }
}

/// The triangle within vector `i`, for as many columns as it has lanes: with rows in vectors, none waits for a lane of another.
#[inline(always)]
fn solve_square<L: Lanes>(l: &[L], b: &mut [L], ld: usize, i: usize) {
    let mut rows = [L::zero(); MOST_LANES];
    let rows = &mut rows[..L::COUNT];
    for c in 0..L::COUNT {
        rows[c] = b[i + c * ld];
    }
    transpose(rows);
    for k in 0..L::COUNT {
        let (known, column) = (rows[k], std::slice::from_ref(&l[k * ld + i]));
        for r in k + 1..L::COUNT {
            rows[r] = rows[r].minus_product(spread(column, r), known);
        }
    }
    transpose(rows);
    for c in 0..L::COUNT {
        b[i + c * ld] = rows[c];
    }
}

/// Vector `r` takes lane `r` of every vector.
#[inline(always)]
fn transpose<L: Lanes>(square: &mut [L]) {
    let parts = L::as_vectors_mut(square);
    for part in 0..L::PARTS {
        let mut block = L::Vector::block(L::Vector::splat(num_traits::zero()));
        for r in 0..L::COUNT {
            block.as_mut()[r] = parts[r * L::PARTS + part];
        }
        let block = L::Vector::transpose(block);
        for r in 0..L::COUNT {
            parts[r * L::PARTS + part] = block.as_ref()[r];
        }
    }
}

/// The same for one column.
#[inline(always)]
fn solve_vector<L: Lanes>(l: &[L], b: &mut [L], ld: usize, i: usize) {
    let mut x = b[i];
    for k in 0..L::COUNT {
        let next = x.minus_product(l[k * ld + i], spread(std::slice::from_ref(&x), k));
        x = L::select(lanes_after::<L>(k), next, x);
    }
    b[i] = x;
}
