//! Table, drawings and text from made-up measurements.

use std::fs;

use batchla_bench::{Figure, HEADER, Page, Receipt, Results, Row, Table, Timing, draw, paper, text, verdict};
use batchla_core::ScalarKind;

/// Every figure over two orders; each curve twice as fast as the one before it, ours eight times as fast as cuBLAS.
fn made_up(figures: &[Figure]) -> Results {
    let mut results = Results::default();
    for figure in figures {
        for scalar in [ScalarKind::C32, ScalarKind::F64] {
            for order in [33, 190] {
                for (place, series) in figure.series.iter().enumerate() {
                    let gflops = 10.0 * order as f64 * if series.label == "ours" { 8.0 } else { (1 << place) as f64 };
                    let base = series.base.iter().find(|base| **base != series.label);
                    let base = base.and_then(|base| results.best(figure.name, scalar, base, order));
                    let speedup = base.map(|base| gflops / base.timing.gflops);
                    let details = "some, plan".to_owned();
                    let timing = Timing { median_ms: 1.5, min_ms: 1.25, gflops, residual: 0.5, details };
                    let contestant = series.contestants[0].name(figure.routine);
                    let (figure, batch, series) = (figure.name, 100, series.label.clone());
                    results.rows.push(Row { figure, scalar, order, batch, series, contestant, timing, speedup });
                }
            }
        }
    }
    results
}

fn figures() -> Vec<Figure> {
    paper::NAMES.iter().filter_map(|name| paper::figure(name)).collect()
}

fn receipt() -> Receipt {
    Receipt { lines: vec![("GPU", "Some GPU".to_owned())], method: "Some method.".to_owned() }
}

#[test]
fn the_table_has_as_many_fields_in_every_row_as_in_its_head() {
    let folder = tempfile::tempdir().unwrap();
    let results = made_up(&figures());
    let mut table = Table::create(&folder.path().join("new"), "paper").unwrap();
    results.rows.iter().for_each(|row| table.push(row).unwrap());
    // Not closed: a run may be interrupted at any time.
    let text = fs::read_to_string(folder.path().join("new/paper.csv")).unwrap();
    assert_eq!(text.lines().count(), 1 + results.rows.len());
    let fields = HEADER.split(',').count();
    assert!(text.lines().all(|line| line.split(',').count() == fields), "{text}");
    assert!(
        text.contains("\n12,c32,33,100,ours,left-looking,1.50000,1.25000,2640.00,0.5000,8.000,some; plan\n"),
        "{text}"
    );
}

#[test]
fn every_figure_is_drawn() {
    assert_eq!(figures().len(), paper::NAMES.len());
    let folder = tempfile::tempdir().unwrap();
    let figures = figures();
    let results = made_up(&figures);
    for figure in &figures {
        let path = draw(figure, &results, folder.path()).unwrap().unwrap();
        let svg = fs::read_to_string(path).unwrap();
        assert!(svg.trim_end().ends_with("</svg>") && svg.contains("order n") && svg.contains("c32"), "{svg}");
        assert!(figure.series.iter().all(|series| svg.contains(series.label.as_str()) || series.label == "cuBLAS"));
        assert_eq!(draw(figure, &Results::default(), folder.path()).unwrap(), None);
    }
}

#[test]
fn the_text_says_what_agrees_and_what_was_left_out() {
    let figures = figures();
    let page = text(&Page::PAPER, &receipt(), &figures, &made_up(&figures), &["no cuBLAS was found".to_owned()]);
    for expected in [
        "| GPU | Some GPU |",
        "\nSome method.\n\nThe paper's numbers are of a TITAN V",
        "| f64 | v2 parallel interchange is faster than v1 |",
        "- no cuBLAS was found",
        "## Figure 10: LU by panel width",
        "| c32 | the best is NB=14 | NB=18, 8920 GFLOP/s in the mean over the orders | no |",
        "| c32 | ours is 7 to 8 times as fast as cuBLAS | 8.00 at n = 33, 8.00 at n = 190, at most 8.00 at n = 190 | yes |",
        "| f64 | ours is 9 to 12 times as fast as cuBLAS |",
        "The measurement disagrees: 8.00 is less.",
        "| c32 | v3 is 2 to 5 times as fast as v1 |",
        "c32: the paper says that ours reaches 2000 GFLOP/s, on a TITAN V; here: 15200 GFLOP/s at n = 190, 7.6 times as much.",
        "## LU by family of plans",
        "| 33 | 330 | 660 (2.00) | 2640 (8.00) |",
        "| 33 | 1 (330) | 2.00 (660) | 8.00 (2640) |",
    ] {
        assert!(page.contains(expected), "{expected} is not in\n{page}");
    }
    let nothing = text(&Page::PAPER, &receipt(), &figures, &Results::default(), &[]);
    assert!(nothing.contains("Nothing was measured.") && !nothing.contains("Left out"));
}

#[test]
fn what_was_not_measured_is_not_judged() {
    for figure in figures() {
        assert!(figure.claims.iter().all(|claim| verdict(&figure, claim, &Results::default()).is_none()));
    }
}
