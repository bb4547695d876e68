//! Short columns: two at a time are eliminated from each on their right, in the rows that are left, so that a row of `U` stays where it was.

use super::inverse::{invert, unpack_inverse};
use super::rows::Rows;
use super::{Paired, Traces, pack_column, table, unpack_column};
use crate::blocked::tile::{number, spread};
use crate::simd::{Lanes, Vector};

/// A matrix whose columns have `V` vectors: what is left of it and, in rows and columns that are not, the factors.
pub(super) struct Matrix<'a, L: Lanes, const V: usize> {
    columns: &'a mut [[L; V]],
    rows: Rows,
    /// Room for the inverse.
    x: &'a mut [[L; V]],
}

/// A column of the factors.
struct Factored<L: Lanes, const V: usize> {
    /// The pivot's row, and its size.
    p: usize,
    size: <L::Vector as Vector>::Real,
    /// The rows that are left.
    left: [<L::Vector as Vector>::Mask; V],
    /// `L` in these.
    l: [L; V],
}

impl<L: Lanes, const V: usize> Factored<L, V> {
    /// Eliminates it from a column, whose number in the pivot's row is `u`.
    #[inline(always)]
    fn eliminate(&self, mut x: [L; V], u: L) -> [L; V] {
        for v in 0..V {
            x[v] = L::select(self.left[v], x[v].minus_product(self.l[v], u), x[v]);
        }
        x
    }

    #[inline(always)]
    fn can_be_divided_by(&self) -> bool {
        L::has_reciprocal(self.size)
    }
}

impl<L: Lanes, const V: usize> Matrix<'_, L, V> {
    /// Factors column `k`, which is `x`. In memory the column before may still have to be eliminated from it, in whose pivot's row stands the number `before`.
    #[inline(always)]
    fn factor_column(&mut self, k: usize, x: [L; V], before: Option<L>, exchange: &mut u32) -> Factored<L, V> {
        let (p, size) = self.rows.search(&x);
        *exchange = self.rows.choose(k, p);
        // From memory: there it is sooner than it would be out of the registers.
        let mut pivot = spread(&self.columns[k], p);
        if let Some(u) = before {
            pivot = pivot.minus_product(spread(&self.columns[k - 1], p), u);
        }
        let factor = pivot.reciprocal_of_size(size);
        let (mut left, mut l) = ([L::Vector::mask(0); V], x);
        for v in 0..V {
            left[v] = L::Vector::mask(self.rows.left(v * L::COUNT));
            l[v] = L::select(left[v], x[v].times(factor), x[v]);
        }
        self.columns[k] = l;
        Factored { p, size, left, l }
    }

    /// Factors the column after `k`, which is factored.
    #[inline(always)]
    fn factor_next(&mut self, k: usize, first: &Factored<L, V>, exchange: &mut u32) -> Factored<L, V> {
        let u = spread(&self.columns[k + 1], first.p);
        let x = first.eliminate(self.columns[k + 1], u);
        self.factor_column(k + 1, x, Some(u), exchange)
    }

    /// Eliminates column `k` and the next one from those after them; gives the first of these, so that it need not be read before it is written.
    #[inline(always)]
    fn apply(&mut self, k: usize, first: &Factored<L, V>, second: &Factored<L, V>) -> [L; V] {
        let corner = spread(&self.columns[k], second.p);
        let mut next = [L::zero(); V];
        for (j, column) in self.columns[k + 2..].iter_mut().enumerate() {
            let u = spread(column, first.p);
            let below = spread(column, second.p).minus_product(corner, u);
            let x = second.eliminate(first.eliminate(*column, u), below);
            if j == 0 {
                next = x;
            }
            *column = x;
        }
        next
    }
}

impl<'a, L: Lanes, const V: usize> Paired<'a, L> for Matrix<'a, L, V> {
    #[inline(always)]
    fn new(order: usize, memory: &'a mut [L]) -> Self {
        let (columns, _) = memory.as_chunks_mut();
        let (columns, x) = columns.split_at_mut(order);
        Self { columns, rows: Rows::new(order), x }
    }

    #[inline(always)]
    fn pack(&mut self, from: &[<L::Vector as Vector>::Real], ahead: usize) {
        let n = self.columns.len();
        self.rows = Rows::new(n);
        for (from, to) in from.chunks_exact(n * L::PARTS).zip(self.columns.iter_mut()) {
            for v in 0..V * L::PARTS {
                L::Vector::prefetch(from.as_ptr().wrapping_add(ahead * L::PARTS + v * L::COUNT));
            }
            pack_column(from, to);
        }
    }

    #[inline(always)]
    fn factor(
        (one, exchanges): (&mut Self, &mut [u32]),
        (other, other_exchanges): (&mut Self, &mut [u32]),
        invert: bool,
    ) -> bool {
        let n = exchanges.len();
        let (mut x, mut other_x) = (one.columns[0], other.columns[0]);
        let mut k = 0;
        // Whether pivots can be divided by is asked once for all of two columns: each answer would hold up the next column.
        while k + 1 < n {
            let first = one.factor_column(k, x, None, &mut exchanges[k]);
            let other_first = other.factor_column(k, other_x, None, &mut other_exchanges[k]);
            let second = one.factor_next(k, &first, &mut exchanges[k + 1]);
            let other_second = other.factor_next(k, &other_first, &mut other_exchanges[k + 1]);
            let all = [&first, &second, &other_first, &other_second];
            if !all.iter().all(|column| column.can_be_divided_by()) {
                return false;
            }
            x = one.apply(k, &first, &second);
            other_x = other.apply(k, &other_first, &other_second);
            k += 2;
        }
        if k < n {
            let last = one.factor_column(k, x, None, &mut exchanges[k]);
            let other_last = other.factor_column(k, other_x, None, &mut other_exchanges[k]);
            if !(last.can_be_divided_by() && other_last.can_be_divided_by()) {
                return false;
            }
        }
        if invert {
            return true;
        }
        let mut traces = Traces::<L, V>::default();
        for column in one.columns.iter().chain(other.columns.iter()) {
            traces.add(column);
        }
        traces.are_finite()
    }

    /// Rows come to their places on the way.
    #[inline(always)]
    fn unpack(&self, to: &mut [<L::Vector as Vector>::Real]) {
        for (from, to) in self.columns.iter().zip(to.chunks_exact_mut(self.columns.len() * L::PARTS)) {
            unpack_column(&in_place(from, &self.rows), to);
        }
    }

    #[inline(always)]
    fn invert(&mut self) -> bool {
        for column in self.columns.iter_mut() {
            *column = in_place(column, &self.rows);
        }
        invert(self.columns, self.x)
    }

    #[inline(always)]
    fn diagonal(&self, k: usize) -> L::Number {
        number(&self.columns[k], k)
    }

    #[inline(always)]
    fn unpack_inverse(&self, to: &mut [<L::Vector as Vector>::Real]) {
        unpack_inverse(self.x, &self.rows, self.columns.len(), to);
    }
}

/// A column whose rows are where exchanges would have put them.
#[inline(always)]
fn in_place<L: Lanes, const V: usize>(from: &[L; V], rows: &Rows) -> [L; V] {
    let mut column = *from;
    for part in 0..L::PARTS {
        let table = table(from, part);
        for v in 0..V {
            L::as_vectors_mut(std::slice::from_mut(&mut column[v]))[part] =
                L::Vector::look_up(&table, V, &rows.at[v * L::COUNT..]);
        }
    }
    column
}
