//! The figures 10 to 18 of Liu, Zhao, Huang, Yu, Zhang 2023, and the steps of MAGMA's slides: what each compares, and what its source says.

use batchla_core::ScalarKind;

use crate::figure::{Claim, Contestant, Figure, Routine, Says, Series, Shows};
use ScalarKind::{C32, C64, F32, F64};

/// The orders of the paper, 33 to 190.
pub const ORDERS: [usize; 11] = [33, 48, 64, 80, 96, 112, 128, 144, 160, 176, 190];

/// The names of all figures, in the order in which a run that may be cut short should take them.
pub const NAMES: [&str; 11] = ["12", "13", "14", "15", "16", "17", "18", "10", "11", "magma", "families"];

/// A figure by its name.
pub fn figure(name: &str) -> Option<Figure> {
    let name = NAMES.into_iter().find(|known| *known == name)?;
    let figure = |title: &str, routine, shows, series, claims| {
        let (title, source) = (title.to_owned(), if name == "magma" { "the slides say" } else { "the paper says" });
        Figure { name, title, routine, shows, series, claims, source }
    };
    let panel = "left-looking:panel=";
    let block = "left-looking:inverse-block=";
    Some(match name {
        "10" => {
            let widths = [("NB=8", 8), ("NB=10", 10), ("NB=14", 14), ("NB=18", 18)];
            let series = widths.map(|(label, nb)| Series::plans(label, [format!("{panel}{nb}")], &["NB=8"])).into();
            let claims = vec![Claim { scalar: C32, says: Says::Best(&["NB=14"]) }];
            figure("LU by panel width", Routine::Lu, Shows::Speed, series, claims)
        }
        "11" => {
            let widths = [("NB=8", 8), ("NB=16", 16), ("NB=20", 20), ("NB=28", 28)];
            let series = widths.map(|(label, nb)| Series::plans(label, [format!("{block}{nb}")], &["NB=8"])).into();
            let claims = vec![Claim { scalar: C32, says: Says::Best(&["NB=16", "NB=20"]) }];
            figure("inversion by block width", Routine::Inverse, Shows::Speed, series, claims)
        }
        "12" => figure(
            "LU",
            Routine::Lu,
            Shows::Speed,
            contest(Routine::Lu, &["cuBLAS"], "left-looking"),
            peaks([(C32, 2000.0), (C64, 1200.0), (F32, 1000.0), (F64, 670.0)]),
        ),
        "13" => {
            let claims = ratios([(C32, 7.0, 8.0), (C64, 5.0, 6.0), (F32, 10.0, 12.0), (F64, 9.0, 12.0)]);
            figure(
                "LU against cuBLAS",
                Routine::Lu,
                Shows::Speedup,
                contest(Routine::Lu, &["cuBLAS"], "left-looking"),
                claims,
            )
        }
        "14" => {
            let claims = peaks([(C32, 4000.0), (C64, 2000.0), (F32, 2200.0), (F64, 1200.0)]);
            figure(
                "inversion",
                Routine::Inverse,
                Shows::Speed,
                contest(Routine::Inverse, &["cuBLAS"], "left-looking:inverse-window=0"),
                claims,
            )
        }
        "15" => {
            let claims = ratios([(C32, 4.0, 5.0), (C64, 3.0, 4.0), (F32, 5.0, 7.0), (F64, 5.0, 6.0)]);
            figure(
                "inversion against cuBLAS",
                Routine::Inverse,
                Shows::Speedup,
                contest(Routine::Inverse, &["cuBLAS"], "left-looking:inverse-window=0"),
                claims,
            )
        }
        "16" => {
            let versions = [("v1", "interchange-serial"), ("v2", "interchange-grouped"), ("v3", "left-looking")];
            let widths = |plan: &str| [8, 14, 16].map(|nb| format!("{plan}:panel={nb}"));
            let series = versions.map(|(label, plan)| Series::plans(label, widths(plan), &["v1"])).into();
            let claims = vec![Claim { scalar: C32, says: Says::Ratio("v3", "v1", 2.0, 5.0) }];
            figure("LU by interchange of rows", Routine::Lu, Shows::Speed, series, claims)
        }
        "17" => {
            let pairs = [("timely NB=8", "delayed NB=8", 8), ("timely NB=16", "delayed NB=16", 16)];
            let pair = |(timely, delayed, nb)| against((timely, "timely"), (delayed, "left-looking"), nb);
            let claim = |(timely, delayed, _)| Says::Ratio(delayed, timely, 1.0, f64::INFINITY);
            let claims = pairs.map(|pair| Claim { scalar: C32, says: claim(pair) }).into();
            let series = pairs.into_iter().flat_map(pair).collect();
            figure("inversion by time of correction", Routine::Inverse, Shows::Speed, series, claims)
        }
        "18" => {
            let pairs = [("static NB=8", "dynamic NB=8", 8), ("static NB=16", "dynamic NB=16", 16)];
            let pair = |(fixed, dynamic, nb)| against((fixed, "static"), (dynamic, "dynamic"), nb);
            let claim = |(fixed, dynamic, _)| Says::Ratio(dynamic, fixed, 1.0, 1.3);
            let claims = pairs.map(|pair| Claim { scalar: C32, says: claim(pair) }).into();
            let series = pairs.into_iter().flat_map(pair).collect();
            figure("inversion by resources of a launch", Routine::Inverse, Shows::Speed, series, claims)
        }
        "magma" => {
            let steps = [
                ("v1", "multi-kernel"),
                ("v2 parallel interchange", "multi-kernel-interchange"),
                ("v3 blocked panel", "multi-kernel-blocked"),
                ("v4 batched product", "multi-kernel-batched"),
                ("v5 two-level update", "multi-kernel-two-level"),
            ];
            let mut series = vec![Series::new("cuBLAS", [Contestant::Cublas], &[])];
            series.extend(steps.map(|(label, plan)| Series::plans(label, [plan.to_owned()], &["v1"])));
            let faster = |(slower, faster): (&(_, _), &(_, _))| Says::Ratio(faster.0, slower.0, 1.0, f64::INFINITY);
            let claims = steps.iter().zip(&steps[1..]).map(faster).map(|says| Claim { scalar: F64, says }).collect();
            figure("LU by the steps of MAGMA's slides", Routine::Lu, Shows::Speed, series, claims)
        }
        _ => {
            let families = ["left-looking", "right-looking", "shared-panel", "tree-search"];
            let series = families.map(|name| Series::plans(name, [name.to_owned()], &["left-looking"])).into();
            figure("LU by family of plans", Routine::Lu, Shows::Speed, series, Vec::new())
        }
    })
}

/// Two plans of an inversion with the same block width; the second is compared with the first.
fn against(first: (&'static str, &str), second: (&'static str, &str), width: usize) -> [Series; 2] {
    let plan = |name: &str| [format!("{name}:inverse-block={width}")];
    [Series::plans(first.0, plan(first.1), &[first.0]), Series::plans(second.0, plan(second.1), &[first.0])]
}

/// Peers, then a plan of ours, compared with the fastest of `base`.
pub(crate) fn contest(routine: Routine, base: &[&str], plan: &str) -> Vec<Series> {
    let mut series = vec![Series::new("cuBLAS", [Contestant::Cublas], &[])];
    if routine == Routine::Inverse {
        series.push(Series::new("matinv", [Contestant::CublasMatinv], &["cuBLAS"]));
    }
    // The other process measures no solutions.
    if routine.columns(1) == 0 {
        series.push(Series::new("MAGMA", [Contestant::Magma], &["cuBLAS"]));
    }
    series.push(Series::plans("ours", [plan.to_owned()], base));
    series
}

fn peaks(of: [(ScalarKind, f64); 4]) -> Vec<Claim> {
    of.map(|(scalar, gflops)| Claim { scalar, says: Says::Peak("ours", gflops) }).into()
}

fn ratios(of: [(ScalarKind, f64, f64); 4]) -> Vec<Claim> {
    of.map(|(scalar, low, high)| Claim { scalar, says: Says::Ratio("ours", "cuBLAS", low, high) }).into()
}

#[cfg(test)]
mod tests;
