//! The CPU backend under the whole suite: as it plans itself, and with each plan forced.

use batchla_core::{Complex, Options};
use batchla_cpu::Cpu;
use batchla_testkit::{Scope, conformance};

conformance!(cpu_f32, f32, Scope::FULL, Ok(Cpu::new()));
conformance!(cpu_f64, f64, Scope::FULL, Ok(Cpu::new()));
conformance!(cpu_c32, Complex<f32>, Scope::FULL, Ok(Cpu::new()));
conformance!(cpu_c64, Complex<f64>, Scope::FULL, Ok(Cpu::new()));

conformance!(unblocked_f32, f32, Scope::QUICK, Ok(Cpu::new()), Options::default().with_plan("unblocked"));
conformance!(unblocked_c64, Complex<f64>, Scope::QUICK, Ok(Cpu::new()), Options::default().with_plan("unblocked"));
conformance!(faer_f64, f64, Scope::QUICK, Ok(Cpu::new()), Options::default().with_plan("faer"));
conformance!(faer_c32, Complex<f32>, Scope::QUICK, Ok(Cpu::new()), Options::default().with_plan("faer"));

conformance!(one_thread_f64, f64, Scope::QUICK, Cpu::builder().threads(1).build());
conformance!(many_threads_grain_one_f32, f32, Scope::QUICK, Cpu::builder().threads(5).grain(1).build());
