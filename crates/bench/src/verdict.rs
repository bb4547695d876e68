//! Whether what was measured agrees with what its source says.

use crate::figure::{Claim, Figure, Says};
use crate::results::Results;

/// A claim beside what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What is claimed.
    pub claimed: String,
    /// What was measured.
    pub here: String,
    /// Whether they agree; none where the two GPUs are no matter of agreement.
    pub agrees: Option<bool>,
    /// The same in a sentence.
    pub sentence: String,
}

/// Holds a claim against the measurements; none where nothing of it was measured.
pub fn verdict(figure: &Figure, claim: &Claim, results: &Results) -> Option<Verdict> {
    let (scalar, source) = (claim.scalar, figure.source);
    let (claimed, here, agrees, words) = match claim.says {
        Says::Peak(series, reached) => {
            let points = results.orders(figure.name, scalar).into_iter();
            let points = points.filter_map(|n| Some((n, results.best(figure.name, scalar, series, n)?.timing.gflops)));
            let (order, most) = points.max_by(|a, b| a.1.total_cmp(&b.1))?;
            let times = most / reached;
            (
                format!("{series} reaches {reached:.0} GFLOP/s"),
                format!("{most:.0} GFLOP/s at n = {order}, {times:.1} times as much"),
                None,
                "is another GPU's number".to_owned(),
            )
        }
        Says::Ratio(series, base, low, high) => {
            let ratios = results.ratios(figure.name, scalar, series, base);
            let (first, last) = (ratios.first()?, ratios.last()?);
            let most = ratios.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
            let typical = larger_orders(&ratios);
            let words = match typical {
                // Times that differ by less than they scatter are not told apart.
                Some(ratio) if ratio < 0.98 * low => format!("disagrees: {ratio:.2} is less"),
                Some(ratio) if ratio > 1.02 * high => format!("disagrees: {ratio:.2} is more"),
                Some(ratio) => format!("agrees: {ratio:.2} is the median over the larger half of the orders"),
                None => return None,
            };
            let claimed = if high.is_finite() {
                format!("{series} is {low} to {high} times as fast as {base}")
            } else {
                format!("{series} is faster than {base}")
            };
            let here = format!(
                "{:.2} at n = {}, {:.2} at n = {}, at most {:.2} at n = {}",
                first.1, first.0, last.1, last.0, most.1, most.0
            );
            let agrees = words.starts_with("agrees");
            (claimed, here, Some(agrees), words)
        }
        Says::Best(labels) => {
            let orders = results.orders(figure.name, scalar);
            let speed =
                |label: &str, &n: &usize| results.best(figure.name, scalar, label, n).map(|row| row.timing.gflops);
            let all = figure.series.iter().filter_map(|series| {
                let speeds = orders.iter().map(|n| speed(&series.label, n)).collect::<Option<Vec<_>>>()?;
                (!speeds.is_empty()).then(|| (series.label.as_str(), speeds.iter().sum::<f64>() / speeds.len() as f64))
            });
            let (best, mean) = all.max_by(|a, b| a.1.total_cmp(&b.1))?;
            let agrees = labels.contains(&best);
            let words = if agrees { "agrees" } else { "disagrees" };
            let here = format!("{best}, {mean:.0} GFLOP/s in the mean over the orders");
            (format!("the best is {}", labels.join(" or ")), here, Some(agrees), words.to_owned())
        }
    };
    let sentence = match agrees {
        Some(_) => format!("{scalar}: {source} that {claimed}; here: {here}. The measurement {words}."),
        None => format!("{scalar}: {source} that {claimed}, on a TITAN V; here: {here}."),
    };
    Some(Verdict { claimed, here, agrees, sentence })
}

/// The median over the larger half of the orders, where the paper's curves have levelled off.
fn larger_orders(ratios: &[(usize, f64)]) -> Option<f64> {
    let values: Vec<f64> = ratios[ratios.len() / 2..].iter().map(|(_, ratio)| *ratio).collect();
    crate::sample::Sample::of(&values).map(|sample| sample.median)
}
