//! What a reader reads from: a part of a file, whose length is known and which can be read anywhere, or a stream.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use batchla_core::{Error, ErrorKind, Scalar};

use crate::checksum::{Checksum, Summed};
use crate::elements;
use crate::front::{Front, Wanted};

/// The elements behind a front.
pub(crate) struct Input {
    kind: Kind,
    /// What errors call it.
    pub(crate) name: String,
    pub(crate) front: Front,
}

enum Kind {
    File {
        file: File,
        start: u64,
        at: u64,
        /// Where there is one, and all was read from front to back so far.
        checksum: Option<Checksum>,
    },
    Stream(Box<dyn Read + Send>),
}

impl Input {
    /// Reads the front of a file, and holds the file's length against it. A pipe or device is a stream.
    pub(crate) fn open(path: &Path, wanted: Wanted) -> Result<Self, Error> {
        let name = path.display().to_string();
        let (file, length) = open(path, "a .npy file")?;
        match length {
            Some(length) => Self::part(file, 0, length, name, wanted, None),
            None => Self::over(file, name, wanted),
        }
    }

    /// Reads the front of the part of a file that begins at `first`, where the file stands, and holds the part's length against it.
    pub(crate) fn part(
        mut file: File,
        first: u64,
        length: u64,
        name: String,
        wanted: Wanted,
        mut checksum: Option<Checksum>,
    ) -> Result<Self, Error> {
        let mut begin = Summed { inner: &mut file, checksum: checksum.as_mut() }.take(length);
        let (front, skipped) = Front::read(&mut begin, &name, wanted)?;
        let (promised, there) = (front.data_bytes(), length.saturating_sub(skipped));
        let start = first + skipped;
        let input = Self { kind: Kind::File { file, start, at: start, checksum }, name, front };
        if there < promised {
            return Err(input.cut(&format!("it takes {promised} bytes behind the header, {there} are there")));
        }
        if there > promised { Err(input.trailing()) } else { Ok(input) }
    }

    /// Reads the front of a stream of numbers.
    pub(crate) fn stream(stream: impl Read + Send + 'static, name: String) -> Result<Self, Error> {
        Self::over(stream, name, Wanted::Numbers)
    }

    fn over(mut stream: impl Read + Send + 'static, name: String, wanted: Wanted) -> Result<Self, Error> {
        let (front, _) = Front::read(&mut stream, &name, wanted)?;
        Ok(Self { kind: Kind::Stream(Box::new(stream)), name, front })
    }

    pub(crate) fn is_stream(&self) -> bool {
        matches!(self.kind, Kind::Stream(_))
    }

    /// Appends elements `first..first + count`, as they lie there; a stream stands at the first one.
    pub(crate) fn append<T: Scalar>(&mut self, first: usize, count: usize, to: &mut Vec<T>) -> Result<(), Error> {
        let (size, big_endian) = (T::KIND.bytes(), self.front.big_endian);
        let read = match &mut self.kind {
            Kind::Stream(stream) => elements::read(stream, big_endian, count, to),
            Kind::File { file, start, at, checksum } => {
                // The file's length was held against the header: the memory is justified.
                to.try_reserve_exact(count).map_err(|_| {
                    let what =
                        format!("{} bytes of memory for a part of {} are not to be had", count * size, self.name);
                    Error::new(ErrorKind::OutOfMemory, "read", what).advise("read fewer matrices at a time")
                })?;
                let place = *start + (first * size) as u64;
                let mut moved = Ok(place);
                if *at != place {
                    moved = file.seek(SeekFrom::Start(place));
                    *checksum = None;
                }
                *at = place + (count * size) as u64;
                let mut summed = Summed { inner: file, checksum: checksum.as_mut() };
                moved.and_then(|_| elements::read(&mut summed, big_endian, count, to))
            }
        };
        match read {
            Ok(got) if got == count => Ok(()),
            Ok(got) => Err(self.cut(&format!("of {count} elements wanted, {got} were there"))),
            Err(e) => Err(self.fault("cannot be read").caused_by(e)),
        }
    }

    /// The next bytes. Memory grows with what comes, not with what was promised.
    pub(crate) fn bytes(&mut self, wanted: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let got = match &mut self.kind {
            Kind::File { file, .. } => file.take(wanted as u64).read_to_end(&mut bytes),
            Kind::Stream(stream) => stream.take(wanted as u64).read_to_end(&mut bytes),
        };
        match got {
            Ok(got) if got == wanted => Ok(bytes),
            Ok(got) => Err(self.cut(&format!("of {wanted} bytes wanted, {got} were there"))),
            Err(e) => Err(self.fault("cannot be read").caused_by(e)),
        }
    }

    /// Makes sure that nothing follows the last element, and that none was damaged.
    pub(crate) fn expect_end(&mut self) -> Result<(), Error> {
        let more = match &mut self.kind {
            // A file's length is known to fit.
            Kind::File { checksum, .. } => checksum.as_ref().map_or(Ok(0), |checksum| checksum.check().map(|()| 0)),
            Kind::Stream(stream) => stream.take(1).read_to_end(&mut Vec::new()),
        };
        match more {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.trailing()),
            Err(e) => Err(self.fault("cannot be read").caused_by(e)),
        }
    }

    pub(crate) fn fault(&self, what: &str) -> Error {
        Error::new(ErrorKind::Io, "read", format!("{} {what}", self.name))
    }

    fn cut(&self, why: &str) -> Error {
        self.fault(&format!("ends early: {why} ({})", self.front)).advise("copy or save it again")
    }

    fn trailing(&self) -> Error {
        self.fault(&format!("goes on behind the array that it promises ({})", self.front))
            .advise("save one array a file, with numpy.save")
    }
}

/// A file to read, and its length unless it is a pipe or device.
pub(crate) fn open(path: &Path, kind: &str) -> Result<(File, Option<u64>), Error> {
    let fault = |what: &str| Error::new(ErrorKind::Io, "read", format!("{} {what}", path.display()));
    let unreadable = |e: io::Error| fault("cannot be opened").advise("check its name and permissions").caused_by(e);
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(fault("is a directory").advise(format!("name {kind} in it")));
    }
    Ok((file, metadata.is_file().then_some(metadata.len())))
}
