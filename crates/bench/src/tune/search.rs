//! What is timed, in which order: coarse candidates at a few orders, what is around the best, and the survivors over all orders.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use batchla_core::{Error, ErrorKind};
use batchla_cuda::TunedRow;

use super::choice::{Samples, choose};
use super::journal::{Entry, Journal};

/// What may be chosen from. Plans are names.
pub(crate) trait Candidates {
    /// What the planner chooses by itself.
    ///
    /// # Errors
    /// Where it has no plan.
    fn own(&self, order: usize) -> Result<String, Error>;

    /// What is tried first.
    fn coarse(&self) -> Vec<String>;

    /// What differs from a plan in one number.
    fn around(&self, plan: &str) -> Vec<String>;

    /// What a plan is at an order, so that two names of one plan are timed once; none where it cannot run.
    fn distinct(&self, order: usize, plan: &str) -> Option<String>;
}

/// What tells how long plans take.
pub(crate) trait Clock {
    /// Makes plans ready at once, so that none waits while it is timed.
    fn prepare(&mut self, order: usize, plans: &[&str]);

    /// Milliseconds of a batch, the middle of some repetitions, after the result was checked; or why the time does not count.
    ///
    /// # Errors
    /// Where nothing can be timed any more.
    fn time(&mut self, order: usize, plan: &str) -> Result<Result<f64, String>, Error>;

    /// Seconds since some time in the past.
    fn seconds(&self) -> f64;
}

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

/// Plans that survive the first stage at an order.
const SURVIVORS: usize = 3;
/// Orders of the first stage on each side of another whose survivors are timed there.
const SIDES: usize = 2;
/// A plan survives that takes no more than so many times the best.
const SLACK: f64 = 1.15;
/// How a line of the journal begins that tells what making plans ready took.
const PREPARED: &str = "prepared: ";
/// What takes so many times the best is not tried twice.
const HOPELESS: f64 = 2.0;
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

/// A search under way.
pub(crate) struct Search<'a> {
    orders: RangeInclusive<usize>,
    limit: f64,
    used: f64,
    candidates: &'a dyn Candidates,
    clock: &'a mut dyn Clock,
    journal: &'a mut Journal,
    progress: &'a mut dyn FnMut(&str),
    /// Milliseconds of each round, by order and plan; none where the time does not count.
    times: HashMap<(usize, String), BTreeMap<usize, Option<f64>>>,
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
        Self { orders, limit, used: 0.0, candidates, clock, journal, progress, times: HashMap::new() }
    }

    /// Both stages, and the choice.
    pub(crate) fn run(mut self) -> Result<Found, Error> {
        let anchors = anchors(&self.orders);
        let mut survivors = BTreeMap::new();
        // Far apart first, so that a lack of time costs detail, not reach.
        for &order in &far_first(&anchors) {
            if self.used >= COARSE * self.limit && !survivors.is_empty() {
                break;
            }
            let mut names = self.candidates.coarse();
            names.push(self.candidates.own(order)?);
            survivors.insert(order, self.try_out(order, &names)?);
            self.tell("coarse", order, &names, 0, self.limit);
        }
        for (&order, best) in &mut survivors {
            self.climb(order, best)?;
        }
        let mut samples = Samples::default();
        let all = sequence(&self.orders, &anchors);
        for (i, &order) in all.iter().enumerate() {
            if self.used >= self.limit && !samples.is_empty() {
                break;
            }
            let (below, above) = (survivors.range(..=order).rev(), survivors.range(order + 1..));
            let near = below.take(SIDES).chain(above.take(SIDES));
            let mut names: Vec<String> = vec![self.candidates.own(order)?];
            names.extend(near.flat_map(|(_, best)| best.iter().cloned()));
            let timed = names.clone();
            for round in 1..=MOST_ROUNDS {
                self.round(order, &names, round)?;
                let fastest = self.fastest(order, &timed).unwrap_or(f64::INFINITY);
                names.retain(|name| self.is_open(order, name, round, fastest));
            }
            self.sample(order, &mut samples, &survivors)?;
            let each = self.used / (i + 1) as f64;
            self.tell("over n", order, &timed, 1, self.used + each * (all.len() - i - 1) as f64);
        }
        if samples.is_empty() {
            return Err(Error::new(ErrorKind::Device, "tune", "no plan gave a right result at any order")
                .advise("run `batchla devices`, which tries the GPU"));
        }
        let feasible = |order: usize, plan: &str| self.candidates.distinct(order, plan).is_some();
        let choice = choose(&samples, &self.orders, &feasible);
        Ok(Found { rows: choice.rows, margin: choice.margin, sampled: choice.sampled, seconds: self.used })
    }

    /// Goes from the best to better neighbours while there are any.
    fn climb(&mut self, order: usize, best: &mut Vec<String>) -> Result<(), Error> {
        let mut from = Vec::new();
        for _ in 0..CLIMBS {
            let Some(top) = best.first().cloned() else { return Ok(()) };
            if self.used >= FINE * self.limit || from.contains(&top) {
                return Ok(());
            }
            let names: Vec<String> = self.candidates.around(&top).into_iter().chain(best.iter().cloned()).collect();
            let before = self.ms(order, &top).unwrap_or(f64::INFINITY);
            *best = self.try_out(order, &names)?;
            self.tell("fine", order, &names, 0, self.limit);
            from.push(top);
            let after = best.first().and_then(|top| self.ms(order, top)).unwrap_or(f64::INFINITY);
            if after > STEP * before {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Times plans once, and those that are not hopeless once more; gives the best.
    fn try_out(&mut self, order: usize, names: &[String]) -> Result<Vec<String>, Error> {
        self.round(order, names, 0)?;
        let fastest = self.fastest(order, names).unwrap_or(f64::INFINITY);
        let hopeful = |name: &&String| self.ms(order, name).is_some_and(|ms| ms <= HOPELESS * fastest);
        let again: Vec<String> = names.iter().filter(hopeful).cloned().collect();
        self.round(order, &again, 1)?;
        Ok(self.best(order, names))
    }

    /// Times each plan once, unless that is known.
    fn round(&mut self, order: usize, names: &[String], round: usize) -> Result<(), Error> {
        let mut plans: Vec<(&str, String)> = Vec::new();
        for name in names {
            if let Some(distinct) = self.candidates.distinct(order, name)
                && plans.iter().all(|(_, other)| *other != distinct)
            {
                plans.push((name, distinct));
            }
        }
        plans.retain(|(_, distinct)| {
            let done = self.times.get(&(order, distinct.clone())).is_some_and(|rounds| rounds.contains_key(&round));
            !done
        });
        let Some((_, first)) = plans.first() else { return Ok(()) };
        // What preparing took is known apart, so that a run that is killed behind it counts it too.
        let prepared = format!("{PREPARED}{first}");
        let unknown = |(_, distinct): &&(&str, String)| self.journal.known(order, round, distinct).is_none();
        let missing: Vec<&str> = plans.iter().filter(unknown).map(|(name, _)| *name).collect();
        let mut since = self.clock.seconds();
        if !missing.is_empty() {
            self.clock.prepare(order, &missing);
        }
        if self.journal.known(order, round, &prepared).is_none() {
            let now = self.clock.seconds();
            let seconds = now - std::mem::replace(&mut since, now);
            self.journal.push(order, round, &prepared, Entry { seconds, ms: None })?;
        }
        self.used += self.journal.known(order, round, &prepared).map_or(0.0, |entry| entry.seconds);
        for (name, distinct) in plans {
            let entry = match self.journal.known(order, round, &distinct) {
                Some(known) => known,
                None => {
                    let timed = self.clock.time(order, name)?;
                    if let Err(why) = &timed {
                        (self.progress)(&format!("left out: n={order} {name}: {why}"));
                    }
                    let now = self.clock.seconds();
                    let seconds = now - std::mem::replace(&mut since, now);
                    let entry = Entry { seconds, ms: timed.ok() };
                    self.journal.push(order, round, &distinct, entry)?;
                    entry
                }
            };
            self.used += entry.seconds;
            self.times.entry((order, distinct)).or_default().insert(round, entry.ms);
        }
        Ok(())
    }

    /// The time of a plan: the median of the second stage's rounds; before there are two of them the fastest there is, because what disturbs a
    /// measurement makes it longer. None where any does not count.
    fn ms(&self, order: usize, name: &str) -> Option<f64> {
        let rounds = self.times.get(&(order, self.candidates.distinct(order, name)?))?;
        let all: Vec<f64> = rounds.values().copied().collect::<Option<_>>()?;
        let later: Vec<f64> = rounds.range(1..).filter_map(|(_, ms)| *ms).collect();
        let sample = crate::sample::Sample::of(if later.len() > 1 { &later } else { &all })?;
        Some(if later.len() > 1 { sample.median } else { sample.min })
    }

    /// Whether a plan is timed again: unless it was far behind twice, and until its rounds agree.
    fn is_open(&self, order: usize, name: &str, round: usize, fastest: f64) -> bool {
        if round == 1 {
            return true;
        }
        let Some((least, most)) = self.range(order, name) else { return false };
        let own = self.candidates.own(order).is_ok_and(|own| own == name);
        match round {
            _ if least > SLACK * fastest && !own => false,
            ROUNDS.. => most > AGREE * least,
            _ => true,
        }
    }

    /// The fastest and the slowest round of the second stage, where there are two or more.
    fn range(&self, order: usize, name: &str) -> Option<(f64, f64)> {
        let rounds = self.times.get(&(order, self.candidates.distinct(order, name)?))?;
        let later: Vec<f64> = rounds.range(1..).map(|(_, ms)| *ms).collect::<Option<_>>()?;
        let (least, most) = later.iter().fold((f64::INFINITY, 0.0f64), |(a, b), ms| (a.min(*ms), b.max(*ms)));
        (later.len() > 1).then_some((least, most))
    }

    fn fastest(&self, order: usize, names: &[String]) -> Option<f64> {
        names.iter().filter_map(|name| self.ms(order, name)).min_by(f64::total_cmp)
    }

    /// The best few, fastest first, one name a plan.
    fn best(&self, order: usize, names: &[String]) -> Vec<String> {
        let Some(fastest) = self.fastest(order, names) else { return Vec::new() };
        let mut timed: Vec<(f64, &String)> = names.iter().filter_map(|n| Some((self.ms(order, n)?, n))).collect();
        timed.retain(|(ms, _)| *ms <= SLACK * fastest);
        timed.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.len().cmp(&b.1.len())).then(a.1.cmp(b.1)));
        let mut seen = Vec::new();
        timed.retain(|(_, name)| {
            let distinct = self.candidates.distinct(order, name);
            let new = !seen.contains(&distinct);
            seen.push(distinct);
            new
        });
        timed.into_iter().take(SURVIVORS).map(|(_, name)| name.clone()).collect()
    }

    /// What is known of an order, for every survivor of any order.
    fn sample(
        &self,
        order: usize,
        samples: &mut Samples,
        survivors: &BTreeMap<usize, Vec<String>>,
    ) -> Result<(), Error> {
        let own = self.candidates.own(order)?;
        let Some(own_ms) = self.ms(order, &own) else { return Ok(()) };
        let all = survivors.values().flatten();
        let timed = |name: &String| self.range(order, name).and_then(|_| self.ms(order, name));
        let times: BTreeMap<String, f64> = all.filter_map(|name| Some((name.clone(), timed(name)?))).collect();
        let spread = |name: &String| self.range(order, name).map(|(least, most)| (most / least).ln());
        let spreads = times.keys().chain([&own]).filter_map(spread).collect();
        samples.push(order, own_ms, times, spreads);
        Ok(())
    }

    fn tell(&mut self, stage: &str, order: usize, names: &[String], round: usize, end: f64) {
        let left = (end.min(self.limit) - self.used).max(0.0);
        let best = self.best(order, names).into_iter().next();
        let Some((best, ms)) = best.and_then(|best| self.ms(order, &best).map(|ms| (best, ms))) else { return };
        let own = self.candidates.own(order).ok().and_then(|own| self.ms(order, &own));
        let beside = own.map_or_else(String::new, |own| format!(", {:.2} times the planner's own", own / ms));
        let what = if round == 0 { format!("{:>2} plans", names.len()) } else { "survivors".to_owned() };
        (self.progress)(&format!(
            "{:>4.0} s, {left:>4.0} s left  {stage:<7} n={order:<4} {what:<9} best {best} {ms:.4} ms{beside}",
            self.used
        ));
    }
}

/// Powers of two and one and a half times those, and both ends.
fn anchors(orders: &RangeInclusive<usize>) -> Vec<usize> {
    let powers = (0..usize::BITS - 2).map(|k| 1usize << k);
    let mut anchors: Vec<usize> = powers.flat_map(|power| [power, power + power / 2]).collect();
    anchors.extend([*orders.start(), *orders.end()]);
    anchors.retain(|order| orders.contains(order));
    anchors.sort_unstable();
    anchors.dedup();
    anchors
}

/// The same, each as far as may be from those before it.
fn far_first(anchors: &[usize]) -> Vec<usize> {
    let mut left: Vec<usize> = anchors.to_vec();
    let mut chosen: Vec<usize> = left.pop().into_iter().collect();
    while !left.is_empty() {
        let distance = |order: usize| {
            let to = |other: &usize| (order as f64 / *other as f64).ln().abs();
            chosen.iter().map(to).fold(f64::INFINITY, f64::min)
        };
        let farthest = (0..left.len()).max_by(|&a, &b| distance(left[a]).total_cmp(&distance(left[b]))).unwrap_or(0);
        chosen.push(left.remove(farthest));
    }
    chosen
}

/// All orders: anchors first, then the middle of the widest gap, again and again.
fn sequence(orders: &RangeInclusive<usize>, anchors: &[usize]) -> Vec<usize> {
    let (mut sequence, mut sorted) = (anchors.to_vec(), anchors.to_vec());
    let gap = |pair: &[usize]| if pair[1] - pair[0] > 1 { pair[1] as f64 / pair[0] as f64 } else { 0.0 };
    while sorted.len() < orders.clone().count() {
        let widest = (1..sorted.len()).max_by(|&a, &b| gap(&sorted[a - 1..=a]).total_cmp(&gap(&sorted[b - 1..=b])));
        let Some(at) = widest else { break };
        let middle = ((sorted[at - 1] * sorted[at]) as f64).sqrt().round() as usize;
        let middle = middle.clamp(sorted[at - 1] + 1, sorted[at] - 1);
        sorted.insert(at, middle);
        sequence.push(middle);
    }
    sequence
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_comes_once_and_the_widest_gaps_first() {
        for orders in [1..=1, 1..=2, 3..=40, 1..=256, 190..=191] {
            let anchors = anchors(&orders);
            let mut all = sequence(&orders, &anchors);
            assert_eq!(far_first(&anchors).len(), anchors.len());
            assert_eq!(all[..anchors.len()], anchors);
            all.sort_unstable();
            assert_eq!(all, orders.collect::<Vec<_>>());
        }
        assert_eq!(anchors(&(5..=50)), [5, 6, 8, 12, 16, 24, 32, 48, 50]);
        assert_eq!(far_first(&[1, 2, 4, 8, 16])[..3], [16, 1, 4]);
    }
}
