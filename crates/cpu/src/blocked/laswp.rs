//! Exchanges of rows in columns of numbers.

use batchla_core::Scalar;

use super::COLUMNS;
use super::tile::place;
use crate::simd::{Lanes, Vector, Work, outline};

/// Makes the exchanges, the first of them in row `top`, in all columns.
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
        let reals = L::Vector::as_reals_mut(L::as_vectors_mut(a));
        let column = ld * L::PARTS * L::COUNT;
        // Few columns at a time, which stay in the cache; more than one, or an exchange would wait for the one before.
        let mut rest = reals;
        while let Some(columns) = rest.split_off_mut(..COLUMNS * column) {
            exchange_in_columns::<L, COLUMNS>(columns, column, top, exchanges);
        }
        while let Some(own) = rest.split_off_mut(..column) {
            exchange_in_columns::<L, 1>(own, column, top, exchanges);
        }
    }
}

/// The same in `C` columns of so many real numbers.
#[inline(always)]
fn exchange_in_columns<L: Lanes, const C: usize>(
    columns: &mut [<L::Vector as Vector>::Real],
    column: usize,
    top: usize,
    exchanges: &[u32],
) {
    assert!(columns.len() == C * column);
    for (k, &p) in exchanges.iter().enumerate() {
        let (i, p) = (place::<L>(top + k), place::<L>(p as usize));
        // Looked at here, not in every column.
        assert!(i.max(p) + (L::PARTS - 1) * L::COUNT < column);
        for part in 0..L::PARTS {
            let (i, p) = (i + part * L::COUNT, p + part * L::COUNT);
            if size_of::<<L::Number as Scalar>::Real>() == 8 {
                swap_in_columns::<_, u64, C>(columns, column, i, p);
            } else {
                swap_in_columns::<_, u32, C>(columns, column, i, p);
            }
        }
    }
}

/// Swaps numbers `i` and `p`, which are below `column`, of `C` columns, as integers `I` of their size: the processor stores more of these at a time.
#[inline(always)]
fn swap_in_columns<R, I: Copy, const C: usize>(columns: &mut [R], column: usize, i: usize, p: usize) {
    let numbers: *mut I = columns.as_mut_ptr().cast();
    for c in 0..C {
        // SAFETY: both are below `column`, of which there are `C`; any number is an integer of its size.
        unsafe {
            let (x, y) = (numbers.add(c * column + i), numbers.add(c * column + p));
            let (a, b) = (*x, *y);
            (*x, *y) = (b, a);
        }
    }
}
