//! The memory of a group of matrices, and what is looked at in all of it.

use batchla_core::{Error, HostArray, Scalar};

use crate::simd::{Lanes, MOST_LANES, Vector, Work};

/// Memory of one thread for a group of matrices.
pub(crate) struct Group<T: Scalar> {
    /// The matrices.
    pub(crate) a: HostArray<T>,
    /// Right-hand sides.
    pub(crate) x: HostArray<T>,
    /// A few columns to set aside.
    pub(crate) aside: HostArray<T>,
    /// The exchanges of each matrix, one after another.
    pub(crate) exchanges: HostArray<u32>,
}

impl<T: Scalar> Group<T> {
    /// For `lanes` matrices of order `order` with right-hand sides; `lanes` may be none.
    pub(crate) fn new(order: usize, right_hand_sides: usize, lanes: usize) -> Result<Self, Error> {
        let vectors = |rows: usize, cols: usize| HostArray::zeroed(rows.saturating_mul(cols).saturating_mul(lanes));
        Ok(Self {
            a: vectors(order, order)?,
            x: vectors(order, right_hand_sides)?,
            aside: vectors(order, super::tile::COLUMNS)?,
            exchanges: HostArray::zeroed(order.saturating_mul(lanes))?,
        })
    }

    /// Bytes of it.
    pub(crate) fn bytes(element: u64, order: u64, right_hand_sides: u64, lanes: u64) -> u64 {
        let columns = order.saturating_add(right_hand_sides).saturating_add(super::tile::COLUMNS as u64);
        order.saturating_mul(lanes).saturating_mul(columns.saturating_mul(element).saturating_add(4))
    }
}

/// Which lanes hold something that is not finite: bit by bit.
pub struct Spoiled<'a, T> {
    pub(crate) a: &'a [T],
}

impl<T: Scalar> Work<T> for Spoiled<'_, T> {
    type Output = u32;

    #[inline(always)]
    fn run<L: Lanes<Number = T>>(self) -> u32 {
        let zero = L::Vector::splat(num_traits::zero());
        let mut sums = [zero; 4];
        let (fours, rest) = L::from_numbers(self.a).as_chunks::<4>();
        for four in fours {
            for (sum, x) in sums.iter_mut().zip(four) {
                *sum = x.spoil(*sum);
            }
        }
        for x in rest {
            sums[0] = x.spoil(sums[0]);
        }
        let sum = sums[0].add(sums[1]).add(sums[2]).add(sums[3]);
        let mut lanes = [num_traits::one(); MOST_LANES];
        sum.store(&mut lanes);
        (0..L::COUNT).filter(|&lane| lanes[lane] != num_traits::zero()).fold(0, |bits, lane| bits | 1 << lane)
    }
}
