//! Files of any content are read or refused, without a panic, and take no more memory than their length justifies.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::io::{Cursor, Write};
use std::path::Path;

use batchla_core::Batch;
use batchla_npy::{AnyReader, Archive, IntegerReader, read_any, write};
use peak_alloc::PeakAlloc;
use proptest::prelude::*;
use tempfile::TempDir;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// What reading takes beside the numbers: buffers, and the words of an error.
const BESIDE: usize = 1 << 20;

/// Reads a file in every way there is.
fn read_in_every_way(path: &Path) {
    let bytes = fs::read(path).unwrap();
    let length = bytes.len();
    let ways: [Box<dyn Fn()>; 4] = [
        Box::new(|| drop(read_any(path))),
        Box::new(|| {
            drop(AnyReader::new(Cursor::new(fs::read(path).unwrap()), "a stream").and_then(AnyReader::read_to_end))
        }),
        Box::new(|| drop(IntegerReader::open(path).and_then(|mut reader| reader.next(usize::MAX)))),
        Box::new(|| {
            let Ok(archive) = Archive::open(path) else { return };
            archive.names().for_each(|name| drop(archive.array(name).and_then(AnyReader::read_to_end)));
        }),
    ];
    for (way, reading) in ways.iter().enumerate() {
        let before = MEMORY.current_usage();
        MEMORY.reset_peak_usage();
        reading();
        let taken = MEMORY.peak_usage() - before;
        assert!(taken <= 8 * length + BESIDE, "way {way}: {taken} bytes for a file of {length}");
    }
}

/// Some files that are whole.
fn seeds(folder: &TempDir) -> Vec<Vec<u8>> {
    let path = folder.path().join("seed.npy");
    let mut seeds = Vec::new();
    for shape in [(2, 3, 3), (40, 4, 4)] {
        write(&path, &Batch::<f64>::from_fn(shape.0, shape.1, shape.2, |b, i, j| (b + i * j) as f64).unwrap()).unwrap();
        let c_order = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&c_order[..128]).into_owned();
        seeds.push([&c_order[..10], text[14..].replace("False, ", "True,  ").as_bytes(), &c_order[128..]].concat());
        seeds.push(c_order);
    }
    for method in [CompressionMethod::Stored, CompressionMethod::Deflated] {
        let mut zip = ZipWriter::new(File::create(&path).unwrap());
        zip.start_file("a.npy", SimpleFileOptions::default().compression_method(method)).unwrap();
        zip.write_all(&seeds[1]).unwrap();
        zip.finish().unwrap();
        seeds.push(fs::read(&path).unwrap());
    }
    seeds
}

// One test: others would take memory beside it.
#[test]
fn no_content_makes_reading_panic_or_take_more_memory_than_it_justifies() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    let seeds = seeds(&folder);
    for seed in &seeds {
        fs::write(&path, seed).unwrap();
        read_in_every_way(&path);
    }
    let digits = prop::sample::select(b"0123456789(), {}'<>fciTFu\xff\x00".to_vec());
    let change = (0usize..3000, prop::collection::vec(prop_oneof![digits, any::<u8>()], 0..8));
    let changes = (0..seeds.len(), prop::collection::vec(change, 1..4), 0usize..4000);
    proptest!(ProptestConfig::with_cases(2000), |((seed, changes, cut) in changes)| {
        let mut bytes = seeds[seed].clone();
        for (at, new) in changes {
            let at = at % bytes.len();
            bytes.iter_mut().skip(at).zip(new).for_each(|(byte, new)| *byte = new);
        }
        bytes.truncate(if cut > 3000 { bytes.len() } else { cut.max(1) });
        fs::write(&path, bytes).unwrap();
        read_in_every_way(&path);
    });
}
