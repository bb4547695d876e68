//! The next group's matrices, asked for while this one is factored.

use std::ops::Range;

use batchla_core::{MatrixRef, Scalar};

use super::pack::{Runs, Starts, starts_of, to_next};
use crate::simd::{Lanes, MOST_LANES, Vector};

/// Bytes that come at a time.
const LINE: usize = 64;

/// Where they lie, stretch by stretch. Asked for all at once, as the group's own are taken over, they would hold these up.
pub(super) struct Next<T> {
    starts: Starts<*const T>,
    count: usize,
    /// Bytes of a stretch, and from the start of one to the next.
    len: usize,
    stride: usize,
}

impl<T: Scalar> Next<T> {
    /// None, or nobody knows where.
    pub(super) const NONE: Self = Self { starts: [std::ptr::null(); MOST_LANES], count: 0, len: 0, stride: 0 };

    /// Those as far behind these as the second of these is behind the first, lane after lane. None where another thread may be at work on them, and lose them by it.
    #[inline(always)]
    pub(super) fn of<L: Lanes<Number = T>>(from: &[MatrixRef<'_, T>], more: bool) -> Self {
        let Some(runs) = Runs::of(&from[0], false).filter(|_| more) else { return Self::NONE };
        let mut starts = starts_of::<T, T>(from);
        let ahead = to_next::<L, _>(&starts, more);
        for start in &mut starts {
            *start = start.wrapping_byte_add(ahead);
        }
        let (len, stride) = (runs.len * size_of::<T>(), runs.stride * size_of::<T>());
        if runs.count == 1 {
            Self { starts, count: len.div_ceil(LINE), len: LINE, stride: LINE }
        } else {
            Self { starts, count: runs.count, len, stride }
        }
    }

    /// Asks for what is due while some of so many steps are done.
    #[inline(always)]
    pub(super) fn ask<L: Lanes<Number = T>>(&self, steps: Range<usize>, of: usize) {
        if self.count == 0 {
            // An order of zero has no steps to divide by.
            return;
        }
        for stretch in self.count * steps.start / of..self.count * steps.end / of {
            for at in (0..self.len).step_by(LINE) {
                for start in &self.starts[..L::COUNT] {
                    L::Vector::prefetch(start.wrapping_byte_add(stretch * self.stride + at).cast());
                }
            }
        }
    }
}
