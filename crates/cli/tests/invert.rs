//! `batchla invert`, run as its user runs it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use batchla::npy::{self, read, write, write_shaped};
use batchla::{Batch, BatchLayout, Complex, Outcome, Scalar, Strides};
use batchla_testkit::inverse_ratios;
use serde_json::Value;

use crate::program::Bench;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data").join(name)
}

fn real_blocks<T: Scalar>() -> Batch<T> {
    match T::IS_COMPLEX {
        true => convert(&read::<Complex<f64>>(data("helmholtz_patches_60x36x36_c128.npy")).unwrap()),
        false => convert(&read::<f64>(data("ldg_blocks_46x21x21_f64.npy")).unwrap()),
    }
}

fn convert<S: Scalar, T: Scalar>(from: &Batch<S>) -> Batch<T> {
    use batchla::Real;
    let layout = *from.layout();
    let mut to = Batch::zeros(layout).unwrap();
    to.view_mut().fill_with(|b, i, j| {
        let x = from.get(b, i, j).unwrap();
        T::from_f64(x.re().to_f64(), x.im().to_f64())
    });
    to
}

/// The file as NumPy would write it in Fortran order.
fn write_fortran<T: Scalar>(path: &Path, a: &Batch<T>) {
    let (batch, n) = (a.batch(), a.layout().rows());
    let planes = BatchLayout::new(batch, n, n, Strides { lanes: 1, group: 1, row: batch, col: batch * n }).unwrap();
    // The elements of a flat C-ordered array of one matrix lie as they do in memory.
    let memory = a.to_layout(planes).unwrap();
    let flat = Batch::from_vec(memory.into_vec(), BatchLayout::row_major(1, batch, n * n).unwrap()).unwrap();
    write_shaped(path, &flat, &[]).unwrap();
    let mut bytes = fs::read(path).unwrap();
    let header = String::from_utf8(bytes[10..128].to_vec()).unwrap();
    let shape = format!("'fortran_order': True, 'shape': ({batch}, {n}, {n}), }}");
    let start = header.find("'fortran_order'").unwrap();
    let new = format!("{:<width$}\n", [&header[..start], &shape].concat(), width = header.len() - 1);
    bytes[10..128].copy_from_slice(new.as_bytes());
    fs::write(path, bytes).unwrap();
}

fn inverts_real_blocks<T: Scalar>() {
    let bench = Bench::new();
    let a = real_blocks::<T>();
    write(bench.path("c.npy"), &a).unwrap();
    write_fortran(&bench.path("fortran.npy"), &a);
    assert!(npy::peek(bench.path("fortran.npy")).unwrap().fortran_order);
    for name in ["c.npy", "fortran.npy"] {
        for backend in ["auto", "cpu", "reference"] {
            let (code, summary) = bench.summary(&["invert", name, "-o", "x.npy", "--check", "--backend", backend]);
            assert_eq!((code, summary["regular"].as_u64()), (0, Some(a.batch() as u64)), "{summary}");
            assert_eq!(summary["scalar"], T::KIND.name());
            assert!(summary["plan"].is_string() && summary["arithmetic"].is_string(), "{summary}");
            assert!(summary["check"]["largest_ratio"].as_f64().unwrap() < 30.0, "{summary}");
            assert_eq!(summary["check"]["compared"].as_u64(), Some(a.batch() as u64));
            let x = read::<T>(bench.path("x.npy")).unwrap();
            assert!(inverse_ratios(&a, &x, &vec![Outcome::Regular; a.batch()]).below(30.0));
        }
    }
    assert_eq!(bench.names(), ["c.npy", "fortran.npy", "x.npy"]);
}

#[test]
fn real_blocks_of_every_type_and_order_are_inverted() {
    inverts_real_blocks::<f32>();
    inverts_real_blocks::<f64>();
    inverts_real_blocks::<Complex<f32>>();
    inverts_real_blocks::<Complex<f64>>();
}

#[test]
fn the_order_of_the_file_does_not_change_a_bit_of_the_result() {
    let bench = Bench::new();
    let a = real_blocks::<f64>();
    write(bench.path("c.npy"), &a).unwrap();
    write_fortran(&bench.path("fortran.npy"), &a);
    for (name, threads) in [("c.npy", "1"), ("fortran.npy", "3")] {
        assert!(bench.batchla(&["invert", name, "-o", &format!("x_{name}"), "--threads", threads]).status.success());
    }
    assert_eq!(fs::read(bench.path("x_c.npy")).unwrap(), fs::read(bench.path("x_fortran.npy")).unwrap());
}

#[test]
fn the_shape_of_the_file_is_kept() {
    let bench = Bench::new();
    let a = Batch::<f32>::from_fn(6, 2, 2, |b, i, j| if i == j { b as f32 + 1.0 } else { 0.0 }).unwrap();
    for leading in [&[6][..], &[2, 3], &[1, 6, 1]] {
        write_shaped(bench.path("a.npy"), &a, leading).unwrap();
        assert_eq!(bench.summary(&["invert", "a.npy", "-o", "x.npy"]).0, 0);
        assert_eq!(npy::peek(bench.path("x.npy")).unwrap().leading(), leading);
    }
    let sole = Batch::<f32>::from_fn(1, 1, 1, |_, _, _| 4.0).unwrap();
    write_shaped(bench.path("a.npy"), &sole, &[]).unwrap();
    assert_eq!(bench.summary(&["invert", "a.npy", "-o", "x.npy"]).0, 0);
    assert_eq!(npy::peek(bench.path("x.npy")).unwrap().shape, [1, 1]);
    assert_eq!(read::<f32>(bench.path("x.npy")).unwrap().get(0, 0, 0), Some(0.25));
    for empty in [&[0, 3, 3][..], &[2, 0, 0]] {
        let a = Batch::<f32>::zeros(BatchLayout::row_major(empty[0], empty[1], empty[2]).unwrap()).unwrap();
        write(bench.path("a.npy"), &a).unwrap();
        assert_eq!(bench.summary(&["invert", "a.npy", "-o", "x.npy", "--check"]).0, 0);
        assert_eq!(npy::peek(bench.path("x.npy")).unwrap().shape, empty);
    }
}

/// Diagonal matrices of which numbers 3, 4, 10, 11, 12, 13 and 14 are singular in column `b % 4`, and 5 and 7 not finite.
fn partly_failing() -> Batch<f64> {
    Batch::from_fn(20, 4, 4, |b, i, j| match b {
        5 | 7 if (i, j) == (1, 2) => f64::NAN,
        3 | 4 | 10..=14 if i == j && i == b % 4 => 0.0,
        _ if i == j => 2.0,
        _ => 0.0,
    })
    .unwrap()
}

#[test]
fn failed_matrices_are_named_and_written_as_nan_beside_whole_neighbours() {
    let bench = Bench::new();
    write(bench.path("a.npy"), &partly_failing()).unwrap();
    let (code, summary) = bench.summary(&["invert", "a.npy", "-o", "x.npy", "--check"]);
    assert_eq!(code, 2);
    assert_eq!((summary["matrices"].as_u64(), summary["regular"].as_u64()), (Some(20), Some(11)));
    assert_eq!(summary["singular"]["count"], 7);
    let first: Vec<_> =
        summary["singular"]["first"].as_array().unwrap().iter().map(|s| (&s["matrix"], &s["column"])).collect();
    let expected = [(3, 3), (4, 0), (10, 2), (11, 3), (12, 0)].map(|(m, c)| (Value::from(m), Value::from(c)));
    assert!(first.iter().copied().eq(expected.iter().map(|(m, c)| (m, c))), "{summary}");
    assert_eq!(summary["not_finite"], serde_json::json!({"count": 2, "first": [5, 7]}));
    assert_eq!(summary["check"]["compared"], 11);
    let x = read::<f64>(bench.path("x.npy")).unwrap();
    for (b, matrix) in x.view().matrices().enumerate() {
        let failed = matches!(b, 3 | 4 | 5 | 7 | 10..=14);
        for (i, j) in (0..4).flat_map(|i| (0..4).map(move |j| (i, j))) {
            let expected = if i == j { 0.5 } else { 0.0 };
            assert!(if failed { matrix.at(i, j).is_nan() } else { matrix.at(i, j) == expected }, "{b} {i} {j}");
        }
    }
    let output = bench.batchla(&["invert", "a.npy", "-o", "x.npy", "--check"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for line in [
        "20 matrices, f64 of shape (20, 4, 4)",
        "matrix 3 in column 3, ",
        "matrix 12 in column 0, ...",
        "matrix 5, matrix 7",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert_eq!((output.status.code(), bench.names()), (Some(2), vec!["a.npy".to_owned(), "x.npy".to_owned()]));
}

#[test]
fn what_cannot_be_inverted_is_refused_and_leaves_nothing_behind() {
    let bench = Bench::new();
    assert!(bench.error(&["invert", "a.npy", "-o", "x.npy"], &[]).contains("a.npy cannot be opened"));
    write(bench.path("a.npy"), &Batch::<f64>::from_fn(2, 3, 4, |_, _, _| 1.0).unwrap()).unwrap();
    let text = bench.error(&["invert", "a.npy", "-o", "x.npy"], &["a.npy"]);
    assert!(text.starts_with("batchla: invert: ") && text.contains("3 x 4, not square"), "{text}");

    write(bench.path("a.npy"), &partly_failing()).unwrap();
    let whole = fs::read(bench.path("a.npy")).unwrap();
    for same in ["a.npy", "./a.npy"] {
        assert!(bench.error(&["invert", "a.npy", "-o", same], &["a.npy"]).contains("is the input"));
    }
    let text = bench.error(&["invert", "a.npy", "-o", "no/such/folder.npy"], &["a.npy"]);
    assert!(text.contains("cannot be created") && text.contains("\n  because: "), "{text}");
    assert!(bench.error(&["invert", "a.npy", "-o", "."], &["a.npy"]).contains("is the input"));
    assert!(bench.error(&["invert", "a.npy", "-o", "x.npy", "--threads", "0"], &["a.npy"]).contains("0 threads"));
    let reference = ["invert", "a.npy", "-o", "x.npy", "--backend", "reference", "--threads", "2"];
    assert!(bench.error(&reference, &["a.npy"]).contains("one thread"));
    for wrong in
        [&["invert", "a.npy"][..], &["invert", "a.npy", "-o", "x.npy", "--backend", "abacus"], &["divide"], &[]]
    {
        bench.error(wrong, &["a.npy"]);
    }

    fs::write(bench.path("x.npy"), "precious").unwrap();
    fs::write(bench.path("a.npy"), &whole[..whole.len() - 8]).unwrap();
    assert!(bench.error(&["invert", "a.npy", "-o", "x.npy"], &["a.npy", "x.npy"]).contains("ends early"));
    assert_eq!(fs::read(bench.path("x.npy")).unwrap(), b"precious");
}

#[test]
fn a_gpu_inverts_or_the_error_says_what_is_missing() {
    let bench = Bench::new();
    let a = real_blocks::<f64>();
    write(bench.path("a.npy"), &a).unwrap();
    let plain = ["invert", "a.npy", "-o", "x.npy", "--check"];
    let forced = bench.command(&plain).env("BATCHLA_BACKEND", "cuda").output().unwrap();
    match batchla::Cuda::new() {
        Ok(_) => {
            let (code, summary) = bench.summary(&[&plain[..], &["--backend", "cuda", "--device", "0"]].concat());
            assert_eq!((code, summary["regular"].as_u64()), (0, Some(a.batch() as u64)), "{summary}");
            assert!(summary["backend"].as_str().unwrap().starts_with("cuda: GPU 0: "), "{summary}");
            let text = String::from_utf8_lossy(&forced.stdout).into_owned();
            assert!(forced.status.success() && text.contains("(BATCHLA_BACKEND=cuda)"), "{text}");
        }
        Err(missing) => {
            let required = std::env::var("BATCHLA_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|name| name == "cuda"), "{missing}");
            let text = bench.error(&[&plain[..], &["--backend", "cuda"]].concat(), &["a.npy"]);
            assert!(text.contains(&missing.to_string()) && text.contains("CPU backend"), "{text}");
            let forced_text = String::from_utf8(forced.stderr).unwrap();
            assert_eq!(forced.status.code(), Some(1));
            assert!(forced_text.contains(&missing.to_string()), "{forced_text}");
        }
    }
}

#[test]
fn the_summary_says_why_its_backend_was_chosen() {
    let bench = Bench::new();
    write(bench.path("a.npy"), &real_blocks::<f64>()).unwrap();
    let plain = ["invert", "a.npy", "-o", "x.npy"];
    let chosen = |more: &[&str]| {
        let (code, summary) = bench.summary(&[&plain, more].concat());
        assert_eq!(code, 0, "{summary}");
        let words = |key: &str| summary[key].as_str().unwrap().to_owned();
        (words("backend").split(':').next().unwrap().to_owned(), words("chosen_because"))
    };
    let (name, why) = chosen(&[]);
    assert!(why.contains("GPU") && (name == "cpu" || why == "a GPU that works"), "{name}: {why}");
    assert_eq!(chosen(&["--backend", "cpu"]), ("cpu".into(), "it was asked for".into()));
    assert_eq!(chosen(&["--threads", "2"]), ("cpu".into(), "a number of threads was asked for".into()));
}

#[test]
fn a_gpu_is_chosen_by_number_for_the_gpu_backend_alone() {
    let bench = Bench::new();
    write(bench.path("a.npy"), &partly_failing()).unwrap();
    let error = |more: &[&str]| bench.error(&[&["invert", "a.npy", "-o", "x.npy"], more].concat(), &["a.npy"]);
    for backend in ["auto", "cuda"] {
        let text = error(&["--device", "999", "--backend", backend]);
        assert!(text.contains("there is no GPU 999") || text.contains("driver"), "{text}");
    }
    for backend in ["cpu", "reference"] {
        assert!(error(&["--device", "0", "--backend", backend]).contains("--device is for the CUDA backend"));
    }
    assert!(error(&["--threads", "2", "--backend", "cuda"]).contains("--threads is for the CPU backend"));
    assert!(error(&["--threads", "2", "--device", "0"]).contains("cannot be used with"));
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_and_one_that_breaks_leaves_nothing_behind() {
    let bench = Bench::new();
    let through_pipe = |script: &str| {
        let script = script.replace("BATCHLA", env!("CARGO_BIN_EXE_batchla"));
        Command::new("sh").args(["-c", &script]).current_dir(bench.folder()).output().unwrap()
    };
    write(bench.path("a.npy"), &real_blocks::<f64>()).unwrap();
    let output = through_pipe("cat a.npy | BATCHLA invert /dev/stdin -o x.npy");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(npy::peek(bench.path("x.npy")).unwrap().shape, [46, 21, 21]);
    let output = through_pipe("head -c 100000 a.npy | BATCHLA invert /dev/stdin -o y.npy");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("ends early"));
    assert_eq!(bench.names(), ["a.npy", "x.npy"]);
}

#[test]
fn the_help_teaches() {
    let bench = Bench::new();
    for (args, taught) in
        [(&["--help"][..], "invert"), (&["invert", "--help"], "Examples:"), (&["--version"], "batchla ")]
    {
        let output = bench.batchla(args);
        assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains(taught), "{args:?}");
    }
}
