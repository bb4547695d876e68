//! A table as a file.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use batchla_core::{Error, ErrorKind, Operation, Options, Plan, Problem, Receipt, ScalarKind, SourceKind};
use serde::{Deserialize, Serialize};

use super::TunedLayout;
use crate::limits::Limits;
use crate::plan::{CudaPlan, Space};

/// What a table calls itself.
const FORMAT: &str = "batchla tuned plans 1";
/// No table is longer.
const MOST_BYTES: u64 = 1 << 20;

/// The plans that were best on one GPU for one scalar type, operation and layout, from matrices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunedTable {
    format: String,
    version: String,
    gpu: String,
    architecture: String,
    scalar: String,
    operation: String,
    layout: TunedLayout,
    date: String,
    command: String,
    /// By order, ascending. Orders that no row has are the planner's own.
    pub rows: Vec<TunedRow>,
}

/// The plan for a range of orders.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunedRow {
    /// The first order.
    pub first: usize,
    /// The last order.
    pub last: usize,
    /// The plan's name, with its numbers.
    pub plan: String,
    /// How many times as fast as the planner's own plans it was, in the geometric mean over these orders.
    pub speedup: f64,
    /// How it was found, where the table's own date and command are those of a later run, at other orders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<TunedEarlier>,
}

/// The run that a row was kept from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TunedEarlier {
    /// When, as 2026-01-31.
    pub date: String,
    /// By which command.
    pub command: String,
}

impl TunedTable {
    /// A table without rows, of what is measured today on a GPU of such limits.
    pub fn new(
        limits: &Limits,
        scalar: ScalarKind,
        operation: Operation,
        layout: TunedLayout,
        receipt: &Receipt,
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            gpu: limits.name.clone(),
            architecture: limits.architecture(),
            scalar: scalar.name().to_owned(),
            operation: operation.name().to_owned(),
            layout,
            date: receipt.date.clone().into_owned(),
            command: receipt.command.clone().into_owned(),
            rows: Vec::new(),
        }
    }

    /// The name of its file, by which it is found again: `nvidia-h200-sm_90-f64-invert-column-major.json`.
    pub fn file_name(&self) -> String {
        let [scalar, operation] = [&self.scalar, &self.operation];
        format!("{}-{scalar}-{operation}-{}.json", stem(&self.gpu, &self.architecture), self.layout.name())
    }

    /// Reads a table.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where it cannot be read; [`ErrorKind::Argument`] where it is no table.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let unreadable = |error| {
            Error::new(ErrorKind::Io, "read table", format!("{} cannot be read", path.display())).caused_by(error)
        };
        let file = File::open(path).map_err(unreadable)?;
        let mut bytes = Vec::new();
        file.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        let refuse = |what: String| {
            Error::new(ErrorKind::Argument, "read table", format!("{} is no table of plans: {what}", path.display()))
                .advise("remove it, and run `batchla tune` again")
        };
        if bytes.len() as u64 > MOST_BYTES {
            return Err(refuse(format!("it has more than {MOST_BYTES} bytes")));
        }
        Self::parse(&bytes).map_err(refuse)
    }

    /// A table from its text; the error says what is wrong with it.
    ///
    /// # Errors
    /// The reason, in words.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let table: Self = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
        if table.format != FORMAT {
            return Err(format!("its format is {:?}, not {FORMAT:?}", table.format));
        }
        let mut end = None;
        for TunedRow { first, last, speedup, .. } in &table.rows {
            if first > last || end.is_some_and(|end| *first <= end) {
                return Err(format!("its rows are not ascending at orders {first} to {last}"));
            }
            if !(speedup.is_finite() && *speedup > 0.0) {
                return Err(format!("{speedup} is no speedup, at orders {first} to {last}"));
            }
            end = Some(*last);
        }
        Ok(table)
    }

    /// What speaks against using it on a GPU of such limits, if anything does.
    pub fn objection(&self, limits: &Limits) -> Option<String> {
        let (gpu, architecture) = (&limits.name, limits.architecture());
        if (&self.gpu, &self.architecture) != (gpu, &architecture) {
            return Some(format!("it is of {} ({}), and this is {gpu} ({architecture})", self.gpu, self.architecture));
        }
        if self.version != env!("CARGO_PKG_VERSION") {
            return Some(format!("it is of batchla {}, and this is {}", self.version, env!("CARGO_PKG_VERSION")));
        }
        let Some(scalar) = self.scalar() else { return Some(format!("there is no type {:?}", self.scalar)) };
        let Some(operation) = self.operation() else { return Some(format!("{:?} is not tuned", self.operation)) };
        self.rows.iter().find_map(|row| objection(row, scalar, operation, self.layout, limits))
    }

    /// Writes it whole into a folder, which is made where missing; gives the file.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn write(&self, folder: &Path) -> Result<PathBuf, Error> {
        let path = folder.join(self.file_name());
        let unwritable = |error: std::io::Error| {
            Error::new(ErrorKind::Io, "write table", format!("{} cannot be written", path.display()))
                .advise("set BATCHLA_TUNED_DIR to a folder that can be written")
                .caused_by(error)
        };
        let text = serde_json::to_string_pretty(self).map_err(|error| unwritable(error.into()))?;
        std::fs::create_dir_all(folder).map_err(unwritable)?;
        let mut aside = tempfile::NamedTempFile::new_in(folder).map_err(unwritable)?;
        aside.write_all(text.as_bytes()).and_then(|()| aside.write_all(b"\n")).map_err(unwritable)?;
        aside.persist(&path).map_err(|error| unwritable(error.error))?;
        Ok(path)
    }

    /// Takes over what another table has for other orders than these.
    pub fn keep_outside(&mut self, before: &Self, orders: &std::ops::RangeInclusive<usize>) {
        let (start, end) = (*orders.start(), *orders.end());
        for row in &before.rows {
            let Receipt { date, command, .. } = before.receipt(row);
            let earlier = Some(TunedEarlier { date: date.into_owned(), command: command.into_owned() });
            let row = TunedRow { earlier, ..row.clone() };
            let below = TunedRow { last: row.last.min(start.saturating_sub(1)), ..row.clone() };
            let above = TunedRow { first: row.first.max(end.saturating_add(1)), ..row.clone() };
            self.rows.extend([below, above].into_iter().filter(|row| row.first <= row.last));
        }
        self.rows.sort_by_key(|row| row.first);
    }

    /// How one of its rows was found.
    pub fn receipt(&self, row: &TunedRow) -> Receipt {
        let own = (&self.date, &self.command);
        let (date, command) = row.earlier.as_ref().map_or(own, |run| (&run.date, &run.command));
        Receipt { device: self.gpu.clone().into(), date: date.clone().into(), command: command.clone().into() }
    }

    fn scalar(&self) -> Option<ScalarKind> {
        ScalarKind::ALL.into_iter().find(|scalar| scalar.name() == self.scalar)
    }

    fn operation(&self) -> Option<Operation> {
        [Operation::Factorize, Operation::Invert].into_iter().find(|operation| operation.name() == self.operation)
    }

    pub(super) fn serves(&self, problem: &Problem) -> bool {
        let layouts = [problem.a(), problem.out()];
        self.operation() == Some(problem.operation())
            && self.scalar() == Some(problem.scalar())
            && problem.source() != SourceKind::Factors
            && layouts.iter().all(|layout| TunedLayout::found(layout) == Some(self.layout))
    }

    pub(super) fn row(&self, order: usize) -> Option<&TunedRow> {
        self.rows.iter().find(|row| (row.first..=row.last).contains(&order))
    }
}

/// What speaks against a row: a plan that the planner would not choose by itself, or that this GPU cannot run.
fn objection(
    row: &TunedRow,
    scalar: ScalarKind,
    operation: Operation,
    layout: TunedLayout,
    limits: &Limits,
) -> Option<String> {
    let family = row.plan.split_once(':').map_or(&*row.plan, |(family, _)| family);
    if !Space::of(operation).iter().any(|space| space.family == family) {
        return Some(format!("{} is none of the planner's families", row.plan));
    }
    // The rows between are looked at when they are used.
    [row.first, row.last].into_iter().find_map(|order| {
        let choose = |options| CudaPlan::choose(&layout.problem(scalar, operation, 1, order)?, &options, limits);
        match (choose(Options::default().with_plan(&row.plan)), choose(Options::default())) {
            (Ok(plan), Ok(own)) if plan.arithmetic() != own.arithmetic() => {
                Some(format!("{} has another arithmetic than the planner's {own}", row.plan))
            }
            (Err(error), _) => Some(error.to_string()),
            _ => None,
        }
    })
}

/// How the files of a GPU begin.
pub(super) fn stem(gpu: &str, architecture: &str) -> String {
    let plain = gpu.to_lowercase();
    let words: Vec<&str> = plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    format!("{}-{architecture}", words.join("-"))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
