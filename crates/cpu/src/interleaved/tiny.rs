//! Matrices so small that they stay in registers, of an order known when compiled.
//!
//! Does to each element what [`getrf`](super::getrf) and [`getri`](super::getri) do, in the same order.

use super::exchanges::Exchanges;
use super::pivot::{larger, scale_slowly};
use super::tile::{load, store};
use crate::simd::{Lanes, Vector};

/// The largest order that stays in registers.
pub(super) const LARGEST: usize = 4;

/// The body for each literal below the first operand.
macro_rules! for_literals {
    ($n:expr, $k:ident, [$($literal:literal),*], $body:expr) => { $(
        if $literal < $n {
            let $k: usize = $literal;
            $body;
        }
    )* };
}
/// Columns of rows.
type Matrix<L, const N: usize> = [[L; N]; N];

/// Factors; `N` is four at most.
#[inline(always)]
pub(super) fn factor<L: Lanes, E: Exchanges<L> + ?Sized, const N: usize>(
    a: &mut [L],
    exchanges: &mut E,
    zero_pivots: &mut L::Vector,
) {
    let mut m = load::<L, N, N>(a, 0, N);
    // Written out: the compiler must know every index, or the matrix is no longer in registers.
    for_literals!(N, k, [0, 1, 2, 3], factor_column(&mut m, k, exchanges, zero_pivots));
    store(a, 0, N, m);
}

#[inline(always)]
fn factor_column<L: Lanes, E: Exchanges<L> + ?Sized, const N: usize>(
    m: &mut Matrix<L, N>,
    k: usize,
    exchanges: &mut E,
    zero_pivots: &mut L::Vector,
) {
    let mut best = (L::Vector::splat(num_traits::zero()), L::count(k));
    for i in k..N {
        best = larger::<L>((m[k][i].size(), L::count(i)), best);
    }
    let index = best.1;
    exchanges.note(index, N, k);
    for i in k + 1..N {
        let here = index.equals(L::count(i));
        for column in m.iter_mut() {
            let (x, y) = (column[k], column[i]);
            column[k] = L::select(here, y, x);
            column[i] = L::select(here, x, y);
        }
    }
    let pivot = m[k][k];
    if pivot.is_moderate() {
        let reciprocal = pivot.reciprocal();
        for i in k + 1..N {
            m[k][i] = m[k][i].times(reciprocal);
        }
    } else {
        let mut column = m[k];
        scale_slowly(&mut column, k, zero_pivots);
        m[k] = column;
    }
    for j in k + 1..N {
        for i in k + 1..N {
            m[j][i] = m[j][i].minus_product(m[k][i], m[j][k]);
        }
    }
}

/// Inverts; `N` is four at most.
#[inline(always)]
pub(super) fn invert<L: Lanes, E: Exchanges<L> + ?Sized, const N: usize>(a: &mut [L], exchanges: &E) {
    let mut m = load::<L, N, N>(a, 0, N);
    for_literals!(N, j, [0, 1, 2, 3], {
        let reciprocal = m[j][j].any_reciprocal();
        for i in 0..j {
            let mut sum = L::zero();
            for k in i..j {
                sum = sum.minus_product(m[k][i], m[j][k]);
            }
            m[j][i] = sum.times(reciprocal);
        }
        m[j][j] = reciprocal;
    });
    for_literals!(N, j, [3, 2, 1, 0], {
        let l = m[j];
        for i in j + 1..N {
            m[j][i] = L::zero();
        }
        for i in 0..N {
            let mut sum = L::zero();
            for k in (j + 1..N).rev() {
                sum = sum.minus_product(m[k][i], l[k]);
            }
            m[j][i] = m[j][i].plus(sum);
        }
    });
    for_literals!(N, k, [3, 2, 1, 0], {
        let index = exchanges.index(N, k);
        for j in k + 1..N {
            let here = index.equals(L::count(j));
            for i in 0..N {
                let (x, y) = (m[k][i], m[j][i]);
                m[k][i] = L::select(here, y, x);
                m[j][i] = L::select(here, x, y);
            }
        }
    });
    store(a, 0, N, m);
}
