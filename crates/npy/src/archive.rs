//! `.npz` archives: `.npy` files in a zip, as `numpy.savez` and `numpy.savez_compressed` write them.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use batchla_core::{Error, ErrorKind};
use flate2::read::DeflateDecoder;
use zip::result::ZipResult;
use zip::{CompressionMethod, ZipArchive};

use crate::any::AnyReader;
use crate::input::{Input, open};

/// An archive of arrays.
///
/// ```no_run
/// let archive = batchla_npy::Archive::open("blocks.npz")?;
/// for name in archive.names() {
///     println!("{name}: {}", archive.array(&name)?.header());
/// }
/// # Ok::<(), batchla_core::Error>(())
/// ```
pub struct Archive {
    path: PathBuf,
    entries: Vec<Entry>,
}

/// An array of the archive, and where its bytes lie.
struct Entry {
    name: String,
    start: u64,
    packed: u64,
    length: u64,
    crc: u32,
    method: CompressionMethod,
}

impl Archive {
    /// Opens an archive: reads its directory.
    ///
    /// # Errors
    /// [`ErrorKind::Io`] where it cannot be read, or is none.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref().to_owned();
        let (file, _) = open(&path, "an archive")?;
        let entries = ZipArchive::new(file).and_then(|mut zip| (0..zip.len()).map(|k| entry(&mut zip, k)).collect());
        let entries = entries.map_err(|e| {
            Error::new(ErrorKind::Io, "read", format!("{} is not a whole .npz archive", path.display()))
                .advise("save the arrays with numpy.savez")
                .caused_by(e)
        })?;
        Ok(Self { path, entries })
    }

    /// The names of its arrays, as NumPy gives them.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    /// One of its arrays. One that was stored as it is can be read anywhere, a compressed one from front to back.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] where there is none of that name; [`ErrorKind::Unsupported`] for a compression that NumPy does not use;
    /// as of [`AnyReader::open`].
    pub fn array(&self, name: &str) -> Result<AnyReader, Error> {
        let full = format!("{}:{name}", self.path.display());
        let fault = |kind, what: &str| Error::new(kind, "read", format!("{full} {what}"));
        let broken = |e: io::Error| fault(ErrorKind::Io, "cannot be read").caused_by(e);
        let Some(entry) = self.entries.iter().find(|entry| entry.name == name) else {
            let names = self.names().collect::<Vec<_>>().join(", ");
            return Err(fault(ErrorKind::Argument, "is not there").advise(format!("the arrays are: {names}")));
        };
        let (mut file, length) = open(&self.path, "an archive")?;
        file.seek(SeekFrom::Start(entry.start)).map_err(broken)?;
        match entry.method {
            CompressionMethod::Stored => {
                // A directory may promise what the file does not hold.
                let there = length.unwrap_or(0).saturating_sub(entry.start);
                AnyReader::over(Input::part(file, entry.start, entry.packed.min(there), full)?)
            }
            CompressionMethod::DEFLATE => {
                let (inner, sum) = (DeflateDecoder::new(file.take(entry.packed)), crc32fast::Hasher::new());
                AnyReader::over(Input::stream(Checked { inner, left: entry.length, sum, crc: entry.crc }, full)?)
            }
            other => Err(fault(ErrorKind::Unsupported, &format!("is compressed by {other}"))
                .advise("save it with numpy.savez or numpy.savez_compressed")),
        }
    }
}

fn entry(zip: &mut ZipArchive<File>, index: usize) -> ZipResult<Entry> {
    let file = zip.by_index_raw(index)?;
    let name = file.name()?;
    let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
    let start = file.data_start().unwrap_or(u64::MAX);
    let (packed, length, crc, method) = (file.compressed_size(), file.size(), file.crc32(), file.compression());
    Ok(Entry { name, start, packed, length, crc, method })
}

/// Bytes whose length and checksum are known.
struct Checked<R> {
    inner: R,
    left: u64,
    sum: crc32fast::Hasher,
    crc: u32,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.inner.read(buffer)?;
        self.sum.update(&buffer[..got]);
        let damaged =
            || io::Error::new(io::ErrorKind::InvalidData, "its checksum does not agree: the archive is damaged");
        self.left = self.left.checked_sub(got as u64).ok_or_else(damaged)?;
        let ended = got == 0 && !buffer.is_empty();
        if ended && (self.left > 0 || self.sum.clone().finalize() != self.crc) {
            return Err(damaged());
        }
        Ok(got)
    }
}

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive").field("path", &self.path).finish_non_exhaustive()
    }
}
