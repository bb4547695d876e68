//! `A = P L U` of small matrices, two at a time: while one waits for a pivot, the other goes on.
//!
//! Rows stay where they are: a row that became a pivot's counts no more. An exchange would cost a move in each column; here it is noted, and all are
//! made at once, by looking rows up in registers.

use batchla_core::{Scalar, ScalarKind};

use self::rows::MOST_ROWS;
use crate::interleaved::Stretch;
use crate::simd::{InstructionSet, Lanes, TABLE, Vector, Work, outline};

mod long;
mod rows;
mod short;

/// Whether plain matrices can be factored in pairs. Those of c64 with longer columns are faster one by one.
pub(crate) fn serves(set: InstructionSet, scalar: ScalarKind, order: usize) -> bool {
    let most = if scalar == ScalarKind::C64 { 56 } else { MOST_ROWS };
    set == InstructionSet::Avx512 && order <= most
}

/// The columns that a pair needs.
pub(crate) fn columns_aside(order: usize) -> usize {
    2 * (order + long::columns_in_work(order))
}

/// Factors pairs, up to the first with a matrix that is not regular, or whose pivots are too small for reciprocals.
pub struct Pairs<'a, T>(pub(crate) Stretch<'a, T>);

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
    /// something is not finite.
    fn factor(one: (&mut Self, &mut [u32]), other: (&mut Self, &mut [u32])) -> bool;
    /// Hands the factors over.
    fn unpack(&self, to: &mut [<L::Vector as Vector>::Real]);
}

#[inline(always)]
fn each_pair<'a, L: Lanes, M: Paired<'a, L>>(stretch: Stretch<'a, L::Number>) -> usize {
    let Stretch { order: n, from, to, exchanges, aside, .. } = stretch;
    let aside = L::from_numbers_mut(aside);
    let half = aside.len() / 2;
    let (memory, other_memory) = aside.split_at_mut(half);
    let (mut one, mut other) = (M::new(n, memory), M::new(n, other_memory));
    let area = n * n;
    let pairs = to.len() / area / 2;
    for (pair, exchanges) in exchanges.chunks_exact_mut(2 * n).enumerate() {
        let place = 2 * pair * area..2 * (pair + 1) * area;
        let (first, second) = from.map_or(&to[place.clone()], |from| &from[place.clone()]).split_at(area);
        // To the next pair, unless it is another thread's.
        let ahead = if place.end < pairs * 2 * area { 2 * area } else { 0 };
        one.pack(L::reals(first), ahead);
        other.pack(L::reals(second), ahead);
        let (first, second) = exchanges.split_at_mut(n);
        if !M::factor((&mut one, first), (&mut other, second)) {
            return 2 * pair;
        }
        let (first, second) = to[place].split_at_mut(area);
        one.unpack(L::reals_mut(first));
        other.unpack(L::reals_mut(second));
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
