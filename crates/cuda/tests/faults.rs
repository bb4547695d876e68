//! Whatever fails, at whatever call: a clear error, nothing leaked, nothing half-written, and the device works on or is plainly lost.
#![cfg(feature = "driver")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::path::PathBuf;
use std::sync::Arc;

use batchla_core::{Backend, Batch, BatchedInvert, BatchedSolve, Error, ErrorKind};
use batchla_cuda::driver::code;
use batchla_cuda::driver::fake::{Fake, Step};
use batchla_cuda::{Cuda, Device, Digest, DiskCache, Limits};

fn fake() -> (Cuda, Arc<Fake>) {
    let (device, fake) = Device::fake(Limits::preset("sm_90").unwrap()).unwrap();
    (Cuda::on(&device).unwrap(), fake)
}

/// All that a user does: to the device, an inversion, a solution, and back.
fn work(cuda: &Cuda) -> Result<(), Error> {
    let host = Batch::<f64>::from_fn(20, 7, 7, |_, i, j| if i == j { 2.0 } else { 1.0 })?;
    let a = cuda.to_device(&host)?;
    let inverse = cuda.invert(&a)?;
    let x = cuda.solve(&a, &inverse.batch)?;
    cuda.to_host(&x.x)?;
    x.report.read_outcomes().map(drop)
}

/// Fails the `k`-th such call, for every `k` that there is.
fn every_call_may_fail(step: Step, code: u32, kind: ErrorKind, sticky: bool) {
    for k in 0.. {
        let (cuda, fake) = fake();
        // Loaded kernels and buffers for transfers stay with the device.
        work(&cuda).unwrap();
        let before = fake.leaks();
        fake.fail(step, k, code);
        match work(&cuda) {
            Ok(()) => {
                assert!(k > 0, "{step:?} is never called");
                return;
            }
            Err(error) => assert_eq!(error.kind(), kind, "{step:?} {k}: {error}"),
        }
        if sticky {
            let error = work(&cuda).unwrap_err();
            assert!(error.to_string().contains("lost") && error.kind() == ErrorKind::Device, "{step:?} {k}: {error}");
        } else {
            assert_eq!(fake.leaks(), before, "{step:?} {k}");
            work(&cuda).unwrap_or_else(|error| panic!("{step:?} {k}: not usable after its failure: {error}"));
        }
        drop(cuda);
        let [device, pinned, streams, events, modules, graphs] = fake.leaks();
        assert_eq!([device, streams, modules, graphs], [0; 4], "{step:?} {k}");
        // Buffers that a lost device may still write to are better lost than freed.
        assert!(sticky || [pinned, events] == [0; 2], "{step:?} {k}");
        assert!(fake.faults().is_empty(), "{step:?} {k}: {:?}", fake.faults());
    }
}

#[test]
fn every_allocation_may_fail() {
    every_call_may_fail(Step::Allocate, code::OUT_OF_MEMORY, ErrorKind::OutOfMemory, false);
}

#[test]
fn every_launch_may_be_refused() {
    every_call_may_fail(Step::Launch, code::LAUNCH_OUT_OF_RESOURCES, ErrorKind::Device, false);
}

#[test]
fn every_launch_may_find_the_context_lost() {
    every_call_may_fail(Step::Launch, code::ILLEGAL_ADDRESS, ErrorKind::Device, true);
}

#[test]
fn every_wait_may_find_the_context_lost() {
    every_call_may_fail(Step::Synchronize, code::LAUNCH_FAILED, ErrorKind::Device, true);
}

#[test]
fn a_context_that_is_found_lost_while_a_kernel_is_loaded_stays_lost() {
    let (cuda, fake) = fake();
    fake.fail(Step::LoadModule, 0, code::ILLEGAL_ADDRESS);
    let (first, second) = (work(&cuda).unwrap_err(), work(&cuda).unwrap_err());
    assert_eq!((first.kind(), second.kind()), (ErrorKind::Device, ErrorKind::Device));
    assert!(second.to_string().contains("lost earlier"), "{second}");
}

fn entry(cache: &DiskCache, name: &Digest) -> PathBuf {
    cache.folder().unwrap().join(format!("{name}.kernel"))
}

#[test]
fn an_entry_that_cannot_be_read_is_none_and_can_be_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let cache = DiskCache::at(folder.path().join("kernels"));
    let name = Digest::of(b"name");
    // A folder in its place: what no user can read as a file, the superuser included.
    std::fs::create_dir(entry(&cache, &name)).unwrap();
    assert_eq!(cache.load(&name), None);
    cache.store(&name, "a kernel", b"payload");
    assert_eq!(cache.load(&name), None, "not kept, and no failure");
    std::fs::remove_dir(entry(&cache, &name)).unwrap();
    cache.store(&name, "a kernel", b"payload");
    assert_eq!(cache.load(&name).as_deref(), Some(&b"payload"[..]));
}

#[test]
fn a_folder_that_goes_away_costs_only_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let cache = DiskCache::at(folder.path().join("kernels"));
    std::fs::remove_dir_all(cache.folder().unwrap()).unwrap();
    cache.store(&Digest::of(b"name"), "", b"payload");
    assert_eq!(cache.load(&Digest::of(b"name")), None);
}

#[test]
fn an_entry_of_another_version_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let cache = DiskCache::at(folder.path().join("kernels"));
    let name = Digest::of(b"name");
    cache.store(&name, "a kernel", b"payload");
    let mut bytes = std::fs::read(entry(&cache, &name)).unwrap();
    // The format's number is the last of the first sixteen bytes.
    bytes[15] += 1;
    std::fs::write(entry(&cache, &name), bytes).unwrap();
    assert_eq!(cache.load(&name), None);
}

/// Where the processes of the next test meet.
const MEETING: &str = "BATCHLA_TEST_CACHE";

#[test]
fn two_processes_write_one_entry_at_once_and_it_is_whole() {
    let name = Digest::of(b"name");
    let payload = |process: u8| vec![process; 300_000 + usize::from(process)];
    let write = |cache: &DiskCache, process: u8| {
        for _ in 0..40 {
            cache.store(&name, "a kernel", &payload(process));
            let seen = cache.load(&name);
            assert!(seen.is_none_or(|seen| seen == payload(1) || seen == payload(2)), "half of an entry");
        }
    };
    if let Some(folder) = std::env::var_os(MEETING) {
        return write(&DiskCache::at(folder), 2);
    }
    let folder = tempfile::tempdir().unwrap();
    let cache = DiskCache::at(folder.path().join("kernels"));
    let mut other = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "two_processes_write_one_entry_at_once_and_it_is_whole"])
        .env(MEETING, cache.folder().unwrap())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    write(&cache, 1);
    assert!(other.wait().unwrap().success());
    assert!(cache.load(&name).is_some());
    assert_eq!(std::fs::read_dir(cache.folder().unwrap()).unwrap().count(), 1, "nothing is left aside");
}
