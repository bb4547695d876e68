//! From the layouts of the world into a group and back: by transposes in registers, without gathers.

use std::ops::Range;

use batchla_core::{MatrixMut, MatrixRef, Scalar};

use super::leading_dimension;
use super::rearranged::{MOST_PLACES, Places, exchange, in_place};
use super::stretch::LARGEST;
use crate::routines::{Spoiled, Sums};
use crate::simd::{Lanes, MOST_LANES, Vector, Work};

/// Stretches of neighbours that a matrix consists of.
#[derive(Clone, Copy)]
pub(super) struct Runs {
    pub(super) count: usize,
    /// Elements of one, and from the start of one to the next.
    pub(super) len: usize,
    pub(super) stride: usize,
    /// From the vector of an element to that of its neighbour in the run, and from run to run.
    step: usize,
    next: usize,
}

impl Runs {
    /// Columns or rows, if they are neighbours; columns one by one where they are to be `apart`.
    pub(super) fn of<T: Scalar>(a: &MatrixRef<'_, T>, apart: bool) -> Option<Self> {
        let (rows, cols, ld) = (a.rows(), a.cols(), leading_dimension(a.rows()));
        if a.row_stride() == 1 || rows < 2 {
            let dense = !apart && (a.col_stride() == rows && ld == rows || cols < 2);
            Some(if dense {
                Self { count: 1, len: rows * cols, stride: 0, step: 1, next: 0 }
            } else {
                Self { count: cols, len: rows, stride: a.col_stride(), step: 1, next: ld }
            })
        } else if a.col_stride() == 1 {
            Some(Self { count: rows, len: cols, stride: a.row_stride(), step: ld, next: 1 })
        } else {
            None
        }
    }

    /// The vector of part `e` of run `run`.
    #[inline(always)]
    fn vector(&self, run: usize, e: usize, parts: usize) -> usize {
        (run * self.next + e / parts * self.step) * parts + e % parts
    }
}

/// Where each lane's matrix begins.
pub(super) type Starts<P> = [P; MOST_LANES];

/// The same of matrices to read, as real numbers.
#[inline(always)]
pub(super) fn starts_of<T: Scalar, R>(from: &[MatrixRef<'_, T>]) -> Starts<*const R> {
    let mut starts = [std::ptr::null(); MOST_LANES];
    for (start, from) in starts.iter_mut().zip(from) {
        *start = from.as_ptr().cast();
    }
    starts
}

/// Whether the matrices are neighbours, element by element, one a lane.
fn is_interleaved<T: Scalar>(from: &[MatrixRef<'_, T>]) -> bool {
    from.iter().enumerate().all(|(lane, a)| a.as_ptr() == from[0].as_ptr().wrapping_add(lane))
}

/// Takes a matrix into every lane; all are of one shape.
pub struct Pack<'a, 'b, T: Scalar> {
    /// As many as there are lanes.
    pub(crate) from: &'b [MatrixRef<'a, T>],
    pub(crate) to: &'b mut [T],
    /// Whether this thread takes the next ones over after them.
    pub(crate) more: bool,
}

impl<T: Scalar> Work<T> for Pack<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        let Self { from, to, more } = self;
        let to = L::from_numbers_mut(to);
        let Some(first) = from.first() else { return };
        if let Some(runs) = Runs::of(first, false) {
            let starts = starts_of(from);
            let ahead = to_next::<L, _>(&starts, more);
            for run in 0..runs.count {
                pack_run::<L>((&starts, ahead), &runs, run, L::as_vectors_mut(to));
            }
        } else if is_interleaved(from) {
            for j in 0..first.cols() {
                for i in 0..first.rows() {
                    let place = first.as_ptr().wrapping_add(i * first.row_stride() + j * first.col_stride());
                    // SAFETY: element (i, j) of as many matrices as there are lanes, neighbours in memory.
                    let lanes = unsafe { std::slice::from_raw_parts(place.cast(), L::PARTS * L::COUNT) };
                    let at = (i + j * leading_dimension(first.rows())) * L::PARTS;
                    load_lanes::<L>(lanes, &mut L::as_vectors_mut(to)[at..at + L::PARTS]);
                }
            }
        } else {
            for (lane, from) in from.iter().enumerate() {
                for j in 0..from.cols() {
                    for i in 0..from.rows() {
                        L::set_lane(to, i + j * leading_dimension(from.rows()), lane, from.at(i, j));
                    }
                }
            }
        }
    }
}

/// Numbers, one a lane, in the order of memory, into their parts.
#[inline(always)]
fn load_lanes<L: Lanes>(from: &[<L::Vector as Vector>::Real], to: &mut [L::Vector]) {
    let first = L::Vector::load(from);
    if L::PARTS == 2 {
        (to[0], to[1]) = first.unzip(L::Vector::load(&from[L::COUNT..]));
    } else {
        to[0] = first;
    }
}

/// Bytes from these matrices to those of the next group, which are asked for meanwhile; 0 where another thread may be at work on these, and lose them by it.
#[inline(always)]
pub(super) fn to_next<L: Lanes, R>(starts: &Starts<*const R>, more: bool) -> usize {
    if more { L::COUNT * starts[1].addr().wrapping_sub(starts[0].addr()) } else { 0 }
}

#[inline(always)]
fn pack_run<L: Lanes>(
    (starts, ahead): (&Starts<*const <L::Vector as Vector>::Real>, usize),
    runs: &Runs,
    run: usize,
    to: &mut [L::Vector],
) {
    let (len, place) = (runs.len * L::PARTS, run * runs.stride * L::PARTS);
    let whole = len / L::COUNT * L::COUNT;
    // Where neighbours stay neighbours, in a loop of its own, or the compiler keeps a place for each of them in memory.
    if runs.step == 1 {
        for (at, to) in to[runs.vector(run, 0, L::PARTS)..][..whole].chunks_exact_mut(L::COUNT).enumerate() {
            let block = block::<L>(starts, place + at * L::COUNT, ahead);
            for e in 0..L::COUNT {
                to[e] = block.as_ref()[e];
            }
        }
    } else {
        for start in (0..whole).step_by(L::COUNT) {
            let block = block::<L>(starts, place + start, ahead);
            for e in 0..L::COUNT {
                to[runs.vector(run, start + e, L::PARTS)] = block.as_ref()[e];
            }
        }
    }
    if whole < len {
        let mut block = L::Vector::block(L::Vector::splat(num_traits::zero()));
        for lane in 0..L::COUNT {
            let from = starts[lane].wrapping_add(place + whole);
            // SAFETY: the last numbers of the run.
            block.as_mut()[lane] = L::Vector::load_part(unsafe { std::slice::from_raw_parts(from, len - whole) });
        }
        for (e, vector) in L::Vector::transpose(block).as_ref()[..len - whole].iter().enumerate() {
            to[runs.vector(run, whole + e, L::PARTS)] = *vector;
        }
    }
}

/// The vectors of as many numbers as there are lanes, from one on. What is ahead is asked for.
#[inline(always)]
fn block<L: Lanes>(
    starts: &Starts<*const <L::Vector as Vector>::Real>,
    place: usize,
    ahead: usize,
) -> <L::Vector as Vector>::Block {
    if ahead != 0 {
        for start in &starts[..L::COUNT] {
            L::Vector::prefetch(start.wrapping_add(place).wrapping_byte_add(ahead));
        }
    }
    let mut block = L::Vector::block(L::Vector::splat(num_traits::zero()));
    for lane in 0..L::COUNT {
        let from = starts[lane].wrapping_add(place);
        // SAFETY: numbers of a run, whose elements are neighbours in memory; a number is `PARTS` real ones.
        block.as_mut()[lane] = L::Vector::load(unsafe { std::slice::from_raw_parts(from, L::COUNT) });
    }
    L::Vector::transpose(block)
}

/// Hands the matrices of a group over, one a lane.
pub struct Unpack<'a, 'b, T: Scalar> {
    pub(crate) from: &'b [T],
    /// No more than there are lanes; all of one shape.
    pub(crate) to: &'b mut [Option<MatrixMut<'a, T>>],
    /// Exchanges of rows, one lane after another: columns of an inverse go where these want them. Where they [can](columns_move).
    pub(crate) exchanges: Option<&'b [u32]>,
}

/// Whether columns of an inverse come to their places as it is handed over: where stretches of memory are theirs. The smallest exchange them in registers.
pub(crate) fn columns_move<T: Scalar>(order: usize, to: &[Option<MatrixMut<'_, T>>]) -> bool {
    let columns = matches!(to.first(), Some(Some(to)) if to.row_stride() == 1);
    columns && (LARGEST + 1..=MOST_PLACES).contains(&order)
}

impl<T: Scalar> Work<T> for Unpack<'_, '_, T> {
    /// The lanes that are not finite, bit by bit.
    type Output = u32;

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) -> u32 {
        let Self { from: numbers, to, exchanges } = self;
        let from = L::from_numbers(numbers);
        let Some(Some(first)) = to.first() else { return 0 };
        let rows = first.rows();
        // Where each column of a lane goes: column `k` of `U⁻¹ L⁻¹` belongs where the row was that the exchanges bring to row `k`.
        let mut columns: Places = [[0; MOST_PLACES]; MOST_LANES];
        if let Some(exchanges) = exchanges {
            in_place(&mut columns, rows);
            for (columns, exchanges) in columns.iter_mut().zip(exchanges.chunks_exact(rows)) {
                exchange(columns, exchanges, 0..rows, 1);
            }
        }
        if let Some(runs) = Runs::of(&first.share(), exchanges.is_some()) {
            let mut sums = Sums::<L>::default();
            let mut starts: Starts<*mut <L::Vector as Vector>::Real> = [std::ptr::null_mut(); MOST_LANES];
            let mut count = 0;
            for (start, to) in starts.iter_mut().zip(to.iter_mut().flatten()) {
                *start = to.as_mut_ptr().cast();
                count += 1;
            }
            for run in 0..runs.count {
                let place = |lane: usize| if exchanges.is_some() { usize::from(columns[lane][run]) } else { run };
                let to = |lane: usize| starts[lane].wrapping_add(place(lane) * runs.stride * L::PARTS);
                unpack_run::<L>(L::as_vectors(from), &runs, run, (to, count), &mut sums);
            }
            sums.spoiled()
        } else {
            for (lane, to) in to.iter_mut().flatten().enumerate() {
                for j in 0..to.cols() {
                    for i in 0..rows {
                        to.set(i, j, L::lane(from, i + j * leading_dimension(rows), lane));
                    }
                }
            }
            Spoiled { a: numbers, ld: leading_dimension(rows), rows }.run::<L>()
        }
    }
}

/// Run `run`, to so many places.
#[inline(always)]
fn unpack_run<L: Lanes>(
    from: &[L::Vector],
    runs: &Runs,
    run: usize,
    (to, count): (impl Fn(usize) -> *mut <L::Vector as Vector>::Real, usize),
    sums: &mut Sums<L>,
) {
    let len = runs.len * L::PARTS;
    let whole = len / L::COUNT * L::COUNT;
    // SAFETY: the numbers from `start` on of a lane's run, as many as it has: neighbours in memory, and the borrower's alone.
    let to = |lane: usize, start: usize, count: usize| unsafe {
        std::slice::from_raw_parts_mut(to(lane).wrapping_add(start), count)
    };
    if runs.step == 1 && count == L::COUNT {
        // Counts that the compiler knows, or the block is written to memory first.
        for (at, from) in from[runs.vector(run, 0, L::PARTS)..][..whole].chunks_exact(L::COUNT).enumerate() {
            sums.add(from);
            let mut block = L::Vector::block(from[0]);
            for e in 0..L::COUNT {
                block.as_mut()[e] = from[e];
            }
            let block = L::Vector::transpose(block);
            for lane in 0..L::COUNT {
                block.as_ref()[lane].store(to(lane, at * L::COUNT, L::COUNT));
            }
        }
    } else {
        for start in (0..whole).step_by(L::COUNT) {
            unpack_part::<L>(from, runs, run, start..start + L::COUNT, (&to, count), sums);
        }
    }
    if whole < len {
        unpack_part::<L>(from, runs, run, whole..len, (&to, count), sums);
    }
}

/// Some numbers of a run, no more than a vector has.
#[inline(always)]
fn unpack_part<'a, L: Lanes>(
    from: &[L::Vector],
    runs: &Runs,
    run: usize,
    numbers: Range<usize>,
    (to, count): (&impl Fn(usize, usize, usize) -> &'a mut [<L::Vector as Vector>::Real], usize),
    sums: &mut Sums<L>,
) {
    let mut block = L::Vector::block(L::Vector::splat(num_traits::zero()));
    for (vector, e) in block.as_mut().iter_mut().zip(numbers.clone()) {
        *vector = from[runs.vector(run, e, L::PARTS)];
    }
    sums.add(block.as_ref());
    let block = L::Vector::transpose(block);
    if count == L::COUNT && numbers.len() == L::COUNT {
        for lane in 0..L::COUNT {
            block.as_ref()[lane].store(to(lane, numbers.start, L::COUNT));
        }
    } else {
        for (lane, vector) in block.as_ref().iter().enumerate().take(count) {
            vector.store_part(to(lane, numbers.start, numbers.len()));
        }
    }
}
