//! A process that meets many orders: how long until all of them are inverted, from host memory to host memory.

use std::sync::Arc;
use std::time::Instant;

use batchla_core::{Batch, BatchLayout, BatchedInvert, Error, Options, Problem, SourceKind};
use batchla_cuda::driver::Real;
use batchla_cuda::{Cuda, CudaHost, Device, DiskCache, LazyNvrtc, Origin};
use batchla_testkit::{Generator, LIMIT, inverse_ratio};

use crate::host::wrong;
use crate::measure::SEED;
use crate::record::Table;

/// The columns of `orders.csv`.
pub const ORDERS_HEADER: &str = "kernels,step,orders,batch,seconds,kernels_compiled,kernels_from_disk,residual_ratio";

/// Inversions of small batches of float64 matrices of many orders.
#[derive(Clone, Debug)]
pub struct Orders {
    /// Which orders.
    pub orders: Vec<usize>,
    /// Matrices of each.
    pub batch: usize,
}

impl Orders {
    /// Opens a GPU three times with a new, empty folder of compiled kernels: nothing is compiled, all is on disk, all is loaded.
    ///
    /// # Errors
    /// What the device reports; a wrong result; a table or folder that cannot be written.
    pub fn run(&self, ordinal: usize, table: &mut Table, tell: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let folder = tempfile::tempdir().map_err(|error| crate::record::unwritable(&std::env::temp_dir(), error))?;
        let open = || -> Result<CudaHost, Error> {
            let (driver, compiler) = (Arc::new(Real::open(ordinal)?), Arc::new(LazyNvrtc::newest()));
            let device = Device::with(driver, ordinal, compiler, DiskCache::at(folder.path().join("kernels")))?;
            CudaHost::new([Cuda::on(&device)?])
        };
        self.pass(&open()?, "cold", table, tell)?;
        let host = open()?;
        self.pass(&host, "on disk", table, tell)?;
        self.pass(&host, "loaded", table, tell)
    }

    /// Makes all kernels ready at once, then inverts a batch of each order.
    fn pass(&self, host: &CudaHost, name: &str, table: &mut Table, tell: &mut dyn FnMut(&str)) -> Result<(), Error> {
        let layout = |&n: &usize| BatchLayout::column_major(self.batch, n, n);
        let layouts: Vec<_> = self.orders.iter().map(layout).collect::<Result<_, _>>()?;
        let input = |layout: &BatchLayout| Generator::Uniform.batch::<f64>(*layout, SEED);
        let inputs: Vec<Batch<f64>> = layouts.iter().map(input).collect::<Result<_, _>>()?;

        let begun = Instant::now();
        let problem = |a: &BatchLayout| Problem::invert::<f64>(SourceKind::Matrix, *a, *a);
        let problems: Vec<_> = layouts.iter().map(problem).collect::<Result<_, _>>()?;
        let kernels = host.warm(&problems, &Options::default())?;
        let ready = begun.elapsed().as_secs_f64();
        let inverses = inputs.iter().map(|a| host.invert(a)).collect::<Result<Vec<_>, _>>()?;
        let total = begun.elapsed().as_secs_f64();

        let mut worst = 0.0f64;
        for (a, inverse) in inputs.iter().zip(&inverses) {
            for (a, x) in
                a.view().matrices().zip(inverse.batch.view().matrices()).step_by(self.batch.div_ceil(4).max(1))
            {
                let ratio = inverse_ratio(a, x);
                if ratio.is_nan() || ratio >= LIMIT {
                    return Err(wrong(format!("order {}: residual ratio {ratio:.1}", a.rows())));
                }
                worst = worst.max(ratio);
            }
        }
        let from = |origin| kernels.iter().filter(|kernel| kernel.origin == origin).count();
        let (compiled, disk) = (from(Origin::Compiled), from(Origin::Disk));
        let (orders, batch) = (self.orders.len(), self.batch);
        for (step, seconds) in [("kernels ready", ready), ("inversions", total - ready), ("all", total)] {
            table.line(&format!("{name},{step},{orders},{batch},{seconds:.4},{compiled},{disk},{worst:.4}"))?;
        }
        tell(&format!(
            "{name}: {orders} orders in {total:.2} s, {ready:.2} s of it until {compiled} kernels were compiled and {disk} read from disk"
        ));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use batchla_core::ErrorKind;
    use batchla_cuda::Limits;
    use batchla_emulated::Emulated;

    use super::*;

    fn measured(gpu: Cuda) -> Result<String, Error> {
        let folder = tempfile::tempdir().unwrap();
        let mut table = Table::create_with(folder.path(), "orders", ORDERS_HEADER)?;
        let orders = Orders { orders: (1..7).collect(), batch: 5 };
        orders.pass(&CudaHost::new([gpu])?, "cold", &mut table, &mut |_| {})?;
        Ok(std::fs::read_to_string(folder.path().join("orders.csv")).unwrap())
    }

    #[test]
    fn orders_that_are_inverted_have_their_times() {
        match Emulated::new("sm_90").open() {
            Err(error) if error.kind() == ErrorKind::Unavailable => println!("skipped: {error}"),
            opened => {
                let text = measured(opened.unwrap()).unwrap();
                assert_eq!(text.lines().count(), 1 + 3, "{text}");
                assert!(text.lines().all(|line| line.split(',').count() == 8), "{text}");
            }
        }
    }

    #[test]
    fn a_device_that_computes_nothing_gets_no_time() {
        let (device, _fake) = Device::fake(Limits::preset("sm_90").unwrap()).unwrap();
        let error = measured(Cuda::on(&device).unwrap()).unwrap_err();
        assert!(error.to_string().contains("the result is wrong"), "{error}");
    }
}
