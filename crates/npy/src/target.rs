//! Where bytes are written: a file, aside and renamed when whole, or a stream.

use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use batchla_core::{Error, ErrorKind};
use tempfile::NamedTempFile;

/// Bytes gathered before they are handed to the system.
const GATHERED: usize = 1 << 17;

/// A file that takes its name when it is whole, or a stream.
///
/// A file is written aside, in the folder where it will be, and renamed in [`Target::finish`]: there is never half a file under its name.
/// A target dropped before leaves nothing behind, and whatever had that name untouched.
///
/// ```
/// use std::io::Write;
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.csv");
/// let mut target = batchla_npy::Target::file(&path)?;
/// writeln!(target, "matrix,outcome")?;
/// assert!(!path.exists());
/// target.finish()?;
/// assert_eq!(std::fs::read_to_string(&path)?, "matrix,outcome\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Target {
    output: Output,
    name: String,
}

enum Output {
    File { file: BufWriter<NamedTempFile>, path: PathBuf },
    Stream(BufWriter<Box<dyn Write + Send>>),
}

impl Target {
    /// Begins a file. One that is there keeps its permissions; through a symbolic link, the file it leads to is replaced, not the link.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where the folder cannot be written to, or `path` is a directory or device.
    pub fn file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let fault = |what: &str| Error::new(ErrorKind::Io, "write", format!("{} {what}", path.display()));
        let mut builder = tempfile::Builder::new();
        builder.prefix(".batchla-").suffix(".tmp");
        // What a new file would have; a file that is replaced keeps what it has.
        let mut permissions = new_file_permissions();
        let mut target = path.to_owned();
        if let Ok(old) = fs::metadata(path) {
            if !old.is_file() {
                return Err(fault(if old.is_dir() { "is a directory" } else { "is no ordinary file" })
                    .advise("name a new or an ordinary file"));
            }
            permissions = Some(old.permissions());
            target = fs::canonicalize(path).unwrap_or(target);
        }
        if let Some(permissions) = permissions {
            builder.permissions(permissions);
        }
        let folder = match target.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file = builder.tempfile_in(folder).map_err(|e| {
            fault("cannot be created").advise("check that its folder exists and may be written to").caused_by(e)
        })?;
        let output = Output::File { file: BufWriter::with_capacity(GATHERED, file), path: target };
        Ok(Self { output, name: path.display().to_string() })
    }

    /// Writes to a stream; `name` is what errors call it. What was written stays written.
    pub fn stream(stream: impl Write + Send + 'static, name: impl Into<String>) -> Self {
        let stream = BufWriter::with_capacity(GATHERED, Box::new(stream) as Box<dyn Write + Send>);
        Self { output: Output::Stream(stream), name: name.into() }
    }

    /// What errors call it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file under which the bytes lie until it is whole, for those who must remove it where no destructor runs.
    pub fn temporary(&self) -> Option<&Path> {
        match &self.output {
            Output::File { file, .. } => Some(file.get_ref().path()),
            Output::Stream(_) => None,
        }
    }

    /// Gives the file its name, or hands the stream what is left.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where writing fails; of a file nothing is then left behind.
    pub fn finish(self) -> Result<(), Error> {
        let unwritable = unwritable(&self.name);
        let finished = match self.output {
            Output::File { file, path } => {
                file.into_inner().map_err(|e| e.into_error()).and_then(|file| Ok(file.persist(&path).map(drop)?))
            }
            Output::Stream(mut stream) => stream.flush(),
        };
        finished.map_err(|e| unwritable.caused_by(e))
    }

    /// What a write gave, as an error that names the target.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where it failed.
    pub fn check(&self, written: io::Result<()>) -> Result<(), Error> {
        written.map_err(|e| unwritable(&self.name).caused_by(e))
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.output {
            Output::File { file, .. } => file.write(bytes),
            Output::Stream(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.output {
            Output::File { file, .. } => file.flush(),
            Output::Stream(stream) => stream.flush(),
        }
    }
}

fn unwritable(name: &str) -> Error {
    Error::new(ErrorKind::Io, "write", format!("{name} cannot be written"))
        .advise("check the room on its disk and the permissions of its folder")
}

#[cfg(unix)]
fn new_file_permissions() -> Option<Permissions> {
    // The umask is taken off by the system.
    Some(std::os::unix::fs::PermissionsExt::from_mode(0o666))
}

#[cfg(not(unix))]
fn new_file_permissions() -> Option<Permissions> {
    None
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("name", &self.name).finish_non_exhaustive()
    }
}
