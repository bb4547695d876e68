//! `X = U⁻¹ L⁻¹ P⁻¹` of one matrix, in the place of the factors: `U` is inverted, then `X L = U⁻¹` solved from the last columns on.
//!
//! Where threads are free to share columns, and where a matrix is too large to stay near, these go block by block: first what columns outside of the block contribute, to all of
//! its own at once.

use std::ops::Range;

use batchla_core::Scalar;

use super::COLUMNS;
use super::tile::{Factors, lanes_before, load, number, spread, store, subtract, subtract_upper};
use crate::backend::CpuScalar;
use crate::scalar::reciprocal;
use crate::simd::{InstructionSet, Lanes, MOST_LANES, Vector, Work};
use crate::team::Team;

/// Columns to set aside: those of a block, at most.
pub(crate) fn columns_aside(order: usize) -> usize {
    (order / 4 / MOST_LANES * MOST_LANES).clamp(COLUMNS, 128)
}

/// A matrix of more bytes goes block by block on one thread, too: fewer of its columns then come from afar. On an Intel Xeon with 2 MiB of second-level cache a core inverses of c64 took 0.88
/// (order 384) and 0.76 (512) of the time, of f64 0.89 (512): `benches/record/intel-xeon/2026-11-23/cpu-ratio.csv`, and `cpu-ratio-large-inverses.csv` beside it. Where matrices fit, nothing was gained; the bound itself was not sought on
/// other processors (an EPYC of 1 MiB is ahead of faer with it: `benches/record/amd-epyc-family-25/2026-11-23/cpu-ratio-large.csv`).
const LARGE: usize = 3 << 19;

/// The columns of a block, where there are threads to share it with, or the matrix is large: whole vectors.
fn block<T>(team: &Team, order: usize) -> Option<usize> {
    let together = match team.free() {
        0 if order * order * size_of::<T>() > LARGE => 4,
        free => free + 1,
    };
    let width = columns_aside(order).min(MOST_LANES * together);
    (together > 1 && width > MOST_LANES).then_some(width)
}

/// Inverts the factored matrix of order `exchanges.len()`, its columns `ld` numbers apart, with room for [`columns_aside`]; `exchange`: its columns to their places, too. Where its
/// factors are not finite, or have a zero on the diagonal, anything comes out.
pub(crate) fn getri<T: CpuScalar>(
    set: InstructionSet,
    team: &Team,
    (a, aside): (&mut [T], &mut [T]),
    ld: usize,
    exchanges: &[u32],
    exchange: bool,
) {
    let order = exchanges.len();
    let mut first = 0;
    while first < order {
        let end = block::<T>(team, order).map_or(order, |width| order.min(first + width));
        let (before, columns) = a[..end * ld].split_at_mut(first * ld);
        if first > 0 {
            team.share(columns, ld, first * first / 2, |_, columns| {
                T::sum_upper(set, SumUpper { before, columns, ld });
            });
        }
        T::invert_upper(set, InvertUpper { a: &mut a[..end * ld], ld, first });
        first = end;
    }
    let mut end = order;
    while end > 0 {
        // Where helpers go away, what is left still goes block by block: what it takes aside is no more.
        let alone = if end < order { columns_aside(order) } else { order };
        let width = block::<T>(team, order).unwrap_or(alone);
        let first = end.saturating_sub(width).next_multiple_of(MOST_LANES);
        if end < order {
            let (columns, after) = a.split_at_mut(end * ld);
            let columns = &mut columns[first * ld..];
            aside[..columns.len()].copy_from_slice(columns);
            let aside = &*aside;
            team.share(columns, ld, order * (order - end), |at, columns| {
                T::sum_lower(set, SumLower { columns, aside: &aside[at * ld..], after, ld, order });
            });
        }
        T::invert_lower(set, InvertLower { a, aside, ld, order, columns: first..end });
        end = first;
    }
    let wanted = if exchange { exchanges } else { &[] };
    for (k, &p) in wanted.iter().enumerate().rev() {
        let p = p as usize;
        if p > k {
            let (left, right) = a.split_at_mut(p * ld);
            left[k * ld..(k + 1) * ld].swap_with_slice(&mut right[..ld]);
        }
    }
}

/// What the columns before contribute to columns of `U⁻¹`, in the rows that are above all of their diagonals.
pub struct SumUpper<'a, T> {
    before: &'a [T],
    columns: &'a mut [T],
    ld: usize,
}

impl<T: Scalar> Work<T> for SumUpper<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        let Self { before, columns, ld } = self;
        let (before, columns, ld) = (L::from_numbers(before), L::from_numbers_mut(columns), ld / L::COUNT);
        with_tiles!(L, sum_upper(before, columns, ld));
    }
}

#[inline(always)]
fn sum_upper<L: Lanes, const C: usize>(before: &[L], columns: &mut [L], ld: usize) {
    let end = before.len() / ld;
    for i in 0..end / L::COUNT {
        let mut whole = columns.chunks_exact_mut(C * ld);
        for own in &mut whole {
            let sum = upper_sum::<L, 1, C>(before, own, ld, i, end);
            store(own, ld, i, 0, sum);
        }
        for own in whole.into_remainder().chunks_exact_mut(ld) {
            let sum = upper_sum::<L, 1, 1>(before, own, ld, i, end);
            store(own, ld, i, 0, sum);
        }
    }
}

/// Inverts `U` in columns from `first` on, to which those before have contributed.
pub struct InvertUpper<'a, T> {
    a: &'a mut [T],
    ld: usize,
    first: usize,
}

impl<T: Scalar> Work<T> for InvertUpper<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        let Self { a, ld, first } = self;
        let (a, ld) = (L::from_numbers_mut(a), ld / L::COUNT);
        with_tiles!(L, invert_upper(a, ld, first));
    }
}

#[inline(always)]
fn invert_upper<L: Lanes, const C: usize>(a: &mut [L], ld: usize, first: usize) {
    let (n, step) = (a.len() / ld, C.max(L::COUNT));
    for j in (first..n).step_by(step) {
        let end = n.min(j + step);
        // Above the diagonal's vectors: several columns at a time, those that begin at whole vectors.
        let mut column = j;
        while end - column >= C {
            invert_columns::<L, C>(a, ld, (first, j), column);
            column += C;
        }
        for column in column..end {
            invert_columns::<L, 1>(a, ld, (first, j), column);
        }
    }
}

/// Columns `column..column + C`, whose diagonals are in vectors from row `j` on, and to which the columns before `first` have contributed.
#[inline(always)]
fn invert_columns<L: Lanes, const C: usize>(a: &mut [L], ld: usize, (first, j): (usize, usize), column: usize) {
    let (known, above, mut i) = (first / L::COUNT, j / L::COUNT, 0);
    let mut inverses = [num_traits::zero(); C];
    for c in 0..C {
        inverses[c] = reciprocal(number(&a[(column + c) * ld..], column + c));
    }
    while known - i.min(known) >= 2 {
        invert_vectors::<L, 2, C>(a, ld, i, (first, column), &inverses);
        i += 2;
    }
    // Two at a time, but for long vectors: where their diagonals are, half of the products are for nothing.
    while above - i >= 2 && i >= known && L::PARTS == 1 && L::COUNT <= 8 && C > 1 {
        invert_vectors::<L, 2, C>(a, ld, i, (first, column), &inverses);
        i += 2;
    }
    while i < above {
        invert_vectors::<L, 1, C>(a, ld, i, (first, column), &inverses);
        i += 1;
    }
    finish_columns::<L>(a, ld, j, column, column + C);
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

/// Minus the sum of the columns before column `end`, weighted by `U`'s, in vectors `i..i + R`, which are above their diagonal.
#[inline(always)]
fn upper_sum<L: Lanes, const R: usize, const C: usize>(
    x: &[L],
    own: &[L],
    ld: usize,
    i: usize,
    end: usize,
) -> [[L; R]; C] {
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
    subtract::<L, R, C, false>(&mut sum, own, factors, ((i + R) * L::COUNT, end), i, 0);
    sum
}

/// Vectors `i..i + R` of `C` columns of `U⁻¹` from `j` on: that sum, begun with the columns before `first`, times `inverses` of the diagonal.
#[inline(always)]
fn invert_vectors<L: Lanes, const R: usize, const C: usize>(
    a: &mut [L],
    ld: usize,
    i: usize,
    (first, j): (usize, usize),
    inverses: &[L::Number; C],
) {
    let (x, own) = a.split_at_mut(j * ld);
    let mut sum = if (i + R) * L::COUNT <= first {
        let (mut sum, factors) = (load::<L, R, C>(own, ld, i, 0), Factors { a: x, b: None, row: 0, ld });
        subtract::<L, R, C, false>(&mut sum, own, factors, (first, j), i, 0);
        sum
    } else {
        upper_sum::<L, R, C>(x, own, ld, i, j)
    };
    for_each_constant!(C, |AT| {
        let c = AT;
        let column = &own[c * ld..];
        let inverse = L::splat(inverses[c]);
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

/// What the columns after contribute to columns of `X`, whose factors are set aside.
pub struct SumLower<'a, T> {
    columns: &'a mut [T],
    aside: &'a [T],
    after: &'a [T],
    ld: usize,
    order: usize,
}

impl<T: Scalar> Work<T> for SumLower<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        let Self { columns, aside, after, ld, order } = self;
        let (columns, aside) = (L::from_numbers_mut(columns), L::from_numbers(aside));
        with_tiles!(L, sum_lower(columns, aside, L::from_numbers(after), ld / L::COUNT, order));
    }
}

#[inline(always)]
fn sum_lower<L: Lanes, const C: usize>(columns: &mut [L], aside: &[L], after: &[L], ld: usize, n: usize) {
    let (vectors, mut i) = (n.div_ceil(L::COUNT), 0);
    while vectors - i >= 2 {
        sum_lower_in_vectors::<L, 2, C>(columns, aside, after, (ld, n), i);
        i += 2;
    }
    if i < vectors {
        sum_lower_in_vectors::<L, 1, C>(columns, aside, after, (ld, n), i);
    }
}

/// The same in vectors `i..i + R`: what is there of the columns after stays in the nearest cache.
#[inline(always)]
fn sum_lower_in_vectors<L: Lanes, const R: usize, const C: usize>(
    columns: &mut [L],
    aside: &[L],
    after: &[L],
    (ld, n): (usize, usize),
    i: usize,
) {
    let (width, mut j) = (columns.len() / ld, 0);
    while width - j >= C {
        let sum = lower_sum([[L::zero(); R]; C], after, &aside[j * ld..], (ld, n), n, i);
        store(columns, ld, i, j, sum);
        j += C;
    }
    while j < width {
        let sum = lower_sum([[L::zero(); R]; 1], after, &aside[j * ld..], (ld, n), n, i);
        store(columns, ld, i, j, sum);
        j += 1;
    }
}

/// `done` plus `sum`, from the last of `C` columns on, each less what those after it contribute.
#[inline(always)]
fn eliminate<L: Lanes, const R: usize, const C: usize>(
    mut sum: [[L; R]; C],
    mut done: [[L; R]; C],
    aside: &[L],
    ld: usize,
    j: usize,
) -> [[L; R]; C] {
    for_each_constant!(C down, |AT| {
        let c = AT;
        for k in (c + 1..C).rev() {
            let weight = spread(&aside[c * ld..], j + k);
            for r in 0..R {
                sum[c][r] = sum[c][r].minus_product(done[k][r], weight);
            }
        }
        for r in 0..R {
            done[c][r] = done[c][r].plus(sum[c][r]);
        }
    });
    done
}

/// Minus the sum of the columns `after`, which end at `end`, the last first, weighted by `L`'s in the columns that are set aside.
#[inline(always)]
fn lower_sum<L: Lanes, const R: usize, const C: usize>(
    mut sum: [[L; R]; C],
    after: &[L],
    aside: &[L],
    (ld, n): (usize, usize),
    end: usize,
    i: usize,
) -> [[L; R]; C] {
    let first = n - after.len() / ld;
    let factors = Factors { a: after, b: Some(aside), row: first, ld };
    subtract::<L, R, C, true>(&mut sum, after, factors, (0, end - first), i, 0);
    sum
}

/// Solves for columns of `X`. Those after the last of them have contributed, if there are any; then all are set aside.
pub struct InvertLower<'a, T> {
    a: &'a mut [T],
    aside: &'a mut [T],
    ld: usize,
    order: usize,
    columns: Range<usize>,
}

impl<T: Scalar> Work<T> for InvertLower<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        let Self { a, aside, ld, order, columns } = self;
        let (a, aside, ld) = (L::from_numbers_mut(a), L::from_numbers_mut(aside), ld / L::COUNT);
        with_tiles!(L, invert_lower(&mut a[..order * ld], aside, ld, columns));
    }
}

#[inline(always)]
fn invert_lower<L: Lanes, const C: usize>(a: &mut [L], aside: &mut [L], ld: usize, columns: Range<usize>) {
    let whole = columns.start + columns.len() / C * C;
    for j in (whole..columns.end).rev() {
        solve_lower::<L, 1>(a, aside, ld, &columns, j);
    }
    for j in (columns.start..whole).step_by(C).rev() {
        solve_lower::<L, C>(a, aside, ld, &columns, j);
    }
}

/// `C` columns of `X` from `j` on, once those after are done: minus their sum, weighted by `L`'s columns, which are set aside.
#[inline(always)]
fn solve_lower<L: Lanes, const C: usize>(a: &mut [L], aside: &mut [L], ld: usize, columns: &Range<usize>, j: usize) {
    let n = a.len() / ld;
    let (before, after) = a.split_at_mut((j + C) * ld);
    let x = &mut before[j * ld..];
    let aside = if columns.end < n {
        &aside[(j - columns.start) * ld..]
    } else {
        // `L` alone: what is above is not asked for again once it is written.
        let first = j / L::COUNT;
        for (aside, x) in aside.chunks_exact_mut(ld).zip(x.chunks_exact(ld)) {
            aside[first..].copy_from_slice(&x[first..]);
        }
        &*aside
    };
    let (vectors, mut i) = (n.div_ceil(L::COUNT), 0);
    while vectors - i >= 2 {
        solve_vectors::<L, 2, C>(x, after, aside, (ld, n), columns.end, i);
        i += 2;
    }
    if i < vectors {
        solve_vectors::<L, 1, C>(x, after, aside, (ld, n), columns.end, i);
    }
}

#[inline(always)]
fn solve_vectors<L: Lanes, const R: usize, const C: usize>(
    x: &mut [L],
    after: &[L],
    aside: &[L],
    (ld, n): (usize, usize),
    end: usize,
    i: usize,
) {
    let j = n - after.len() / ld - C;
    // The products are summed before the difference, as LAPACK's are: where growth cancels, one by one loses it.
    let (sum, inverse) = if end < n { (load::<L, R, C>(x, ld, i, 0), aside) } else { ([[L::zero(); R]; C], &*x) };
    let sum = lower_sum(sum, after, aside, (ld, n), end, i);
    let mut done = load::<L, R, C>(inverse, ld, i, 0);
    if i * L::COUNT > j + C - 1 {
        // `L` is there, no inverse.
        done = [[L::zero(); R]; C];
    } else if (i + R) * L::COUNT > j + 1 {
        for c in 0..C {
            for r in 0..R {
                let upper = lanes_before::<L>((j + c + 1).saturating_sub((i + r) * L::COUNT).min(L::COUNT));
                done[c][r] = L::select(upper, done[c][r], L::zero());
            }
        }
    }
    store(x, ld, i, 0, eliminate(sum, done, aside, ld, j));
}
