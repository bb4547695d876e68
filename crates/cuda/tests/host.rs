//! Host batches over a driver that is none: what goes where, in which order, within which memory, and what comes of failures.
#![cfg(feature = "driver")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod order;

use std::sync::Arc;

use batchla_core::{
    Backend, Batch, BatchLayout, BatchMut, BatchRef, BatchedFactorize, BatchedInvert, BatchedSolve, Error, ErrorKind,
    Extras, FactorizeArgs, InvertArgs, Memory, Options, Prepared, Problem, Report, Source, SourceKind, Strides,
};
use batchla_cuda::driver::code;
use batchla_cuda::driver::fake::{Call, Fake, FakeCompiler, Step};
use batchla_cuda::{Cuda, CudaGroup, CudaHost, Device, DiskCache, GroupArray, GroupMemory, Limits, PinnedArray};

/// GPUs that compute nothing, and a backend over them.
fn host(count: usize) -> (CudaHost, Vec<Arc<Fake>>) {
    let fakes: Vec<_> = (0..count).map(|_| Arc::new(Fake::new(Limits::preset("sm_90").unwrap()))).collect();
    let gpu = |(ordinal, fake): (usize, &Arc<Fake>)| {
        let driver = Arc::<Fake>::clone(fake);
        Cuda::on(&Device::with(driver, ordinal, Arc::new(FakeCompiler::default()), DiskCache::off()).unwrap()).unwrap()
    };
    let gpus: Vec<_> = fakes.iter().enumerate().map(gpu).collect();
    (CudaHost::new(gpus).unwrap(), fakes)
}

fn batch(count: usize, order: usize) -> Batch<f64> {
    Batch::from_fn(count, order, order, |b, i, j| (1 + b * 1000 + i * 30 + j) as f64).unwrap()
}

fn launches(fake: &Fake) -> usize {
    fake.launches().len()
}

#[test]
fn every_element_goes_up_and_comes_down_in_its_place_and_gaps_stay() {
    let layouts = [
        BatchLayout::column_major(1000, 20, 20).unwrap(),
        BatchLayout::row_major(1000, 20, 20).unwrap(),
        BatchLayout::column_major(1000, 20, 20).unwrap().with_leading_dimension(23).unwrap(),
        BatchLayout::interleaved(1001, 20, 20, 8).unwrap(),
        BatchLayout::new(1000, 20, 20, Strides { lanes: 1, group: 900, row: 1, col: 41 }).unwrap(),
    ];
    for (layout, gpus) in layouts.into_iter().zip([1, 2, 3, 2, 1]) {
        for chunk in [64, 100, 999, 5000] {
            let (host, fakes) = host(gpus);
            let host = host.with_chunk(chunk);
            let dense = batch(layout.batch(), 20);
            let mut memory = vec![-1.0; layout.span()];
            BatchMut::new(&mut memory, layout).unwrap().copy_from(&dense.view()).unwrap();
            let before = memory.clone();
            // Kernels that do nothing leave what is overwritten as it was.
            host.invert_in_place(BatchMut::new(&mut memory, layout).unwrap()).unwrap();
            assert!(memory == before, "{layout} in chunks of {chunk} by {gpus}");
            let chunks = layout.batch().div_ceil(chunk.next_multiple_of(layout.strides().lanes));
            assert_eq!(fakes.iter().map(|fake| launches(fake)).sum::<usize>(), chunks, "{layout} {chunk}");
        }
    }
}

#[test]
fn large_chunks_go_through_buffers_and_pinned_memory_goes_directly() {
    let (count, order) = (3000, 64);
    let layout = BatchLayout::column_major(count, order, order).unwrap();
    let (host, fakes) = host(1);
    let host = host.with_chunk(700);
    let mut plain = batch(count, order);
    let before = plain.clone();
    host.invert_in_place(&mut plain).unwrap();
    assert!(plain.as_slice() == before.as_slice());
    let copies = |bytes: usize| {
        let large = |call: &&Call| matches!(call, Call::CopyToDevice { bytes: b, .. } if *b == bytes);
        fakes[0].calls().iter().filter(large).count()
    };
    let (piece, chunk) = (16 << 20, 700 * order * order * 8);
    assert_eq!((copies(piece), copies(chunk)), (4 * (chunk / piece), 0), "the rest of a chunk is less than a piece");
    let device = host.gpus().next().unwrap().device().clone();
    let mut pinned = PinnedArray::<f64>::zeroed(&device, layout.span()).unwrap();
    pinned.copy_from_slice(before.as_slice());
    host.invert_in_place(BatchMut::new(&mut pinned, layout).unwrap()).unwrap();
    assert!(pinned[..] == *before.as_slice());
    assert_eq!(copies(chunk), 4, "four whole chunks, and a part of one");
}

#[test]
fn copies_and_kernels_overlap_and_nothing_races() {
    for (pinned, chunk) in [(false, 40), (true, 200)] {
        let (host, fakes) = host(1);
        let host = host.with_chunk(chunk);
        let device = host.gpus().next().unwrap().device().clone();
        let a = batch(10 * chunk, 32);
        let mut from = PinnedArray::<f64>::zeroed(&device, a.as_slice().len()).unwrap();
        from.copy_from_slice(a.as_slice());
        let a = if pinned { BatchRef::new(&from, *a.layout()).unwrap() } else { a.view() };
        host.factorize(a).unwrap();
        let calls = fakes[0].calls();
        assert_eq!(order::races(&calls), Vec::<String>::new());
        // Whether the host waited for more than slots is a matter of its threads' luck.
        let all = order::accesses(&calls, false);
        let slots: Vec<_> = all.iter().filter(|(_, all)| all.iter().any(|access| access.what == "copy down")).collect();
        assert_eq!(slots.len(), 3);
        let first = |slot: usize, what| slots[slot].1.iter().find(|access| access.what == what).unwrap();
        // The next chunk is copied up while one is computed, and computed while one is copied down.
        assert!(!first(1, "copy up").follows(first(0, "kernel")) && !first(2, "copy up").follows(first(0, "kernel")));
        assert!(
            !first(1, "kernel").follows(first(0, "copy down")) && !first(0, "copy down").follows(first(1, "kernel"))
        );
        assert!(first(0, "kernel").follows(first(0, "copy up")) && first(0, "copy down").follows(first(0, "kernel")));
    }
}

#[test]
fn a_run_takes_no_more_device_memory_than_it_may() {
    let a = batch(5000, 24);
    for (bound, gpus) in [(1u64 << 30, 1), (20 << 20, 2), (1 << 20, 1), (100_000, 1), (16_000, 2)] {
        let (host, fakes) = host(gpus);
        let host = host.with_memory_bytes(bound);
        let problem = Problem::invert::<f64>(SourceKind::Matrix, *a.layout(), *a.layout()).unwrap();
        let prepared = host.prepare(&problem, &Options::default()).unwrap();
        assert!(prepared.workspace_bytes() <= bound * gpus as u64, "{bound}: {}", prepared.workspace_bytes());
        host.invert(&a).unwrap();
        for fake in &fakes {
            let taken = |call: &Call| if let Call::Allocate { bytes, .. } = call { *bytes as u64 } else { 0 };
            assert!(fake.calls().iter().map(taken).sum::<u64>() <= bound, "{bound}");
            assert!(fake.live().is_empty());
        }
    }
    let error = host(1).0.with_memory_bytes(5000).invert(&a).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(
        error.to_string().contains("the bound is 5000") && error.advice().contains("BATCHLA_DEVICE_MEMORY"),
        "{error}"
    );
}

#[test]
fn a_batch_that_has_to_be_divided_for_lack_of_memory_still_has_three_slots() {
    let a = batch(5000, 24);
    let (host, fakes) = host(1);
    // As one chunk it would have one slot.
    host.with_chunk(5000).with_memory_bytes(1 << 20).factorize(&a).unwrap();
    let all = order::accesses(&fakes[0].calls(), false);
    let slots = all.iter().filter(|(_, all)| all.iter().any(|access| access.what == "copy down")).count();
    assert_eq!(slots, 3);
}

#[test]
fn what_is_told_of_a_host_batch_is_what_its_chunks_take() {
    let layout = BatchLayout::row_major(1000, 40, 40).unwrap().with_leading_dimension(45).unwrap();
    let problem = Problem::invert::<f64>(SourceKind::Matrix, layout, layout).unwrap();
    for (gpus, chunk, bound) in [(1, 1000, 1 << 30), (2, 300, 1 << 30), (1, 1000, 1 << 20)] {
        let host = host(gpus).0.with_chunk(chunk).with_memory_bytes(bound);
        let options = Options::default().with_plan("left-looking");
        let (told, prepared) = (host.explain(&problem, &options).unwrap(), host.prepare(&problem, &options).unwrap());
        assert_eq!(told.workspace_bytes, prepared.workspace_bytes());
        assert!(told.part <= prepared.chunk() && prepared.chunk() <= chunk, "{} of {chunk}", told.part);
        assert_eq!(told.problem, problem);
    }
}

#[test]
fn a_workspace_of_other_streams_is_refused() {
    let (device, _fake) = Device::fake(Limits::preset("sm_90").unwrap()).unwrap();
    let hosts = [(); 2].map(|()| CudaHost::new([Cuda::on(&device).unwrap()]).unwrap());
    let mut a = batch(10, 5);
    let problem = Problem::invert::<f64>(SourceKind::InPlace, *a.layout(), *a.layout()).unwrap();
    let [first, second] = hosts.each_ref().map(|host| host.prepare(&problem, &Options::default()).unwrap());
    let mut report = Report::allocate(&hosts[0], 10, Extras::none()).unwrap();
    let mut run = |mut workspace| {
        let (mut view, source) = (a.view_mut(), Source::InPlace);
        hosts[0].run_invert(&first, InvertArgs::new(&source, &mut view, report.view_mut()), &mut workspace)
    };
    let error = run(hosts[1].workspace(&second).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
    assert!(error.advice().contains("the workspace that was made for"), "{error}");
    run(hosts[0].workspace(&first).unwrap()).unwrap();
}

#[test]
fn a_batch_beyond_the_devices_memory_goes_through() {
    let limits = Limits { memory_bytes: 1 << 20, ..Limits::preset("sm_90").unwrap() };
    let (device, _fake) = Device::fake(limits).unwrap();
    let host = CudaHost::new([Cuda::on(&device).unwrap()]).unwrap();
    let mut a = batch(1000, 32);
    let before = a.clone();
    host.invert_in_place(&mut a).unwrap();
    assert!(a.as_slice() == before.as_slice());
}

#[test]
fn a_small_batch_takes_one_gpu_and_no_threads_and_a_large_one_all() {
    let (host, fakes) = host(2);
    host.invert(&batch(3, 8)).unwrap();
    assert_eq!((launches(&fakes[0]), launches(&fakes[1])), (1, 0));
    host.invert(&batch(20_000, 16)).unwrap();
    assert!(fakes.iter().map(|fake| launches(fake)).sum::<usize>() >= 4);
}

#[test]
fn gpus_are_given_once_each() {
    let gpu = Cuda::on(&Device::fake(Limits::preset("sm_90").unwrap()).unwrap().0).unwrap();
    for gpus in [vec![], vec![gpu.clone(), gpu.clone()]] {
        assert_eq!(CudaHost::new(gpus).unwrap_err().kind(), ErrorKind::Argument);
    }
}

/// All that a user does, in chunks.
fn work(host: &CudaHost) -> Result<(), Error> {
    let a = batch(40, 7);
    let inverse = host.invert(&a)?;
    host.solve(&a, &inverse.batch).map(drop)
}

/// Fails the `k`-th such call of the second GPU, for every `k` that there is.
fn every_call_may_fail(step: Step, code: u32, kind: ErrorKind, sticky: bool) {
    for k in 0.. {
        let (host, fakes) = host(2);
        let host = host.with_chunk(3);
        work(&host).unwrap();
        let before = fakes.iter().map(|fake| fake.leaks()).collect::<Vec<_>>();
        fakes[1].fail(step, k, code);
        match work(&host) {
            Ok(()) if k > 6 => return,
            // Which GPU takes how many chunks is not the same each time.
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error.kind(), kind, "{step:?} {k}: {error}");
                assert!(step == Step::Allocate || error.to_string().contains("GPU 1"), "{step:?} {k}: {error}");
                if sticky {
                    let error = work(&host).unwrap_err();
                    assert!(error.to_string().contains("lost"), "{step:?} {k}: {error}");
                } else {
                    work(&host).unwrap_or_else(|error| panic!("{step:?} {k}: not usable after its failure: {error}"));
                }
                let one = CudaHost::new(host.gpus().take(1).cloned()).unwrap();
                work(&one).unwrap_or_else(|error| panic!("{step:?} {k}: the other GPU is not usable: {error}"));
            }
        }
        for (fake, before) in fakes.iter().zip(before) {
            let [device, _, streams, _, modules, graphs] = fake.leaks();
            assert_eq!(
                [device, streams, modules, graphs],
                [before[0], before[2], before[4], before[5]],
                "{step:?} {k}"
            );
        }
        drop(host);
        for fake in &fakes {
            let [device, pinned, streams, events, modules, graphs] = fake.leaks();
            assert_eq!([device, streams, modules, graphs], [0; 4], "{step:?} {k}");
            // Buffers that a lost device may still write to are better lost than freed.
            assert!(sticky || [pinned, events] == [0; 2], "{step:?} {k}");
            assert!(fake.faults().is_empty(), "{step:?} {k}: {:?}", fake.faults());
        }
    }
}

#[test]
fn every_allocation_may_fail() {
    every_call_may_fail(Step::Allocate, code::OUT_OF_MEMORY, ErrorKind::OutOfMemory, false);
    every_call_may_fail(Step::AllocatePinned, code::OUT_OF_MEMORY, ErrorKind::OutOfMemory, false);
}

#[test]
fn every_launch_may_be_refused_or_find_the_context_lost() {
    every_call_may_fail(Step::Launch, code::LAUNCH_OUT_OF_RESOURCES, ErrorKind::Device, false);
    every_call_may_fail(Step::Launch, code::ILLEGAL_ADDRESS, ErrorKind::Device, true);
}

#[test]
fn every_wait_may_find_the_context_lost() {
    every_call_may_fail(Step::Synchronize, code::LAUNCH_FAILED, ErrorKind::Device, true);
}

#[test]
fn a_batch_in_parts_is_queued_on_every_gpu_without_waiting() {
    let (host, fakes) = host(3);
    let group = CudaGroup::new(host.gpus().cloned()).unwrap();
    let of = |batch| group.division(batch).iter().map(ExactSizeIterator::len).collect::<Vec<_>>();
    assert_eq!((of(0), of(1), of(20), of(100)), (vec![0, 0, 0], vec![1, 1, 1], vec![20, 0, 0], vec![64, 32, 4]));
    for count in 0..300 {
        assert_eq!(of(count).iter().sum::<usize>(), if count == 1 { 3 } else { count });
    }
    let a = group.to_device(&batch(200, 6)).unwrap();
    let problem = Problem::factorize::<f64>(SourceKind::InPlace, *a.layout(), *a.layout()).unwrap();
    let prepared = group.prepare(&problem, &Options::default()).unwrap();
    let mut workspace = group.workspace(&prepared).unwrap();
    let mut lu = group.to_device(&batch(200, 6)).unwrap();
    let mut pivots = group.allocate_each::<u32>(200, 6).unwrap();
    let mut report = Report::<f64, GroupMemory>::allocate(&group, 200, Extras::none()).unwrap();
    let before: Vec<_> = fakes.iter().map(|fake| fake.calls().len()).collect();
    let pivots = <GroupMemory as Memory>::slice_mut(&mut pivots);
    let mut view = lu.view_mut();
    let args = FactorizeArgs::new(&Source::InPlace, &mut view, pivots, report.view_mut());
    group.run_factorize(&prepared, args, &mut workspace).unwrap();
    for (fake, before) in fakes.iter().zip(before) {
        assert!(matches!(&fake.calls()[before..], [Call::Launch(_)]), "{:?}", &fake.calls()[before..]);
    }
    assert_eq!(group.to_host(&lu).unwrap().as_slice(), batch(200, 6).as_slice());
    assert!(fakes.iter().all(|fake| fake.faults().is_empty()));
}

#[test]
fn one_matrix_that_lies_on_every_gpu_is_a_batch_of_one() {
    let (host, fakes) = host(2);
    let group = CudaGroup::new(host.gpus().cloned()).unwrap();
    let parts = host.gpus().map(|gpu| gpu.allocate::<f64>(36).unwrap()).collect();
    let layout = BatchLayout::column_major(1, 6, 6).unwrap();
    let mut a = Batch::from_array(GroupArray::from_copies(parts), layout).unwrap();
    let one = batch(1, 6);
    GroupMemory::write(one.as_slice(), a.slice_mut()).unwrap();
    assert_eq!(group.to_host(&a).unwrap().as_slice(), one.as_slice());
    let before = [launches(&fakes[0]), launches(&fakes[1])];
    group.invert_in_place(&mut a).unwrap();
    assert_eq!([launches(&fakes[0]), launches(&fakes[1])], before.map(|count| count + 1));
}

#[test]
fn what_cannot_be_divided_is_refused_in_words() {
    let (host, _fakes) = host(2);
    let group = CudaGroup::new(host.gpus().cloned()).unwrap();
    let lanes = BatchLayout::interleaved(100, 4, 4, 48).unwrap();
    let across = BatchLayout::new(100, 4, 4, Strides { lanes: 1, group: 1, row: 100, col: 400 }).unwrap();
    for layout in [lanes, across] {
        let error = group.allocate_batch::<f64>(layout).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("cannot be divided"), "{error}");
    }
    // Parts of another division, and too few of them.
    let first = host.gpus().next().unwrap();
    let layout = BatchLayout::column_major(100, 4, 4).unwrap();
    for parts in [vec![1600, 0], vec![1600]] {
        let parts = parts.into_iter().map(|len| first.allocate::<f64>(len).unwrap()).collect();
        let mut a = Batch::from_array(GroupArray::from_parts(parts), layout).unwrap();
        assert!(group.invert_in_place(&mut a).is_err());
    }
}
