//! `A = P L U` of small real matrices, two at a time: while one waits for a pivot, the other goes on.
//!
//! Rows stay where they are: a row that became a pivot's counts no more. An exchange would cost a move in each column; here it is noted, and all are
//! made at once, by looking rows up in registers: half-way, when the rows that are left move together, and at the end.

use batchla_core::{Scalar, ScalarKind};
use num_traits::Float;

use super::rows::{MOST_ROWS, Rows};
use super::tile::number;
use crate::interleaved::Stretch;
use crate::routines::{Sums, finite};
use crate::simd::{InstructionSet, Lanes, TABLE, Vector, Work, outline};

/// Columns of a panel.
const PANEL: usize = 4;

/// Numbers of the next matrix that are asked for as a column takes its part of a panel: with so many it is all there in the end.
const AHEAD: usize = 2 * PANEL;

/// Whether plain matrices can be factored in pairs.
pub(crate) fn serves(set: InstructionSet, scalar: ScalarKind, order: usize) -> bool {
    set == InstructionSet::Avx512 && matches!(scalar, ScalarKind::F32 | ScalarKind::F64) && order <= MOST_ROWS
}

/// The columns that a pair needs beside those of a matrix.
pub(crate) fn columns_aside(order: usize) -> usize {
    order + 2 * columns_in_work(order)
}

/// A matrix's columns while it is factored: whole panels, whatever the last begins with.
fn columns_in_work(order: usize) -> usize {
    order + PANEL - 1
}

/// Factors pairs, up to the first with a matrix that is not regular, or whose pivots are too small for reciprocals.
pub struct Pairs<'a, T>(pub(crate) Stretch<'a, T>);

impl<T: Scalar> Work<T> for Pairs<'_, T> {
    /// How many matrices are done; the others stay as they were.
    type Output = usize;

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) -> usize {
        macro_rules! with_vectors {
            ($($vectors:literal, $later:literal;)*) => {
                match self.0.order.div_ceil(L::COUNT) {
                    $($vectors => with_vectors::<L, $vectors, $later>(self.0),)*
                    _ => 0,
                }
            };
        }
        with_vectors!(1, 1; 2, 1; 3, 2; 4, 2; 5, 3; 6, 3; 7, 4; 8, 4;)
    }
}

/// The same with `V` vectors a column, later `W`. What there is no use for is not compiled.
#[inline(always)]
fn with_vectors<L: Lanes, const V: usize, const W: usize>(stretch: Stretch<'_, L::Number>) -> usize {
    if L::Vector::LOOKS_UP && L::PARTS == 1 && (V - 1) * L::COUNT < MOST_ROWS {
        outline::<L, _>(OfVectors::<_, V, W>(stretch))
    } else {
        0
    }
}

struct OfVectors<S, const V: usize, const W: usize>(S);

impl<T: Scalar, const V: usize, const W: usize> Work<T> for OfVectors<Stretch<'_, T>, V, W> {
    type Output = usize;

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) -> usize {
        let Stretch { order: n, from, to, exchanges, a, aside, .. } = self.0;
        let (a, _) = L::from_numbers_mut(a).as_chunks_mut();
        let (aside, _) = L::from_numbers_mut(aside).as_chunks_mut();
        let (other, work) = aside.split_at_mut(n);
        let (w, other_w) = work[..2 * columns_in_work(n)].split_at_mut(columns_in_work(n));
        let [mut one, mut other] = [(&mut a[..n], w), (other, other_w)].map(|(a, w)| Matrix::<L, V, V>::new(a, w));
        let area = n * n;
        let pairs = to.len() / area / 2;
        for (pair, exchanges) in exchanges.chunks_exact_mut(2 * n).enumerate() {
            let place = 2 * pair * area..2 * (pair + 1) * area;
            let (first, second) = from.map_or(&to[place.clone()], |from| &from[place.clone()]).split_at(area);
            // To the next pair, unless it is another thread's.
            let ahead = if place.end < pairs * 2 * area { 2 * area } else { 0 };
            one.pack(L::reals(first), ahead);
            other.pack(L::reals(second), ahead);
            let (first, second) = exchanges.split_at_mut(n);
            if !factor::<_, V, W>((&mut one, first), (&mut other, second)) {
                return 2 * pair;
            }
            let (first, second) = to[place].split_at_mut(area);
            one.unpack(L::reals_mut(first));
            other.unpack(L::reals_mut(second));
        }
        2 * pairs
    }
}

/// A matrix that is factored, or what is left of one.
///
/// Columns have `V` vectors, those of the factors `A`, of which the last are this matrix's.
struct Matrix<'a, L: Lanes, const V: usize, const A: usize> {
    /// What of the next matrix is to be asked for. All at once would wait for memory now, and let it rest later.
    ahead: *const <L::Vector as Vector>::Real,
    /// Out: the factors.
    a: &'a mut [[L; A]],
    /// What is left of the matrix, and `L`: in rows that are not left, anything.
    w: &'a mut [[L; V]],
    rows: Rows,
}

/// Whether columns are so long that it is worth it to move together half-way what is left, and to ask for the next matrix bit by bit.
const fn long<L: Lanes, const V: usize>() -> bool {
    V >= 4 && V * L::COUNT > 32
}

/// Factors a pair, each with its exchanges, with `V` vectors a column, and with `W` when these hold the rows that are left. `false`, and neither is factored, where a pivot is
/// none, or too small for a reciprocal, or something is not finite.
#[inline(always)]
fn factor<L: Lanes, const V: usize, const W: usize>(
    (one, exchanges): (&mut Matrix<'_, L, V, V>, &mut [u32]),
    (other, other_exchanges): (&mut Matrix<'_, L, V, V>, &mut [u32]),
) -> bool {
    let done = if long::<L, V>() { (V - W) * L::COUNT } else { one.a.len() };
    let (exchanges, later) = exchanges.split_at_mut(done);
    let (other_exchanges, other_later) = other_exchanges.split_at_mut(done);
    if !factor_columns((one, exchanges), (other, other_exchanges)) {
        return false;
    }
    if long::<L, V>() {
        let (mut rest, mut other_rest) = (one.rest::<W>(done), other.rest::<W>(done));
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
    }
    let whole = one.rearrange(done) & other.rearrange(done);
    whole && (long::<L, V>() || finite(one.a.as_flattened()) && finite(other.a.as_flattened()))
}

/// Factors columns of a pair: as many as there are exchanges, whole panels or all.
#[inline(always)]
fn factor_columns<L: Lanes, const V: usize, const A: usize>(
    (one, exchanges): (&mut Matrix<'_, L, V, A>, &mut [u32]),
    (other, other_exchanges): (&mut Matrix<'_, L, V, A>, &mut [u32]),
) -> bool {
    let end = exchanges.len();
    for first in (0..end).step_by(PANEL) {
        let [mut pivots, mut other_pivots] = [[0; PANEL]; 2];
        let (mut x, mut other_x) = (one.w[first], other.w[first]);
        for m in 0..PANEL.min(end - first) {
            let (found, other_found) = (one.rows.search(&x), other.rows.search(&other_x));
            if !(found.1 >= L::Number::SAFE_MINIMUM && other_found.1 >= L::Number::SAFE_MINIMUM) {
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

impl<'a, L: Lanes, const V: usize, const A: usize> Matrix<'a, L, V, A> {
    #[inline(always)]
    fn new(a: &'a mut [[L; A]], w: &'a mut [[L; V]]) -> Self {
        Self { ahead: std::ptr::null(), rows: Rows::new(a.len()), a, w }
    }

    /// What is left when `done` columns, whole vectors, are factored, as a matrix of its own.
    #[inline(always)]
    fn rest<const W: usize>(&mut self, done: usize) -> Matrix<'_, L, W, A> {
        let order = self.a.len() - done;
        let left = self.w[done..].as_flattened_mut();
        for c in 0..order {
            let mut table = [L::Vector::splat(num_traits::zero()); TABLE];
            table[..V].copy_from_slice(&L::as_vectors(&left[c * V..])[..V]);
            let to = &mut L::as_vectors_mut(&mut left[c * W..])[..W];
            for v in 0..W {
                to[v] = L::Vector::look_up(&table, V, &self.rows.at[done + v * L::COUNT..]);
            }
        }
        let (w, _) = left.as_chunks_mut();
        Matrix { ahead: self.ahead, ..Matrix::new(&mut self.a[done..], &mut w[..columns_in_work(order)]) }
    }

    /// Takes over dense columns.
    #[inline(always)]
    fn pack(&mut self, from: &[<L::Vector as Vector>::Real], ahead: usize) {
        let n = self.a.len();
        self.rows = Rows::new(n);
        self.ahead = from.as_ptr().wrapping_add(ahead);
        for (from, to) in from.chunks_exact(n).zip(self.w.iter_mut()) {
            for at in (0..if long::<L, V>() { 0 } else { n }).step_by(L::COUNT) {
                L::Vector::prefetch(from.as_ptr().wrapping_add(ahead + at));
            }
            let (whole, rest) = from.split_at((V - 1) * L::COUNT);
            for (v, from) in whole.chunks_exact(L::COUNT).enumerate() {
                to[v] = L::from_memory(from);
            }
            to[V - 1] = L::from_memory(rest);
        }
    }

    /// Hands the factors over.
    #[inline(always)]
    fn unpack(&self, to: &mut [<L::Vector as Vector>::Real]) {
        for (from, to) in self.a.iter().zip(to.chunks_exact_mut(self.a.len())) {
            let (whole, rest) = to.split_at_mut((V - 1) * L::COUNT);
            for (v, to) in whole.chunks_exact_mut(L::COUNT).enumerate() {
                from[v].to_memory(to);
            }
            from[V - 1].to_memory(rest);
        }
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
        // The reciprocal of the size is there before the pivot is found.
        let factor = L::splat(L::Number::from_parts(size.recip().copysign(pivot.re()), num_traits::zero()));
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
        match V {
            1 => self.apply_to_vectors::<1>(first, pivots, 0),
            2 => self.apply_to_vectors::<2>(first, pivots, 0),
            3 => self.apply_to_vectors::<3>(first, pivots, 0),
            5 => self.apply_to_vectors::<5>(first, pivots, 0),
            _ => self.apply_to_vectors::<4>(first, pivots, 0),
        }
        match V {
            6 => self.apply_to_vectors::<2>(first, pivots, 4),
            7 => self.apply_to_vectors::<3>(first, pivots, 4),
            8 => self.apply_to_vectors::<4>(first, pivots, 4),
            _ => {}
        }
    }

    /// The same in `R` vectors from vector `i` on; with the first of them, the panel's rows of `U` are found.
    #[inline(always)]
    fn apply_to_vectors<const R: usize>(&mut self, first: usize, pivots: &[usize; PANEL], i: usize) {
        let end = first + PANEL;
        let (panel, rest) = self.w[first..self.a.len()].split_at_mut(PANEL);
        // Single numbers: they take half the time of vectors that hold the same in every lane.
        let (mut l, mut corner) = ([[L::zero(); R]; PANEL], [[num_traits::zero(); PANEL]; PANEL]);
        for k in 0..PANEL {
            for r in 0..R {
                l[k][r] = panel[k][i + r];
            }
            for m in k + 1..PANEL {
                corner[k][m] = -number(&panel[k], pivots[m]).re();
            }
        }
        let mut ahead = self.ahead;
        for (column, a) in rest.iter_mut().zip(&mut self.a[end..]) {
            if long::<L, A>() && i == 0 {
                L::Vector::prefetch(ahead);
                ahead = ahead.wrapping_add(AHEAD);
            }
            let (a, mut u) = (&mut a[A - V..], [num_traits::zero(); PANEL]);
            for m in 0..PANEL {
                u[m] = if i == 0 { number(column, pivots[m]) } else { number(a, first + m) }.re();
                if i == 0 {
                    for k in 0..m {
                        u[m] = u[k].mul_add(corner[k][m], u[m]);
                    }
                    set(a, first + m, L::Number::from_parts(u[m], num_traits::zero()));
                }
            }
            let u = u.map(|u| L::spread_parts(u, num_traits::zero()));
            for r in 0..R {
                for k in 0..PANEL {
                    column[i + r] = column[i + r].minus_product(l[k][r], u[k]);
                }
            }
        }
        self.ahead = ahead;
    }

    /// Puts the rows of the first columns of `L` where they belong, below `U`. Whether all is finite, where columns are long: in others, numbers of `U` written one by one just
    /// before cannot be read as vectors yet.
    #[inline(always)]
    fn rearrange(&mut self, columns: usize) -> bool {
        let zero = L::Vector::splat(num_traits::zero());
        // Zero, as long as all is finite.
        let mut traces = [zero; TABLE];
        for (j, (from, to)) in self.w.iter().zip(self.a.iter_mut()).enumerate() {
            let (from, to) = (L::as_vectors(from), L::as_vectors_mut(&mut to[A - V..]));
            if j < columns {
                if long::<L, A>() {
                    L::Vector::prefetch(self.ahead);
                    self.ahead = self.ahead.wrapping_add(AHEAD);
                }
                let mut table = [zero; TABLE];
                table[..V].copy_from_slice(&from[..V]);
                let (diagonal, below) = (j / L::COUNT, L::Vector::lanes_after(j % L::COUNT));
                for v in diagonal..V {
                    let x = L::Vector::look_up(&table, V, &self.rows.at[v * L::COUNT..]);
                    to[v] = if v == diagonal { L::Vector::select(below, x, to[v]) } else { x };
                }
            }
            for v in 0..if long::<L, A>() { V } else { 0 } {
                traces[v] = to[v].mul_add(zero, traces[v]);
            }
        }
        let mut sums = Sums::<L>::default();
        sums.add(&traces);
        sums.spoiled() == 0
    }
}

/// Writes number `i` of a column.
#[inline(always)]
fn set<L: Lanes>(column: &mut [L], i: usize, x: L::Number) {
    L::set_lane(column, i / L::COUNT, i % L::COUNT, x);
}
