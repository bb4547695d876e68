//! The runs that may show a changed place.

use batchla::{Error, ErrorKind, Options, ScalarKind, Transpose};
use batchla_emulated::{Checks, Emulated, Gaps, Step, Trial};
use batchla_testkit::{Scope, check};

use super::change::Mutant;

const fn trial(scalar: ScalarKind, order: usize, plan: &'static str, step: Step, rows_first: bool) -> Trial {
    // Where many are in a block, the last has one.
    let batch = if order > 16 { Trial::KINDS } else { 17 };
    Trial { scalar, order, plan, step, rows_first, gaps: Gaps::None, batch }
}

/// A matrix a thread, and so many that a warp goes on to others, of which the last is alone.
const fn by_thread(scalar: ScalarKind, order: usize, rows_first: bool, gaps: Gaps) -> Trial {
    Trial { gaps, batch: 2 * 64 + 1, ..trial(scalar, order, "resident:rows=8,panel=8,exact=1", Step::All, rows_first) }
}

const F32: ScalarKind = ScalarKind::F32;
const F64: ScalarKind = ScalarKind::F64;
const C32: ScalarKind = ScalarKind::C32;
const C64: ScalarKind = ScalarKind::C64;

/// Solutions by bands of rows, and by two warps.
const BANDS: &str = "left-looking:solve-panel=8,solve-columns=16,solve-share=16,solve-warps=1,solve-band=32";
const TWO_WARPS: &str = "left-looking:solve-panel=16,solve-columns=16,solve-share=16,solve-warps=2";

/// The likeliest to show anything first.
pub(super) const TRIALS: &[(&str, Trial)] = &[
    ("sm_90", trial(F64, 33, "left-looking", Step::Determinant, false)),
    ("sm_90", trial(F64, 40, "left-looking", Step::Solve(Transpose::None), false)),
    ("sm_90", trial(C64, 33, "left-looking", Step::Solve(Transpose::ConjugateTranspose), true)),
    ("sm_90", trial(F64, 40, "left-looking", Step::Factorize, false)),
    ("sm_70", trial(C32, 7, "left-looking", Step::Factorize, true)),
    ("sm_90", trial(F64, 40, "multi-kernel-two-level:width=8,together=2", Step::Factorize, false)),
    ("sm_90", trial(F64, 40, "left-looking", Step::Invert, false)),
    ("sm_90", trial(F64, 40, "left-looking", Step::Invert, true)),
    ("sm_90", trial(F64, 33, "timely", Step::Invert, false)),
    ("sm_90", trial(F64, 48, "resident", Step::All, false)),
    ("sm_70", trial(C32, 7, "resident", Step::All, true)),
    ("sm_90", by_thread(F64, 5, false, Gaps::None)),
    ("sm_90", by_thread(F32, 3, true, Gaps::Given)),
    ("sm_90", by_thread(C32, 2, false, Gaps::Results)),
    ("sm_90", trial(C32, 11, "resident:exact=1", Step::System, true)),
    ("sm_90", trial(F32, 16, "resident:panel=16,exact=1,solve-columns=4", Step::System, false)),
    ("sm_90", trial(F64, 7, "resident:panel=8,exact=1,solve-columns=0", Step::System, false)),
    ("sm_90", trial(F64, 16, "resident:panel=16,exact=1", Step::All, false)),
    ("sm_90", trial(F64, 70, BANDS, Step::Solve(Transpose::None), false)),
    ("sm_90", trial(C64, 37, BANDS, Step::Solve(Transpose::ConjugateTranspose), true)),
    ("sm_90", trial(F32, 37, TWO_WARPS, Step::Solve(Transpose::None), true)),
    ("sm_90", trial(C64, 33, "left-looking:solve-panel=0", Step::Solve(Transpose::ConjugateTranspose), true)),
    ("sm_90", trial(F64, 11, "resident:exact=1", Step::All, true)),
    ("sm_90", trial(F64, 40, "tree-search", Step::Factorize, true)),
    ("sm_70", trial(F64, 40, "shared-panel", Step::Factorize, true)),
    ("sm_90", trial(F64, 33, "interchange-serial", Step::Factorize, false)),
    ("sm_90", trial(F32, 33, "right-looking", Step::Factorize, true)),
    ("sm_70", trial(F64, 70, "left-looking:panel=14,ahead=4,rows=2", Step::Factorize, false)),
    ("sm_90", trial(F64, 41, "resident:rows=2", Step::All, true)),
    ("sm_90", trial(F32, 45, "resident", Step::All, false)),
    ("sm_90", trial(F64, 41, "resident:inverse-window=16", Step::All, false)),
    ("sm_90", trial(F32, 37, "resident:inverse-window=8,inverse-rows=2", Step::All, true)),
    ("sm_90", trial(F32, 37, "resident:panel=4,helpers=2", Step::All, false)),
    ("sm_90", trial(C64, 21, "dynamic", Step::Invert, true)),
    ("sm_90", trial(F64, 70, "left-looking:inverse-threads=32,inverse-block=5", Step::Invert, false)),
    ("sm_90", trial(F64, 33, "multi-kernel-batched:width=8", Step::Factorize, true)),
    ("sm_70", trial(F64, 33, "multi-kernel:width=8", Step::Factorize, false)),
    ("sm_90", trial(C64, 35, "left-looking", Step::All, false)),
    ("sm_90", trial(F64, 7, "left-looking", Step::All, false)),
    ("sm_90", trial(F64, 9, "left-looking:panel=1,inverse-block=1", Step::All, false)),
    ("sm_90", trial(F64, 70, "timely:inverse-threads=32,inverse-block=5", Step::Invert, false)),
    ("sm_90", trial(F64, 33, "interchange-serial", Step::All, true)),
];

/// The same with so little shared memory that a triangle goes by parts: bytes, and what is run.
const TIGHT: &[(u32, Trial)] = &[
    (1200, trial(F64, 33, "left-looking", Step::Invert, false)),
    (800, trial(F64, 33, "timely", Step::Invert, false)),
];

/// Whether a run compiles a file.
fn reaches(architecture: &str, trial: &Trial, file: &str) -> Result<bool, Error> {
    let kernels = trial.kernels(architecture)?;
    Ok(kernels.iter().any(|kernel| {
        let source = kernel.source();
        source.name == file || source.headers.iter().any(|header| header.0 == file)
    }))
}

/// In one word or two what an error is.
fn words(error: &Error) -> String {
    let text = error.to_string();
    let faults = [
        "out of bounds",
        "uninitialised memory",
        "race",
        "copy under way",
        "barrier not reached by all",
        "divergent warp exchange",
        "undefined behaviour",
        "does not end",
    ];
    let fault = faults.iter().find(|fault| text.contains(&format!("{fault}: block")));
    match fault {
        Some(fault) => format!("check: {fault}"),
        None if error.kind() == ErrorKind::Compile => "does not compile".to_owned(),
        None => format!("error: {}", text.lines().next().unwrap_or_default()),
    }
}

/// What shows a mutant; nothing where no run does.
pub(super) fn shown(mutant: &Mutant) -> Result<Option<String>, Error> {
    let planted = |architecture: &str, seed| {
        let emulated = Emulated::new(architecture).seed(seed).checks(Checks::All);
        emulated.edit(mutant.file, mutant.text, &mutant.changed)
    };
    let sound = Emulated::new("sm_90").open()?;
    let roomy =
        TRIALS.iter().map(|(architecture, trial)| (*architecture, trial, planted(architecture, 3).largest_grid(2)));
    let tight = TIGHT.iter().map(|(bytes, trial)| ("sm_90", trial, planted("sm_90", 3).shared_bytes(*bytes)));
    for (architecture, trial, emulated) in roomy.chain(tight) {
        if !reaches(architecture, trial, mutant.file)? {
            continue;
        }
        match trial.run(&emulated.open()?, &sound) {
            Err(error) => return Ok(Some(words(&error))),
            Ok(left) if left != trial.run(&sound, &sound)? => return Ok(Some("results".to_owned())),
            Ok(_) => {}
        }
    }
    let scope = Scope { name: "mutants", orders: &[0, 1, 3], thorough: 3, many: None, huge: None };
    let suite = [
        "extremes_of_the_range_keep_the_contract",
        "empty_batches_and_orders_zero_and_one_work",
        "one_bad_matrix_spares_its_neighbours",
        "orders_and_places_keep_bits_and_gaps",
    ];
    for name in suite {
        for plan in ["left-looking", "resident"] {
            let steps = [Step::All, Step::System, Step::Solve(Transpose::None), Step::Determinant];
            let mut kernels =
                steps.into_iter().map(|step| reaches("sm_90", &trial(F64, 3, plan, step, false), mutant.file));
            if !kernels.try_fold(false, |any, one| one.map(|one| any || one))? {
                continue;
            }
            if check::<f64, _>(&planted("sm_90", 0).open()?, name, &scope, &Options::default().with_plan(plan)).is_err()
            {
                return Ok(Some("conformance".to_owned()));
            }
        }
    }
    Ok(None)
}
