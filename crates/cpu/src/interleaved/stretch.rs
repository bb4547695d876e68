//! Small matrices one after another: taken over, factored or inverted, and handed over group by group, without a step in between.

use batchla_core::Scalar;

use super::getrf::{factor, factor_by_steps};
use super::getri::invert;
use super::leading_dimension;
use super::next::Next;
use crate::routines::finite;
use crate::simd::{Lanes, Vector, Work};

/// The largest order that is worth it: beyond, a group's own work hides the steps in between.
pub(super) const LARGEST: usize = 8;

/// Factors or inverts small matrices as [`Getrf`](super::Getrf) and [`Getri`](super::Getri) do.
pub struct Stretch<'a, T> {
    pub(crate) order: usize,
    /// Dense columns, one matrix after another; `None` where they are in place.
    pub(crate) from: Option<&'a [T]>,
    /// As many.
    pub(crate) to: &'a mut [T],
    /// Out: the exchanges of each matrix; where matrices are inverted, room for a group's.
    pub(crate) exchanges: &'a mut [u32],
    pub(crate) invert: bool,
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
        match self.order {
            // Orders that the compiler knows.
            2 => run::<L, true>(self, 2),
            3 => run::<L, true>(self, 3),
            4 => run::<L, true>(self, 4),
            8 if L::PARTS == 1 && L::COUNT > 2 => run::<L, true>(self, 8),
            n @ 1..=LARGEST => run::<L, false>(self, n),
            _ => 0,
        }
    }
}

/// With an order that is `KNOWN` when this is compiled, all is one function; or else factors are a step on its own, which took 0.6 to 0.8 of the time (AMD EPYC, 2026-11-25).
#[inline(always)]
fn run<L: Lanes, const KNOWN: bool>(stretch: Stretch<'_, L::Number>, n: usize) -> usize {
    let Stretch { from, to, exchanges, invert: inverse, a, aside, .. } = stretch;
    let area = n * leading_dimension(n);
    let (a, aside) = (&mut L::from_numbers_mut(a)[..area], L::from_numbers_mut(aside));
    let groups = to.len() / (area * L::COUNT);
    for group in 0..groups {
        let place = group * L::COUNT * area..(group + 1) * L::COUNT * area;
        let own = if inverse { 0..L::COUNT * n } else { group * L::COUNT * n..(group + 1) * L::COUNT * n };
        let exchanges = &mut exchanges[own];
        // To the next group, unless it is another thread's.
        let ahead = if group + 1 < groups { L::COUNT * area * L::PARTS } else { 0 };
        pack::<L>(from.map_or(&to[place.clone()], |from| &from[place.clone()]), ahead, area, a);
        let mut zero_pivots = L::count(n);
        if KNOWN {
            factor(a, n, exchanges, &mut zero_pivots, &Next::NONE);
        } else {
            factor_by_steps(a, n, exchanges, &mut zero_pivots, &Next::NONE);
        }
        let mut regular = L::Vector::all(zero_pivots.equals(L::count(n))) && finite(a);
        if inverse && regular {
            invert(a, aside, n, exchanges, true);
            regular = finite(a);
        }
        if !regular {
            return group * L::COUNT;
        }
        unpack::<L>(a, area, &mut to[place]);
    }
    groups * L::COUNT
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
