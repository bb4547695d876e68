//! One measurement: a contestant on a batch that lies on the device, and whether its result is right.

use batchla_core::{
    Backend, Batch, BatchLayout, BatchedFactorize, BatchedInvert, BatchedSolve, Error, ErrorKind, FactorizeArgs,
    InvertArgs, Memory, Prepared, ReportMut, Scalar, SolveArgs, Source, Transpose,
};
use batchla_cuda::{Cuda, DeviceArray, DeviceMemory, TunedLayout};
use batchla_testkit::{Generator, LIMIT, factorization_ratio, inverse_ratio, solution_ratio};

use crate::cublas::{Cublas, MATINV_ORDER, Operands};
use crate::figure::{Contestant, Routine};
use crate::sample::Sample;

/// Different matrices of a batch; the others repeat them. More would take longer to make than to factor.
pub(crate) const DIFFERENT: usize = 64;
/// Matrices of a batch whose result is checked.
pub(crate) const CHECKED: usize = 4;
pub(crate) const SEED: u64 = 2023;
/// Words of a copy that takes longer than the host takes to queue a repetition.
const LEAD: usize = 1 << 25;

/// How long a contestant took.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// The median of the repetitions.
    pub median_ms: f64,
    /// The shortest.
    pub min_ms: f64,
    /// By the median and the usual counts of operations.
    pub gflops: f64,
    /// The largest residual ratio of the matrices looked at.
    pub residual: f64,
    /// The plan with its numbers, for ours.
    pub details: String,
}

impl Timing {
    /// Of repetitions that took so many milliseconds each.
    pub(crate) fn of(times: &[f64], flops: f64, residual: f64, details: String) -> Result<Self, Error> {
        let sample = Sample::of(times).ok_or_else(|| unsupported("no repetition was asked for"))?;
        let gflops = flops / (sample.median * 1e6);
        Ok(Self { median_ms: sample.median, min_ms: sample.min, gflops, residual, details })
    }
}

/// A batch on the device with room for results: made once, for all contestants of an order.
#[derive(Debug)]
pub(crate) struct Arena<T: Scalar> {
    gpu: Cuda,
    routine: Routine,
    layout: TunedLayout,
    order: usize,
    batch: usize,
    host: Batch<T>,
    a: Batch<T, DeviceMemory>,
    /// A copy of the matrices, made anew before each repetition; LU is done in its place.
    work: Batch<T, DeviceMemory>,
    /// Inverses, or right-hand sides and solutions in their place; of no matrix for LU.
    x: Batch<T, DeviceMemory>,
    /// Right-hand sides, which are copied there before each repetition, and the different ones on the host.
    b: Batch<T, DeviceMemory>,
    sides: Batch<T>,
    pivots: DeviceArray<u32>,
    words: DeviceArray<u32>,
    /// One is copied to the other before each repetition.
    lead: [DeviceArray<u32>; 2],
    /// The results that were looked at last, and their ratio: plans of one arithmetic give the same.
    looked_at: Option<(Vec<T>, Vec<u32>, f64)>,
}

impl<T: Scalar> Arena<T> {
    /// Matrices column-major, as cuBLAS and MAGMA want them.
    pub(crate) fn new(gpu: &Cuda, routine: Routine, order: usize, batch: usize) -> Result<Self, Error> {
        Self::of(gpu, routine, TunedLayout::ColumnMajor, order, batch)
    }

    pub(crate) fn of(
        gpu: &Cuda,
        routine: Routine,
        lying: TunedLayout,
        order: usize,
        batch: usize,
    ) -> Result<Self, Error> {
        let layout = |batch| lying.of(batch, order);
        let host = Generator::Uniform.batch::<T>(layout(batch.min(DIFFERENT))?, SEED)?;
        let columns = routine.columns(order);
        let beside = |batch| BatchLayout::column_major(if columns > 0 { batch } else { 0 }, order, columns.max(1));
        // The first columns of other matrices.
        let others = Generator::Uniform.batch::<T>(layout(batch.min(DIFFERENT))?, SEED + 1)?;
        let few = beside(batch.min(DIFFERENT))?;
        let side = |b, i, j| others.get(b, i, j).unwrap_or_else(T::nan);
        let sides = Batch::from_fn(few.batch(), order, few.cols(), side)?;
        let a = repeated(gpu, &host, layout(batch)?)?;
        let results = match routine {
            Routine::Lu => layout(0)?,
            Routine::Inverse => layout(batch)?,
            Routine::Solve | Routine::SolveMany => beside(batch)?,
        };
        Ok(Self {
            gpu: gpu.clone(),
            routine,
            layout: lying,
            order,
            batch,
            host,
            a,
            work: gpu.allocate_batch(layout(batch)?)?,
            x: gpu.allocate_batch(results)?,
            b: repeated(gpu, &sides, beside(batch)?)?,
            sides,
            pivots: gpu.allocate(batch * order)?,
            words: gpu.allocate(batch)?,
            lead: [gpu.allocate(LEAD)?, gpu.allocate(LEAD)?],
            looked_at: None,
        })
    }

    /// Matrices.
    pub(crate) fn batch(&self) -> usize {
        self.batch
    }

    /// Times a contestant; its time counts only if its results are right.
    pub(crate) fn measure(
        &mut self,
        contestant: &Contestant,
        cublas: Option<&Cublas>,
        repetitions: usize,
    ) -> Result<Timing, Error> {
        let flops = self.routine.problem::<T>(self.batch, self.order)?.flops();
        if *contestant == Contestant::Copy {
            let times =
                self.repeat(repetitions, |arena| DeviceMemory::copy(arena.a.slice(), arena.work.slice_mut()))?;
            return Timing::of(&times, flops, 0.0, "each matrix read and written once".to_owned());
        }
        if self.routine == Routine::Inverse {
            // Nobody is given the inverses of the one before.
            DeviceMemory::copy(self.a.slice(), self.x.slice_mut())?;
        }
        let (times, details) = match contestant {
            Contestant::Plan(plan) => self.ours(plan, repetitions)?,
            peer => {
                let cublas = cublas.ok_or_else(|| unsupported(&format!("there is no {}", peer.name(self.routine))))?;
                (self.peer(peer, cublas, repetitions)?, format!("cuBLAS {}", cublas.version()))
            }
        };
        let residual = self.residual(*contestant == Contestant::Cublas)?;
        if residual.is_nan() || residual >= LIMIT {
            let what = format!("the result is wrong: residual ratio {residual:.1}, not below {LIMIT}");
            return Err(Error::new(ErrorKind::Device, "measure", what).advise("do not use its time"));
        }
        Timing::of(&times, flops, residual, details)
    }

    fn ours(&mut self, plan: &str, repetitions: usize) -> Result<(Vec<f64>, String), Error> {
        let gpu = self.gpu.clone();
        let problem = self.routine.problem_lying::<T>(self.layout, self.batch, self.order)?;
        let prepared = gpu.prepare(&problem, &Contestant::options(plan))?;
        let mut workspace = gpu.workspace(&prepared)?;
        let times = self.repeat(repetitions, |arena| {
            let report = ReportMut::new(arena.words.slice_mut());
            if arena.routine == Routine::Lu {
                let (source, mut lu) = (Source::InPlace, arena.work.view_mut());
                let args = FactorizeArgs::new(&source, &mut lu, arena.pivots.slice_mut(), report);
                return gpu.run_factorize(&prepared, args, &mut workspace);
            }
            let (source, mut x) = (Source::Matrix(arena.work.view()), arena.x.view_mut());
            if arena.routine == Routine::Inverse {
                gpu.run_invert(&prepared, InvertArgs::new(&source, &mut x, report), &mut workspace)
            } else {
                gpu.run_solve(&prepared, SolveArgs::new(&source, None, &mut x, report), &mut workspace)
            }
        })?;
        Ok((times, prepared.plan().to_string()))
    }

    fn peer(&mut self, peer: &Contestant, cublas: &Cublas, repetitions: usize) -> Result<Vec<f64>, Error> {
        let small = *peer == Contestant::CublasMatinv;
        if small && self.order > MATINV_ORDER {
            return Err(unsupported(&format!("matinvBatched goes up to order {MATINV_ORDER}")));
        }
        let (square, columns) = (self.order * self.order, self.routine.columns(self.order));
        let a = self.pointers(self.work.slice().as_raw(), square)?;
        let x = self.pointers(self.x.slice().as_raw(), if columns > 0 { self.order * columns } else { square })?;
        self.repeat(repetitions, |arena| {
            let operands = Operands {
                scalar: T::KIND,
                order: arena.order,
                batch: arena.batch,
                a: a.slice(),
                x: x.slice(),
                pivots: arena.pivots.slice(),
                info: arena.words.slice(),
            };
            match arena.routine {
                _ if small => cublas.matinv(&operands),
                Routine::Lu => cublas.getrf(&operands),
                Routine::Inverse => cublas.getrf(&operands).and_then(|()| cublas.getri(&operands)),
                Routine::Solve | Routine::SolveMany => {
                    cublas.getrf(&operands).and_then(|()| cublas.getrs(&operands, columns))
                }
            }
        })
    }

    /// Pointers to the matrices of a batch, `each` elements apart, on the device, as pairs of words.
    fn pointers(&self, first: u64, each: usize) -> Result<DeviceArray<u32>, Error> {
        let step = (each * size_of::<T>()) as u64;
        let words: Vec<u32> = (0..self.batch as u64)
            .map(|b| first + b * step)
            .flat_map(|pointer| [pointer as u32, (pointer >> 32) as u32])
            .collect();
        let mut array = self.gpu.allocate(words.len())?;
        self.gpu.write(&words, array.slice_mut())?;
        Ok(array)
    }

    /// Milliseconds of each repetition, after one that is not counted. The copies before each are not timed, and while they run the host queues
    /// what is: short kernels are not measured by the host's speed.
    fn repeat(
        &mut self,
        repetitions: usize,
        mut run: impl FnMut(&mut Self) -> Result<(), Error>,
    ) -> Result<Vec<f64>, Error> {
        let stream = self.gpu.stream().clone();
        let mut marks = Vec::new();
        for _ in 0..=repetitions {
            DeviceMemory::copy(self.a.slice(), self.work.slice_mut())?;
            if self.routine.columns(1) > 0 {
                DeviceMemory::copy(self.b.slice(), self.x.slice_mut())?;
            }
            let [from, to] = &mut self.lead;
            DeviceMemory::copy(from.slice(), to.slice_mut())?;
            let start = stream.record()?;
            run(self)?;
            marks.push((start, stream.record()?));
        }
        stream.synchronize()?;
        marks.iter().skip(1).map(|(start, end)| end.elapsed_ms(start).map(f64::from)).collect()
    }

    /// The largest residual ratio of a few matrices, from the first to the last.
    fn residual(&mut self, one_based: bool) -> Result<f64, Error> {
        let (n, columns) = (self.order, self.routine.columns(self.order));
        let result = if self.routine == Routine::Lu { &self.work } else { &self.x };
        let layout = match columns {
            0 => self.layout.of(CHECKED, n)?,
            _ => BatchLayout::column_major(CHECKED, n, columns)?,
        };
        let (mut few, square) = (Batch::<T>::zeros(layout)?, if columns > 0 { n * columns } else { n * n });
        let mut pivots = vec![0u32; CHECKED * n];
        let places: Vec<usize> = (0..CHECKED).map(|k| k * self.batch.saturating_sub(1) / (CHECKED - 1)).collect();
        for (k, &b) in places.iter().enumerate() {
            let (Some(matrix), Some(exchanges)) =
                (result.slice().part(b * square..(b + 1) * square), self.pivots.slice().part(b * n..(b + 1) * n))
            else {
                return Ok(f64::INFINITY);
            };
            DeviceMemory::read(matrix, &mut few.as_mut_slice()[k * square..(k + 1) * square])?;
            DeviceMemory::read(exchanges, &mut pivots[k * n..(k + 1) * n])?;
        }
        pivots.iter_mut().for_each(|pivot| *pivot = pivot.wrapping_sub(u32::from(one_based)));
        let pivots = if self.routine == Routine::Lu { pivots } else { Vec::new() };
        let seen = |(results, exchanges, _): &&(Vec<T>, Vec<u32>, f64)| {
            results.as_slice() == few.as_slice() && *exchanges == pivots
        };
        if let Some((_, _, ratio)) = self.looked_at.as_ref().filter(seen) {
            return Ok(*ratio);
        }
        let ratio = |(k, b): (usize, &usize)| {
            let (a, result) = (self.host.view().matrix(b % DIFFERENT)?, few.view().matrix(k)?);
            Some(match self.routine {
                Routine::Lu => factorization_ratio(a, result, &pivots[k * n..(k + 1) * n]),
                Routine::Inverse => inverse_ratio(a, result),
                Routine::Solve | Routine::SolveMany => {
                    solution_ratio(a, Transpose::None, result, self.sides.view().matrix(b % DIFFERENT)?)
                }
            })
        };
        let all = places.iter().enumerate().map(|place| ratio(place).unwrap_or(f64::INFINITY));
        let worst = all.fold(0.0, f64::max);
        self.looked_at = Some((few.as_slice().to_vec(), pivots, worst));
        Ok(worst)
    }
}

/// A batch on the device that repeats one on the host.
fn repeated<T: Scalar>(gpu: &Cuda, few: &Batch<T>, layout: BatchLayout) -> Result<Batch<T, DeviceMemory>, Error> {
    let block = gpu.to_device(few)?;
    let mut all = gpu.allocate_batch::<T>(layout)?;
    let (span, step) = (all.layout().span(), block.layout().span().max(1));
    for first in (0..span).step_by(step) {
        let count = step.min(span - first);
        if let (Some(from), Some(to)) = (block.slice().part(0..count), all.slice_mut().part(first..first + count)) {
            DeviceMemory::copy(from, to)?;
        }
    }
    Ok(all)
}

fn unsupported(what: &str) -> Error {
    Error::new(ErrorKind::Unsupported, "measure", what)
}

#[cfg(test)]
mod tests {
    use batchla_cuda::{Device, Limits};

    use super::*;

    #[test]
    fn a_device_that_computes_nothing_gets_no_time() {
        let (device, _) = Device::fake(Limits::preset("sm_90").unwrap()).unwrap();
        let gpu = Cuda::on(&device).unwrap();
        for routine in [Routine::Lu, Routine::Inverse, Routine::Solve, Routine::SolveMany] {
            let mut arena = Arena::<f64>::new(&gpu, routine, 5, 130).unwrap();
            let copy = gpu.to_host(&arena.a).unwrap();
            assert_eq!(copy.get(129, 3, 4), arena.host.get(1, 3, 4));
            assert!(arena.measure(&Contestant::Copy, None, 2).is_ok(), "a copy has no result to be wrong");
            let ours = Contestant::Plan("left-looking".to_owned());
            let error = arena.measure(&ours, None, 2).unwrap_err();
            assert!(error.to_string().contains("the result is wrong"), "{error}");
            let error = arena.measure(&Contestant::Cublas, None, 2).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
        }
    }
}
