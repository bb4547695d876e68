//! Small matrices one after another: taken over, factored or inverted, and handed over group by group, without a step in between.

use batchla_core::{Determinant, Scalar};

use super::exchanges::{Exchanges, Kept};
use super::getrf::{factor, factor_by_steps};
use super::getri::invert;
use super::leading_dimension;
use super::next::Next;
use super::tiny;
use crate::routines::finite;
use crate::simd::{Lanes, MOST_LANES, Vector, Work, outline};

/// The largest order that is worth it: beyond, a group's own work hides the steps in between.
pub(super) const LARGEST: usize = 8;

/// Factors or inverts small matrices as [`Getrf`](super::Getrf) and [`Getri`](super::Getri) do.
pub struct Stretch<'a, T: Scalar> {
    pub(crate) order: usize,
    /// Dense columns, one matrix after another; `None` where they are in place.
    pub(crate) from: Option<&'a [T]>,
    /// As many.
    pub(crate) to: &'a mut [T],
    /// Out: the exchanges of each matrix; where matrices are inverted, room for a group's.
    pub(crate) exchanges: &'a mut [u32],
    pub(crate) invert: bool,
    /// Out: of matrices that are inverted, where they are wanted; by pairs alone.
    pub(crate) determinants: Option<&'a mut [Determinant<T>]>,
    /// Room for a group.
    pub(crate) a: &'a mut [T],
    /// Room for what an inversion sets aside.
    pub(crate) aside: &'a mut [T],
}

impl<T: Scalar> Work<T> for Stretch<'_, T> {
    /// How many matrices are done: whole groups, up to the first that has one that is not regular, which stays as it was.
    type Output = usize;

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) -> usize {
        macro_rules! known {
            ($n:literal) => {
                if self.invert {
                    outline::<L, _>(Known::<_, $n, true>(self))
                } else {
                    outline::<L, _>(Known::<_, $n, false>(self))
                }
            };
        }
        match self.order {
            2 => known!(2),
            3 => known!(3),
            4 => known!(4),
            5 if L::COUNT > 2 => known!(5),
            6 if L::COUNT > 2 => known!(6),
            7 if L::COUNT > 2 => known!(7),
            8 if L::COUNT > 2 => known!(8),
            n @ 1..=LARGEST if self.invert => run::<L, true, false>(self, n),
            n @ 1..=LARGEST => run::<L, false, false>(self, n),
            _ => 0,
        }
    }
}

/// Matrices of an order that the compiler knows. A function each: the crate is compiled in 0.7 of the time that it took with all in one.
struct Known<'a, T: Scalar, const N: usize, const INVERT: bool>(Stretch<'a, T>);

impl<T: Scalar, const N: usize, const INVERT: bool> Work<T> for Known<'_, T, N, INVERT> {
    type Output = usize;

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) -> usize {
        run::<L, INVERT, true>(self.0, N)
    }
}

/// With an order that is `KNOWN` when this is compiled, all is one function; or else factors are a step on its own, which took 0.6 to 0.8 of the time (AMD EPYC, 2026-11-25).
#[inline(always)]
fn run<L: Lanes, const INVERT: bool, const KNOWN: bool>(stretch: Stretch<'_, L::Number>, n: usize) -> usize {
    let Stretch { from, to, exchanges, a, aside, .. } = stretch;
    let area = n * leading_dimension(n);
    let (a, aside) = (&mut L::from_numbers_mut(a)[..area], L::from_numbers_mut(aside));
    let groups = to.len() / (area * L::COUNT);
    for group in 0..groups {
        let place = group * L::COUNT * area..(group + 1) * L::COUNT * area;
        let own = if INVERT { 0..L::COUNT * n } else { group * L::COUNT * n..(group + 1) * L::COUNT * n };
        let (exchanges, mut kept) = (&mut exchanges[own], Kept::<L, LARGEST>::new());
        // To the next group, unless it is another thread's.
        let ahead = if group + 1 < groups { L::COUNT * area * L::PARTS } else { 0 };
        pack::<L>(from.map_or(&to[place.clone()], |from| &from[place.clone()]), ahead, area, a);
        let mut zero_pivots = L::count(n);
        if KNOWN && INVERT {
            factor(a, n, &mut kept, &mut zero_pivots, &Next::NONE);
        } else if KNOWN {
            factor(a, n, exchanges, &mut zero_pivots, &Next::NONE);
        } else {
            factor_by_steps(a, n, exchanges, &mut zero_pivots, &Next::NONE);
        }
        let to = &mut to[place];
        let mut regular = L::Vector::all(zero_pivots.equals(L::count(n))) && finite(a);
        if regular && INVERT {
            regular =
                if KNOWN { invert_group(a, aside, n, &kept, to) } else { invert_group(a, aside, n, exchanges, to) };
        } else if regular {
            unpack::<L>(a, area, to);
        }
        if !regular {
            return group * L::COUNT;
        }
    }
    groups * L::COUNT
}

/// Inverts the factored matrices of a group and hands the inverses over, if all are finite.
#[inline(always)]
fn invert_group<L: Lanes, E: Exchanges<L> + ?Sized>(
    a: &mut [L],
    aside: &mut [L],
    n: usize,
    exchanges: &E,
    to: &mut [L::Number],
) -> bool {
    // Columns come to their places as they are handed over, unless more blocks are transposed for it.
    let (column, all) = (n * L::PARTS, n * n * L::PARTS);
    let columns_move = n > tiny::LARGEST && n * column.div_ceil(L::COUNT) <= all.div_ceil(L::COUNT);
    invert(a, aside, n, exchanges, !columns_move);
    let finite = finite(a);
    if finite && columns_move {
        unpack_columns::<L, E>(a, n, exchanges, to);
    } else if finite {
        unpack::<L>(a, a.len(), to);
    }
    finite
}

/// Takes over as many matrices as there are lanes.
#[inline(always)]
fn pack<L: Lanes>(from: &[L::Number], ahead: usize, area: usize, to: &mut [L]) {
    let (from, to, len) = (L::reals(from), L::as_vectors_mut(to), area * L::PARTS);
    let (from, to) = (&from[..L::COUNT * len], &mut to[..len]);
    for start in (0..len).step_by(L::COUNT) {
        let count = L::COUNT.min(len - start);
        let mut block = L::Vector::block(L::Vector::splat(num_traits::zero()));
        for lane in 0..L::COUNT {
            let run = &from[lane * len + start..][..count];
            L::Vector::prefetch(run.as_ptr().wrapping_add(ahead));
            block.as_mut()[lane] = if count == L::COUNT { L::Vector::load(run) } else { L::Vector::load_part(run) };
        }
        let block = L::Vector::transpose(block);
        for e in 0..count {
            to[start + e] = block.as_ref()[e];
        }
    }
}

/// Hands them over.
#[inline(always)]
fn unpack<L: Lanes>(from: &[L], area: usize, to: &mut [L::Number]) {
    let (from, to, len) = (L::as_vectors(from), L::reals_mut(to), area * L::PARTS);
    let (from, to) = (&from[..len], &mut to[..L::COUNT * len]);
    for start in (0..len).step_by(L::COUNT) {
        let count = L::COUNT.min(len - start);
        let mut block = L::Vector::block(L::Vector::splat(num_traits::zero()));
        for e in 0..count {
            block.as_mut()[e] = from[start + e];
        }
        let block = L::Vector::transpose(block);
        for lane in 0..L::COUNT {
            let run = &mut to[lane * len + start..][..count];
            if count == L::COUNT { block.as_ref()[lane].store(run) } else { block.as_ref()[lane].store_part(run) }
        }
    }
}

/// Hands inverses over, whose columns go where the exchanges want them.
#[inline(always)]
fn unpack_columns<L: Lanes, E: Exchanges<L> + ?Sized>(from: &[L], n: usize, exchanges: &E, to: &mut [L::Number]) {
    // Column `k` of `U⁻¹ L⁻¹` belongs where the row was that the exchanges bring to row `k`.
    let mut places = [L::count(0); LARGEST];
    for (k, place) in places.iter_mut().enumerate() {
        *place = L::count(k);
    }
    for k in 0..n {
        let index = exchanges.index(n, k);
        for j in k + 1..n {
            let here = index.equals(L::count(j));
            let (x, y) = (places[k], places[j]);
            (places[k], places[j]) = (L::Vector::select(here, y, x), L::Vector::select(here, x, y));
        }
    }
    let (from, to, len) = (L::as_vectors(from), L::reals_mut(to), n * L::PARTS);
    let (from, to) = (&from[..n * len], &mut to[..L::COUNT * n * len]);
    for column in 0..n {
        let mut place = [0; MOST_LANES];
        places[column].store_counts(&mut place);
        for start in (0..len).step_by(L::COUNT) {
            let count = L::COUNT.min(len - start);
            let mut block = L::Vector::block(L::Vector::splat(num_traits::zero()));
            for e in 0..count {
                block.as_mut()[e] = from[column * len + start + e];
            }
            let block = L::Vector::transpose(block);
            for lane in 0..L::COUNT {
                let run = &mut to[(lane * n + place[lane] as usize) * len + start..][..count];
                if count == L::COUNT { block.as_ref()[lane].store(run) } else { block.as_ref()[lane].store_part(run) }
            }
        }
    }
}
