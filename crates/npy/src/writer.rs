//! Writing, as many matrices at a time as the caller likes, aside and renamed when whole.

use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, BufWriter, Write};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use batchla_core::{BatchLayout, BatchRef, Error, ErrorKind, Scalar};
use tempfile::NamedTempFile;

use crate::elements;
use crate::header::{Header, tuple};

/// Elements put into C order before they are written together.
const MANY: usize = 1 << 13;

/// Writes a batch piece by piece, in C order and little-endian.
///
/// The file takes its name in [`Writer::finish`]; a writer dropped before leaves nothing behind, and whatever had that name
/// untouched.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.npy");
/// let ones = batchla_core::Batch::<f32>::from_fn(2, 3, 3, |_, _, _| 1.0)?;
/// let mut writer = batchla_npy::Writer::create(&path, &[2, 2, 3, 3])?;
/// writer.push(&ones)?;
/// writer.push(&ones)?;
/// writer.finish()?;
/// assert_eq!(batchla_npy::peek(&path)?.shape, [2, 2, 3, 3]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Writer<T: Scalar> {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
    header: Header,
    /// Matrices written so far.
    done: usize,
    scalar: PhantomData<T>,
}

impl<T: Scalar> Writer<T> {
    /// Begins a file for an array of `shape`, `(..., n, m)`.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for a shape that no `.npy` file of matrices can have; [`ErrorKind::Io`] where the folder cannot be
    /// written to, or `path` is a directory or device.
    pub fn create(path: impl AsRef<Path>, shape: &[usize]) -> Result<Self, Error> {
        let path = path.as_ref();
        let fault = |what: &str| Error::new(ErrorKind::Io, "write", format!("{} {what}", path.display()));
        let header = Header::new(T::KIND, shape).map_err(|why| {
            Error::new(ErrorKind::Argument, "write", format!("{}: {why}", path.display()))
                .advise("pass (..., n, m), of 2 to 64 dimensions")
        })?;
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
            // Through a symbolic link, the file it leads to is replaced, not the link.
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
        let mut writer =
            Self { file: BufWriter::with_capacity(1 << 17, file), path: target, header, done: 0, scalar: PhantomData };
        let bytes = writer.header.to_bytes();
        let written = writer.file.write_all(&bytes);
        writer.check(written)?;
        Ok(writer)
    }

    /// What the file will hold.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Adds matrices, of whatever layout.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where they are of other dimensions than the file's, or too many; [`ErrorKind::Io`] where writing fails.
    pub fn push<'a>(&mut self, batch: impl Into<BatchRef<'a, T>>) -> Result<(), Error> {
        let batch = batch.into();
        let layout = *batch.layout();
        let (rows, cols) = (self.header.rows(), self.header.cols());
        let room = self.header.batch() - self.done;
        if (layout.rows(), layout.cols()) != (rows, cols) || layout.batch() > room {
            let what = format!("{layout} does not fit into {} ({})", self.path.display(), self.progress());
            return Err(Error::new(ErrorKind::Shape, "write", what)
                .advise("create the file for as many matrices as are written"));
        }
        let in_order = BatchLayout::row_major(layout.batch(), rows, cols).is_ok_and(|c_order| c_order == layout);
        let written = match batch.dense_slice() {
            Some(slice) if in_order => elements::write(&mut self.file, slice),
            _ => self.push_by_rows(batch),
        };
        self.done += layout.batch();
        self.check(written)
    }

    fn push_by_rows(&mut self, batch: BatchRef<'_, T>) -> io::Result<()> {
        let (area, cols) = (self.header.area(), self.header.cols());
        let mut rows: Vec<T> = Vec::new();
        for matrix in batch.matrices() {
            let start = rows.len();
            rows.resize(start + area, T::zero());
            // The columns of the transpose are the rows.
            matrix.transposed().copy_to_columns(&mut rows[start..], cols);
            if rows.len() >= MANY {
                elements::write(&mut self.file, &rows)?;
                rows.clear();
            }
        }
        elements::write(&mut self.file, &rows)
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where matrices are missing; [`ErrorKind::Io`] where writing fails. In both cases nothing is left behind.
    pub fn finish(mut self) -> Result<(), Error> {
        if self.done < self.header.batch() {
            let what = format!("{} is not whole ({})", self.path.display(), self.progress());
            return Err(Error::new(ErrorKind::Shape, "write", what).advise("push all matrices before finishing"));
        }
        let flushed = self.file.flush();
        self.check(flushed)?;
        let Self { file, path, .. } = self;
        let persisted = file.into_inner().map_err(|e| e.into_error()).and_then(|file| Ok(file.persist(&path)?));
        persisted.map(drop).map_err(|e| unwritable(&path).caused_by(e))
    }

    fn progress(&self) -> String {
        format!("{} of {} matrices written, shape {}", self.done, self.header.batch(), tuple(&self.header.shape))
    }

    fn check(&self, written: io::Result<()>) -> Result<(), Error> {
        written.map_err(|e| unwritable(&self.path).caused_by(e))
    }
}

fn unwritable(path: &Path) -> Error {
    Error::new(ErrorKind::Io, "write", format!("{} cannot be written", path.display()))
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

impl<T: Scalar> fmt::Debug for Writer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("path", &self.path).field("done", &self.done).finish_non_exhaustive()
    }
}
