//! Data that stays on the GPU: prepared once, run twice with one workspace, read back at the end.
//!
//! Nothing but the GPU and its driver's NVRTC is needed; without a GPU the example says so and ends.

use batchla::cuda::Device;
use batchla::{
    Backend, Batch, BatchedInvert, Cuda, Error, Extras, InvertArgs, Options, Outcome, Prepared, Problem, Report,
    Source, SourceKind,
};
use batchla_testkit::{LIMIT, inverse_ratios};

fn main() -> Result<(), Error> {
    let gpu = match Cuda::new() {
        Ok(gpu) => gpu,
        Err(error) if Device::is_absent(&error) => {
            println!("skipped: {error}");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    println!("{}", gpu.describe());

    let (batch, n) = (10_000, 32);
    let host = Batch::<f64>::from_fn(batch, n, n, |b, i, j| {
        if i == j { n as f64 } else { ((7 * b + 3 * i + 5 * j) % 11) as f64 / 11.0 }
    })?;
    let a = gpu.to_device(&host)?;
    let mut x = gpu.allocate_batch::<f64>(*a.layout())?;
    let mut y = gpu.allocate_batch::<f64>(*a.layout())?;

    // Plan, kernels, workspace and reports, once: what allocates and compiles happens here.
    let problem = Problem::invert::<f64>(SourceKind::Matrix, *a.layout(), *x.layout())?;
    let prepared = gpu.prepare(&problem, &Options::default())?;
    let mut workspace = gpu.workspace(&prepared)?;
    let mut reports = [Report::allocate(&gpu, batch, Extras::none())?, Report::allocate(&gpu, batch, Extras::none())?];
    println!("{problem}\n  plan: {}\n  workspace: {} bytes", prepared.plan(), prepared.workspace_bytes());

    // Two runs in the stream's order, the second on what the first leaves: neither waits, and nothing leaves the GPU.
    let from = Source::Matrix(a.view());
    gpu.run_invert(&prepared, InvertArgs::new(&from, &mut x.view_mut(), reports[0].view_mut()), &mut workspace)?;
    let from = Source::Matrix(x.view());
    gpu.run_invert(&prepared, InvertArgs::new(&from, &mut y.view_mut(), reports[1].view_mut()), &mut workspace)?;

    // Reading waits for both.
    let (x, y) = (gpu.to_host(&x)?, gpu.to_host(&y)?);
    for (what, of, inverse, report) in [("A", &host, &x, &reports[0]), ("A⁻¹", &x, &y, &reports[1])] {
        let outcomes: Vec<Outcome> = report.read_outcomes()?;
        assert!(outcomes.iter().all(|outcome| outcome.is_regular()));
        let ratios = inverse_ratios(of, inverse, &outcomes);
        assert!(ratios.compared == batch && ratios.below(LIMIT), "{ratios:?}");
        let worst = ratios.worst.map_or(0.0, |worst| worst.ratio);
        println!("{batch} inverses of {what} of order {n}: the largest residual ratio is {worst:.3}");
    }
    Ok(())
}
