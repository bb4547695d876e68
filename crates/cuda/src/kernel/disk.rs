//! Compiled kernels on disk, in a folder that only its user can write, up to a bound. Never an error: what cannot be kept is compiled again.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::source::Digest;
use crate::environment::Environment;

const MAGIC: &[u8; 16] = b"batchla kernel 2";
/// Magic, lengths of what follows, digest of it: a line that says what the kernel is, and the kernel.
const HEADER: usize = 16 + 8 + 8 + 32;
/// What was begun aside and is older was left by a process that ended.
const FORGOTTEN: Duration = Duration::from_secs(3600);

/// A folder of compiled kernels, or none.
#[derive(Clone, Debug)]
pub struct DiskCache {
    folder: Option<PathBuf>,
    most_bytes: u64,
}

impl Default for DiskCache {
    fn default() -> Self {
        Self { folder: None, most_bytes: Environment::CACHE_BYTES }
    }
}

/// A kernel on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DiskEntry {
    /// Its file.
    pub path: PathBuf,
    /// Bytes of it.
    pub bytes: u64,
    /// When it was last loaded, or else written.
    pub used: SystemTime,
    /// What it is: symbol, source and constants, architecture, compiler. None where the file is damaged or of another version.
    pub about: Option<String>,
}

impl DiskCache {
    /// Keeps nothing.
    pub fn off() -> Self {
        Self::default()
    }

    /// Keeps kernels where the environment says.
    pub fn of(environment: &Environment) -> Self {
        let cache = environment.cache.as_ref().map_or_else(Self::off, Self::at);
        cache.at_most(environment.cache_bytes)
    }

    /// Keeps kernels in `folder`, which is made where missing. Keeps nothing, and says so in the log, where the folder cannot be
    /// written, or could be by others: what lies in it is run on the GPU.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        match make(&folder).and_then(|()| private(&folder)) {
            Ok(()) => Self { folder: Some(folder), ..Self::default() },
            Err(why) => {
                log::warn!("compiled kernels are not kept on disk: {}: {why}", folder.display());
                Self::off()
            }
        }
    }

    /// Keeps at most so many bytes: when a kernel is stored, those that were used least recently go. The one stored stays, whatever its size.
    #[must_use]
    pub fn at_most(self, bytes: u64) -> Self {
        Self { most_bytes: bytes, ..self }
    }

    /// Where kernels are kept; none if nowhere.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// The most bytes that are kept.
    pub fn most_bytes(&self) -> u64 {
        self.most_bytes
    }

    /// A kept kernel. One that was damaged is removed, and not given.
    pub fn load(&self, name: &Digest) -> Option<Vec<u8>> {
        let path = self.path(name)?;
        let entry = fs::read(&path).ok()?;
        let payload = verify(&entry).map(|(_, payload)| payload);
        if payload.is_none() {
            log::warn!("a compiled kernel on disk is damaged and will be made again: {}", path.display());
            self.remove(name);
        } else {
            // Used last: others go before it. Where this cannot be noted, it is as old as it was.
            let _ = File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        }
        payload.map(<[u8]>::to_vec)
    }

    /// Keeps a kernel, with a line that says what it is. Written aside and renamed, so that nobody sees half of it.
    pub fn store(&self, name: &Digest, about: &str, payload: &[u8]) {
        let (Some(path), Some(folder)) = (self.path(name), &self.folder) else { return };
        let write = || -> io::Result<()> {
            let mut aside = tempfile::NamedTempFile::new_in(folder)?;
            aside.write_all(MAGIC)?;
            aside.write_all(&(about.len() as u64).to_le_bytes())?;
            aside.write_all(&(payload.len() as u64).to_le_bytes())?;
            aside.write_all(Digest::of(&[about.as_bytes(), payload].concat()).as_bytes())?;
            aside.write_all(about.as_bytes())?;
            aside.write_all(payload)?;
            aside.flush()?;
            aside.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        match write() {
            Ok(()) => self.evict(&path),
            Err(why) => log::warn!("a compiled kernel could not be kept on disk: {}: {why}", path.display()),
        }
    }

    /// Forgets a kernel.
    pub fn remove(&self, name: &Digest) {
        if let Some(path) = self.path(name)
            && let Err(why) = fs::remove_file(&path)
            && why.kind() != io::ErrorKind::NotFound
        {
            log::warn!("a compiled kernel could not be removed: {}: {why}", path.display());
        }
    }

    /// What is kept, the least recently used first.
    ///
    /// # Errors
    /// Where the folder cannot be read. One that is not there is empty.
    pub fn entries(&self) -> io::Result<Vec<DiskEntry>> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        let mut entries = files(folder, |name| name.ends_with(".kernel"))?;
        for entry in &mut entries {
            entry.about = about(&entry.path);
        }
        Ok(entries)
    }

    /// Forgets all kernels; gives how many there were, and their bytes. What processes that ended left aside goes too.
    ///
    /// # Errors
    /// Where the folder cannot be read, or a kernel cannot be removed.
    pub fn clear(&self) -> io::Result<(usize, u64)> {
        let Some(folder) = &self.folder else { return Ok((0, 0)) };
        let entries = files(folder, |name| name.ends_with(".kernel"))?;
        entries.iter().try_for_each(|entry| gone(&entry.path))?;
        forget_asides(folder);
        Ok((entries.len(), entries.iter().map(|entry| entry.bytes).sum()))
    }

    /// Removes the least recently used until the rest is within the bound. Several processes may do so at once: what is gone is gone.
    fn evict(&self, stored: &Path) {
        let Some(folder) = &self.folder else { return };
        let Ok(entries) = files(folder, |name| name.ends_with(".kernel")) else { return };
        let mut bytes: u64 = entries.iter().map(|entry| entry.bytes).sum();
        if bytes <= self.most_bytes {
            return;
        }
        forget_asides(folder);
        for entry in entries.iter().filter(|entry| entry.path != stored) {
            if bytes <= self.most_bytes {
                break;
            }
            match gone(&entry.path) {
                Ok(()) => bytes -= entry.bytes,
                Err(why) => log::warn!("a compiled kernel could not be removed: {}: {why}", entry.path.display()),
            }
        }
    }

    fn path(&self, name: &Digest) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{name}.kernel")))
    }
}

/// The files of a folder whose names are wanted, the oldest first, without a look into them.
fn files(folder: &Path, wanted: impl Fn(&str) -> bool) -> io::Result<Vec<DiskEntry>> {
    let listed = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed?,
    };
    let entry = |file: fs::DirEntry| {
        let wanted = file.file_name().to_str().is_some_and(&wanted);
        // Another process may have removed it since.
        let facts = file.metadata().ok().filter(|facts| wanted && facts.is_file())?;
        Some(DiskEntry { path: file.path(), bytes: facts.len(), used: facts.modified().ok()?, about: None })
    };
    let mut entries: Vec<_> = listed.flatten().filter_map(entry).collect();
    entries.sort_by(|a, b| (a.used, &a.path).cmp(&(b.used, &b.path)));
    Ok(entries)
}

/// Removes what was begun aside long ago.
fn forget_asides(folder: &Path) {
    for entry in files(folder, |name| name.starts_with(".tmp")).unwrap_or_default() {
        if entry.used.elapsed().is_ok_and(|age| age > FORGOTTEN) {
            let _ = gone(&entry.path);
        }
    }
}

fn gone(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The line and the kernel of an entry that is whole.
fn verify(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let (header, rest) = entry.split_at_checked(HEADER)?;
    let numbers = header.strip_prefix(MAGIC)?;
    let (lengths, digest) = numbers.split_at_checked(16)?;
    let length = |bytes: &[u8]| Some(u64::from_le_bytes(bytes.try_into().ok()?));
    let (about, payload) = (length(&lengths[..8])?, length(&lengths[8..])?);
    let whole = about.checked_add(payload) == Some(rest.len() as u64) && digest == Digest::of(rest).as_bytes();
    whole.then(|| rest.split_at_checked(usize::try_from(about).ok()?)).flatten()
}

/// The line of an entry.
fn about(path: &Path) -> Option<String> {
    let mut entry = Vec::new();
    File::open(path).and_then(|mut file| file.read_to_end(&mut entry)).ok()?;
    String::from_utf8_lossy(verify(&entry)?.0).lines().next().map(str::to_owned)
}

#[cfg(unix)]
fn make(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(unix)]
fn private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let about = fs::metadata(folder)?;
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other(format!("the folder belongs to user {}", about.uid())));
    }
    if about.mode() & 0o022 != 0 {
        let mode = about.mode() & 0o777;
        return Err(io::Error::other(format!("others may write to the folder (mode {mode:o}); chmod 700 it")));
    }
    writable(folder)
}

// A user's cache folder inherits the user's own permissions there.
#[cfg(not(unix))]
fn make(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

#[cfg(not(unix))]
fn private(folder: &Path) -> io::Result<()> {
    writable(folder)
}

fn writable(folder: &Path) -> io::Result<()> {
    tempfile::tempfile_in(folder).map(drop)
}

#[cfg(test)]
mod tests;
