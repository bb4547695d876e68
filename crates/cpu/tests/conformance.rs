//! The CPU backend under the whole suite: as it plans itself, and with each plan forced.

use batchla_core::{BatchLayout, Complex, Error, Options};
use batchla_cpu::{Cpu, CpuScalar, InstructionSet};
use batchla_testkit::{Generator, Reference, Scope, conformance, cross_check};

conformance!(cpu_f32, f32, Scope::FULL, Ok(Cpu::new()));
conformance!(cpu_f64, f64, Scope::FULL, Ok(Cpu::new()));
conformance!(cpu_c32, Complex<f32>, Scope::FULL, Ok(Cpu::new()));
conformance!(cpu_c64, Complex<f64>, Scope::FULL, Ok(Cpu::new()));

conformance!(interleaved_f32, f32, Scope::QUICK, Ok(Cpu::new()), forced("interleaved"));
conformance!(interleaved_f64, f64, Scope::QUICK, Ok(Cpu::new()), forced("interleaved"));
conformance!(interleaved_c32, Complex<f32>, Scope::QUICK, Ok(Cpu::new()), forced("interleaved"));
conformance!(interleaved_c64, Complex<f64>, Scope::QUICK, Ok(Cpu::new()), forced("interleaved"));
conformance!(blocked_f32, f32, Scope::QUICK, Ok(Cpu::new()), forced("blocked"));
conformance!(blocked_f64, f64, Scope::QUICK, Ok(Cpu::new()), forced("blocked"));
conformance!(blocked_c32, Complex<f32>, Scope::QUICK, Ok(Cpu::new()), forced("blocked"));
conformance!(blocked_c64, Complex<f64>, Scope::QUICK, Ok(Cpu::new()), forced("blocked"));
conformance!(faer_f32, f32, Scope::QUICK, Ok(Cpu::new()), forced("faer"));
conformance!(faer_f64, f64, Scope::QUICK, Ok(Cpu::new()), forced("faer"));
conformance!(faer_c32, Complex<f32>, Scope::QUICK, Ok(Cpu::new()), forced("faer"));
conformance!(faer_c64, Complex<f64>, Scope::QUICK, Ok(Cpu::new()), forced("faer"));

// What the planner makes of narrower vectors, where the machine has them.
conformance!(avx2_f32, f32, Scope::QUICK, on(InstructionSet::Avx2));
conformance!(avx2_f64, f64, Scope::QUICK, on(InstructionSet::Avx2));
conformance!(avx2_c32, Complex<f32>, Scope::QUICK, on(InstructionSet::Avx2));
conformance!(avx2_c64, Complex<f64>, Scope::QUICK, on(InstructionSet::Avx2));
conformance!(avx2_blocked_f32, f32, Scope::QUICK, on(InstructionSet::Avx2), forced("blocked"));
conformance!(avx2_blocked_c64, Complex<f64>, Scope::QUICK, on(InstructionSet::Avx2), forced("blocked"));
conformance!(portable_f32, f32, Scope::QUICK, on(InstructionSet::Portable));
conformance!(portable_f64, f64, Scope::QUICK, on(InstructionSet::Portable));
conformance!(portable_c32, Complex<f32>, Scope::QUICK, on(InstructionSet::Portable));
conformance!(portable_c64, Complex<f64>, Scope::QUICK, on(InstructionSet::Portable));
conformance!(portable_blocked_f64, f64, Scope::QUICK, on(InstructionSet::Portable), forced("blocked"));
conformance!(portable_blocked_c32, Complex<f32>, Scope::QUICK, on(InstructionSet::Portable), forced("blocked"));

fn forced(plan: &str) -> Options {
    Options::default().with_plan(plan)
}

fn on(set: InstructionSet) -> Result<Cpu, Error> {
    Cpu::builder().instruction_set(set).build()
}

conformance!(one_thread_f64, f64, Scope::QUICK, Cpu::builder().threads(1).build());
conformance!(many_threads_grain_one_f32, f32, Scope::QUICK, Cpu::builder().threads(5).grain(1).build());

/// The cross-check that a new backend is first looked at with: outcomes and pivots beside the reference.
fn agrees_with_the_reference<T: CpuScalar>() -> Result<(), Error> {
    for (n, seed) in [(5, 1), (24, 2), (33, 3), (100, 4)] {
        let a = Generator::Normal.batch::<T>(BatchLayout::column_major(60, n, n)?, seed)?;
        let agreement = cross_check(&Cpu::new(), &Reference, &a)?;
        println!("{} n={n}: {agreement}", T::KIND);
        assert!(agreement.holds() && agreement.exempt_share() == 0.0, "{} n={n}: {agreement}", T::KIND);
    }
    Ok(())
}

#[test]
fn pivots_and_outcomes_are_the_references_on_random_input() -> Result<(), Error> {
    agrees_with_the_reference::<f32>()?;
    agrees_with_the_reference::<f64>()?;
    agrees_with_the_reference::<Complex<f32>>()?;
    agrees_with_the_reference::<Complex<f64>>()
}
