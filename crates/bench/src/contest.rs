//! Figures of our own: beside all peers at orders small and large, and plans of the user's choice beside each other.

use crate::figure::{Contestant, Figure, Routine, Series, Shows};
use crate::paper::contest;

/// Orders from the smallest to beyond the paper's.
pub const ORDERS: [usize; 18] = [2, 4, 8, 12, 16, 24, 32, 33, 48, 64, 80, 96, 128, 160, 190, 256, 384, 512];

/// Figures beside peers, in their order.
pub const NAMES: [&str; 8] =
    ["lu", "lu-roofline", "inverse", "inverse-roofline", "solution", "solutions", "lu-batches", "inverse-batches"];

/// The planner's choice beside cuBLAS and MAGMA: LU, then inversion, each in operations a second, as a share of the roofline, and in batches large and
/// small; solutions beside cuBLAS.
pub fn beside_peers() -> Vec<Figure> {
    let figures = [
        ("lu", Routine::Lu, "LU", Shows::Speed),
        ("lu-roofline", Routine::Lu, "LU", Shows::Share),
        ("inverse", Routine::Inverse, "Inversion", Shows::Speed),
        ("inverse-roofline", Routine::Inverse, "Inversion", Shows::Share),
        ("solution", Routine::Solve, "Solution with one right-hand side", Shows::Speed),
        ("solutions", Routine::SolveMany, "Solution with as many right-hand sides as the order", Shows::Speed),
    ]
    .map(|(name, routine, title, shows)| {
        let series = contest(routine, &["cuBLAS", "matinv", "MAGMA"], "");
        let magma = series.iter().any(|series| series.label == "MAGMA");
        let peers = if magma { "cuBLAS and MAGMA" } else { "cuBLAS" };
        let share = if shows == Shows::Share { ": share of the roofline" } else { "" };
        let title = format!("{title} beside {peers}{share}");
        Figure { name, title, routine, shows, series, claims: Vec::new(), source: "" }
    });
    let batches = [("lu-batches", Routine::Lu, "LU"), ("inverse-batches", Routine::Inverse, "Inversion")];
    figures.into_iter().chain(batches.map(|(name, routine, title)| in_batches(name, routine, title))).collect()
}

/// The planner's choice beside the best of its peers, in batches large and small.
fn in_batches(name: &'static str, routine: Routine, title: &str) -> Figure {
    let mut series = Vec::new();
    for (label, batch) in [("large batches", None), ("100 matrices", Some(100)), ("1 matrix", Some(1))] {
        let (peers, ours) = (format!("best peer: {label}"), Contestant::Plan(String::new()));
        let all = [Contestant::Cublas, Contestant::CublasMatinv, Contestant::Magma];
        let mut peer = Series::new(&peers, all, &[]).with_batch(batch);
        peer.contestants.retain(|one| routine == Routine::Inverse || *one != Contestant::CublasMatinv);
        series.extend([peer, Series::new(label, [ours], &[&peers]).with_batch(batch)]);
    }
    let title = format!("{title} in batches large and small beside the best of cuBLAS and MAGMA");
    Figure { name, title, routine, shows: Shows::Speedup, series, claims: Vec::new(), source: "" }
}

/// Plans by name beside cuBLAS, and beside a copy of the matrices.
pub fn of_plans(routine: Routine, plans: &[String]) -> Figure {
    let cublas = Series::new("cuBLAS", [Contestant::Cublas], &[]);
    let copy = Series::new("copy", [Contestant::Copy], &["cuBLAS"]);
    let ours = plans.iter().map(|plan| Series::plans(plan, [plan.clone()], &["cuBLAS"]));
    Figure {
        name: "plans",
        title: format!("{} by plan", routine.name()),
        routine,
        shows: Shows::Speed,
        series: [cublas, copy].into_iter().chain(ours).collect(),
        claims: Vec::new(),
        source: "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_their_names() {
        assert!(beside_peers().iter().map(|figure| figure.name).eq(NAMES));
    }

    #[test]
    fn a_curve_stands_beside_peers_on_as_many_matrices() {
        for figure in beside_peers() {
            for series in &figure.series {
                let bases: Vec<_> = figure.series.iter().filter(|other| series.base.contains(&other.label)).collect();
                assert_eq!(bases.is_empty(), series.base.is_empty(), "{}: {}", figure.name, series.label);
                assert!(bases.iter().all(|base| base.batch == series.batch), "{}: {}", figure.name, series.label);
            }
        }
    }
}
