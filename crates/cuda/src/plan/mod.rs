//! How a problem will run on a GPU: which kernels, with which numbers. Plain data; no GPU is needed to make one.

mod blocked;
mod chip;
mod copies;
mod explanation;
mod getrf;
mod getri;
mod getri_table;
mod getrs;
mod request;
mod resident;
mod resident_receipts;
mod resident_table;
mod space;
mod specification;
mod spread;
mod streamed_table;

use std::fmt;

use batchla_core::{Chosen, Error, Operation, Options, Plan, Problem, Rejection, ScalarKind, SourceKind};

pub use self::blocked::Strips;
pub(crate) use self::blocked::TRIANGLE;
pub use self::copies::Copies;
pub use self::getrf::{GetrfPlan, Interchange, Looking, Search, Steps};
pub use self::getri::{Correction, GetriPlan, Resources};
pub use self::getrs::GetrsPlan;
use self::request::KEYS;
pub(crate) use self::request::Request;
pub use self::resident::ResidentPlan;
pub use self::space::{Axis, Space};
use crate::limits::Limits;
use crate::tuned::Tuned;

/// How the CUDA backend computes a problem: a part for each routine that the problem needs.
///
/// Plans are chosen by the type, the order, the layouts and the GPU; by the batch's size only in that few large matrices are each shared out to many blocks (`spread`), and few of some orders have more threads each. A plan is forced by name,
/// with numbers of one's own where wanted: `left-looking`, `left-looking:panel=16,threads=128`. `resident` keeps on chip what fits there, all or some columns at a time, and is `left-looking`
/// beyond; `blocked` factors large matrices strip by strip, until the chip takes what is left. Forced or not, every plan computes each
/// element by the same sequence of roundings, so all have one `arithmetic` a scalar type and give the same bits.
///
/// ```
/// use batchla_core::{BatchLayout, Options, Plan, Problem, SourceKind};
/// use batchla_cuda::{CudaPlan, Limits};
/// let a = BatchLayout::column_major(10_000, 300, 300)?;
/// let problem = Problem::factorize::<f64>(SourceKind::Matrix, a, a)?;
/// let h200 = Limits::preset("sm_90").expect("a preset");
/// let plan = CudaPlan::choose(&problem, &Options::default(), &h200)?;
/// assert_eq!((plan.name(), plan.arithmetic()), ("blocked", "cuda-fused-f64"));
/// # Ok::<(), batchla_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CudaPlan {
    name: &'static str,
    scalar: ScalarKind,
    order: usize,
    arithmetic: String,
    /// The factorisation, or all of an inversion or solution, where the problem starts from matrices and these are worked on on chip.
    pub resident: Option<ResidentPlan>,
    /// The factorisation, where the problem starts from matrices that do not.
    pub getrf: Option<GetrfPlan>,
    /// The inversion from factors.
    pub getri: Option<GetriPlan>,
    /// The solution from factors.
    pub getrs: Option<GetrsPlan>,
}

/// A family of plans that can be forced by name, and what it stands for.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    resident: bool,
    looking: Looking,
    interchange: Interchange,
    search: Search,
    shared_panel: bool,
    correction: Correction,
    resources: Option<Resources>,
    steps: Option<Stepwise>,
    spread: bool,
    strips: bool,
}

impl Family {
    /// Whether LU is one launch.
    fn in_one_launch(&self) -> bool {
        self.steps.is_none() && !self.spread && !self.strips
    }
}

/// What MAGMA's slides improve step by step.
#[derive(Clone, Copy)]
pub(crate) struct Stepwise {
    blocked_panel: bool,
    streamed: bool,
    together: usize,
}

const LEFT_LOOKING: Family = Family {
    name: "left-looking",
    resident: false,
    looking: Looking::Left,
    interchange: Interchange::Delayed,
    search: Search::Warps,
    shared_panel: false,
    correction: Correction::Delayed,
    resources: None,
    steps: None,
    spread: false,
    strips: false,
};

const fn multi_kernel(name: &'static str, interchange: Interchange, steps: Stepwise) -> Family {
    Family { name, looking: Looking::Right, interchange, steps: Some(steps), ..LEFT_LOOKING }
}

/// Of few matrices each by many blocks.
const SPREAD: Family =
    Family { name: "spread", looking: Looking::Right, interchange: Interchange::Grouped, spread: true, ..LEFT_LOOKING };

/// Of large ones, strip by strip.
const BLOCKED: Family = Family { name: "blocked", strips: true, ..LEFT_LOOKING };

const RESIDENT: Family = Family { name: "resident", resident: true, ..LEFT_LOOKING };

/// The first four are the planner's; the others are there to be compared with them and are never chosen by themselves.
const FAMILIES: [Family; 17] = [
    LEFT_LOOKING,
    RESIDENT,
    SPREAD,
    BLOCKED,
    Family { name: "shared-panel", shared_panel: true, ..LEFT_LOOKING },
    Family { name: "tree-search", shared_panel: true, search: Search::Tree, ..LEFT_LOOKING },
    Family { name: "interchange-serial", interchange: Interchange::Serial, ..LEFT_LOOKING },
    Family { name: "interchange-grouped", interchange: Interchange::Grouped, ..LEFT_LOOKING },
    Family { name: "right-looking", looking: Looking::Right, interchange: Interchange::Grouped, ..LEFT_LOOKING },
    multi_kernel("multi-kernel", Interchange::Serial, Stepwise { blocked_panel: false, streamed: true, together: 1 }),
    multi_kernel(
        "multi-kernel-interchange",
        Interchange::Grouped,
        Stepwise { blocked_panel: false, streamed: true, together: 1 },
    ),
    multi_kernel(
        "multi-kernel-blocked",
        Interchange::Grouped,
        Stepwise { blocked_panel: true, streamed: true, together: 1 },
    ),
    multi_kernel(
        "multi-kernel-batched",
        Interchange::Grouped,
        Stepwise { blocked_panel: true, streamed: false, together: 1 },
    ),
    multi_kernel(
        "multi-kernel-two-level",
        Interchange::Grouped,
        Stepwise { blocked_panel: true, streamed: false, together: 4 },
    ),
    Family { name: "timely", correction: Correction::Timely, ..LEFT_LOOKING },
    Family { name: "static", resources: Some(Resources::Static), ..LEFT_LOOKING },
    Family { name: "dynamic", resources: Some(Resources::Dynamic), ..LEFT_LOOKING },
];

impl CudaPlan {
    /// The names by which families of plans are forced; the planner chooses between the first four.
    pub const NAMES: [&'static str; 17] = {
        let mut names = [""; FAMILIES.len()];
        let mut i = 0;
        while i < names.len() {
            names[i] = FAMILIES[i].name;
            i += 1;
        }
        names
    };

    /// The numbers that a name may bring along, as `panel=16`.
    pub const NUMBERS: [&str; KEYS.len()] = KEYS;

    /// The plan for a problem on a GPU with such limits: the planner's own, or the one named in `options`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](batchla_core::ErrorKind::Unsupported) with the [`Rejection`] as its source where there is no plan of the
    /// name, a number of its is out of range, or the GPU has too little shared memory for the order.
    pub fn choose(problem: &Problem, options: &Options, limits: &Limits) -> Result<Self, Error> {
        Self::choose_tuned(problem, options, limits, &Tuned::none()).map(|(plan, _)| plan)
    }

    /// The same where there may be a table that was measured on this GPU; and who chose. A row of it that does not serve is passed over with a warning.
    ///
    /// # Errors
    /// As of [`CudaPlan::choose`].
    pub fn choose_tuned(
        problem: &Problem,
        options: &Options,
        limits: &Limits,
        tuned: &Tuned,
    ) -> Result<(Self, Chosen), Error> {
        if let Some(name) = options.plan.as_deref() {
            return Ok((Self::named(problem, name, limits)?, Chosen::ByName));
        }
        // What was measured is of batches that keep the GPU busy.
        if let Some((file, row)) = tuned.row(problem).filter(|_| !spread::is_best(problem, limits)) {
            match Self::named(problem, &row.plan, limits) {
                Ok(plan) => return Ok((plan, Chosen::ByTuning(file.display().to_string()))),
                Err(error) => log::warn!("a row of {} is passed over: {error}", file.display()),
            }
        }
        Ok((Self::named(problem, Self::own(problem, limits).name, limits)?, Chosen::ByPlanner))
    }

    /// The family that the tables of this crate choose.
    fn own(problem: &Problem, limits: &Limits) -> &'static Family {
        if spread::is_best(problem, limits) {
            &SPREAD
        } else if blocked::is_best(problem, limits) {
            &BLOCKED
        } else if ResidentPlan::is_best(problem, limits) {
            &RESIDENT
        } else {
            &LEFT_LOOKING
        }
    }

    /// The plan of a name.
    fn named(problem: &Problem, wanted: &str, limits: &Limits) -> Result<Self, Error> {
        let refuse = |reason: String| Rejection { plan: wanted.to_owned(), reason }.into_error(problem);
        let request = Request::parse(wanted).map_err(refuse)?;
        let family = FAMILIES
            .iter()
            .find(|family| family.name == request.name)
            .ok_or_else(|| refuse(format!("the CUDA backend has the plans {}", Self::NAMES.join(", "))))?;
        let (scalar, order) = (problem.scalar(), problem.order());
        if order > MOST_ROWS {
            return Err(refuse(format!("orders go up to {MOST_ROWS}")));
        }
        if problem.operation() == Operation::Solve && problem.right_hand_sides() > MOST_RIGHT_HAND_SIDES {
            return Err(refuse(format!(
                "right-hand sides go up to {MOST_RIGHT_HAND_SIDES}; solve for some of them at a time"
            )));
        }
        let from_matrices = problem.source() != SourceKind::Factors;
        let resident =
            if family.resident { ResidentPlan::choose(&request, problem, limits).map_err(refuse)? } else { None };
        // What does not stay on chip is left-looking.
        let family = if family.resident && resident.is_none() { &LEFT_LOOKING } else { family };
        let getrf = (from_matrices && resident.is_none())
            .then(|| GetrfPlan::choose(family, &request, scalar, order, limits))
            .transpose()
            .map_err(refuse)?;
        let getri = (problem.operation() == Operation::Invert && !resident.as_ref().is_some_and(|plan| plan.inverts))
            .then(|| GetriPlan::choose(family, &request, problem, limits))
            .transpose()
            .map_err(refuse)?;
        let getrs = (problem.operation() == Operation::Solve
            && resident.as_ref().is_none_or(|plan| plan.solves.is_none()))
        .then(|| GetrsPlan::choose(&request, scalar, order, problem.right_hand_sides(), limits))
        .transpose()
        .map_err(refuse)?;
        Ok(Self {
            name: family.name,
            scalar,
            order,
            arithmetic: format!("cuda-fused-{scalar}"),
            resident,
            getrf,
            getri,
            getrs,
        })
    }

    /// The order of the matrices.
    pub fn order(&self) -> usize {
        self.order
    }

    /// Whether one launch inverts, from matrices to inverses.
    pub(crate) fn inverts_on_chip(&self) -> bool {
        self.resident.as_ref().is_some_and(|plan| plan.inverts)
    }

    /// Whether one launch solves, from matrices to solutions.
    pub(crate) fn solves_on_chip(&self) -> bool {
        self.resident.as_ref().is_some_and(|plan| plan.solves.is_some())
    }

    /// Elements from a column of a matrix in the workspace to the next, and how many columns there is room for.
    pub(crate) fn leading(&self) -> usize {
        self.getri.as_ref().map_or(leading(self.order), |getri| getri.leading(self.order))
    }

    /// The scalar type.
    pub fn scalar(&self) -> ScalarKind {
        self.scalar
    }
}

/// Rows and columns are counted in 31 bits on the device, products of an order and a panel's width too.
const MOST_ROWS: usize = 1 << 24;
/// Right-hand sides that fit: kernels count them, and a block of them more, in 32 bits.
const MOST_RIGHT_HAND_SIDES: usize = 1 << 30;

/// Bytes of a scalar.
pub(crate) fn scalar_bytes(scalar: ScalarKind) -> usize {
    match scalar {
        ScalarKind::F32 => 4,
        ScalarKind::F64 | ScalarKind::C32 => 8,
        ScalarKind::C64 => 16,
    }
}

/// The same where no inversion by windows asks for more: each column begins where a sector of memory does, whatever the type.
pub(crate) fn leading(order: usize) -> usize {
    order.max(1).next_multiple_of(8)
}

/// Shared memory that a block has without asking.
const STATIC_SHARED_BYTES: usize = 48 << 10;

/// Threads of a warp.
pub(crate) const WARP: usize = 32;

/// Blocks that fit a multiprocessor, by registers and threads, as the compiler is told: it then spends no more registers than that.
///
/// Registers belong to one of a multiprocessor's four parts, among which warps are dealt out.
fn resident_blocks(threads: usize, registers: usize, limits: &Limits) -> usize {
    const PARTS: usize = 4;
    let a_part = limits.registers_per_multiprocessor as usize / PARTS;
    let warps = PARTS * (a_part / (WARP * registers.next_multiple_of(8)));
    let by_registers = warps / threads.div_ceil(WARP);
    let by_threads = limits.threads_per_multiprocessor as usize / threads;
    by_registers.min(by_threads).clamp(1, limits.blocks_per_multiprocessor as usize)
}

impl Plan for CudaPlan {
    fn name(&self) -> &str {
        self.name
    }

    fn arithmetic(&self) -> &str {
        &self.arithmetic
    }
}

impl fmt::Display for CudaPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} n={} ({})", self.name, self.scalar, self.order, self.arithmetic)?;
        if let Some(resident) = &self.resident {
            write!(f, "; {resident}")?;
        }
        if let Some(getrf) = &self.getrf {
            write!(f, "; getrf {getrf}")?;
        }
        if let Some(getri) = &self.getri {
            write!(f, "; getri {getri}")?;
        }
        if let Some(getrs) = &self.getrs {
            write!(f, "; getrs {getrs}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
