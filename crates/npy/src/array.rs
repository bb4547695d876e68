//! Arrays that are no matrices: pivots, outcomes, determinants.

use std::fmt;
use std::io::Write;
use std::path::Path;

use batchla_core::{Error, ErrorKind, Scalar, ScalarKind};

use crate::elements;
use crate::front::{Front, Wanted, tuple};
use crate::input::Input;
use crate::target::Target;

/// What the elements of an array are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ElementKind {
    /// Numbers to compute with.
    Scalar(ScalarKind),
    /// NumPy's `int32`: pivots, and LAPACK's `info`.
    Int32,
    /// NumPy's `int64`: what others save pivots as.
    Int64,
}

impl ElementKind {
    pub(crate) const ALL: [Self; 6] = [
        Self::Scalar(ScalarKind::F32),
        Self::Scalar(ScalarKind::F64),
        Self::Scalar(ScalarKind::C32),
        Self::Scalar(ScalarKind::C64),
        Self::Int32,
        Self::Int64,
    ];

    /// Bytes of one.
    pub fn bytes(self) -> usize {
        match self {
            Self::Scalar(kind) => kind.bytes(),
            Self::Int32 => 4,
            Self::Int64 => 8,
        }
    }

    /// In one word.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Scalar(kind) => kind.name(),
            Self::Int32 => "int32",
            Self::Int64 => "int64",
        }
    }

    /// As NumPy calls it.
    pub(crate) fn letters(self) -> &'static str {
        match self {
            Self::Scalar(ScalarKind::F32) => "f4",
            Self::Scalar(ScalarKind::F64) => "f8",
            Self::Scalar(ScalarKind::C32) => "c8",
            Self::Scalar(ScalarKind::C64) => "c16",
            Self::Int32 => "i4",
            Self::Int64 => "i8",
        }
    }

    /// As NumPy writes it.
    pub(crate) fn descr(self, big_endian: bool) -> String {
        format!("{}{}", if big_endian { '>' } else { '<' }, self.letters())
    }
}

/// Writes an array of any shape piece by piece, in C order and little-endian.
///
/// ```
/// use batchla_npy::{ArrayWriter, ElementKind, IntegerReader, Target};
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("info.npy");
/// let mut writer = ArrayWriter::new(Target::file(&path)?, ElementKind::Int32, &[2, 2])?;
/// writer.push_int32(&[0, 0, 3])?;
/// writer.push_int32(&[-1])?;
/// writer.finish()?;
/// assert_eq!(IntegerReader::open(&path)?.next(9)?, [0, 0, 3, -1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ArrayWriter {
    target: Target,
    kind: ElementKind,
    shape: Vec<usize>,
    done: usize,
    total: usize,
}

impl ArrayWriter {
    /// Begins an array of `shape`.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for a shape that no `.npy` file can have; [`ErrorKind::Io`].
    pub fn new(target: Target, kind: ElementKind, shape: &[usize]) -> Result<Self, Error> {
        let front = Front::new(kind, shape).map_err(|why| {
            Error::new(ErrorKind::Argument, "write", format!("{}: {why}", target.name()))
                .advise("pass a shape of at most 64 dimensions that fits the address space")
        })?;
        let mut writer = Self { target, kind, shape: shape.to_vec(), done: 0, total: shape.iter().product() };
        let written = writer.target.write_all(&front.to_bytes());
        writer.target.check(written)?;
        Ok(writer)
    }

    /// Adds integers.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] where the array has others or no room for so many; [`ErrorKind::Io`].
    pub fn push_int32(&mut self, integers: &[i32]) -> Result<(), Error> {
        self.admit(ElementKind::Int32, integers.len())?;
        let bytes: Vec<u8> = integers.iter().flat_map(|integer| integer.to_le_bytes()).collect();
        let written = self.target.write_all(&bytes);
        self.target.check(written)
    }

    /// Adds numbers.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] where the array has others or no room for so many; [`ErrorKind::Io`].
    pub fn push<T: Scalar>(&mut self, numbers: &[T]) -> Result<(), Error> {
        self.admit(ElementKind::Scalar(T::KIND), numbers.len())?;
        let written = elements::write(&mut self.target, numbers);
        self.target.check(written)
    }

    fn admit(&mut self, kind: ElementKind, count: usize) -> Result<(), Error> {
        if kind != self.kind || count > self.total - self.done {
            let what = format!("{count} elements {kind:?} do not fit into {}, {self:?}", self.target.name());
            return Err(Error::new(ErrorKind::Argument, "write", what).advise("begin the array as large as it will be"));
        }
        self.done += count;
        Ok(())
    }

    /// Hands all that was pushed to the system, which may refuse it.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn flush(&mut self) -> Result<(), Error> {
        let flushed = self.target.flush();
        self.target.check(flushed)
    }

    /// Where it is written.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Ends the array; a file takes its name.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`] where elements are missing; [`ErrorKind::Io`]. In both cases no file is left behind.
    pub fn finish(self) -> Result<(), Error> {
        if self.done < self.total {
            let what = format!("{} is not whole: {self:?}", self.target.name());
            return Err(Error::new(ErrorKind::Shape, "write", what).advise("push all elements before finishing"));
        }
        self.target.finish()
    }
}

impl fmt::Debug for ArrayWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} elements written, shape {}", self.done, self.total, tuple(&self.shape))
    }
}

/// Reads an array of integers piece by piece: pivots, LAPACK's `info`.
pub struct IntegerReader {
    input: Input,
    done: usize,
}

impl IntegerReader {
    /// Opens a file of `int32` or `int64` in C order.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where it cannot be read, or is not what it should be.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let input = Input::open(path.as_ref(), Wanted::Integers)?;
        let front = &input.front;
        if matches!(front.kind, ElementKind::Scalar(_)) {
            return Err(Wanted::Integers.unfit(&front.kind.descr(front.big_endian), &input.name));
        }
        if front.fortran_order && front.shape.len() > 1 {
            return Err(input.fault("is in Fortran order").advise("save it in C order: numpy.ascontiguousarray(a)"));
        }
        Ok(Self { input, done: 0 })
    }

    /// The array's dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.input.front.shape
    }

    /// The next integers: `count`, or as many as remain.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where the file cannot be read or ends early.
    pub fn next(&mut self, count: usize) -> Result<Vec<i64>, Error> {
        let front = &self.input.front;
        let (kind, big_endian) = (front.kind, front.big_endian);
        let count = count.min(front.shape.iter().product::<usize>() - self.done);
        let mut bytes = self.input.bytes(count * kind.bytes())?;
        self.done += count;
        let turned = |bytes: &mut [u8]| {
            if big_endian {
                bytes.reverse()
            }
        };
        Ok(match kind {
            ElementKind::Int32 => {
                let whole = bytes.as_chunks_mut::<4>().0.iter_mut();
                whole.map(|bytes| (turned(bytes), i64::from(i32::from_le_bytes(*bytes))).1).collect()
            }
            _ => {
                let whole = bytes.as_chunks_mut::<8>().0.iter_mut();
                whole.map(|bytes| (turned(bytes), i64::from_le_bytes(*bytes)).1).collect()
            }
        })
    }
}

impl fmt::Debug for IntegerReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntegerReader").field("name", &self.input.name).finish_non_exhaustive()
    }
}
