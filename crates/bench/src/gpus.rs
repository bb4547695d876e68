//! Several GPUs beside one: batches that lie in parts on them, and host batches that they share.

use std::time::Instant;

use batchla_core::{
    Batch, BatchLayout, BatchedInvert, Error, Extras, InvertArgs, Options, Prepared, Problem, Report, Source,
    SourceKind,
};
use batchla_cuda::{Cuda, CudaGroup, CudaHost};
use batchla_testkit::{Generator, LIMIT, inverse_ratio};

use crate::host::wrong;
use crate::measure::{DIFFERENT, SEED};
use crate::record::Table;
use crate::sample::Sample;

/// The columns of `gpus.csv`.
pub const GPUS_HEADER: &str =
    "measurement,order,batch,gpus,median_ms_one,median_ms_all,speedup,bits,residual_ratio,details";

/// Runs that are timed together: the host's part of them is hidden behind the GPU's.
const TOGETHER: usize = 8;

/// Inversions of float64 matrices on all of some GPUs, beside the first alone.
#[derive(Clone, Debug)]
pub struct Gpus {
    /// The GPUs, at least one.
    pub gpus: Vec<Cuda>,
    /// Which orders.
    pub orders: Vec<usize>,
    /// How many matrices.
    pub batch: usize,
    /// How often each is measured; the median counts.
    pub repetitions: usize,
}

impl Gpus {
    /// Measures, and writes each row as soon as it is there.
    ///
    /// # Errors
    /// What a device reports; bits that differ; a table that cannot be written.
    pub fn run(&self, table: &mut Table, tell: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let (group, first) = (CudaGroup::new(self.gpus.iter().cloned())?, &self.gpus[0]);
        let (all, one) = (CudaHost::new(self.gpus.iter().cloned())?, CudaHost::new([first.clone()])?);
        for &order in &self.orders {
            let layout = BatchLayout::column_major(self.batch, order, order)?;
            let different = Generator::Uniform.batch::<f64>(layout.with_batch(DIFFERENT.min(self.batch))?, SEED)?;
            let values = different.as_slice().iter().copied().cycle().take(layout.span()).collect();
            let a = Batch::from_vec(values, layout)?;
            let on_device = [self.timed(first, &a, TOGETHER)?, self.timed(&group, &a, TOGETHER)?];
            let on_host = [self.timed(&one, &a, 1)?, self.timed(&all, &a, 1)?];
            for (name, [one, all]) in [("in parts on each", on_device), ("from host memory", on_host)] {
                let bits = |x: &Batch<f64>| x.as_slice().iter().map(|x| x.to_bits()).collect::<Vec<_>>();
                if bits(&one.x) != bits(&all.x) {
                    return Err(wrong(format!("{name}, order {order}: bits differ from those of one GPU")));
                }
                let last = self.batch.saturating_sub(1);
                let matrices = a.view().matrix(last).zip(all.x.view().matrix(last));
                let ratio = matrices.map_or(0.0, |(a, x)| inverse_ratio(a, x));
                if ratio.is_nan() || ratio >= LIMIT {
                    return Err(wrong(format!("{name}, order {order}: residual ratio {ratio:.1}")));
                }
                let (count, speedup, plan) = (self.gpus.len(), one.ms / all.ms, all.plan.replace(',', ";"));
                table.line(&format!(
                    "{name},{order},{},{count},{:.5},{:.5},{speedup:.3},equal,{ratio:.4},{plan}",
                    self.batch, one.ms, all.ms
                ))?;
                tell(&format!("{name}, order {order}: {count} GPUs {speedup:.2} times as fast as one, bits equal"));
            }
        }
        Ok(())
    }

    /// Inverts a batch that lies where the backend has its memory.
    fn timed<B: BatchedInvert<f64>>(&self, backend: &B, a: &Batch<f64>, together: usize) -> Result<Timed, Error> {
        let problem = Problem::invert::<f64>(SourceKind::Matrix, *a.layout(), *a.layout())?;
        let prepared = backend.prepare(&problem, &Options::default())?;
        let mut workspace = backend.workspace(&prepared)?;
        let (a, mut x) = (backend.to_device(a)?, backend.allocate_batch::<f64>(*a.layout())?);
        let mut report = Report::allocate(backend, a.batch(), Extras::none())?;
        let mut times = Vec::new();
        for _ in 0..=self.repetitions {
            backend.synchronize()?;
            let begun = Instant::now();
            for _ in 0..together {
                let (source, mut view) = (Source::Matrix(a.view()), x.view_mut());
                let args = InvertArgs::new(&source, &mut view, report.view_mut());
                backend.run_invert(&prepared, args, &mut workspace)?;
            }
            backend.synchronize()?;
            times.push(begun.elapsed().as_secs_f64() * 1e3 / together as f64);
        }
        let sample = Sample::of(&times[1..]).ok_or_else(|| wrong("no repetition was asked for".to_owned()))?;
        Ok(Timed { ms: sample.median, x: backend.to_host(&x)?, plan: prepared.plan().to_string() })
    }
}

/// How long an inversion took, and what it gave.
struct Timed {
    ms: f64,
    x: Batch<f64>,
    plan: String,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use batchla_core::ErrorKind;
    use batchla_cuda::driver::fake::{Fake, FakeCompiler};
    use batchla_cuda::{Device, DiskCache, Limits};
    use batchla_emulated::Emulated;

    use super::*;

    fn measured(gpus: Vec<Cuda>) -> Result<String, Error> {
        let folder = tempfile::tempdir().unwrap();
        let mut table = Table::create_with(folder.path(), "gpus", GPUS_HEADER)?;
        Gpus { gpus, orders: vec![3, 9], batch: 70, repetitions: 1 }.run(&mut table, &mut |_| {})?;
        Ok(std::fs::read_to_string(folder.path().join("gpus.csv")).unwrap())
    }

    #[test]
    fn gpus_that_compute_have_a_row_for_each_order_and_place() {
        let opened: Result<Vec<_>, _> = (0..2).map(|ordinal| Emulated::new("sm_90").ordinal(ordinal).open()).collect();
        match opened {
            Err(error) if error.kind() == ErrorKind::Unavailable => println!("skipped: {error}"),
            opened => {
                let text = measured(opened.unwrap()).unwrap();
                assert_eq!(text.lines().count(), 1 + 4, "{text}");
                assert!(text.lines().all(|line| line.split(',').count() == 10), "{text}");
            }
        }
    }

    #[test]
    fn gpus_that_compute_nothing_get_no_row() {
        let gpu = |ordinal| {
            let (driver, compiler) = (Fake::new(Limits::preset("sm_90").unwrap()), FakeCompiler::default());
            Cuda::on(&Device::with(Arc::new(driver), ordinal, Arc::new(compiler), DiskCache::off()).unwrap()).unwrap()
        };
        let error = measured(vec![gpu(0), gpu(1)]).unwrap_err();
        assert!(error.to_string().contains("the result is wrong"), "{error}");
    }
}
