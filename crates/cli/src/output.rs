//! Where results go: a file, a folder of files, standard output.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use batchla::npy::Target;
use batchla::{Error, ErrorKind};

use crate::input::Input;
use crate::interrupt::Interrupt;

/// Where one result goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// `-`.
    Standard,
    File(PathBuf),
}

impl Output {
    /// What `given` means for `input`: a file; or a folder, where it is one or has to be (with several inputs, or a `/` at its end), with a file in it
    /// called after the input and `extension`.
    pub(crate) fn of(given: &str, input: &Input, several: bool, extension: &str) -> Result<Self, Error> {
        let path = Path::new(given);
        if given == "-" {
            return if several { Err(folder_needed(given)) } else { Ok(Self::Standard) };
        }
        if path.is_dir() {
            return Ok(Self::File(path.join(input.stem() + extension)));
        }
        if several || given.ends_with(['/', std::path::MAIN_SEPARATOR]) {
            return Err(folder_needed(given));
        }
        Ok(Self::File(path.to_owned()))
    }

    /// Begins it.
    pub(crate) fn begin(&self, interrupt: &Interrupt) -> Result<Target, Error> {
        match self {
            Self::Standard => Ok(Target::stream(std::io::stdout(), "standard output")),
            Self::File(path) => interrupt.begin(|| Target::file(path), Target::temporary),
        }
    }

    /// As its user calls it.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Standard => "standard output".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }
}

/// Refuses outputs that would replace an input or each other, of all jobs together.
pub(crate) fn refuse_clashes(operation: &str, inputs: &[&Input], outputs: &[&Output]) -> Result<(), Error> {
    let refuse = |what: String, advice: &str| Err(Error::new(ErrorKind::Argument, operation, what).advise(advice));
    let read = inputs.iter().filter_map(|input| Some((place(input.file()?), *input)));
    let read: HashMap<PathBuf, &Input> = read.collect();
    let mut taken = HashSet::new();
    for output in outputs {
        let place = match output {
            Output::Standard => None,
            Output::File(path) => Some(place(path)),
        };
        if let Some(input) = place.as_ref().and_then(|place| read.get(place)) {
            let what = format!("the output {} is the input {input}", output.name());
            return refuse(what, "name another file: nothing is written onto what is read");
        }
        if !taken.insert(place) {
            return refuse(format!("two results go to {}", output.name()), "name a place of its own for each");
        }
    }
    Ok(())
}

/// Refuses inputs whose results would have one name in a folder.
pub(crate) fn refuse_namesakes(operation: &str, inputs: &[Input]) -> Result<(), Error> {
    for (k, input) in inputs.iter().enumerate() {
        if let Some(other) = inputs[..k].iter().find(|other| other.stem() == input.stem()) {
            let what = format!("the results of {other} and {input} would both be called {}", input.stem());
            return Err(Error::new(ErrorKind::Argument, operation, what).advise("run them one by one, or rename one"));
        }
    }
    Ok(())
}

/// One path for all that lead to a file, which need not be there yet.
fn place(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let new = || Some(fs::canonicalize(folder).ok()?.join(path.file_name()?));
    // Where its folder is not there, neither is another file of the name.
    fs::canonicalize(path).ok().or_else(new).unwrap_or_else(|| path.to_owned())
}

fn folder_needed(given: &str) -> Error {
    Error::new(
        ErrorKind::Argument,
        "write",
        format!("{given} is no folder, which several inputs or a / at the end need"),
    )
    .advise("make the folder first, and name it with a / at its end")
}
