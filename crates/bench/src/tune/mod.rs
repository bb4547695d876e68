//! The tuner: which plan is fastest on this GPU at each order, as a table that the planner uses from then on.
//!
//! Two stages, after Imamura (2014): at a few orders all coarse candidates, then what is around the best; the survivors over many orders, smoothed, so
//! that noise makes no islands.
//!
//! | question | file |
//! | --- | --- |
//! | what is tried, where, and when does it end? | `search.rs`, at the orders of `orders.rs` |
//! | which plan for which orders? | `choice.rs` |
//! | how long do plans take? | `times.rs`, from what is known, else from a clock |
//! | what is known already? | `journal.rs`, a line a measurement, so that a run may end at any time and go on later |
//! | how long does a plan take, and is its result right? | `clock.rs`, on a GPU |
//! | what came of it? | `report.rs` |
//! | is it the fastest? | `proof.rs` |

mod choice;
mod clock;
mod journal;
mod orders;
mod proof;
mod report;
mod search;
#[cfg(test)]
mod synthetic;
mod times;

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use batchla_core::{Complex, Error, ErrorKind, Operation, Options, Plan, Problem, Receipt, Scalar, ScalarKind};
use batchla_cuda::{Cuda, CudaPlan, Device, Environment, Limits, Space, TunedLayout, TunedTable};

use self::clock::{GpuClock, batch_of};
use self::journal::Journal;
pub use self::proof::Proved;
use self::search::{Found, Search};
use self::times::Candidates;
use crate::record::{default_folder, today, unwritable, write};

/// What is to be tuned.
#[derive(Clone, Debug)]
pub struct Tune {
    /// The type.
    pub scalar: ScalarKind,
    /// LU in place, or inverses from matrices.
    pub operation: Operation,
    /// How matrices lie.
    pub layout: TunedLayout,
    /// The orders.
    pub orders: RangeInclusive<usize>,
    /// Seconds of measuring, those of earlier runs that this one goes on with included.
    pub seconds: f64,
    /// Matrices, of orders that are not too large for so many.
    pub batch: usize,
    /// The GPU, by its number.
    pub device: usize,
    /// Forget what a run that was interrupted has measured.
    pub fresh: bool,
    /// Where the report goes, unless to the folder of the GPU and the day.
    pub output: Option<PathBuf>,
    /// How to do it again.
    pub command: String,
}

/// What came of tuning.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// The file of the table.
    pub table: PathBuf,
    /// The folder of the report.
    pub report: PathBuf,
    /// The table in words, a row a line.
    pub rows: Vec<String>,
    /// What the table had to beat the planner's own plans by.
    pub margin: f64,
}

impl Tune {
    /// Measures, writes table and report. `progress` is told of each order, with the time that is left. May be ended at any time: what was measured is kept,
    /// and the next run goes on from there.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] without a GPU, or a folder for the table; [`ErrorKind::Io`]; [`ErrorKind::Argument`] for orders that are none, an operation
    /// that is not tuned, or what an earlier run has left that was of something else; a device that is lost or gives no right result.
    pub fn run(&self, progress: &mut dyn FnMut(&str)) -> Result<Tuning, Error> {
        let folder = Environment::read().tuned.ok_or_else(|| {
            Error::new(ErrorKind::Unavailable, "tune", "there is no folder for the table")
                .advise("set BATCHLA_TUNED_DIR to a folder")
        })?;
        self.run_on(&Device::open(self.device)?, &folder, progress)
    }

    /// The same on an open device, with the table in a folder of the caller's.
    ///
    /// # Errors
    /// As of [`Tune::run`].
    pub fn run_on(&self, device: &Device, folder: &Path, progress: &mut dyn FnMut(&str)) -> Result<Tuning, Error> {
        self.check_orders()?;
        match self.scalar {
            ScalarKind::F32 => self.typed::<f32>(device, folder, progress),
            ScalarKind::F64 => self.typed::<f64>(device, folder, progress),
            ScalarKind::C32 => self.typed::<Complex<f32>>(device, folder, progress),
            ScalarKind::C64 => self.typed::<Complex<f64>>(device, folder, progress),
        }
    }

    /// Tunes nothing: at `count` random orders, times the plan that is in use beside all candidates, in alternating rounds, and writes `tune-proof.csv`.
    ///
    /// # Errors
    /// As of [`Tune::run`].
    pub fn prove(&self, count: usize, progress: &mut dyn FnMut(&str)) -> Result<Vec<Proved>, Error> {
        self.check_orders()?;
        let device = Device::open(self.device)?;
        match self.scalar {
            ScalarKind::F32 => self.proved::<f32>(&device, count, progress),
            ScalarKind::F64 => self.proved::<f64>(&device, count, progress),
            ScalarKind::C32 => self.proved::<Complex<f32>>(&device, count, progress),
            ScalarKind::C64 => self.proved::<Complex<f64>>(&device, count, progress),
        }
    }

    fn check_orders(&self) -> Result<(), Error> {
        if *self.orders.start() > 0 && !self.orders.is_empty() {
            return Ok(());
        }
        let what = format!("{} to {} are no orders", self.orders.start(), self.orders.end());
        Err(Error::new(ErrorKind::Argument, "tune", what).advise("orders are 1 or more, as 1..256"))
    }

    fn proved<T: Scalar>(
        &self,
        device: &Device,
        count: usize,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<Proved>, Error> {
        let limits = device.limits();
        let candidates = GpuCandidates { tune: self, limits };
        let mut clock = GpuClock::<T>::new(&Cuda::on(device)?, self.operation, self.layout, self.batch)?;
        let mut rows = Vec::new();
        let mut text = "order,batch,plan,ms,best,best_ms,ratio\n".to_owned();
        for order in proof::draw(&self.orders, count) {
            let own = candidates.own(order)?;
            let problem = candidates.problem(order)?;
            let used = device.tuned().row(&problem).map_or(own, |(_, row)| row.plan.clone());
            let Some(row) = proof::prove(order, &used, &candidates, &mut clock)? else {
                progress(&format!("left out: n={order} {used} gives no right result"));
                continue;
            };
            let Proved { plan, ms, best, best_ms, .. } = &row;
            progress(&format!("n={order:<4} {plan} {ms:.4} ms, {:.3} times the best: {best}", row.ratio()));
            let [plan, best] = [plan, best].map(|plan| plan.replace(',', " "));
            let (batch, ratio) = (clock.batch_of(order), row.ratio());
            text.push_str(&format!("{order},{batch},{plan},{ms:.5},{best},{best_ms:.5},{ratio:.4}\n"));
            rows.push(row);
        }
        if rows.is_empty() {
            return Err(search::nothing_right());
        }
        let output = self.output.clone().unwrap_or_else(|| default_folder(&limits.name, report::PROOF));
        std::fs::create_dir_all(&output).map_err(|error| unwritable(&output, error))?;
        write(&output.join(report::PROOF).with_extension("csv"), &text)?;
        Ok(rows)
    }

    fn typed<T: Scalar>(
        &self,
        device: &Device,
        folder: &Path,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Tuning, Error> {
        let limits = device.limits();
        let receipt =
            Receipt { device: limits.name.clone().into(), date: today().into(), command: self.command.clone().into() };
        let mut table = TunedTable::new(limits, T::KIND, self.operation, self.layout, &receipt);
        let candidates = GpuCandidates { tune: self, limits };
        candidates.own(*self.orders.start())?;
        let path = folder.join(table.file_name());
        let mut journal = Journal::open(&path.with_extension("journal"), &self.about(device), self.fresh)?;
        progress(&format!("{device}; {} measurements are known", journal.len()));
        let mut clock = GpuClock::<T>::new(&Cuda::on(device)?, self.operation, self.layout, self.batch)?;
        let search = Search::new(self.orders.clone(), self.seconds, &candidates, &mut clock, &mut journal, progress);
        let found: Found = search.run()?;
        table.rows.clone_from(&found.rows);
        // What other orders were tuned to before stays.
        if let Some(before) = TunedTable::read(&path).ok().filter(|before| before.objection(limits).is_none()) {
            table.keep_outside(&before, &self.orders);
        }
        let written = table.write(folder)?;
        let output = self.output.clone().unwrap_or_else(|| default_folder(&limits.name, report::NAME));
        report::write(&output, self, device, &found, &clock, &journal)?;
        journal.remove()?;
        let rows = found
            .rows
            .iter()
            .map(|row| format!("orders {} to {}: {}, {:.2} times as fast", row.first, row.last, row.plan, row.speedup));
        Ok(Tuning { table: written, report: output, rows: rows.collect(), margin: found.margin })
    }

    /// What measurements must agree on to be of one run.
    fn about(&self, device: &Device) -> String {
        let (limits, compiler) = (device.limits(), device.compiler().unwrap_or_else(|error| error.to_string()));
        format!(
            "batchla {}, {} ({}), {compiler}, {} {} {}, orders {} to {}, batch {}",
            env!("CARGO_PKG_VERSION"),
            limits.name,
            limits.architecture(),
            self.scalar,
            self.operation.name(),
            self.layout.name(),
            self.orders.start(),
            self.orders.end(),
            self.batch
        )
    }
}

/// The planner's families on a GPU.
struct GpuCandidates<'a> {
    tune: &'a Tune,
    limits: &'a Limits,
}

impl GpuCandidates<'_> {
    /// As it is timed: of few matrices the planner's own plan may be another.
    fn problem(&self, order: usize) -> Result<Problem, Error> {
        let Tune { scalar, operation, layout, batch, .. } = *self.tune;
        layout.problem(scalar, operation, batch_of(batch, order, scalar, self.limits), order)
    }
}

impl Candidates for GpuCandidates<'_> {
    fn own(&self, order: usize) -> Result<String, Error> {
        let plan = CudaPlan::choose(&self.problem(order)?, &Options::default(), self.limits)?;
        Ok(plan.name().to_owned())
    }

    fn coarse(&self) -> Vec<String> {
        Space::of(self.tune.operation).iter().flat_map(Space::coarse).collect()
    }

    fn around(&self, plan: &str) -> Vec<String> {
        let family = plan.split_once(':').map_or(plan, |(family, _)| family);
        let spaces = Space::of(self.tune.operation);
        spaces.iter().filter(|space| space.family == family).flat_map(|space| space.around(plan)).collect()
    }

    fn distinct(&self, order: usize, plan: &str) -> Option<String> {
        CudaPlan::distinct(&self.problem(order).ok()?, plan, self.limits)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn own(batch: usize, order: usize) -> String {
        let tune = Tune {
            scalar: ScalarKind::F32,
            operation: Operation::Factorize,
            layout: TunedLayout::ColumnMajor,
            orders: 1..=512,
            seconds: 1.0,
            batch,
            device: 0,
            fresh: false,
            output: None,
            command: String::new(),
        };
        GpuCandidates { tune: &tune, limits: &Limits::preset("sm_90").unwrap() }.own(order).unwrap()
    }

    #[test]
    fn the_planners_own_plan_is_that_of_the_batch_that_is_timed() {
        assert_eq!(own(10_000, 222), "resident");
        assert_eq!(own(10_000, 256), "resident");
        assert_eq!(own(10_000, 400), "blocked");
        assert_eq!(own(20, 256), "spread");
    }
}
