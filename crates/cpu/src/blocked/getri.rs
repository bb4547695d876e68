//! `X = U⁻¹ L⁻¹ P⁻¹` of one matrix, in the place of the factors: `U` is inverted, then `X L = U⁻¹` solved from the last columns on.
//!
//! Where threads are free to share columns, and where a matrix is too large to stay near, these go block by block: first what columns outside of the block contribute, to all of
//! its own at once.

use std::ops::Range;

use batchla_core::Scalar;

use super::COLUMNS;
use super::tile::{Factors, lanes_before, load, spread, store, subtract};
use super::trtri::{InvertUpper, SumUpper};
use crate::backend::CpuScalar;
use crate::simd::{InstructionSet, Lanes, MOST_LANES, Work};
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
