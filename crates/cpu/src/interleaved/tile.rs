//! The tile: some rows and columns of results in registers while a product is subtracted from them.

use crate::simd::Lanes;

/// Columns of a tile, and of a panel of columns that are worked on together.
pub(super) const COLUMNS: usize = 4;

/// `sum[c][r] -= l(k)[r] u(k)[c]` for each `k` in turn.
#[inline(always)]
pub(super) fn subtract<L: Lanes, const R: usize, const C: usize>(
    sum: &mut [[L; R]; C],
    steps: impl Iterator<Item = usize>,
    l: impl Fn(usize) -> [L; R],
    u: impl Fn(usize) -> [L; C],
) {
    let mut inner = *sum;
    for k in steps {
        let (l, u) = (l(k), u(k));
        for c in 0..C {
            for r in 0..R {
                inner[c][r] = inner[c][r].minus_product(l[r], u[c]);
            }
        }
    }
    *sum = inner;
}

/// `R` neighbours in a column, from `at` on.
#[inline(always)]
pub(super) fn rows<L: Lanes, const R: usize>(a: &[L], at: usize) -> [L; R] {
    let a = &a[at..at + R];
    std::array::from_fn(|r| a[r])
}

/// `C` neighbours in a row, `n` apart, from `at` on.
#[inline(always)]
pub(super) fn columns<L: Lanes, const C: usize>(a: &[L], at: usize, n: usize) -> [L; C] {
    std::array::from_fn(|c| a[at + c * n])
}

/// A tile whose first element is `at`.
#[inline(always)]
pub(super) fn load<L: Lanes, const R: usize, const C: usize>(a: &[L], at: usize, n: usize) -> [[L; R]; C] {
    std::array::from_fn(|c| rows(a, at + c * n))
}

/// Writes a tile.
#[inline(always)]
pub(super) fn store<L: Lanes, const R: usize, const C: usize>(a: &mut [L], at: usize, n: usize, sum: [[L; R]; C]) {
    for (c, sum) in sum.into_iter().enumerate() {
        a[at + c * n..at + c * n + R].copy_from_slice(&sum);
    }
}
