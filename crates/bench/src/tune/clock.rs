//! The clock of a GPU: plans compiled side by side, timed by events, and timed only where their results are right.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use batchla_core::{Backend, Error, Operation, Scalar, ScalarKind};
use batchla_cuda::{Cuda, Limits, TunedLayout};

use super::times::Clock;
use crate::figure::{Contestant, Routine};
use crate::measure::Arena;
use crate::roof::device_copy;

/// Repetitions of a measurement, of which the median counts.
const REPETITIONS: usize = 3;
/// The part of the device's memory that a batch, its copy and its result take at most: one part in so many.
const SHARE: u64 = 8;

/// Matrices of an order, of `many`: more of small ones, whose launches would else be timed; fewer of large ones; and no more than memory holds.
pub(super) fn batch_of(many: usize, order: usize, scalar: ScalarKind, limits: &Limits) -> usize {
    let bytes = (order * order * scalar.bytes()).max(1) as u64;
    let room = limits.memory_bytes / SHARE / bytes;
    let share = match order {
        0..=16 => many.saturating_mul(10),
        17..=190 => many,
        191..=384 => many.saturating_mul(2) / 5,
        _ => many / 10,
    };
    share.min(usize::try_from(room).unwrap_or(usize::MAX)).max(1)
}

/// Plans timed on a GPU.
pub(crate) struct GpuClock<T: Scalar> {
    gpu: Cuda,
    routine: Routine,
    layout: TunedLayout,
    batch: usize,
    start: Instant,
    arena: Option<(usize, Arena<T>)>,
    /// Bytes a second, read and written, of a copy on the device.
    pub(crate) copy: f64,
}

impl<T: Scalar> GpuClock<T> {
    pub(crate) fn new(gpu: &Cuda, operation: Operation, layout: TunedLayout, batch: usize) -> Result<Self, Error> {
        let routine = if operation == Operation::Factorize { Routine::Lu } else { Routine::Inverse };
        let (gpu, start, copy) = (gpu.clone(), Instant::now(), device_copy(gpu)?);
        Ok(Self { gpu, routine, layout, batch, start, arena: None, copy })
    }

    /// Matrices of an order: see [`batch_of`].
    pub(crate) fn batch_of(&self, order: usize) -> usize {
        batch_of(self.batch, order, T::KIND, self.gpu.device().limits())
    }

    /// What share of the roofline a time is: that of reading and writing each matrix once, at the speed of a copy.
    pub(crate) fn share(&self, order: usize, ms: f64) -> f64 {
        let bytes = 2 * self.batch_of(order) * order * order * T::KIND.bytes();
        bytes as f64 / self.copy * 1e3 / ms
    }

    pub(crate) fn routine(&self) -> Routine {
        self.routine
    }
}

impl<T: Scalar> Clock for GpuClock<T> {
    fn prepare(&mut self, order: usize, plans: &[&str]) {
        let (next, batch) = (AtomicUsize::new(0), self.batch_of(order));
        let problem = self.layout.problem(T::KIND, self.routine.operation(), batch, order);
        let (Ok(problem), gpu) = (problem, &self.gpu) else { return };
        std::thread::scope(|scope| {
            for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(plans.len()) {
                scope.spawn(|| {
                    while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
                        // What fails here fails again, with its reason, when it is timed.
                        let _ = gpu.prepare(&problem, &Contestant::options(plan));
                    }
                });
            }
        });
    }

    fn time(&mut self, order: usize, plan: &str) -> Result<Result<f64, String>, Error> {
        let arena = match self.arena.take().filter(|(at, _)| *at == order) {
            Some((_, arena)) => Ok(arena),
            None => Arena::of(&self.gpu, self.routine, self.layout, order, self.batch_of(order)),
        };
        let timed = arena.and_then(|arena| {
            let (_, arena) = self.arena.insert((order, arena));
            arena.measure(&Contestant::Plan(plan.to_owned()), None, REPETITIONS)
        });
        match timed {
            Ok(timing) => Ok(Ok(timing.median_ms)),
            // After this nothing on the device can be trusted.
            Err(error) if self.gpu.synchronize().is_err() => Err(error),
            Err(error) => Ok(Err(error.to_string())),
        }
    }

    fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }
}
