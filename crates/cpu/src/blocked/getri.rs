//! `X = U⁻¹ L⁻¹ P⁻¹` of one matrix, in the place of the factors: `U` is inverted, then `X L = U⁻¹` solved from the last columns on.

use batchla_core::Scalar;

use super::COLUMNS;
use super::tile::{Factors, lanes_after, lanes_before, load, number, spread, store, subtract, subtract_upper};
use crate::scalar::reciprocal;
use crate::simd::{Lanes, Vector, Work};

/// Inverts the factored matrix of order `exchanges.len()`. Where its factors are not finite, or have a zero on the diagonal, anything comes out.
pub struct BlockedGetri<'a, T> {
    pub(crate) a: &'a mut [T],
    /// Room for [`COLUMNS`] columns.
    pub(crate) aside: &'a mut [T],
    /// The distance of columns, in numbers.
    pub(crate) ld: usize,
    pub(crate) exchanges: &'a [u32],
}

impl<T: Scalar> Work<T> for BlockedGetri<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        let Self { a, aside, ld, exchanges } = self;
        let (a, l, ld, n) = (L::from_numbers_mut(a), L::from_numbers_mut(aside), ld / L::COUNT, exchanges.len());
        if L::PARTS == 1 && size_of::<L>() == 64 {
            invert::<L, COLUMNS>(a, l, ld, n);
        } else {
            invert::<L, 4>(a, l, ld, n);
        }
        for (k, &p) in exchanges.iter().enumerate().rev() {
            let p = p as usize;
            if p > k {
                let (left, right) = a.split_at_mut(p * ld);
                left[k * ld..(k + 1) * ld].swap_with_slice(&mut right[..ld]);
            }
        }
    }
}

#[inline(always)]
fn invert<L: Lanes, const C: usize>(a: &mut [L], l: &mut [L], ld: usize, n: usize) {
    let step = C.max(L::COUNT);
    for j in (0..n).step_by(step) {
        let end = n.min(j + step);
        // Above the diagonal's vectors: several columns at a time, those that begin at whole vectors.
        let mut first = j;
        while end - first >= C {
            let (above, mut i) = (j / L::COUNT, 0);
            // Two at a time, but for long vectors: where their diagonals are, half of the products are for nothing.
            while above - i >= 2 && L::PARTS == 1 && L::COUNT <= 8 {
                invert_vectors::<L, 2, C>(a, ld, i, first);
                i += 2;
            }
            while i < above {
                invert_vectors::<L, 1, C>(a, ld, i, first);
                i += 1;
            }
            finish_columns::<L>(a, ld, j, first, first + C);
            first += C;
        }
        for column in first..end {
            for i in 0..j / L::COUNT {
                invert_vectors::<L, 1, 1>(a, ld, i, column);
            }
            finish_columns::<L>(a, ld, j, column, column + 1);
        }
    }
    let whole = n / C * C;
    for j in (whole..n).rev() {
        solve_lower::<L, 1>(a, l, ld, n, j);
    }
    for j in (0..whole).step_by(C).rev() {
        solve_lower::<L, C>(a, l, ld, n, j);
    }
}

/// The body for each number below another, upwards or down, as a constant: what is found by a variable lies in memory.
macro_rules! for_each_constant {
    ($of:ident, |$c:ident| $body:expr) => { for_each_constant!($of, |$c| $body, 0 1 2 3 4 5 6 7) };
    ($of:ident down, |$c:ident| $body:expr) => { for_each_constant!($of, |$c| $body, 7 6 5 4 3 2 1 0) };
    ($of:ident, |$c:ident| $body:expr, $($number:literal)*) => {
        $({
            const $c: usize = $number;
            if $c < $of {
                $body
            }
        })*
    };
}

/// Vectors `i..i + R`, which are above their diagonal, of `C` columns of `U⁻¹` from `j` on: minus the sum of the columns before, weighted by `U`'s, times
/// the reciprocal of its diagonal.
#[inline(always)]
fn invert_vectors<L: Lanes, const R: usize, const C: usize>(a: &mut [L], ld: usize, i: usize, j: usize) {
    let (x, own) = a.split_at_mut(j * ld);
    let (mut sum, factors) = ([[L::zero(); R]; C], Factors { a: x, b: None, row: 0, ld });
    for_each_constant!(R, |AT| {
        // Below the diagonal, `L` is still there.
        let (r, mut own_sum) = (AT, [[L::zero()]; C]);
        subtract_upper::<L, C>(&mut own_sum, own, factors, i + r);
        subtract::<L, 1, C, false>(&mut own_sum, own, factors, ((i + r + 1) * L::COUNT, (i + R) * L::COUNT), i + r, 0);
        for c in 0..C {
            sum[c][r] = own_sum[c][0];
        }
    });
    subtract::<L, R, C, false>(&mut sum, own, factors, ((i + R) * L::COUNT, j), i, 0);
    for_each_constant!(C, |AT| {
        let c = AT;
        let column = &own[c * ld..];
        let inverse = L::splat(reciprocal(number(column, j + c)));
        for k in 0..c {
            let weight = spread(column, j + k);
            for r in 0..R {
                sum[c][r] = sum[c][r].minus_product(sum[k][r], weight);
            }
        }
        for r in 0..R {
            sum[c][r] = sum[c][r].times(inverse);
        }
    });
    store(own, ld, i, 0, sum);
}

/// The vectors from row `top` on of columns `first..end` of `U⁻¹`, whose diagonal is in them.
#[inline(always)]
fn finish_columns<L: Lanes>(a: &mut [L], ld: usize, top: usize, first: usize, end: usize) {
    for j in first..end {
        let (x, own) = a.split_at_mut(j * ld);
        let inverse = reciprocal(number(own, j));
        for i in top / L::COUNT..=j / L::COUNT {
            let start = i * L::COUNT;
            let mut sum = [[L::zero()]];
            for k in start..j.min(start + L::COUNT) {
                let next = sum[0][0].minus_product(x[k * ld + i], spread(own, k));
                sum[0][0] = L::select(lanes_before::<L>(k - start + 1), next, sum[0][0]);
            }
            let factors = Factors { a: x, b: None, row: 0, ld };
            subtract::<L, 1, 1, false>(&mut sum, own, factors, (start + L::COUNT, j), i, 0);
            let scaled = sum[0][0].times(L::splat(inverse));
            own[i] = if j < start + L::COUNT {
                let with_diagonal = L::select(L::Vector::lane_mask(j - start), L::splat(inverse), own[i]);
                L::select(lanes_before::<L>(j - start), scaled, with_diagonal)
            } else {
                scaled
            };
        }
    }
}

/// `C` columns of `X` from `j` on, once those after are done: minus their sum, weighted by `L`'s columns, which are set aside.
#[inline(always)]
fn solve_lower<L: Lanes, const C: usize>(a: &mut [L], l: &mut [L], ld: usize, n: usize, j: usize) {
    let vectors = n.div_ceil(L::COUNT);
    let (before, after) = a.split_at_mut((j + C) * ld);
    let x = &mut before[j * ld..];
    for c in 0..C {
        let first = (j + c) / L::COUNT;
        let (x, l) = (&mut x[c * ld..c * ld + vectors], &mut l[c * ld..c * ld + vectors]);
        l[j / L::COUNT..].copy_from_slice(&x[j / L::COUNT..]);
        x[first] = L::select(lanes_after::<L>((j + c) % L::COUNT), L::zero(), x[first]);
        x[first + 1..].fill(L::zero());
    }
    let l = &*l;
    let mut i = 0;
    while vectors - i >= 2 {
        solve_vectors::<L, 2, C>(x, after, l, (ld, n), i, j);
        i += 2;
    }
    if i < vectors {
        solve_vectors::<L, 1, C>(x, after, l, (ld, n), i, j);
    }
}

#[inline(always)]
fn solve_vectors<L: Lanes, const R: usize, const C: usize>(
    x: &mut [L],
    after: &[L],
    l: &[L],
    (ld, n): (usize, usize),
    i: usize,
    j: usize,
) {
    // The products are summed before the difference, as LAPACK's are: where growth cancels, one by one loses it.
    let mut sum = [[L::zero(); R]; C];
    let factors = Factors { a: after, b: Some(l), row: j + C, ld };
    subtract::<L, R, C, true>(&mut sum, x, factors, (0, n - j - C), i, 0);
    let mut done = load::<L, R, C>(x, ld, i, 0);
    for_each_constant!(C down, |AT| {
        let c = AT;
        for k in (c + 1..C).rev() {
            let weight = spread(&l[c * ld..], j + k);
            for r in 0..R {
                sum[c][r] = sum[c][r].minus_product(done[k][r], weight);
            }
        }
        for r in 0..R {
            done[c][r] = done[c][r].plus(sum[c][r]);
        }
    });
    store(x, ld, i, 0, done);
}
