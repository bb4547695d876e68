//! `A = P L U` of small matrices, two at a time: while one waits for a pivot, the other goes on. Inverses of them, too, from factors that are at hand.
//!
//! Rows stay where they are: a row that became a pivot's counts no more. An exchange would cost a move in each column; here it is noted, and all are
//! made at once, by looking rows up in registers.

use batchla_core::{Determinant, Outcome, Scalar, ScalarKind};

use self::rows::MOST_ROWS;
use crate::interleaved::Stretch;
use crate::routines::Sums;
use crate::simd::{InstructionSet, Lanes, TABLE, Vector, Work, outline};

/// The body for every few vectors of a column of `$vectors`, as many as there are registers for: how many, and the first of them, as constants.
macro_rules! for_few_vectors {
    ($lanes:ident, $vectors:ident, |$few:ident, $first:ident| $body:expr) => {
        if $lanes::PARTS == 1 {
            for_few_vectors!(@ $vectors, |$few, $first| $body, 1 [1 0] 2 [2 0] 3 [3 0] 4 [4 0] 5 [5 0] 6 [4 0][2 4] 7 [4 0][3 4] 8 [4 0][4 4]);
        } else {
            for_few_vectors!(@ $vectors, |$few, $first| $body, 1 [1 0] 2 [2 0] 3 [2 0][1 2] 4 [2 0][2 2] 5 [2 0][2 2][1 4] 6 [2 0][2 2][2 4] 7 [2 0][2 2][2 4][1 6]);
        }
    };
    (@ $vectors:ident, |$few:ident, $first:ident| $body:expr, $($all:literal $([$count:literal $at:literal])*)*) => {
        match $vectors {
            $($all => {
                $({
                    const $few: usize = $count;
                    const $first: usize = $at;
                    $body;
                })*
            })*
            _ => {}
        }
    };
}

mod inverse;
mod long;
mod rows;
mod short;

/// Whether plain matrices can be factored and inverted in pairs. Those of c64 with longer columns are faster one by one.
pub(crate) fn serves(set: InstructionSet, scalar: ScalarKind, order: usize) -> bool {
    let most = if scalar == ScalarKind::C64 { 56 } else { MOST_ROWS };
    set == InstructionSet::Avx512 && order <= most
}

/// The columns that a pair needs.
pub(crate) fn columns_aside(order: usize) -> usize {
    2 * (order + long::columns_in_work(order))
}

/// Factors or inverts pairs, up to the first with a matrix that is not regular, or whose pivots are too small for reciprocals.
pub struct Pairs<'a, T: Scalar>(pub(crate) Stretch<'a, T>);

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

/// The same with `V` vectors a column, later, of long ones, `W`. What there is no use for is not compiled.
#[inline(always)]
fn with_vectors<L: Lanes, const V: usize, const W: usize>(stretch: Stretch<'_, L::Number>) -> usize {
    // Of complex numbers a column has twice the vectors.
    let long = V >= 4 && (V * L::COUNT > 32 || L::PARTS > 1);
    // Of complex numbers `serves` leaves out what has eight.
    if !L::Vector::LOOKS_UP || (V - 1) * L::COUNT >= MOST_ROWS || L::PARTS > 1 && V == 8 {
        0
    } else if long {
        outline::<L, _>(OfVectors::<_, V, W, true>(stretch))
    } else {
        outline::<L, _>(OfVectors::<_, V, W, false>(stretch))
    }
}

struct OfVectors<S, const V: usize, const W: usize, const LONG: bool>(S);

impl<T: Scalar, const V: usize, const W: usize, const LONG: bool> Work<T> for OfVectors<Stretch<'_, T>, V, W, LONG> {
    type Output = usize;

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) -> usize {
        if LONG {
            each_pair::<L, long::Matrix<'_, L, V, V, W>>(self.0)
        } else {
            each_pair::<L, short::Matrix<'_, L, V>>(self.0)
        }
    }
}

/// A matrix of a pair.
trait Paired<'a, L: Lanes>: Sized {
    /// One of some order, in so much memory.
    fn new(order: usize, memory: &'a mut [L]) -> Self;
    /// Takes over dense columns, and asks for those so many numbers ahead.
    fn pack(&mut self, from: &[<L::Vector as Vector>::Real], ahead: usize);
    /// Factors a pair, each with its exchanges. `false`, and what is there is of no use, where a pivot is none, or too small for a reciprocal, or
    /// something is not finite. This may pass for what is to be inverted: pivots are finite, so it is in the inverse too.
    fn factor(one: (&mut Self, &mut [u32]), other: (&mut Self, &mut [u32]), invert: bool) -> bool;
    /// Hands the factors over.
    fn unpack(&self, to: &mut [<L::Vector as Vector>::Real]);
    /// Inverts, from the factors. Whether all is finite.
    fn invert(&mut self) -> bool;
    /// `U`'s diagonal, once this is inverted.
    fn diagonal(&self, k: usize) -> L::Number;
    /// Hands the inverse over.
    fn unpack_inverse(&self, to: &mut [<L::Vector as Vector>::Real]);
}

#[inline(always)]
fn each_pair<'a, L: Lanes, M: Paired<'a, L>>(stretch: Stretch<'a, L::Number>) -> usize {
    let Stretch { order: n, from, to, exchanges, aside, invert, mut determinants, .. } = stretch;
    let aside = L::from_numbers_mut(aside);
    let half = aside.len() / 2;
    let (memory, other_memory) = aside.split_at_mut(half);
    let (mut one, mut other) = (M::new(n, memory), M::new(n, other_memory));
    let area = n * n;
    let pairs = to.len() / area / 2;
    for pair in 0..pairs {
        // Of inverses there is room for one pair's, and they are not handed over.
        let exchanges = if invert { &mut exchanges[..2 * n] } else { &mut exchanges[2 * pair * n..][..2 * n] };
        let place = 2 * pair * area..2 * (pair + 1) * area;
        let (first, second) = from.map_or(&to[place.clone()], |from| &from[place.clone()]).split_at(area);
        // To the next pair, unless it is another thread's.
        let ahead = if place.end < pairs * 2 * area { 2 * area } else { 0 };
        one.pack(L::reals(first), ahead);
        other.pack(L::reals(second), ahead);
        let (first, second) = exchanges.split_at_mut(n);
        // Nothing is handed over before all is known to be good: matrices may be in place.
        if !M::factor((&mut one, first), (&mut other, second), invert) || invert && !(one.invert() & other.invert()) {
            return 2 * pair;
        }
        let (first, second) = to[place].split_at_mut(area);
        let (first, second) = (L::reals_mut(first), L::reals_mut(second));
        if invert {
            one.unpack_inverse(first);
            other.unpack_inverse(second);
            if let Some(all) = &mut determinants {
                let (exchanges, other_exchanges) = exchanges.split_at(n);
                let own = &mut all[2 * pair..][..2];
                own[0] = Determinant::from_factors(Outcome::Regular, |k| one.diagonal(k), exchanges);
                own[1] = Determinant::from_factors(Outcome::Regular, |k| other.diagonal(k), other_exchanges);
            }
        } else {
            one.unpack(first);
            other.unpack(second);
        }
    }
    2 * pairs
}

/// A part of a column's numbers, to be looked up by their rows.
#[inline(always)]
fn table<L: Lanes, const V: usize>(column: &[L; V], part: usize) -> [L::Vector; TABLE] {
    let mut table = [L::Vector::splat(num_traits::zero()); TABLE];
    for v in 0..V {
        table[v] = L::as_vectors(&column[v..=v])[part];
    }
    table
}

/// Takes a dense column over into vectors.
#[inline(always)]
fn pack_column<L: Lanes, const V: usize>(from: &[<L::Vector as Vector>::Real], to: &mut [L; V]) {
    let len = L::COUNT * L::PARTS;
    for v in 0..V - 1 {
        to[v] = L::from_memory(&from[v * len..][..len]);
    }
    to[V - 1] = L::from_memory(&from[(V - 1) * len..]);
}

/// Hands it over.
#[inline(always)]
fn unpack_column<L: Lanes, const V: usize>(from: &[L; V], to: &mut [<L::Vector as Vector>::Real]) {
    let len = L::COUNT * L::PARTS;
    for v in 0..V - 1 {
        from[v].to_memory(&mut to[v * len..][..len]);
    }
    from[V - 1].to_memory(&mut to[(V - 1) * len..]);
}

/// Zero, as long as all columns that were looked at are finite.
struct Traces<L: Lanes, const V: usize>([[L::Vector; 2]; V]);

impl<L: Lanes, const V: usize> Default for Traces<L, V> {
    #[inline(always)]
    fn default() -> Self {
        Self([[L::Vector::splat(num_traits::zero()); 2]; V])
    }
}

impl<L: Lanes, const V: usize> Traces<L, V> {
    /// Looks at a column.
    #[inline(always)]
    fn add(&mut self, column: &[L]) {
        let zero = L::Vector::splat(num_traits::zero());
        for v in 0..V {
            for part in 0..L::PARTS {
                self.0[v][part] = L::as_vectors(std::slice::from_ref(&column[v]))[part].mul_add(zero, self.0[v][part]);
            }
        }
    }

    #[inline(always)]
    fn are_finite(&self) -> bool {
        let mut sums = Sums::<L>::default();
        sums.add(self.0.as_flattened());
        sums.spoiled() == 0
    }
}
