//! Why a plan and no other, and what it takes.

use batchla_core::{
    Chosen, Error, Explanation, Numbers, Operation, Options, Plan, Problem, Rejection, SourceKind, Step,
};

use crate::engine::STREAMS_RECEIPT;
use crate::plan::{
    BLOCKED_RECEIPT, CpuPlan, INTERLEAVED_RECEIPT, PAIRS_RECEIPT, are_fastest_in_pairs, blocked_up_to,
    interleaved_up_to,
};
use crate::simd::InstructionSet;
use crate::vector::fused;

impl CpuPlan {
    /// The plan that [`CpuPlan::choose_on`] gives, and why it and no other.
    pub(crate) fn explain_on(
        instruction_set: InstructionSet,
        threads: usize,
        problem: &Problem,
        options: &Options,
    ) -> Result<Explanation, Error> {
        let plan = Self::choose_on(instruction_set, threads, problem, options)?;
        let own = Self::choose_on(instruction_set, threads, problem, &Options::default())?;
        let chosen = if options.plan.is_some() { Chosen::ByName } else { Chosen::ByPlanner };
        let mut explanation = Explanation::new(problem, &plan, String::new(), chosen);
        explanation.steps = plan.steps(problem, threads);
        explanation.numbers = [
            (interleaved_up_to(instruction_set, problem), "interleaved", INTERLEAVED_RECEIPT),
            (blocked_up_to(problem.scalar()), "blocked", BLOCKED_RECEIPT),
        ]
        .into_iter()
        .map(|(last, name, receipt)| Numbers {
            row: format!("{name}, {} {}, orders up to {last}", problem.operation().name(), problem.scalar()),
            receipt,
        })
        .chain(are_fastest_in_pairs(instruction_set, problem).then(|| Numbers {
            row: format!(
                "blocked, pairs, {} {}, order {}",
                problem.operation().name(),
                problem.scalar(),
                problem.order()
            ),
            receipt: PAIRS_RECEIPT,
        }))
        .chain(plan.streams(problem).then(|| Numbers {
            row: format!(
                "blocked, {} {}, results of more than 8 MiB apart from the input: past the caches",
                problem.operation().name(),
                problem.scalar()
            ),
            receipt: STREAMS_RECEIPT,
        }))
        .collect();
        let others = Self::NAMES.into_iter().filter(|name| *name != plan.name());
        explanation.rejected = others
            .map(|name| Rejection {
                plan: name.to_owned(),
                reason: why_not(name, &own, problem, (instruction_set, threads)),
            })
            .collect();
        Ok(explanation)
    }

    /// The routines of a run, each by every thread for its share of the batch.
    fn steps(&self, problem: &Problem, threads: usize) -> Vec<Step> {
        let factored = (problem.source() != SourceKind::Factors).then_some("getrf");
        let then = match problem.operation() {
            Operation::Invert => Some("getri"),
            Operation::Solve => Some("getrs"),
            _ => None,
        };
        let determinant = problem.extras().determinant.then_some("determinant");
        let condition = problem.extras().condition.then_some("lange");
        let names = [factored, determinant, then, condition].into_iter().flatten();
        let matrices = self.lanes();
        names
            .map(|name| Step { name: name.into(), launches: 1, threads, matrices, shared_bytes: 0, occupancy: None })
            .collect()
    }
}

/// Why a plan is not the planner's own choice, which is `own`; or that it is.
fn why_not(name: &str, own: &CpuPlan, problem: &Problem, (set, threads): (InstructionSet, usize)) -> String {
    let order = problem.order();
    let (interleaved, blocked) = (interleaved_up_to(set, problem), blocked_up_to(problem.scalar()));
    match name {
        _ if name == own.name() => "the planner's own choice, but another was asked for by name".to_owned(),
        "interleaved" | "blocked" if !fused() => {
            "slower than faer where the processor has no fused multiply-add".to_owned()
        }
        "interleaved" if are_fastest_in_pairs(set, problem) => {
            format!("slower than two matrices of order {order} side by side ({PAIRS_RECEIPT})")
        }
        "interleaved" if order > interleaved => format!("slower beyond order {interleaved} ({INTERLEAVED_RECEIPT})"),
        "interleaved" => {
            format!("{} matrices of order {order} leave too many lanes empty on {threads} threads", problem.batch())
        }
        "blocked" if order > blocked => format!("slower beyond order {blocked} ({BLOCKED_RECEIPT})"),
        "blocked" => format!("slower up to order {interleaved} where matrices fill the lanes ({INTERLEAVED_RECEIPT})"),
        _ => format!("slower up to order {blocked} ({BLOCKED_RECEIPT})"),
    }
}
