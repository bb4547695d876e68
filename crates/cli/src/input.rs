//! Where matrices come from: files, patterns of files, arrays of archives, standard input.

use std::fmt;
use std::path::{Path, PathBuf};

use batchla::npy::{AnyReader, Archive};
use batchla::{Error, ErrorKind};

/// One array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// `-`.
    Standard,
    File(PathBuf),
    /// `blocks.npz:name`, or `blocks.npz` where it holds one array.
    Archive(PathBuf, Option<String>),
}

impl From<&str> for Input {
    fn from(text: &str) -> Self {
        if text == "-" {
            return Self::Standard;
        }
        if !Path::new(text).exists()
            && let Some(end) = text.to_ascii_lowercase().rfind(".npz:")
        {
            let (archive, name) = text.split_at(end + ".npz".len());
            return Self::Archive(archive.into(), Some(name[1..].to_owned()));
        }
        let archive = Path::new(text).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npz"));
        if archive { Self::Archive(text.into(), None) } else { Self::File(text.into()) }
    }
}

impl Input {
    /// Reads the header.
    pub(crate) fn open(&self) -> Result<AnyReader, Error> {
        match self {
            Self::Standard => AnyReader::new(std::io::stdin(), "standard input"),
            Self::File(path) => AnyReader::open(path),
            Self::Archive(path, Some(name)) => Archive::open(path)?.array(name),
            Self::Archive(path, None) => {
                let archive = Archive::open(path)?;
                let names: Vec<&str> = archive.names().collect();
                match names[..] {
                    [sole] => archive.array(sole),
                    [] => {
                        let what = format!("{} holds no arrays", path.display());
                        Err(Error::new(ErrorKind::Argument, "read", what).advise("save some with numpy.savez"))
                    }
                    _ => {
                        let what = format!("{} holds {} arrays: {}", path.display(), names.len(), names.join(", "));
                        let advice = format!("name one of them: {}:NAME", path.display());
                        Err(Error::new(ErrorKind::Argument, "read", what).advise(advice))
                    }
                }
            }
        }
    }

    /// The file that is read, if it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Standard => None,
            Self::File(path) | Self::Archive(path, _) => Some(path),
        }
    }

    /// What a file made of it is called, without an extension.
    pub(crate) fn stem(&self) -> String {
        let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        match self {
            Self::Standard => "stdin".to_owned(),
            Self::File(path) | Self::Archive(path, None) => stem(path),
            Self::Archive(path, Some(name)) => format!("{}-{}", stem(path), name.replace(['/', '\\'], "-")),
        }
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Standard => f.write_str("standard input"),
            Self::File(path) | Self::Archive(path, None) => path.display().fmt(f),
            Self::Archive(path, Some(name)) => write!(f, "{}:{name}", path.display()),
        }
    }
}

/// The inputs that are meant: a pattern that no shell has expanded stands for the files that it fits, in order of their names.
pub(crate) fn expand(given: &[String]) -> Result<Vec<Input>, Error> {
    let mut inputs = Vec::new();
    for text in given {
        let pattern = text.contains(['*', '?', '[']) && !Path::new(text).exists();
        let fitting: Vec<PathBuf> = if pattern {
            glob::glob(text).map_err(|e| fault(text, "is no pattern").caused_by(e))?.filter_map(Result::ok).collect()
        } else {
            Vec::new()
        };
        if pattern && fitting.is_empty() {
            return Err(fault(text, "fits no file").advise("check the pattern and the folder"));
        }
        match pattern {
            true => inputs.extend(fitting.iter().map(|path| Input::from(&*path.to_string_lossy()))),
            false => inputs.push(text.as_str().into()),
        }
    }
    Ok(inputs)
}

fn fault(text: &str, what: &str) -> Error {
    Error::new(ErrorKind::Argument, "read", format!("{text} {what}"))
}
