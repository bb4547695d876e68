//! `A = P L U` of one matrix: recursive, LAPACK's `getrf2`, down to panels that are factored column by column.

use batchla_core::Scalar;

use super::COLUMNS;
use super::tile::{Factors, lanes_after, number, spread, subtract_product};
use crate::scalar::reciprocal;
use crate::simd::{Lanes, MOST_LANES, Vector, Work};

/// Factors the matrix of order `exchanges.len()`.
pub struct BlockedGetrf<'a, T> {
    pub(crate) a: &'a mut [T],
    /// The distance of columns, in numbers.
    pub(crate) ld: usize,
    /// Out.
    pub(crate) exchanges: &'a mut [u32],
}

impl<T: Scalar> Work<T> for BlockedGetrf<'_, T> {
    /// The column of the first zero pivot; the order where there is none.
    type Output = u32;

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) -> u32 {
        let Self { a, ld, exchanges } = self;
        let order = exchanges.len();
        let mut matrix = Matrix { ld: ld / L::COUNT, order, zero_pivot: order };
        if order > 0 {
            matrix.factor(&mut L::from_numbers_mut(a)[..order * ld / L::COUNT], exchanges);
        }
        matrix.zero_pivot as u32
    }
}

/// What stays the same from panel to panel, and the first zero pivot so far.
struct Matrix {
    ld: usize,
    order: usize,
    zero_pivot: usize,
}

impl Matrix {
    /// Columns of a panel: whole vectors.
    #[inline(always)]
    fn panel<L: Lanes>() -> usize {
        COLUMNS.max(L::COUNT)
    }

    /// Factors panel by panel. After panel `p`, counted from 1, the widest block of panels that ends with it and whose number divides `p`
    /// is applied to as many columns on its right: what the recursion comes to.
    #[inline(always)]
    fn factor<L: Lanes>(&mut self, a: &mut [L], exchanges: &mut [u32]) {
        let (ld, order, width) = (self.ld, self.order, Self::panel::<L>());
        for panel in 1..=order.div_ceil(width) {
            let (first, end) = ((panel - 1) * width, order.min(panel * width));
            self.factor_panel(&mut a[first * ld..end * ld], first, &mut exchanges[first..end]);
            // The blocks that this panel ends become one: the left half is behind by the exchanges of the right one.
            for level in 0..panel.trailing_zeros() {
                let (left, middle) = ((panel - (2 << level)) * width, (panel - (1 << level)) * width);
                exchange_rows(&mut a[left * ld..middle * ld], ld, middle, &exchanges[middle..end]);
            }
            let applied = width << panel.trailing_zeros();
            self.apply(a, end - applied.min(end), end, order.min(end + applied), exchanges);
        }
        let mut blocks = order.div_ceil(width);
        blocks &= blocks - 1;
        while blocks > 0 {
            let left = blocks & (blocks - 1);
            exchange_rows(
                &mut a[left * width * ld..blocks * width * ld],
                ld,
                blocks * width,
                &exchanges[blocks * width..],
            );
            blocks = left;
        }
    }

    /// Applies the factored columns `first..end` to those up to `last`.
    #[inline(always)]
    fn apply<L: Lanes>(&self, a: &mut [L], first: usize, end: usize, last: usize, exchanges: &[u32]) {
        if end < last {
            let ld = self.ld;
            let (left, right) = a.split_at_mut(end * ld);
            let (l, right) = (&left[first * ld..], &mut right[..(last - end) * ld]);
            exchange_rows(right, ld, first, &exchanges[first..end]);
            solve_unit_lower(l, right, ld, first, end - first);
            let factors = Factors { a: l, b: None, row: first, ld };
            let vectors = (end / L::COUNT, self.order.div_ceil(L::COUNT));
            subtract_product(right, factors, end - first, vectors, last - end);
        }
    }

    /// Factors a panel, whose first diagonal is in row `top`, column by column; LAPACK's `getf2`.
    #[inline(always)]
    fn factor_panel<L: Lanes>(&mut self, a: &mut [L], top: usize, exchanges: &mut [u32]) {
        let (ld, vectors) = (self.ld, self.order.div_ceil(L::COUNT));
        for k in 0..exchanges.len() {
            let row = top + k;
            let p = largest(&a[k * ld..k * ld + vectors], row);
            exchanges[k] = p as u32;
            exchange_two(a, ld, row, p);
            let (done, right) = a.split_at_mut((k + 1) * ld);
            let column = &mut done[k * ld..k * ld + vectors];
            let pivot = number(column, row);
            if pivot == num_traits::zero() {
                // Nothing to scale: all below is zero. The update goes on, as LAPACK's does.
                self.zero_pivot = self.zero_pivot.min(row);
            } else if pivot.abs1() >= L::Number::SAFE_MINIMUM {
                let reciprocal = L::splat(reciprocal(pivot));
                below(column, row, |x, _| x.times(reciprocal));
            } else {
                for i in row + 1..self.order {
                    let x = number(column, i).divide(pivot);
                    L::set_lane(column, i / L::COUNT, i % L::COUNT, x);
                }
            }
            let column = &*column;
            for to in right.chunks_exact_mut(ld) {
                let u = spread(to, row);
                below(&mut to[..vectors], row, |x, i| x.minus_product(column[i], u));
            }
        }
    }
}

/// Does `step` to what is below row `row` of a column, and to nothing else.
#[inline(always)]
fn below<L: Lanes>(column: &mut [L], row: usize, step: impl Fn(L, usize) -> L) {
    let first = row / L::COUNT;
    let x = column[first];
    column[first] = L::select(lanes_after::<L>(row % L::COUNT), step(x, first), x);
    for i in first + 1..column.len() {
        column[i] = step(column[i], i);
    }
}

/// The first row from `row` on whose size is largest; `row` where none is above zero.
#[inline(always)]
fn largest<L: Lanes>(column: &[L], row: usize) -> usize {
    let zero = L::Vector::splat(num_traits::zero());
    let (first, lane) = (row / L::COUNT, row % L::COUNT);
    let step = L::count(L::COUNT);
    // Rows count down from zero, so that the first is the largest.
    let mut rows = zero.sub(L::Vector::counting());
    let size = L::Vector::select(L::Vector::counting().above(L::count(lane)), column[first].size(), zero);
    let own = L::Vector::select(L::Vector::lane_mask(lane), column[first].size(), size);
    let above = own.above(zero);
    let (mut best, mut index) = (L::Vector::select(above, own, zero), L::Vector::select(above, rows, zero));
    for x in &column[first + 1..] {
        rows = rows.sub(step);
        let size = x.size();
        let above = size.above(best);
        best = L::Vector::select(above, size, best);
        index = L::Vector::select(above, rows, index);
    }
    let largest = best.most();
    if largest > num_traits::zero() {
        let mut rows = [0; MOST_LANES];
        zero.sub(index).store_counts(&mut rows);
        let mut candidates = L::Vector::bits(best.equals(L::Vector::splat(largest)));
        let mut least = u32::MAX;
        // One, as a rule.
        while candidates != 0 {
            least = least.min(rows[candidates.trailing_zeros() as usize % MOST_LANES]);
            candidates &= candidates - 1;
        }
        first * L::COUNT + least as usize
    } else {
        row
    }
}

/// Exchanges two rows, vector by vector: a load of a vector would wait for the store of a lane.
#[inline(always)]
fn exchange_two<L: Lanes>(a: &mut [L], ld: usize, i: usize, p: usize) {
    let (here, there) = (L::Vector::lane_mask(i % L::COUNT), L::Vector::lane_mask(p % L::COUNT));
    for column in a.chunks_exact_mut(ld) {
        let (x, y) = (spread(column, i), spread(column, p));
        column[i / L::COUNT] = L::select(here, y, column[i / L::COUNT]);
        column[p / L::COUNT] = L::select(there, x, column[p / L::COUNT]);
    }
}

/// Makes the exchanges, the first of them in row `top`, in all columns.
#[inline(always)]
pub(super) fn exchange_rows<L: Lanes>(a: &mut [L], ld: usize, top: usize, exchanges: &[u32]) {
    let reals = L::Vector::as_reals_mut(L::as_vectors_mut(a));
    let place = |i: usize| i / L::COUNT * (L::PARTS * L::COUNT) + i % L::COUNT;
    let column = ld * L::PARTS * L::COUNT;
    // Few columns at a time, which stay in the cache; more than one, or an exchange would wait for the one before.
    for columns in reals.chunks_mut(COLUMNS * column) {
        for (k, &p) in exchanges.iter().enumerate() {
            let (i, p) = (place(top + k), place(p as usize));
            if i != p {
                // Looked at here, not in every column.
                assert!(i.max(p) + (L::PARTS - 1) * L::COUNT < column);
                for column in columns.chunks_exact_mut(column) {
                    column.swap(i, p);
                    if L::PARTS == 2 {
                        column.swap(i + L::COUNT, p + L::COUNT);
                    }
                }
            }
        }
    }
}

/// `B := L⁻¹ B` in `depth` rows from row `top` on, which begins a vector, for the unit triangle in the columns of `l`.
#[inline(always)]
fn solve_unit_lower<L: Lanes>(l: &[L], b: &mut [L], ld: usize, top: usize, depth: usize) {
    let width = b.len() / ld;
    for start in (0..depth).step_by(L::COUNT) {
        let i = (top + start) / L::COUNT;
        let factors = Factors { a: l, b: None, row: top, ld };
        subtract_product(b, factors, start, (i, i + 1), width);
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
