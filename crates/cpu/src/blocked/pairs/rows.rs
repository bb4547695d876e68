//! Rows that stay where they are while a matrix is factored: which are left, and where exchanges would have put them.

use crate::simd::{Lanes, Vector};

/// The most rows: a bit each.
pub(super) const MOST_ROWS: usize = u64::BITS as usize;

/// Where rows are, had they been exchanged, and which of them have not become a pivot's.
pub(super) struct Rows {
    /// The row at each place.
    pub(super) at: [u8; MOST_ROWS],
    /// The place of each row.
    pub(super) place: [u8; MOST_ROWS],
    /// The rows that are left, bit by bit.
    left: u64,
}

const IN_PLACE: [u8; MOST_ROWS] = {
    let mut at = [0; MOST_ROWS];
    let mut i = 0;
    while i < MOST_ROWS {
        at[i] = i as u8;
        i += 1;
    }
    at
};

impl Rows {
    #[inline(always)]
    pub(super) fn new(order: usize) -> Self {
        Self { at: IN_PLACE, place: IN_PLACE, left: u64::MAX >> (MOST_ROWS - order) }
    }

    /// The rows that are left from row `first` on, bit by bit.
    #[inline(always)]
    pub(super) fn left(&self, first: usize) -> u32 {
        (self.left >> first) as u32
    }

    /// Makes row `p` that of pivot `k`; gives the exchange.
    #[inline(always)]
    pub(super) fn choose(&mut self, k: usize, p: usize) -> u32 {
        let (k, p) = (k % MOST_ROWS, p % MOST_ROWS);
        let (place, other) = (self.place[p], self.at[k]);
        self.at[place as usize % MOST_ROWS] = other;
        self.place[other as usize % MOST_ROWS] = place;
        self.at[k] = p as u8;
        self.place[p] = k as u8;
        self.left &= !(1 << p);
        u32::from(place)
    }

    /// Rows from place `first` on become those that `later` has in their stead, which counts from there.
    #[inline(always)]
    pub(super) fn follow(&mut self, first: usize, later: &Self) {
        let was = self.at;
        for (i, at) in self.at[first..].iter_mut().enumerate() {
            *at = was[(first + usize::from(later.at[i])) % MOST_ROWS];
            self.place[usize::from(*at) % MOST_ROWS] = (first + i) as u8;
        }
    }

    /// The row of the next pivot: of those that are left, whose number in the column is largest in size, the one at the first place; and that size.
    #[inline(always)]
    pub(super) fn search<L: Lanes, const V: usize>(&self, column: &[L; V]) -> (usize, <L::Vector as Vector>::Real) {
        let zero = L::Vector::splat(num_traits::zero());
        let mut sizes = [zero; V];
        for v in 0..V {
            let left = L::Vector::mask(self.left(v * L::COUNT));
            sizes[v] = L::Vector::select(left, column[v].size(), zero);
        }
        let mut best = sizes[0];
        for size in &sizes[1..] {
            best = size.larger(best);
        }
        let (most, mut found) = (best.largest(), 0);
        for v in (0..V).rev() {
            found = found << L::COUNT | u64::from(L::Vector::bits(sizes[v].equals(most)));
        }
        let p = if found & found.wrapping_sub(1) == 0 { found.trailing_zeros() as usize } else { self.first_of(found) };
        // There is none where the largest is NaN.
        (p % MOST_ROWS, L::Vector::as_reals(&[most])[0])
    }

    /// Of some rows, bit by bit, the one at the first place.
    #[cold]
    #[inline(never)]
    fn first_of(&self, rows: u64) -> usize {
        let each = (0..MOST_ROWS).filter(|row| rows >> row & 1 == 1);
        each.min_by_key(|&row| self.place[row]).unwrap_or(0)
    }
}
