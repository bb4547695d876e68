//! Every command but `invert` and `bench`, run as its user runs it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod program;

use std::fs;

use batchla::npy::{self, ArrayWriter, ElementKind, IntegerReader, Target, read, write};
use batchla::{Batch, Complex, Scalar};
use batchla_testkit::{Generator, factorization_ratio};

use crate::program::{Bench, there};

fn factors_and_solves<T: Scalar>() {
    let bench = Bench::new();
    let scalar = T::KIND.name();
    bench.well(&["generate", "normal", "--batch", "50", "--order", "9", "--scalar", scalar, "-o", "a.npy"]);
    bench.well(&[
        "generate",
        "right-hand-sides",
        "--batch",
        "50",
        "--order",
        "9",
        "--columns",
        "2",
        "--scalar",
        scalar,
        "-o",
        "b.npy",
    ]);
    bench.well(&["factorize", "a.npy", "-o", "lu.npy", "-p", "p.npy"]);
    bench.well(&["verify", "a.npy", "lu.npy", "--pivots", "p.npy"]);
    let (a, lu) = (read::<T>(bench.path("a.npy")).unwrap(), read::<T>(bench.path("lu.npy")).unwrap());
    let mut pivots = IntegerReader::open(bench.path("p.npy")).unwrap();
    assert_eq!(pivots.shape(), [50, 9]);
    for (a, lu) in a.view().matrices().zip(lu.view().matrices()) {
        let exchanges: Vec<u32> = pivots.next(9).unwrap().into_iter().map(|row| row as u32).collect();
        assert!(factorization_ratio(a, lu, &exchanges) < 30.0);
    }
    bench.well(&["solve", "a.npy", "b.npy", "-o", "x.npy"]);
    let (_, verified) = bench.summary(&["verify", "a.npy", "x.npy", "--rhs", "b.npy"]);
    assert_eq!(verified["check"]["compared"], 50);
    // A result that is not one is told from one that is.
    let (code, refuted) = bench.summary(&["verify", "a.npy", "b.npy", "--rhs", "b.npy"]);
    assert_eq!((code, refuted["check"]["passed"].as_bool()), (2, Some(false)), "{refuted}");
    let (code, refuted) = bench.summary(&["verify", "a.npy", "lu.npy"]);
    assert_eq!((code, refuted["check"]["passed"].as_bool()), (2, Some(false)), "{refuted}");
}

#[test]
fn factors_and_solutions_of_every_type_verify() {
    factors_and_solves::<f32>();
    factors_and_solves::<f64>();
    factors_and_solves::<Complex<f32>>();
    factors_and_solves::<Complex<f64>>();
}

/// Diagonal matrices whose elements are `b + 2`.
fn multiples(bench: &Bench, name: &str, batch: usize) {
    let a = Batch::<f64>::from_fn(batch, 3, 3, |b, i, j| if i == j { (b + 2) as f64 } else { 0.0 }).unwrap();
    write(bench.path(name), &a).unwrap();
}

#[test]
fn right_hand_sides_are_matrices_vectors_or_one_for_all() {
    let bench = Bench::new();
    multiples(&bench, "a.npy", 4);
    multiples(&bench, "one.npy", 1);
    let numbers: Vec<f64> = (0..12).map(f64::from).collect();
    let vectors = |name: &str, shape: &[usize]| {
        let target = Target::file(bench.path(name)).unwrap();
        let mut writer = ArrayWriter::new(target, ElementKind::Scalar(f64::KIND), shape).unwrap();
        writer.push(&numbers[..shape.iter().product()]).unwrap();
        writer.finish().unwrap();
    };
    vectors("vectors.npy", &[4, 3]);
    bench.well(&["solve", "a.npy", "vectors.npy", "-o", "x.npy"]);
    // As vectors they came, as vectors they are written: the same numbers, read as one matrix.
    assert_eq!(npy::peek(bench.path("x.npy")).unwrap().shape, [4, 3]);
    let x = read::<f64>(bench.path("x.npy")).unwrap();
    assert!((0..4).all(|b| (0..3).all(|i| x.get(0, b, i) == Some((3 * b + i) as f64 / (b + 2) as f64))));

    vectors("one-rhs.npy", &[1, 3, 1]);
    bench.well(&["solve", "a.npy", "one-rhs.npy", "-o", "x.npy"]);
    assert_eq!(npy::peek(bench.path("x.npy")).unwrap().shape, [4, 3, 1]);
    assert_eq!(read::<f64>(bench.path("x.npy")).unwrap().get(3, 2, 0), Some(2.0 / 5.0));
    vectors("many.npy", &[4, 3, 1]);
    let told = bench.well(&["solve", "one.npy", "many.npy", "-o", "x.npy", "--memory", "1kB"]);
    assert!(told.starts_with("one.npy: 4 results of one matrix, f64 of shape (1, 3, 3)"), "{told}");
    assert_eq!(read::<f64>(bench.path("x.npy")).unwrap().get(3, 2, 0), Some(11.0 / 2.0));
    bench.well(&["verify", "one.npy", "x.npy", "--rhs", "many.npy"]);
    // A vector serves all matrices; many vectors of one matrix are columns, and no matrix.
    vectors("vector.npy", &[3]);
    bench.well(&["solve", "a.npy", "vector.npy", "-o", "x.npy"]);
    assert_eq!(npy::peek(bench.path("x.npy")).unwrap().shape, [4, 3]);
    assert_eq!(read::<f64>(bench.path("x.npy")).unwrap().get(0, 3, 2), Some(2.0 / 5.0));
    bench.well(&["verify", "a.npy", "x.npy", "--rhs", "vector.npy"]);
    let output = bench.batchla(&["solve", "one.npy", "vectors.npy", "-o", "y.npy"]);
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && text.contains("many vectors for one matrix (..., n, 1)"), "{text}");
    let sole = Batch::<f64>::from_fn(1, 3, 3, |_, i, j| if i == j { 2.0 } else { 0.0 }).unwrap();
    npy::write_shaped(bench.path("sole.npy"), &sole, &[]).unwrap();
    bench.well(&["solve", "sole.npy", "vector.npy", "-o", "y.npy"]);
    assert_eq!(fs::read(bench.path("y.npy")).unwrap()[128..], [0.0f64, 0.5, 1.0].map(f64::to_le_bytes).concat());
}

#[test]
fn the_form_of_the_matrix_is_chosen() {
    let bench = Bench::new();
    let i = Complex::new(0.0, 1.0);
    write(bench.path("a.npy"), &Batch::from_fn(1, 1, 1, |_, _, _| i).unwrap()).unwrap();
    write(bench.path("b.npy"), &Batch::from_fn(1, 1, 1, |_, _, _| Complex::new(1.0, 0.0)).unwrap()).unwrap();
    for (form, x) in [("plain", -i), ("transposed", -i), ("conjugated", i)] {
        bench.well(&["solve", "a.npy", "b.npy", "-o", "x.npy", "--form", form]);
        assert_eq!(read::<Complex<f64>>(bench.path("x.npy")).unwrap().get(0, 0, 0), Some(x), "{form}");
    }
}

#[test]
fn determinants_are_plain_or_sign_and_logarithm() {
    let bench = Bench::new();
    let a = Batch::<f32>::from_fn(3, 2, 2, |b, i, j| match (b, i == j) {
        (0, true) => -3e30,
        (1, _) => 1.0,
        (2, false) => 2.0,
        _ => 0.0,
    });
    write(bench.path("a.npy"), &a.unwrap()).unwrap();
    let wanted = ["det", "a.npy", "-o", "d.npy", "--sign", "s.npy", "--log", "l.npy"];
    assert_eq!(bench.batchla(&wanted).status.code(), Some(2));
    let numbers = |name: &str| {
        let bytes = bench.bytes(name);
        bytes[128..].as_chunks().0.iter().map(|b| f32::from_le_bytes(*b)).collect::<Vec<_>>()
    };
    assert_eq!(numbers("d.npy"), [f32::INFINITY, 0.0, -4.0]);
    assert_eq!(numbers("s.npy"), [1.0, 0.0, -1.0]);
    let logs = numbers("l.npy");
    assert!((logs[0] - 2.0 * 3e30f32.ln()).abs() < 1e-4 && logs[1] == f32::NEG_INFINITY, "{logs:?}");
    assert!(bench.error(&["det", "a.npy"], &["a.npy", "d.npy", "l.npy", "s.npy"]).contains("required"));
}

#[test]
fn generated_files_hold_what_the_generator_makes() {
    let bench = Bench::new();
    for generator in Generator::ALL {
        let name = generator.to_string();
        bench.well(&[
            "generate", &name, "--batch", "5", "--order", "6", "--scalar", "c32", "--seed", "9", "-o", "a.npy",
        ]);
        let a = read::<Complex<f32>>(bench.path("a.npy")).unwrap();
        for b in 0..5 {
            let expected = generator.matrix::<Complex<f32>>(6, 9, b);
            let bits = |x: Complex<f32>| (x.re.to_bits(), x.im.to_bits());
            let same = (0..36).all(|k| a.get(b, k % 6, k / 6).map(bits) == Some(bits(expected[k])));
            assert!(same, "{name}, matrix {b}");
        }
    }
    let text = bench.error(&["generate", "right-hand-sides:3", "-o", "b.npy"], &["a.npy"]);
    assert!(text.contains("take no value") && text.contains("--columns"), "{text}");
    let text = bench.error(&["generate", "abacus", "-o", "b.npy"], &["a.npy"]);
    assert!(text.contains("there is no generator `abacus`") && text.contains("hilbert"), "{text}");
    let made = bench.batchla(&["generate", "uniform", "--batch", "3", "--order", "2", "-o", "-"]);
    assert_eq!((made.stdout.len(), made.status.code()), (128 + 3 * 4 * 8, Some(0)));
}

#[test]
fn verify_refuses_what_does_not_belong_together() {
    let bench = Bench::new();
    multiples(&bench, "a.npy", 4);
    multiples(&bench, "fewer.npy", 3);
    bench.well(&["generate", "uniform", "--batch", "4", "--order", "2", "-o", "smaller.npy"]);
    bench.well(&["factorize", "a.npy", "-o", "lu.npy", "-p", "p.npy"]);
    bench.well(&["factorize", "fewer.npy", "-o", "lu3.npy", "-p", "p3.npy"]);
    let right_hand_sides = |columns: &str, name: &str| {
        bench.well(&["generate", "right-hand-sides", "--batch", "4", "--order", "3", "--columns", columns, "-o", name]);
    };
    right_hand_sides("1", "one.npy");
    right_hand_sides("2", "two.npy");
    let names = bench.names();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (args, told) in [
        (&["a.npy", "one.npy", "--rhs", "two.npy"][..], "solutions of 1 columns (f64, shape (4, 3, 1), C order)"),
        (&["a.npy", "fewer.npy"], "3 results for 4 matrices"),
        (&["a.npy", "smaller.npy"], "differ in order"),
        (&["a.npy", "a.npy", "--rhs", "smaller.npy"], "right-hand sides of 2 rows"),
        (&["a.npy", "lu.npy", "--pivots", "p3.npy"], "pivots of shape [3, 3]"),
        (&["a.npy", "lu.npy", "--pivots", "a.npy"], "\"<f8\", not int32 or int64"),
        (&["a.npy", "p.npy"], "holds elements of type \"<i4\""),
    ] {
        let text = bench.error(&[&["verify"], args].concat(), &names);
        assert!(text.contains(told), "{args:?}: {text}");
    }
    let mut pivots = bench.bytes("p.npy");
    pivots[128] = 7;
    fs::write(bench.path("p.npy"), pivots).unwrap();
    let text = bench.error(&["verify", "a.npy", "lu.npy", "--pivots", "p.npy"], &names);
    assert!(text.contains("step 0 cannot exchange row 7"), "{text}");
}

#[test]
fn devices_tell_what_works_and_why_not() {
    let bench = Bench::new();
    let told = bench.well(&["devices"]);
    assert!(told.contains("\ncpu        works") && told.contains("\nreference  works"), "{told}");
    assert_eq!(told.matches("taken where none is asked for").count(), 1, "{told}");
    let one: serde_json::Value = serde_json::from_str(&bench.well(&["devices", "--backend", "cpu", "--json"])).unwrap();
    assert_eq!((one["backend"].as_str(), one["works"].as_bool()), (Some("cpu"), Some(true)));
    if let Err(missing) = batchla::Cuda::new() {
        let output = bench.batchla(&["devices", "--backend", "cuda"]);
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8(output.stdout).unwrap().contains(&missing.to_string()));
    }
}

#[test]
fn shells_and_manuals_know_every_command() {
    let bench = Bench::new();
    let commands =
        ["invert", "factorize", "solve", "det", "verify", "generate", "devices", "bench", "completions", "man"];
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let told = bench.well(&["completions", shell]);
        assert!(commands.iter().all(|command| told.contains(command)), "{shell}");
    }
    bench.well(&["man", "pages"]);
    for command in commands {
        let page = fs::read_to_string(bench.path(&format!("pages/batchla-{command}.1"))).unwrap();
        assert!(page.contains(".TH"), "{command}");
        let help = bench.well(&[command, "--help"]);
        assert!(help.contains("Examples:"), "{help}");
    }
}

#[test]
fn whoever_stops_reading_has_read_enough() {
    let bench = Bench::new();
    bench.well(&["generate", "uniform", "--batch", "3", "--order", "4", "-o", "a.npy"]);
    for words in
        [&["plan", "f64", "8"][..], &["devices"], &["completions", "bash"], &["invert", "a.npy", "-o", "x.npy"]]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = bench.command(words).stdout(writer).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*errors), (Some(0), ""), "{words:?}");
    }
}

#[test]
fn kernels_of_no_problem_or_no_gpu_are_refused() {
    let bench = Bench::new();
    for (words, told) in [
        (&["f64", "9-3"][..], "neither an order nor a range like 1-200"),
        (&["f64", "many"], "neither an order nor a range"),
        (&["f64", "1-100000000"], "orders go up to 10000"),
        (&["f16", "3"], "the types are f32, f64, c32 and c64"),
        (&["f64"], "ORDERS"),
        (&["f64", "3-9", "--device", "7777"], "open device"),
        (&["f64", "3-9", "--device", "7777"], "by --gpu"),
        (&["f64", "3-9", "--gpu", "H2000"], "H200"),
        (&["f64", "3-9", "--gpu", "H200", "--device", "0"], "cannot be used with"),
    ] {
        let text = bench.error(&[&["warm"], words].concat(), &[]);
        assert!(text.contains(told), "{text}");
    }
}

#[test]
fn kernels_for_a_gpu_that_is_not_here_are_kept_and_found_again() {
    let bench = Bench::new();
    let warm = || {
        let words = ["warm", "f32", "3,4", "--op", "factorize", "--layout", "column-major", "--gpu", "sm_90"];
        bench.command(&words).env("BATCHLA_CACHE_DIR", bench.path("kernels")).output().unwrap()
    };
    let first = warm();
    let errors = String::from_utf8_lossy(&first.stderr);
    if !there("nvrtc", !errors.contains("there is no NVRTC")) {
        return;
    }
    let text = String::from_utf8(first.stdout).unwrap();
    assert_eq!(first.status.code(), Some(0), "{errors}");
    assert!(text.contains("2 kernels of 2 problems are ready, 2 of them compiled"), "{text}");
    let text = String::from_utf8(warm().stdout).unwrap();
    assert!(text.contains("2 kernels of 2 problems are ready, 0 of them compiled"), "{text}");
    let kept = bench.command(&["cache", "list"]).env("BATCHLA_CACHE_DIR", bench.path("kernels")).output().unwrap();
    let kept = String::from_utf8(kept.stdout).unwrap();
    assert_eq!(kept.matches("for sm_90 by NVRTC 1").count(), 2, "{kept}");
}
