//! The record in words: what it was measured on, a table a figure, and agreement with the paper.

use std::fmt::Write;

use batchla_core::ScalarKind;
use batchla_cuda::Device;

use crate::paper::{Figure, Routine, Shows};
use crate::record::today;
use crate::results::Results;
use crate::verdict::verdict;

/// What was measured with, so that it can be measured again.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// The GPU and the CUDA version of its driver.
    pub gpu: String,
    /// The driver, in its own words.
    pub driver: String,
    /// The version of cuBLAS, or `none`.
    pub cublas: String,
    /// The day.
    pub date: String,
    /// The command line.
    pub command: String,
    /// Matrices.
    pub batch: usize,
    /// Repetitions.
    pub repetitions: usize,
}

impl Receipt {
    pub(crate) fn of(device: &Device, cublas: &str, command: &str, batch: usize, repetitions: usize) -> Self {
        let version = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
        let driver = version.lines().next().map_or("unknown", str::trim).to_owned();
        let (gpu, cublas, command) = (device.to_string(), cublas.to_owned(), command.to_owned());
        Self { gpu, driver, cublas, date: today(), command, batch, repetitions }
    }
}

/// The whole text. Writing to a string cannot fail, so what `write!` gives is not looked at.
pub fn readme(receipt: &Receipt, figures: &[Figure], results: &Results, notes: &[String]) -> String {
    let Receipt { gpu, driver, cublas, date, command, batch, repetitions } = receipt;
    let mut text = format!(
        "# Figures 10 to 18 of Liu et al. 2023, drawn again\n\n\
         | | |\n| --- | --- |\n| GPU | {gpu} |\n| driver | {driver} |\n| cuBLAS | {cublas} |\n| date | {date} |\n| command | `{command}` |\n\n\
         {batch} matrices of random numbers, uniform in [-1, 1), 64 different ones again and again, column-major in device memory. Each time is \
         the median of {repetitions} repetitions after one that is not counted, by CUDA events around the routine alone; before each, the input is \
         copied anew, and the copy is not timed. GFLOP/s by 2/3 n³ (LU) and 2 n³ (inverse), four times that for complex types. A time \
         counts only if the residual ratio of four matrices is below 30, for cuBLAS too. The paper's numbers are of a TITAN V with CUBLAS \
         9.1.85; MAGMA, which it also compares with, is not measured here. Every row is in `paper.csv`.\n"
    );
    if !notes.is_empty() {
        text.push_str("\n## Left out\n\n");
        notes.iter().for_each(|note| text.push_str(&format!("- {}\n", note.replace('\n', " "))));
    }
    for figure in figures {
        section(&mut text, figure, results);
    }
    text
}

fn section(text: &mut String, figure: &Figure, results: &Results) {
    let name = figure.name;
    let number = name.parse::<u32>().is_ok();
    let heading = if number { format!("Figure {name}") } else { "Beside the figures".to_owned() };
    let _ = write!(text, "\n## {heading}: {}\n\n", figure.title);
    let scalars = results.scalars(name);
    if scalars.is_empty() {
        text.push_str("Nothing was measured.\n");
        return;
    }
    let _ = write!(text, "![{heading}](figure-{name}.svg)\n\n");
    let verdicts: Vec<_> =
        figure.claims.iter().filter_map(|claim| Some((claim, verdict(figure, claim, results)?))).collect();
    if !verdicts.is_empty() {
        text.push_str("| type | the paper | here | agrees |\n| --- | --- | --- | --- |\n");
        for (claim, verdict) in &verdicts {
            let agrees = verdict.agrees.map_or("-", |agrees| if agrees { "yes" } else { "no" });
            let _ = writeln!(text, "| {} | {} | {} | {agrees} |", claim.scalar, verdict.paper, verdict.here);
        }
        text.push('\n');
        verdicts.iter().for_each(|(_, verdict)| text.push_str(&format!("- {}\n", verdict.sentence)));
        text.push('\n');
    }
    let what = match figure.shows {
        Shows::Speed => "GFLOP/s, in brackets how many times as fast as the base",
        Shows::Speedup => "How many times as fast as the base, in brackets GFLOP/s",
    };
    let routine = if figure.routine == Routine::Lu { "LU in place" } else { "LU and inversion" };
    let _ = writeln!(text, "{what} ({routine}).");
    scalars.into_iter().for_each(|scalar| table(text, figure, results, scalar));
}

fn table(text: &mut String, figure: &Figure, results: &Results, scalar: ScalarKind) {
    let present = |label: &str| {
        results.rows.iter().any(|row| row.figure == figure.name && row.scalar == scalar && row.series == label)
    };
    let series: Vec<_> = figure.series.iter().filter(|series| present(series.label)).collect();
    let _ = write!(text, "\n| {scalar}, n |");
    series.iter().for_each(|series| text.push_str(&format!(" {} |", series.label)));
    text.push_str("\n| ---: |");
    series.iter().for_each(|_| text.push_str(" ---: |"));
    text.push('\n');
    for order in results.orders(figure.name, scalar) {
        let _ = write!(text, "| {order} |");
        for one in &series {
            let cell = results.best(figure.name, scalar, one.label, order).map_or_else(String::new, |row| {
                let which = if one.contestants.len() > 1 { width(&row.contestant) } else { "" };
                match (row.speedup, figure.shows) {
                    (Some(ratio), Shows::Speed) => format!("{:.0} ({ratio:.2}) {which}", row.timing.gflops),
                    (Some(ratio), Shows::Speedup) => format!("{ratio:.2} ({:.0}) {which}", row.timing.gflops),
                    (None, Shows::Speed) => format!("{:.0} {which}", row.timing.gflops),
                    (None, Shows::Speedup) => format!("1 ({:.0}) {which}", row.timing.gflops),
                }
            });
            let _ = write!(text, " {} |", cell.trim());
        }
        text.push('\n');
    }
}

/// The numbers of a plan's name.
fn width(contestant: &str) -> &str {
    contestant.split_once(':').map_or("", |(_, numbers)| numbers)
}
