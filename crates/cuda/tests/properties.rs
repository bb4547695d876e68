//! Whatever is asked for by name is a plan that fits or is refused in words, and whatever lies in the cache is a whole kernel or none.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::fs;
use std::path::PathBuf;

use batchla_core::{BatchLayout, Complex, Error, ErrorKind, Extras, Options, Problem, Scalar, SourceKind, Transpose};
use batchla_cuda::{CudaPlan, Digest, DiskCache, Limits};
use proptest::prelude::*;

/// Any text, and texts that come close to a plan's name.
fn names() -> impl Strategy<Value = String> {
    let family =
        prop_oneof![8 => prop::sample::select(CudaPlan::NAMES.to_vec()).prop_map(str::to_owned), 1 => ".{0,12}"];
    let key =
        prop_oneof![12 => prop::sample::select(CudaPlan::NUMBERS.to_vec()).prop_map(str::to_owned), 1 => "[a-z-]{0,9}"];
    let value = prop_oneof![
        8 => (0..40usize).prop_map(|x| x.to_string()),
        4 => (0..12u32).prop_map(|x| (1usize << x).to_string()),
        1 => any::<u128>().prop_map(|x| x.to_string()),
        1 => ".{0,4}",
    ];
    let number = (key, value).prop_map(|(key, value)| format!("{key}={value}"));
    let numbered =
        (family, prop::collection::vec(number, 0..4), prop_oneof![8 => Just(":"), 1 => Just("::"), 1 => Just("")])
            .prop_map(|(family, numbers, mark)| format!("{family}{mark}{}", numbers.join(",")));
    prop_oneof![20 => numbered, 1 => any::<String>()]
}

/// Operation, order, whether matrices lie rows first.
fn problem<T: Scalar>((operation, order, rows_first): (usize, usize, bool)) -> Result<Problem, Error> {
    let lay = if rows_first { BatchLayout::row_major } else { BatchLayout::column_major };
    let (a, b) = (lay(3, order, order)?, lay(3, order, 2)?);
    let extras = Extras::none().with_determinant().with_condition();
    match operation {
        0 => Problem::factorize::<T>(SourceKind::Matrix, a, a),
        1 => Problem::invert::<T>(SourceKind::Matrix, a, a)?.with_extras(extras),
        2 => Problem::invert::<T>(SourceKind::Factors, a, a),
        3 => Problem::solve::<T>(SourceKind::Matrix, a, Some(b), b, Transpose::ConjugateTranspose),
        _ => Problem::determinant::<T>(SourceKind::Matrix, a),
    }
}

/// A plan for a problem, or the words with which it is refused.
fn chosen<T: Scalar>(kind: (usize, usize, bool), name: &str, preset: &str) -> Result<(), TestCaseError> {
    let (problem, limits) = (problem::<T>(kind).unwrap(), Limits::preset(preset).unwrap());
    let options = Options::default().with_plan(name);
    match CudaPlan::choose(&problem, &options, &limits) {
        Ok(plan) => {
            prop_assert_eq!(&CudaPlan::choose(&problem, &options, &limits).unwrap(), &plan, "not the same plan twice");
            prop_assert_eq!(plan.to_string().lines().count(), 1, "{}", plan);
            let (most, bytes) = (limits.threads_per_block as usize, limits.shared_bytes_per_block as usize);
            if let Some(getrf) = &plan.getrf {
                prop_assert!(getrf.threads * getrf.teams <= most && getrf.dynamic_shared_bytes <= bytes, "{plan}");
                prop_assert!(
                    getrf.rows == 0 || getrf.rows * getrf.threads >= plan.order(),
                    "rows without a thread: {plan}"
                );
            }
            if let Some(resident) = &plan.resident {
                prop_assert!(resident.crew() * resident.teams <= most, "{plan}");
                prop_assert!(resident.dynamic_shared_bytes <= bytes, "{plan}");
            }
            let kernels = plan.specifications(&problem);
            let names: Vec<_> = kernels.iter().map(|kernel| (kernel.entry(), kernel.configuration())).collect();
            prop_assert!(
                (1..names.len()).all(|i| !names[..i].contains(&names[i])),
                "a kernel is there twice: {names:?}"
            );
        }
        Err(error) => {
            prop_assert_eq!(error.kind(), ErrorKind::Unsupported, "{}", error);
            prop_assert!(std::error::Error::source(&error).is_some(), "no rejection: {error}");
        }
    }
    Ok(())
}

/// A folder of kernels, gone with the first value.
fn cache() -> (tempfile::TempDir, DiskCache) {
    let folder = tempfile::tempdir().unwrap();
    let cache = DiskCache::at(folder.path().join("kernels"));
    (folder, cache)
}

/// Stores a kernel, and tells in which file.
fn store(cache: &DiskCache, name: &Digest, payload: &[u8]) -> PathBuf {
    cache.store(name, "a kernel", payload);
    cache.folder().unwrap().join(format!("{name}.kernel"))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_name_gives_a_plan_that_fits_or_is_refused(
        kind in (0..5usize, prop_oneof![0..70usize, 0..2000usize], any::<bool>()),
        name in names(),
        preset in prop::sample::select(Limits::PRESETS.to_vec()),
        scalar in 0..4,
    ) {
        match scalar {
            0 => chosen::<f32>(kind, &name, preset)?,
            1 => chosen::<f64>(kind, &name, preset)?,
            2 => chosen::<Complex<f32>>(kind, &name, preset)?,
            _ => chosen::<Complex<f64>>(kind, &name, preset)?,
        }
    }

    #[test]
    fn a_number_given_twice_is_refused(panel in 1..32usize, again in 1..32usize, plan in prop::sample::select(CudaPlan::NAMES.to_vec())) {
        let options = Options::default().with_plan(format!("{plan}:panel={panel},panel={again}"));
        let limits = Limits::preset("sm_90").unwrap();
        let error = CudaPlan::choose(&problem::<f64>((0, 40, false)).unwrap(), &options, &limits).unwrap_err();
        prop_assert!(error.to_string().contains("panel is given twice"), "{error}");
    }

    #[test]
    fn whatever_lies_in_the_cache_is_no_kernel_and_goes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let (_folder, cache) = cache();
        let name = Digest::of(b"name");
        let path = store(&cache, &name, b"kernel");
        fs::write(&path, &bytes).unwrap();
        prop_assert_eq!(cache.load(&name), None);
        prop_assert!(!path.exists(), "it lies there still");
    }

    #[test]
    fn an_entry_that_is_changed_cut_or_lengthened_is_no_kernel(
        payload in prop::collection::vec(any::<u8>(), 0..200),
        at in any::<prop::sample::Index>(),
        change in 1..=255u8,
        way in 0..3,
    ) {
        let (_folder, cache) = cache();
        let name = Digest::of(&payload);
        let path = store(&cache, &name, &payload);
        prop_assert_eq!(cache.load(&name), Some(payload));
        let mut entry = fs::read(&path).unwrap();
        let at = at.index(entry.len());
        match way {
            0 => entry[at] ^= change,
            1 => entry.truncate(at),
            _ => entry.insert(at, change),
        }
        fs::write(&path, &entry).unwrap();
        prop_assert_eq!(cache.load(&name), None);
        prop_assert!(!path.exists(), "it lies there still");
    }
}
