//! What was measured, a line each, on disk at once: a run that ends early loses nothing, and goes on where it ended.

use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use batchla_core::{Error, ErrorKind};

use crate::record::unwritable;

const COLUMNS: &str = "order,round,seconds,ms,plan";

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Entry {
    /// What it took, the making of the plan included.
    pub(crate) seconds: f64,
    /// Milliseconds of a batch; none where the result was wrong or the plan does not run.
    pub(crate) ms: Option<f64>,
}

/// The measurements of a run.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    known: HashMap<(usize, usize, String), Entry>,
}

impl Journal {
    /// Goes on with the journal at `path`, or begins one. `about` says what is measured; `fresh` forgets what is there.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] where it is of something else, damaged, or another run's that is still at it; [`ErrorKind::Io`].
    pub(crate) fn open(path: &Path, about: &str, fresh: bool) -> Result<Self, Error> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
        }
        let open = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = open.map_err(|error| unwritable(path, error))?;
        match file.try_lock() {
            // A system without locks goes without.
            Ok(()) | Err(TryLockError::Error(_)) => {}
            Err(TryLockError::WouldBlock) => {
                let what = format!("another run is writing {}", path.display());
                return Err(Error::new(ErrorKind::Argument, "tune", what).advise("wait for it, or end it"));
            }
        }
        let mut text = Vec::new();
        if !fresh {
            file.read_to_end(&mut text).map_err(|error| unwritable(path, error))?;
        }
        // A line without its end was being written when the run ended.
        text.truncate(text.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1));
        if text.iter().filter(|byte| **byte == b'\n').count() < 2 {
            // It ended before its first measurement.
            text.clear();
        }
        let known = known(&text, about).map_err(|why| {
            Error::new(ErrorKind::Argument, "tune", format!("{} {why}", path.display()))
                .advise("go on with the same options, or leave it behind with --fresh")
        })?;
        let mut journal = Self { path: path.to_owned(), file, known };
        journal.at(text.len() as u64)?;
        if text.is_empty() {
            journal.line(&format!("# {about}\n{COLUMNS}\n"))?;
        }
        Ok(journal)
    }

    fn at(&mut self, end: u64) -> Result<(), Error> {
        let cut = self.file.set_len(end).and_then(|()| self.file.seek(SeekFrom::Start(end)));
        cut.map(drop).map_err(|error| unwritable(&self.path, error))
    }

    fn line(&mut self, text: &str) -> Result<(), Error> {
        self.file.write_all(text.as_bytes()).map_err(|error| unwritable(&self.path, error))
    }

    /// Measurements so far.
    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    pub(crate) fn known(&self, order: usize, round: usize, plan: &str) -> Option<Entry> {
        self.known.get(&(order, round, plan.to_owned())).copied()
    }

    pub(crate) fn push(&mut self, order: usize, round: usize, plan: &str, entry: Entry) -> Result<(), Error> {
        let ms = entry.ms.map_or_else(|| "-".to_owned(), |ms| ms.to_string());
        // One call of the system a line.
        self.line(&format!("{order},{round},{},{ms},{plan}\n", entry.seconds))?;
        self.known.insert((order, round, plan.to_owned()), entry);
        Ok(())
    }

    /// Puts a copy into a folder.
    pub(crate) fn copy(&self, to: &Path) -> Result<(), Error> {
        std::fs::copy(&self.path, to).map(drop).map_err(|error| unwritable(to, error))
    }

    /// The run is over.
    pub(crate) fn remove(self) -> Result<(), Error> {
        std::fs::remove_file(&self.path).map_err(|error| unwritable(&self.path, error))
    }
}

/// What the lines of a journal say; the error is a sentence about it.
fn known(text: &[u8], about: &str) -> Result<HashMap<(usize, usize, String), Entry>, String> {
    let mut known = HashMap::new();
    if text.is_empty() {
        return Ok(known);
    }
    let text = std::str::from_utf8(text).map_err(|error| format!("is damaged: {error}"))?;
    let mut lines = text.lines();
    let first = lines.next().and_then(|line| line.strip_prefix("# ")).ok_or("is no journal of the tuner")?;
    if first != about {
        return Err(format!("was begun for {first}, and this is {about}"));
    }
    if lines.next() != Some(COLUMNS) {
        return Err("is damaged in line 2".to_owned());
    }
    for (line, number) in lines.zip(3..) {
        let (key, entry) = parse(line).ok_or_else(|| format!("is damaged in line {number}"))?;
        known.insert(key, entry);
    }
    Ok(known)
}

fn parse(line: &str) -> Option<((usize, usize, String), Entry)> {
    let [order, round, seconds, ms, plan] = line.splitn(5, ',').collect::<Vec<_>>().try_into().ok()?;
    let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    let ms = if ms == "-" { None } else { Some(number(ms)?) };
    let entry = Entry { seconds: number(seconds)?, ms };
    Some(((order.parse().ok()?, round.parse().ok()?, plan.to_owned()), entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: Entry = Entry { seconds: 0.1, ms: Some(1.0 / 3.0) };
    const REFUSED: Entry = Entry { seconds: 2.0, ms: None };

    #[test]
    fn what_was_written_is_known_to_the_next_run_and_half_a_line_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("one.journal");
        let mut journal = Journal::open(&path, "this", false).unwrap();
        journal.push(3, 0, "a, with; commas", ENTRY).unwrap();
        journal.push(3, 1, "b", REFUSED).unwrap();
        drop(journal);
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut journal = Journal::open(&path, "this", false).unwrap();
            let first = journal.known(3, 0, "a, with; commas");
            assert!(first.is_none_or(|entry| entry == ENTRY) && journal.known(3, 1, "b").is_none());
            journal.push(3, 1, "b", REFUSED).unwrap();
            drop(journal);
            let journal = Journal::open(&path, "this", false).unwrap();
            assert_eq!(journal.known(3, 1, "b"), Some(REFUSED), "cut at {cut}");
            assert_eq!(journal.known(3, 0, "a, with; commas"), first);
        }
    }

    #[test]
    fn what_is_of_something_else_or_damaged_or_in_use_is_refused_and_fresh_forgets_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.journal");
        let mut journal = Journal::open(&path, "this", false).unwrap();
        journal.push(3, 0, "a", ENTRY).unwrap();
        let error = Journal::open(&path, "this", false).unwrap_err();
        assert!(error.to_string().contains("another run"), "{error}");
        drop(journal);
        let error = Journal::open(&path, "that", false).unwrap_err();
        assert!(error.to_string().contains("was begun for this, and this is that"), "{error}");
        let text = std::fs::read_to_string(&path).unwrap();
        for bad in [text.replace("3,0", "3;0"), text.replace("0.1", "NaN"), text.replace("# ", ""), "x\ny\n".to_owned()]
        {
            std::fs::write(&path, &bad).unwrap();
            let error = Journal::open(&path, "this", false).unwrap_err();
            assert!(error.advice().contains("--fresh"), "{bad}: {error}");
        }
        assert_eq!(Journal::open(&path, "that", true).unwrap().len(), 0);
        assert_eq!(Journal::open(&path, "that", false).unwrap().len(), 0);
    }
}
