//! Reading, as many matrices at a time as the caller likes.

use std::fmt;
use std::io::Read;
use std::marker::PhantomData;
use std::path::Path;

use batchla_core::{Batch, BatchLayout, Error, ErrorKind, Scalar, Strides};

use crate::any::AnyReader;
use crate::header::Header;
use crate::input::Input;

/// Reads a batch piece by piece, in the order of its matrices.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("a.npy");
/// # batchla_npy::write(&path, &batchla_core::Batch::<f64>::from_fn(10, 2, 2, |b, _, _| b as f64)?)?;
/// let mut reader = batchla_npy::Reader::<f64>::open(&path)?;
/// let mut seen = 0;
/// while let Some(part) = reader.next_batch(4)? {
///     assert_eq!(part.get(0, 1, 1), Some(seen as f64));
///     seen += part.batch();
/// }
/// assert_eq!(seen, reader.header().batch());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A file in C order is read from front to back. In one in Fortran order a matrix lies scattered over the whole file: it is read
/// by as many strides as a matrix has elements, so take large pieces.
pub struct Reader<T: Scalar> {
    input: Input,
    header: Header,
    /// Matrices read so far.
    done: usize,
    scalar: PhantomData<T>,
}

impl<T: Scalar> Reader<T> {
    /// Opens a file: reads its header and holds type and length against it. A pipe or device is read as [`Reader::new`] reads.
    ///
    /// # Errors
    /// As [`read`](crate::read).
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        AnyReader::open(path)?.typed()
    }

    /// Reads from any stream; `name` is what errors call it. Memory grows with what comes, not with what the header promises.
    ///
    /// # Errors
    /// As [`read`](crate::read).
    pub fn new(stream: impl Read + Send + 'static, name: impl Into<String>) -> Result<Self, Error> {
        AnyReader::new(stream, name)?.typed()
    }

    /// From an input whose header was read.
    pub(crate) fn over(input: Input, header: Header) -> Result<Self, Error> {
        if header.scalar != T::KIND {
            let (there, name) = (header.scalar, &input.name);
            let what = format!("{name} holds {there} numbers, but {} were asked for", T::KIND);
            return Err(Error::new(ErrorKind::Argument, "read", what)
                .advise(format!("read it as {there}, or convert it before with NumPy's astype")));
        }
        Ok(Self { input, header, done: 0, scalar: PhantomData })
    }

    /// What the file holds.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Matrices not read yet.
    pub fn remaining(&self) -> usize {
        self.header().batch() - self.done
    }

    /// The next matrices, `count` of them or as many as remain; `None` after the last.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where the file cannot be read or ends early; [`ErrorKind::Argument`] where `count` is zero;
    /// [`ErrorKind::OutOfMemory`]; [`ErrorKind::Unsupported`] for a part of a Fortran-ordered batch from a stream.
    pub fn next_batch(&mut self, count: usize) -> Result<Option<Batch<T>>, Error> {
        self.next_batch_in(count, Vec::new())
    }

    /// The next matrices as [`Reader::next_batch`] gives them, in memory that an earlier batch has left.
    ///
    /// # Errors
    /// As [`Reader::next_batch`].
    pub fn next_batch_in(&mut self, count: usize, memory: Vec<T>) -> Result<Option<Batch<T>>, Error> {
        if count == 0 {
            let what = format!("0 matrices were asked of {}", self.input.name);
            return Err(Error::new(ErrorKind::Argument, "read", what).advise("ask for at least one"));
        }
        if self.remaining() == 0 { Ok(None) } else { self.take(count.min(self.remaining()), memory).map(Some) }
    }

    /// All matrices that remain.
    ///
    /// # Errors
    /// As [`Reader::next_batch`].
    pub fn read_to_end(mut self) -> Result<Batch<T>, Error> {
        self.take(self.remaining(), Vec::new())
    }

    fn take(&mut self, count: usize, mut elements: Vec<T>) -> Result<Batch<T>, Error> {
        let (rows, cols, area) = (self.header().rows(), self.header().cols(), self.header().area());
        let (first, total) = (self.done, self.header().batch());
        elements.clear();
        let layout = if !self.header().fortran_order {
            self.input.append(first * area, count * area, &mut elements)?;
            BatchLayout::row_major(count, rows, cols)?
        } else if total == 1 {
            self.input.append(0, area, &mut elements)?;
            BatchLayout::column_major(1, rows, cols)?
        } else {
            // Element (i, j) of all matrices makes one plane of the file, and one of the result.
            if count == 0 || (count == total && self.header().leading().len() == 1) {
                self.input.append(0, count * area, &mut elements)?;
            } else {
                self.append_planes(first, count, &mut elements)?;
            }
            let (row, col) = (count.max(1), (count * rows).max(1));
            BatchLayout::new(count, rows, cols, Strides { lanes: 1, group: 1, row, col })?
        };
        self.done += count;
        if self.remaining() == 0 {
            self.input.expect_end()?;
        }
        Batch::from_vec(elements, layout)
    }

    /// Matrices `first..first + count` (at least one) of every plane of a file in Fortran order, plane after plane.
    fn append_planes(&mut self, first: usize, count: usize, elements: &mut Vec<T>) -> Result<(), Error> {
        if count < self.header().batch() && self.input.is_stream() {
            let what = format!("{} is a stream, and {}: it cannot be read in parts", self.input.name, self.header);
            return Err(Error::new(ErrorKind::Unsupported, "read", what)
                .advise("read all of it at once, or save it in C order: numpy.ascontiguousarray(a)"));
        }
        let (batch, leading) = (self.header().batch(), self.header().leading().to_vec());
        let places = (first..first + count).map(|b| fortran_place(b, &leading));
        let (low, high) = if count == batch {
            (0, batch - 1)
        } else {
            places.clone().fold((batch - 1, 0), |(low, high), place| (low.min(place), high.max(place)))
        };
        let (mut run, mut order) = (Vec::<T>::new(), Vec::new());
        for plane in 0..self.header().area() {
            run.clear();
            self.input.append(plane * batch + low, high - low + 1, &mut run)?;
            if order.is_empty() {
                // Not before the first run was there: a stream may promise more than memory holds.
                order = places.clone().map(|place| place - low).collect();
            }
            elements.try_reserve(count).map_err(|e| self.input.fault("does not fit into memory").caused_by(e))?;
            elements.extend(order.iter().map(|&place| run[place]));
        }
        Ok(())
    }
}

/// Where matrix `b`, counted in C order through `leading`, stands when they are counted in Fortran order.
fn fortran_place(mut b: usize, leading: &[usize]) -> usize {
    let mut place = 0;
    let mut stride: usize = leading.iter().product();
    for &extent in leading.iter().rev() {
        stride /= extent;
        place += b % extent * stride;
        b /= extent;
    }
    place
}

impl<T: Scalar> fmt::Debug for Reader<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("name", &self.input.name).field("done", &self.done).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matrices_of_a_fortran_ordered_file_are_counted_in_c_order() {
        let places: Vec<usize> = (0..6).map(|b| fortran_place(b, &[2, 3])).collect();
        assert_eq!(places, [0, 2, 4, 1, 3, 5]);
        assert_eq!((0..4).map(|b| fortran_place(b, &[4])).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }
}
