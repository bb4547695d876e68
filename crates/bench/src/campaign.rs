//! A run of figures: in which order, for how long, and what becomes of what fails.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use batchla_core::{Backend, Complex, Error, ErrorKind, Options, Scalar, ScalarKind};
use batchla_cuda::Cuda;

use crate::measure::{Arena, Timing};
use crate::paper::{Contestant, Figure, Routine};
use crate::peers::Cublas;
use crate::plot::draw;
use crate::readme::{Receipt, readme};
use crate::record::{Table, default_folder, write};
use crate::results::{Results, Row};

/// The orders that are measured unless others are asked for: the paper's, 33 to 190.
pub const ORDERS: [usize; 11] = [33, 48, 64, 80, 96, 112, 128, 144, 160, 176, 190];

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// By name.
    pub figures: Vec<String>,
    /// The types.
    pub scalars: Vec<ScalarKind>,
    /// The orders.
    pub orders: Vec<usize>,
    /// Matrices.
    pub batch: usize,
    /// Repetitions of each measurement.
    pub repetitions: usize,
    /// After so long nothing more is begun.
    pub limit: Option<Duration>,
    /// Where the record goes, unless to the folder of the GPU and the day.
    pub output: Option<PathBuf>,
    /// Where cuBLAS is, if not where it is looked for.
    pub cublas: Option<PathBuf>,
    /// How to do it again.
    pub command: String,
}

/// A measurement, whatever figure asks for it.
type Key = (Routine, ScalarKind, usize, Contestant);

/// A run under way.
struct Run<'a> {
    campaign: &'a Campaign,
    gpu: Cuda,
    cublas: Option<Cublas>,
    start: Instant,
    known: HashMap<Key, Option<Timing>>,
    results: Results,
    notes: Vec<String>,
    table: Table,
    progress: &'a mut dyn FnMut(&str),
}

impl Campaign {
    /// Measures, and writes table, drawings and text; gives the folder. `progress` is told of each measurement.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] without a GPU; [`ErrorKind::Argument`] for a figure that there is not; [`ErrorKind::Io`]; a device that is
    /// lost. A contestant that fails otherwise is left out, and the record says so.
    pub fn run(&self, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
        let start = Instant::now();
        let figures = self.figures.iter().map(|name| Figure::named(name).ok_or_else(|| unknown(name)));
        let figures = figures.collect::<Result<Vec<_>, _>>()?;
        let gpu = Cuda::new()?;
        let folder = self.output.clone().unwrap_or_else(|| default_folder(&gpu.device().limits().name));
        let table = Table::create(&folder)?;
        let mut notes = Vec::new();
        let cublas = Cublas::find(&gpu, self.cublas.as_deref()).map_err(|note| notes.push(note)).ok();
        let versions = cublas.as_ref().map_or("none".to_owned(), |cublas| cublas.version().to_owned());
        let receipt = Receipt::of(gpu.device(), &versions, &self.command, self.batch, self.repetitions);
        progress(&format!("{}; cuBLAS {versions}; to {}", receipt.gpu, folder.display()));
        notes.iter().for_each(|note| progress(note));
        let (known, results) = Default::default();
        let mut run = Run { campaign: self, gpu, cublas, start, known, results, notes, table, progress };
        for figure in &figures {
            run.figure(figure)?;
            // After each, so that an interrupted run has drawings too.
            draw(figure, &run.results, &folder)?;
            write(&folder.join("README.md"), &readme(&receipt, &figures, &run.results, &run.notes))?;
        }
        Ok(folder)
    }
}

impl Run<'_> {
    fn figure(&mut self, figure: &Figure) -> Result<(), Error> {
        for &scalar in &self.campaign.scalars {
            match scalar {
                ScalarKind::F32 => self.panel::<f32>(figure)?,
                ScalarKind::F64 => self.panel::<f64>(figure)?,
                ScalarKind::C32 => self.panel::<Complex<f32>>(figure)?,
                ScalarKind::C64 => self.panel::<Complex<f64>>(figure)?,
            }
        }
        Ok(())
    }

    fn over(&self) -> bool {
        self.campaign.limit.is_some_and(|limit| self.start.elapsed() >= limit)
    }

    fn note(&mut self, text: String) {
        (self.progress)(&text);
        self.notes.push(text);
    }

    fn panel<T: Scalar>(&mut self, figure: &Figure) -> Result<(), Error> {
        if !self.over() {
            self.compile::<T>(figure);
        }
        for (done, &order) in self.campaign.orders.iter().enumerate() {
            if self.over() {
                let left = &self.campaign.orders[done..];
                self.note(format!("figure {}, {}: orders {left:?} left out for lack of time", figure.name, T::KIND));
                break;
            }
            let mut arena = None;
            for series in &figure.series {
                for contestant in &series.contestants {
                    let key = (figure.routine, T::KIND, order, contestant.clone());
                    if !self.known.contains_key(&key) {
                        let timing = self.measure::<T>(figure, order, contestant, &mut arena)?;
                        self.known.insert(key.clone(), timing);
                    }
                    let Some(timing) = self.known.get(&key).cloned().flatten() else { continue };
                    let base = |label| self.results.best(figure.name, T::KIND, label, order);
                    let base = series.base.filter(|label| *label != series.label).and_then(base);
                    let speedup = base.map(|base| timing.gflops / base.timing.gflops);
                    let row = Row {
                        figure: figure.name,
                        scalar: T::KIND,
                        order,
                        batch: self.campaign.batch,
                        series: series.label.to_owned(),
                        contestant: contestant.name(figure.routine),
                        timing,
                        speedup,
                    };
                    self.table.push(&row)?;
                    self.results.rows.push(row);
                }
            }
        }
        Ok(())
    }

    /// One measurement; none where the contestant cannot take part.
    fn measure<T: Scalar>(
        &mut self,
        figure: &Figure,
        order: usize,
        contestant: &Contestant,
        arena: &mut Option<Arena<T>>,
    ) -> Result<Option<Timing>, Error> {
        let absent = *contestant != Contestant::Cublas && *contestant != Contestant::CublasMatinv;
        let small = *contestant == Contestant::CublasMatinv && order > crate::peers::MATINV_ORDER;
        if (!absent && self.cublas.is_none()) || small {
            return Ok(None);
        }
        let begun = self.attempt(figure.routine, order, contestant, arena);
        let what = format!("{} {} n={order} {}", figure.routine.name(), T::KIND, contestant.name(figure.routine));
        match begun {
            Ok(timing) => {
                let seconds = self.start.elapsed().as_secs();
                let Timing { median_ms, gflops, residual, .. } = timing;
                let figure = figure.name;
                (self.progress)(&format!(
                    "{seconds:>5} s  figure {figure:<8} {what:<55} {median_ms:>10.4} ms {gflops:>8.0} GFLOP/s  ratio {residual:.2}"
                ));
                Ok(Some(timing))
            }
            // After this nothing on the device can be trusted.
            Err(error) if self.gpu.synchronize().is_err() => Err(error),
            Err(error) => {
                self.note(format!("left out: {what}: {error}"));
                Ok(None)
            }
        }
    }

    fn attempt<T: Scalar>(
        &self,
        routine: Routine,
        order: usize,
        contestant: &Contestant,
        arena: &mut Option<Arena<T>>,
    ) -> Result<Timing, Error> {
        let ready = match arena.take() {
            Some(ready) => ready,
            None => Arena::new(&self.gpu, routine, order, self.campaign.batch)?,
        };
        arena.insert(ready).measure(contestant, self.cublas.as_ref(), self.campaign.repetitions)
    }

    /// Compiles what the panel needs, as many at a time as there are cores, before anything is timed. What fails here fails again, with a
    /// note, when it is measured.
    fn compile<T: Scalar>(&mut self, figure: &Figure) {
        let mut wanted = Vec::new();
        for &order in &self.campaign.orders {
            for contestant in figure.contestants() {
                let key = (figure.routine, T::KIND, order, contestant.clone());
                if let (Contestant::Plan(plan), false) = (contestant, self.known.contains_key(&key)) {
                    wanted.push((order, plan));
                }
            }
        }
        let (begun, next) = (Instant::now(), AtomicUsize::new(0));
        let (gpu, batch) = (&self.gpu, self.campaign.batch);
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(wanted.len()) {
                scope.spawn(|| {
                    while let Some((order, plan)) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let problem = figure.routine.problem::<T>(batch, *order);
                        let _ = problem.and_then(|p| gpu.prepare(&p, &Options::default().with_plan(*plan)));
                    }
                });
            }
        });
        let (count, seconds) = (wanted.len(), begun.elapsed().as_secs_f64());
        if count > 0 {
            (self.progress)(&format!("figure {}, {}: {count} plans prepared in {seconds:.1} s", figure.name, T::KIND));
        }
    }
}

fn unknown(name: &str) -> Error {
    Error::new(ErrorKind::Argument, "bench paper", format!("there is no figure {name:?}"))
        .advise(format!("there are {}", Figure::NAMES.join(", ")))
}
