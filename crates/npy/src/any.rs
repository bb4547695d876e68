//! Batches and files whose number type is known only when the program runs.

use std::fmt;
use std::io::Read;
use std::path::Path;

use batchla_core::{Batch, BatchLayout, Complex, Error, Scalar, ScalarKind};

use crate::front::Wanted;
use crate::header::Header;
use crate::input::Input;
use crate::reader::Reader;

/// A batch of one of the four number types.
#[derive(Clone, Debug)]
pub enum AnyBatch {
    /// NumPy's `float32`.
    F32(Batch<f32>),
    /// NumPy's `float64`.
    F64(Batch<f64>),
    /// NumPy's `complex64`.
    C32(Batch<Complex<f32>>),
    /// NumPy's `complex128`.
    C64(Batch<Complex<f64>>),
}

impl AnyBatch {
    /// The type of its numbers.
    pub fn scalar(&self) -> ScalarKind {
        match self {
            Self::F32(_) => ScalarKind::F32,
            Self::F64(_) => ScalarKind::F64,
            Self::C32(_) => ScalarKind::C32,
            Self::C64(_) => ScalarKind::C64,
        }
    }

    /// Where each element lies.
    pub fn layout(&self) -> &BatchLayout {
        match self {
            Self::F32(batch) => batch.layout(),
            Self::F64(batch) => batch.layout(),
            Self::C32(batch) => batch.layout(),
            Self::C64(batch) => batch.layout(),
        }
    }
}

macro_rules! from_batch {
    ($($scalar:ty => $kind:ident),*) => {$(
        impl From<Batch<$scalar>> for AnyBatch {
            fn from(batch: Batch<$scalar>) -> Self {
                Self::$kind(batch)
            }
        }
    )*};
}

from_batch!(f32 => F32, f64 => F64, Complex<f32> => C32, Complex<f64> => C64);

/// A file or stream whose header was read, and whose numbers are yet to be.
///
/// ```
/// use batchla_core::{Error, Scalar, ScalarKind};
/// use batchla_npy::{AnyReader, Reader};
///
/// fn sum<T: Scalar>(reader: Reader<T>) -> Result<String, Error> {
///     Ok(reader.read_to_end()?.as_slice().iter().copied().sum::<T>().to_string())
/// }
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.npy");
/// # batchla_npy::write(&path, &batchla_core::Batch::<f64>::from_fn(10, 2, 2, |_, _, _| 0.5)?)?;
/// let reader = AnyReader::open(&path)?;
/// let sum = match reader.header().scalar {
///     ScalarKind::F64 => sum::<f64>(reader.typed()?)?,
///     other => format!("{other} numbers"),
/// };
/// assert_eq!(sum, "20");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AnyReader {
    input: Input,
    header: Header,
}

impl AnyReader {
    /// Opens a file: reads its header and holds its length against it. A pipe or device is read as [`AnyReader::new`] reads.
    ///
    /// # Errors
    /// As [`read`](crate::read), but for the type and the dimensions.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::over(Input::open(path.as_ref(), Wanted::Numbers)?)
    }

    /// Reads from any stream; `name` is what errors call it. Memory grows with what comes, not with what the header promises.
    ///
    /// # Errors
    /// As [`read`](crate::read), but for the type and the dimensions.
    pub fn new(stream: impl Read + Send + 'static, name: impl Into<String>) -> Result<Self, Error> {
        Self::over(Input::stream(stream, name.into())?)
    }

    pub(crate) fn over(input: Input) -> Result<Self, Error> {
        Ok(Self { header: Header::of(&input.front, &input.name)?, input })
    }

    /// What the file holds.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What errors call it.
    pub fn name(&self) -> &str {
        &self.input.name
    }

    /// Makes sure that the array holds matrices.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](batchla_core::ErrorKind::Shape) where it has fewer than two dimensions.
    pub fn check_matrices(&self) -> Result<(), Error> {
        self.header.check_matrices(&self.input.name)
    }

    /// The same numbers as vectors: an array of shape `(..., n)` becomes one of `n` x 1 matrices.
    #[must_use]
    pub fn vectors(mut self) -> Self {
        self.header.shape.push(1);
        self.header.vectors = true;
        self
    }

    /// The reader of its numbers.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](batchla_core::ErrorKind::Argument) where they are of another type;
    /// [`ErrorKind::Shape`](batchla_core::ErrorKind::Shape) where the array has fewer than two dimensions.
    pub fn typed<T: Scalar>(self) -> Result<Reader<T>, Error> {
        self.check_matrices()?;
        Reader::over(self.input, self.header)
    }

    /// All of its matrices.
    ///
    /// # Errors
    /// As [`read`](crate::read), but for the type.
    pub fn read_to_end(self) -> Result<AnyBatch, Error> {
        Ok(match self.header().scalar {
            ScalarKind::F32 => self.typed::<f32>()?.read_to_end()?.into(),
            ScalarKind::F64 => self.typed::<f64>()?.read_to_end()?.into(),
            ScalarKind::C32 => self.typed::<Complex<f32>>()?.read_to_end()?.into(),
            ScalarKind::C64 => self.typed::<Complex<f64>>()?.read_to_end()?.into(),
        })
    }
}

impl fmt::Debug for AnyReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyReader")
            .field("name", &self.input.name)
            .field("header", self.header())
            .finish_non_exhaustive()
    }
}
