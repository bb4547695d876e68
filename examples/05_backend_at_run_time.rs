//! A backend chosen when the program runs, by name, with a forced plan: `cargo run --example 05_backend_at_run_time -- cpu`.

use batchla::{
    AnyBackend, Backend, Batch, BatchLayout, BatchedInvert, Error, Extras, Options, Prepared, Problem, SourceKind,
};
use batchla_testkit::Reference;

fn main() -> Result<(), Error> {
    let backend = match std::env::args().nth(1).as_deref() {
        None => batchla::auto()?,
        Some("reference") => AnyBackend::new(Reference), // anybody's backend comes in this way
        Some(name) => batchla::backend(name)?,
    };
    println!("{}: {}", backend.describe(), backend.why());

    // What would run, and why not otherwise: no data needed.
    let layout = BatchLayout::row_major(300, 20, 20)?;
    let problem = Problem::invert::<f32>(SourceKind::Matrix, layout, layout)?;
    let prepared = backend.prepare(&problem, &Options::default())?;
    println!("{problem}\n  plan: {}\n  workspace: {} bytes", prepared.plan(), prepared.workspace_bytes());
    match backend.prepare(&problem, &Options::default().with_plan("abacus")) {
        Err(error) => println!("  {error}"),
        Ok(_) => unreachable!("there is no such plan"),
    }

    // The very plan can be forced by its name, and gives the same bits.
    let a = Batch::<f32>::from_fn(300, 20, 20, |b, i, j| if i == j { 5.0 } else { ((b + i * j) % 3) as f32 })?;
    let a = a.to_layout(layout)?;
    let forced = Options::default().with_plan(prepared.plan().name());
    let (chosen, forced) = (backend.invert(&a)?, backend.invert_with(&a, Extras::none().with_condition(), &forced)?);
    assert_eq!(chosen.batch.as_slice(), forced.batch.as_slice());
    let worst = forced.report.conditions().unwrap_or(&[]).iter().fold(0.0, |max: f32, &c| max.max(c));
    println!("300 matrices inverted twice, with equal bits; the largest condition number is {worst:.1}");
    Ok(())
}
