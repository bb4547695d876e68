//! Tables of plans that were measured on the user's own GPU: written by the tuner, read when a device is opened.
//!
//! A table only names plans that the planner could choose itself, of the same arithmetic: it changes the speed, and no bit of a result. One that is
//! of another GPU, of another version of this crate, or no table at all is refused with a warning and not used.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use batchla_core::{
    BatchLayout, Error, ErrorKind, Numbers, Operation, Options, Plan, Problem, Receipt, ScalarKind, SourceKind,
};
use serde::{Deserialize, Serialize};

use crate::limits::Limits;
use crate::plan::{CudaPlan, Space};

/// What a table calls itself.
const FORMAT: &str = "batchla tuned plans 1";
/// No table is longer.
const MOST_BYTES: u64 = 1 << 20;

/// Which neighbours in a matrix are neighbours in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TunedLayout {
    /// Those in a column, in input and result.
    ColumnMajor,
    /// Those in a row.
    RowMajor,
}

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
}

impl TunedLayout {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::ColumnMajor => "column-major",
            Self::RowMajor => "row-major",
        }
    }

    /// So many matrices, dense.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where they would overflow.
    pub fn of(self, batch: usize, order: usize) -> Result<BatchLayout, Error> {
        match self {
            Self::ColumnMajor => BatchLayout::column_major(batch, order, order),
            Self::RowMajor => BatchLayout::row_major(batch, order, order),
        }
    }

    /// That of a layout; none where matrices are interleaved, or no neighbours are.
    fn found(layout: &BatchLayout) -> Option<Self> {
        let strides = layout.strides();
        match (strides.lanes, strides.row, strides.col) {
            (1, 1, _) => Some(Self::ColumnMajor),
            (1, _, 1) => Some(Self::RowMajor),
            _ => None,
        }
    }
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
            let below = TunedRow { last: row.last.min(start.saturating_sub(1)), ..row.clone() };
            let above = TunedRow { first: row.first.max(end.saturating_add(1)), ..row.clone() };
            self.rows.extend([below, above].into_iter().filter(|row| row.first <= row.last));
        }
        self.rows.sort_by_key(|row| row.first);
    }

    fn scalar(&self) -> Option<ScalarKind> {
        ScalarKind::ALL.into_iter().find(|scalar| scalar.name() == self.scalar)
    }

    fn operation(&self) -> Option<Operation> {
        [Operation::Factorize, Operation::Invert].into_iter().find(|operation| operation.name() == self.operation)
    }

    fn serves(&self, problem: &Problem) -> bool {
        let layouts = [problem.a(), problem.out()];
        self.operation() == Some(problem.operation())
            && self.scalar() == Some(problem.scalar())
            && problem.source() != SourceKind::Factors
            && layouts.iter().all(|layout| TunedLayout::found(layout) == Some(self.layout))
    }

    fn row(&self, order: usize) -> Option<&TunedRow> {
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

impl TunedLayout {
    /// A problem of this layout, from matrices: LU in place, or inverses apart.
    ///
    /// # Errors
    /// As of the layout.
    pub fn problem(
        self,
        scalar: ScalarKind,
        operation: Operation,
        batch: usize,
        order: usize,
    ) -> Result<Problem, Error> {
        use num_complex::Complex;
        let layout = self.of(batch, order)?;
        macro_rules! of {
            ($scalar:ty) => {
                match operation {
                    Operation::Factorize => Problem::factorize::<$scalar>(SourceKind::InPlace, layout, layout),
                    Operation::Invert => Problem::invert::<$scalar>(SourceKind::Matrix, layout, layout),
                    other => Err(Error::new(ErrorKind::Unsupported, "tune", format!("{} is not tuned", other.name()))
                        .advise("tune factorize or invert; others are made of their steps")),
                }
            };
        }
        match scalar {
            ScalarKind::F32 => of!(f32),
            ScalarKind::F64 => of!(f64),
            ScalarKind::C32 => of!(Complex<f32>),
            ScalarKind::C64 => of!(Complex<f64>),
        }
    }
}

/// The tables that are used on one GPU.
#[derive(Clone, Debug, Default)]
pub struct Tuned(Vec<(PathBuf, TunedTable)>);

impl Tuned {
    /// No tables: the planner's own choice everywhere.
    pub fn none() -> Self {
        Self::default()
    }

    /// The tables in a folder that are of a GPU of such limits. What should be one of them and is not usable is passed over, with a warning.
    pub fn load(folder: &Path, limits: &Limits) -> Self {
        let stem = stem(&limits.name, &limits.architecture());
        let Ok(entries) = std::fs::read_dir(folder) else { return Self::none() };
        let named = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            name.starts_with(&stem) && name.ends_with(".json")
        };
        let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).filter(named).collect();
        paths.sort();
        let mut tables = Vec::new();
        for path in paths {
            match TunedTable::read(&path) {
                Err(error) => log::warn!("not used: {error}"),
                Ok(table) => match table.objection(limits) {
                    Some(why) => log::warn!("not used: {}: {why}; run `batchla tune` again", path.display()),
                    None => tables.push((path, table)),
                },
            }
        }
        Self(tables)
    }

    /// The row for a problem, and its table's file.
    pub fn row(&self, problem: &Problem) -> Option<(&Path, &TunedRow)> {
        self.table(problem).map(|(path, _, row)| (path, row))
    }

    fn table(&self, problem: &Problem) -> Option<(&Path, &TunedTable, &TunedRow)> {
        let serving = self.0.iter().filter(|(_, table)| table.serves(problem));
        serving.filter_map(|(path, table)| Some((&**path, table, table.row(problem.order())?))).next()
    }

    /// The same as numbers with their receipt.
    pub(crate) fn numbers(&self, problem: &Problem) -> Option<Numbers> {
        let (_, table, TunedRow { first, last, plan, speedup }) = self.table(problem)?;
        let receipt = Receipt {
            device: table.gpu.clone().into(),
            date: table.date.clone().into(),
            command: table.command.clone().into(),
        };
        Some(Numbers {
            row: format!("orders {first} to {last}: {plan}, {speedup:.2} times as fast as the planner's own"),
            receipt,
        })
    }
}

/// How the files of a GPU begin.
fn stem(gpu: &str, architecture: &str) -> String {
    let plain = gpu.to_lowercase();
    let words: Vec<&str> = plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    format!("{}-{architecture}", words.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits::preset("sm_90").unwrap()
    }

    fn table(rows: &[(usize, usize, &str)]) -> TunedTable {
        let receipt = Receipt::new("NVIDIA H200", "2026-01-31", "batchla tune f64");
        let rows =
            rows.iter().map(|&(first, last, plan)| TunedRow { first, last, plan: plan.to_owned(), speedup: 1.25 });
        TunedTable {
            rows: rows.collect(),
            ..TunedTable::new(&limits(), ScalarKind::F64, Operation::Invert, TunedLayout::ColumnMajor, &receipt)
        }
    }

    fn problem(order: usize) -> Problem {
        TunedLayout::ColumnMajor.problem(ScalarKind::F64, Operation::Invert, 7, order).unwrap()
    }

    fn choose(problem: &Problem, folder: &Path) -> (CudaPlan, batchla_core::Chosen) {
        CudaPlan::choose_tuned(problem, &Options::default(), &limits(), &Tuned::load(folder, &limits())).unwrap()
    }

    #[test]
    fn a_table_that_was_written_chooses_from_then_on_and_only_what_it_was_measured_for() {
        let folder = tempfile::tempdir().unwrap();
        let written = table(&[(3, 20, "resident:panel=4"), (40, 41, "left-looking:panel=16")]);
        let path = written.write(folder.path()).unwrap();
        assert!(path.ends_with("nvidia-h200-sm_90-f64-invert-column-major.json"), "{}", path.display());
        assert_eq!(TunedTable::read(&path).unwrap(), written);
        let (plan, chosen) = choose(&problem(40), folder.path());
        assert_eq!(plan.getrf.unwrap().panel, 16);
        assert!(chosen.to_string().contains("column-major.json"), "{chosen}");
        assert_eq!(choose(&problem(17), folder.path()).0.resident.unwrap().panel, 4);
        let others = [
            problem(42),
            TunedLayout::RowMajor.problem(ScalarKind::F64, Operation::Invert, 7, 40).unwrap(),
            TunedLayout::ColumnMajor.problem(ScalarKind::F32, Operation::Invert, 7, 40).unwrap(),
            TunedLayout::ColumnMajor.problem(ScalarKind::F64, Operation::Factorize, 7, 40).unwrap(),
        ];
        for other in others {
            let (plan, chosen) = choose(&other, folder.path());
            let own = CudaPlan::choose(&other, &Options::default(), &limits()).unwrap();
            assert_eq!((plan, chosen), (own, batchla_core::Chosen::ByPlanner), "{other}");
        }
        // The batch has no say.
        let one = TunedLayout::ColumnMajor.problem(ScalarKind::F64, Operation::Invert, 1, 40).unwrap();
        assert_eq!(choose(&one, folder.path()).0.getrf.unwrap().panel, 16);
    }

    #[test]
    fn what_other_orders_were_tuned_to_before_stays() {
        let before = table(&[(1, 9, "a"), (10, 20, "b"), (30, 60, "c"), (61, 70, "d")]);
        let mut now = table(&[(15, 40, "e")]);
        now.keep_outside(&before, &(12..=50));
        let rows: Vec<_> = now.rows.iter().map(|row| (row.first, row.last, row.plan.as_str())).collect();
        assert_eq!(rows, [(1, 9, "a"), (10, 11, "b"), (15, 40, "e"), (51, 60, "c"), (61, 70, "d")]);
    }

    #[test]
    fn what_is_forced_by_name_is_not_tuned_away() {
        let folder = tempfile::tempdir().unwrap();
        table(&[(1, 50, "resident:panel=4")]).write(folder.path()).unwrap();
        let tuned = Tuned::load(folder.path(), &limits());
        let options = Options::default().with_plan("left-looking");
        let (plan, chosen) = CudaPlan::choose_tuned(&problem(40), &options, &limits(), &tuned).unwrap();
        assert_eq!((plan.name(), chosen), ("left-looking", batchla_core::Chosen::ByName));
    }

    #[test]
    fn tables_of_other_gpus_and_versions_and_of_plans_not_the_planners_are_not_used() {
        let good = table(&[(1, 50, "left-looking:panel=16")]);
        assert_eq!(good.objection(&limits()), None);
        let with = |row: &str| table(&[(1, 50, row)]);
        for (bad, why) in [
            (TunedTable { version: "0.0.1".into(), ..good.clone() }, "batchla 0.0.1"),
            (TunedTable { gpu: "NVIDIA H100".into(), ..good.clone() }, "it is of NVIDIA H100"),
            (TunedTable { architecture: "sm_80".into(), ..good.clone() }, "(sm_80)"),
            (TunedTable { scalar: "f16".into(), ..good.clone() }, "no type \"f16\""),
            (TunedTable { operation: "solve".into(), ..good }, "\"solve\" is not tuned"),
            (with("timely"), "none of the planner's families"),
            (with("abacus"), "none of the planner's families"),
            (with("left-looking:panel=1000"), "is not between"),
            (with("left-looking:pannel=1"), "there is no number"),
        ] {
            let objection = bad.objection(&limits()).unwrap();
            assert!(objection.contains(why), "{objection}");
            // Found under the name of this GPU, it is passed over.
            let folder = tempfile::tempdir().unwrap();
            let name = folder.path().join("nvidia-h200-sm_90-f64-invert-column-major.json");
            std::fs::write(name, serde_json::to_string(&bad).unwrap()).unwrap();
            assert_eq!(choose(&problem(40), folder.path()).1, batchla_core::Chosen::ByPlanner, "{why}");
        }
    }

    #[test]
    fn garbage_is_refused_in_words() {
        let whole = serde_json::to_string(&table(&[(1, 8, "resident"), (9, 9, "resident:panel=4")])).unwrap();
        assert!(TunedTable::parse(whole.as_bytes()).is_ok());
        for (bad, why) in [
            (String::new(), "EOF"),
            ("not json".to_owned(), "expected"),
            (whole[..whole.len() / 2].to_owned(), "EOF"),
            (whole.replace("plans 1", "plans 2"), "its format is"),
            (whole.replace("\"first\":9", "\"first\":8"), "not ascending"),
            (whole.replace("\"first\":1,", "\"first\":10,"), "not ascending"),
            (whole.replace("1.25", "-1.25"), "no speedup"),
            (whole.replace("\"gpu\"", "\"cpu\""), "unknown field"),
            (whole.replace("\"last\":8", "\"last\":-8"), "invalid value"),
        ] {
            let error = TunedTable::parse(bad.as_bytes()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long.json");
        std::fs::write(&path, vec![b' '; MOST_BYTES as usize + 5]).unwrap();
        let error = TunedTable::read(&path).unwrap_err();
        assert!(error.to_string().contains("more than") && error.advice().contains("batchla tune"), "{error}");
        assert_eq!(Tuned::load(&folder.path().join("nowhere"), &limits()).0.len(), 0);
    }
}
