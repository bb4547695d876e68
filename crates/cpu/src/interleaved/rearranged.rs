//! Factorisation of matrices that are taken over panel by panel, each when its turn comes, with its rows as the exchanges so far have them.
//!
//! In a group, an exchange is a small move for each lane. In a matrix of its own, rows of a column are rearranged by looking them up in registers, all
//! exchanges at once.

use std::ops::Range;

use batchla_core::{MatrixRef, Scalar};

use super::getrf::{self, Getrf};
use super::leading_dimension;
use super::next::Next;
use super::pack::{Pack, Starts, starts_of, to_next};
use crate::simd::{Lanes, MOST_LANES, TABLE, Vector, Work};

/// Takes matrices over and factors them.
pub struct PackGetrf<'a, 'b, T: Scalar> {
    /// As many as there are lanes, of one shape.
    pub(crate) from: &'b [MatrixRef<'a, T>],
    /// Whether this thread takes the next ones over after them.
    pub(crate) more: bool,
    /// Out: the factors.
    pub(crate) a: &'b mut [T],
    /// Out: the exchanges of each lane, one lane after another.
    pub(crate) exchanges: &'b mut [u32],
}

impl<T: Scalar> Work<T> for PackGetrf<'_, '_, T> {
    /// The column of the first zero pivot of each lane; the order where there is none.
    type Output = [u32; MOST_LANES];

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) -> [u32; MOST_LANES] {
        let Self { from, more, a, exchanges } = self;
        let order = from[0].rows();
        if !is_worth_it::<L>(order) || from[0].row_stride() != 1 {
            Pack { from, to: a, more: false }.run::<L>();
            return Getrf { a, order, exchanges, next: &Next::of::<L>(from, more) }.run::<L>();
        }
        let (starts, stride) = (starts_of(from), from[0].col_stride() * L::PARTS);
        let ahead = to_next::<L, _>(&starts, more);
        let (a, mut zero_pivots) = (L::from_numbers_mut(a), L::count(order));
        let mut places = [[0; MOST_PLACES]; MOST_LANES];
        in_place(&mut places, order * L::PARTS);
        let mut columns = [[L::Vector::splat(num_traits::zero()); MOST_LANES]; TABLE];
        for left in (0..order).step_by(getrf::PANEL) {
            let panel = left..order.min(left + getrf::PANEL);
            let to = L::as_vectors_mut(a);
            take_over::<L>((&starts, stride, ahead), order, panel.clone(), &places, to, &mut columns);
            getrf::factor_next_panel(a, order, panel.clone(), exchanges, &mut zero_pivots, &Next::NONE);
            for lane in 0..L::COUNT {
                exchange(&mut places[lane], &exchanges[lane * order..], panel.clone(), L::PARTS);
            }
        }
        let mut result = [0; MOST_LANES];
        zero_pivots.store_counts(&mut result);
        result
    }
}

/// Whether columns are short enough to be looked up in, and long enough to be worth it (measured on an AMD EPYC with AVX-512, 2026-11-22).
#[inline(always)]
fn is_worth_it<L: Lanes>(order: usize) -> bool {
    L::Vector::LOOKS_UP && order >= 24 && order * L::PARTS <= TABLE * L::COUNT
}

/// The most real numbers of a column.
pub(super) const MOST_PLACES: usize = TABLE * MOST_LANES;

/// From which place each number of a column comes, or where it goes, in each lane. Bytes, and no more of them than are used: they are set up for every group,
/// and as a copy of words in order they took a third of the time of an inverse of order 16.
pub(super) type Places = [[u8; MOST_PLACES]; MOST_LANES];

/// The first `count` of them: where they are.
#[inline(always)]
pub(super) fn in_place(places: &mut Places, count: usize) {
    for places in places {
        for (i, place) in places[..count].iter_mut().enumerate() {
            *place = i as u8;
        }
    }
}

/// Makes some exchanges.
#[inline(always)]
pub(super) fn exchange<P>(places: &mut [P], exchanges: &[u32], steps: Range<usize>, parts: usize) {
    for (k, &p) in steps.clone().zip(&exchanges[steps]) {
        for part in 0..parts {
            places.swap(k * parts + part, p as usize * parts + part);
        }
    }
}

/// Columns of every lane, by vectors.
type Columns<L> = [[<L as Lanes>::Vector; MOST_LANES]; TABLE];

/// Takes a panel over.
#[inline(always)]
fn take_over<L: Lanes>(
    (starts, stride, ahead): (&Starts<*const <L::Vector as Vector>::Real>, usize, usize),
    order: usize,
    panel: Range<usize>,
    places: &Places,
    to: &mut [L::Vector],
    columns: &mut Columns<L>,
) {
    let zero = L::Vector::splat(num_traits::zero());
    let (len, ld) = (order * L::PARTS, leading_dimension(order) * L::PARTS);
    let vectors = len.div_ceil(L::COUNT);
    let first = panel.start == 0;
    for j in panel {
        for lane in 0..L::COUNT {
            let from = starts[lane].wrapping_add(j * stride);
            let mut table = [zero; TABLE];
            for at in 0..vectors {
                let from = from.wrapping_add(at * L::COUNT);
                L::Vector::prefetch(from.wrapping_byte_add(ahead));
                let count = L::COUNT.min(len - at * L::COUNT);
                // SAFETY: numbers of the lane's column, neighbours in memory; a number is `PARTS` real ones.
                let numbers = unsafe { std::slice::from_raw_parts(from, count) };
                table[at] = if count == L::COUNT { L::Vector::load(numbers) } else { L::Vector::load_part(numbers) };
            }
            for at in 0..vectors {
                let own = &places[lane][at * L::COUNT..(at + 1) * L::COUNT];
                columns[at][lane] = if first { table[at] } else { L::Vector::look_up(&table, vectors, own) };
            }
        }
        for (at, to) in to[j * ld..j * ld + len].chunks_mut(L::COUNT).enumerate() {
            let mut block = L::Vector::block(zero);
            for lane in 0..L::COUNT {
                block.as_mut()[lane] = columns[at][lane];
            }
            let block = L::Vector::transpose(block);
            if to.len() == L::COUNT {
                for e in 0..L::COUNT {
                    to[e] = block.as_ref()[e];
                }
            } else {
                to.copy_from_slice(&block.as_ref()[..to.len()]);
            }
        }
    }
}
