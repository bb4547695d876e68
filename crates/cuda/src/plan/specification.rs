//! From a plan to the kernels it needs, as text and constants.

use batchla_core::{BatchLayout, Operation, Problem, ScalarKind, SourceKind};

use super::chip::order_on_chip;
use super::{
    Correction, CudaPlan, GetrfPlan, GetriPlan, GetrsPlan, Interchange, Looking, ResidentPlan, Search, Strips,
    TRIANGLE, WARP,
};
use crate::kernel::source::{KernelSource, Specification};
use crate::kernels;

impl CudaPlan {
    /// Every kernel that a run of `problem` launches; each symbol is there once.
    pub fn specifications(&self, problem: &Problem) -> Vec<Specification> {
        let (operation, from_factors) = (problem.operation(), problem.source() == SourceKind::Factors);
        let plain = |source, entry| specification(source, entry, self.scalar());
        let mut all = Vec::new();
        // Only a factorisation leaves its factors with the caller; others have theirs in the workspace, column-major.
        let to_caller = operation == Operation::Factorize || self.inverts_on_chip();
        let unit = (unit_rows(problem.a()), !to_caller || unit_rows(problem.out()));
        if let Some(resident) = &self.resident {
            let odd = resident.odd(self.scalar(), problem.a());
            let kernel = resident_kernel(resident);
            let own = resident_specification(kernel, resident, self.scalar(), self.order(), unit, odd);
            // Where nothing is beyond the matrix, factors to stay and factors to be read again have one kernel.
            let beyond = self.pads(problem) && self.order() != self.leading();
            all.push(own.define("BATCHLA_PADDED", u8::from(beyond)));
        }
        if let Some(getrf) = &self.getrf {
            if let Some(strips) = &getrf.strips {
                // What a strip's kernel reads is the source first, and then the result.
                let (scalar, unit) = (self.scalar(), (unit.0 && unit.1, unit.0 && unit.1));
                let own = getrf_specification(kernels::GETRF_STRIP, "getrf_strip", getrf, scalar, unit);
                all.push(own.define("BATCHLA_WINDOW", strips.width).define("BATCHLA_TOGETHER", strips.together));
                all.push(trailing_specification(strips, scalar, unit));
                all.extend(strips.finish.as_ref().map(|(left, plan)| {
                    let kernel = (kernels::GETRF_FINISH, "getrf_finish");
                    resident_specification(kernel, plan, scalar, *left, unit, false).define("BATCHLA_PADDED", 0)
                }));
                let settling = getrf.settling(scalar, self.order());
                all.push(getrf_specification(kernels::GETRF_SPREAD, "getrf_settle", &settling, scalar, unit));
            }
            match &getrf.steps {
                None if getrf.strips.is_some() => {}
                None if getrf.spread => all.extend(
                    ["getrf_spread", "getrf_settle"]
                        .map(|entry| getrf_specification(kernels::GETRF_SPREAD, entry, getrf, self.scalar(), unit)),
                ),
                None => all.push(getrf_specification(kernels::GETRF, "getrf", getrf, self.scalar(), unit)),
                Some(steps) => {
                    let interchange = GetrfPlan { panel: steps.width, ..getrf.clone() };
                    let panel = ("getrf_panel", kernels::GETRF_STEPS, getrf);
                    let update = ("getrf_update", kernels::GETRF_STEPS, &*steps.update);
                    for (entry, source, plan) in [panel, ("laswp", kernels::LASWP, &interchange), update] {
                        all.push(getrf_specification(source, entry, plan, self.scalar(), unit));
                    }
                }
            }
        }
        let by_steps = self.getrf.as_ref().is_some_and(|getrf| getrf.steps.is_some());
        if by_steps && operation != Operation::Factorize
            || from_factors && matches!(operation, Operation::Invert | Operation::Solve)
        {
            all.push(plain(kernels::PERMUTATION, "permutation"));
        }
        if let Some(getri) = &self.getri {
            let unit_out = !getri.direct || unit_rows(problem.out());
            if getri.resident {
                let unit = (!from_factors || unit_rows(problem.a()), unit_out);
                let own = getri_resident_specification(getri, self.scalar(), self.order(), unit);
                all.push(own.define("BATCHLA_PADDED", u8::from(self.pads(problem))));
            } else {
                all.extend(getri_specifications(getri, self.scalar(), unit_out));
            }
            if getri.parts > 0 {
                all.push(plain(kernels::OUTCOME, "fill_failed"));
            }
            if !getri.direct {
                all.push(plain(kernels::PERMUTATION, "lacpy"));
            }
        }
        if let Some(getrs) = &self.getrs {
            all.push(getrs_specification(getrs, self.scalar()));
            all.push(plain(kernels::OUTCOME, "fill_failed"));
        }
        if self.getrs.is_some() || (from_factors && operation == Operation::Determinant) {
            all.push(plain(kernels::OUTCOME, "spread"));
        }
        if problem.extras().determinant && !self.inverts_on_chip() {
            all.push(plain(kernels::DET, "determinant"));
        }
        if problem.extras().condition {
            all.push(plain(kernels::DET, "lange"));
        }
        all
    }

    /// Whether factors that an inversion by windows reads from the workspace are there what they are on chip: beyond the matrix, up to the last order of its class, the identity.
    fn pads(&self, problem: &Problem) -> bool {
        let order = self.order();
        let by_windows = self.getri.as_ref().is_some_and(|getri| getri.resident);
        let all = |lu: &ResidentPlan| !lu.in_registers && order_on_chip(order, lu.panel) == self.leading();
        let filled = order == self.leading() || self.resident.as_ref().is_some_and(all);
        by_windows && filled && problem.source() != SourceKind::Factors
    }
}

/// Whether neighbours in a column are neighbours in memory.
fn unit_rows(layout: &BatchLayout) -> bool {
    layout.strides().row == 1
}

fn specification(source: KernelSource, entry: &str, scalar: ScalarKind) -> Specification {
    let scalar = match scalar {
        ScalarKind::F32 => 0,
        ScalarKind::F64 => 1,
        ScalarKind::C32 => 2,
        ScalarKind::C64 => 3,
    };
    // Products are fused where the source says so, and nowhere else: the bits are the source's.
    Specification::new(source, entry).define("BATCHLA_SCALAR", scalar).option("--fmad=false")
}

fn resident_kernel(plan: &ResidentPlan) -> (KernelSource, &'static str) {
    match plan.entry() {
        "getrf_getri" if plan.by_thread() => (kernels::GETRF_GETRI_THREAD, "getrf_getri"),
        "getrf" if plan.by_thread() => (kernels::GETRF_THREAD, "getrf"),
        "getrf_getri" => (kernels::GETRF_GETRI, "getrf_getri"),
        "gesv" => (kernels::GESV, "gesv"),
        _ => (kernels::GETRF_RESIDENT, "getrf"),
    }
}

fn resident_specification(
    (source, entry): (KernelSource, &str),
    plan: &ResidentPlan,
    scalar: ScalarKind,
    order: usize,
    (unit_in, unit_out): (bool, bool),
    odd: bool,
) -> Specification {
    let own = specification(source, entry, scalar);
    let own = if let Some(columns) = plan.solves { own.define("BATCHLA_COLUMNS", columns) } else { own };
    own.define("BATCHLA_NB", plan.panel)
        .define("BATCHLA_THREADS", plan.threads)
        .define("BATCHLA_ROWS", plan.rows)
        .define("BATCHLA_WINDOW", plan.window)
        .define("BATCHLA_INVERTS", u8::from(plan.inverts))
        .define("BATCHLA_HELPERS", plan.helpers)
        .define("BATCHLA_TEAMS", plan.teams)
        .define("BATCHLA_BLOCKS", plan.blocks)
        .define("BATCHLA_TENSOR", u8::from(plan.tensor))
        .define("BATCHLA_ODD", u8::from(odd))
        .define("BATCHLA_ORDER", if plan.exact { plan.order_class(order) } else { 0 })
        .define("BATCHLA_EXACT", 0)
        .define("BATCHLA_UNIT_ROWS_IN", u8::from(unit_in))
        .define("BATCHLA_UNIT_ROWS_OUT", u8::from(unit_out))
}

fn getrf_specification(
    source: KernelSource,
    entry: &str,
    plan: &GetrfPlan,
    scalar: ScalarKind,
    (unit_in, unit_out): (bool, bool),
) -> Specification {
    let interchange = match plan.interchange {
        Interchange::Serial => 1,
        Interchange::Grouped => 2,
        Interchange::Delayed => 3,
    };
    specification(source, entry, scalar)
        .define("BATCHLA_NB", plan.panel)
        .define("BATCHLA_THREADS", plan.threads)
        .define("BATCHLA_ROWS", plan.rows)
        .define("BATCHLA_AHEAD", plan.ahead)
        .define("BATCHLA_STAGES", plan.stages)
        .define("BATCHLA_TENSOR", u8::from(plan.tensor))
        .define("BATCHLA_TEAMS", plan.teams)
        .define("BATCHLA_BLOCKS", plan.blocks)
        .define("BATCHLA_SEARCH_TREE", u8::from(plan.search == Search::Tree))
        .define("BATCHLA_RIGHT_LOOKING", u8::from(plan.looking == Looking::Right))
        .define("BATCHLA_INTERCHANGE", interchange)
        .define("BATCHLA_UNIT_ROWS_IN", u8::from(unit_in))
        .define("BATCHLA_UNIT_ROWS_OUT", u8::from(unit_out))
}

fn trailing_specification(plan: &Strips, scalar: ScalarKind, (_, unit_rows): (bool, bool)) -> Specification {
    specification(kernels::GETRF_TRAILING, "getrf_trailing", scalar)
        .define("BATCHLA_NB", TRIANGLE)
        .define("BATCHLA_THREADS", WARP)
        .define("BATCHLA_ROWS", plan.depth().div_ceil(WARP))
        .define("BATCHLA_DOWN", plan.rows)
        .define("BATCHLA_AHEAD", plan.ahead)
        .define("BATCHLA_WINDOW", plan.depth())
        .define("BATCHLA_TOGETHER", plan.together)
        .define("BATCHLA_COLUMNS", plan.tile)
        .define("BATCHLA_INVERTS", 0)
        .define("BATCHLA_HELPERS", plan.warps - 1)
        .define("BATCHLA_TEAMS", 1)
        .define("BATCHLA_BLOCKS", plan.blocks)
        .define("BATCHLA_TENSOR", u8::from(plan.tensor))
        .define("BATCHLA_ODD", 0)
        .define("BATCHLA_ORDER", 0)
        .define("BATCHLA_EXACT", 0)
        .define("BATCHLA_PADDED", 0)
        .define("BATCHLA_UNIT_ROWS_IN", u8::from(unit_rows))
        .define("BATCHLA_UNIT_ROWS_OUT", u8::from(unit_rows))
}

fn getri_specifications(plan: &GetriPlan, scalar: ScalarKind, unit_out: bool) -> [Specification; 2] {
    ["trtri", "getri"].map(|entry| {
        specification(kernels::GETRI, entry, scalar)
            .define("BATCHLA_NB", plan.block)
            .define("BATCHLA_THREADS", plan.thread_class())
            .define("BATCHLA_ROWS", plan.rows)
            .define("BATCHLA_BLOCKS", plan.blocks)
            .define("BATCHLA_TIMELY", u8::from(plan.correction == Correction::Timely))
            .define("BATCHLA_UNIT_ROWS_OUT", u8::from(unit_out))
    })
}

fn getri_resident_specification(
    plan: &GetriPlan,
    scalar: ScalarKind,
    order: usize,
    (unit_in, unit_out): (bool, bool),
) -> Specification {
    specification(kernels::GETRI_RESIDENT, "getri_resident", scalar)
        .define("BATCHLA_NB", plan.block)
        .define("BATCHLA_THREADS", WARP)
        .define("BATCHLA_ROWS", order.div_ceil(WARP).max(1))
        .define("BATCHLA_WINDOW", plan.block)
        .define("BATCHLA_INVERTS", 0)
        .define("BATCHLA_HELPERS", plan.threads / WARP - 1)
        .define("BATCHLA_TEAMS", 1)
        .define("BATCHLA_BLOCKS", plan.blocks)
        .define("BATCHLA_TENSOR", u8::from(plan.tensor))
        .define("BATCHLA_ODD", 0)
        .define("BATCHLA_ORDER", plan.class)
        .define("BATCHLA_EXACT", if plan.exact { order } else { 0 })
        .define("BATCHLA_PART", u8::from(plan.parts > 0))
        .define("BATCHLA_EARLY", plan.copies.early)
        .define("BATCHLA_LATE", plan.copies.late)
        .define("BATCHLA_UNIT_ROWS_IN", u8::from(unit_in))
        .define("BATCHLA_UNIT_ROWS_OUT", u8::from(unit_out))
}

fn getrs_specification(plan: &GetrsPlan, scalar: ScalarKind) -> Specification {
    if plan.panel == 0 {
        return specification(kernels::GETRS, "getrs", scalar).define("BATCHLA_COLUMNS", plan.columns);
    }
    specification(kernels::GETRS_RESIDENT, "getrs_resident", scalar)
        .define("BATCHLA_NB", plan.panel)
        .define("BATCHLA_THREADS", WARP)
        .define("BATCHLA_ROWS", 1)
        .define("BATCHLA_WINDOW", plan.columns)
        .define("BATCHLA_COLUMNS", plan.share)
        .define("BATCHLA_BAND", plan.band)
        .define("BATCHLA_INVERTS", 0)
        .define("BATCHLA_HELPERS", plan.threads / WARP - 1)
        .define("BATCHLA_TEAMS", 1)
        .define("BATCHLA_BLOCKS", plan.blocks)
        .define("BATCHLA_TENSOR", u8::from(plan.tensor))
        .define("BATCHLA_ODD", 0)
        .define("BATCHLA_ORDER", 0)
        .define("BATCHLA_EXACT", 0)
        .define("BATCHLA_PADDED", 0)
        .define("BATCHLA_UNIT_ROWS_IN", 0)
        .define("BATCHLA_UNIT_ROWS_OUT", 0)
}
