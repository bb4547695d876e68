//! `batchla tune`: the fastest plans on the GPU at hand.

use std::io::Write;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use batchla::cuda::TunedLayout;
use batchla::{Error, Operation, ScalarKind};
use batchla_bench::{Proved, Tune, Tuning};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::bench::{at_least_one, command, minutes, scalar};
use crate::interrupt::{Doing, Interrupt};
use crate::print;

/// Find the fastest plans on this GPU, for one type and operation, and use them from then on.
///
/// The planner's tables were measured on one GPU, and are a guess on others. This times what there is to choose from: coarsely at a few orders,
/// finely around the best, then the survivors over all orders, as closely as the time allows. A time counts only where the result is right. What beats the
/// planner's own plan by more than the noise goes into a table, in the folder that BATCHLA_TUNED_DIR names, else in the user's data folder, and every
/// program that uses batchla takes its plans from there. Bits of results do not change: all plans to choose from have one arithmetic.
///
/// Ctrl-C ends it at any time without loss: what was measured is kept, and the same command goes on from there. `batchla plan` tells whether a plan is
/// from the table; removing the file, or BATCHLA_TUNED_DIR=off, undoes it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TuneOptions {
    /// The type: f32, f64, c32 or c64
    #[arg(value_name = "TYPE", value_parser = scalar)]
    scalar: ScalarKind,

    /// What is computed, from matrices; other operations keep the planner's own plans
    #[arg(long, value_enum, default_value_t = What::Invert)]
    op: What,

    /// Which orders
    #[arg(long, value_name = "FROM..TO", value_parser = orders, default_value = "1..256")]
    orders: RangeInclusive<usize>,

    /// How the matrices lie, those of the result too
    #[arg(long, value_enum, default_value_t = Layout::ColumnMajor)]
    layout: Layout,

    /// Measure for so long, in all: earlier runs that were interrupted count too
    #[arg(long, value_name = "M", value_parser = minutes, default_value = "10")]
    minutes: Duration,

    /// How many matrices are timed at once; two fifths of them above order 190, a tenth above 384
    #[arg(long, value_name = "COUNT", default_value_t = 10_000, value_parser = at_least_one)]
    batch: usize,

    /// The GPU, by its number among those that CUDA_VISIBLE_DEVICES shows
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: usize,

    /// Begin anew, and forget what an interrupted run has measured
    #[arg(long)]
    fresh: bool,

    /// Do not tune: time the plans in use beside all that could be chosen, in alternating rounds, at so many random orders
    #[arg(long, value_name = "COUNT", value_parser = at_least_one, conflicts_with_all = ["minutes", "fresh"])]
    prove: Option<usize>,

    /// Folder of the report: tune.md, drawings of time and of the share of the roofline, every time [default: benches/record/GPU/DATE]
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  batchla tune f64                                      inverses of orders 1 to 256, ten minutes
  batchla tune f32 --op factorize --orders 1..64 --minutes 3
  batchla tune c64 --layout row-major -o tuned          what NumPy's order takes
  batchla tune f64 --prove 30                           how far from the fastest the plans in use are
  batchla plan f64 100                                  whether, and why, the table has its plan

Exit code:
  0  the table was written
  1  there is no GPU, or the call failed; what was measured is kept";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    Factorize,
    Invert,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Layout {
    ColumnMajor,
    RowMajor,
}

/// The last line of progress, for who interrupts.
#[derive(Debug, Default)]
struct Last(Mutex<String>);

impl Doing for Last {
    fn told(&self) -> String {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        format!("{last}\nwhat was measured is kept; the same command goes on from there")
    }
}

impl TuneOptions {
    /// Runs the command; gives the exit code.
    pub(crate) fn run(self) -> Result<u8, Error> {
        let tune = Tune {
            scalar: self.scalar,
            operation: if self.op == What::Invert { Operation::Invert } else { Operation::Factorize },
            layout: if self.layout == Layout::RowMajor { TunedLayout::RowMajor } else { TunedLayout::ColumnMajor },
            orders: self.orders,
            seconds: self.minutes.as_secs_f64(),
            batch: self.batch,
            device: self.device,
            fresh: self.fresh,
            output: self.output,
            command: command(),
        };
        let (interrupt, last) = (Interrupt::watch(), Arc::new(Last::default()));
        interrupt.tell(Arc::<Last>::clone(&last));
        let mut progress = |line: &str| {
            line.clone_into(&mut last.0.lock().unwrap_or_else(PoisonError::into_inner));
            // Where standard error is closed, the table is still written.
            let _ = writeln!(std::io::stderr(), "{line}");
        };
        if let Some(count) = self.prove {
            let rows = tune.prove(count, &mut progress)?;
            return print("tune", &if self.json { proof_as_json(&rows) } else { proof_in_words(&rows) });
        }
        let tuning = tune.run(&mut progress)?;
        print("tune", &if self.json { as_json(&tuning) } else { in_words(&tuning) })
    }
}

fn in_words(tuning: &Tuning) -> String {
    let Tuning { table, report, rows, margin } = tuning;
    let nothing = "nothing was faster than the planner's own plans".to_owned();
    let rows = if rows.is_empty() { nothing } else { rows.join("\n") };
    let least = 100.0 * (margin.exp() - 1.0);
    format!(
        "{rows}\neach by more than {least:.1} %, twice the noise; in use from now on: {}\nreport in {}",
        table.display(),
        report.display()
    )
}

fn proof_in_words(rows: &[Proved]) -> String {
    let worst = rows.iter().map(Proved::ratio).fold(0.0, f64::max);
    let near = rows.iter().filter(|row| row.ratio() <= 1.05).count();
    format!(
        "at {near} of {} orders the plan in use takes at most 1.05 times the best of all, at all of them {worst:.3}",
        rows.len()
    )
}

fn proof_as_json(rows: &[Proved]) -> String {
    let row = |row: &Proved| json!({ "order": row.order, "plan": row.plan, "ms": row.ms, "best": row.best, "best_ms": row.best_ms });
    json!(rows.iter().map(row).collect::<Vec<_>>()).to_string()
}

fn as_json(tuning: &Tuning) -> String {
    let Tuning { table, report, rows, margin } = tuning;
    let (table, report) = (table.display().to_string(), report.display().to_string());
    json!({ "table": table, "report": report, "rows": rows, "margin": margin }).to_string()
}

/// `1..256`, both ends in it, or one order.
fn orders(text: &str) -> Result<RangeInclusive<usize>, String> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let number = |text: &str| text.trim_start_matches('=').parse().ok().filter(|order| *order > 0);
    match (number(from), number(to)) {
        (Some(from), Some(to)) if from <= to => Ok(from..=to),
        _ => Err("not a range of orders from 1 up, as 1..256, both ends in it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_both_ends_in_it() {
        assert_eq!(orders("1..256"), Ok(1..=256));
        assert_eq!((orders("3..=4"), orders("7")), (Ok(3..=4), Ok(7..=7)));
        for bad in ["", "0..4", "5..4", "a..b", "1..", "..8", "-1..3"] {
            assert!(orders(bad).is_err(), "{bad}");
        }
    }
}
