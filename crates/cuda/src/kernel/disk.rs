//! Compiled kernels on disk, in a folder that only its user can write. Never an error: what cannot be kept is compiled again.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::source::Digest;

const MAGIC: &[u8; 16] = b"batchla kernel 1";
const HEADER: usize = 16 + 8 + 32;

/// A folder of compiled kernels, or none.
#[derive(Clone, Debug, Default)]
pub struct DiskCache {
    folder: Option<PathBuf>,
}

impl DiskCache {
    /// Keeps nothing.
    pub fn off() -> Self {
        Self::default()
    }

    /// Keeps kernels in `folder`, which is made where missing. Keeps nothing, and says so in the log, where the folder cannot be
    /// written, or could be by others: what lies in it is run on the GPU.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        match make(&folder).and_then(|()| private(&folder)) {
            Ok(()) => Self { folder: Some(folder) },
            Err(why) => {
                log::warn!("compiled kernels are not kept on disk: {}: {why}", folder.display());
                Self::off()
            }
        }
    }

    /// Where kernels are kept; none if nowhere.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// A kept kernel. One that was damaged is removed, and not given.
    pub fn load(&self, name: &Digest) -> Option<Vec<u8>> {
        let path = self.path(name)?;
        let entry = fs::read(&path).ok()?;
        let payload = verify(&entry);
        if payload.is_none() {
            log::warn!("a compiled kernel on disk is damaged and will be made again: {}", path.display());
            self.remove(name);
        }
        payload.map(<[u8]>::to_vec)
    }

    /// Keeps a kernel. Written aside and renamed, so that nobody sees half of it.
    pub fn store(&self, name: &Digest, payload: &[u8]) {
        let (Some(path), Some(folder)) = (self.path(name), &self.folder) else { return };
        let write = || -> io::Result<()> {
            let mut aside = tempfile::NamedTempFile::new_in(folder)?;
            aside.write_all(MAGIC)?;
            aside.write_all(&(payload.len() as u64).to_le_bytes())?;
            aside.write_all(Digest::of(payload).as_bytes())?;
            aside.write_all(payload)?;
            aside.flush()?;
            aside.persist(&path).map_err(|error| error.error)?;
            Ok(())
        };
        if let Err(why) = write() {
            log::warn!("a compiled kernel could not be kept on disk: {}: {why}", path.display());
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

    fn path(&self, name: &Digest) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(format!("{name}.kernel")))
    }
}

fn verify(entry: &[u8]) -> Option<&[u8]> {
    let (header, payload) = entry.split_at_checked(HEADER)?;
    let rest = header.strip_prefix(MAGIC)?;
    let (len, digest) = rest.split_at_checked(8)?;
    let whole = len == (payload.len() as u64).to_le_bytes() && digest == Digest::of(payload).as_bytes();
    whole.then_some(payload)
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
mod tests {
    use super::*;

    fn cache() -> (tempfile::TempDir, DiskCache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = DiskCache::at(folder.path().join("deep").join("kernels"));
        assert!(cache.folder().is_some());
        (folder, cache)
    }

    #[test]
    fn what_was_kept_is_given_back_and_to_a_new_process_too() {
        let (_folder, cache) = cache();
        let name = Digest::of(b"name");
        assert_eq!(cache.load(&name), None);
        for payload in [&b"first"[..], b"", &[7; 100_000]] {
            cache.store(&name, payload);
            assert_eq!(cache.load(&name).as_deref(), Some(payload));
            assert_eq!(DiskCache::at(cache.folder().unwrap()).load(&name).as_deref(), Some(payload));
        }
        cache.remove(&name);
        assert_eq!(cache.load(&name), None);
    }

    #[test]
    fn damage_of_any_byte_or_length_is_noticed_and_removed() {
        let (_folder, cache) = cache();
        let name = Digest::of(b"name");
        cache.store(&name, b"payload");
        let path = cache.path(&name).unwrap();
        let whole = fs::read(&path).unwrap();
        let mut damaged: Vec<Vec<u8>> = (0..whole.len()).map(|cut| whole[..cut].to_vec()).collect();
        damaged.extend((0..whole.len()).map(|i| {
            let mut copy = whole.clone();
            copy[i] ^= 1;
            copy
        }));
        damaged.push([&whole[..], b"x"].concat());
        for entry in damaged {
            fs::write(&path, &entry).unwrap();
            assert_eq!(cache.load(&name), None);
            assert!(!path.exists(), "a damaged entry is removed");
        }
    }

    #[test]
    fn off_keeps_nothing() {
        let cache = DiskCache::off();
        cache.store(&Digest::of(b"x"), b"payload");
        assert_eq!((cache.load(&Digest::of(b"x")), cache.folder()), (None, None));
    }

    #[test]
    fn a_place_that_cannot_be_a_folder_means_memory_only() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(DiskCache::at(file.join("below")).folder().is_none());
        assert!(DiskCache::at(&file).folder().is_none());
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_that_others_may_write_is_refused_and_ours_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let (_folder, cache) = cache();
        let path = cache.folder().unwrap();
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
        for mode in [0o770, 0o707, 0o777] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(DiskCache::at(path).folder().is_none(), "{mode:o}");
        }
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(DiskCache::at(path).folder().is_some(), "others may read");
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_of_another_user_is_refused() {
        // Only root's folders are surely there, and only for other users they are another's.
        if rustix::process::geteuid().is_root() {
            return println!("skipped: run by root, who owns what could be tested with");
        }
        assert!(private(Path::new("/")).is_err());
    }

    #[test]
    fn concurrent_writers_and_readers_see_whole_entries_only() {
        let (_folder, cache) = cache();
        let name = Digest::of(b"name");
        let payloads: Vec<Vec<u8>> = (0..4u8).map(|i| vec![i; 50_000 + usize::from(i)]).collect();
        std::thread::scope(|scope| {
            for payload in &payloads {
                scope.spawn(|| (0..25).for_each(|_| cache.store(&name, payload)));
            }
            for _ in 0..200 {
                if let Some(seen) = cache.load(&name) {
                    assert!(payloads.contains(&seen));
                }
            }
        });
        assert!(cache.load(&name).is_some());
        assert_eq!(fs::read_dir(cache.folder().unwrap()).unwrap().count(), 1, "nothing is left aside");
    }
}
