//! Which way a problem is computed: never from the data, and from batch and threads only among plans of one arithmetic.

use std::fmt;

use batchla_core::{Error, Operation, Options, Plan, Problem, Receipt, Rejection, ScalarKind, SourceKind};

use crate::blocked::pairs;
use crate::engine::{Engine, Kind};
use crate::simd::InstructionSet;
use crate::vector::{self, LANES, fused};

/// How the CPU backend computes a problem.
///
/// - `interleaved`: a matrix a lane, as many at a time as a vector has lanes. Fastest for small orders; its bits are the same on every
///   instruction set.
/// - `blocked`: a matrix at a time, by tiles in registers; small ones in plain memory are factored, or inverted, two at a time, their rows exchanged at the end, but a
///   matrix a lane where one after another is singular or not finite; large ones by all threads that have none of their own. Its bits are those of `interleaved`.
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
    Own(Engine),
    Faer,
}

impl CpuPlan {
    /// The names by which plans are forced. Each serves every problem.
    pub const NAMES: [&str; 3] = ["interleaved", "blocked", "faer"];

    /// The plan for a problem: the one named in `options`, or the faster one.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](batchla_core::ErrorKind::Unsupported) where there is no plan of the name.
    pub fn choose(problem: &Problem, options: &Options) -> Result<Self, Error> {
        Self::choose_on(InstructionSet::widest(), 1, problem, options)
    }

    /// The same on a given instruction set and so many threads.
    pub(crate) fn choose_on(
        instruction_set: InstructionSet,
        threads: usize,
        problem: &Problem,
        options: &Options,
    ) -> Result<Self, Error> {
        let (scalar, order) = (problem.scalar(), problem.order());
        let own = |kind| Family::Own(Engine::new(kind, instruction_set, scalar, order));
        let family = match options.plan.as_deref() {
            Some("interleaved") => own(Kind::Interleaved),
            Some("blocked") => own(Kind::Blocked),
            Some("faer") => Family::Faer,
            Some(other) => {
                let reason = format!("the CPU backend has the plans {}", Self::NAMES.join(", "));
                return Err(Rejection { plan: other.to_owned(), reason }.into_error(problem));
            }
            None if fused() && are_fastest_in_pairs(instruction_set, problem) => own(Kind::Blocked),
            None if fused() && fills_lanes(problem, threads, own(Kind::Interleaved)) => own(Kind::Interleaved),
            None if fused() && order <= blocked_up_to(scalar) => own(Kind::Blocked),
            None => Family::Faer,
        };
        let arithmetic = match family {
            Family::Own(_) => format!("cpu-fma-{scalar}"),
            Family::Faer => format!("cpu-faer{FAER}-panel{PANEL}-{}-{scalar}", vector::instruction_set()),
        };
        Ok(Self { family, scalar, order, arithmetic })
    }

    /// Matrices of a group; 1 where they are computed one by one.
    pub(crate) fn lanes(&self) -> usize {
        self.engine().map_or(1, |engine| engine.lanes())
    }

    /// Matrices that are computed together at most.
    pub(crate) fn together(&self) -> usize {
        self.engine().map_or(1, |engine| engine.together())
    }

    /// Matrices of the largest group that there may be.
    pub(crate) fn most_together(&self) -> usize {
        self.engine().map_or(1, |engine| engine.most_together())
    }

    /// Whether several threads can work on one matrix.
    pub(crate) fn shares_matrices(&self) -> bool {
        self.engine().is_some_and(|engine| engine.kind() == Kind::Blocked)
    }

    /// Whether results go past the caches, where they lie without gaps.
    pub(crate) fn streams(&self, problem: &Problem) -> bool {
        self.engine().is_some_and(|engine| engine.for_results_of(problem).streams())
    }

    /// How groups are computed, where they are.
    pub(crate) fn engine(&self) -> Option<Engine> {
        match self.family {
            Family::Own(engine) => Some(engine),
            _ => None,
        }
    }
}

/// The version of faer whose arithmetic this is.
const FAER: &str = "0.24";

/// Columns of a panel that is factored by our own loops, at most.
pub(crate) const PANEL: usize = 3 * LANES;

pub(crate) const INTERLEAVED_RECEIPT: Receipt = Receipt::new(
    "AMD EPYC with AVX-512 and 1 MiB of L2, one and two threads; narrower vectors and factors on an Intel Xeon, one thread",
    "2026-11-25",
    "each plan forced at orders 4 to 144, LU of c64 and inverses of f32 again on 2026-11-28; no record was kept",
);

pub(crate) const BLOCKED_RECEIPT: Receipt = Receipt::new(
    "two AMD EPYC with AVX-512 and 1 MiB of L2, one thread",
    "2026-11-23",
    "each plan forced at orders 320 to 1536; no record was kept",
);

/// Whether groups are worth it: the batch must fill enough of their lanes, on every thread. The time of a group, beside that of single matrices, grows
/// about as the order.
fn fills_lanes(problem: &Problem, threads: usize, plan: Family) -> bool {
    let (order, Family::Own(engine)) = (problem.order(), plan) else { return false };
    let most = interleaved_up_to(engine.instruction_set(), problem);
    order <= most && problem.batch().saturating_mul(most) >= engine.lanes() * threads * order
}

pub(crate) const PAIRS_RECEIPT: Receipt = Receipt::new(
    "factors on an Intel Xeon, one and two threads; inverses on an AMD EPYC, one thread; both with AVX-512",
    "2026-11-28",
    "each plan forced at orders 8 to 64; no record was kept",
);

/// Whether matrices in plain memory are so fastest two at a time, factored or, if no condition is wanted, inverted. Columns of complex numbers should fill their last
/// vector, or enough of it, and so should longer ones of f32 that are inverted.
pub(crate) fn are_fastest_in_pairs(set: InstructionSet, problem: &Problem) -> bool {
    use ScalarKind::{C32, C64, F32, F64};
    let (scalar, order) = (problem.scalar(), problem.order());
    let lanes = if matches!(scalar, F64 | C64) { set.lanes::<f64>() } else { set.lanes::<f32>() };
    let empty = order.next_multiple_of(lanes) - order;
    let fast = match (problem.operation(), scalar) {
        (Operation::Factorize, F32 | F64) => order >= 13,
        (Operation::Factorize, C32) => order >= 15 && empty < lanes / 2,
        (Operation::Factorize, C64) => order >= 15 && empty <= 1,
        (Operation::Invert, F32) => order >= 22 && (order <= 32 || empty < lanes / 2),
        (Operation::Invert, F64) => order >= 11,
        (Operation::Invert, C32) => order >= 31 && empty <= 1 || order >= 60,
        (Operation::Invert, C64) => order >= 12 && (empty <= 1 || empty == 4) || order >= 28 && empty <= 4,
        _ => false,
    };
    let from_matrices = problem.source() != SourceKind::Factors && !problem.extras().condition;
    let plain = problem.a().is_plain() && problem.out().is_plain();
    fast && from_matrices && plain && problem.batch() > 1 && pairs::serves(set, scalar, order)
}

/// The largest order at which groups of full lanes are faster than single matrices: a larger one where rows are rearranged as matrices are taken over.
pub(crate) fn interleaved_up_to(set: InstructionSet, problem: &Problem) -> usize {
    let rearranged = set == InstructionSet::Avx512 && problem.source() != SourceKind::Factors;
    match (problem.operation(), problem.scalar(), rearranged) {
        (Operation::Invert, ScalarKind::F64, true) => 76,
        (Operation::Invert, ScalarKind::F32, true) => 104,
        (Operation::Invert, ScalarKind::C64, true) => 36,
        (Operation::Invert, ScalarKind::C32, true) => 60,
        (Operation::Invert, ScalarKind::F64, false) => 50,
        (Operation::Invert, ScalarKind::F32, false) => 60,
        (Operation::Invert, ScalarKind::C64, false) => 28,
        (Operation::Invert, ScalarKind::C32, false) => 30,
        (_, ScalarKind::F64, true) => 80,
        (_, ScalarKind::F32, true) => 128,
        (_, ScalarKind::C64, true) => 70,
        (_, ScalarKind::C32, true) => 76,
        (_, ScalarKind::F64, false) => 60,
        (_, ScalarKind::F32, false) => 80,
        (_, ScalarKind::C64, false) => 28,
        (_, ScalarKind::C32, false) => 60,
    }
}

/// The largest order at which our own blocks are faster than faer's products.
pub(crate) fn blocked_up_to(scalar: ScalarKind) -> usize {
    match scalar {
        ScalarKind::F32 | ScalarKind::F64 => 1024,
        ScalarKind::C32 | ScalarKind::C64 => 768,
    }
}

impl Plan for CpuPlan {
    fn name(&self) -> &str {
        match self.family {
            Family::Own(engine) => match engine.kind() {
                Kind::Interleaved => "interleaved",
                Kind::Blocked => "blocked",
            },
            Family::Faer => "faer",
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use batchla_core::{BatchLayout, Extras};

    use super::*;

    fn name(set: InstructionSet, a: BatchLayout, extras: Extras) -> String {
        let problem = Problem::factorize::<f64>(SourceKind::InPlace, a, a).unwrap().with_extras(extras).unwrap();
        choice(set, &problem)
    }

    fn choice(set: InstructionSet, problem: &Problem) -> String {
        CpuPlan::choose_on(set, 1, problem, &Options::default()).unwrap().name().to_owned()
    }

    #[test]
    fn pairs_are_chosen_where_they_are_inverted_in_pairs() {
        let expected = if fused() { ["blocked", "interleaved"] } else { ["faer"; 2] };
        let plain = BatchLayout::column_major(1000, 32, 32).unwrap();
        let of = |source, extras| {
            let problem = Problem::invert::<f64>(source, plain, plain).unwrap().with_extras(extras).unwrap();
            choice(InstructionSet::Avx512, &problem)
        };
        assert_eq!(of(SourceKind::InPlace, Extras::none()), expected[0]);
        assert_eq!(of(SourceKind::Matrix, Extras::none()), expected[0]);
        assert_eq!(of(SourceKind::Factors, Extras::none()), expected[1]);
        assert_eq!(of(SourceKind::InPlace, Extras::none().with_determinant()), expected[0]);
        assert_eq!(of(SourceKind::InPlace, Extras::none().with_condition()), expected[1]);
    }

    #[test]
    fn pairs_are_chosen_where_they_are_factored_in_pairs() {
        let plain = BatchLayout::column_major(1000, 32, 32).unwrap();
        let expected = if fused() { ["blocked", "interleaved"] } else { ["faer"; 2] };
        let padded = plain.with_leading_dimension(33).unwrap();
        let of = |a, extras| name(InstructionSet::Avx512, a, extras);
        assert_eq!(of(plain, Extras::none()), expected[0]);
        assert_eq!(of(padded, Extras::none()), expected[1]);
        assert_eq!(of(plain, Extras::none().with_determinant()), expected[0]);
        assert_eq!(name(InstructionSet::Avx2, plain, Extras::none()), expected[1]);
    }
}
