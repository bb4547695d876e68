//! The record in words: what it was measured on, a table a figure, and agreement with what is claimed.

use std::fmt::Write;

use batchla_core::ScalarKind;
use batchla_cuda::Device;

use crate::campaign::Campaign;
use crate::figure::{Figure, Routine, Shows};
use crate::record::today;
use crate::results::Results;
use crate::verdict::verdict;

/// What a page is about.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The name of its files.
    pub name: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Sentences that only it has.
    pub about: &'static str,
}

impl Page {
    /// The paper's figures.
    pub const PAPER: Self = Self {
        name: "paper",
        title: "Figures 10 to 18 of Liu et al. 2023, drawn again",
        about: "The paper's numbers are of a TITAN V with CUBLAS 9.1.85. The last two figures are beside it: the steps of MAGMA's slides on batched LU, \
                and other families of plans.",
    };
    /// Ours beside others.
    pub const PEERS: Self = Self {
        name: "peers",
        title: "LU and inversion beside cuBLAS and MAGMA",
        about: "Ours is what the planner chooses. Two figures are also of batches of 100 matrices and of one.",
    };
    /// Ours on this machine, host memory to host memory.
    pub const SPEED: Self = Self { name: "speed", title: "LU and inversion on this machine", about: "" };
    /// Plans of the user's choice.
    pub const PLANS: Self = Self { name: "plans", title: "Plans beside each other", about: "" };
}

/// What was measured with, so that it can be measured again.
#[derive(Clone, Debug)]
pub struct Receipt {
    /// Name and value of each line.
    pub lines: Vec<(&'static str, String)>,
    /// How matrices were made and times taken.
    pub method: String,
}

impl Receipt {
    pub(crate) fn of(device: &Device, cublas: &str, magma: &str, copy: f64, campaign: &Campaign) -> Self {
        let version = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
        let driver = version.lines().next().map_or("unknown", str::trim).to_owned();
        let compiler = device.compiler().unwrap_or_else(|error| error.to_string());
        let lines = vec![
            ("GPU", device.to_string()),
            ("driver", driver),
            ("compiler", compiler),
            ("cuBLAS", cublas.to_owned()),
            ("MAGMA", magma.to_owned()),
            (
                "roofline",
                format!(
                    "each matrix read and written once, at {:.0} GB/s, the speed of a copy on the device",
                    copy / 1e9
                ),
            ),
            ("date", today()),
            ("command", format!("`{}`", campaign.command)),
        ];
        let Campaign { batch, repetitions, .. } = campaign;
        let method = format!(
            "{batch} matrices ({} above order 190, {} above 384) of random numbers, uniform in [-1, 1), 64 different ones again and again, column-major in \
             device memory. Each time is the median of {repetitions} repetitions after one that is not counted, by CUDA events around the routine \
             alone; before each, the input is copied anew, and the copy is not timed. PyTorch copies the input itself before it calls MAGMA: the \
             time of such a copy, measured beside it, is subtracted. GFLOP/s by 2/3 n³ (LU) and 2 n³ (inverse), four times that for complex \
             types. A time counts only if the residual ratio of four matrices is below 30, for everybody.",
            campaign.batch_of(191),
            campaign.batch_of(385),
        );
        Self { lines, method }
    }
}

/// The whole text. Writing to a string cannot fail, so what `write!` gives is not looked at.
pub fn text(page: &Page, receipt: &Receipt, figures: &[Figure], results: &Results, notes: &[String]) -> String {
    let mut text = format!("# {}\n\n| | |\n| --- | --- |\n", page.title);
    receipt.lines.iter().for_each(|(name, value)| text.push_str(&format!("| {name} | {value} |\n")));
    let _ = write!(text, "\n{}\n\n{} Every row is in `{}.csv`.\n", receipt.method, page.about, page.name);
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
    let heading = if number { format!("Figure {name}: {}", figure.title) } else { figure.title.clone() };
    let _ = write!(text, "\n## {heading}\n\n");
    let scalars = results.scalars(name);
    if scalars.is_empty() {
        text.push_str("Nothing was measured.\n");
        return;
    }
    let _ = write!(text, "![{heading}](figure-{name}.svg)\n\n");
    let verdicts: Vec<_> =
        figure.claims.iter().filter_map(|claim| Some((claim, verdict(figure, claim, results)?))).collect();
    if !verdicts.is_empty() {
        let _ = writeln!(text, "| type | {} | here | agrees |\n| --- | --- | --- | --- |", figure.source);
        for (claim, verdict) in &verdicts {
            let agrees = verdict.agrees.map_or("-", |agrees| if agrees { "yes" } else { "no" });
            let _ = writeln!(text, "| {} | {} | {} | {agrees} |", claim.scalar, verdict.claimed, verdict.here);
        }
        text.push('\n');
        verdicts.iter().for_each(|(_, verdict)| text.push_str(&format!("- {}\n", verdict.sentence)));
        text.push('\n');
    }
    let what = match figure.shows {
        Shows::Speed => "GFLOP/s, in brackets how many times as fast as the base",
        Shows::Speedup => "How many times as fast as the base, in brackets GFLOP/s",
        Shows::Share => "Share of the roofline, in brackets GFLOP/s",
        Shows::Time => "GFLOP/s",
    };
    let routine = match figure.routine {
        Routine::Lu => "LU in place",
        Routine::Inverse => "LU and inversion",
        Routine::Solve => "LU and solution with one right-hand side, in its place",
        Routine::SolveMany => "LU and solution with as many right-hand sides as the order, in their place",
    };
    let _ = writeln!(text, "{what} ({routine}).");
    scalars.into_iter().for_each(|scalar| table(text, figure, results, scalar));
}

fn table(text: &mut String, figure: &Figure, results: &Results, scalar: ScalarKind) {
    let present = |label: &str| {
        results.rows.iter().any(|row| row.figure == figure.name && row.scalar == scalar && row.series == label)
    };
    let series: Vec<_> = figure.series.iter().filter(|series| present(&series.label)).collect();
    let _ = write!(text, "\n| {scalar}, n |");
    series.iter().for_each(|series| text.push_str(&format!(" {} |", series.label)));
    text.push_str("\n| ---: |");
    series.iter().for_each(|_| text.push_str(" ---: |"));
    text.push('\n');
    for order in results.orders(figure.name, scalar) {
        let _ = write!(text, "| {order} |");
        for one in &series {
            let cell = results.best(figure.name, scalar, &one.label, order).map_or_else(String::new, |row| {
                let which = if one.contestants.len() > 1 { width(&row.contestant) } else { "" };
                match (row.speedup, figure.shows) {
                    (Some(ratio), Shows::Speed) => format!("{:.0} ({ratio:.2}) {which}", row.timing.gflops),
                    (Some(share), Shows::Share) => format!("{:.0} % ({:.0}) {which}", 100.0 * share, row.timing.gflops),
                    (Some(ratio), Shows::Speedup) => format!("{ratio:.2} ({:.0}) {which}", row.timing.gflops),
                    (None, Shows::Speed | Shows::Share) | (_, Shows::Time) => {
                        format!("{:.0} {which}", row.timing.gflops)
                    }
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
