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
use crate::checksum::{Checked, Checksum};
use crate::front::Wanted;
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
    /// After the last matrix the bytes are held against the checksum that the archive keeps of them. Only a stored array in Fortran order that is
    /// read in parts is not: its bytes then come in another order.
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
        let checksum = Checksum::new(entry.crc);
        match entry.method {
            CompressionMethod::Stored => {
                // A directory may promise what the file does not hold.
                let there = length.unwrap_or(0).saturating_sub(entry.start);
                let (length, checksum) = (entry.packed.min(there), Some(checksum));
                AnyReader::over(Input::part(file, entry.start, length, full, Wanted::Numbers, checksum)?)
            }
            CompressionMethod::DEFLATE => {
                let inner = DeflateDecoder::new(file.take(entry.packed));
                AnyReader::over(Input::stream(Checked { inner, left: entry.length, checksum }, full)?)
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

impl fmt::Debug for Archive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Archive").field("path", &self.path).finish_non_exhaustive()
    }
}
