//! The factorisation of eight small matrices at a time: element by element side by side, one vector lane a matrix.
//!
//! Rows are not exchanged while it goes on, since each matrix exchanges others; instead, each row knows the place that it would have.
//! To each element is done what LAPACK's `getf2` does, in the same order, whatever stands in the other lanes.

use batchla_core::{Real, Scalar};

use crate::getrf::reciprocal;
use crate::scratch::Square;
use crate::vector::{Chunk, Kernel, LANES, chunks_mut, widest};

/// The largest order that is factored this way.
pub(crate) const LARGEST: usize = 32;

/// Factors the matrices in `squares`, eight at most, all of one order; puts the columns of their first zero pivots into
/// `zero_pivots`.
///
/// `lanes` has room for eight times the elements of a matrix, real and imaginary parts apart.
pub(crate) fn getrf_interleaved<T: Scalar>(
    squares: &mut [Square<T>],
    lanes: &mut [T::Real],
    zero_pivots: &mut [Option<usize>; LANES],
) {
    let order = squares.first().map_or(0, |square| square.pivots.len());
    if (1..=LARGEST).contains(&order) {
        widest(Getf2 { squares, lanes: chunks_mut(lanes), order, zero_pivots });
    }
}

/// The same element of eight matrices; the imaginary parts are zero for real types.
#[derive(Clone, Copy)]
struct Wide<T: Scalar> {
    re: Chunk<T::Real>,
    im: Chunk<T::Real>,
}

/// Elements, column by column, in a memory of real numbers.
struct Elements<'a, T: Scalar>(&'a mut [Chunk<T::Real>]);

impl<T: Scalar> Elements<'_, T> {
    #[inline(always)]
    fn get(&self, at: usize) -> Wide<T> {
        if T::IS_COMPLEX {
            Wide { re: self.0[2 * at], im: self.0[2 * at + 1] }
        } else {
            Wide { re: self.0[at], im: Wide::<T>::zero().im }
        }
    }

    #[inline(always)]
    fn set(&mut self, at: usize, x: Wide<T>) {
        if T::IS_COMPLEX {
            self.0[2 * at] = x.re;
            self.0[2 * at + 1] = x.im;
        } else {
            self.0[at] = x.re;
        }
    }

    #[inline(always)]
    fn lane(&self, at: usize, lane: usize) -> T {
        if T::IS_COMPLEX {
            T::from_parts(self.0[2 * at][lane], self.0[2 * at + 1][lane])
        } else {
            T::from_real(self.0[at][lane])
        }
    }

    #[inline(always)]
    fn set_lane(&mut self, at: usize, lane: usize, x: T) {
        if T::IS_COMPLEX {
            self.0[2 * at][lane] = x.re();
            self.0[2 * at + 1][lane] = x.im();
        } else {
            self.0[at][lane] = x.re();
        }
    }
}

impl<T: Scalar> Wide<T> {
    #[inline(always)]
    fn zero() -> Self {
        let zero = [num_traits::zero(); LANES];
        Self { re: zero, im: zero }
    }

    #[inline(always)]
    fn lane(&self, lane: usize) -> T {
        T::from_parts(self.re[lane], self.im[lane])
    }

    #[inline(always)]
    fn set_lane(&mut self, lane: usize, x: T) {
        self.re[lane] = x.re();
        self.im[lane] = x.im();
    }

    #[inline(always)]
    fn sizes(&self) -> Chunk<T::Real> {
        let mut sizes = self.re;
        for i in 0..LANES {
            sizes[i] = if T::IS_COMPLEX { self.re[i].abs1() + self.im[i].abs1() } else { self.re[i].abs1() };
        }
        sizes
    }

    #[inline(always)]
    fn times(self, other: Self) -> Self {
        let mut product = self;
        for i in 0..LANES {
            if T::IS_COMPLEX {
                product.re[i] = self.re[i] * other.re[i] - self.im[i] * other.im[i];
                product.im[i] = self.im[i] * other.re[i] + self.re[i] * other.im[i];
            } else {
                product.re[i] = self.re[i] * other.re[i];
            }
        }
        product
    }

    #[inline(always)]
    fn minus_product(self, l: Self, u: Self) -> Self {
        let mut difference = self;
        for i in 0..LANES {
            if T::IS_COMPLEX {
                difference.re[i] = self.re[i] - l.re[i] * u.re[i] + l.im[i] * u.im[i];
                difference.im[i] = self.im[i] - l.im[i] * u.re[i] - l.re[i] * u.im[i];
            } else {
                difference.re[i] = self.re[i] - l.re[i] * u.re[i];
            }
        }
        difference
    }
}

/// In each lane `yes` where `a` and `b` stand in a relation, else `no`: one comparison and one choice, whole vectors at a time.
#[inline(always)]
fn choose<R: Copy>(holds: impl Fn(R, R) -> bool, a: Chunk<R>, b: Chunk<R>, yes: Chunk<R>, no: Chunk<R>) -> Chunk<R> {
    let mut chosen = no;
    for i in 0..LANES {
        chosen[i] = if holds(a[i], b[i]) { yes[i] } else { no[i] };
    }
    chosen
}

struct Getf2<'a, T: Scalar> {
    squares: &'a mut [Square<T>],
    lanes: &'a mut [Chunk<T::Real>],
    order: usize,
    zero_pivots: &'a mut [Option<usize>; LANES],
}

/// The pivot of a column in each lane. Rows and places are whole numbers, kept as reals to stay in one kind of vector.
struct Pivot<T: Scalar> {
    row: Chunk<T::Real>,
    place: Chunk<T::Real>,
    value: Wide<T>,
}

impl<T: Scalar> Kernel for Getf2<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { squares, lanes, order, zero_pivots } = self;
        let real = |x: usize| [<T::Real as Scalar>::from_f64(x as f64, 0.0); LANES];
        let mut a = Elements::<T>(lanes);
        interleave(squares, &mut a, order);
        *zero_pivots = [None; LANES];
        let mut places = [real(0); LARGEST];
        for (i, place) in places.iter_mut().enumerate() {
            *place = real(i);
        }
        let mut exchanges = [real(0); LARGEST];
        let mut u = [Wide::<T>::zero(); LARGEST];
        let mut l = [Wide::<T>::zero(); LARGEST];
        for k in 0..order {
            let pivot = first_largest(&a, &places[..order], k);
            exchanges[k] = pivot.place;
            let scale = reciprocals(&mut a, &places[..order], &pivot, k, zero_pivots);
            let mut rows = [0; LANES];
            for (row, x) in rows.iter_mut().zip(pivot.row) {
                *row = x.to_f64() as usize;
            }
            for j in k + 1..order {
                for (lane, &row) in rows.iter().enumerate() {
                    u[j].set_lane(lane, a.lane(j * order + row, lane));
                }
            }
            for i in 0..order {
                let displaced = choose(|x, y| x == y, places[i], real(k), pivot.place, places[i]);
                places[i] = choose(|x, y| x == y, real(i), pivot.row, real(k), displaced);
                let x = a.get(k * order + i);
                let (y, zero) = (x.times(scale), Wide::<T>::zero());
                let below = |yes, no| choose(|x, y| x > y, places[i], real(k), yes, no);
                a.set(k * order + i, Wide { re: below(y.re, x.re), im: below(y.im, x.im) });
                l[i] = Wide { re: below(y.re, zero.re), im: below(y.im, zero.im) };
            }
            for j in k + 1..order {
                for i in 0..order {
                    let x = a.get(j * order + i).minus_product(l[i], u[j]);
                    a.set(j * order + i, x);
                }
            }
        }
        separate(squares, &a, order, &places, &exchanges);
    }
}

/// In each lane, of the rows not yet used, that of largest size `|re| + |im|` in column `k`, and of several the first by place;
/// that at place `k` where none is above zero.
#[inline(always)]
fn first_largest<T: Scalar>(a: &Elements<'_, T>, places: &[Chunk<T::Real>], k: usize) -> Pivot<T> {
    let order = places.len();
    let real = |x: usize| [<T::Real as Scalar>::from_f64(x as f64, 0.0); LANES];
    let mut sizes = [real(0); LARGEST];
    let mut largest = real(0);
    for (i, &place) in places.iter().enumerate() {
        sizes[i] = choose(|x, y| x >= y, place, real(k), a.get(k * order + i).sizes(), real(0));
        largest = choose(|x, y| x > y, sizes[i], largest, sizes[i], largest);
    }
    let mut place = real(order);
    for (size, &here) in sizes.iter().zip(places) {
        let candidate = choose(|x, y| x == y, *size, largest, here, place);
        place = choose(|x, y| x < y, candidate, place, candidate, place);
    }
    place = choose(|x, y| x > y, largest, real(0), place, real(k));
    let mut pivot = Pivot { row: real(0), place, value: Wide::<T>::zero() };
    for (i, &here) in places.iter().enumerate() {
        let x = a.get(k * order + i);
        let hit = |yes, no| choose(|x, y| x == y, here, place, yes, no);
        pivot.row = hit(real(i), pivot.row);
        pivot.value = Wide { re: hit(x.re, pivot.value.re), im: hit(x.im, pivot.value.im) };
    }
    pivot
}

/// What to multiply with below the pivots of column `k`: one where there is nothing to scale, and where the reciprocal might
/// overflow, after dividing.
#[inline(always)]
fn reciprocals<T: Scalar>(
    a: &mut Elements<'_, T>,
    places: &[Chunk<T::Real>],
    pivot: &Pivot<T>,
    k: usize,
    zero_pivots: &mut [Option<usize>; LANES],
) -> Wide<T> {
    let order = places.len();
    let mut scale = pivot.value;
    for lane in 0..LANES {
        let value = pivot.value.lane(lane);
        let size = value.abs1();
        let one = num_traits::one();
        if size == num_traits::zero() {
            zero_pivots[lane] = zero_pivots[lane].or(Some(k));
            scale.set_lane(lane, one);
        } else if size < T::SAFE_MINIMUM {
            let (k_real, row) = (k as f64, pivot.row[lane].to_f64() as usize);
            for i in 0..order {
                if places[i][lane].to_f64() >= k_real && i != row {
                    let x = a.lane(k * order + i, lane);
                    a.set_lane(k * order + i, lane, x.divide(value));
                }
            }
            scale.set_lane(lane, one);
        } else {
            scale.set_lane(lane, reciprocal(value));
        }
    }
    scale
}

/// Puts the matrices side by side; lanes without one get another's.
#[inline(always)]
fn interleave<T: Scalar>(squares: &[Square<T>], a: &mut Elements<'_, T>, order: usize) {
    let columns: [&[T]; LANES] = std::array::from_fn(|lane| squares[lane.min(squares.len() - 1)].columns.as_slice());
    let ld = squares[0].columns.ld();
    for j in 0..order {
        let columns = columns.map(|columns| &columns[j * ld..j * ld + order]);
        for i in 0..order {
            let mut x = Wide::<T>::zero();
            for (lane, column) in columns.iter().enumerate() {
                x.set_lane(lane, column[i]);
            }
            a.set(j * order + i, x);
        }
    }
}

/// Puts the factors back, each row to its place.
#[inline(always)]
fn separate<T: Scalar>(
    squares: &mut [Square<T>],
    a: &Elements<'_, T>,
    order: usize,
    places: &[Chunk<T::Real>; LARGEST],
    exchanges: &[Chunk<T::Real>; LARGEST],
) {
    for (lane, square) in squares.iter_mut().enumerate() {
        let mut rows = [0; LARGEST];
        for (row, place) in rows.iter_mut().zip(places) {
            *row = place[lane].to_f64() as usize;
        }
        let ld = square.columns.ld();
        for (j, column) in square.columns.as_mut_slice().chunks_mut(ld).enumerate() {
            for (i, &row) in rows[..order].iter().enumerate() {
                column[row] = a.lane(j * order + i, lane);
            }
        }
        for (pivot, place) in square.pivots.iter_mut().zip(exchanges) {
            *pivot = place[lane].to_f64() as u32;
        }
    }
}
