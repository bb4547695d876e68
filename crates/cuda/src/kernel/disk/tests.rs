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
        cache.store(&name, "a kernel", payload);
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
    cache.store(&name, "a kernel", b"payload");
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
    cache.store(&Digest::of(b"x"), "", b"payload");
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
            scope.spawn(|| (0..25).for_each(|_| cache.store(&name, "a kernel", payload)));
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

/// Stores a kernel of a kilobyte, used so many seconds ago.
fn used(cache: &DiskCache, name: &str, seconds: u64) -> Digest {
    let digest = Digest::of(name.as_bytes());
    cache.store(&digest, name, &[1; 1000]);
    let file = File::options().append(true).open(cache.path(&digest).unwrap()).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
    digest
}

#[test]
fn what_is_kept_is_listed_with_what_it_is_the_least_recently_used_first() {
    let (_folder, cache) = cache();
    assert_eq!(cache.entries().unwrap(), []);
    let [_, damaged, _] = ["new", "damaged", "old"].map(|name| used(&cache, name, name.len() as u64 * 100));
    let path = cache.path(&damaged).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes[700] ^= 1;
    let when = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, bytes).unwrap();
    File::options().append(true).open(&path).unwrap().set_modified(when).unwrap();
    fs::write(cache.folder().unwrap().join("note.txt"), "not ours").unwrap();
    let entries = cache.entries().unwrap();
    assert_eq!(entries[0].about, None, "damaged");
    let rest: Vec<_> = entries[1..].iter().map(|entry| entry.about.as_deref().unwrap()).collect();
    assert!(rest.contains(&"new") && rest.contains(&"old"), "{rest:?}");
    assert!(entries.iter().all(|entry| entry.bytes > 1000));
    assert_eq!(cache.clear().unwrap().0, 3);
    assert_eq!(cache.clear().unwrap(), (0, 0));
    assert!(cache.folder().unwrap().join("note.txt").exists(), "others' files stay");
}

#[test]
fn beyond_the_bound_the_least_recently_used_go_and_the_newest_stays() {
    let (_folder, cache) = cache();
    let cache = cache.at_most(3500);
    let [a, b, c] = [("a", 300), ("b", 200), ("c", 100)].map(|(name, seconds)| used(&cache, name, seconds));
    // Loading is use: `b` is now the oldest.
    assert!(cache.load(&a).is_some());
    let d = used(&cache, "d", 0);
    assert_eq!([a, b, c, d].map(|name| cache.load(&name).is_some()), [true, false, true, true]);
    // Too large for the bound alone, and still kept: a program must not compile what it runs again and again.
    let large = Digest::of(b"large");
    cache.store(&large, "large", &[1; 9000]);
    assert_eq!(cache.entries().unwrap().len(), 1);
    assert!(cache.load(&large).is_some());
}

#[test]
fn what_a_process_left_aside_goes_when_it_is_old() {
    let (_folder, cache) = cache();
    let aside = |name: &str, seconds| {
        let path = cache.folder().unwrap().join(name);
        let file = File::create(&path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
        path
    };
    let (old, new) = (aside(".tmpOld", 7200), aside(".tmpNew", 10));
    cache.clear().unwrap();
    assert!(!old.exists() && new.exists(), "another process may be at it");
}

#[test]
fn no_folder_lists_nothing_and_clears_nothing() {
    assert_eq!((DiskCache::off().entries().unwrap(), DiskCache::off().clear().unwrap()), (Vec::new(), (0, 0)));
    let (_folder, cache) = cache();
    fs::remove_dir_all(cache.folder().unwrap()).unwrap();
    assert_eq!((cache.entries().unwrap(), cache.clear().unwrap()), (Vec::new(), (0, 0)));
}
