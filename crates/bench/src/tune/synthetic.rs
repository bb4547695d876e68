//! The search against a clock that is none: costs from a formula, with planted noise, and runs that are killed.

use std::collections::BTreeSet;

use batchla_core::{Error, ErrorKind};

use super::journal::Journal;
use super::search::{Found, Search};
use super::times::{Candidates, Clock};

/// Plans `a:k=…` and `b:k=…`: `a` is better at small orders, `b` at large ones, each with a best `k` that grows with the order in steps.
struct Plans;

const VALUES: [usize; 6] = [1, 2, 4, 8, 16, 32];

fn parts(plan: &str) -> (&str, usize) {
    let (family, rest) = plan.split_once(':').unwrap_or((plan, "k=4"));
    (family, rest.trim_start_matches("k=").parse().unwrap_or(4))
}

/// Milliseconds without noise.
fn cost(order: usize, plan: &str) -> f64 {
    let (family, k) = parts(plan);
    let n = order as f64;
    let best = match order {
        ..=20 => 2.0,
        21..=90 => 8.0,
        _ => 16.0f64,
    };
    let off = 1.0 + 0.12 * (k as f64 / best).log2().abs();
    // Both step up at multiples of 32, as threads do.
    let stairs = (order.div_ceil(32) * 32) as f64;
    match family {
        "a" => 1e-3 * (n * n + 0.02 * n.powi(3)) * off,
        _ => 1e-3 * (1.5 * n * n + 0.006 * stairs * n * n) * off,
    }
}

impl Candidates for Plans {
    fn own(&self, order: usize) -> Result<String, Error> {
        Ok(if order <= 60 { "a" } else { "b" }.to_owned())
    }
    fn coarse(&self) -> Vec<String> {
        let numbers = |family: &str| [2, 16].map(|k| format!("{family}:k={k}"));
        ["a", "b"].into_iter().flat_map(numbers).collect()
    }
    fn around(&self, plan: &str) -> Vec<String> {
        let (family, k) = parts(plan);
        let at = VALUES.iter().position(|value| *value == k).unwrap_or(0);
        let near = [at.checked_sub(1), Some(at + 1)].into_iter().flatten().filter_map(|i| VALUES.get(i));
        near.map(|k| format!("{family}:k={k}")).collect()
    }
    fn distinct(&self, order: usize, plan: &str) -> Option<String> {
        let (family, k) = parts(plan);
        // `a` has no room beyond.
        (family != "a" || order <= 150).then(|| format!("{family} {k}"))
    }
}

/// Random numbers that depend on what is measured, and not on when.
fn chance(seed: u64, order: usize, plan: &str, round: u64) -> f64 {
    let mix = plan.bytes().fold(seed ^ (order as u64) << 20 ^ round << 40, |mix, byte| {
        (mix ^ u64::from(byte)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    });
    (mix.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 11) as f64 / (1u64 << 53) as f64
}

/// What the clock adds.
#[derive(Clone, Copy, Default)]
struct Noise {
    /// Each time is off by up to this part.
    jitter: f64,
    /// This part of all times is half as long again.
    spikes: f64,
    seed: u64,
}

struct Synthetic {
    noise: Noise,
    seconds: f64,
    /// Kernels on disk: of a run before, too.
    compiled: BTreeSet<String>,
    /// How often each was timed.
    asked: std::collections::HashMap<(usize, String), u64>,
    /// Measurements until the process is killed.
    left: usize,
    wrong: Option<&'static str>,
}

impl Synthetic {
    fn new(noise: Noise) -> Self {
        let (compiled, asked) = Default::default();
        Self { noise, seconds: 0.0, compiled, asked, left: usize::MAX, wrong: None }
    }
}

impl Clock for Synthetic {
    fn prepare(&mut self, order: usize, plans: &[&str]) {
        for plan in plans {
            if self.compiled.insert(format!("{plan} {}", order.div_ceil(32))) {
                self.seconds += 0.1;
            }
        }
    }
    fn time(&mut self, order: usize, plan: &str) -> Result<Result<f64, String>, Error> {
        if self.left == 0 {
            return Err(Error::new(ErrorKind::Io, "test", "killed"));
        }
        self.left -= 1;
        self.seconds += 0.05;
        if self.wrong == Some(plan) {
            return Ok(Err("the result is wrong".to_owned()));
        }
        let (family, k) = parts(plan);
        let plan = format!("{family} {k}");
        let round = self.asked.entry((order, plan.clone())).or_default();
        *round += 1;
        let Noise { jitter, spikes, seed } = self.noise;
        let off = 1.0 + jitter * (2.0 * chance(seed, order, &plan, *round) - 1.0);
        let spike = if chance(seed + 7, order, &plan, *round) < spikes { 1.5 } else { 1.0 };
        Ok(Ok(cost(order, &format!("{family}:k={k}")) * off * spike))
    }
    fn seconds(&self) -> f64 {
        self.seconds
    }
}

fn search(clock: &mut Synthetic, journal: &mut Journal, limit: f64) -> Result<Found, Error> {
    Search::new(1..=256, limit, &Plans, clock, journal, &mut |_| {}).run()
}

fn found(clock: &mut Synthetic, limit: f64) -> Found {
    let folder = tempfile::tempdir().unwrap();
    search(clock, &mut Journal::open(&folder.path().join("j"), "test", false).unwrap(), limit).unwrap()
}

/// The plan that the table, or else the planner, chooses.
fn chosen(found: &Found, order: usize) -> String {
    let row = found.rows.iter().find(|row| (row.first..=row.last).contains(&order));
    row.map_or_else(|| Plans.own(order).unwrap(), |row| row.plan.clone())
}

fn best(order: usize) -> f64 {
    let all = VALUES.iter().flat_map(|k| ["a", "b"].map(|family| format!("{family}:k={k}")));
    let runs = all.filter(|plan| Plans.distinct(order, plan).is_some());
    runs.map(|plan| cost(order, &plan)).fold(f64::INFINITY, f64::min)
}

const NOISY: Noise = Noise { jitter: 0.03, spikes: 0.08, seed: 3 };

#[test]
fn at_random_orders_the_chosen_plan_is_within_five_per_cent_of_the_best() {
    for seed in 0..8 {
        let found = found(&mut Synthetic::new(Noise { seed, ..NOISY }), 600.0);
        for draw in 0..30 {
            let order = 1 + (chance(seed + 100, draw, "draw", 0) * 256.0) as usize;
            let plan = chosen(&found, order);
            let ratio = cost(order, &plan) / best(order);
            assert!(ratio <= 1.05, "n={order}: {plan} takes {ratio:.3} times the best; {:?}", found.rows);
        }
    }
}

#[test]
fn planted_noise_leaves_no_islands() {
    let quiet = found(&mut Synthetic::new(Noise::default()), 600.0);
    for seed in 0..8 {
        let noisy = found(&mut Synthetic::new(Noise { seed, ..NOISY }), 600.0);
        assert!(noisy.rows.len() <= quiet.rows.len() + 1, "{:?} beside {:?}", noisy.rows, quiet.rows);
        // No range between two others of one plan, or of none, is shorter than a class of threads, but at the smallest orders.
        for row in noisy.rows.iter().filter(|row| row.first > 8) {
            assert!(row.last - row.first >= 5, "an island: {row:?} in {:?}", noisy.rows);
        }
    }
}

#[test]
fn a_table_holds_only_what_beats_the_planners_own_by_more_than_the_noise() {
    for seed in 0..8 {
        let found = found(&mut Synthetic::new(Noise { seed, ..NOISY }), 600.0);
        assert!(found.margin > 0.01 && !found.rows.is_empty());
        for row in &found.rows {
            assert!(row.speedup.ln() > found.margin, "{row:?}, {}", found.margin);
            let gain = |order| (cost(order, &Plans.own(order).unwrap()) / cost(order, &row.plan)).ln();
            let mean = (row.first..=row.last).map(gain).sum::<f64>() / (row.last - row.first + 1) as f64;
            assert!(mean > 0.0, "{row:?} is no faster: {mean}");
        }
    }
    // Where nothing is faster, there is nothing in it.
    struct Settled;
    impl Candidates for Settled {
        fn own(&self, _: usize) -> Result<String, Error> {
            Ok("b".to_owned())
        }
        fn coarse(&self) -> Vec<String> {
            vec!["b".to_owned(), "b:k=32".to_owned()]
        }
        fn around(&self, _: &str) -> Vec<String> {
            vec!["b:k=32".to_owned()]
        }
        fn distinct(&self, _: usize, plan: &str) -> Option<String> {
            Some(plan.to_owned())
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(&folder.path().join("j"), "test", false).unwrap();
    let mut clock = Synthetic::new(NOISY);
    let found = Search::new(1..=64, 600.0, &Settled, &mut clock, &mut journal, &mut |_| {}).run().unwrap();
    assert!(found.rows.is_empty(), "{:?}", found.rows);
}

#[test]
fn a_run_that_is_killed_again_and_again_ends_with_the_same_table() {
    // Enough time, and too little for all orders.
    for limit in [600.0, 40.0, 12.0] {
        let whole = found(&mut Synthetic::new(NOISY), limit);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let mut clock = Synthetic::new(NOISY);
        let mut kills = 0;
        let pieced = loop {
            clock.left = 37;
            match search(&mut clock, &mut Journal::open(&path, "test", false).unwrap(), limit) {
                Ok(found) => break found,
                Err(_) => kills += 1,
            }
        };
        assert!(kills > 2, "{kills}");
        assert_eq!((pieced.rows, pieced.sampled), (whole.rows, whole.sampled), "limit {limit}");
    }
}

#[test]
fn time_bounds_the_run_and_little_of_it_still_reaches_all_orders() {
    for limit in [3.0, 10.0, 40.0] {
        let mut clock = Synthetic::new(NOISY);
        let found = found(&mut clock, limit);
        assert!(clock.seconds <= limit + 4.0, "{} of {limit}", clock.seconds);
        assert!((found.seconds - clock.seconds).abs() < 1e-6, "all time is counted");
        assert!(!found.sampled.is_empty());
    }
}

#[test]
fn a_plan_whose_result_is_wrong_is_never_chosen() {
    let best_plan = chosen(&found(&mut Synthetic::new(Noise::default()), 600.0), 70);
    assert_eq!(best_plan, "b:k=8");
    let mut clock = Synthetic { wrong: Some("b:k=8"), ..Synthetic::new(Noise::default()) };
    let found = found(&mut clock, 600.0);
    assert!(found.rows.iter().all(|row| row.plan != "b:k=8") && !found.rows.is_empty(), "{:?}", found.rows);
}

#[test]
fn what_is_not_the_fastest_is_told_by_how_much() {
    let mut clock = Synthetic::new(NOISY);
    for (order, used, ratio) in [(70, "b:k=8", 1.0), (70, "b", 1.12), (200, "b:k=16", 1.0), (10, "a:k=2", 1.0)] {
        let proved = super::proof::prove(order, used, &Plans, &mut clock).unwrap().unwrap();
        assert_eq!(proved.plan, used);
        assert!((proved.ratio() / ratio - 1.0).abs() < 0.05 && proved.ratio() >= 1.0, "{proved:?}");
    }
    // What does not run there, or gives wrong results, is nothing to compare with.
    assert_eq!(super::proof::prove(200, "a:k=2", &Plans, &mut clock).unwrap(), None);
    clock.wrong = Some("b:k=8");
    assert_eq!(super::proof::prove(70, "b:k=8", &Plans, &mut clock).unwrap(), None);
}

#[test]
fn random_orders_are_different_ones_of_the_range() {
    let drawn = super::proof::draw(&(5..=40), 30);
    assert!(drawn.len() == 30 && drawn.is_sorted_by(|a, b| a < b) && drawn.iter().all(|n| (5..=40).contains(n)));
    assert_eq!(super::proof::draw(&(2..=3), 30), [2, 3]);
}

#[test]
fn a_device_that_computes_nothing_gets_no_table() {
    use batchla_core::{Operation, ScalarKind};
    use batchla_cuda::{Device, Limits, TunedLayout};
    let limits = Limits { memory_bytes: 1 << 30, ..Limits::preset("sm_90").unwrap() };
    let (device, _) = Device::fake(limits).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tune = super::Tune {
        scalar: ScalarKind::F64,
        operation: Operation::Invert,
        layout: TunedLayout::RowMajor,
        orders: 2..=2,
        seconds: 20.0,
        batch: 20,
        device: 0,
        fresh: false,
        output: Some(folder.path().join("report")),
        command: "test".to_owned(),
    };
    let mut told = Vec::new();
    let error = tune.run_on(&device, folder.path(), &mut |line| told.push(line.to_owned())).unwrap_err();
    assert!(error.to_string().contains("no plan gave a right result"), "{error}");
    assert!(told.iter().any(|line| line.contains("the result is wrong")), "{told:?}");
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["nvidia-h200-sm_90-f64-invert-row-major.journal"], "no table, no report");
    let none = super::Tune { orders: 0..=3, ..tune };
    assert_eq!(none.run_on(&device, folder.path(), &mut |_| {}).unwrap_err().kind(), ErrorKind::Argument);
}
