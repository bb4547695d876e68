//! Where the exchanges of a group are noted: for the caller, or in vectors for the rest of an inversion.

use batchla_core::Scalar;

use crate::simd::{Lanes, MOST_LANES, Vector};

/// The exchanges of every lane.
pub(super) trait Exchanges<L: Lanes> {
    /// Notes exchange `k`: row `k` with row `index`.
    fn note(&mut self, index: L::Vector, order: usize, k: usize);

    /// The row that row `k` is exchanged with.
    fn index(&self, order: usize, k: usize) -> L::Vector;
}

/// Those of one lane after another.
impl<L: Lanes> Exchanges<L> for [u32] {
    #[inline(always)]
    fn note(&mut self, index: L::Vector, order: usize, k: usize) {
        let mut rows = [0; MOST_LANES];
        index.store_counts(&mut rows);
        for (exchange, row) in self[k..].iter_mut().step_by(order).zip(&rows[..L::COUNT]) {
            *exchange = *row;
        }
    }

    #[inline(always)]
    fn index(&self, order: usize, k: usize) -> L::Vector {
        let mut index = L::Vector::splat(num_traits::zero());
        let lanes = L::Vector::as_reals_mut(std::slice::from_mut(&mut index));
        for (lane, p) in lanes.iter_mut().zip(self[k..].iter().step_by(order)) {
            *lane = <L::Number as Scalar>::Real::from_f64(f64::from(*p), 0.0);
        }
        index
    }
}

/// Those of a small inversion, which nobody else asks for: number by number they took as long as a tenth of it.
pub(super) struct Kept<L: Lanes, const N: usize>([L::Vector; N]);

impl<L: Lanes, const N: usize> Kept<L, N> {
    #[inline(always)]
    pub(super) fn new() -> Self {
        Self([L::Vector::splat(num_traits::zero()); N])
    }
}

impl<L: Lanes, const N: usize> Exchanges<L> for Kept<L, N> {
    #[inline(always)]
    fn note(&mut self, index: L::Vector, _order: usize, k: usize) {
        self.0[k] = index;
    }

    #[inline(always)]
    fn index(&self, _order: usize, k: usize) -> L::Vector {
        self.0[k]
    }
}
