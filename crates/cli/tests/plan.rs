//! `batchla plan`, `batchla cache` and `--plan`, run as their user runs them, on a machine that may have no GPU.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod program;

use std::fs;
use std::path::Path;

use batchla::cuda::{Digest, DiskCache};
use serde_json::Value;

use crate::program::Bench;

fn explained(bench: &Bench, words: &[&str]) -> Value {
    let (code, value) = bench.summary(&[&["plan"], words].concat());
    assert_eq!(code, 0, "{value}");
    value
}

#[test]
fn a_plan_tells_what_runs_where_its_numbers_are_from_and_why_no_other() {
    let bench = Bench::new();
    for (words, name, measured) in [
        (&["f64", "300", "--op", "invert"][..], "blocked", "NVIDIA H200"),
        (&["f64", "16", "--op", "invert"], "resident", "NVIDIA H200"),
    ] {
        let value = explained(&bench, &[words, &["--gpu", "sm_90"]].concat());
        assert_eq!(value["name"], name);
        assert!(value["device"].as_str().unwrap().starts_with("NVIDIA H200 (sm_90)"), "{value}");
        assert_eq!(value["arithmetic"], "cuda-fused-f64");
        let steps = value["steps"].as_array().unwrap();
        assert!(steps.iter().all(|step| step["threads"].as_u64().unwrap() > 0 && step["launches"].as_u64() >= Some(1)));
        assert!(steps.iter().any(|step| step["occupancy"]["blocks"].as_u64() >= Some(1)), "{value}");
        assert!(value["numbers"][0]["device"] == measured && value["numbers"][0]["date"] != "");
        let rejected = value["rejected"].as_array().unwrap();
        assert!(rejected.len() > 10 && rejected.iter().all(|one| one["reason"].as_str().unwrap().len() > 20));
    }
    let told = bench.well(&["plan", "f64", "128", "--gpu", "a100"]);
    for word in ["NVIDIA A100", "not chosen", "a multiprocessor", "NVIDIA H200, 2026-", "same bits"] {
        assert!(told.contains(word), "{word}: {told}");
    }
}

#[test]
fn every_number_names_machine_date_and_command_and_its_record_or_that_there_is_none() {
    let bench = Bench::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for op in ["factorize", "invert", "solve"] {
        for order in ["3", "40", "128", "300"] {
            for scalar in ["f32", "f64", "c32", "c64"] {
                for place in [["--gpu", "sm_90"], ["--backend", "cpu"]] {
                    let value = explained(&bench, &[&[scalar, order, "--op", op][..], &place].concat());
                    let numbers = value["numbers"].as_array().unwrap();
                    assert!(!numbers.is_empty(), "{value}");
                    for one in numbers {
                        let [row, device, date, command] =
                            ["row", "device", "date", "command"].map(|key| one[key].as_str().unwrap());
                        assert!(row.contains(scalar) && device.len() > 5 && command.len() > 20, "{one}");
                        let parts: Vec<_> =
                            date.split('-').map(|part| (part.len(), part.parse::<u32>().is_ok())).collect();
                        assert_eq!(parts, [(4, true), (2, true), (2, true)], "{one}");
                        let record = command.split_whitespace().find(|word| word.starts_with("benches/record/"));
                        let kept = record.is_some_and(|file| root.join(file.trim_end_matches([',', ';'])).is_file());
                        assert!(kept || record.is_none() && command.ends_with("no record was kept"), "{one}");
                    }
                }
            }
        }
    }
}

#[test]
fn every_operation_layout_gpu_and_backend_has_a_plan() {
    let bench = Bench::new();
    for words in [
        &["c64", "300", "--op", "factorize", "--determinant"][..],
        &["f32", "40", "--op", "solve", "--rhs", "5", "--layout", "row-major"],
        &["c32", "40", "--op", "solve", "--factors", "--layout", "interleaved"],
        &["f64", "40", "--op", "determinant", "--gpu", "V100"],
        &["f64", "0", "--condition", "--gpu", "sm_120"],
        &["f64", "40", "--op", "invert", "--factors", "--plan", "left-looking:inverse-block=4"],
        &["f64", "40", "--backend", "cpu", "--threads", "2", "--batch", "7"],
        &["f64", "40", "--backend", "cpu", "--plan", "faer"],
    ] {
        explained(&bench, words);
    }
}

#[test]
fn what_cannot_be_planned_is_refused_with_the_reason() {
    let bench = Bench::new();
    for (words, told) in [
        (&["f16", "8"][..], "the types are f32, f64, c32 and c64"),
        (&["f64", "8", "--gpu", "sm_35"], "sm_90 (NVIDIA H200)"),
        (&["f64", "8", "--gpu", "sm_90", "--plan", "abacus"], "the CUDA backend has the plans left-looking"),
        (&["f64", "8", "--gpu", "sm_90", "--plan", "left-looking:panel=900"], "is not between"),
        (&["f64", "8", "--backend", "cpu", "--plan", "resident"], "interleaved, blocked, faer"),
        (&["f64", "8", "--backend", "cpu", "--gpu", "sm_90"], "--gpu is for the CUDA backend"),
        (&["f64", "8", "--threads", "3"], "--threads is for the CPU backend"),
        (&["f64", "8", "--op", "factorize", "--condition"], "the condition number"),
    ] {
        let text = bench.error(&[&["plan"], words].concat(), &[]);
        assert!(text.contains(told), "{words:?}: {text}");
    }
}

#[test]
fn every_command_that_computes_takes_a_plan_by_name() {
    let bench = Bench::new();
    bench.well(&["generate", "normal", "--batch", "20", "--order", "9", "-o", "a.npy"]);
    bench.well(&["generate", "right-hand-sides", "--batch", "20", "--order", "9", "-o", "b.npy"]);
    let cpu = ["--backend", "cpu", "--threads", "1"];
    for (words, written) in [
        (&["invert", "a.npy", "-o", "x.npy"][..], "x.npy"),
        (&["factorize", "a.npy", "-o", "lu.npy", "-p", "p.npy"], "lu.npy"),
        (&["solve", "a.npy", "b.npy", "-o", "y.npy"], "y.npy"),
        (&["det", "a.npy", "-o", "d.npy"], "d.npy"),
    ] {
        let bytes = |plan: &str| {
            let (code, summary) = bench.summary(&[words, &cpu, &["--plan", plan]].concat());
            assert_eq!(code, 0, "{summary}");
            assert!(summary["plan"].as_str().unwrap().starts_with(plan), "{summary}");
            bench.bytes(written)
        };
        // Plans of one arithmetic.
        assert_eq!(bytes("blocked"), bytes("interleaved"), "{words:?}");
        bytes("faer");
        let names = bench.names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let text = bench.error(&[words, &cpu, &["--plan", "abacus"]].concat(), &names);
        assert!(text.contains("plan abacus was rejected"), "{text}");
    }
    let words = ["bench", "speed", "--scalars", "f64", "--orders", "5", "--batch", "9", "--repetitions", "1"];
    bench.well(&[&words[..], &cpu, &["--numpy", "none", "-o", "record", "--plan", "faer"]].concat());
    let table = String::from_utf8(bench.bytes("record/speed.csv")).unwrap();
    assert!(table.lines().skip(1).all(|line| line.contains("faer f64 n=5")), "{table}");
}

/// What the program says with a folder for its kernels.
fn cached(bench: &Bench, folder: &str, words: &[&str]) -> (Option<i32>, String) {
    let mut command = bench.command(words);
    let output = command.env("BATCHLA_CACHE_DIR", folder).env("BATCHLA_CACHE_SIZE", "3MB").output().unwrap();
    let told = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(told).unwrap())
}

#[test]
fn kernels_on_disk_are_listed_with_what_they_are_and_cleared() {
    let bench = Bench::new();
    let folder = bench.path("kernels");
    let shown = folder.to_str().unwrap();
    let run = |words: &[&str]| cached(&bench, shown, &[&["cache"], words].concat());
    assert_eq!(run(&["path"]), (Some(0), format!("{shown}\n")));
    assert!(run(&["list"]).1.contains("the folder is not there yet"));
    let cache = DiskCache::at(&folder);
    for (name, bytes) in [("getrf of getrf.cu (N=3) for sm_90 by NVRTC 13.0", 1000), ("getri of getri.cu", 2000)] {
        cache.store(&Digest::of(name.as_bytes()), name, &vec![1; bytes]);
    }
    fs::write(folder.join("0000.kernel"), "damage").unwrap();
    let (code, told) = run(&["list"]);
    assert_eq!(code, Some(0), "{told}");
    for words in ["getrf of getrf.cu (N=3) for sm_90 by NVRTC 13.0", "damaged", "3 kernels, 3.", "at most 3.00 MB"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    let (_, lines) = run(&["list", "--json"]);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert!(
        lines.iter().any(|line| line["about"].is_null()) && lines.iter().all(|line| line["bytes"].as_u64() > Some(0))
    );
    assert!(run(&["clear"]).1.starts_with("3 kernels, "));
    assert!(run(&["list"]).1.starts_with("0 kernels, "));
    assert_eq!(run(&["list", "--json"]), (Some(0), String::new()));
    for what in ["list", "path", "clear"] {
        let (code, told) = cached(&bench, "off", &["cache", what]);
        assert!(code == Some(1) && told.contains("BATCHLA_CACHE_DIR is off"), "{told}");
    }
}

#[test]
fn tuning_is_refused_with_the_reason_where_it_cannot_be() {
    let bench = Bench::new();
    for (words, told) in [
        (&["f16"][..], "the types are f32, f64, c32 and c64"),
        (&["f64", "--orders", "9..3"], "not a range of orders"),
        (&["f64", "--minutes", "0"], "not a number of minutes"),
        (&["f64", "--op", "solve"], "factorize, invert"),
    ] {
        let text = bench.error(&[&["tune"], words].concat(), &[]);
        assert!(text.contains(told), "{words:?}: {text}");
    }
    let off = bench.batchla(&["tune", "f64"]);
    let told = String::from_utf8(off.stderr).unwrap();
    assert!(off.status.code() == Some(1) && told.contains("set BATCHLA_TUNED_DIR to a folder"), "{told}");
}

#[test]
fn a_table_of_the_tuner_is_used_and_told_and_a_damaged_one_is_neither() {
    use batchla::cuda::{Limits, TunedLayout, TunedRow, TunedTable};
    use batchla::{Operation, Receipt, ScalarKind};
    let bench = Bench::new();
    let limits = Limits::preset("sm_90").unwrap();
    let receipt = Receipt::new("NVIDIA H200", "2026-01-31", "batchla tune f64 --minutes 3");
    let mut table = TunedTable::new(&limits, ScalarKind::F64, Operation::Invert, TunedLayout::ColumnMajor, &receipt);
    table.rows =
        vec![TunedRow { first: 90, last: 130, plan: "left-looking:panel=16".to_owned(), speedup: 1.25, earlier: None }];
    let path = table.write(&bench.path("tuned")).unwrap();
    let explained = |order: &str| {
        let words = ["plan", "f64", order, "--gpu", "sm_90", "--json"];
        let output = bench.command(&words).env("BATCHLA_TUNED_DIR", bench.path("tuned")).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let value = explained("128");
    assert!(value["plan"].as_str().unwrap().contains("getrf panel=16"), "{value}");
    assert!(value["chosen"].as_str().unwrap().contains("invert-column-major.json"), "{value}");
    assert_eq!(value["numbers"][0]["command"], "batchla tune f64 --minutes 3");
    assert_eq!(explained("131")["chosen"], "by the planner");
    fs::write(path, "{}").unwrap();
    assert_eq!(explained("128")["chosen"], "by the planner");
}
