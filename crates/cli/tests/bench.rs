//! `batchla bench speed`, run as its user runs it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod program;

use serde_json::Value;

use crate::program::Bench;

#[test]
fn a_record_has_rows_drawings_and_a_page() {
    let bench = Bench::new();
    let words = ["bench", "speed", "--scalars", "f64,c32", "--orders", "3,8", "--batch", "100", "--repetitions", "2"];
    let told =
        bench.well(&[&words[..], &["--backend", "cpu", "--threads", "1", "--output", "record", "--json"]].concat());
    let rows: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    // Two types, two orders, two routines, each in two figures.
    let ours: Vec<&Value> = rows.iter().filter(|row| row["contestant"] == "batchla").collect();
    assert_eq!(ours.len(), 16, "{told}");
    assert!(
        rows.iter().all(|row| row["residual_ratio"].as_f64().unwrap() < 30.0 && row["gflops"].as_f64().unwrap() > 0.0)
    );
    let shares = rows.iter().filter_map(|row| row["share_of_roofline"].as_f64());
    assert!(shares.clone().count() >= 8 && shares.clone().all(|share| share > 0.0), "{told}");
    let names: Vec<String> =
        ["lu", "inverse", "lu-roofline", "inverse-roofline"].map(|name| format!("figure-{name}.svg")).into();
    for name in &names {
        assert!(bench.bytes(&format!("record/{name}")).starts_with(b"<svg"), "{name}");
        let png = bench.path(&format!("record/{name}").replace(".svg", ".png"));
        // Where there are fonts.
        assert!(!png.exists() || std::fs::read(&png).unwrap().starts_with(b"\x89PNG"), "{name}");
    }
    let page = String::from_utf8(bench.bytes("record/speed.md")).unwrap();
    assert!(names.iter().all(|name| page.contains(name)) && page.contains("GFLOP/s, order 1024"), "{page}");
    assert_eq!(bench.bytes("record/speed.csv").iter().filter(|byte| **byte == b'\n').count(), 1 + rows.len());
}

#[test]
fn what_cannot_be_measured_is_refused() {
    let bench = Bench::new();
    for (words, told) in [
        (&["--scalars", "f16"][..], "the types are f32, f64, c32 and c64"),
        (&["--repetitions", "0"], "not a number above zero"),
        (&["--threads", "0"], "0 threads compute nothing"),
    ] {
        let text = bench.error(&[&["bench", "speed"], words].concat(), &[]);
        assert!(text.contains(told), "{text}");
    }
    let text = bench.error(&["bench", "host", "--gigabytes", "0"], &[]);
    assert!(text.contains("not a number above zero"), "{text}");
    for name in ["host", "orders", "gpus"] {
        let text = bench.error(&["bench", name, "--device", "7777", "--output", "record"], &[]);
        assert!(text.contains("open device") && !bench.path("record").exists(), "{text}");
    }
}
