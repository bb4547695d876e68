//! Scratch memory of a run, and how it is divided.

use batchla_core::{Error, ErrorKind, Operation, Problem, SourceKind};

use crate::limits::Limits;
#[cfg(feature = "driver")]
use crate::memory::DeviceArray;
use crate::plan::{CudaPlan, scalar_bytes};

/// Scratch memory for one run at a time of what was prepared.
#[cfg(feature = "driver")]
#[derive(Debug)]
pub struct CudaWorkspace {
    pub(crate) memory: DeviceArray<u32>,
}

/// Where what lies in the workspace, in bytes from its start, for up to `chunk` matrices at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Matrices that are worked on at a time: large batches go through a workspace of bounded size.
    pub(crate) chunk: usize,
    /// Factors, column-major, where the caller does not have them.
    pub(crate) factors: u64,
    /// `U⁻¹`, column-major; the same as `factors` where they may be overwritten.
    pub(crate) unknown: u64,
    /// Which row of `A` each row of the factors is.
    pub(crate) rows: u64,
    /// Exchanges.
    pub(crate) pivots: u64,
    /// Outcome words of the factors.
    pub(crate) status: u64,
    /// All of it.
    pub(crate) bytes: u64,
}

/// The driver's own alignment of allocations.
const ALIGNMENT: u64 = 256;

/// The largest share of the device's memory that a workspace takes, unless one matrix needs more: one part in so many.
const SHARE: u64 = 16;

impl Parts {
    pub(crate) fn of(problem: &Problem, plan: &CudaPlan, limits: &Limits) -> Result<Self, Error> {
        let from_matrices = problem.source() != SourceKind::Factors;
        let needs_none = match problem.operation() {
            Operation::Factorize => true,
            Operation::Determinant => !from_matrices,
            _ => plan.inverts_on_chip() || plan.solves_on_chip(),
        };
        if needs_none {
            return Ok(Self { chunk: problem.batch().max(1), ..Self::default() });
        }
        let inverts = plan.getri.is_some();
        let own_unknown = inverts && (!from_matrices || plan.getri.as_ref().is_some_and(|getri| getri.separate));
        let order = problem.order() as u64;
        let square = (plan.leading().pow(2) * scalar_bytes(problem.scalar())) as u128;
        let each = square * (u128::from(from_matrices) + u128::from(own_unknown)) + u128::from(order) * 8 + 4;
        let matrices = problem.a().batch().max(1);
        let chunk = if matrices == 1 {
            1
        } else {
            let room = u128::from(limits.memory_bytes / SHARE) / each.max(1);
            let lanes = group_of(problem);
            let whole = (usize::try_from(room).unwrap_or(usize::MAX) / lanes).max(1).saturating_mul(lanes);
            whole.min(matrices)
        };
        let mut end = 0u128;
        let mut part = |there: bool, bytes: u128| {
            let start = end;
            if there {
                end = (end + bytes * chunk as u128).next_multiple_of(u128::from(ALIGNMENT));
            }
            start as u64
        };
        let factors = part(from_matrices, square);
        let separate = part(own_unknown, square);
        let unknown = if own_unknown { separate } else { factors };
        let rows = part(true, u128::from(order) * 4);
        let pivots = part(from_matrices, u128::from(order) * 4);
        let status = part(true, 4);
        let bytes = u64::try_from(end).map_err(|_| {
            Error::new(ErrorKind::OutOfMemory, "prepare", format!("{problem} needs {end} bytes of workspace"))
                .advise("use matrices that fit the device")
        })?;
        Ok(Self { chunk, factors, unknown, rows, pivots, status, bytes })
    }
}

/// Matrices that only go together: whole groups of interleaved ones, or all.
pub(crate) fn group_of(problem: &Problem) -> usize {
    let operands = [Some(problem.a()), problem.b(), Some(problem.out())];
    let lanes = operands.into_iter().flatten().map(|layout| layout.strides().lanes);
    let all = lanes.fold(1usize, |all, lanes| (all / greatest_common_divisor(all, lanes)).saturating_mul(lanes));
    all.min(problem.batch().max(1))
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use batchla_core::{BatchLayout, Options};

    use super::*;

    fn parts(problem: &Problem) -> Parts {
        let limits = Limits::preset("sm_90").unwrap();
        let plan = CudaPlan::choose(problem, &Options::default().with_plan("left-looking"), &limits).unwrap();
        Parts::of(problem, &plan, &limits).unwrap()
    }

    #[test]
    fn a_large_batch_goes_through_a_bounded_workspace_in_whole_groups() {
        let a = BatchLayout::column_major(10_000_000, 64, 64).unwrap();
        let dense = parts(&Problem::invert::<f64>(SourceKind::Matrix, a, a).unwrap());
        assert!(dense.bytes <= Limits::preset("sm_90").unwrap().memory_bytes / SHARE + 8 * ALIGNMENT);
        assert!(dense.chunk > 100_000 && dense.chunk < 10_000_000);
        let a = BatchLayout::interleaved(10_000_000, 64, 64, 48).unwrap();
        let lanes = parts(&Problem::invert::<f64>(SourceKind::Matrix, a, a).unwrap());
        assert_eq!(lanes.chunk % 48, 0);
    }

    #[test]
    fn matrices_go_together_as_far_as_all_operands_have_them_in_groups() {
        let interleaved = |lanes, cols| BatchLayout::interleaved(100_000, 2, cols, lanes).unwrap();
        let solve = |a, b| {
            let (a, b) = (interleaved(a, 2), interleaved(b, 1));
            Problem::solve::<f64>(SourceKind::Factors, a, Some(b), b, Default::default()).unwrap()
        };
        assert_eq!(group_of(&solve(32, 32)), 32);
        assert_eq!(group_of(&solve(32, 48)), 96);
        // What is more than the batch has, by whatever factor, is all of it.
        let huge = 1 << 40;
        assert_eq!(group_of(&solve(huge, huge - 1)), 100_000);
        assert_eq!(parts(&solve(huge, huge - 1)).chunk, 100_000);
    }

    #[test]
    fn determinants_of_factors_need_no_workspace() {
        let a = BatchLayout::column_major(1_000_000, 8, 8).unwrap();
        let given = parts(&Problem::determinant::<f32>(SourceKind::Factors, a).unwrap());
        assert_eq!((given.chunk, given.bytes), (1_000_000, 0));
    }

    #[test]
    fn a_factorisation_needs_no_workspace() {
        let a = BatchLayout::row_major(1000, 64, 64).unwrap();
        assert_eq!(parts(&Problem::factorize::<f32>(SourceKind::InPlace, a, a).unwrap()).bytes, 0);
    }

    #[test]
    fn an_inversion_on_chip_needs_no_workspace() {
        let limits = Limits::preset("sm_90").unwrap();
        let a = BatchLayout::column_major(1_000_000, 8, 8).unwrap();
        let problem = Problem::invert::<f64>(SourceKind::Matrix, a, a).unwrap();
        let plan = CudaPlan::choose(&problem, &Options::default().with_plan("resident"), &limits).unwrap();
        let parts = Parts::of(&problem, &plan, &limits).unwrap();
        assert_eq!((parts.chunk, parts.bytes), (1_000_000, 0));
    }

    #[test]
    fn factors_of_the_callers_are_not_overwritten() {
        let a = BatchLayout::column_major(7, 5, 5).unwrap();
        let given = parts(&Problem::invert::<f64>(SourceKind::Factors, a, a).unwrap());
        assert_eq!((given.chunk, given.factors, given.unknown), (7, 0, 0));
        assert!(given.rows >= 7 * 25 * 8);
    }
}
