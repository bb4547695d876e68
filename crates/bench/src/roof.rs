//! What a machine allows: a CPU's fastest matrix product, and the fastest copy of either (Williams, Waterman, Patterson 2009).

use std::time::Instant;

use batchla_core::{Backend, Error, ErrorKind};
use batchla_cuda::{Cuda, DeviceMemory};
use faer::linalg::matmul::matmul;
use faer::traits::ComplexField;
use faer::{Accum, Mat, Par};
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::{ParallelSlice, ParallelSliceMut};

/// Order of the product: large enough that memory does not bound it.
const ORDER: usize = 1024;
/// Numbers of an array that is copied: beyond the caches.
const LENGTH: usize = 1 << 24;
/// Words of such an array on a GPU.
const DEVICE_LENGTH: usize = 1 << 27;
/// The fastest of so many counts.
const TRIALS: usize = 5;

/// The roofs of a machine, on the threads at hand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Roof {
    /// Bytes read and written a second.
    pub(crate) bytes: f64,
}

impl Roof {
    /// Measures the copy.
    pub(crate) fn measure() -> Result<Self, Error> {
        let missing =
            |_| Error::new(ErrorKind::OutOfMemory, "measure", "there is no memory for the copy that is measured");
        let (mut from, mut to) = (Vec::new(), Vec::new());
        from.try_reserve_exact(LENGTH).map_err(missing)?;
        to.try_reserve_exact(LENGTH).map_err(missing)?;
        from.resize(LENGTH, 1.0f64);
        to.resize(LENGTH, 0.0f64);
        let part = LENGTH.div_ceil(4 * rayon::current_num_threads());
        let seconds = fastest(|| {
            to.par_chunks_mut(part).zip(from.par_chunks(part)).for_each(|(to, from)| to.copy_from_slice(from));
        });
        Ok(Self { bytes: (2 * 8 * LENGTH) as f64 / seconds })
    }

    /// GFLOP/s that nothing exceeds which does so many operations, and moves so many bytes, at the speed of this peak.
    pub(crate) fn over(self, peak: f64, flops: f64, bytes: f64) -> f64 {
        peak.min(flops / bytes * self.bytes / 1e9)
    }
}

/// GFLOP/s of a matrix product; `each` is the operations of a product and a sum.
pub(crate) fn peak<T: ComplexField>(one: T, each: f64) -> f64 {
    let (a, mut c) = (Mat::<T>::from_fn(ORDER, ORDER, |_, _| one.clone()), Mat::<T>::zeros(ORDER, ORDER));
    let seconds = fastest(|| matmul(c.as_mut(), Accum::Replace, a.as_ref(), a.as_ref(), one.clone(), Par::rayon(0)));
    each * (ORDER * ORDER * ORDER) as f64 / seconds / 1e9
}

/// Bytes that a GPU reads and writes a second: the fastest of a few copies on the device.
pub(crate) fn device_copy(gpu: &Cuda) -> Result<f64, Error> {
    let words = DEVICE_LENGTH.min(usize::try_from(gpu.device().limits().memory_bytes / 64).unwrap_or(DEVICE_LENGTH));
    let (from, mut to) = (gpu.allocate::<u32>(words)?, gpu.allocate::<u32>(words)?);
    let mut fastest = f64::INFINITY;
    for _ in 0..5 {
        let start = gpu.stream().record()?;
        DeviceMemory::copy(from.slice(), to.slice_mut())?;
        fastest = fastest.min(f64::from(gpu.stream().record()?.elapsed_ms(&start)?));
    }
    if fastest > 0.0 {
        return Ok((8 * words) as f64 / fastest * 1e3);
    }
    Err(Error::new(ErrorKind::Device, "measure", "a copy on the device took no time").advise("run `batchla devices`"))
}

fn fastest(mut run: impl FnMut()) -> f64 {
    let timed = |_| {
        let start = Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    (0..TRIALS).map(timed).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lower_roof_counts() {
        let roof = Roof { bytes: 10e9 };
        assert_eq!(roof.over(100.0, 1.0, 1.0), 10.0);
        assert_eq!(roof.over(100.0, 50.0, 1.0), 100.0);
    }
}
