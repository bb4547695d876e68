//! Which way a problem is computed: from the problem alone, never from the data or the batch's size.

use std::fmt;

use batchla_core::{Error, Options, Plan, Problem, Rejection, ScalarKind};

use crate::vector::{LANES, fused, instruction_set};

/// How the CPU backend computes a problem.
///
/// - `unblocked`: our own loops, column by column. Fastest for small orders; its bits are the same on every processor
///   that has fused multiply-add, and on every one that has not.
/// - `faer`: recursive; narrow panels by our own loops, triangular solves and products by faer. Its bits depend on the instruction set
///   and on the sizes of the caches, since these decide how faer sums an inner product.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CpuPlan {
    family: Family,
    scalar: ScalarKind,
    order: usize,
    arithmetic: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Family {
    Unblocked,
    Faer { panel: usize },
}

impl CpuPlan {
    /// The names by which plans are forced. Each serves every problem.
    pub const NAMES: [&str; 2] = ["unblocked", "faer"];

    /// The plan for a problem: the one named in `options`, or the faster one.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](batchla_core::ErrorKind::Unsupported) where there is no plan of the name.
    pub fn choose(problem: &Problem, options: &Options) -> Result<Self, Error> {
        let (scalar, order) = (problem.scalar(), problem.order());
        let faer = Family::Faer { panel: PANEL };
        let family = match options.plan.as_deref() {
            Some("unblocked") => Family::Unblocked,
            Some("faer") => faer,
            Some(other) => {
                let reason = format!("the CPU backend has the plans {}", Self::NAMES.join(" and "));
                return Err(Rejection { plan: other.to_owned(), reason }.into_error(problem));
            }
            None if order <= unblocked_up_to(scalar) => Family::Unblocked,
            None => faer,
        };
        let arithmetic = match family {
            Family::Unblocked if fused() => format!("cpu-unblocked-fma-{scalar}"),
            Family::Unblocked => format!("cpu-unblocked-{scalar}"),
            Family::Faer { panel } => format!("cpu-faer{FAER}-panel{panel}-{}-{scalar}", instruction_set()),
        };
        Ok(Self { family, scalar, order, arithmetic })
    }

    /// Columns of a panel that is factored by our own loops.
    pub(crate) fn panel(&self) -> usize {
        match self.family {
            Family::Unblocked => self.order.max(1),
            Family::Faer { panel } => panel,
        }
    }

    /// Whether inverses and solutions are computed by blocks.
    pub(crate) fn by_blocks(&self) -> bool {
        self.family != Family::Unblocked
    }
}

/// The version of faer whose arithmetic this is.
const FAER: &str = "0.24";

/// Columns of a panel, at most.
const PANEL: usize = 3 * LANES;

/// The largest order at which our own loops are faster than faer's products; measured with two threads of an AVX-512 Xeon.
fn unblocked_up_to(scalar: ScalarKind) -> usize {
    match scalar {
        ScalarKind::F32 | ScalarKind::F64 | ScalarKind::C32 => 32,
        ScalarKind::C64 => 24,
    }
}

impl Plan for CpuPlan {
    fn name(&self) -> &str {
        match self.family {
            Family::Unblocked => "unblocked",
            Family::Faer { .. } => "faer",
        }
    }

    fn arithmetic(&self) -> &str {
        &self.arithmetic
    }
}

impl fmt::Display for CpuPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} n={} ({})", self.name(), self.scalar, self.order, self.arithmetic)
    }
}
