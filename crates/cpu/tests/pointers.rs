//! Small orders by every plan, in every layout, on guarded memory: few enough steps for an interpreter that watches every pointer
//! (`cargo xtask miri`).

use batchla_core::{Complex, Error, Options};
use batchla_cpu::Cpu;
use batchla_testkit::{Scope, conformance};

const SCOPE: Scope = Scope { name: "pointers", orders: &[0, 1, 3, 5, 9], thorough: 3, many: None, huge: None };

fn cpu() -> Result<Cpu, Error> {
    Cpu::builder().threads(1).build()
}

fn forced(plan: &str) -> Options {
    Options::default().with_plan(plan)
}

conformance!(interleaved_f32, f32, SCOPE, cpu(), forced("interleaved"));
conformance!(interleaved_c64, Complex<f64>, SCOPE, cpu(), forced("interleaved"));
conformance!(blocked_f64, f64, SCOPE, cpu(), forced("blocked"));
conformance!(blocked_c32, Complex<f32>, SCOPE, cpu(), forced("blocked"));
