//! Writing batches, as many matrices at a time as the caller likes.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

use batchla_core::{BatchLayout, BatchRef, Error, ErrorKind, Scalar};

use crate::array::{ArrayWriter, ElementKind};
use crate::front::tuple;
use crate::header::Header;
use crate::target::Target;

/// Elements put into C order before they are written together.
const MANY: usize = 1 << 13;

/// Writes a batch piece by piece, in C order and little-endian.
///
/// A file takes its name in [`Writer::finish`]; a writer dropped before leaves nothing behind, and whatever had that name
/// untouched (see [`Target`]).
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
    array: ArrayWriter,
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
        Self::new(Target::file(path)?, shape)
    }

    /// Begins an array of `shape`, `(..., n, m)`.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for a shape that no `.npy` file of matrices can have; [`ErrorKind::Io`].
    pub fn new(target: Target, shape: &[usize]) -> Result<Self, Error> {
        Self::begin(target, shape, false)
    }

    /// Begins an array of vectors, of shape `(..., n)`, that are pushed as `n` x 1 matrices.
    ///
    /// # Errors
    /// As [`Writer::new`].
    pub fn vectors(target: Target, shape: &[usize]) -> Result<Self, Error> {
        Self::begin(target, &[shape, &[1]].concat(), true)
    }

    fn begin(target: Target, shape: &[usize], vectors: bool) -> Result<Self, Error> {
        let header = Header::new(T::KIND, shape).map_err(|why| {
            Error::new(ErrorKind::Argument, "write", format!("{}: {why}", target.name()))
                .advise("pass (..., n, m), of 2 to 64 dimensions")
        })?;
        let header = Header { vectors, ..header };
        let array = ArrayWriter::new(target, ElementKind::Scalar(T::KIND), header.file_shape())?;
        Ok(Self { array, header, done: 0, scalar: PhantomData })
    }

    /// What the array will hold.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Where it is written.
    pub fn target(&self) -> &Target {
        self.array.target()
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
            let what = format!("{layout} does not fit into {} ({})", self.target().name(), self.progress());
            return Err(Error::new(ErrorKind::Shape, "write", what)
                .advise("create the file for as many matrices as are written"));
        }
        self.done += layout.batch();
        let in_order = BatchLayout::row_major(layout.batch(), rows, cols).is_ok_and(|c_order| c_order == layout);
        match batch.dense_slice() {
            Some(slice) if in_order => self.array.push(slice),
            _ => self.push_by_rows(batch),
        }
    }

    fn push_by_rows(&mut self, batch: BatchRef<'_, T>) -> Result<(), Error> {
        let (area, cols) = (self.header.area(), self.header.cols());
        let mut rows: Vec<T> = Vec::new();
        for matrix in batch.matrices() {
            let start = rows.len();
            rows.resize(start + area, T::zero());
            // The columns of the transpose are the rows.
            matrix.transposed().copy_to_columns(&mut rows[start..], cols);
            if rows.len() >= MANY {
                self.array.push(&rows)?;
                rows.clear();
            }
        }
        self.array.push(&rows)
    }

    /// Hands all that was pushed to the system, which may refuse it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn flush(&mut self) -> Result<(), Error> {
        self.array.flush()
    }

    /// Ends the array; a file takes its name.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where matrices are missing; [`ErrorKind::Io`] where writing fails. In both cases no file is left behind.
    pub fn finish(self) -> Result<(), Error> {
        if self.done < self.header.batch() {
            let what = format!("{} is not whole ({})", self.target().name(), self.progress());
            return Err(Error::new(ErrorKind::Shape, "write", what).advise("push all matrices before finishing"));
        }
        self.array.finish()
    }

    fn progress(&self) -> String {
        format!("{} of {} matrices written, shape {}", self.done, self.header.batch(), tuple(&self.header.shape))
    }
}

impl<T: Scalar> fmt::Debug for Writer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Writer").field("name", &self.target().name()).field("done", &self.done).finish_non_exhaustive()
    }
}
