//! Whether the plans in use are the fastest: at random orders all candidates are timed again, alternately.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};
use std::ops::RangeInclusive;

use batchla_core::Error;

use super::times::{Candidates, Clock};
use crate::sample::Sample;

/// The plan in use beside the fastest, at one order.
#[derive(Clone, Debug, PartialEq)]
pub struct Proved {
    /// The order.
    pub order: usize,
    /// The plan in use.
    pub plan: String,
    /// Its milliseconds.
    pub ms: f64,
    /// The fastest of all.
    pub best: String,
    /// Its milliseconds.
    pub best_ms: f64,
}

impl Proved {
    /// How many times as long as the fastest the plan in use takes.
    pub fn ratio(&self) -> f64 {
        self.ms / self.best_ms
    }
}

/// Rounds after the first, in which only those that were not far behind take part.
const ROUNDS: usize = 5;
/// What is far behind.
const BEHIND: f64 = 1.3;

/// So many different random orders, ascending.
pub(super) fn draw(orders: &RangeInclusive<usize>, count: usize) -> Vec<usize> {
    let random = RandomState::new();
    let mut all: Vec<(u64, usize)> = orders.clone().map(|order| (random.hash_one(order), order)).collect();
    all.sort_unstable();
    let mut drawn: Vec<usize> = all.into_iter().take(count).map(|(_, order)| order).collect();
    drawn.sort_unstable();
    drawn
}

/// Times all candidates of an order, and what is around the plan in use; none where that gives no right result.
pub(super) fn prove(
    order: usize,
    used: &str,
    candidates: &dyn Candidates,
    clock: &mut dyn Clock,
) -> Result<Option<Proved>, Error> {
    let mut names = vec![used.to_owned(), candidates.own(order)?];
    names.extend(candidates.coarse().into_iter().chain(candidates.around(used)));
    let mut plans: BTreeMap<String, String> = BTreeMap::new();
    for name in names {
        if let Some(distinct) = candidates.distinct(order, &name) {
            plans.entry(distinct).or_insert(name);
        }
    }
    let mut plans: Vec<String> = plans.into_values().collect();
    clock.prepare(order, &plans.iter().map(String::as_str).collect::<Vec<_>>());
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    let used = candidates.distinct(order, used);
    let is_used = |plan: &str| candidates.distinct(order, plan) == used;
    for round in 0..=ROUNDS {
        for plan in &plans {
            if let Ok(ms) = clock.time(order, plan)? {
                times.entry(plan.clone()).or_default().push(ms);
            }
        }
        if round == 0 {
            let best = times.values().flatten().copied().fold(f64::INFINITY, f64::min);
            let near = |plan: &String| times.get(plan).is_some_and(|all| all[0] <= BEHIND * best);
            plans.retain(|plan| near(plan) || is_used(plan) && times.contains_key(plan));
        }
    }
    let median = |plan: &String| Some((plan.clone(), Sample::of(times.get(plan)?)?.median));
    let timed: Vec<(String, f64)> = plans.iter().filter_map(median).collect();
    let best = timed.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let own = timed.iter().find(|(plan, _)| is_used(plan));
    Ok(best.zip(own).map(|((best, best_ms), (plan, ms))| Proved {
        order,
        plan: plan.clone(),
        ms: *ms,
        best: best.clone(),
        best_ms: *best_ms,
    }))
}
