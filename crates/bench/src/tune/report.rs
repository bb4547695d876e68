//! What came of tuning, in words and drawings: time and share of the roofline over the order, a colour a family.

use std::fmt::Write;
use std::path::Path;

use batchla_core::{Error, Scalar};
use batchla_cuda::Device;

use super::Tune;
use super::clock::GpuClock;
use super::journal::Journal;
use super::search::{Found, Sampled};
use crate::figure::{Figure, Series, Shows};
use crate::measure::Timing;
use crate::plot::draw;
use crate::record::{today, unwritable, write as write_file};
use crate::results::{Results, Row};

/// The name of the files.
pub(crate) const NAME: &str = "tune";
/// The name of what proves that plans are the fastest.
pub(crate) const PROOF: &str = "tune-proof";
const OWN: &str = "the planner's own";

/// Writes `tune.md`, `tune.csv` (every order that was looked at closely), `tune-times.csv` (every measurement) and two drawings.
pub(crate) fn write<T: Scalar>(
    folder: &Path,
    tune: &Tune,
    device: &Device,
    found: &Found,
    clock: &GpuClock<T>,
    journal: &Journal,
) -> Result<(), Error> {
    std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    journal.copy(&folder.join("tune-times.csv"))?;
    let mut table = "order,batch,plan,ms,own_ms,best_ms,speedup,share_of_roofline\n".to_owned();
    for Sampled { order, plan, ms, own_ms, best_ms } in &found.sampled {
        let (batch, speedup, share) = (clock.batch_of(*order), own_ms / ms, clock.share(*order, *ms));
        let plan = named(plan).replace(',', " ");
        let _ = writeln!(table, "{order},{batch},{plan},{ms:.5},{own_ms:.5},{best_ms:.5},{speedup:.3},{share:.4}");
    }
    write_file(&folder.join("tune.csv"), &table)?;
    let (figures, results) = drawings(tune, found, clock)?;
    for figure in &figures {
        draw(figure, &results, folder)?;
    }
    write_file(&folder.join("tune.md"), &page(tune, device, found, clock.copy))
}

/// A plan, or that there is none.
fn named(plan: &str) -> &str {
    if plan.is_empty() { OWN } else { plan }
}

fn family(plan: &str) -> &str {
    let name = named(plan);
    name.split_once(':').map_or(name, |(family, _)| family)
}

fn drawings<T: Scalar>(tune: &Tune, found: &Found, clock: &GpuClock<T>) -> Result<([Figure; 2], Results), Error> {
    let mut families: Vec<&str> = found.sampled.iter().map(|one| family(&one.plan)).collect();
    families.sort_unstable();
    families.dedup();
    let figure = |name, what: &str, shows| Figure {
        name,
        title: format!("{} {}, {}: {what}", tune.scalar, tune.operation.name(), tune.layout.name()),
        routine: clock.routine(),
        shows,
        series: families.iter().map(|family| Series::new(family, [], &[])).collect(),
        claims: Vec::new(),
        source: "",
    };
    let figures = [
        figure("tuned-time", "time of the plan chosen", Shows::Time),
        figure("tuned-roofline", "share of the roofline", Shows::Share),
    ];
    let mut results = Results::default();
    for Sampled { order, plan, ms, .. } in &found.sampled {
        let batch = clock.batch_of(*order);
        let flops = clock.routine().problem::<T>(batch, *order)?.flops();
        let timing = Timing::of(&[*ms], flops, 0.0, String::new())?;
        for figure in &figures {
            results.rows.push(Row {
                figure: figure.name,
                scalar: T::KIND,
                order: *order,
                batch,
                series: family(plan).to_owned(),
                contestant: named(plan).to_owned(),
                timing: timing.clone(),
                speedup: Some(clock.share(*order, *ms)),
            });
        }
    }
    Ok((figures, results))
}

fn page(tune: &Tune, device: &Device, found: &Found, copy: f64) -> String {
    let (scalar, operation, layout) = (tune.scalar, tune.operation.name(), tune.layout.name());
    let mut text = format!(
        "# Plans tuned: {scalar} {operation}, {layout}\n\n| | |\n| --- | --- |\n| GPU | {device} |\n| date | {} |\n| command | `{}` |\n\
         | measured | {:.0} s |\n| roofline | each matrix read and written once, at {:.0} GB/s, the speed of a copy on the device |\n\n",
        today(),
        tune.command,
        found.seconds,
        copy / 1e9
    );
    let _ = write!(
        text,
        "Times are medians of three alternating rounds of three repetitions, by CUDA events, and count only where the residual ratios of four matrices \
         are below 30. A plan stands in the table only where it is faster than the planner's own by more than {:.1} %, twice the noise of the rounds. Every \
         order is in `tune.csv`, every measurement in `tune-times.csv`.\n\n![time](figure-tuned-time.svg)\n\n![share of the roofline](figure-tuned-roofline.svg)\n\n",
        100.0 * (found.margin.exp() - 1.0)
    );
    if found.rows.is_empty() {
        text.push_str("Nothing was faster than the planner's own plans.\n");
        return text;
    }
    text.push_str("| orders | plan | times as fast as the planner's own |\n| --- | --- | ---: |\n");
    for row in &found.rows {
        let _ = writeln!(text, "| {} to {} | `{}` | {:.2} |", row.first, row.last, row.plan, row.speedup);
    }
    text
}
