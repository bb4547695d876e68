//! What is timed, in which order: coarse candidates at a few orders, what is around the best, and the survivors over all orders.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use batchla_core::{Error, ErrorKind};
use batchla_cuda::TunedRow;

use super::choice::{Samples, choose};
use super::journal::Journal;
use super::orders::{anchors, far_first, sequence};
use super::times::{Candidates, Clock, SLACK, Times};

/// What was found.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Ranges of orders with their plans, where these are faster than the planner's own.
    pub(crate) rows: Vec<TunedRow>,
    /// By what factor, as a logarithm, a plan had to be faster.
    pub(crate) margin: f64,
    /// Each sampled order: what was chosen, its milliseconds, and those of the planner's own.
    pub(crate) sampled: Vec<Sampled>,
    /// Seconds of measuring.
    pub(crate) seconds: f64,
}

/// An order that was looked at closely.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sampled {
    pub(crate) order: usize,
    pub(crate) plan: String,
    pub(crate) ms: f64,
    pub(crate) own_ms: f64,
    /// The fastest of all that was timed there.
    pub(crate) best_ms: f64,
}

/// Orders of the first stage on each side of another whose survivors are timed there.
const SIDES: usize = 2;
/// What takes so many times the best is not tried twice.
const HOPELESS: f64 = 2.0;
/// The least order at which the best is left for a better neighbour.
const LEAST_CLIMBED: usize = 4;
/// How often the best is left for a better neighbour.
const CLIMBS: usize = 6;
/// By how much a neighbour must be better.
const STEP: f64 = 0.99;
/// Alternating rounds of the second stage; the first stage's is round 0.
const ROUNDS: usize = 3;
/// Where rounds do not agree there are more, up to so many.
const MOST_ROUNDS: usize = 7;
/// Rounds agree whose slowest takes no more than so many times the fastest.
const AGREE: f64 = 1.05;
/// The share of the time after which no more is tried coarsely.
const COARSE: f64 = 0.35;
/// The share after which nothing around the best is tried.
const FINE: f64 = 0.6;

pub(super) fn nothing_right() -> Error {
    Error::new(ErrorKind::Device, "tune", "no plan gave a right result at any order")
        .advise("run `batchla devices`, which tries the GPU")
}

/// A search under way.
pub(crate) struct Search<'a> {
    orders: RangeInclusive<usize>,
    limit: f64,
    times: Times<'a>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(
        orders: RangeInclusive<usize>,
        limit: f64,
        candidates: &'a dyn Candidates,
        clock: &'a mut dyn Clock,
        journal: &'a mut Journal,
        progress: &'a mut dyn FnMut(&str),
    ) -> Self {
        Self { orders, limit, times: Times::new(candidates, clock, journal, progress) }
    }

    /// Both stages, and the choice.
    pub(crate) fn run(mut self) -> Result<Found, Error> {
        let anchors = anchors(&self.orders);
        let mut survivors = BTreeMap::new();
        // Far apart first, so that a lack of time costs detail, not reach.
        for &order in &far_first(&anchors) {
            if self.times.used >= COARSE * self.limit && !survivors.is_empty() {
                break;
            }
            let mut names = self.times.candidates.coarse();
            names.push(self.times.candidates.own(order)?);
            survivors.insert(order, self.try_out(order, &names)?);
            self.tell("coarse", order, &names, 0, self.limit);
        }
        for order in far_first(&anchors) {
            // Below, the coarse numbers are all that matters.
            if let Some(best) = survivors.get_mut(&order).filter(|_| order >= LEAST_CLIMBED) {
                self.climb(order, best)?;
            }
        }
        let mut samples = Samples::default();
        let all = sequence(&self.orders, &anchors);
        for (i, &order) in all.iter().enumerate() {
            if self.times.used >= self.limit && !samples.is_empty() {
                break;
            }
            let (below, above) = (survivors.range(..=order).rev(), survivors.range(order + 1..));
            let near = below.take(SIDES).chain(above.take(SIDES));
            let mut names: Vec<String> = vec![self.times.candidates.own(order)?];
            names.extend(near.flat_map(|(_, best)| best.iter().cloned()));
            let timed = names.clone();
            for round in 1..=MOST_ROUNDS {
                self.times.round(order, &names, round)?;
                let fastest = self.times.fastest(order, &timed).unwrap_or(f64::INFINITY);
                names.retain(|name| self.is_open(order, name, round, fastest));
            }
            self.sample(order, &mut samples, &survivors)?;
            let each = self.times.used / (i + 1) as f64;
            self.tell("over n", order, &timed, 1, self.times.used + each * (all.len() - i - 1) as f64);
        }
        if samples.is_empty() {
            return Err(nothing_right());
        }
        let feasible = |order: usize, plan: &str| self.times.candidates.distinct(order, plan).is_some();
        let choice = choose(&samples, &self.orders, &feasible);
        Ok(Found { rows: choice.rows, margin: choice.margin, sampled: choice.sampled, seconds: self.times.used })
    }

    /// Goes from the best to better neighbours while there are any.
    fn climb(&mut self, order: usize, best: &mut Vec<String>) -> Result<(), Error> {
        let mut from = Vec::new();
        for _ in 0..CLIMBS {
            let Some(top) = best.first().cloned() else { return Ok(()) };
            if self.times.used >= FINE * self.limit || from.contains(&top) {
                return Ok(());
            }
            let names: Vec<String> =
                self.times.candidates.around(&top).into_iter().chain(best.iter().cloned()).collect();
            let before = self.times.ms(order, &top).unwrap_or(f64::INFINITY);
            *best = self.try_out(order, &names)?;
            self.tell("fine", order, &names, 0, self.limit);
            from.push(top);
            let after = best.first().and_then(|top| self.times.ms(order, top)).unwrap_or(f64::INFINITY);
            if after > STEP * before {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Times plans once, and those that are not hopeless once more; gives the best.
    fn try_out(&mut self, order: usize, names: &[String]) -> Result<Vec<String>, Error> {
        self.times.round(order, names, 0)?;
        let fastest = self.times.fastest(order, names).unwrap_or(f64::INFINITY);
        let hopeful = |name: &&String| self.times.ms(order, name).is_some_and(|ms| ms <= HOPELESS * fastest);
        let again: Vec<String> = names.iter().filter(hopeful).cloned().collect();
        self.times.round(order, &again, 1)?;
        Ok(self.times.best(order, names))
    }

    /// Whether a plan is timed again: unless it was far behind twice, and until its rounds agree.
    fn is_open(&self, order: usize, name: &str, round: usize, fastest: f64) -> bool {
        if round == 1 {
            return true;
        }
        let Some((least, most)) = self.times.range(order, name) else { return false };
        let own = self.times.candidates.own(order).is_ok_and(|own| own == name);
        match round {
            _ if least > SLACK * fastest && !own => false,
            ROUNDS.. => most > AGREE * least,
            _ => true,
        }
    }

    /// What is known of an order, for every survivor of any order.
    fn sample(
        &self,
        order: usize,
        samples: &mut Samples,
        survivors: &BTreeMap<usize, Vec<String>>,
    ) -> Result<(), Error> {
        let own = self.times.candidates.own(order)?;
        let Some(own_ms) = self.times.ms(order, &own) else { return Ok(()) };
        let all = survivors.values().flatten();
        let timed = |name: &String| self.times.range(order, name).and_then(|_| self.times.ms(order, name));
        let times: BTreeMap<String, f64> = all.filter_map(|name| Some((name.clone(), timed(name)?))).collect();
        let spread = |name: &String| self.times.range(order, name).map(|(least, most)| (most / least).ln());
        let spreads = times.keys().chain([&own]).filter_map(spread).collect();
        samples.push(order, own_ms, times, spreads);
        Ok(())
    }

    fn tell(&mut self, stage: &str, order: usize, names: &[String], round: usize, end: f64) {
        let left = (end.min(self.limit) - self.times.used).max(0.0);
        let best = self.times.best(order, names).into_iter().next();
        let Some((best, ms)) = best.and_then(|best| self.times.ms(order, &best).map(|ms| (best, ms))) else { return };
        let own = self.times.candidates.own(order).ok().and_then(|own| self.times.ms(order, &own));
        let beside = own.map_or_else(String::new, |own| format!(", {:.2} times the planner's own", own / ms));
        let what = if round == 0 { format!("{:>2} plans", names.len()) } else { "survivors".to_owned() };
        self.times.tell(&format!(
            "{:>4.0} s, {left:>4.0} s left  {stage:<7} n={order:<4} {what:<9} best {best} {ms:.4} ms{beside}",
            self.times.used
        ));
    }
}
