//! The figures 10 to 18 of Liu, Zhao, Huang, Yu, Zhang 2023, as data: what each compares, and what the paper says about it.

use batchla_core::{BatchLayout, Error, Problem, Scalar, ScalarKind, SourceKind};

use ScalarKind::{C32, C64, F32, F64};

/// What is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routine {
    /// `A = P L U`, in place.
    Lu,
    /// `A⁻¹` from `A`: LU and inversion.
    Inverse,
}

/// Who computes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Contestant {
    /// Ours, by the name of a plan.
    Plan(String),
    /// cuBLAS: `getrfBatched`, and for an inverse `getriBatched` after it.
    Cublas,
    /// cuBLAS: `matinvBatched`, up to order 32.
    CublasMatinv,
}

/// A curve: the fastest of its contestants at each order.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the figure.
    pub label: &'static str,
    /// Who may run.
    pub contestants: Vec<Contestant>,
    /// The curve, earlier in the figure, that it is compared with.
    pub base: Option<&'static str>,
}

/// What is drawn over the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// GFLOP/s.
    Speed,
    /// How many times as fast as its base a curve is.
    Speedup,
}

/// A figure, four panels of it, one a type.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its number in the paper, or a word.
    pub name: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What is computed.
    pub routine: Routine,
    /// What is drawn.
    pub shows: Shows,
    /// The curves.
    pub series: Vec<Series>,
    /// What the paper says.
    pub claims: Vec<Claim>,
}

/// Something that the paper says about a panel, in numbers.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The panel.
    pub scalar: ScalarKind,
    /// What it says.
    pub says: Says,
}

/// What can be said about a panel.
#[derive(Clone, Copy, Debug)]
pub enum Says {
    /// A curve reaches so many GFLOP/s on a TITAN V.
    Peak(&'static str, f64),
    /// A curve is between so many and so many times as fast as another at the larger orders.
    Ratio(&'static str, &'static str, f64, f64),
    /// One of these curves is the best.
    Best(&'static [&'static str]),
}

impl Routine {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lu => "LU",
            Self::Inverse => "inverse",
        }
    }

    /// The problem that is prepared.
    ///
    /// # Errors
    /// As of the layout.
    pub fn problem<T: Scalar>(self, batch: usize, order: usize) -> Result<Problem, Error> {
        let layout = BatchLayout::column_major(batch, order, order)?;
        match self {
            Self::Lu => Problem::factorize::<T>(SourceKind::InPlace, layout, layout),
            Self::Inverse => Problem::invert::<T>(SourceKind::Matrix, layout, layout),
        }
    }
}

impl Contestant {
    /// In words, without commas.
    pub fn name(&self, routine: Routine) -> String {
        match (self, routine) {
            (Self::Plan(plan), _) => plan.replace(',', " "),
            (Self::Cublas, Routine::Lu) => "cublas getrf".to_owned(),
            (Self::Cublas, Routine::Inverse) => "cublas getrf+getri".to_owned(),
            (Self::CublasMatinv, _) => "cublas matinv".to_owned(),
        }
    }
}

impl Figure {
    /// The names of all figures, in the order in which a run that may be cut short should take them.
    pub const NAMES: [&'static str; 10] = ["12", "13", "14", "15", "16", "17", "18", "10", "11", "families"];

    /// A figure by its name.
    pub fn named(name: &str) -> Option<Self> {
        let name = Self::NAMES.into_iter().find(|known| *known == name)?;
        let figure = |title, routine, shows, series, claims| Self { name, title, routine, shows, series, claims };
        let panel = "left-looking:panel=";
        let block = "left-looking:inverse-block=";
        Some(match name {
            "10" => {
                let widths = [("NB=8", 8), ("NB=10", 10), ("NB=14", 14), ("NB=18", 18)];
                let series = widths.map(|(label, nb)| plans(label, [format!("{panel}{nb}")], Some("NB=8"))).into();
                let claims = vec![Claim { scalar: C32, says: Says::Best(&["NB=14"]) }];
                figure("LU by panel width", Routine::Lu, Shows::Speed, series, claims)
            }
            "11" => {
                let widths = [("NB=8", 8), ("NB=16", 16), ("NB=20", 20), ("NB=28", 28)];
                let series = widths.map(|(label, nb)| plans(label, [format!("{block}{nb}")], Some("NB=8"))).into();
                let claims = vec![Claim { scalar: C32, says: Says::Best(&["NB=16", "NB=20"]) }];
                figure("inversion by block width", Routine::Inverse, Shows::Speed, series, claims)
            }
            "12" => figure(
                "LU",
                Routine::Lu,
                Shows::Speed,
                contest(),
                peaks([(C32, 2000.0), (C64, 1200.0), (F32, 1000.0), (F64, 670.0)]),
            ),
            "13" => {
                let claims = ratios([(C32, 7.0, 8.0), (C64, 5.0, 6.0), (F32, 10.0, 12.0), (F64, 9.0, 12.0)]);
                figure("LU against cuBLAS", Routine::Lu, Shows::Speedup, contest(), claims)
            }
            "14" => {
                let claims = peaks([(C32, 4000.0), (C64, 2000.0), (F32, 2200.0), (F64, 1200.0)]);
                figure("inversion", Routine::Inverse, Shows::Speed, contest_of_inverses(), claims)
            }
            "15" => {
                let claims = ratios([(C32, 4.0, 5.0), (C64, 3.0, 4.0), (F32, 5.0, 7.0), (F64, 5.0, 6.0)]);
                figure("inversion against cuBLAS", Routine::Inverse, Shows::Speedup, contest_of_inverses(), claims)
            }
            "16" => {
                let versions = [("v1", "interchange-serial"), ("v2", "interchange-grouped"), ("v3", "left-looking")];
                let widths = |plan: &str| [8, 14, 16].map(|nb| format!("{plan}:panel={nb}"));
                let series = versions.map(|(label, plan)| plans(label, widths(plan), Some("v1"))).into();
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
            _ => {
                let families = ["left-looking", "right-looking", "shared-panel", "tree-search"];
                let series = families.map(|name| plans(name, [name.to_owned()], Some("left-looking"))).into();
                figure("LU by family of plans", Routine::Lu, Shows::Speed, series, Vec::new())
            }
        })
    }

    /// Everybody who runs in it.
    pub fn contestants(&self) -> impl Iterator<Item = &Contestant> {
        self.series.iter().flat_map(|series| &series.contestants)
    }
}

fn plans<const N: usize>(label: &'static str, names: [String; N], base: Option<&'static str>) -> Series {
    Series { label, contestants: names.map(Contestant::Plan).into(), base }
}

/// Two plans of an inversion with the same block width; the second is compared with the first.
fn against(first: (&'static str, &str), second: (&'static str, &str), width: usize) -> [Series; 2] {
    let plan = |name: &str| [format!("{name}:inverse-block={width}")];
    [plans(first.0, plan(first.1), Some(first.0)), plans(second.0, plan(second.1), Some(first.0))]
}

/// cuBLAS, then ours as the planner has it.
fn contest() -> Vec<Series> {
    let cublas = Series { label: "cuBLAS", contestants: vec![Contestant::Cublas], base: Some("cuBLAS") };
    vec![cublas, plans("ours", ["left-looking".to_owned()], Some("cuBLAS"))]
}

fn contest_of_inverses() -> Vec<Series> {
    let matinv = Series { label: "matinv", contestants: vec![Contestant::CublasMatinv], base: Some("cuBLAS") };
    let mut series = contest();
    series.insert(1, matinv);
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
