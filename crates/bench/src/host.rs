//! From host memory to host memory: what the link can do, and what an inversion makes of it.

use std::time::Instant;

use batchla_core::{
    Backend, Batch, BatchLayout, BatchMut, BatchRef, BatchedInvert, Error, ErrorKind, Extras, HostMemory, InvertArgs,
    Options, Prepared, Problem, Report, Source, SourceKind,
};
use batchla_cuda::{Cuda, CudaHost, DeviceArray, DeviceMemory, PinnedArray};
use batchla_testkit::{Generator, LIMIT, inverse_ratio};
use rayon::iter::ParallelIterator;
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use crate::measure::{CHECKED, DIFFERENT, SEED};
use crate::record::Table;
use crate::sample::Sample;

/// The columns of `host.csv`.
pub const HOST_HEADER: &str =
    "measurement,memory,order,batch,gigabytes_each_way,median_s,min_s,gb_per_s,share_of_link,residual_ratio,details";

/// Bytes that are copied to learn what the link can do.
const PROBE: usize = 1 << 30;

/// Inversions of float64 matrices from host memory to host memory, beside the rate of the link.
#[derive(Clone, Debug)]
pub struct HostPath {
    /// The GPUs that share the batch.
    pub gpus: Vec<Cuda>,
    /// Order of the matrices.
    pub order: usize,
    /// Bytes of the whole batch.
    pub bytes: usize,
    /// How often each is measured; the median counts.
    pub repetitions: usize,
}

/// Gigabytes a second of page-locked copies, up and down, each alone and both at once (the slower of the two).
#[derive(Clone, Copy, Debug)]
struct Link {
    up: f64,
    down: f64,
    both: f64,
}

fn gigabytes(bytes: usize) -> f64 {
    bytes as f64 * 1e-9
}

impl HostPath {
    /// Measures, and writes each row as soon as it is there.
    ///
    /// # Errors
    /// What a device reports; a wrong result; a table that cannot be written.
    pub fn run(&self, table: &mut Table, tell: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let layout = BatchLayout::column_major(1, self.order, self.order)?;
        let batch = (self.bytes / (layout.span() * 8).max(1)).max(1);
        let layout = layout.with_batch(batch)?;
        let mut link: Option<Link> = None;
        for gpu in &self.gpus {
            let one = self.link(gpu)?;
            for (name, rate) in [("copy up", one.up), ("copy down", one.down), ("copies both ways at once", one.both)] {
                let number = gpu.device().ordinal();
                let probe = gigabytes(PROBE.min(self.bytes));
                table.line(&format!("{name},pinned,,,{probe:.3},,,{rate:.2},,,GPU {number}"))?;
                tell(&format!("{name}, GPU {number}: {rate:.1} GB/s"));
            }
            let sum =
                |link: Link| Link { up: link.up + one.up, down: link.down + one.down, both: link.both + one.both };
            link = Some(link.map_or(one, sum));
        }
        // An inversion takes as much up as down: the busier way is the slower one.
        let rate = link.map_or(f64::NAN, |link| link.up.min(link.down));

        let different = Generator::Uniform.batch::<f64>(layout.with_batch(DIFFERENT.min(batch))?, SEED)?;
        let host = CudaHost::new(self.gpus.iter().cloned())?;
        let expected = self.expected(&different)?;
        let mut record = |name: &str, memory: &str, times: &[f64], residual: f64, details: &str| -> Result<(), Error> {
            let sample = Sample::of(times).ok_or_else(|| wrong("no repetition was asked for".to_owned()))?;
            let (size, order) = (gigabytes(layout.span() * 8), self.order);
            let reached = size / sample.median;
            let (share, details) = (reached / rate, details.replace(',', ";"));
            table.line(&format!(
                "{name},{memory},{order},{batch},{size:.3},{:.5},{:.5},{reached:.2},{share:.3},{residual:.4},{details}",
                sample.median, sample.min
            ))?;
            tell(&format!(
                "{name}, {memory}: {reached:.1} GB/s each way, {:.0} % of the link; {details}",
                100.0 * share
            ));
            Ok(())
        };

        let mut a = Batch::<f64>::zeros(layout)?;
        repeat_into(&different, a.as_mut_slice());
        let mut x = Batch::<f64>::zeros(layout)?;
        let (times, details) = self.times(&host, a.view(), x.view_mut())?;
        record("invert", "ordinary", &times, self.check(&different, &expected, x.as_slice())?, &details)?;

        // A third of the batch at most is on each GPU at any time.
        x.as_mut_slice().fill(0.0);
        let bound = (layout.span() * 8 / 3) as u64;
        let small = host.clone().with_memory_bytes(bound);
        let (times, details) = self.times(&small, a.view(), x.view_mut())?;
        let details = format!("device memory bounded to {bound} bytes; {details}");
        record(
            "invert three times the bound",
            "ordinary",
            &times,
            self.check(&different, &expected, x.as_slice())?,
            &details,
        )?;
        drop(x);

        let begun = Instant::now();
        let inverse = host.invert(&a)?;
        let times = [begun.elapsed().as_secs_f64()];
        let residual = self.check(&different, &expected, inverse.batch.as_slice())?;
        record("invert with the result allocated", "ordinary", &times, residual, "")?;
        drop((a, inverse));

        let device = self.gpus[0].device();
        let mut a = PinnedArray::<f64>::zeroed(device, layout.span())?;
        let mut x = PinnedArray::<f64>::zeroed(device, layout.span())?;
        repeat_into(&different, &mut a);
        let (times, details) = self.times(&host, BatchRef::new(&a, layout)?, BatchMut::new(&mut x, layout)?)?;
        record("invert", "pinned", &times, self.check(&different, &expected, &x)?, &details)
    }

    /// What the link of a GPU can do.
    fn link(&self, gpu: &Cuda) -> Result<Link, Error> {
        let len = PROBE.min(self.bytes) / 8;
        let (up, down) = (Cuda::on(gpu.device())?, Cuda::on(gpu.device())?);
        let mut there: [DeviceArray<f64>; 2] = [up.allocate(len)?, down.allocate(len)?];
        let from = PinnedArray::<f64>::zeroed(gpu.device(), len)?;
        let mut to = PinnedArray::<f64>::zeroed(gpu.device(), len)?;
        let rate = |seconds: f64| gigabytes(len * 8) / seconds;
        let timed = |work: &mut (dyn FnMut() -> Result<(), Error> + Send)| -> Result<f64, Error> {
            let mut fastest = f64::INFINITY;
            for _ in 0..=self.repetitions {
                let begun = Instant::now();
                work()?;
                fastest = fastest.min(begun.elapsed().as_secs_f64());
            }
            Ok(fastest)
        };
        let [first, second] = &mut there;
        let mut send = || DeviceMemory::write(&from, first.slice_mut());
        let alone_up = timed(&mut send)?;
        let mut fetch = || <DeviceMemory as batchla_core::Memory>::read(second.slice(), &mut to);
        let alone_down = timed(&mut fetch)?;
        let (sent, fetched) = rayon::join(|| timed(&mut send), || timed(&mut fetch));
        Ok(Link { up: rate(alone_up), down: rate(alone_down), both: rate(sent?.max(fetched?)) })
    }

    /// Seconds of each repetition, after one that is not counted, and the plan.
    fn times(
        &self,
        host: &CudaHost,
        a: BatchRef<'_, f64>,
        mut x: BatchMut<'_, f64>,
    ) -> Result<(Vec<f64>, String), Error> {
        let problem = Problem::invert::<f64>(SourceKind::Matrix, *a.layout(), *x.layout())?;
        let prepared = host.prepare(&problem, &Options::default())?;
        let mut workspace = host.workspace(&prepared)?;
        let mut report = Report::<f64, HostMemory>::allocate(host, a.batch(), Extras::none())?;
        let (source, mut times) = (Source::Matrix(a), Vec::new());
        for _ in 0..=self.repetitions {
            let begun = Instant::now();
            host.run_invert(&prepared, InvertArgs::new(&source, &mut x, report.view_mut()), &mut workspace)?;
            times.push(begun.elapsed().as_secs_f64());
        }
        let details = format!("{} matrices at a time; {}", prepared.chunk(), prepared.plan());
        Ok((times.split_off(1), details))
    }

    /// The inverses of the different matrices, computed on the first GPU alone in its own memory.
    fn expected(&self, different: &Batch<f64>) -> Result<Batch<f64>, Error> {
        let gpu = &self.gpus[0];
        gpu.to_host(&gpu.invert(&gpu.to_device(different)?)?.batch)
    }

    /// The largest residual ratio of a few matrices, all of whose bits, repeated, the result must have.
    fn check(&self, a: &Batch<f64>, expected: &Batch<f64>, x: &[f64]) -> Result<f64, Error> {
        let equal = |(x, y): (&f64, &f64)| x.to_bits() == y.to_bits();
        let same = x.par_chunks(expected.as_slice().len().max(1)).all(|x| x.iter().zip(expected.as_slice()).all(equal));
        if !same {
            return Err(wrong("bits differ from those of one GPU with its data in place".to_owned()));
        }
        let each = (0..CHECKED).map(|k| k * a.batch().saturating_sub(1) / (CHECKED - 1));
        let ratios = each.filter_map(|b| Some(inverse_ratio(a.view().matrix(b)?, expected.view().matrix(b)?)));
        let worst = ratios.fold(0.0, |worst: f64, ratio| if ratio > worst || ratio.is_nan() { ratio } else { worst });
        if worst < LIMIT { Ok(worst) } else { Err(wrong(format!("residual ratio {worst:.1}, not below {LIMIT}"))) }
    }
}

/// Fills a batch with some matrices again and again.
fn repeat_into(different: &Batch<f64>, all: &mut [f64]) {
    let different = different.as_slice();
    all.par_chunks_mut(different.len().max(1)).for_each(|part| part.copy_from_slice(&different[..part.len()]));
}

pub(crate) fn wrong(what: String) -> Error {
    Error::new(ErrorKind::Device, "measure", format!("the result is wrong: {what}")).advise("do not use its time")
}

#[cfg(test)]
mod tests {
    use batchla_cuda::{Device, Limits};

    use super::*;

    #[test]
    fn a_device_that_computes_has_a_row_for_every_way() {
        let gpu = match batchla_emulated::Emulated::new("sm_90").open() {
            Err(error) if error.kind() == ErrorKind::Unavailable => return println!("skipped: {error}"),
            opened => opened.unwrap(),
        };
        let folder = tempfile::tempdir().unwrap();
        let mut table = Table::create_with(folder.path(), "host", HOST_HEADER).unwrap();
        HostPath { gpus: vec![gpu], order: 8, bytes: 300 * 512, repetitions: 1 }.run(&mut table, &mut |_| {}).unwrap();
        let text = std::fs::read_to_string(folder.path().join("host.csv")).unwrap();
        assert_eq!(text.lines().count(), 1 + 3 + 4, "{text}");
        assert!(text.lines().all(|line| line.split(',').count() == 11), "{text}");
    }

    #[test]
    fn a_device_that_computes_nothing_gets_no_row_of_an_inversion() {
        let (device, _fake) = Device::fake(Limits::preset("sm_90").unwrap()).unwrap();
        let gpus = vec![Cuda::on(&device).unwrap()];
        let folder = tempfile::tempdir().unwrap();
        let mut table = Table::create_with(folder.path(), "host", HOST_HEADER).unwrap();
        let bench = HostPath { gpus, order: 8, bytes: 1 << 20, repetitions: 2 };
        let error = bench.run(&mut table, &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("the result is wrong"), "{error}");
        let text = std::fs::read_to_string(folder.path().join("host.csv")).unwrap();
        assert!(text.contains("copy up,pinned") && !text.contains("invert"), "{text}");
    }
}
