//! The tuner from end to end, on kernels that run on the CPU: whatever it finds there, table and report are whole.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use batchla_bench::Tune;
use batchla_core::{ErrorKind, Operation, ScalarKind};
use batchla_cuda::{Tuned, TunedLayout, TunedTable};
use batchla_emulated::Emulated;

#[test]
fn a_run_leaves_a_table_that_is_used_and_a_report() {
    let gpu = match Emulated::new("sm_90").memory_bytes(1 << 30).open() {
        Err(error) if error.kind() == ErrorKind::Unavailable => {
            let required = std::env::var("BATCHLA_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|name| name == "emulated"), "{error}");
            return println!("skipped: {error}");
        }
        gpu => gpu.unwrap(),
    };
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let tune = Tune {
        scalar: ScalarKind::F64,
        operation: Operation::Factorize,
        layout: TunedLayout::ColumnMajor,
        orders: 5..=5,
        // All of the coarse stage, and nothing around its best.
        seconds: 0.01,
        batch: 4,
        device: 0,
        fresh: false,
        output: Some(report.clone()),
        command: "test".to_owned(),
    };
    let mut told = Vec::new();
    let tuning = tune.run_on(gpu.device(), folder.path(), &mut |line| told.push(line.to_owned())).unwrap();
    assert!(told.iter().any(|line| line.contains("coarse") && line.contains("s left")), "{told:?}");
    let limits = gpu.device().limits();
    let table = TunedTable::read(&tuning.table).unwrap();
    assert_eq!(table.objection(limits), None);
    let problem = TunedLayout::ColumnMajor.problem(ScalarKind::F64, Operation::Factorize, 9, 5).unwrap();
    let tuned = Tuned::load(folder.path(), limits);
    assert_eq!(tuned.row(&problem).map(|(_, row)| row), table.rows.first());
    assert_eq!(tuning.rows.len(), table.rows.len());
    let text = |name: &str| std::fs::read_to_string(report.join(name)).unwrap();
    assert!(text("tune.md").contains("NVIDIA H200, emulated") && text("tune.md").contains("residual"));
    assert!(text("tune.csv").lines().count() == 2 && text("tune-times.csv").lines().count() > 10);
    for figure in ["time", "roofline"] {
        assert!(text(&format!("figure-tuned-{figure}.svg")).starts_with("<svg"));
    }
    let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut left: Vec<_> = left.map(|name| name.into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, [table.file_name(), "report".to_owned()], "the journal is gone");
}
