//! How long plans take at an order: asked of the journal first, then of the clock.

use std::collections::{BTreeMap, HashMap};

use batchla_core::Error;

use super::journal::{Entry, Journal};
use crate::sample::Sample;

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

/// Plans that survive the first stage at an order.
const SURVIVORS: usize = 3;
/// A plan survives that takes no more than so many times the best.
pub(super) const SLACK: f64 = 1.15;
/// How a line of the journal begins that tells what making plans ready took.
const PREPARED: &str = "prepared: ";

/// All that is known so far, and what it took.
pub(super) struct Times<'a> {
    pub(super) candidates: &'a dyn Candidates,
    clock: &'a mut dyn Clock,
    journal: &'a mut Journal,
    progress: &'a mut dyn FnMut(&str),
    /// Seconds of all measurements, of earlier runs too.
    pub(super) used: f64,
    /// Milliseconds of each round, by order and plan; none where the time does not count.
    rounds: HashMap<(usize, String), BTreeMap<usize, Option<f64>>>,
}

impl<'a> Times<'a> {
    pub(super) fn new(
        candidates: &'a dyn Candidates,
        clock: &'a mut dyn Clock,
        journal: &'a mut Journal,
        progress: &'a mut dyn FnMut(&str),
    ) -> Self {
        Self { candidates, clock, journal, progress, used: 0.0, rounds: HashMap::new() }
    }

    /// Tells whoever watches.
    pub(super) fn tell(&mut self, line: &str) {
        (self.progress)(line);
    }

    /// Times each plan once, unless that is known.
    pub(super) fn round(&mut self, order: usize, names: &[String], round: usize) -> Result<(), Error> {
        let mut plans: Vec<(&str, String)> = Vec::new();
        for name in names {
            if let Some(distinct) = self.candidates.distinct(order, name)
                && plans.iter().all(|(_, other)| *other != distinct)
            {
                plans.push((name, distinct));
            }
        }
        plans.retain(|(_, distinct)| {
            let done = self.rounds.get(&(order, distinct.clone())).is_some_and(|rounds| rounds.contains_key(&round));
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
                        let why = why.lines().next().unwrap_or_default();
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
            self.rounds.entry((order, distinct)).or_default().insert(round, entry.ms);
        }
        Ok(())
    }

    /// The time of a plan: the median of the second stage's rounds; before there are two of them the fastest there is, because what disturbs a
    /// measurement makes it longer. None where any does not count.
    pub(super) fn ms(&self, order: usize, name: &str) -> Option<f64> {
        let rounds = self.rounds.get(&(order, self.candidates.distinct(order, name)?))?;
        let all: Vec<f64> = rounds.values().copied().collect::<Option<_>>()?;
        let later: Vec<f64> = rounds.range(1..).filter_map(|(_, ms)| *ms).collect();
        let sample = Sample::of(if later.len() > 1 { &later } else { &all })?;
        Some(if later.len() > 1 { sample.median } else { sample.min })
    }

    /// The fastest and the slowest round of the second stage, where there are two or more.
    pub(super) fn range(&self, order: usize, name: &str) -> Option<(f64, f64)> {
        let rounds = self.rounds.get(&(order, self.candidates.distinct(order, name)?))?;
        let later: Vec<f64> = rounds.range(1..).map(|(_, ms)| *ms).collect::<Option<_>>()?;
        let (least, most) = later.iter().fold((f64::INFINITY, 0.0f64), |(a, b), ms| (a.min(*ms), b.max(*ms)));
        (later.len() > 1).then_some((least, most))
    }

    /// The time of the fastest.
    pub(super) fn fastest(&self, order: usize, names: &[String]) -> Option<f64> {
        names.iter().filter_map(|name| self.ms(order, name)).min_by(f64::total_cmp)
    }

    /// The best few, fastest first, one name a plan.
    pub(super) fn best(&self, order: usize, names: &[String]) -> Vec<String> {
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
}
