//! Figures of our own: beside all peers at orders small and large, and plans of the user's choice beside each other.

use crate::figure::{Contestant, Figure, Routine, Series, Shows};
use crate::paper::contest;

/// Orders from the smallest to beyond the paper's.
pub const ORDERS: [usize; 18] = [2, 4, 8, 12, 16, 24, 32, 33, 48, 64, 80, 96, 128, 160, 190, 256, 384, 512];

/// The planner's choice beside cuBLAS and MAGMA: LU, then inversion, each in operations a second and as a share of the roofline; solutions beside cuBLAS.
pub fn beside_peers() -> [Figure; 6] {
    [
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
    })
}

/// Plans by name beside cuBLAS.
pub fn of_plans(routine: Routine, plans: &[String]) -> Figure {
    let cublas = Series::new("cuBLAS", [Contestant::Cublas], &[]);
    let ours = plans.iter().map(|plan| Series::plans(plan, [plan.clone()], &["cuBLAS"]));
    Figure {
        name: "plans",
        title: format!("{} by plan", routine.name()),
        routine,
        shows: Shows::Speed,
        series: std::iter::once(cublas).chain(ours).collect(),
        claims: Vec::new(),
        source: "",
    }
}
