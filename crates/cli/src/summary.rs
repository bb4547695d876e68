//! What a command tells about its matrices: for people, and as JSON.

use std::fmt;

use batchla::npy::Header;
use batchla::{AnyBackend, Backend, Error, ErrorKind, Outcome, Plan};
use batchla_testkit::{LIMIT, Ratios};
use serde::Serialize;

use crate::memory::{self, bytes};
use crate::sink::Outputs;

/// Failed matrices that are named; of the others, only the number is told.
const NAMED: usize = 5;

/// How a batch fared.
#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    operation: &'static str,
    input: String,
    outputs: Vec<String>,
    scalar: &'static str,
    shape: Vec<usize>,
    backend: Option<String>,
    chosen_because: Option<String>,
    plan: Option<String>,
    arithmetic: Option<String>,
    pub(crate) matrices: usize,
    regular: usize,
    singular: Failed<Singular>,
    not_finite: Failed<usize>,
    pub(crate) check: Option<Check>,
    /// Computing alone.
    pub(crate) seconds: f64,
    matrices_per_second: Option<f64>,
    /// From file to file.
    wall_seconds: f64,
    input_bytes: u64,
    /// The most memory that the process has had so far.
    peak_bytes: Option<u64>,
}

/// Matrices that failed in one way: how many, and the first of them.
#[derive(Debug, Serialize)]
struct Failed<M> {
    count: usize,
    first: Vec<M>,
}

#[derive(Debug, Serialize)]
struct Singular {
    matrix: usize,
    column: usize,
}

/// Residual ratios of the regular matrices.
#[derive(Debug, Serialize)]
pub(crate) struct Check {
    compared: usize,
    /// `None` where it is infinite, which JSON cannot say, or where nothing was compared.
    largest_ratio: Option<f64>,
    matrix: Option<usize>,
    limit: f64,
    passed: bool,
    #[serde(skip)]
    ratios: Ratios,
}

impl<M> Failed<M> {
    fn none() -> Self {
        Self { count: 0, first: Vec::new() }
    }

    fn add(&mut self, matrix: M) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(matrix);
        }
    }
}

impl Check {
    /// Nothing compared yet.
    pub(crate) fn new() -> Self {
        Self { compared: 0, largest_ratio: None, matrix: None, limit: LIMIT, passed: true, ratios: Ratios::default() }
    }

    /// Takes in the ratios of the matrices from `first` on.
    pub(crate) fn add(&mut self, first: usize, part: Ratios) {
        if let Some(worst) = part.worst {
            self.ratios.add(first + worst.matrix, worst.ratio);
        }
        let worst = self.ratios.worst;
        self.compared += part.compared;
        self.largest_ratio = worst.map(|worst| worst.ratio).filter(|ratio| ratio.is_finite());
        self.matrix = worst.map(|worst| worst.matrix);
        self.passed = worst.is_none_or(|worst| worst.ratio < self.limit);
    }
}

impl Summary {
    pub(crate) fn new(
        operation: &'static str,
        input: String,
        outputs: &Outputs,
        header: &Header,
        backend: Option<&AnyBackend>,
    ) -> Self {
        Self {
            operation,
            input,
            outputs: outputs.all().iter().map(|output| output.name()).collect(),
            scalar: header.scalar.name(),
            shape: header.shape.clone(),
            backend: backend.map(|backend| format!("{}: {}", backend.name(), backend.describe())),
            chosen_because: backend.map(|backend| backend.why().to_owned()),
            plan: None,
            arithmetic: None,
            matrices: 0,
            regular: 0,
            singular: Failed::none(),
            not_finite: Failed::none(),
            check: None,
            seconds: 0.0,
            matrices_per_second: None,
            wall_seconds: 0.0,
            input_bytes: header.data_bytes(),
            peak_bytes: None,
        }
    }

    /// Tells how the matrices are computed.
    pub(crate) fn name_plan(&mut self, plan: &dyn Plan) {
        self.plan = Some(plan.to_string());
        self.arithmetic = Some(plan.arithmetic().to_owned());
    }

    /// Takes in the outcomes of the next matrices, after `seconds` was brought up to date.
    pub(crate) fn add(&mut self, outcomes: &[Outcome]) {
        for (matrix, outcome) in (self.matrices..).zip(outcomes) {
            match *outcome {
                Outcome::Regular => self.regular += 1,
                Outcome::Singular { column } => self.singular.add(Singular { matrix, column }),
                Outcome::NotFinite => self.not_finite.add(matrix),
            }
        }
        self.matrices += outcomes.len();
        self.matrices_per_second = Some(self.matrices as f64 / self.seconds).filter(|rate| rate.is_finite());
    }

    /// The results are written, `seconds` after the beginning.
    pub(crate) fn end(&mut self, seconds: f64) {
        self.wall_seconds = seconds;
        self.peak_bytes = memory::peak();
    }

    /// Whether every matrix is regular and passed the check, if there was one.
    pub(crate) fn all_well(&self) -> bool {
        self.regular == self.matrices && self.check.as_ref().is_none_or(|check| check.passed)
    }

    pub(crate) fn to_json(&self) -> Result<String, Error> {
        serde_json::to_string(self)
            .map_err(|e| Error::new(ErrorKind::Io, "summary", "the summary is no JSON").caused_by(e))
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shape: Vec<String> = self.shape.iter().map(ToString::to_string).collect();
        let there: usize = self.shape[..self.shape.len().saturating_sub(2)].iter().product();
        let what = if there == self.matrices { "matrices" } else { "results of one matrix" };
        writeln!(f, "{}: {} {what}, {} of shape ({})", self.input, self.matrices, self.scalar, shape.join(", "))?;
        if let Some((backend, why)) = self.backend.as_ref().zip(self.chosen_because.as_ref()) {
            writeln!(f, "  backend     {backend} ({why})")?;
        }
        if let Some(plan) = &self.plan {
            writeln!(f, "  plan        {plan}")?;
        }
        writeln!(f, "  regular     {}", self.regular)?;
        write!(f, "  singular    {}", self.singular.count)?;
        let columns = |s: &Singular| format!("matrix {} in column {}", s.matrix, s.column);
        self.singular.name(f, columns)?;
        write!(f, "\n  not finite  {}", self.not_finite.count)?;
        self.not_finite.name(f, |matrix| format!("matrix {matrix}"))?;
        if let Some(check) = &self.check {
            write!(f, "\n  check       {check}")?;
        }
        write!(f, "\n  computing   {:.3} ms", 1e3 * self.seconds)?;
        if let Some(rate) = self.matrices_per_second {
            write!(f, ", {rate:.0} matrices a second")?;
        }
        let rate = bytes(self.input_bytes as f64 / self.wall_seconds);
        write!(f, "\n  in all      {:.3} ms, {rate} of input a second", 1e3 * self.wall_seconds)?;
        if let Some(peak) = self.peak_bytes {
            write!(f, "\n  memory      {} at most", bytes(peak as f64))?;
        }
        if !self.outputs.is_empty() {
            write!(f, "\nwritten to {}", self.outputs.join(", "))?;
        }
        Ok(())
    }
}

impl<M> Failed<M> {
    /// The first of them in words, and whether there are more.
    fn name(&self, f: &mut fmt::Formatter<'_>, words: impl Fn(&M) -> String) -> fmt::Result {
        if self.first.is_empty() {
            return Ok(());
        }
        let more = if self.count > self.first.len() { ", ..." } else { "" };
        write!(f, ": {}{more}", self.first.iter().map(words).collect::<Vec<_>>().join(", "))
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(worst) = self.ratios.worst else { return f.write_str("nothing to compare") };
        write!(f, "largest residual ratio {:.3} in matrix {}", worst.ratio, worst.matrix)?;
        let limit = self.limit;
        if self.passed { write!(f, ", below {limit}") } else { write!(f, ": FAILED, not below {limit}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary_of_four() -> Summary {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        batchla::npy::write(&path, &batchla::Batch::<f64>::from_fn(4, 1, 1, |_, _, _| 1.0).unwrap()).unwrap();
        let header = batchla::npy::peek(&path).unwrap();
        Summary::new("invert", "a.npy".to_owned(), &Outputs::default(), &header, None)
    }

    #[test]
    fn matrices_are_numbered_through_all_parts_of_a_file() {
        let mut summary = summary_of_four();
        let mut check = Check::new();
        for ratio in [2.0, 1.0] {
            let mut part = Ratios::default();
            part.add(0, ratio);
            check.add(summary.matrices, part);
            summary.add(&[Outcome::Regular, Outcome::NotFinite]);
        }
        assert_eq!((summary.matrices, &summary.not_finite.first[..]), (4, &[1, 3][..]));
        assert_eq!((check.compared, check.matrix, check.largest_ratio), (2, Some(0), Some(2.0)));
        let mut part = Ratios::default();
        part.add(1, f64::INFINITY);
        check.add(2, part);
        assert_eq!((check.matrix, check.largest_ratio, check.passed), (Some(3), None, false));
        summary.not_finite = Failed::none();
        summary.regular = 4;
        assert!(summary.all_well());
        summary.check = Some(check);
        assert!(!summary.all_well());
    }
}
