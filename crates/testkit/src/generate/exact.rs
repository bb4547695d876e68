//! `A = P L U` from chosen factors, such that elimination recovers them without a rounding error.
//!
//! Below its diagonal `L` has multiples of 1/4 of size up to 1/2, so partial pivoting has one choice in every column; `U` has a
//! diagonal of powers of two (times a unit), whose reciprocals are exact, and parts −1, 0, 1 above it. Every intermediate
//! `a_ij − Σ l_ik u_kj` is then a multiple of 1/4 of size below `n + 32`, far inside the 24 bits of `f32`.

use std::cmp::Ordering;

use batchla_core::Scalar;

use super::deviates::Deviates;
use super::{Place, from_fn};

/// What is wrong with the factors.
#[derive(Clone, Copy, Debug)]
pub(super) enum Flaw {
    None,
    /// Nothing is, and both factors are the identity.
    OnlyPermuted,
    ZeroPivot(Place),
    /// Rows of `U` from `⌊n/2⌋` on are zero.
    RankDeficient,
    /// The last row of `L` repeats another, with its 1 on the diagonal, and the last pivot is zero.
    DuplicateRows,
}

impl Flaw {
    /// The first column whose pivot is zero.
    pub(super) fn singular_column(self, n: usize) -> Option<usize> {
        match self {
            Self::None | Self::OnlyPermuted => None,
            Self::ZeroPivot(place) => (n > 0).then(|| place.column(n)),
            Self::RankDeficient => (n > 0).then_some(n / 2),
            Self::DuplicateRows => (n > 1).then(|| n - 1),
        }
    }

    /// The row of `L` that the last one repeats.
    fn original(self, n: usize) -> Option<usize> {
        matches!(self, Self::DuplicateRows).then(|| n.wrapping_sub(1) / 2).filter(|_| n > 1)
    }

    fn zero_pivot(self, n: usize, k: usize) -> bool {
        match self {
            Self::RankDeficient => k >= n / 2,
            _ => self.singular_column(n) == Some(k),
        }
    }

    /// Whether all of row `k` of `U` is zero.
    fn zero_row(self, n: usize, k: usize) -> bool {
        matches!(self, Self::RankDeficient) && self.zero_pivot(n, k)
    }
}

/// The exchanges that elimination must make. They are the first that is drawn of a stream.
///
/// Among equal candidates the first row is chosen, that is step `k` exchanges nothing, so no exchange is planned where there
/// are such: in columns of zeros, and where the original meets its duplicate.
pub(super) fn pivots(n: usize, flaw: Flaw, deviates: &mut Deviates) -> Vec<u32> {
    exchanges(n, deviates, |k| flaw.zero_pivot(n, k) || flaw.original(n) == Some(k))
}

/// Random exchanges, but none at `still` steps.
pub(super) fn exchanges(n: usize, deviates: &mut Deviates, still: impl Fn(usize) -> bool) -> Vec<u32> {
    (0..n).map(|k| (k + if still(k) { 0 } else { deviates.below(n - k) }) as u32).collect()
}

/// Puts the rows where elimination has to fetch them from.
pub(super) fn undo<W>(a: &mut [W], n: usize, pivots: &[u32]) {
    for column in a.chunks_exact_mut(n.max(1)) {
        for (k, &p) in pivots.iter().enumerate().rev() {
            column.swap(k, p as usize);
        }
    }
}

pub(super) fn matrix<W: Scalar<Real = f64>>(n: usize, flaw: Flaw, deviates: &mut Deviates) -> Vec<W> {
    let pivots = pivots(n, flaw, deviates);
    let (l, u) = factors(n, flaw, deviates);
    let mut a = vec![W::zero(); n * n];
    for j in 0..n {
        let column = &mut a[j * n..(j + 1) * n];
        for k in 0..=j {
            let factor: W = u[j * n + k];
            column[k..].iter_mut().zip(&l[k * n + k..(k + 1) * n]).for_each(|(x, l)| *x += factor * *l);
        }
    }
    undo(&mut a, n, &pivots);
    a
}

fn factors<W: Scalar<Real = f64>>(n: usize, flaw: Flaw, deviates: &mut Deviates) -> (Vec<W>, Vec<W>) {
    let plain = matches!(flaw, Flaw::OnlyPermuted);
    // About 16 elements a row keep the condition number small at every order.
    let density = 16.0 / n.max(1) as f64;
    let size = if W::IS_COMPLEX { 1 } else { 2 };
    let mut l = from_fn(n, |i, j| match i.cmp(&j) {
        Ordering::Equal => W::one(),
        Ordering::Greater if !plain && !flaw.zero_pivot(n, j) && deviates.fraction() < density => {
            deviates.element::<W>(|d| d.integer(size)).scale(0.25)
        }
        _ => W::zero(),
    });
    if let Some(original) = flaw.original(n) {
        for k in 0..n - 1 {
            l[k * n + n - 1] = l[k * n + original];
        }
    }
    let u = from_fn(n, |i, j| match i.cmp(&j) {
        Ordering::Equal if flaw.zero_pivot(n, i) => W::zero(),
        Ordering::Equal if plain => W::one(),
        Ordering::Equal => deviates.unit::<W>().scale([4.0, 8.0, 16.0][deviates.below(3)]),
        Ordering::Less if !plain && !flaw.zero_row(n, i) => deviates.element(|d| d.integer(1)),
        _ => W::zero(),
    });
    (l, u)
}
