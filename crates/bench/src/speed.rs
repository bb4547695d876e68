//! Any backend from host memory to host memory, beside NumPy and beside the roofline of the CPU.

use std::path::PathBuf;
use std::time::Instant;

use batchla::AnyBackend;
use batchla_core::{
    Backend, Batch, BatchLayout, BatchedFactorize, BatchedInvert, Complex, Error, ErrorKind, FactorizeArgs, InvertArgs,
    Options, Prepared, ReportMut, Scalar, ScalarKind, Source,
};
use batchla_testkit::{Generator, LIMIT, factorization_ratio, inverse_ratio};

use crate::figure::{Figure, Routine, Series, Shows};
use crate::measure::{CHECKED, DIFFERENT, SEED, Timing};
use crate::page::{Page, Receipt, text};
use crate::plot::draw;
use crate::python::Python;
use crate::record::{Table, default_folder, today, write};
use crate::results::{Results, Row};
use crate::roof::{Roof, peak};

const OURS: &str = "batchla";
const NUMPY: &str = "NumPy";
/// Bytes of a batch whose size is not said.
const BYTES: usize = 64 << 20;

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Speed {
    /// Where to compute.
    pub backend: AnyBackend,
    /// The types.
    pub scalars: Vec<ScalarKind>,
    /// The orders.
    pub orders: Vec<usize>,
    /// Matrices; else as many as take 64 MiB.
    pub batch: Option<usize>,
    /// Repetitions of each measurement.
    pub repetitions: usize,
    /// A Python that has NumPy.
    pub python: Option<String>,
    /// Where the record goes, unless to the folder of the machine and the day.
    pub output: Option<PathBuf>,
    /// How to do it again.
    pub command: String,
}

/// A run under way.
struct Run<'a> {
    speed: &'a Speed,
    numpy: Option<Python>,
    roof: Option<Roof>,
    results: Results,
    notes: Vec<String>,
    table: Table,
    progress: &'a mut dyn FnMut(&str),
}

impl Speed {
    /// Measures, and writes table, drawings and text; gives the folder and the rows. `progress` is told of each measurement.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]; what the backend reports; a result that is wrong.
    pub fn run(&self, progress: &mut dyn FnMut(&str)) -> Result<(PathBuf, Results), Error> {
        let machine = processor();
        let folder = self.output.clone().unwrap_or_else(|| default_folder(&machine, Page::SPEED.name));
        let threads = rayon::current_num_threads();
        let mut notes = Vec::new();
        let numpy = self.python.as_deref().map(|python| Python::numpy(python, threads));
        let numpy = numpy.and_then(|started| started.map_err(|note| notes.push(note)).ok());
        let version = numpy.as_ref().map_or("none", Python::version).to_owned();
        // The roofs of a CPU say nothing of a GPU.
        let roof = if self.backend.name() == "cuda" { None } else { Some(Roof::measure()?) };
        let table = Table::create(&folder, Page::SPEED.name)?;
        let mut run = Run { speed: self, numpy, roof, results: Results::default(), notes, table, progress };
        let mut lines = vec![
            ("processor", machine),
            ("backend", self.backend.describe()),
            ("threads of NumPy and of the roofs", threads.to_string()),
            ("NumPy", version),
            ("date", today()),
            ("command", format!("`{}`", self.command)),
        ];
        for &scalar in &self.scalars {
            let peak = match scalar {
                ScalarKind::F32 => run.panel::<f32>(peak(1.0f32, 2.0))?,
                ScalarKind::F64 => run.panel::<f64>(peak(1.0f64, 2.0))?,
                ScalarKind::C32 => run.panel::<Complex<f32>>(peak(Complex::new(1.0f32, 0.0), 8.0))?,
                ScalarKind::C64 => run.panel::<Complex<f64>>(peak(Complex::new(1.0f64, 0.0), 8.0))?,
            };
            lines.push(("matrix product", format!("{scalar}: {peak:.1} GFLOP/s, order 1024, by faer")));
        }
        lines.extend(run.roof.map(|roof| ("copy", format!("{:.1} GB/s, read and written", roof.bytes / 1e9))));
        let method = format!(
            "Matrices of random numbers, uniform in [-1, 1), {DIFFERENT} different ones again and again, in host memory. Each time is the median of {} \
             repetitions after one that is not counted; for LU, the input is copied anew before each, and the copy is not timed. GFLOP/s by 2/3 n³ (LU) and \
             2 n³ (inverse), four times that for complex types. The roofline is the lower of the product's speed and of the speed at which the copy would \
             read and write each matrix once. A time counts only if the residual ratio of {CHECKED} matrices is below 30.",
            self.repetitions
        );
        let figures = figures(run.roof.is_some());
        for figure in &figures {
            draw(figure, &run.results, &folder)?;
        }
        let page = text(&Page::SPEED, &Receipt { lines, method }, &figures, &run.results, &run.notes);
        write(&folder.join(Page::SPEED.name).with_extension("md"), &page)?;
        Ok((folder, run.results))
    }
}

/// Speed, and share of the roofline, of both routines.
fn figures(roof: bool) -> Vec<Figure> {
    let one = |name, title: &str, routine, shows| Figure {
        name,
        title: title.to_owned(),
        routine,
        shows,
        series: vec![Series::new(OURS, [], &[]), Series::new(NUMPY, [], &[])],
        claims: Vec::new(),
        source: "",
    };
    let mut figures =
        vec![one("lu", "LU", Routine::Lu, Shows::Speed), one("inverse", "Inversion", Routine::Inverse, Shows::Speed)];
    if roof {
        figures.push(one("lu-roofline", "LU beside the roofline", Routine::Lu, Shows::Share));
        figures.push(one("inverse-roofline", "Inversion beside the roofline", Routine::Inverse, Shows::Share));
    }
    figures
}

impl Run<'_> {
    /// All of a type; gives the peak back.
    fn panel<T: Scalar>(&mut self, peak: f64) -> Result<f64, Error> {
        for order in self.speed.orders.clone() {
            let matrix = (order * order * T::KIND.bytes()).max(1);
            let batch = self.speed.batch.unwrap_or(BYTES / matrix).max(1);
            for routine in [Routine::Lu, Routine::Inverse] {
                let flops = routine.problem::<T>(batch, order)?.flops();
                let ours = host::<T>(&self.speed.backend, routine, order, batch, self.speed.repetitions, flops)?;
                let share = self.roof.map(|roof| ours.gflops / roof.over(peak, flops, (2 * batch * matrix) as f64));
                self.push(routine, T::KIND, order, batch, OURS, ours, share)?;
                // NumPy has no LU.
                let (Routine::Inverse, Some(numpy)) = (routine, &mut self.numpy) else { continue };
                match numpy.measure(routine, T::KIND, order, batch, self.speed.repetitions) {
                    Ok(answer) => {
                        let details = numpy.version().to_owned();
                        let timing = Timing::of(&answer.times, flops, answer.residual, details)?;
                        let share =
                            self.roof.map(|roof| timing.gflops / roof.over(peak, flops, (2 * batch * matrix) as f64));
                        self.push(routine, T::KIND, order, batch, NUMPY, timing, share)?;
                    }
                    Err(error) => self.notes.push(format!("left out: NumPy, {} n={order}: {error}", T::KIND)),
                }
            }
        }
        Ok(peak)
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of a row")]
    fn push(
        &mut self,
        routine: Routine,
        scalar: ScalarKind,
        order: usize,
        batch: usize,
        who: &str,
        timing: Timing,
        share: Option<f64>,
    ) -> Result<(), Error> {
        let shown = share.map_or_else(String::new, |share| format!("  {:>5.1} % of the roofline", 100.0 * share));
        (self.progress)(&format!(
            "{:<8} {scalar} n={order:<4} {who:<8} {:>10.4} ms {:>8.1} GFLOP/s{shown}",
            routine.name(),
            timing.median_ms,
            timing.gflops
        ));
        let [speed, roofline] =
            if routine == Routine::Lu { ["lu", "lu-roofline"] } else { ["inverse", "inverse-roofline"] };
        let rows = [Some((speed, None)), share.map(|share| (roofline, Some(share)))];
        for (figure, speedup) in rows.into_iter().flatten() {
            let (series, contestant) = (who.to_owned(), who.to_owned());
            let row = Row { figure, scalar, order, batch, series, contestant, timing: timing.clone(), speedup };
            self.table.push(&row)?;
            self.results.rows.push(row);
        }
        Ok(())
    }
}

/// One measurement of ours.
fn host<T: Scalar>(
    backend: &AnyBackend,
    routine: Routine,
    order: usize,
    batch: usize,
    repetitions: usize,
    flops: f64,
) -> Result<Timing, Error> {
    let layout = |batch| BatchLayout::column_major(batch, order, order);
    let few = Generator::Uniform.batch::<T>(layout(batch.min(DIFFERENT))?, SEED)?;
    let mut a = Batch::<T>::zeros(layout(batch)?)?;
    a.as_mut_slice()
        .chunks_mut(few.as_slice().len().max(1))
        .for_each(|part| part.copy_from_slice(&few.as_slice()[..part.len()]));
    let (mut result, mut words) = (Batch::<T>::zeros(layout(batch)?)?, vec![0; batch]);
    let mut pivots = vec![0; if routine == Routine::Lu { batch * order } else { 0 }];
    let prepared = AnyBackend::prepare(backend, &routine.problem::<T>(batch, order)?, &Options::default())?;
    let mut workspace = backend.workspace(&prepared)?;
    let mut times = Vec::new();
    for _ in 0..=repetitions {
        if routine == Routine::Lu {
            result.as_mut_slice().copy_from_slice(a.as_slice());
        }
        let (start, report) = (Instant::now(), ReportMut::new(&mut words[..]));
        if routine == Routine::Lu {
            let (source, mut lu) = (Source::InPlace, result.view_mut());
            backend.run_factorize(
                &prepared,
                FactorizeArgs::new(&source, &mut lu, &mut pivots[..], report),
                &mut workspace,
            )?;
        } else {
            let (source, mut x) = (Source::Matrix(a.view()), result.view_mut());
            backend.run_invert(&prepared, InvertArgs::new(&source, &mut x, report), &mut workspace)?;
        }
        times.push(1e3 * start.elapsed().as_secs_f64());
    }
    let ratio = |b: usize| {
        let (a, result) = (a.view().matrix(b)?, result.view().matrix(b)?);
        Some(match routine {
            Routine::Lu => factorization_ratio(a, result, pivots.get(b * order..(b + 1) * order)?),
            Routine::Inverse => inverse_ratio(a, result),
            Routine::Solve | Routine::SolveMany => return None,
        })
    };
    let places = (0..CHECKED).map(|k| k * (batch - 1) / (CHECKED - 1));
    let residual = places.map(|b| ratio(b).unwrap_or(f64::INFINITY)).fold(0.0, f64::max);
    if residual.is_nan() || residual >= LIMIT {
        let what = format!("the result is wrong: residual ratio {residual:.1}, not below {LIMIT}");
        return Err(Error::new(ErrorKind::Device, "measure", what).advise("do not use its time"));
    }
    Timing::of(&times[1..], flops, residual, prepared.plan().to_string())
}

/// The processor's name for itself.
fn processor() -> String {
    let lines = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = lines.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}
