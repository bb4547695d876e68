//! Where results go: a file, a folder of files, standard output.

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
    /// What `given` means for `input`: a file, or with several inputs or a `/` at its end a folder, with a file in it called after the input and
    /// `extension`.
    pub(crate) fn of(given: &str, input: &Input, several: bool, extension: &str) -> Result<Self, Error> {
        let path = Path::new(given);
        if given == "-" {
            return if several { Err(folder_needed(given)) } else { Ok(Self::Standard) };
        }
        if !several && !given.ends_with(['/', std::path::MAIN_SEPARATOR]) {
            return Ok(Self::File(path.to_owned()));
        }
        if path.is_dir() { Ok(Self::File(path.join(input.stem() + extension))) } else { Err(folder_needed(given)) }
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

/// Refuses outputs that would replace an input or each other.
pub(crate) fn refuse_clashes(operation: &str, inputs: &[&Input], outputs: &[&Output]) -> Result<(), Error> {
    let refuse = |what: String| {
        Err(Error::new(ErrorKind::Argument, operation, what)
            .advise("name another file: nothing is written onto what is read"))
    };
    let read: Vec<PathBuf> = inputs.iter().filter_map(|input| input.file()).filter_map(real).collect();
    for (k, output) in outputs.iter().enumerate() {
        if outputs[..k].contains(output) {
            return refuse(format!("two results go to {}", output.name()));
        }
        if let Output::File(path) = output {
            let place = real(path);
            if place.is_some_and(|place| read.contains(&place)) {
                return refuse(format!("the output {} is the input", output.name()));
            }
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

/// The file that a path leads to, where there is one.
fn real(path: &Path) -> Option<PathBuf> {
    fs::canonicalize(path).ok()
}

fn folder_needed(given: &str) -> Error {
    Error::new(
        ErrorKind::Argument,
        "write",
        format!("{given} is no folder, which several inputs or a / at the end need"),
    )
    .advise("make the folder first, and name it with a / at its end")
}
