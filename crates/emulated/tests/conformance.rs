//! The conformance suite on the kernels' own text, run without a GPU. Without a C++ compiler every test says `skipped` and why;
//! `BATCHLA_REQUIRE=emulated` makes that a failure.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use batchla_core::{Complex, Error, Options};
use batchla_cuda::{Cuda, CudaPlan};
use batchla_emulated::{Checks, Emulated};
use batchla_testkit::{Scope, conformance};

fn gpu(architecture: &str, seed: u64, checks: Checks) -> Result<Cuda, Error> {
    Emulated::new(architecture).seed(seed).checks(checks).open()
}

/// Some of the orders: each costs minutes of the C++ compiler. All of them, with every type: `cargo xtask emulated`.
const fn at(orders: &'static [usize]) -> Scope {
    Scope { orders, ..Scope::EMULATED }
}

// The planner's own plans at every edge of a warp and a panel, each with some type; half of them on an architecture without warp reductions.
conformance!(emulated_f32, f32, at(&[0, 1, 3, 17, 65]), gpu("sm_70", 1, Checks::None));
conformance!(emulated_f64, f64, at(&[0, 2, 5, 16, 33]), gpu("sm_90", 2, Checks::None));
conformance!(emulated_c32, Complex<f32>, at(&[0, 1, 3, 8, 32]), gpu("sm_90", 3, Checks::None));
conformance!(emulated_c64, Complex<f64>, at(&[0, 2, 5, 31]), gpu("sm_70", 4, Checks::None));

/// Every access watched; `properties` watches the other two types.
mod watched {
    use super::*;

    const fn at(orders: &'static [usize]) -> Scope {
        Scope { name: "watched", orders, thorough: 3, many: None, huge: None }
    }

    conformance!(emulated_f32, f32, at(&[3, 17]), gpu("sm_90", 5, Checks::All));
    conformance!(emulated_c64, Complex<f64>, at(&[2, 33]), gpu("sm_70", 6, Checks::All));
}

/// What goes from memory to registers and back, compiled for one order alone.
mod in_registers {
    use super::*;

    const SCOPE: Scope = Scope { name: "watched", orders: &[5, 11], thorough: 5, many: None, huge: None };

    conformance!(
        emulated_f64,
        f64,
        SCOPE,
        gpu("sm_90", 7, Checks::All),
        Options::default().with_plan("resident:exact=1")
    );
}

/// Every plan through the whole suite, on either side of the architectures' branches, watched on one of them: `cargo xtask emulated`.
mod whole {
    use super::*;
    use batchla_core::Scalar;
    use batchla_testkit::{CHECKS, check};

    const WATCHED: Scope =
        Scope { name: "watched", orders: &[1, 2, 5, 8, 16, 17, 33], thorough: 5, many: None, huge: None };

    fn every_plan_conforms<T: Scalar>() {
        let mut wrong = Vec::new();
        for (seed, plan) in (T::KIND as u64..).zip(CudaPlan::NAMES) {
            let (one, other) = if seed % 2 == 0 { ("sm_70", "sm_90") } else { ("sm_90", "sm_70") };
            for (architecture, checks, scope) in [(one, Checks::None, Scope::EMULATED), (other, Checks::All, WATCHED)] {
                let gpu = gpu(architecture, 1 + seed, checks).unwrap();
                let options = Options::default().with_plan(plan);
                for name in CHECKS {
                    match check::<T, _>(&gpu, name, &scope, &options) {
                        Ok(tally) => println!("{plan} on {architecture}, {checks:?}, {name}: {tally}"),
                        Err(what) => wrong.push(format!("{plan} on {architecture}, {checks:?}, {name}: {what}")),
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    macro_rules! of_scalars {
        ($($name:ident $scalar:ty;)*) => {$(
            #[test]
            #[ignore = "minutes: cargo xtask emulated"]
            fn $name() {
                every_plan_conforms::<$scalar>();
            }
        )*};
    }

    of_scalars! {
        every_plan_conforms_f32 f32;
        every_plan_conforms_f64 f64;
        every_plan_conforms_c32 Complex<f32>;
        every_plan_conforms_c64 Complex<f64>;
    }
}
