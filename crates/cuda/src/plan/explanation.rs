//! Why a plan and no other, and what it takes: launches, threads, shared memory, occupancy.

use batchla_core::{Chosen, Error, Explanation, Numbers, Occupancy, Operation, Options, Plan, Problem};
use batchla_core::{Rejection, ScalarKind, SourceKind, Step};

use super::resident::MOST_ORDER;
use super::resident_receipts::RECEIPT;
use super::{
    BLOCKED, Correction, CudaPlan, FAMILIES, Family, GetrfPlan, Interchange, LEFT_LOOKING, Looking, RESIDENT, Request,
    ResidentPlan, Resources, SPREAD, Search, Strips, WARP,
};
use super::{blocked, spread, streamed_table};
use crate::limits::Limits;
use crate::tuned::Tuned;
use crate::workspace::Parts;

impl CudaPlan {
    /// The plan that [`CudaPlan::choose_tuned`] gives, what a run of it launches, and why it and no other. Needs no GPU.
    ///
    /// # Errors
    /// As of [`CudaPlan::choose`].
    pub fn explain(problem: &Problem, options: &Options, limits: &Limits, tuned: &Tuned) -> Result<Explanation, Error> {
        let (plan, chosen) = Self::choose_tuned(problem, options, limits, tuned)?;
        let parts = Parts::of(problem, &plan, limits)?;
        let mut explanation = Explanation::new(problem, &plan, limits.to_string(), chosen);
        explanation.numbers = plan.numbers(problem, tuned, &explanation.chosen);
        // One matrix that serves all is factored once, and all right-hand sides go together.
        let chunk = parts.chunk.min(problem.batch());
        explanation.part = if problem.serves_all(problem.a()) { problem.batch() } else { chunk };
        explanation.steps = plan.steps(problem, limits, chunk);
        explanation.workspace_bytes = parts.bytes;
        let others = FAMILIES.iter().filter(|family| family.name != plan.name());
        explanation.rejected = others.map(|family| family.rejection(problem, limits, &explanation.chosen)).collect();
        Ok(explanation)
    }

    /// The rows that its numbers come from.
    fn numbers(&self, problem: &Problem, tuned: &Tuned, chosen: &Chosen) -> Vec<Numbers> {
        let (scalar, order) = (self.scalar, self.order);
        let measured = matches!(chosen, Chosen::ByTuning(_)).then(|| tuned.numbers(problem)).flatten();
        let resident = self.resident.as_ref().and_then(|plan| plan.row(problem));
        let getrf = self.getrf.as_ref().filter(|getrf| getrf.rows > 0).and_then(|getrf| match &getrf.strips {
            Some(strips) => Some(blocked::row(strips, scalar, order)),
            None if getrf.spread => Some(spread::row(scalar, order)),
            None => streamed_table::row(scalar, order),
        });
        let getri = self.getri.as_ref().map(|getri| getri.row(scalar, order));
        let getrs = self.getrs.as_ref().filter(|getrs| getrs.panel > 0).map(|getrs| getrs.row(scalar, order));
        measured.into_iter().chain(resident).chain(getrf).chain(getri).chain(getrs).collect()
    }

    /// The launches of a run, for each part of `count` matrices.
    fn steps(&self, problem: &Problem, limits: &Limits, count: usize) -> Vec<Step> {
        let (scalar, order, operation) = (self.scalar, self.order, problem.operation());
        let from_factors = problem.source() == SourceKind::Factors;
        let plain = |name: &'static str, threads: usize, matrices: usize| Step {
            name: name.into(),
            launches: 1,
            threads,
            matrices,
            shared_bytes: 0,
            occupancy: None,
        };
        let permutation = Step { shared_bytes: order * 4, ..plain("permutation", WARP, 1) };
        let spread = plain("spread", 256, 256);
        let mut steps = Vec::new();
        let condition = problem.extras().condition;
        steps.extend(condition.then(|| plain("lange", 128, 4)));
        if from_factors && matches!(operation, Operation::Invert | Operation::Solve) {
            steps.push(permutation.clone());
        }
        if let Some(plan) = &self.resident {
            let shared_bytes = plan.shared_bytes(scalar, order);
            let step = Step { shared_bytes, ..plain(plan.entry(), plan.crew() * plan.teams, plan.teams) };
            steps.push(step.filling(plan.crew() * plan.teams, plan.blocks, limits));
        }
        if let Some(plan) = &self.getrf {
            let shared_bytes = plan.shared_bytes(scalar, order);
            let step = Step { shared_bytes, ..plain("getrf", plan.threads * plan.teams, plan.teams) };
            let step = step.filling(plan.threads * plan.teams, plan.blocks, limits);
            match (&plan.steps, &plan.strips) {
                (_, Some(by)) => steps.extend(by_strips(plan, by, &step, scalar, order, limits)),
                _ if plan.spread => {
                    // Of blocks that work on one matrix, the first launch has one, each later one fewer.
                    let panels = order.div_ceil(plan.panel).max(1);
                    steps.push(Step { name: "getrf_spread".into(), launches: panels, ..step.clone() });
                    steps.push(Step { name: "getrf_settle".into(), ..step });
                }
                (None, _) => steps.push(step),
                (Some(by), _) => {
                    let begins = (0..order.max(1)).step_by(by.width);
                    let panels = begins.clone().count();
                    // Behind the last panel nothing is left to update.
                    let updates = begins.filter(|begin| begin + by.width < order).count();
                    let each = if by.streamed { count } else { 1 };
                    let update = plain("getrf_update", by.update.threads, 1);
                    let update = Step { shared_bytes: by.update.shared_bytes(scalar, order), ..update };
                    let laswp = Step { shared_bytes: order * 4, ..plain("laswp", plan.threads, 1) };
                    steps.push(Step { name: "getrf_panel".into(), launches: panels, ..step });
                    steps.push(Step { launches: panels, ..laswp });
                    if updates > 0 {
                        let update = Step { launches: updates * each, ..update };
                        steps.push(update.filling(by.update.threads, by.update.blocks, limits));
                    }
                    steps.extend((operation != Operation::Factorize).then_some(permutation));
                }
            }
        }
        if let Some(plan) = &self.getrs {
            let step = Step { shared_bytes: plan.shared_bytes, ..plain(plan.entry(), plan.threads, 1) };
            steps.extend([
                spread.clone(),
                if plan.blocks > 0 { step.filling(plan.threads, plan.blocks, limits) } else { step },
                plain("fill_failed", 256, 1),
            ]);
        }
        if operation == Operation::Determinant && from_factors {
            steps.push(spread);
        }
        if problem.extras().determinant && !self.inverts_on_chip() {
            steps.push(plain("determinant", 128, 4));
        }
        if let Some(plan) = &self.getri {
            let launches = if plan.resources == Resources::Static { 1 } else { plan.block_columns(order).max(1) };
            let shared_bytes = plan.shared_bytes(scalar, order, order);
            for &name in if plan.resident { &["getri_resident"][..] } else { &["trtri", "getri"] } {
                let step = Step { launches, shared_bytes, ..plain(name, plan.threads, 1) };
                steps.push(step.filling(plan.thread_class(), plan.blocks, limits));
            }
            steps.extend((plan.parts > 0).then(|| plain("fill_failed", 256, 1)));
            steps.extend((!plan.direct).then(|| plain("lacpy", 256, 1)));
        }
        steps.extend(condition.then(|| plain("lange", 128, 4)));
        steps
    }
}

/// The launches of an LU strip by strip, of which `strip` is one.
fn by_strips(
    plan: &GetrfPlan,
    by: &Strips,
    strip: &Step,
    scalar: ScalarKind,
    order: usize,
    limits: &Limits,
) -> Vec<Step> {
    let (count, settling) = (by.columns(order).div_ceil(by.width).max(1), plan.settling(scalar, order));
    let updates = if by.finish.is_some() { count } else { count - 1 };
    let trailing = Step { name: "getrf_trailing".into(), launches: updates, threads: by.threads(), ..strip.clone() };
    let trailing = Step { shared_bytes: by.shared_bytes(scalar, order), ..trailing };
    let settle = Step { name: "getrf_settle".into(), launches: 1, ..strip.clone() };
    let settle = Step { shared_bytes: settling.shared_bytes(scalar, order), ..settle };
    let mut steps = vec![Step { name: "getrf_strip".into(), launches: count, ..strip.clone() }];
    steps.extend((updates > 0).then(|| trailing.filling(by.threads(), by.blocks, limits)));
    steps.extend(by.finish.as_ref().map(|(left, plan)| {
        let finish = Step { name: "getrf_finish".into(), launches: 1, threads: plan.crew(), ..strip.clone() };
        Step { shared_bytes: plan.shared_bytes(scalar, *left), ..finish }.filling(plan.crew(), plan.blocks, limits)
    }));
    steps.push(settle.filling(plan.threads, plan.blocks, limits));
    steps
}

/// A step with the blocks of it that fit a multiprocessor.
trait Filling {
    fn filling(self, compiled_threads: usize, blocks: usize, limits: &Limits) -> Self;
}

impl Filling for Step {
    /// `blocks`: for how many of `compiled_threads` threads the compiler leaves room in the registers.
    fn filling(self, compiled_threads: usize, blocks: usize, limits: &Limits) -> Self {
        let (threads, most) =
            (self.threads.next_multiple_of(WARP).max(WARP), limits.threads_per_multiprocessor as usize);
        let (blocks, bound) = [
            (blocks * compiled_threads.max(1) / threads.min(compiled_threads.max(1)), "registers"),
            (limits.blocks_by_shared_bytes(self.shared_bytes), "shared memory"),
            (most / threads, "threads"),
            (limits.blocks_per_multiprocessor as usize, "blocks"),
        ]
        .into_iter()
        .min_by_key(|(blocks, _)| *blocks)
        .unwrap_or((0, "nothing"));
        let occupancy = Occupancy { blocks, warps: blocks * threads / WARP, most_warps: most / WARP, bound };
        Self { occupancy: Some(occupancy), ..self }
    }
}

impl Family {
    /// Why this family was not chosen.
    fn rejection(&self, problem: &Problem, limits: &Limits, chosen: &Chosen) -> Rejection {
        let last = ResidentPlan::best_up_to(problem);
        let resident = ResidentPlan::choose(&Request::default(), problem, limits);
        let row = resident.as_ref().ok().and_then(|plan| plan.as_ref()?.row(problem));
        let receipt = row.map_or_else(|| RECEIPT.clone(), |row| row.receipt);
        let measured = |what: String| format!("{what} ({receipt})");
        let runs = !self.resident || matches!(resident, Ok(Some(_)));
        let reason = match resident {
            _ if !self.is_planners() => self.compared(problem, limits),
            _ if self.spread && !spread::is_best(problem, limits) => spread::reason(problem, limits),
            _ if self.strips && !spread::is_best(problem, limits) && !blocked::is_best(problem, limits) => {
                blocked::reason(problem)
            }
            _ if runs && matches!(chosen, Chosen::ByTuning(_)) => "slower here, as the tuner measured it".to_owned(),
            _ if self.name == CudaPlan::own(problem, limits).name => {
                "the planner's own choice, but another was asked for by name".to_owned()
            }
            _ if spread::is_best(problem, limits) => spread::advantage(),
            _ if runs && blocked::is_best(problem, limits) => blocked::advantage(problem.scalar()),
            _ if !self.resident => {
                measured(format!("slower up to order {last}, where matrices, or windows of them, are on chip"))
            }
            Ok(None) if problem.source() == SourceKind::Factors => {
                "what starts from factors does not stay on chip".to_owned()
            }
            Ok(None) if problem.order() > MOST_ORDER => {
                format!("one warp holds panels of at most {MOST_ORDER} rows")
            }
            Ok(None) => format!(
                "a matrix takes {} bytes, and the narrowest window of it and what goes with it more than there is room for: {} has {} bytes of shared \
                 memory a block",
                problem.order() * problem.order() * problem.scalar().bytes(),
                limits.name,
                limits.shared_bytes_per_block
            ),
            Ok(Some(_)) => measured(format!("slower beyond order {last}")),
            Err(reason) => reason,
        };
        Rejection { plan: self.name.to_owned(), reason }
    }

    /// Whether the planner chooses it by itself.
    fn is_planners(&self) -> bool {
        [&LEFT_LOOKING, &RESIDENT, &SPREAD, &BLOCKED].iter().any(|own| own.name == self.name)
    }

    /// How a family that is there to be compared with differs.
    fn compared(&self, problem: &Problem, limits: &Limits) -> String {
        let differences = [
            (self.steps.is_some(), "takes a launch for every panel and its update"),
            (self.shared_panel, "keeps panels in shared memory"),
            (self.search == Search::Tree, "searches pivots by a tree"),
            (self.looking == Looking::Right, "updates from a panel to the right"),
            (self.interchange == Interchange::Serial, "exchanges rows one after the other"),
            (self.interchange == Interchange::Grouped, "exchanges rows on both sides at once"),
            (self.correction == Correction::Timely, "corrects each inverse column as soon as one is solved"),
            (self.resources == Some(Resources::Static), "launches the inversion once, as left-looking does"),
            (self.resources == Some(Resources::Dynamic), "launches the inversion once a block column"),
        ];
        let all: Vec<_> = differences.iter().filter(|(differs, _)| *differs).map(|(_, how)| *how).collect();
        let room = CudaPlan::named(problem, self.name, limits).err().map(|error| format!("; {error}"));
        format!("there to be compared with: {}{}", all.join(", "), room.unwrap_or_default())
    }
}
