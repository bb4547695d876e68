//! The conformance suite: what every backend must do, as functions generic over backend and scalar, and a macro that names them.
//!
//! # For authors of a backend
//! One line in a test of your own crate runs everything for one scalar:
//!
//! ```
//! batchla_testkit::conformance!(reference_f64, f64, batchla_testkit::Scope::QUICK, Ok(batchla_testkit::Reference));
//! # fn main() {}
//! ```
//!
//! The last argument is an expression that makes the backend, of type `Result<B, batchla_core::Error>`. An error of kind
//! [`Unavailable`](batchla_core::ErrorKind::Unavailable) (no such device here) prints `skipped` and why, unless the environment variable `BATCHLA_REQUIRE` names the
//! backend's module; any other error fails. [`run`] does the same without the test harness and returns a table, for machines that
//! have no `cargo`.
//!
//! Every check runs on guarded memory: gaps of layouts and tails behind arrays are filled, inputs with NaN, and held against what they
//! were; inputs must come back unchanged, every pivot and outcome must have been written. A check that compared nothing fails.

mod accuracy;
mod arguments;
mod contract;
mod failed;
mod guarded;
mod order;

use std::fmt;

use batchla_core::{Error, ErrorKind, Options, Scalar};

pub use guarded::Complete;
use guarded::Guarded;
pub use order::Order;

/// How much of the suite is run.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Its name, for reports.
    pub name: &'static str,
    /// The orders of the covering set.
    pub orders: &'static [usize],
    /// The largest order of the checks that run every operation in every layout.
    pub thorough: usize,
    /// The large batch, run at orders up to 33.
    pub many: Option<usize>,
    /// The batch beyond 65 535 matrices, run at orders up to 4.
    pub huge: Option<usize>,
}

impl Scope {
    /// A few orders: seconds.
    pub const QUICK: Self =
        Self { name: "quick", orders: &[0, 1, 2, 3, 5, 8, 16, 17, 33, 64], thorough: 17, many: Some(100), huge: None };
    /// All orders to 200, and batches beyond 65 535.
    pub const FULL: Self = Self {
        name: "full",
        orders: &[0, 1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 47, 63, 64, 65, 96, 100, 128, 129, 190, 200],
        thorough: 33,
        many: Some(1000),
        huge: Some(65_537),
    };
    /// For kernels run on an emulated GPU: every edge of a warp and a panel, small batches.
    pub const EMULATED: Self = Self {
        name: "emulated",
        orders: &[0, 1, 2, 3, 5, 8, 16, 17, 31, 32, 33, 65],
        thorough: 5,
        many: None,
        huge: None,
    };
}

/// What a check looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tally {
    /// Comparisons made: matrices, solutions, errors.
    pub compared: usize,
    /// The largest residual ratio met, where the check has one.
    pub worst: f64,
    /// Matrices whose pivots were exempt because of a tie within rounding.
    pub exempt: usize,
}

impl Tally {
    fn add(&mut self, ratio: f64) {
        self.compared += 1;
        self.worst = self.worst.max(ratio);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} compared", self.compared)?;
        if self.worst > 0.0 {
            write!(f, ", largest residual ratio {:.3}", self.worst)?;
        }
        if self.exempt > 0 {
            write!(
                f,
                ", pivots of {} ({:.3} %) exempt for ties",
                self.exempt,
                100.0 * self.exempt as f64 / self.compared as f64
            )?;
        }
        Ok(())
    }
}

/// What a check found: how much it compared, or in words what is wrong.
pub type Verdict = Result<Tally, String>;

/// One property of backend `B` for scalar `T`.
type Check<B> = fn(&Guarded<'_, B>, &Scope) -> Verdict;

macro_rules! checks {
    ($d:tt $($module:ident :: $name:ident),* $(,)?) => {
        /// The names of all checks, as sentences.
        pub const CHECKS: &[&str] = &[$(stringify!($name)),*];

        fn check_named<T: Scalar, B: Complete<T>>(name: &str) -> Option<Check<B>> {
            match name {
                $(stringify!($name) => Some($module::$name::<T, B>),)*
                _ => None,
            }
        }

        /// Names every check of the suite as a test of a module: `conformance!(module, scalar, scope, backend)`, where `backend` is an
        /// expression of type `Result<B, batchla_core::Error>`; a fifth argument gives the [`Options`](batchla_core::Options) that every run is
        /// prepared with, for a forced plan. See [the suite](crate::run) for what is checked.
        #[macro_export]
        macro_rules! conformance {
            ($d module:ident, $d scalar:ty, $d scope:expr, $d backend:expr) => {
                $d crate::conformance!($d module, $d scalar, $d scope, $d backend, ::core::default::Default::default());
            };
            ($d module:ident, $d scalar:ty, $d scope:expr, $d backend:expr, $d options:expr) => {
                mod $d module {
                    #[allow(unused_imports)]
                    use super::*;
                    $(
                        #[test]
                        fn $name() {
                            $d crate::assert_conforms::<$d scalar, _>(
                                stringify!($d module), stringify!($name), &$d scope, $d backend, &$d options,
                            );
                        }
                    )*
                }
            };
        }
    };
}

checks! { $
    accuracy::factors_multiply_back_to_the_matrix,
    accuracy::pivots_are_lapacks_but_for_ties,
    accuracy::exact_arithmetic_gives_exact_factors,
    accuracy::the_inverse_times_the_matrix_is_the_identity,
    accuracy::solutions_solve_their_systems,
    accuracy::determinants_are_the_product_of_the_pivots,
    contract::one_bad_matrix_spares_its_neighbours,
    contract::the_same_matrix_gives_the_same_bits,
    contract::orders_and_places_keep_bits_and_gaps,
    contract::empty_batches_and_orders_zero_and_one_work,
    contract::extremes_of_the_range_keep_the_contract,
    arguments::bad_arguments_give_the_documented_error,
    arguments::what_was_prepared_runs_again_and_on_smaller_batches,
    arguments::enormous_batches_are_prepared_in_64_bits,
}

/// Runs one check by name, every run prepared with `options`.
///
/// # Errors
/// What is wrong, in words; also where there is no such check, or it compared nothing.
pub fn check<T: Scalar, B: Complete<T>>(backend: &B, name: &str, scope: &Scope, options: &Options) -> Verdict {
    let check = check_named::<T, B>(name).ok_or_else(|| format!("there is no check {name:?}"))?;
    match check(&Guarded { backend, options }, scope) {
        Ok(tally) if tally.compared == 0 => Err("nothing was compared".to_owned()),
        verdict => verdict,
    }
}

/// Runs every check and gives each one's verdict.
pub fn run<T: Scalar, B: Complete<T>>(backend: &B, scope: &Scope, options: &Options) -> Vec<(&'static str, Verdict)> {
    CHECKS.iter().map(|&name| (name, check::<T, B>(backend, name, scope, options))).collect()
}

/// Runs one check as a test: what [`conformance!`](crate::conformance) expands to.
///
/// # Panics
/// Where the check fails, the backend cannot be made, or it is unavailable though the environment variable `BATCHLA_REQUIRE` names
/// `module` or a part of it.
#[allow(clippy::panic, reason = "a test fails by panicking")]
pub fn assert_conforms<T: Scalar, B: Complete<T>>(
    module: &str,
    name: &str,
    scope: &Scope,
    backend: Result<B, Error>,
    options: &Options,
) {
    let backend = match backend {
        Ok(backend) => backend,
        Err(error) if error.kind() == ErrorKind::Unavailable && !required(module) => {
            println!("skipped: {module}::{name}: {error}");
            return;
        }
        Err(error) => panic!("{module}: the backend cannot be made: {error}"),
    };
    match check::<T, B>(&backend, name, scope, options) {
        Ok(tally) => println!("{module}::{name} ({}): {tally}", scope.name),
        Err(what) => panic!("{module}::{name}: {what}"),
    }
}

/// Whether `BATCHLA_REQUIRE`, a list of names with commas between, has one that `module` starts with.
fn required(module: &str) -> bool {
    std::env::var("BATCHLA_REQUIRE")
        .is_ok_and(|names| names.split(',').any(|name| !name.is_empty() && module.starts_with(name)))
}

#[cfg(test)]
mod tests {
    use batchla_core::Backend;

    use super::*;
    use crate::reference::Reference;

    const NAME: &str = "an_unavailable_backend";

    fn unavailable() -> Result<Reference, Error> {
        Err(Error::new(ErrorKind::Unavailable, "test", "there is none").advise("look elsewhere"))
    }

    fn conforms(backend: Result<Reference, Error>, name: &str) {
        let scope = Scope { orders: &[2], ..Scope::EMULATED };
        assert_conforms::<f64, _>("some_module", name, &scope, backend, &Options::default());
    }

    #[test]
    fn a_check_that_there_is_not_or_that_compares_nothing_fails() {
        let of = |name: &str, orders| {
            check::<f64, _>(&Reference, name, &Scope { orders, ..Scope::EMULATED }, &Options::default())
        };
        assert!(of("no_such_check", &[2]).is_err_and(|what| what.contains("there is no check")));
        assert!(of(CHECKS[0], &[]).is_err_and(|what| what.contains("nothing was compared")));
        assert!(of(CHECKS[0], &[2]).is_ok_and(|tally| tally.compared > 0));
        let all = run::<f64, _>(&Reference, &Scope { orders: &[], ..Scope::EMULATED }, &Options::default());
        assert!(all.iter().map(|(name, _)| *name).eq(CHECKS.iter().copied()), "{}", Reference.name());
    }

    #[test]
    fn a_tally_counts_and_keeps_the_worst() {
        let mut tally = Tally::default();
        [0.5, 2.0, 1.0].into_iter().for_each(|ratio| tally.add(ratio));
        assert_eq!(tally, Tally { compared: 3, worst: 2.0, exempt: 0 });
    }

    #[test]
    fn a_right_backend_conforms() {
        conforms(Ok(Reference), CHECKS[0]);
    }

    #[test]
    #[should_panic(expected = "there is no check")]
    fn a_failed_check_fails_its_test() {
        conforms(Ok(Reference), "no_such_check");
    }

    #[test]
    #[should_panic(expected = "cannot be made")]
    fn a_backend_that_fails_otherwise_than_for_want_of_a_device_fails_its_test() {
        conforms(Err(Error::new(ErrorKind::Device, "test", "broken").advise("mend it")), CHECKS[0]);
    }

    #[test]
    #[ignore = "run by the test below, in a process with an environment of its own"]
    fn an_unavailable_backend() {
        conforms(unavailable(), CHECKS[0]);
    }

    #[test]
    fn an_unavailable_backend_is_skipped_unless_its_module_is_required() -> std::io::Result<()> {
        for (required, passes) in [
            (None, true),
            (Some(""), true),
            (Some("other,"), true),
            (Some("some"), false),
            (Some("other,some_module"), false),
        ] {
            let mut command = std::process::Command::new(std::env::current_exe()?);
            command.env_remove("BATCHLA_REQUIRE").args([
                "--ignored",
                "--exact",
                &format!("conformance::tests::{NAME}"),
            ]);
            required.into_iter().for_each(|names| {
                command.env("BATCHLA_REQUIRE", names);
            });
            let output = command.output()?;
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() == passes && told.contains("running 1 test"), "{required:?}: {told}");
        }
        Ok(())
    }
}
