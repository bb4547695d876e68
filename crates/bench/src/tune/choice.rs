//! From times at some orders to a plan for each: smoothed over the order, with a price on every change of plan.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use batchla_cuda::TunedRow;

use super::search::Sampled;
use crate::sample::Sample;

/// What was timed at each order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples {
    orders: BTreeMap<usize, Timed>,
}

#[derive(Clone, Debug)]
struct Timed {
    own_ms: f64,
    plans: BTreeMap<String, f64>,
    /// Logarithms of the slowest by the fastest round of a plan.
    spreads: Vec<f64>,
}

/// The plans, and what they had to beat.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) rows: Vec<TunedRow>,
    pub(crate) margin: f64,
    pub(crate) sampled: Vec<Sampled>,
}

/// Neighbours on each side that smooth a time.
const NEIGHBOURS: usize = 2;
/// The largest ratio of orders over which they do.
const REACH: f64 = 1.2;
/// The price of a change of plan: a plan for one order alone must be faster by twice that.
const PRICE: f64 = 0.04;
/// A plan must be faster than the planner's own by at least so much, however small the noise.
const LEAST_MARGIN: f64 = 0.01;

impl Samples {
    pub(crate) fn push(&mut self, order: usize, own_ms: f64, plans: BTreeMap<String, f64>, spreads: Vec<f64>) {
        self.orders.insert(order, Timed { own_ms, plans, spreads });
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.orders.is_empty()
    }

    /// Half of what rounds usually differ by.
    fn noise(&self) -> f64 {
        let spreads: Vec<f64> = self.orders.values().flat_map(|timed| timed.spreads.iter().copied()).collect();
        Sample::of(&spreads).map_or(0.0, |spread| spread.median / 2.0)
    }

    /// The time of a plan beside the planner's own, as a logarithm, at each sampled order; each the median of its neighbourhood, which takes
    /// single times that are off away and leaves steps where they are.
    fn smoothed(&self, plan: &str) -> BTreeMap<usize, f64> {
        let beside = |(&order, timed): (&usize, &Timed)| Some((order, (timed.plans.get(plan)? / timed.own_ms).ln()));
        let raw: Vec<(usize, f64)> = self.orders.iter().filter_map(beside).collect();
        let median = |i: usize| {
            let order = raw[i].0 as f64;
            let (from, to) = (i.saturating_sub(NEIGHBOURS), (i + NEIGHBOURS + 1).min(raw.len()));
            let near = raw[from..to].iter().filter(|(n, _)| (*n as f64 / order).max(order / *n as f64) <= REACH);
            let near: Vec<f64> = near.map(|(_, value)| *value).collect();
            Sample::of(&near).map_or(raw[i].1, |sample| sample.median)
        };
        (0..raw.len()).map(|i| (raw[i].0, median(i))).collect()
    }
}

/// The cheapest way through the orders: at each the smoothed time beside the planner's own, which costs nothing; all others a margin more; and a
/// price for every change.
pub(crate) fn choose(
    samples: &Samples,
    orders: &RangeInclusive<usize>,
    feasible: &dyn Fn(usize, &str) -> bool,
) -> Choice {
    let margin = (2.0 * samples.noise()).max(LEAST_MARGIN);
    let names: BTreeSet<&String> = samples.orders.values().flat_map(|timed| timed.plans.keys()).collect();
    // The planner's own comes first, and wins where others are no faster.
    let curves: Vec<(&str, BTreeMap<usize, f64>)> =
        names.into_iter().map(|name| (name.as_str(), samples.smoothed(name))).collect();
    let all: Vec<usize> = orders.clone().collect();
    let cost = |order: usize, plan: usize| match plan.checked_sub(1) {
        None => Some(0.0),
        Some(i) => {
            let (name, curve) = &curves[i];
            feasible(order, name).then(|| at(samples, curve, order)).flatten().map(|cost| cost + margin)
        }
    };
    let mut ways: Vec<Vec<(f64, usize)>> = Vec::with_capacity(all.len());
    for &order in &all {
        let before = ways.last();
        let cheapest = before.map(|before| least(before));
        let way = |plan: usize| {
            let here = cost(order, plan).unwrap_or(f64::INFINITY);
            let Some((before, cheapest)) = before.zip(cheapest) else { return (here, plan) };
            let (stay, change) = (before[plan].0, before[cheapest].0 + PRICE);
            if stay <= change { (here + stay, plan) } else { (here + change, cheapest) }
        };
        ways.push((0..=curves.len()).map(way).collect());
    }
    let mut plan = ways.last().map_or(0, |last| least(last));
    let mut chosen = vec![0; all.len()];
    for (i, way) in ways.iter().enumerate().rev() {
        chosen[i] = plan;
        plan = way[plan].1;
    }
    let mut rows: Vec<(TunedRow, f64)> = Vec::new();
    for (i, (&order, &plan)) in all.iter().zip(&chosen).enumerate() {
        let Some((name, curve)) = plan.checked_sub(1).map(|i| &curves[i]) else { continue };
        let gain = -at(samples, curve, order).unwrap_or(0.0);
        match rows.last_mut() {
            Some((row, gains)) if i > 0 && chosen[i - 1] == plan => {
                row.last = order;
                *gains += gain;
            }
            _ => {
                let plan = (*name).to_owned();
                rows.push((TunedRow { first: order, last: order, plan, speedup: 1.0, earlier: None }, gain));
            }
        }
    }
    let rows = rows.into_iter().map(|(row, gains)| {
        let speedup = (gains / (row.last - row.first + 1) as f64).exp();
        TunedRow { speedup, ..row }
    });
    let plan_of = |order: usize| chosen[order - orders.start()].checked_sub(1).map(|i| curves[i].0);
    let sampled = samples.orders.iter().map(|(&order, timed)| {
        let plan = plan_of(order);
        let ms = plan.and_then(|plan| timed.plans.get(plan)).copied().unwrap_or(timed.own_ms);
        let best_ms = timed.plans.values().copied().fold(timed.own_ms, f64::min);
        Sampled { order, plan: plan.unwrap_or_default().to_owned(), ms, own_ms: timed.own_ms, best_ms }
    });
    Choice { rows: rows.collect(), margin, sampled: sampled.collect() }
}

fn least(ways: &[(f64, usize)]) -> usize {
    // The first of the cheapest.
    (0..ways.len()).rev().min_by(|&a, &b| ways[a].0.total_cmp(&ways[b].0).then(a.cmp(&b))).unwrap_or(0)
}

/// A curve between the sampled orders beside an order; none where it is not known on either side.
fn at(samples: &Samples, curve: &BTreeMap<usize, f64>, order: usize) -> Option<f64> {
    let below = samples.orders.range(..=order).next_back().map(|(n, _)| *n);
    let above = samples.orders.range(order..).next().map(|(n, _)| *n);
    let value = |order: Option<usize>| order.and_then(|order| Some((order, *curve.get(&order)?)));
    match (value(below), value(above)) {
        (Some((a, x)), Some((b, y))) if a < b => {
            let share = (order as f64 / a as f64).ln() / (b as f64 / a as f64).ln();
            Some(x + share * (y - x))
        }
        (one, other) => one.or(other).map(|(_, value)| value),
    }
}
