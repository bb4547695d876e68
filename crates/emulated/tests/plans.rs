//! Every plan is one arithmetic: on either side of the architectures' branches, in any order of turns, with every access watched, it
//! gives the bits of the planner's own.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use batchla_core::{
    Backend, Batch, BatchLayout, BatchedFactorize, BatchedInvert, Complex, Error, ErrorKind, Extras, FactorizeArgs,
    InvertArgs, Memory, Options, Problem, Real, Report, Scalar, Source, SourceKind,
};
use batchla_cuda::{Cuda, CudaPlan, DeviceMemory};
use batchla_emulated::{Checks, Emulated};
use batchla_testkit::Generator;

/// An emulated GPU; without a C++ compiler, says so.
fn open(emulated: Emulated) -> Option<Cuda> {
    match emulated.open() {
        Err(error) if error.kind() == ErrorKind::Unavailable && !required() => {
            println!("skipped: {error}");
            None
        }
        opened => Some(opened.unwrap()),
    }
}

fn required() -> bool {
    std::env::var("BATCHLA_REQUIRE").is_ok_and(|names| names.split(',').any(|name| name == "emulated"))
}

/// What a run leaves: inverses with their determinants, and factors.
#[derive(Debug, PartialEq)]
struct Left {
    inverses: Vec<u64>,
    factors: Vec<u64>,
    determinants: Vec<u64>,
    pivots: Vec<u32>,
}

fn bits<T: Scalar>(x: T) -> [u64; 2] {
    [x.re(), x.im()].map(|part| part.to_f64().to_bits())
}

fn run<T: Scalar>(gpu: &Cuda, plan: &str, host: &Batch<T>, rows: bool) -> Result<Left, Error> {
    let (batch, n) = (host.batch(), host.layout().rows());
    let options = Options::default().with_plan(plan);
    let out = if rows { BatchLayout::row_major(batch, n, n)? } else { BatchLayout::column_major(batch, n, n)? };
    let a = gpu.to_device(host)?;
    let extras = Extras::none().with_determinant().with_condition();
    let problem = Problem::invert::<T>(SourceKind::Matrix, *host.layout(), out)?.with_extras(extras)?;
    let prepared = gpu.prepare(&problem, &options)?;
    let mut workspace = gpu.workspace(&prepared)?;
    let (mut x, mut report) = (gpu.allocate_batch::<T>(out)?, Report::allocate(gpu, batch, extras)?);
    let source = Source::Matrix(a.view());
    gpu.run_invert(&prepared, InvertArgs::new(&source, &mut x.view_mut(), report.view_mut()), &mut workspace)?;
    let factorize = Problem::factorize::<T>(SourceKind::Matrix, *host.layout(), out)?;
    let prepared = gpu.prepare(&factorize, &options)?;
    let mut workspace = gpu.workspace(&prepared)?;
    let (mut lu, mut pivots) = (gpu.allocate_batch::<T>(out)?, gpu.allocate::<u32>(batch * n)?);
    let mut outcomes = Report::allocate(gpu, batch, Extras::none())?;
    let mut lu_view = lu.view_mut();
    let arguments = FactorizeArgs::new(&source, &mut lu_view, pivots.slice_mut(), outcomes.view_mut());
    gpu.run_factorize(&prepared, arguments, &mut workspace)?;
    let mut words = vec![0; batch * n];
    DeviceMemory::read(pivots.slice(), &mut words)?;
    let (x, lu) = (gpu.to_host(&x)?, gpu.to_host(&lu)?);
    let elements = |batch: &Batch<T>| batch.as_slice().iter().flat_map(|&x| bits(x)).collect();
    let determinants = report.read_determinants()?.unwrap_or_default();
    Ok(Left {
        inverses: elements(&x),
        factors: elements(&lu),
        determinants: determinants.iter().flat_map(|d| bits(d.sign)).collect(),
        pivots: words,
    })
}

fn every_plan_gives_the_planners_bits<T: Scalar>() {
    let Some(planner) = open(Emulated::new("sm_90")) else { return };
    let numbered = ["left-looking:panel=5,inverse-block=3", "left-looking:panel=4,rows=2,inverse-rows=2,inverse-block=5"];
    for (order, batch) in [(7, 3), (33, 2)] {
        let host: Batch<T> =
            Generator::Normal.batch(BatchLayout::column_major(batch, order, order).unwrap(), 7).unwrap();
        for (turn, plan) in CudaPlan::NAMES.into_iter().chain(numbered).enumerate() {
            let architecture = ["sm_70", "sm_90"][(turn + order) % 2];
            let watched = Emulated::new(architecture).seed(turn as u64).checks(Checks::All);
            let watched = open(watched).unwrap();
            for rows in [false, true] {
                let expected = run(&planner, "left-looking", &host, rows).unwrap();
                let left = run(&watched, plan, &host, rows);
                let left = left.unwrap_or_else(|error| panic!("{plan} on {architecture}, order {order}: {error}"));
                assert!(left == expected, "{plan} on {architecture}, order {order}, rows first: {rows}");
            }
        }
    }
}

#[test]
fn every_plan_gives_the_planners_bits_f32() {
    every_plan_gives_the_planners_bits::<f32>();
}

#[test]
fn every_plan_gives_the_planners_bits_f64() {
    every_plan_gives_the_planners_bits::<f64>();
}

#[test]
fn every_plan_gives_the_planners_bits_c32() {
    every_plan_gives_the_planners_bits::<Complex<f32>>();
}

#[test]
fn every_plan_gives_the_planners_bits_c64() {
    every_plan_gives_the_planners_bits::<Complex<f64>>();
}

#[test]
fn the_order_of_turns_changes_no_bit() {
    let Some(ascending) = open(Emulated::new("sm_80")) else { return };
    let host: Batch<f64> = Generator::SmallIntegers.batch(BatchLayout::column_major(9, 40, 40).unwrap(), 7).unwrap();
    let expected = run(&ascending, "left-looking", &host, false).unwrap();
    for seed in 1..20 {
        let permuted = Emulated::new("sm_80").seed(seed).open().unwrap();
        assert!(run(&permuted, "left-looking", &host, false).unwrap() == expected, "seed {seed}");
    }
}
