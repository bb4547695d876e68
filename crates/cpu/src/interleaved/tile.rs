//! The tile: some rows and columns of results in registers while a product is subtracted from them.

use std::ops::Range;

use crate::simd::Lanes;

/// Columns of a tile, and of a panel of columns that are worked on together.
pub(crate) const COLUMNS: usize = 4;

/// The body for `C` columns from `j` on: for four at a time, then for one.
macro_rules! for_columns {
    ($columns:expr, |$j:ident, $c:ident| $body:expr) => {{
        let Range { start, end } = $columns;
        let mut $j = start;
        while end - $j >= COLUMNS {
            const $c: usize = COLUMNS;
            $body;
            $j += COLUMNS;
        }
        if end - $j >= 2 {
            const $c: usize = 2;
            $body;
            $j += 2;
        }
        if $j < end {
            const $c: usize = 1;
            $body;
        }
    }};
}
pub(super) use for_columns;

/// `sum[c][r] -= l(k)[r] u[c][k]` for each `k` in turn: for all elements of `u`'s columns, from the last one on where `DOWN`.
#[inline(always)]
pub(super) fn subtract<L: Lanes, const R: usize, const C: usize, const DOWN: bool>(
    sum: &mut [[L; R]; C],
    l: impl Fn(usize) -> [L; R],
    u: [&[L]; C],
) {
    let steps = u[0].len();
    assert!(u.iter().all(|u| u.len() == steps));
    let mut inner = *sum;
    for step in 0..steps {
        let k = if DOWN { steps - 1 - step } else { step };
        let l = l(k);
        for c in 0..C {
            // SAFETY: `k` is below the length of each.
            let weight = unsafe { *u[c].get_unchecked(k) };
            for r in 0..R {
                inner[c][r] = inner[c][r].minus_product(l[r], weight);
            }
        }
    }
    *sum = inner;
}

/// Some rows of `C` columns from `j` on.
#[inline(always)]
pub(super) fn part<L, const C: usize>(a: &[L], ld: usize, j: usize, rows: Range<usize>) -> [&[L]; C] {
    let mut parts = [&a[..0]; C];
    for c in 0..C {
        parts[c] = &a[(j + c) * ld..(j + c + 1) * ld][rows.clone()];
    }
    parts
}

/// `C` neighbouring columns, without a look at every index: inner loops took half their time for it.
pub(super) struct Columns<'a, L, const C: usize> {
    /// `C ld` elements.
    a: &'a mut [L],
    ld: usize,
}

impl<'a, L: Lanes, const C: usize> Columns<'a, L, C> {
    /// Those from `j` on.
    #[inline(always)]
    pub(super) fn new(a: &'a mut [L], ld: usize, j: usize) -> Self {
        Self { a: &mut a[j * ld..][..C * ld], ld }
    }

    /// Row `i`: all of it before any of another is written. Columns may be multiples of 4 KiB apart, and a load then waits for a store to the
    /// same place of another page.
    #[inline(always)]
    pub(super) fn row(&self, i: usize) -> [L; C] {
        assert!(i < self.ld);
        let mut row = [L::zero(); C];
        for c in 0..C {
            // SAFETY: there are `C ld` elements.
            row[c] = unsafe { *self.a.get_unchecked(i + c * self.ld) };
        }
        row
    }

    /// Writes row `i`.
    #[inline(always)]
    pub(super) fn set_row(&mut self, i: usize, row: [L; C]) {
        assert!(i < self.ld);
        for c in 0..C {
            // SAFETY: there are `C ld` elements.
            unsafe { *self.a.get_unchecked_mut(i + c * self.ld) = row[c] };
        }
    }
}

/// `R` neighbours in a column, from `at` on.
#[inline(always)]
pub(super) fn rows<L: Lanes, const R: usize>(a: &[L], at: usize) -> [L; R] {
    let a = &a[at..at + R];
    let mut rows = [L::zero(); R];
    for r in 0..R {
        rows[r] = a[r];
    }
    rows
}

/// A tile whose first element is `at`.
#[inline(always)]
pub(super) fn load<L: Lanes, const R: usize, const C: usize>(a: &[L], at: usize, ld: usize) -> [[L; R]; C] {
    let mut tile = [[L::zero(); R]; C];
    for c in 0..C {
        tile[c] = rows(a, at + c * ld);
    }
    tile
}

/// Writes a tile.
#[inline(always)]
pub(super) fn store<L: Lanes, const R: usize, const C: usize>(a: &mut [L], at: usize, ld: usize, tile: [[L; R]; C]) {
    for c in 0..C {
        // Not as a copy of memory: that would be a call.
        let column = &mut a[at + c * ld..at + c * ld + R];
        for r in 0..R {
            column[r] = tile[c][r];
        }
    }
}
