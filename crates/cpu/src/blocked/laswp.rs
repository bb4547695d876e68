//! Exchanges of rows in columns of numbers.

use batchla_core::Scalar;

use super::COLUMNS;
use super::tile::place;
use crate::simd::{Lanes, MOST_LANES, Vector, Work, outline};

/// Columns that take all exchanges before others do, at most: so many that what is worked out for them together counts little.
const TOGETHER: usize = 32;
/// Bytes of such columns, which stay in a cache near by.
const NEAR: usize = 64 << 10;

/// Makes the exchanges, the first of them in row `top`, in all columns. Where there are several, a vector begins there.
#[inline(always)]
pub(super) fn exchange_rows<L: Lanes>(a: &mut [L], ld: usize, top: usize, exchanges: &[u32]) {
    if !a.is_empty() {
        outline::<L, _>(Exchange { a, ld, top, exchanges });
    }
}

/// The same for columns of numbers, `ld` apart.
pub struct ExchangeRows<'a, T> {
    pub(super) a: &'a mut [T],
    pub(super) ld: usize,
    pub(super) top: usize,
    pub(super) exchanges: &'a [u32],
}

impl<T: Scalar> Work<T> for ExchangeRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) {
        exchange_rows(L::from_numbers_mut(self.a), self.ld / L::COUNT, self.top, self.exchanges);
    }
}

struct Exchange<'a, L> {
    a: &'a mut [L],
    ld: usize,
    top: usize,
    exchanges: &'a [u32],
}

impl<T: Scalar, L: Lanes<Number = T>> Work<T> for Exchange<'_, L> {
    type Output = ();

    #[inline(always)]
    fn run<Same: Lanes<Number = T>>(self) {
        let Self { a, ld, top, exchanges } = self;
        let together = (NEAR / (ld * size_of::<L>())).clamp(COLUMNS, TOGETHER);
        for columns in a.chunks_mut(together * ld) {
            let vectors = exchanges.chunks(L::COUNT).zip((top..).step_by(L::COUNT));
            for (exchanges, top) in vectors {
                if exchanges.len() > 1 {
                    exchange_vector(columns, ld, top, exchanges);
                } else {
                    exchange_row(columns, ld, (top, exchanges[0] as usize));
                }
            }
        }
    }
}

/// Makes one exchange, in columns of `ld` vectors.
#[inline(always)]
pub(super) fn exchange_row<L: Lanes>(columns: &mut [L], ld: usize, (i, p): (usize, usize)) {
    let (i, p) = (place::<L>(i), place::<L>(p));
    for own in reals(columns).chunks_exact_mut(ld * L::PARTS * L::COUNT) {
        for part in 0..L::PARTS {
            own.swap(i + part * L::COUNT, p + part * L::COUNT);
        }
    }
}

/// The real numbers of vectors.
#[inline(always)]
fn reals<L: Lanes>(vectors: &mut [L]) -> &mut [<L::Vector as Vector>::Real] {
    L::Vector::as_reals_mut(L::as_vectors_mut(vectors))
}

/// Makes the exchanges of the rows of a vector, which begins with row `top`, or of the first of them, in turn.
///
/// What comes to such a row stays there, and no later exchange asks for it: these rows are put in their places together, by half as many stores.
#[inline(always)]
fn exchange_vector<L: Lanes>(columns: &mut [L], ld: usize, top: usize, exchanges: &[u32]) {
    let column = ld * L::PARTS * L::COUNT;
    let mut from = [0; MOST_LANES];
    for k in 0..L::COUNT {
        from[k] = place::<L>(exchanges.get(k).map_or(top + k, |&p| p as usize));
    }
    assert!(top.is_multiple_of(L::COUNT));
    let top = place::<L>(top);
    // Looked at here, not in every column.
    assert!(from.iter().fold(top + L::COUNT - 1, |most, &p| most.max(p)) + (L::PARTS - 1) * L::COUNT < column);
    for own in reals(columns).chunks_exact_mut(column) {
        for part in 0..L::PARTS {
            let part = part * L::COUNT;
            let numbers = own.as_mut_ptr();
            let come = L::Vector::from_lanes(|k| {
                // SAFETY: the column has both, which was looked at.
                unsafe {
                    let (x, y) = (numbers.add(top + part + k), numbers.add(from[k] + part));
                    let come = *y;
                    *y = *x;
                    come
                }
            });
            come.store(&mut own[top + part..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use batchla_core::{Complex, HostArray};

    use super::*;
    use crate::backend::CpuScalar;
    use crate::blocked::leading_dimension;
    use crate::simd::InstructionSet;

    fn together_as_one_by_one<T: CpuScalar>() {
        let (order, columns) = (45, TOGETHER + 3);
        for set in InstructionSet::ALL.into_iter().filter(|set| set.is_available()) {
            let ld = leading_dimension(order, set.lanes::<<T as Scalar>::Real>(), T::KIND);
            for (top, end) in [(0, order), (16, 21), (16, order), (32, order), (32, 40)] {
                let [mut together, mut in_turn] = [(); 2].map(|()| HostArray::zeroed(ld * columns).expect("memory"));
                for (at, x) in together.iter_mut().enumerate() {
                    *x = T::from_f64(at as f64, -(at as f64));
                }
                in_turn.copy_from_slice(&together);
                // With rows of the same vector, with rows below it, some of them twice, and with none.
                let exchanges: Vec<u32> =
                    (top..end).map(|k| (k + k * k * 7 % (order - k).min(1 << (k % 7))) as u32).collect();
                T::exchange_rows(set, ExchangeRows { a: &mut together, ld, top, exchanges: &exchanges });
                for (k, exchange) in (top..).zip(exchanges.chunks(1)) {
                    T::exchange_rows(set, ExchangeRows { a: &mut in_turn, ld, top: k, exchanges: exchange });
                }
                assert!(together[..] == in_turn[..], "{} by {set}, rows {top} to {end}", T::KIND);
            }
        }
    }

    #[test]
    fn exchanges_come_to_the_same_together_as_one_by_one() {
        together_as_one_by_one::<f32>();
        together_as_one_by_one::<f64>();
        together_as_one_by_one::<Complex<f32>>();
        together_as_one_by_one::<Complex<f64>>();
    }
}
