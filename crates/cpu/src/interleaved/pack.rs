//! From the layouts of the world into a group and back: by transposes in registers, without gathers.

use batchla_core::{MatrixMut, MatrixRef, Scalar};

use crate::parallel::One;
use crate::simd::{Lanes, MOST_LANES, Vector, Work};

/// Stretches of neighbours that a matrix consists of.
#[derive(Clone, Copy)]
struct Runs {
    count: usize,
    /// Elements of one, and from the start of one to the next.
    len: usize,
    stride: usize,
    /// From the vector of an element to that of its neighbour in the run, and from run to run.
    step: usize,
    next: usize,
}

impl Runs {
    /// Columns or rows, if they are neighbours.
    fn of<T: Scalar>(a: &MatrixRef<'_, T>) -> Option<Self> {
        let (rows, cols) = (a.rows(), a.cols());
        if a.row_stride() == 1 || rows < 2 {
            let dense = a.col_stride() == rows || cols < 2;
            Some(if dense {
                Self { count: 1, len: rows * cols, stride: 0, step: 1, next: 0 }
            } else {
                Self { count: cols, len: rows, stride: a.col_stride(), step: 1, next: rows }
            })
        } else if a.col_stride() == 1 {
            Some(Self { count: rows, len: cols, stride: a.row_stride(), step: rows, next: 1 })
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

/// Run `run` of a matrix, as real numbers.
#[inline(always)]
fn run_of<'a, T: Scalar>(a: &MatrixRef<'a, T>, runs: &Runs, run: usize, parts: usize) -> &'a [T::Real] {
    // SAFETY: the run consists of elements of the matrix, neighbours in memory, which may be read during 'a; a number is `parts` real ones.
    unsafe { std::slice::from_raw_parts(a.as_ptr().wrapping_add(run * runs.stride).cast(), runs.len * parts) }
}

/// Run `run` of a matrix, as real numbers to write.
#[inline(always)]
fn run_of_mut<'a, T: Scalar>(a: &'a mut MatrixMut<'_, T>, runs: &Runs, run: usize, parts: usize) -> &'a mut [T::Real] {
    // SAFETY: as in `run_of`; the elements are the borrower's alone.
    unsafe { std::slice::from_raw_parts_mut(a.as_mut_ptr().wrapping_add(run * runs.stride).cast(), runs.len * parts) }
}

/// Whether the matrices are neighbours, element by element, one a lane.
fn is_interleaved<T: Scalar>(from: &[MatrixRef<'_, T>]) -> bool {
    from.iter().enumerate().all(|(lane, a)| a.as_ptr() == from[0].as_ptr().wrapping_add(lane))
}

/// Takes a matrix into every lane; all are of one shape.
pub(crate) struct Pack<'a, 'b, T: Scalar> {
    /// As many as there are lanes.
    pub(crate) from: &'b [MatrixRef<'a, T>],
    pub(crate) to: &'b mut [T],
}

impl<T: Scalar> Work<T> for Pack<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        let Self { from, to } = self;
        let to = L::from_numbers_mut(to);
        let Some(first) = from.first() else { return };
        if let Some(runs) = Runs::of(first) {
            for run in 0..runs.count {
                pack_run::<L>(from, &runs, run, L::as_vectors_mut(to));
            }
        } else if is_interleaved(from) {
            for j in 0..first.cols() {
                for i in 0..first.rows() {
                    let place = first.as_ptr().wrapping_add(i * first.row_stride() + j * first.col_stride());
                    // SAFETY: element (i, j) of as many matrices as there are lanes, neighbours in memory.
                    let lanes = unsafe { std::slice::from_raw_parts(place.cast(), L::PARTS * L::COUNT) };
                    let at = (i + j * first.rows()) * L::PARTS;
                    load_lanes::<L>(lanes, &mut L::as_vectors_mut(to)[at..at + L::PARTS]);
                }
            }
        } else {
            for (lane, from) in from.iter().enumerate() {
                for j in 0..from.cols() {
                    for i in 0..from.rows() {
                        L::set_lane(to, i + j * from.rows(), lane, from.at(i, j));
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

#[inline(always)]
fn pack_run<L: Lanes>(from: &[MatrixRef<'_, L::Number>], runs: &Runs, run: usize, to: &mut [L::Vector]) {
    let mut lanes: [&[<L::Vector as Vector>::Real]; MOST_LANES] = [&[]; MOST_LANES];
    for (lane, from) in lanes.iter_mut().zip(from) {
        *lane = run_of(from, runs, run, L::PARTS);
    }
    let len = runs.len * L::PARTS;
    let mut block = L::Vector::block(L::Vector::splat(num_traits::zero()));
    for start in (0..len).step_by(L::COUNT) {
        let width = L::COUNT.min(len - start);
        for (vector, lane) in block.as_mut().iter_mut().zip(&lanes) {
            let lane = &lane[start..start + width];
            *vector = if width == L::COUNT { L::Vector::load(lane) } else { L::Vector::load_part(lane) };
        }
        block = L::Vector::transpose(block);
        if runs.step == 1 {
            let at = runs.vector(run, start, L::PARTS);
            to[at..at + width].copy_from_slice(&block.as_ref()[..width]);
        } else {
            for (e, vector) in block.as_ref()[..width].iter().enumerate() {
                to[runs.vector(run, start + e, L::PARTS)] = *vector;
            }
        }
    }
}

/// Hands the matrices of a group over, one a lane.
pub(crate) struct Unpack<'a, 'b, T: Scalar> {
    pub(crate) from: &'b [T],
    /// No more than there are lanes; those without a matrix are passed over.
    pub(crate) to: &'b mut [Option<One<'a, T>>],
}

impl<T: Scalar> Work<T> for Unpack<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        let Self { from, to } = self;
        let from = L::from_numbers(from);
        let Some(first) = to.first().and_then(|one| one.as_ref()?.matrix.as_ref()) else { return };
        if let Some(runs) = Runs::of(&first.share()) {
            for run in 0..runs.count {
                unpack_run::<L>(L::as_vectors(from), &runs, run, to);
            }
        } else {
            for (lane, one) in to.iter_mut().enumerate() {
                let Some(to) = one.as_mut().and_then(|one| one.matrix.as_mut()) else { return };
                for j in 0..to.cols() {
                    for i in 0..to.rows() {
                        to.set(i, j, L::lane(from, i + j * to.rows(), lane));
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn unpack_run<L: Lanes>(from: &[L::Vector], runs: &Runs, run: usize, to: &mut [Option<One<'_, L::Number>>]) {
    let len = runs.len * L::PARTS;
    let mut block = L::Vector::block(L::Vector::splat(num_traits::zero()));
    for start in (0..len).step_by(L::COUNT) {
        let width = L::COUNT.min(len - start);
        if runs.step == 1 {
            let at = runs.vector(run, start, L::PARTS);
            block.as_mut()[..width].copy_from_slice(&from[at..at + width]);
        } else {
            for (e, vector) in block.as_mut()[..width].iter_mut().enumerate() {
                *vector = from[runs.vector(run, start + e, L::PARTS)];
            }
        }
        block = L::Vector::transpose(block);
        for (vector, one) in block.as_ref().iter().zip(to.iter_mut()) {
            let Some(to) = one.as_mut().and_then(|one| one.matrix.as_mut()) else { break };
            let to = &mut run_of_mut(to, runs, run, L::PARTS)[start..start + width];
            if width == L::COUNT { vector.store(to) } else { vector.store_part(to) }
        }
    }
}
