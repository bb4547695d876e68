//! `A = P L U` of one matrix: recursive, LAPACK's `getrf2`, down to panels that are factored column by column.

use batchla_core::Scalar;

use super::laswp::exchange_rows;
use super::panel::{factor_panel, width};
use super::tile::{Factors, lanes_after, spread, subtract_product};
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
    /// Factors panel by panel. After panel `p`, counted from 1, the widest block of panels that ends with it and whose number divides `p`
    /// is applied to as many columns on its right: what the recursion comes to.
    #[inline(always)]
    fn factor<L: Lanes>(&mut self, a: &mut [L], exchanges: &mut [u32]) {
        let (ld, order, width) = (self.ld, self.order, width::<L>());
        for panel in 1..=order.div_ceil(width) {
            let (first, end) = ((panel - 1) * width, order.min(panel * width));
            let zero_pivot = factor_panel(&mut a[first * ld..end * ld], (ld, order), first, &mut exchanges[first..end]);
            self.zero_pivot = self.zero_pivot.min(zero_pivot.unwrap_or(order));
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
            let factors = Factors { a: l, b: None, row: first, ld };
            let vectors = (end / L::COUNT, self.order.div_ceil(L::COUNT));
            exchange_rows(right, ld, first, &exchanges[first..end]);
            solve_unit_lower(l, right, ld, first, end - first);
            subtract_product(right, factors, end - first, vectors, last - end);
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
