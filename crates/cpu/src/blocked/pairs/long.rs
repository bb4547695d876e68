//! Long columns: four at a time are factored, and applied at once to each on their right. Half-way the rows that are left move together.

use super::inverse::{invert, unpack_inverse};
use super::rows::Rows;
use super::{Paired, Traces, pack_column, table, unpack_column};
use crate::blocked::tile::{number, spread};
use crate::simd::{Lanes, Vector};

/// Columns of a panel.
const PANEL: usize = 4;

/// Numbers of the next matrix that are asked for as a column takes its part of a panel: with so many it is all there in the end.
const AHEAD: usize = 2 * PANEL;

/// A matrix's columns while it is factored: whole panels, whatever the last begins with.
pub(super) fn columns_in_work(order: usize) -> usize {
    order + PANEL - 1
}

/// A matrix that is factored, or what is left of one.
///
/// Columns have `V` vectors, those of the factors `A`, of which the last are this matrix's. When `W` hold the rows that are left, these move together.
pub(super) struct Matrix<'a, L: Lanes, const V: usize, const A: usize, const W: usize> {
    /// What of the next matrix is to be asked for.
    ahead: *const <L::Vector as Vector>::Real,
    /// Out: the factors.
    a: &'a mut [[L; A]],
    /// What is left of the matrix, and `L`: in rows that are not left, anything.
    w: &'a mut [[L; V]],
    rows: Rows,
}

/// Factors columns of a pair: as many as there are exchanges, whole panels or all.
#[inline(always)]
fn factor_columns<L: Lanes, const V: usize, const A: usize, const W: usize>(
    (one, exchanges): (&mut Matrix<'_, L, V, A, W>, &mut [u32]),
    (other, other_exchanges): (&mut Matrix<'_, L, V, A, W>, &mut [u32]),
) -> bool {
    let end = exchanges.len();
    for first in (0..end).step_by(PANEL) {
        let [mut pivots, mut other_pivots] = [[0; PANEL]; 2];
        let (mut x, mut other_x) = (one.w[first], other.w[first]);
        for m in 0..PANEL.min(end - first) {
            let (found, other_found) = (one.rows.search(&x), other.rows.search(&other_x));
            if !(L::has_reciprocal(found.1) && L::has_reciprocal(other_found.1)) {
                return false;
            }
            (pivots[m], other_pivots[m]) = (found.0, other_found.0);
            (exchanges[first + m], x) = one.eliminate((first, m), x, found);
            (other_exchanges[first + m], other_x) = other.eliminate((first, m), other_x, other_found);
        }
        if first + PANEL < one.a.len() {
            one.apply(first, &pivots);
            other.apply(first, &other_pivots);
        }
    }
    true
}

impl<'a, L: Lanes, const V: usize, const A: usize, const W: usize> Matrix<'a, L, V, A, W> {
    #[inline(always)]
    fn of(a: &'a mut [[L; A]], w: &'a mut [[L; V]]) -> Self {
        Self { ahead: std::ptr::null(), rows: Rows::new(a.len()), a, w }
    }

    /// What is left when `done` columns, whole vectors, are factored, as a matrix of its own.
    #[inline(always)]
    fn rest(&mut self, done: usize) -> Matrix<'_, L, W, A, W> {
        let order = self.a.len() - done;
        let left = self.w[done..].as_flattened_mut();
        for c in 0..order {
            let mut column = [L::zero(); V];
            column.copy_from_slice(&left[c * V..][..V]);
            let to = &mut left[c * W..][..W];
            for part in 0..L::PARTS {
                let table = table(&column, part);
                for v in 0..W {
                    L::as_vectors_mut(&mut to[v..=v])[part] =
                        L::Vector::look_up(&table, V, &self.rows.at[done + v * L::COUNT..]);
                }
            }
        }
        let (w, _) = left.as_chunks_mut();
        Matrix { ahead: self.ahead, ..Matrix::of(&mut self.a[done..], &mut w[..columns_in_work(order)]) }
    }

    /// Scales `x`, which is column `m` of the panel from column `first` on, by its pivot, whose row and size are given, and eliminates it from the
    /// panel's columns after it; gives the exchange, and the next of these.
    #[inline(always)]
    fn eliminate(
        &mut self,
        (first, m): (usize, usize),
        x: [L; V],
        (p, size): (usize, <L::Vector as Vector>::Real),
    ) -> (u32, [L; V]) {
        let k = first + m;
        let exchange = self.rows.choose(k, p);
        let (panel, a) = (&mut self.w[first..first + PANEL], &mut self.a[first..]);
        let pivot = number(&panel[m], p);
        set(&mut a[m][A - V..], k, pivot);
        let factor = L::splat(pivot).reciprocal_of_size(size);
        let (mut l, mut next) = (x, x);
        for v in 0..V {
            l[v] = l[v].times(factor);
        }
        panel[m] = l;
        for c in m + 1..PANEL {
            let u = number(&panel[c], p);
            if let Some(column) = a.get_mut(c) {
                set(&mut column[A - V..], k, u);
            }
            for v in 0..V {
                let rest = panel[c][v].minus_product(l[v], L::splat(u));
                panel[c][v] = rest;
                if c == m + 1 {
                    next[v] = rest;
                }
            }
        }
        (exchange, next)
    }

    /// Applies the panel from column `first` on, with the rows of its pivots, to the columns on its right.
    #[inline(always)]
    fn apply(&mut self, first: usize, pivots: &[usize; PANEL]) {
        for_few_vectors!(L, V, |R, FIRST| self.apply_to_vectors::<R>(first, pivots, FIRST));
    }

    /// The same in `R` vectors from vector `i` on; with the first of them, the panel's rows of `U` are found.
    #[inline(always)]
    fn apply_to_vectors<const R: usize>(&mut self, first: usize, pivots: &[usize; PANEL], i: usize) {
        let end = first + PANEL;
        let (panel, rest) = self.w[first..self.a.len()].split_at_mut(PANEL);
        // The same number in every lane, of which the compiler computes one.
        let (mut l, mut corner) = ([[L::zero(); R]; PANEL], [[L::zero(); PANEL]; PANEL]);
        for k in 0..PANEL {
            for r in 0..R {
                l[k][r] = panel[k][i + r];
            }
            for m in k + 1..PANEL {
                corner[k][m] = spread(&panel[k], pivots[m]);
            }
        }
        let mut ahead = self.ahead;
        for (column, a) in rest.iter_mut().zip(&mut self.a[end..]) {
            if i == 0 {
                for _ in 0..L::PARTS {
                    L::Vector::prefetch(ahead);
                    ahead = ahead.wrapping_add(AHEAD);
                }
            }
            let (a, mut u) = (&mut a[A - V..], [L::zero(); PANEL]);
            for m in 0..PANEL {
                u[m] = if i == 0 { spread(column, pivots[m]) } else { spread(a, first + m) };
                if i == 0 {
                    for k in 0..m {
                        u[m] = u[m].minus_product(corner[k][m], u[k]);
                    }
                    set(a, first + m, L::lane(&u[m..=m], 0, 0));
                }
            }
            for r in 0..R {
                for k in 0..PANEL {
                    column[i + r] = column[i + r].minus_product(l[k][r], u[k]);
                }
            }
        }
        self.ahead = ahead;
    }

    /// Puts the rows of the first columns of `L` where they belong, below `U`. Whether all is finite.
    #[inline(always)]
    fn rearrange(&mut self, columns: usize) -> bool {
        let mut traces = Traces::<L, V>::default();
        for (j, (from, to)) in self.w.iter().zip(self.a.iter_mut()).enumerate() {
            let to = &mut to[A - V..];
            if j < columns {
                for _ in 0..L::PARTS {
                    L::Vector::prefetch(self.ahead);
                    self.ahead = self.ahead.wrapping_add(AHEAD);
                }
                let (diagonal, below) = (j / L::COUNT, L::Vector::lanes_after(j % L::COUNT));
                for part in 0..L::PARTS {
                    let table = table(from, part);
                    for v in diagonal..V {
                        let x = L::Vector::look_up(&table, V, &self.rows.at[v * L::COUNT..]);
                        let to = &mut L::as_vectors_mut(&mut to[v..=v])[part];
                        *to = if v == diagonal { L::Vector::select(below, x, *to) } else { x };
                    }
                }
            }
            traces.add(to);
        }
        traces.are_finite()
    }
}

impl<'a, L: Lanes, const V: usize, const W: usize> Paired<'a, L> for Matrix<'a, L, V, V, W> {
    #[inline(always)]
    fn new(order: usize, memory: &'a mut [L]) -> Self {
        let (a, w) = memory.as_chunks_mut().0.split_at_mut(order);
        Self::of(a, &mut w[..columns_in_work(order)])
    }

    /// Of the next matrix, bit by bit as this one is factored: all at once would wait for memory now, and let it rest later.
    #[inline(always)]
    fn pack(&mut self, from: &[<L::Vector as Vector>::Real], ahead: usize) {
        let n = self.a.len();
        self.rows = Rows::new(n);
        self.ahead = from.as_ptr().wrapping_add(ahead * L::PARTS);
        for (from, to) in from.chunks_exact(n * L::PARTS).zip(self.w.iter_mut()) {
            pack_column(from, to);
        }
    }

    #[inline(always)]
    fn factor(
        (one, exchanges): (&mut Self, &mut [u32]),
        (other, other_exchanges): (&mut Self, &mut [u32]),
        _invert: bool,
    ) -> bool {
        let done = (V - W) * L::COUNT;
        let (exchanges, later) = exchanges.split_at_mut(done);
        let (other_exchanges, other_later) = other_exchanges.split_at_mut(done);
        if !factor_columns((one, exchanges), (other, other_exchanges)) {
            return false;
        }
        let (mut rest, mut other_rest) = (one.rest(done), other.rest(done));
        if !factor_columns((&mut rest, &mut *later), (&mut other_rest, &mut *other_later)) {
            return false;
        }
        rest.rearrange(rest.a.len());
        other_rest.rearrange(other_rest.a.len());
        let (rows, other_rows) = (rest.rows, other_rest.rows);
        let (ahead, other_ahead) = (rest.ahead, other_rest.ahead);
        one.rows.follow(done, &rows);
        other.rows.follow(done, &other_rows);
        (one.ahead, other.ahead) = (ahead, other_ahead);
        for exchange in later.iter_mut().chain(other_later) {
            *exchange += done as u32;
        }
        one.rearrange(done) & other.rearrange(done)
    }

    #[inline(always)]
    fn unpack(&self, to: &mut [<L::Vector as Vector>::Real]) {
        for (from, to) in self.a.iter().zip(to.chunks_exact_mut(self.a.len() * L::PARTS)) {
            unpack_column(from, to);
        }
    }

    /// What was left of the matrix is no longer wanted: the inverse takes its place.
    #[inline(always)]
    fn invert(&mut self) -> bool {
        invert(self.a, self.w)
    }

    #[inline(always)]
    fn diagonal(&self, k: usize) -> L::Number {
        number(&self.a[k], k)
    }

    #[inline(always)]
    fn unpack_inverse(&self, to: &mut [<L::Vector as Vector>::Real]) {
        unpack_inverse(self.w, &self.rows, self.a.len(), to);
    }
}

/// Writes number `i` of a column.
#[inline(always)]
fn set<L: Lanes>(column: &mut [L], i: usize, x: L::Number) {
    L::set_lane(column, i / L::COUNT, i % L::COUNT, x);
}
