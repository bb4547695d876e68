//! A run of figures: in which order, for how long, and what becomes of what fails.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use batchla_core::{Backend, Complex, Error, Scalar, ScalarKind};
use batchla_cuda::Cuda;

use crate::cublas::{Cublas, MATINV_ORDER};
use crate::figure::{Contestant, Figure, Routine, Shows};
use crate::measure::{Arena, Timing};
use crate::page::{Page, Receipt, text};
use crate::plot::draw;
use crate::python::Python;
use crate::record::{Table, default_folder, write};
use crate::results::{Results, Row};
use crate::roof::device_copy;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Campaign {
    /// What the record is about.
    pub page: Page,
    /// In the order of measurement.
    pub figures: Vec<Figure>,
    /// The types.
    pub scalars: Vec<ScalarKind>,
    /// The orders.
    pub orders: Vec<usize>,
    /// Matrices, of orders that are not too large for so many: see [`Campaign::batch_of`].
    pub batch: usize,
    /// Repetitions of each measurement.
    pub repetitions: usize,
    /// After so long nothing more is begun.
    pub limit: Option<Duration>,
    /// Where the record goes, unless to the folder of the GPU and the day.
    pub output: Option<PathBuf>,
    /// Where cuBLAS is, if not where it is looked for.
    pub cublas: Option<PathBuf>,
    /// A Python whose PyTorch has MAGMA.
    pub magma: Option<String>,
    /// How to do it again.
    pub command: String,
}

/// A measurement, whatever figure asks for it.
type Key = (Routine, ScalarKind, usize, usize, Contestant);

/// A run under way.
struct Run<'a> {
    campaign: &'a Campaign,
    gpu: Cuda,
    cublas: Option<Cublas>,
    magma: Option<Python>,
    /// Bytes a second, read and written, of a copy on the device.
    copy: f64,
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
    /// [`ErrorKind::Unavailable`](batchla_core::ErrorKind::Unavailable) without a GPU; [`ErrorKind::Io`](batchla_core::ErrorKind::Io); a device that is
    /// lost. A contestant that fails otherwise is left out, and the record says so.
    pub fn run(&self, progress: &mut dyn FnMut(&str)) -> Result<PathBuf, Error> {
        let start = Instant::now();
        let gpu = Cuda::new()?;
        let name = self.page.name;
        let folder = self.output.clone().unwrap_or_else(|| default_folder(&gpu.device().limits().name, name));
        let table = Table::create(&folder, name)?;
        let mut notes = Vec::new();
        let cublas = Cublas::find(&gpu, self.cublas.as_deref()).map_err(|note| notes.push(note)).ok();
        let magma =
            self.magma.as_deref().and_then(|python| Python::magma(python).map_err(|note| notes.push(note)).ok());
        let cublas_version = cublas.as_ref().map_or("none", Cublas::version).to_owned();
        let magma_version = magma.as_ref().map_or("none", Python::version).to_owned();
        let copy = device_copy(&gpu)?;
        let receipt = Receipt::of(gpu.device(), &cublas_version, &magma_version, copy, self);
        progress(&format!(
            "{}; cuBLAS {cublas_version}; MAGMA: {magma_version}; to {}",
            gpu.device(),
            folder.display()
        ));
        notes.iter().for_each(|note| progress(note));
        let (known, results) = Default::default();
        let mut run = Run { campaign: self, gpu, cublas, magma, copy, start, known, results, notes, table, progress };
        for figure in &self.figures {
            run.figure(figure)?;
            // After each, so that an interrupted run has drawings too.
            draw(figure, &run.results, &folder)?;
            let page = text(&self.page, &receipt, &self.figures, &run.results, &run.notes);
            write(&folder.join(name).with_extension("md"), &page)?;
        }
        Ok(folder)
    }

    /// How many matrices of an order: all up to order 190, two fifths of them up to 384, a tenth above.
    pub fn batch_of(&self, order: usize) -> usize {
        let share = match order {
            0..=190 => self.batch,
            191..=384 => self.batch * 2 / 5,
            _ => self.batch / 10,
        };
        share.max(1)
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
                let batch = series.batch.unwrap_or_else(|| self.campaign.batch_of(order));
                for contestant in &series.contestants {
                    let key = (figure.routine, T::KIND, order, batch, contestant.clone());
                    if !self.known.contains_key(&key) {
                        let timing = self.measure::<T>(figure, (order, batch), contestant, &mut arena)?;
                        self.known.insert(key.clone(), timing);
                    }
                    let Some(timing) = self.known.get(&key).cloned().flatten() else { continue };
                    let bases = series.base.iter().filter(|label| **label != series.label);
                    let bases = bases.filter_map(|label| self.results.best(figure.name, T::KIND, label, order));
                    let base = bases.map(|row| row.timing.gflops).max_by(f64::total_cmp);
                    // Each matrix read and written once.
                    let bytes = 2.0 * (batch * order * order * T::KIND.bytes()) as f64;
                    let share = bytes / self.copy * 1e3 / timing.median_ms;
                    let speedup =
                        if figure.shows == Shows::Share { Some(share) } else { base.map(|base| timing.gflops / base) };
                    let row = Row {
                        figure: figure.name,
                        scalar: T::KIND,
                        order,
                        batch,
                        series: series.label.clone(),
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
        (order, batch): (usize, usize),
        contestant: &Contestant,
        arena: &mut Option<Arena<T>>,
    ) -> Result<Option<Timing>, Error> {
        let takes_part = match contestant {
            Contestant::Plan(_) | Contestant::Copy => true,
            Contestant::Cublas => self.cublas.is_some(),
            Contestant::CublasMatinv => self.cublas.is_some() && order <= MATINV_ORDER,
            Contestant::Magma => self.magma.is_some(),
        };
        if !takes_part {
            return Ok(None);
        }
        let begun = self.attempt(figure.routine, (order, batch), contestant, arena);
        let what =
            format!("{} {} n={order} {batch} x {}", figure.routine.name(), T::KIND, contestant.name(figure.routine));
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
        &mut self,
        routine: Routine,
        (order, batch): (usize, usize),
        contestant: &Contestant,
        arena: &mut Option<Arena<T>>,
    ) -> Result<Timing, Error> {
        let repetitions = self.campaign.repetitions;
        if let (Contestant::Magma, Some(magma)) = (contestant, &mut self.magma) {
            let answer = magma.measure(routine, T::KIND, order, batch, repetitions)?;
            let details = format!("{}; {:.5} ms for its copy of the input subtracted", magma.version(), answer.copy_ms);
            let flops = routine.problem::<T>(batch, order)?.flops();
            return Timing::of(&answer.times, flops, answer.residual, details);
        }
        let ready = match arena.take() {
            Some(ready) if ready.batch() == batch => ready,
            _ => Arena::new(&self.gpu, routine, order, batch)?,
        };
        arena.insert(ready).measure(contestant, self.cublas.as_ref(), repetitions)
    }

    /// Compiles what the panel needs, as many at a time as there are cores, before anything is timed. What fails here fails again, with a
    /// note, when it is measured.
    fn compile<T: Scalar>(&mut self, figure: &Figure) {
        let mut wanted = Vec::new();
        for &order in &self.campaign.orders {
            for contestant in figure.contestants() {
                let key = (figure.routine, T::KIND, order, self.campaign.batch_of(order), contestant.clone());
                if let (Contestant::Plan(plan), false) = (contestant, self.known.contains_key(&key)) {
                    wanted.push((order, plan));
                }
            }
        }
        let (begun, next) = (Instant::now(), AtomicUsize::new(0));
        let (gpu, campaign) = (&self.gpu, self.campaign);
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(wanted.len()) {
                scope.spawn(|| {
                    while let Some((order, plan)) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let problem = figure.routine.problem::<T>(campaign.batch_of(*order), *order);
                        let _ = problem.and_then(|p| gpu.prepare(&p, &Contestant::options(plan)));
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
