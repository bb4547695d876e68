//! What a file of matrices holds: type, shape and order of its elements.

use std::fmt;

use batchla_core::{Error, ErrorKind, ScalarKind};

use crate::array::ElementKind;
use crate::front::{Front, Wanted, tuple};

/// What a file holds, as its header says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// The type of its elements.
    pub scalar: ScalarKind,
    /// The array's dimensions: leading ones, rows, columns.
    pub shape: Vec<usize>,
    /// Whether the first dimension runs fastest in the file, not the last.
    pub fortran_order: bool,
    /// Whether the bytes of each number are stored highest first.
    pub big_endian: bool,
    /// Whether the file holds vectors: then it has not the shape's last dimension, a 1.
    pub vectors: bool,
}

impl Header {
    /// The header of a file in C order, little-endian.
    pub(crate) fn new(scalar: ScalarKind, shape: &[usize]) -> Result<Self, String> {
        let front = Front::new(ElementKind::Scalar(scalar), shape)?;
        if shape.len() < 2 {
            return Err(format!("shape {} has {} dimensions", tuple(shape), shape.len()));
        }
        Ok(Self { scalar, shape: front.shape, fortran_order: false, big_endian: false, vectors: false })
    }

    /// What a front says, of numbers to compute with; matrices or not, [`Header::check_matrices`] tells.
    pub(crate) fn of(front: &Front, name: &str) -> Result<Self, Error> {
        let Front { kind, shape, fortran_order, big_endian } = front.clone();
        match kind {
            ElementKind::Scalar(scalar) => Ok(Self { scalar, shape, fortran_order, big_endian, vectors: false }),
            integers => Err(Wanted::Numbers.unfit(&integers.descr(big_endian), name)),
        }
    }

    pub(crate) fn check_matrices(&self, name: &str) -> Result<(), Error> {
        if self.shape.len() >= 2 {
            return Ok(());
        }
        let what = format!("{name} holds an array of shape {}, not matrices", tuple(&self.shape));
        Err(Error::new(ErrorKind::Shape, "read", what)
            .advise("give it at least two dimensions, (..., n, m): a.reshape(-1, n, n)"))
    }

    /// Matrices in the batch: the product of the leading dimensions.
    pub fn batch(&self) -> usize {
        self.leading().iter().product()
    }

    /// The dimensions before the last two; none for a single matrix.
    pub fn leading(&self) -> &[usize] {
        &self.shape[..self.shape.len().saturating_sub(2)]
    }

    /// Rows of a matrix.
    pub fn rows(&self) -> usize {
        self.shape.iter().rev().nth(1).copied().unwrap_or(1)
    }

    /// Columns of a matrix.
    pub fn cols(&self) -> usize {
        self.shape.last().copied().unwrap_or(1)
    }

    /// The shape of the array in the file.
    pub(crate) fn file_shape(&self) -> &[usize] {
        &self.shape[..self.shape.len() - usize::from(self.vectors)]
    }

    /// Elements of one matrix.
    pub(crate) fn area(&self) -> usize {
        self.rows() * self.cols()
    }

    /// Bytes of one matrix.
    pub fn matrix_bytes(&self) -> usize {
        self.area() * self.scalar.bytes()
    }

    /// Bytes of all elements.
    pub fn data_bytes(&self) -> u64 {
        (self.batch() * self.matrix_bytes()) as u64
    }
}

impl fmt::Display for Header {
    /// One line: `f64, shape (46, 21, 21), C order`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scalar, fortran_order, big_endian, .. } = *self;
        let shape = self.file_shape().to_vec();
        Front { kind: ElementKind::Scalar(scalar), shape, fortran_order, big_endian }.fmt(f)
    }
}
