use super::super::Tuned;
use super::*;

fn limits() -> Limits {
    Limits::preset("sm_90").unwrap()
}

fn table(rows: &[(usize, usize, &str)]) -> TunedTable {
    let receipt = Receipt::new("NVIDIA H200", "2026-01-31", "batchla tune f64");
    let rows = rows.iter().map(|&(first, last, plan)| TunedRow {
        first,
        last,
        plan: plan.to_owned(),
        speedup: 1.25,
        earlier: None,
    });
    TunedTable {
        rows: rows.collect(),
        ..TunedTable::new(&limits(), ScalarKind::F64, Operation::Invert, TunedLayout::ColumnMajor, &receipt)
    }
}

fn problem(order: usize) -> Problem {
    TunedLayout::ColumnMajor.problem(ScalarKind::F64, Operation::Invert, 7, order).unwrap()
}

fn choose(problem: &Problem, folder: &Path) -> (CudaPlan, batchla_core::Chosen) {
    CudaPlan::choose_tuned(problem, &Options::default(), &limits(), &Tuned::load(folder, &limits())).unwrap()
}

#[test]
fn a_table_that_was_written_chooses_from_then_on_and_only_what_it_was_measured_for() {
    let folder = tempfile::tempdir().unwrap();
    let written = table(&[(3, 20, "resident:panel=4"), (40, 41, "left-looking:panel=16")]);
    let path = written.write(folder.path()).unwrap();
    assert!(path.ends_with("nvidia-h200-sm_90-f64-invert-column-major.json"), "{}", path.display());
    assert_eq!(TunedTable::read(&path).unwrap(), written);
    let (plan, chosen) = choose(&problem(40), folder.path());
    assert_eq!(plan.getrf.unwrap().panel, 16);
    assert!(chosen.to_string().contains("column-major.json"), "{chosen}");
    assert_eq!(choose(&problem(17), folder.path()).0.resident.unwrap().panel, 4);
    let others = [
        problem(42),
        TunedLayout::RowMajor.problem(ScalarKind::F64, Operation::Invert, 7, 40).unwrap(),
        TunedLayout::ColumnMajor.problem(ScalarKind::F32, Operation::Invert, 7, 40).unwrap(),
        TunedLayout::ColumnMajor.problem(ScalarKind::F64, Operation::Factorize, 7, 40).unwrap(),
    ];
    for other in others {
        let (plan, chosen) = choose(&other, folder.path());
        let own = CudaPlan::choose(&other, &Options::default(), &limits()).unwrap();
        assert_eq!((plan, chosen), (own, batchla_core::Chosen::ByPlanner), "{other}");
    }
    // The batch has no say.
    let one = TunedLayout::ColumnMajor.problem(ScalarKind::F64, Operation::Invert, 1, 40).unwrap();
    assert_eq!(choose(&one, folder.path()).0.getrf.unwrap().panel, 16);
}

#[test]
fn what_other_orders_were_tuned_to_before_stays() {
    let before = table(&[(1, 9, "a"), (10, 20, "b"), (30, 60, "c"), (61, 70, "d")]);
    let mut now = table(&[(15, 40, "e")]);
    now.date = "2026-02-28".to_owned();
    now.keep_outside(&before, &(12..=50));
    let rows: Vec<_> = now.rows.iter().map(|row| (row.first, row.last, row.plan.as_str())).collect();
    assert_eq!(rows, [(1, 9, "a"), (10, 11, "b"), (15, 40, "e"), (51, 60, "c"), (61, 70, "d")]);
    let dates =
        |table: &TunedTable| table.rows.iter().map(|row| table.receipt(row).date.into_owned()).collect::<Vec<_>>();
    assert_eq!(dates(&now), ["2026-01-31", "2026-01-31", "2026-02-28", "2026-01-31", "2026-01-31"]);
    let mut last = table(&[(1, 5, "f")]);
    last.date = "2026-03-31".to_owned();
    last.keep_outside(&now, &(1..=11));
    let last = TunedTable::parse(serde_json::to_string(&last).unwrap().as_bytes()).unwrap();
    assert_eq!(dates(&last), ["2026-03-31", "2026-02-28", "2026-01-31", "2026-01-31"]);
}

#[test]
fn what_is_forced_by_name_is_not_tuned_away() {
    let folder = tempfile::tempdir().unwrap();
    table(&[(1, 50, "resident:panel=4")]).write(folder.path()).unwrap();
    let tuned = Tuned::load(folder.path(), &limits());
    let options = Options::default().with_plan("left-looking");
    let (plan, chosen) = CudaPlan::choose_tuned(&problem(40), &options, &limits(), &tuned).unwrap();
    assert_eq!((plan.name(), chosen), ("left-looking", batchla_core::Chosen::ByName));
}

#[test]
fn tables_of_other_gpus_and_versions_and_of_plans_not_the_planners_are_not_used() {
    let good = table(&[(1, 50, "left-looking:panel=16")]);
    assert_eq!(good.objection(&limits()), None);
    let with = |row: &str| table(&[(1, 50, row)]);
    for (bad, why) in [
        (TunedTable { version: "0.0.1".into(), ..good.clone() }, "batchla 0.0.1"),
        (TunedTable { gpu: "NVIDIA H100".into(), ..good.clone() }, "it is of NVIDIA H100"),
        (TunedTable { architecture: "sm_80".into(), ..good.clone() }, "(sm_80)"),
        (TunedTable { scalar: "f16".into(), ..good.clone() }, "no type \"f16\""),
        (TunedTable { operation: "solve".into(), ..good }, "\"solve\" is not tuned"),
        (with("timely"), "none of the planner's families"),
        (with("abacus"), "none of the planner's families"),
        (with("left-looking:panel=1000"), "is not between"),
        (with("left-looking:pannel=1"), "there is no number"),
    ] {
        let objection = bad.objection(&limits()).unwrap();
        assert!(objection.contains(why), "{objection}");
        // Found under the name of this GPU, it is passed over.
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("nvidia-h200-sm_90-f64-invert-column-major.json");
        std::fs::write(name, serde_json::to_string(&bad).unwrap()).unwrap();
        assert_eq!(choose(&problem(40), folder.path()).1, batchla_core::Chosen::ByPlanner, "{why}");
    }
}

#[test]
fn garbage_is_refused_in_words() {
    let whole = serde_json::to_string(&table(&[(1, 8, "resident"), (9, 9, "resident:panel=4")])).unwrap();
    assert!(TunedTable::parse(whole.as_bytes()).is_ok());
    for (bad, why) in [
        (String::new(), "EOF"),
        ("not json".to_owned(), "expected"),
        (whole[..whole.len() / 2].to_owned(), "EOF"),
        (whole.replace("plans 1", "plans 2"), "its format is"),
        (whole.replace("\"first\":9", "\"first\":8"), "not ascending"),
        (whole.replace("\"first\":1,", "\"first\":10,"), "not ascending"),
        (whole.replace("1.25", "-1.25"), "no speedup"),
        (whole.replace("\"gpu\"", "\"cpu\""), "unknown field"),
        (whole.replace("\"last\":8", "\"last\":-8"), "invalid value"),
    ] {
        let error = TunedTable::parse(bad.as_bytes()).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.json");
    std::fs::write(&path, vec![b' '; MOST_BYTES as usize + 5]).unwrap();
    let error = TunedTable::read(&path).unwrap_err();
    assert!(error.to_string().contains("more than") && error.advice().contains("batchla tune"), "{error}");
    assert_eq!(Tuned::load(&folder.path().join("nowhere"), &limits()).row(&problem(3)), None);
}
