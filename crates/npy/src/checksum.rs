//! Checksums, as archives keep them of their arrays.

use std::io::{self, Read};

/// The checksum of the bytes so far, and what it is at their end if none is damaged.
pub(crate) struct Checksum {
    so_far: crc32fast::Hasher,
    whole: u32,
}

impl Checksum {
    pub(crate) fn new(whole: u32) -> Self {
        Self { so_far: crc32fast::Hasher::new(), whole }
    }

    /// Holds all bytes against it.
    pub(crate) fn check(&self) -> io::Result<()> {
        if self.so_far.clone().finalize() == self.whole { Ok(()) } else { Err(damaged()) }
    }
}

/// Bytes that go into a checksum as they are read, where there is one.
pub(crate) struct Summed<'a, R> {
    pub(crate) inner: &'a mut R,
    pub(crate) checksum: Option<&'a mut Checksum>,
}

impl<R: Read> Read for Summed<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buffer)?;
        if let Some(checksum) = &mut self.checksum {
            checksum.so_far.update(&buffer[..got]);
        }
        Ok(got)
    }
}

/// Bytes whose number and checksum are known.
pub(crate) struct Checked<R> {
    pub(crate) inner: R,
    pub(crate) left: u64,
    pub(crate) checksum: Checksum,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = Summed { inner: &mut self.inner, checksum: Some(&mut self.checksum) }.read(buffer)?;
        self.left = self.left.checked_sub(got as u64).ok_or_else(damaged)?;
        if got == 0 && !buffer.is_empty() {
            if self.left > 0 {
                return Err(damaged());
            }
            self.checksum.check()?;
        }
        Ok(got)
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "its checksum does not agree: the archive is damaged")
}
