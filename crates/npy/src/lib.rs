//! NumPy's `.npy` files in and out of batches.
//!
//! An array of shape `(..., n, m)` is a batch of `n` x `m` matrices: the leading dimensions are counted through in C
//! order, and a 2-d array is a batch of one. The elements are `float32`, `float64`, `complex64` or `complex128` of either byte
//! order; the file may be in C or in Fortran order and of format version 1.0, 2.0 or 3.0.
//!
//! ```
//! use batchla_core::Batch;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("hilbert.npy");
//! let a = Batch::<f64>::from_fn(2, 3, 3, |_, i, j| 1.0 / (i + j + 1) as f64)?;
//! batchla_npy::write(&path, &a)?;
//! assert_eq!(batchla_npy::peek(&path)?.to_string(), "f64, shape (2, 3, 3), C order");
//! assert_eq!(batchla_npy::read::<f64>(&path)?.get(1, 2, 2), Some(0.2));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | for | what |
//! | --- | --- |
//! | a file whose type is known | [`read`], [`write`](write()), [`write_shaped`] |
//! | a file whose type is not | [`peek`], [`read_any`] |
//! | a file larger than memory, or a stream | [`Reader`], [`AnyReader`], [`Writer`]: as many matrices at a time as one likes |
//! | one array of a `.npz` archive | [`Archive`] |
//! | pivots, outcomes, determinants | [`ArrayWriter`], [`IntegerReader`] |
//!
//! Files are not trusted: whatever stands in one, the worst that comes of it is an [`Error`] that names it, and no more
//! memory is taken than its length justifies. The header's Python literal is therefore read by a small parser of our own,
//! which neither recurses nor computes.

mod any;
mod archive;
mod array;
mod checksum;
mod elements;
mod front;
mod header;
mod input;
mod literal;
mod reader;
mod target;
mod writer;

use std::path::Path;

use batchla_core::{Batch, BatchRef, Error, Scalar};

pub use crate::any::{AnyBatch, AnyReader};
pub use crate::archive::Archive;
pub use crate::array::{ArrayWriter, ElementKind, IntegerReader};
pub use crate::header::Header;
pub use crate::reader::Reader;
pub use crate::target::Target;
pub use crate::writer::Writer;

/// Reads a whole file. Nothing is transposed: a file in C order gives row-major matrices, one in Fortran order a layout
/// with the strides that NumPy shows.
///
/// # Errors
/// [`ErrorKind::Argument`](batchla_core::ErrorKind::Argument) where the file holds another type than `T` (see [`read_any`]);
/// [`ErrorKind::Shape`](batchla_core::ErrorKind::Shape) where the array has fewer than two dimensions;
/// [`ErrorKind::Io`](batchla_core::ErrorKind::Io) where the file cannot be read or is not what it should be.
pub fn read<T: Scalar>(path: impl AsRef<Path>) -> Result<Batch<T>, Error> {
    Reader::open(path)?.read_to_end()
}

/// Reads a whole file as [`read`] does, of whatever type it is.
///
/// ```no_run
/// use batchla_npy::{AnyBatch, read_any};
/// match read_any("blocks.npy")? {
///     AnyBatch::F64(a) => println!("{}", a.layout()),
///     other => println!("{} numbers", other.scalar()),
/// }
/// # Ok::<(), batchla_core::Error>(())
/// ```
///
/// # Errors
/// As [`read`], but for the type.
pub fn read_any(path: impl AsRef<Path>) -> Result<AnyBatch, Error> {
    AnyReader::open(path)?.read_to_end()
}

/// Reads the header of a file, and holds the file's length against it.
///
/// # Errors
/// As [`read`], but for the type.
pub fn peek(path: impl AsRef<Path>) -> Result<Header, Error> {
    let reader = AnyReader::open(path)?;
    reader.check_matrices()?;
    Ok(reader.header().clone())
}

/// Writes a batch as an array of shape `(batch, n, m)`, in C order and little-endian.
///
/// The file is written aside, in the same folder, and takes its name when it is whole: there is never half a file.
///
/// # Errors
/// [`ErrorKind::Io`](batchla_core::ErrorKind::Io) where the file cannot be written.
pub fn write<'a, T: Scalar>(path: impl AsRef<Path>, batch: impl Into<BatchRef<'a, T>>) -> Result<(), Error> {
    let batch = batch.into();
    write_shaped(path, batch, &[batch.batch()])
}

/// Writes a batch as [`write`](write()) does, as an array of shape `(leading..., n, m)`: with the leading dimensions of the file that the batch
/// came from, or with none for a single matrix.
///
/// # Errors
/// As [`write`](write()); [`ErrorKind::Shape`](batchla_core::ErrorKind::Shape) where the leading dimensions do not multiply to the batch,
/// [`ErrorKind::Argument`](batchla_core::ErrorKind::Argument) where they are too many.
pub fn write_shaped<'a, T: Scalar>(
    path: impl AsRef<Path>,
    batch: impl Into<BatchRef<'a, T>>,
    leading: &[usize],
) -> Result<(), Error> {
    let batch = batch.into();
    let shape = [leading, &[batch.layout().rows(), batch.layout().cols()]].concat();
    let mut writer = Writer::create(path, &shape)?;
    writer.push(batch)?;
    writer.finish()
}
