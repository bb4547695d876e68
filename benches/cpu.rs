//! The CPU backend beside the plain loop, by criterion: `cargo bench --bench cpu`, or `-- 'inverse f64'` for some of it.
//!
//! Throughput is in matrices. For a verdict rather than a look, see the benchmark `ratio`.

mod contest;
mod plain;

use std::error::Error;
use std::time::Duration;

use batchla::Complex;
use batchla_cpu::CpuScalar;
use criterion::{BenchmarkId, Criterion, Throughput};

use crate::contest::{Contest, Side, Task, Threads};

const ORDERS: [usize; 6] = [8, 16, 32, 64, 128, 256];

/// How long the plain loop takes for one batch, about.
const WORK: Duration = Duration::from_millis(4);

fn main() -> Result<(), Box<dyn Error>> {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500))
        .configure_from_args();
    let threads = Threads::new(None)?;
    eprintln!("{}", threads.describe());
    for task in Task::ALL {
        group::<f32>(&mut criterion, &threads, task)?;
        group::<f64>(&mut criterion, &threads, task)?;
        group::<Complex<f32>>(&mut criterion, &threads, task)?;
        group::<Complex<f64>>(&mut criterion, &threads, task)?;
    }
    criterion.final_summary();
    Ok(())
}

fn group<T: CpuScalar>(criterion: &mut Criterion, threads: &Threads, task: Task) -> Result<(), Box<dyn Error>> {
    let mut group = criterion.benchmark_group(format!("{} {}", task.name(), T::KIND));
    for order in ORDERS {
        let mut contest = Contest::<T>::new(threads, task, order, (None, WORK))?;
        let mut failure = None;
        group.throughput(Throughput::Elements(contest.batch() as u64));
        for (side, name) in [(Side::Ours, "batchla"), (Side::Plain, "plain")] {
            group.bench_function(BenchmarkId::new(name, order), |bencher| {
                bencher.iter_custom(|runs| {
                    let spent: Result<Duration, _> = (0..runs).map(|_| contest.time(side)).sum();
                    spent.unwrap_or_else(|error| {
                        failure = Some(error);
                        WORK
                    })
                });
            });
        }
        if let Some(failure) = failure {
            return Err(failure.into());
        }
    }
    group.finish();
    Ok(())
}
