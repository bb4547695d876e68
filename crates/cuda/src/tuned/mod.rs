//! Tables of plans that were measured on the user's own GPU: written by the tuner, read when a device is opened.
//!
//! A table only names plans that the planner could choose itself, of the same arithmetic: it changes the speed, and no bit of a result. One that is
//! of another GPU, of another version of this crate, or no table at all is refused with a warning and not used.

mod layout;
mod table;

use std::path::{Path, PathBuf};

use batchla_core::{Numbers, Problem};

pub use self::layout::TunedLayout;
use self::table::stem;
pub use self::table::{TunedEarlier, TunedRow, TunedTable};
use crate::limits::Limits;

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
        let (_, table, found) = self.table(problem)?;
        let TunedRow { first, last, plan, speedup, .. } = found;
        Some(Numbers {
            row: format!("orders {first} to {last}: {plan}, {speedup:.2} times as fast as the planner's own"),
            receipt: table.receipt(found),
        })
    }
}
