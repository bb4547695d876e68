//! The record of compiled kernels: a row for each symbol, in a CSV file that is checked in.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::fs;
use std::path::Path;

use super::matrix::Needed;

/// What a kernel takes of a GPU, and of whom it is known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Row {
    pub(super) architecture: String,
    pub(super) nvrtc: String,
    pub(super) source: String,
    pub(super) entry: String,
    pub(super) constants: String,
    pub(super) digest: String,
    pub(super) resources: Resources,
}

/// A kernel's registers a thread, bytes of shared memory a block that it has without asking, and bytes of local memory a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Resources {
    pub(super) registers: u32,
    pub(super) shared: u32,
    pub(super) stack: u32,
    pub(super) spill_stores: u32,
    pub(super) spill_loads: u32,
}

const HEADER: &str = "arch,nvrtc,source,entry,constants,digest,registers,shared,stack,spill_stores,spill_loads";

/// Rows by digest.
#[derive(Default)]
pub(super) struct Record(BTreeMap<String, Vec<Row>>);

impl Record {
    /// What is recorded; nothing where there is no file yet.
    pub(super) fn read(path: &Path) -> Result<Self, Box<dyn Error>> {
        let mut this = Self::default();
        if !path.exists() {
            return Ok(this);
        }
        for (line, number) in fs::read_to_string(path)?.lines().zip(1..) {
            if !line.starts_with('#') && line != HEADER {
                let wrong = || format!("{}:{number} is no row of it; delete it and record again", path.display());
                this.add(Row::parse(line).ok_or_else(wrong)?);
            }
        }
        Ok(this)
    }

    pub(super) fn add(&mut self, row: Row) {
        self.0.entry(row.digest.clone()).or_default().push(row);
    }

    /// The rows of a compilation; none where it is not recorded.
    pub(super) fn rows(&self, digest: &str) -> &[Row] {
        self.0.get(digest).map_or(&[], Vec::as_slice)
    }

    pub(super) fn has(&self, digest: &str) -> bool {
        self.0.contains_key(digest)
    }

    /// Writes the rows of what is needed, and no others, sorted.
    pub(super) fn write(&self, path: &Path, needed: &[Needed]) -> Result<usize, Box<dyn Error>> {
        let keys: BTreeSet<_> = needed.iter().map(Needed::key).collect();
        let mut rows: Vec<_> = keys.iter().flat_map(|key| self.rows(key)).collect();
        rows.sort();
        let mut text =
            format!("# Made by `cargo xtask kernels --record`, checked by `cargo xtask kernels`.\n{HEADER}\n");
        for row in &rows {
            text.push_str(&format!("{row}\n"));
        }
        fs::write(path, text)?;
        Ok(rows.len())
    }

    /// How many compilations are recorded that nothing needs any more.
    pub(super) fn unneeded(&self, needed: &[Needed]) -> usize {
        let keys: BTreeSet<_> = needed.iter().map(Needed::key).collect();
        self.0.keys().filter(|key| !keys.contains(*key)).count()
    }
}

impl Row {
    /// A row from one line.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let fields: [&str; 11] = line.split(',').collect::<Vec<_>>().try_into().ok()?;
        let [architecture, nvrtc, source, entry, constants, digest, numbers @ ..] = fields;
        let mut parsed = [0; 5];
        for (number, text) in parsed.iter_mut().zip(numbers) {
            *number = text.parse().ok()?;
        }
        let [registers, shared, stack, spill_stores, spill_loads] = parsed;
        let resources = Resources { registers, shared, stack, spill_stores, spill_loads };
        let [architecture, nvrtc, source, entry, constants, digest] =
            [architecture, nvrtc, source, entry, constants, digest].map(str::to_owned);
        Some(Self { architecture, nvrtc, source, entry, constants, digest, resources })
    }

    /// The rows of a compilation, from what the assembler wrote into the log.
    pub(super) fn of_log(needed: &Needed, log: &str) -> Vec<Self> {
        let row = |(entry, resources): (String, Resources)| Self {
            architecture: needed.architecture.to_owned(),
            nvrtc: needed.nvrtc.trim_start_matches("NVRTC ").to_owned(),
            source: needed.specification.source().name.to_owned(),
            entry,
            constants: needed.constants(),
            digest: needed.key(),
            resources,
        };
        Resources::of_log(log).into_iter().map(row).collect()
    }
}

impl Resources {
    /// Each entry function that the assembler speaks of. Functions that it calls count with it.
    fn of_log(log: &str) -> Vec<(String, Self)> {
        let mut all: Vec<(String, Self)> = Vec::new();
        for line in log.lines() {
            if let Some((_, rest)) = line.split_once("Compiling entry function '") {
                let entry = rest.split('\'').next().unwrap_or_default();
                all.push((entry.to_owned(), Self::default()));
            }
            let Some((_, here)) = all.last_mut() else { continue };
            here.stack += number_before(line, " bytes stack frame").unwrap_or(0);
            here.spill_stores += number_before(line, " bytes spill stores").unwrap_or(0);
            here.spill_loads += number_before(line, " bytes spill loads").unwrap_or(0);
            here.registers = here.registers.max(number_before(line, " registers").unwrap_or(0));
            here.shared = here.shared.max(number_before(line, " bytes smem").unwrap_or(0));
        }
        all.retain(|(_, resources)| resources.registers > 0);
        all
    }
}

/// The number that stands right before some words.
fn number_before(line: &str, words: &str) -> Option<u32> {
    let (before, _) = line.split_once(words)?;
    before.rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { architecture, nvrtc, source, entry, constants, digest, resources } = self;
        let Resources { registers, shared, stack, spill_stores, spill_loads } = resources;
        write!(f, "{architecture},{nvrtc},{source},{entry},{constants},{digest}")?;
        write!(f, ",{registers},{shared},{stack},{spill_stores},{spill_loads}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'getri' for 'sm_80'
ptxas info    : Function properties for getri
ptxas         .     320 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads
ptxas info    : Used 38 registers, used 1 barriers, 320 bytes cumulative stack size, 512 bytes smem, 360 bytes cmem[0]
ptxas info    : Compiling entry function 'trtri' for 'sm_80'
ptxas info    : Function properties for trtri
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers
ptxas info    : Compile time = 3.816 ms
";

    #[test]
    fn each_entry_of_a_log_has_its_own_numbers() {
        let getri = Resources { registers: 38, shared: 512, stack: 320, spill_stores: 16, spill_loads: 24 };
        let trtri = Resources { registers: 40, ..Resources::default() };
        assert_eq!(Resources::of_log(LOG), [("getri".to_owned(), getri), ("trtri".to_owned(), trtri)]);
        assert!(Resources::of_log("").is_empty());
    }

    #[test]
    fn a_row_is_read_as_it_was_written_and_nothing_else_is() {
        let line = "sm_90,12.9,getrf.cu,getrf,SCALAR=1 NB=8,0123456789abcdef,128,4096,0,0,0";
        assert_eq!(Row::parse(line).map(|row| row.to_string()).as_deref(), Some(line));
        for wrong in ["", "sm_90,12.9", &format!("{line},1"), &line.replace("4096", "4 KiB")] {
            assert_eq!(Row::parse(wrong), None, "{wrong}");
        }
    }
}
