//! Any bytes as a file, a stream and an archive: read or refused. libFuzzer itself watches for panics and for memory (`-rss_limit_mb`, `-malloc_limit_mb`).

#![no_main]

use std::io::{Cursor, Write};

use batchla_npy::{AnyReader, Archive, IntegerReader, read_any};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = AnyReader::new(Cursor::new(bytes.to_vec()), "a stream").and_then(AnyReader::read_to_end);
    let Ok(mut file) = tempfile::NamedTempFile::new() else { return };
    if file.write_all(bytes).is_err() {
        return;
    }
    let _ = read_any(file.path());
    let _ = IntegerReader::open(file.path()).and_then(|mut reader| reader.next(usize::MAX));
    if let Ok(archive) = Archive::open(file.path()) {
        for name in archive.names() {
            let _ = archive.array(name).and_then(AnyReader::read_to_end);
        }
    }
});
