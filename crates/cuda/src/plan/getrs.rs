//! The solution's numbers.

use std::fmt;

use batchla_core::ScalarKind;

use super::{WARP, scalar_bytes};
use crate::limits::Limits;

/// How `op(A) X = B` is computed from `A = P L U`: a block takes a matrix and some right-hand sides.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetrsPlan {
    /// Right-hand sides of a block.
    pub columns: usize,
    /// Threads of a block.
    pub threads: usize,
    /// Bytes of shared memory a block: the right-hand sides.
    pub shared_bytes: usize,
}

impl GetrsPlan {
    pub(super) fn choose(
        scalar: ScalarKind,
        order: usize,
        right_hand_sides: usize,
        limits: &Limits,
    ) -> Result<Self, String> {
        let limit = limits.shared_bytes_per_block as usize;
        let bytes = |columns: usize| order * columns * scalar_bytes(scalar);
        let mut columns = right_hand_sides.clamp(1, 8).next_power_of_two();
        while columns > 1 && bytes(columns) > limit {
            columns /= 2;
        }
        if bytes(columns) > limit {
            return Err(format!(
                "a right-hand side of order {order} takes {} bytes of shared memory, {} has {limit} a block",
                bytes(1),
                limits.name
            ));
        }
        let threads = order.next_multiple_of(WARP).clamp(WARP, 256);
        Ok(Self { columns, threads, shared_bytes: bytes(columns) })
    }
}

impl fmt::Display for GetrsPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "columns={} threads={}", self.columns, self.threads)
    }
}
