//! Exchanges among few rows: every lane looks at each row, and chooses what belongs there. No lane is moved by itself, which vectors would wait for.

use std::ops::Range;

use super::exchanges::Exchanges;
use super::pivot::{largest, next_largest, scale};
use super::tile::{COLUMNS, Columns, for_columns, part};
use crate::simd::{Lanes, Vector};

/// Takes the next column, or two of real numbers, for whose rows there are registers enough; gives how many are done then, and the row of the next pivot.
#[inline(always)]
pub(super) fn choose_some<L: Lanes, E: Exchanges<L> + ?Sized>(
    a: &mut [L],
    shape: (usize, usize),
    next: (usize, L::Vector),
    columns: Range<usize>,
    exchanges: &mut E,
    zero_pivots: &mut L::Vector,
) -> (usize, L::Vector) {
    if L::PARTS == 1 && next.0 + 1 < columns.end {
        (next.0 + 2, choose::<L, E, 2>(a, shape, next, columns, exchanges, zero_pivots))
    } else {
        (next.0 + 1, choose::<L, E, 1>(a, shape, next, columns, exchanges, zero_pivots))
    }
}

/// Makes the exchanges of `S` columns from `k` on in some columns by looking at every row, the first one's row given, and eliminates these from those on their
/// right, each of which is read and written once for all; gives the row of the next pivot, if any.
#[inline(always)]
fn choose<L: Lanes, E: Exchanges<L> + ?Sized, const S: usize>(
    a: &mut [L],
    (n, ld): (usize, usize),
    (k, index): (usize, L::Vector),
    columns: Range<usize>,
    exchanges: &mut E,
    zero_pivots: &mut L::Vector,
) -> L::Vector {
    let mut indices = [index; S];
    let end = k + S;
    for s in 0..S {
        let (k, index) = (k + s, [indices[s]]);
        exchanges.note(index[0], n, k);
        for_columns!(k - s..k + 1, |j, C| choose_rows::<L, 1, C>(a, (n, ld), k, j, &index));
        scale(&mut a[k * ld..k * ld + n], k, zero_pivots);
        for_columns!(k + 1..end, |j, C| choose_and_eliminate::<L, 1, C>(a, (n, ld), k, j, &index));
        if s + 1 < S {
            indices[s + 1] = largest::<L>(&a[(k + 1) * ld..][..n], k + 1);
        }
    }
    let soon = columns.end.min(end + COLUMNS);
    for_columns!(end..soon, |j, C| choose_and_eliminate::<L, S, C>(a, (n, ld), k, j, &indices));
    let next = next_largest::<L>(a, (n, ld), end, columns.end);
    for_columns!(columns.start..k, |j, C| choose_rows::<L, S, C>(a, (n, ld), k, j, &indices));
    for_columns!(soon..columns.end, |j, C| choose_and_eliminate::<L, S, C>(a, (n, ld), k, j, &indices));
    next
}

/// The rows that some exchanges bring up and down, in `C` columns.
struct Chosen<'i, L: Lanes, const S: usize, const C: usize> {
    /// The first row.
    k: usize,
    /// The row that each is exchanged with.
    index: &'i [L::Vector; S],
    /// What each exchange takes down.
    down: [[L; C]; S],
    /// What is in these rows, once all rows have been looked at.
    up: [[L; C]; S],
}

impl<'i, L: Lanes, const S: usize, const C: usize> Chosen<'i, L, S, C> {
    /// Those of rows from `k` on, after exchanges among themselves.
    #[inline(always)]
    fn new(a: &Columns<'_, L, C>, k: usize, index: &'i [L::Vector; S]) -> Self {
        let mut up = [[L::zero(); C]; S];
        for s in 0..S {
            up[s] = a.row(k + s);
        }
        let mut down = up;
        for s in 0..S {
            down[s] = up[s];
            for r in s + 1..S {
                let here = index[s].equals(L::count(k + r));
                for c in 0..C {
                    (up[s][c], up[r][c]) = (L::select(here, up[r][c], up[s][c]), L::select(here, up[s][c], up[r][c]));
                }
            }
        }
        Self { k, index, down, up }
    }

    /// Takes up what belongs there of a row below. What an exchange takes down and a later one up again is not seen, until [`Self::settle`].
    #[inline(always)]
    fn raise(&mut self, row: L::Vector, x: [L; C]) {
        for s in 0..S {
            let here = row.equals(self.index[s]);
            for c in 0..C {
                self.up[s][c] = L::select(here, x[c], self.up[s][c]);
            }
        }
    }

    /// Takes up, once all rows have been looked at, what came down by these very exchanges.
    #[inline(always)]
    fn settle(&mut self) {
        for s in 0..S {
            for r in s + 1..S {
                let same = self.index[s].equals(self.index[r]);
                for c in 0..C {
                    self.up[r][c] = L::select(same, self.down[s][c], self.up[r][c]);
                }
            }
        }
    }

    /// What comes down.
    #[inline(always)]
    fn lower(&self, row: L::Vector, mut x: [L; C]) -> [L; C] {
        for s in 0..S {
            let here = row.equals(self.index[s]);
            for c in 0..C {
                x[c] = L::select(here, self.down[s][c], x[c]);
            }
        }
        x
    }

    #[inline(always)]
    fn put(&self, a: &mut Columns<'_, L, C>) {
        for s in 0..S {
            a.set_row(self.k + s, self.up[s]);
        }
    }
}

/// Makes the exchanges of `S` rows from `k` on in `C` columns from `j` on, by looking at every row.
#[inline(always)]
fn choose_rows<L: Lanes, const S: usize, const C: usize>(
    a: &mut [L],
    (n, ld): (usize, usize),
    k: usize,
    j: usize,
    index: &[L::Vector; S],
) {
    let (one, mut row) = (L::count(1), L::count(k + S - 1));
    let mut a = Columns::<L, C>::new(a, ld, j);
    let mut chosen = Chosen::new(&a, k, index);
    for i in k + S..n {
        row = row.add(one);
        let x = a.row(i);
        chosen.raise(row, x);
        a.set_row(i, chosen.lower(row, x));
    }
    chosen.settle();
    chosen.put(&mut a);
}

/// The same, and eliminates columns from `k` on, which are exchanged and scaled.
#[inline(always)]
fn choose_and_eliminate<L: Lanes, const S: usize, const C: usize>(
    a: &mut [L],
    (n, ld): (usize, usize),
    k: usize,
    j: usize,
    index: &[L::Vector; S],
) {
    let one = L::count(1);
    let (left, right) = a.split_at_mut(j * ld);
    let l: [&[L]; S] = part(left, ld, k, 0..n);
    let mut a = Columns::<L, C>::new(right, ld, 0);
    let mut chosen = Chosen::new(&a, k, index);
    let mut row = L::count(k + S - 1);
    for i in k + S..n {
        row = row.add(one);
        chosen.raise(row, a.row(i));
    }
    chosen.settle();
    for s in 0..S {
        for t in s + 1..S {
            for c in 0..C {
                chosen.up[t][c] = chosen.up[t][c].minus_product(l[s][k + t], chosen.up[s][c]);
            }
        }
    }
    chosen.put(&mut a);
    let mut row = L::count(k + S - 1);
    for i in k + S..n {
        row = row.add(one);
        let mut x = chosen.lower(row, a.row(i));
        for s in 0..S {
            for c in 0..C {
                x[c] = x[c].minus_product(l[s][i], chosen.up[s][c]);
            }
        }
        a.set_row(i, x);
    }
}
