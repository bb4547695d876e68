//! Sharing the matrices of a batch out among threads.

use std::sync::{Mutex, PoisonError};

use batchla_core::{BatchMut, Determinant, HostMemory, MatricesMut, MatrixMut, ReportMut, Scalar};

use crate::call::Pool;
use crate::scratch::{Scratch, Threads};
use crate::simd::MOST_LANES;
use crate::team::Team;

/// The results of a stretch of a batch, to write; can be split in two for parallel work.
pub(crate) struct Results<'a, T: Scalar> {
    first: usize,
    order: usize,
    matrices: Option<MatricesMut<'a, T>>,
    pivots: &'a mut [u32],
    outcomes: &'a mut [u32],
    determinants: Option<&'a mut [Determinant<T>]>,
    conditions: Option<&'a mut [T::Real]>,
}

/// The results of one matrix, to write.
pub(crate) struct One<'a, T: Scalar> {
    /// Its place in the batch.
    pub(crate) index: usize,
    /// Factors, inverse or solution; `None` where only a report is wanted.
    pub(crate) matrix: Option<MatrixMut<'a, T>>,
    /// The exchanges; empty where they are not wanted.
    pub(crate) pivots: &'a mut [u32],
    /// The outcome's word.
    pub(crate) outcome: &'a mut u32,
    /// The determinant, where wanted.
    pub(crate) determinant: Option<&'a mut Determinant<T>>,
    /// The condition number, where wanted.
    pub(crate) condition: Option<&'a mut T::Real>,
}

/// The results of some neighbours, to write.
pub(crate) struct Together<'a, T: Scalar> {
    /// The first one's place in the batch.
    pub(crate) first: usize,
    /// How many there are.
    pub(crate) count: usize,
    /// Whether the same thread takes the next ones.
    pub(crate) more: bool,
    /// Factors, inverses or solutions; none where only a report is wanted.
    pub(crate) matrices: [Option<MatrixMut<'a, T>>; MOST_LANES],
    /// The exchanges, one matrix after another; empty where they are not wanted.
    pub(crate) pivots: &'a mut [u32],
    /// The outcomes' words.
    pub(crate) outcomes: &'a mut [u32],
    /// The determinants, where wanted.
    pub(crate) determinants: Option<&'a mut [Determinant<T>]>,
    /// The condition numbers, where wanted.
    pub(crate) conditions: Option<&'a mut [T::Real]>,
}

/// The results of a stretch of a batch as memory.
pub(crate) struct Plain<'a, T: Scalar> {
    /// The first one's place in the batch.
    pub(crate) first: usize,
    /// Matrices, one after another, column by column.
    pub(crate) matrices: &'a mut [T],
    /// The exchanges, one matrix after another; empty where they are not wanted.
    pub(crate) pivots: &'a mut [u32],
    /// The outcomes' words.
    pub(crate) outcomes: &'a mut [u32],
    /// The determinants, where wanted.
    pub(crate) determinants: Option<&'a mut [Determinant<T>]>,
}

impl<'a, T: Scalar> Results<'a, T> {
    /// What is left, if the matrices lie in the plainest of ways, and no condition numbers are wanted.
    pub(crate) fn plain(&mut self) -> Option<Plain<'_, T>> {
        let matrices = self.matrices.as_mut().filter(|_| self.conditions.is_none())?.plain_slice()?;
        let determinants = self.determinants.as_deref_mut();
        Some(Plain { first: self.first, matrices, pivots: self.pivots, outcomes: self.outcomes, determinants })
    }

    /// How many there are left.
    pub(crate) fn left(&self) -> usize {
        self.outcomes.len()
    }

    /// Passes over plain results that are written.
    pub(crate) fn pass_over(&mut self, count: usize) {
        if let (Some(last), Some(matrices)) = (count.checked_sub(1), &mut self.matrices) {
            matrices.nth(last);
        }
        self.first += count;
        let _written = (self.pivots.split_off_mut(..count * self.order), self.outcomes.split_off_mut(..count));
        let _determinants = self.determinants.as_mut().and_then(|all| all.split_off_mut(..count));
    }

    /// The next `most` at most, unless there are none.
    pub(crate) fn next_together(&mut self, most: usize) -> Option<Together<'a, T>> {
        let (first, count) = (self.first, most.min(self.outcomes.len()));
        if count == 0 {
            return None;
        }
        self.first += count;
        let mut matrices = [const { None }; MOST_LANES];
        if let Some(all) = &mut self.matrices {
            matrices[..count].iter_mut().for_each(|place| *place = all.next());
        }
        Some(Together {
            first,
            count,
            more: count < self.outcomes.len(),
            matrices,
            pivots: self.pivots.split_off_mut(..count * self.order).unwrap_or_default(),
            outcomes: self.outcomes.split_off_mut(..count).unwrap_or_default(),
            determinants: self.determinants.as_mut().and_then(|all| all.split_off_mut(..count)),
            conditions: self.conditions.as_mut().and_then(|all| all.split_off_mut(..count)),
        })
    }

    /// The report of `batch` matrices, which has room for them.
    pub(crate) fn new(report: ReportMut<'a, T, HostMemory>, batch: usize) -> Self {
        let ReportMut { outcomes, determinants, conditions, .. } = report;
        Self {
            first: 0,
            order: 0,
            matrices: None,
            pivots: &mut [],
            outcomes: &mut outcomes[..batch],
            determinants: determinants.map(|all| &mut all[..batch]),
            conditions: conditions.map(|all| &mut all[..batch]),
        }
    }

    /// Also matrices.
    pub(crate) fn with_matrices(self, matrices: BatchMut<'a, T>) -> Self {
        Self { matrices: Some(matrices.into_matrices()), ..self }
    }

    /// Also `order` exchanges a matrix.
    pub(crate) fn with_pivots(self, pivots: &'a mut [u32], order: usize) -> Self {
        let pivots = &mut pivots[..self.outcomes.len() * order];
        Self { order, pivots, ..self }
    }

    fn split_at(self, count: usize) -> (Self, Self) {
        let (left, right) = self.matrices.map(|all| all.split_at(count)).unzip();
        let (left_pivots, right_pivots) = self.pivots.split_at_mut(count * self.order);
        let (left_outcomes, right_outcomes) = self.outcomes.split_at_mut(count);
        let (left_determinants, right_determinants) = self.determinants.map(|all| all.split_at_mut(count)).unzip();
        let (left_conditions, right_conditions) = self.conditions.map(|all| all.split_at_mut(count)).unzip();
        let left = Self {
            first: self.first,
            order: self.order,
            matrices: left,
            pivots: left_pivots,
            outcomes: left_outcomes,
            determinants: left_determinants,
            conditions: left_conditions,
        };
        let right = Self {
            first: self.first + count,
            order: self.order,
            matrices: right,
            pivots: right_pivots,
            outcomes: right_outcomes,
            determinants: right_determinants,
            conditions: right_conditions,
        };
        (left, right)
    }
}

impl<'a, T: Scalar> Iterator for Results<'a, T> {
    type Item = One<'a, T>;

    fn next(&mut self) -> Option<One<'a, T>> {
        let outcome = self.outcomes.split_off_first_mut()?;
        let index = self.first;
        self.first += 1;
        Some(One {
            index,
            matrix: self.matrices.as_mut().and_then(Iterator::next),
            pivots: self.pivots.split_off_mut(..self.order).unwrap_or_default(),
            outcome,
            determinant: self.determinants.as_mut().and_then(|all| all.split_off_first_mut()),
            condition: self.conditions.as_mut().and_then(|all| all.split_off_first_mut()),
        })
    }
}

/// Does `work` for all results: in stretches of `grain`, a multiple of the lanes, which the caller's thread and those of `pool` take one after the other. The
/// caller does not wait for a thread to wake up, which would take longer than a small batch. Where matrices are `large`, threads that find no stretch left
/// help the others.
pub(crate) fn for_each<T: Scalar>(
    pool: Option<&Pool>,
    (grain, large): (usize, bool),
    threads: Threads<'_, T>,
    results: Results<'_, T>,
    work: impl Fn(&mut Scratch<T>, Results<'_, T>, &Team) + Sync,
) {
    let stretches = results.outcomes.len().div_ceil(grain);
    let team = Team::new(stretches);
    let left = Mutex::new(Some(results));
    let next = || {
        let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
        let all = left.take().filter(|all| !all.outcomes.is_empty())?;
        if all.outcomes.len() <= grain {
            return Some(all);
        }
        let (stretch, rest) = all.split_at(grain);
        *left = Some(rest);
        Some(stretch)
    };
    let take_part = |thread: usize| {
        while let Some(stretch) = next() {
            team.finish(|| threads.with(thread, |scratch| work(scratch, stretch, &team)));
        }
        if large {
            team.help();
        }
    };
    let useful = if large { usize::MAX } else { stretches };
    match pool {
        Some(pool) if useful > 1 => pool.together(useful - 1, &take_part),
        _ => take_part(0),
    }
}
