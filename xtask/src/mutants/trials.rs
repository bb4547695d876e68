//! The runs that may show a changed place.

use batchla::{Error, ErrorKind, Options, ScalarKind, Transpose};
use batchla_emulated::{Checks, Emulated, Gaps, Step, Trial};
use batchla_testkit::{Scope, check};

use super::change::Mutant;

const fn trial(scalar: ScalarKind, order: usize, plan: &'static str, step: Step, rows_first: bool) -> Trial {
    // Where many are in a block, the last has one.
    let batch = if order > 16 { Trial::KINDS } else { 17 };
    Trial { rows_first, batch, ..Trial::new(scalar, order, plan, step) }
}

/// A matrix a thread, and so many that a warp goes on to others, of which the last is alone.
const fn by_thread(scalar: ScalarKind, order: usize, rows_first: bool, gaps: Gaps) -> Trial {
    Trial {
        rows_first,
        gaps,
        batch: Trial::MANY,
        ..Trial::new(scalar, order, "resident:rows=8,panel=8,exact=1", Step::All)
    }
}

const F32: ScalarKind = ScalarKind::F32;
const F64: ScalarKind = ScalarKind::F64;
const C32: ScalarKind = ScalarKind::C32;
const C64: ScalarKind = ScalarKind::C64;

/// Solutions by bands of rows, by panels of one column, by two warps, and by both without matrix instructions.
const BANDS: &str = "left-looking:solve-panel=8,solve-columns=16,solve-share=16,solve-warps=1,solve-band=32";
const NARROW: &str = "left-looking:solve-panel=1,solve-columns=16,solve-share=16,solve-warps=1,solve-band=32";
const BANDS_BY_TWO_WARPS: &str =
    "left-looking:solve-panel=8,solve-columns=16,solve-share=16,solve-warps=2,solve-band=32";
const TWO_WARPS: &str = "left-looking:solve-panel=16,solve-columns=16,solve-share=16,solve-warps=2";

/// Panels streamed, and updated by matrix instructions; and factored by more warps than eight.
const INSTRUCTIONS: &str = "left-looking:tensor=1,panel=8,rows=2,stages=2";
const NINE_WARPS: &str = "left-looking:rows=1,threads=288";

/// A matrix a thread, and the inversion by windows from its factors.
const BY_THREAD_AND_WINDOWS: &str = "resident:rows=8,panel=8,exact=1,inverse-window=8";

/// A GPU that a trial is run on: its architecture, its shared memory where that is not all, and whether kernels are of single orders and of classes of orders.
#[derive(Clone, Copy)]
pub(super) struct Gpu(&'static str, Option<u32>, bool);

const SM_70: Gpu = Gpu("sm_70", None, false);
const SM_90: Gpu = Gpu("sm_90", None, false);
/// As plans for GPUs have it.
const EXACT: Gpu = Gpu("sm_90", None, true);

impl Gpu {
    pub(super) fn emulated(self) -> Emulated {
        let Self(architecture, shared_bytes, exact_orders) = self;
        let emulated = Emulated::new(architecture);
        let emulated = if exact_orders { emulated.exact_orders() } else { emulated };
        match shared_bytes {
            Some(bytes) => emulated.shared_bytes(bytes),
            None => emulated,
        }
    }
}

/// The likeliest to show anything first.
pub(super) const TRIALS: &[(Gpu, Trial)] = &[
    (SM_90, trial(F64, 33, "left-looking", Step::Determinant, false)),
    (SM_90, trial(F64, 40, "left-looking", Step::Solve(Transpose::None), false)),
    (SM_90, trial(C64, 33, "left-looking", Step::Solve(Transpose::ConjugateTranspose), true)),
    (SM_90, trial(F64, 40, "left-looking", Step::Factorize, false)),
    (SM_70, trial(C32, 7, "left-looking", Step::Factorize, true)),
    (SM_90, trial(F64, 40, "multi-kernel-two-level:width=8,together=2", Step::Factorize, false)),
    (SM_90, trial(F64, 40, "left-looking", Step::Invert, false)),
    (SM_90, trial(F64, 40, "left-looking", Step::Invert, true)),
    (SM_90, trial(F64, 33, "timely", Step::Invert, false)),
    (SM_90, trial(F64, 48, "resident", Step::All, false)),
    (SM_70, trial(C32, 7, "resident", Step::All, true)),
    (SM_90, trial(F64, 21, "resident:panel=8,rows=1,window=8", Step::Factorize, false)),
    (SM_90, trial(F64, 61, "resident:panel=8,window=16,helpers=1", Step::Factorize, false)),
    (SM_90, trial(C64, 33, "resident:panel=4,window=8,helpers=1", Step::Factorize, true)),
    (SM_90, trial(F64, 75, "resident:panel=8,rows=3,window=32,helpers=3,exact=0", Step::Factorize, false)),
    (SM_90, by_thread(F64, 5, false, Gaps::None)),
    (SM_90, by_thread(F32, 3, true, Gaps::Given)),
    (SM_90, by_thread(C32, 2, false, Gaps::Results)),
    (SM_90, trial(C32, 11, "resident:exact=1", Step::System, true)),
    (SM_90, trial(F32, 16, "resident:panel=16,exact=1,solve-columns=4", Step::System, false)),
    (SM_90, trial(F64, 7, "resident:panel=8,exact=1,solve-columns=0", Step::System, false)),
    (SM_90, trial(F64, 16, "resident:panel=16,exact=1", Step::All, false)),
    (SM_90, trial(F64, 70, BANDS, Step::Solve(Transpose::None), false)),
    (SM_90, trial(C64, 37, BANDS, Step::Solve(Transpose::ConjugateTranspose), true)),
    (SM_90, trial(F32, 50, TWO_WARPS, Step::Solve(Transpose::None), true)),
    (SM_90, trial(C64, 33, "left-looking:solve-panel=0", Step::Solve(Transpose::ConjugateTranspose), true)),
    (SM_90, trial(F64, 11, "resident:exact=1", Step::All, true)),
    (SM_90, trial(F64, 40, "tree-search", Step::Factorize, true)),
    (SM_70, trial(F64, 40, "shared-panel", Step::Factorize, true)),
    (SM_90, trial(F64, 33, "interchange-serial", Step::Factorize, false)),
    (SM_90, trial(F32, 33, "right-looking", Step::Factorize, true)),
    (SM_70, trial(F64, 70, "left-looking:panel=14,ahead=4,rows=2", Step::Factorize, false)),
    (SM_90, trial(F64, 41, "resident:rows=2", Step::All, true)),
    (SM_90, trial(F32, 45, "resident", Step::All, false)),
    (SM_90, trial(F64, 41, "resident:inverse-window=16", Step::All, false)),
    (SM_90, trial(F32, 37, "resident:inverse-window=8,inverse-rows=2", Step::All, true)),
    (SM_90, trial(F64, 41, "resident:inverse-window=8,inverse-copies=3", Step::All, false)),
    (SM_90, trial(F32, 43, "resident:inverse-window=8,inverse-rows=2,inverse-copies=2", Step::All, true)),
    (SM_90, trial(F32, 37, "resident:panel=4,helpers=2", Step::All, false)),
    (SM_90, trial(C64, 21, "dynamic", Step::Invert, true)),
    (SM_90, trial(F64, 70, "left-looking:inverse-threads=32,inverse-block=5", Step::Invert, false)),
    (SM_90, trial(F64, 37, "spread:panel=8", Step::All, false)),
    (SM_90, trial(F64, 65, "blocked:width=16,panel=8,tile=64,finish=0", Step::All, false)),
    (SM_90, trial(F32, 43, "blocked:width=16,together=2,panel=4,rows=1,finish=0", Step::Factorize, true)),
    (SM_90, trial(C64, 55, "blocked:width=24,panel=8,tile-warps=2", Step::Factorize, false)),
    (SM_70, trial(F64, 70, "blocked:width=32,tile-warps=1,finish=0", Step::Factorize, false)),
    (SM_90, trial(F64, 41, "left-looking:inverse-window=8,inverse-parts=2", Step::Invert, false)),
    (SM_70, trial(C32, 37, "left-looking:inverse-window=8,inverse-parts=2", Step::All, true)),
    (SM_70, trial(C32, 20, "spread:panel=5,rows=2", Step::All, true)),
    (SM_90, trial(F32, 35, "spread:rows=0", Step::Factorize, false)),
    (SM_90, trial(F32, 34, "spread:panel=31", Step::Factorize, false)),
    (SM_90, trial(F64, 33, "multi-kernel-batched:width=8", Step::Factorize, true)),
    (SM_70, trial(F64, 33, "multi-kernel:width=8", Step::Factorize, false)),
    (SM_90, trial(C64, 35, "left-looking", Step::All, false)),
    (SM_90, trial(F64, 7, "left-looking", Step::All, false)),
    (SM_90, trial(F64, 9, "left-looking:panel=1,inverse-block=1", Step::All, false)),
    (SM_90, trial(F64, 70, "timely:inverse-threads=32,inverse-block=5", Step::Invert, false)),
    (SM_90, trial(F64, 33, "interchange-serial", Step::All, true)),
    (SM_90, trial(F64, 61, "resident", Step::Factorize, false)),
    (SM_90, trial(C32, 7, "left-looking", Step::Factorize, false)),
    (SM_90, trial(C64, 7, "left-looking", Step::Factorize, false)),
    (SM_90, trial(C64, 11, "resident:exact=1", Step::Factorize, false)),
    (SM_90, trial(F64, 11, "resident:exact=1", Step::Factorize, false)),
    (SM_90, trial(C32, 37, "resident", Step::Factorize, false)),
    (SM_90, trial(C64, 35, "resident", Step::Factorize, false)),
    (SM_90, trial(C64, 29, "resident", Step::All, false)),
    (SM_90, trial(F64, 48, "resident:exact=1", Step::All, false)),
    (SM_90, trial(C64, 15, "resident:panel=3,rows=2", Step::Factorize, false)),
    (SM_90, trial(F64, 32, "resident:panel=8", Step::Factorize, false)),
    (SM_90, trial(F64, 6, "resident:panel=2,rows=4", Step::Factorize, false)),
    (SM_90, trial(F64, 6, "resident:panel=2,rows=8", Step::Factorize, false)),
    (SM_90, trial(F64, 40, "resident:panel=4,window=12", Step::Factorize, false)),
    (SM_90, trial(F64, 70, "resident:panel=4,window=8,helpers=1", Step::Factorize, false)),
    (SM_90, trial(F64, 77, "resident:panel=8,window=32,helpers=0", Step::Factorize, false)),
    (SM_90, trial(C64, 20, "resident:panel=3,window=9,helpers=1", Step::Factorize, false)),
    (SM_90, trial(F64, 40, "left-looking:panel=7,ahead=4,stages=0", Step::Factorize, false)),
    (SM_90, trial(F64, 75, INSTRUCTIONS, Step::Factorize, false)),
    (SM_90, trial(C64, 70, "left-looking:tensor=1,panel=12,rows=1,stages=2", Step::Factorize, true)),
    (SM_90, trial(F64, 75, "left-looking:tensor=1,panel=16,rows=1,stages=3", Step::Factorize, false)),
    (SM_90, trial(F64, 75, NINE_WARPS, Step::Factorize, false)),
    (SM_90, trial(C32, 70, NINE_WARPS, Step::Factorize, false)),
    (SM_90, trial(F64, 33, "multi-kernel-batched:width=7,panel=7,ahead=4", Step::Factorize, false)),
    (SM_90, trial(F64, 41, "left-looking:exact=1", Step::Invert, false)),
    (SM_90, trial(F64, 16, "resident:panel=16,exact=1,inverse-window=8", Step::All, false)),
    // Beside the identity a regular matrix alone: as all matrices of a warp go the same way, the one without care.
    (SM_90, Trial { batch: 1, ..trial(F64, 12, "resident:panel=12,rows=2,exact=1", Step::Factorize, false) }),
    (SM_90, Trial { batch: 1, ..trial(C64, 8, "resident", Step::All, false) }),
    (SM_90, trial(F64, 16, "resident:panel=16,exact=1,solve-columns=2", Step::System, false)),
    (SM_90, trial(F64, 1, "resident:exact=1", Step::System, false)),
    (SM_90, trial(F32, 16, "resident:panel=16,exact=1,solve-columns=4", Step::SystemInPlace, false)),
    (SM_90, trial(F64, 20, "multi-kernel-batched:width=3,panel=1", Step::Factorize, true)),
    (SM_90, trial(F64, 33, "left-looking", Step::Invert, false)),
    (SM_90, trial(F32, 33, "left-looking", Step::Invert, false)),
    (SM_90, trial(F64, 40, "left-looking:inverse-rows=2", Step::Invert, false)),
    (SM_90, trial(F64, 11, "left-looking:inverse-window=2", Step::Invert, false)),
    (SM_90, trial(F64, 64, "left-looking:inverse-window=16,inverse-threads=96", Step::Invert, false)),
    (SM_90, trial(C32, 37, BANDS_BY_TWO_WARPS, Step::Solve(Transpose::None), false)),
    (SM_90, trial(C64, 33, NARROW, Step::Solve(Transpose::None), false)),
    (SM_90, trial(C64, 33, TWO_WARPS, Step::Solve(Transpose::None), false)),
    (SM_90, trial(F32, 48, TWO_WARPS, Step::Solve(Transpose::None), false)),
    (SM_90, trial(F64, 30, BANDS, Step::Solve(Transpose::None), false)),
    (SM_90, trial(F64, 9, "left-looking:solve-panel=2", Step::Solve(Transpose::None), false)),
    (SM_90, Trial { gaps: Gaps::Lanes, ..trial(F64, 40, "left-looking", Step::Solve(Transpose::None), false) }),
    (SM_90, Trial { plan: BY_THREAD_AND_WINDOWS, ..by_thread(F64, 5, false, Gaps::None) }),
    (SM_90, Trial { step: Step::Factorize, ..by_thread(F64, 5, false, Gaps::Across) }),
    (SM_90, Trial { step: Step::Factorize, ..by_thread(F64, 5, true, Gaps::Across) }),
    (SM_90, Trial { step: Step::Factorize, ..by_thread(F64, 5, false, Gaps::Loose) }),
    (EXACT, trial(F64, 61, "left-looking:exact=0", Step::Invert, false)),
    (EXACT, trial(F64, 61, "left-looking:exact=0", Step::Invert, true)),
    // With so little shared memory that a triangle goes by parts.
    (Gpu("sm_90", Some(1200), false), trial(F64, 33, "left-looking:inverse-window=0", Step::Invert, false)),
    (Gpu("sm_90", Some(800), false), trial(F64, 33, "timely", Step::Invert, false)),
];

/// Whether a run compiles a file.
fn reaches(gpu: Gpu, trial: &Trial, file: &str) -> Result<bool, Error> {
    let kernels = trial.kernels(&gpu.emulated().limits()?)?;
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

/// Fails where a run finds something in kernels that nobody has changed: it would show every mutant.
pub(super) fn unchanged() -> Result<(), Error> {
    let sound = SM_90.emulated().open()?;
    TRIALS.iter().try_for_each(|(gpu, trial)| {
        let emulated = gpu.emulated().seed(3).checks(Checks::All).largest_grid(2);
        trial.run(&emulated.open()?, &sound).map(drop)
    })
}

/// What shows a mutant; nothing where no run does.
pub(super) fn shown(mutant: &Mutant) -> Result<Option<String>, Error> {
    let planted = |gpu: Gpu, seed| {
        let emulated = gpu.emulated().seed(seed).checks(Checks::All);
        emulated.edit(mutant.file, mutant.text, &mutant.changed)
    };
    let sound = SM_90.emulated().open()?;
    for (gpu, trial) in TRIALS {
        if !reaches(*gpu, trial, mutant.file)? {
            continue;
        }
        let emulated = planted(*gpu, 3).largest_grid(2);
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
                steps.into_iter().map(|step| reaches(SM_90, &trial(F64, 3, plan, step, false), mutant.file));
            if !kernels.try_fold(false, |any, one| one.map(|one| any || one))? {
                continue;
            }
            if check::<f64, _>(&planted(SM_90, 0).open()?, name, &scope, &Options::default().with_plan(plan)).is_err() {
                return Ok(Some("conformance".to_owned()));
            }
        }
    }
    Ok(None)
}
