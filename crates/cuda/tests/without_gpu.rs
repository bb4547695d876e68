//! Memory, streams and launches over a driver that is none: what reaches the driver, in which order, and what comes of failures.
#![cfg(feature = "driver")]

use std::sync::Arc;

use batchla_core::{Error, ErrorKind, Memory};
use batchla_cuda::driver::code;
use batchla_cuda::driver::fake::{Call, Fake, FakeCompiler, Step};
use batchla_cuda::{
    Device, DeviceArray, DeviceMemory, DeviceSlice, DiskCache, Kernel, KernelSource, Launch, Limits, PinnedArray,
    Specification, Stream,
};

type Outcome = Result<(), Error>;

/// More than two staging buffers and not a whole number of them.
const LARGE: usize = (40 << 20) / 4 + 7;

fn limits() -> Limits {
    Limits { memory_bytes: 1 << 30, ..Limits::preset("sm_90").unwrap_or_else(|| unreachable!("a preset")) }
}

fn bench() -> Result<(Device, Arc<Fake>, Stream), Error> {
    let (device, fake) = Device::fake(limits())?;
    let stream = Stream::new(&device)?;
    Ok((device, fake, stream))
}

fn kernel(device: &Device) -> Result<Kernel, Error> {
    let source = KernelSource { name: "a.cu", text: "", headers: &[] };
    device.kernel(&Specification::new(source, "getri"))
}

fn numbers(len: usize) -> Vec<f32> {
    (0..len).map(|i| i as f32).collect()
}

#[test]
fn data_goes_to_the_device_and_back_whatever_its_size() -> Outcome {
    let (device, fake, stream) = bench()?;
    for len in [0, 1, 1000, (16 << 20) / 4, LARGE] {
        let data = numbers(len);
        let mut array = DeviceArray::<f32>::zeroed(&stream, len)?;
        let mut back = vec![1.0; len];
        DeviceMemory::read(array.slice(), &mut back)?;
        assert!(back.iter().all(|&x| x == 0.0), "{len}: new memory is zero");
        DeviceMemory::write(&data, array.slice_mut())?;
        DeviceMemory::read(array.slice(), &mut back)?;
        assert!(back == data, "{len}");
    }
    drop((stream, device));
    assert_eq!((fake.leaks(), fake.faults()), ([0; 6], vec![]));
    Ok(())
}

#[test]
fn a_large_transfer_goes_in_chunks_and_pinned_memory_in_one() -> Outcome {
    let (device, fake, stream) = bench()?;
    let mut array = DeviceArray::<f32>::zeroed(&stream, LARGE)?;
    let copies = || fake.calls().iter().filter(|call| matches!(call, Call::CopyToDevice { .. })).count();
    DeviceMemory::write(&numbers(LARGE), array.slice_mut())?;
    assert_eq!(copies(), 3);
    let mut pinned = PinnedArray::<f32>::zeroed(&device, LARGE)?;
    pinned[LARGE - 1] = 5.0;
    DeviceMemory::write(&pinned, array.slice_mut())?;
    assert_eq!(copies(), 4);
    let mut one = [0.0];
    DeviceMemory::read(array.slice().part(LARGE - 1..LARGE).ok_or_else(no_such_part)?, &mut one)?;
    assert_eq!(one, [5.0]);
    Ok(())
}

fn no_such_part() -> Error {
    Error::new(ErrorKind::Argument, "test", "no such part")
}

#[test]
fn staging_buffers_are_made_once_and_used_again() -> Outcome {
    let (_device, fake, stream) = bench()?;
    let mut array = DeviceArray::<f32>::zeroed(&stream, 100)?;
    assert_eq!(fake.leaks()[1], 0, "none before the first transfer");
    for _ in 0..10 {
        DeviceMemory::write(&numbers(100), array.slice_mut())?;
    }
    assert_eq!(fake.leaks()[1], 1);
    let mut back = numbers(LARGE);
    let mut large = DeviceArray::<f32>::zeroed(&stream, LARGE)?;
    for _ in 0..3 {
        DeviceMemory::write(&back, large.slice_mut())?;
        DeviceMemory::read(large.slice(), &mut back)?;
    }
    assert!(back == numbers(LARGE) && fake.leaks()[1] <= 4, "{:?}", fake.leaks());
    Ok(())
}

#[test]
fn transfers_from_many_threads_do_not_mix() -> Outcome {
    let (device, fake, _) = bench()?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6)
            .map(|i| {
                let device = &device;
                scope.spawn(move || -> Result<bool, Error> {
                    let stream = Stream::new(device)?;
                    let data = vec![i as f32; 100_000];
                    let mut array = DeviceArray::<f32>::zeroed(&stream, data.len())?;
                    DeviceMemory::write(&data, array.slice_mut())?;
                    let mut back = vec![0.0; data.len()];
                    DeviceMemory::read(array.slice(), &mut back)?;
                    Ok(back == data)
                })
            })
            .collect();
        for thread in threads {
            assert!(matches!(thread.join(), Ok(Ok(true))));
        }
    });
    assert!(fake.faults().is_empty() && fake.leaks()[1] <= 4, "{:?}", fake.leaks());
    Ok(())
}

#[test]
fn what_does_not_fit_is_refused() -> Outcome {
    let (_device, fake, stream) = bench()?;
    let mut array = DeviceArray::<f32>::zeroed(&stream, 3)?;
    let too_much = DeviceMemory::write(&[0.0; 4], array.slice_mut());
    assert_eq!(too_much.map_err(|e| e.kind()), Err(ErrorKind::Argument));
    assert_eq!(DeviceMemory::read(array.slice(), &mut [0.0; 4]).map_err(|e| e.kind()), Err(ErrorKind::Argument));
    assert!(array.slice().part(2..4).is_none() && array.slice().part(3..3).is_some());
    assert!(fake.faults().is_empty());
    Ok(())
}

#[test]
fn exhausted_memory_is_an_error_with_the_numbers_and_the_device_works_on() -> Outcome {
    let (_device, fake, stream) = bench()?;
    for len in [1 << 30, usize::MAX, usize::MAX / 4] {
        let Err(error) = DeviceArray::<f32>::zeroed(&stream, len) else { panic!("{len}") };
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        let text = error.to_string();
        assert!(
            text.contains(&format!("{} bytes", 4 * len as u128)) && text.contains("of 1073741824 are free"),
            "{text}"
        );
    }
    fake.fail(Step::Allocate, 1, code::OUT_OF_MEMORY);
    let first = DeviceArray::<f32>::zeroed(&stream, 10)?;
    assert!(DeviceArray::<f32>::zeroed(&stream, 10).is_err());
    let third = DeviceArray::<f32>::zeroed(&stream, 10)?;
    drop((first, third));
    assert!(fake.live().is_empty());
    Ok(())
}

#[test]
fn exhausted_pinned_memory_is_an_error_and_leaks_nothing() -> Outcome {
    let (device, fake, stream) = bench()?;
    let mut array = DeviceArray::<f32>::zeroed(&stream, 10)?;
    fake.fail(Step::AllocatePinned, 0, code::OUT_OF_MEMORY);
    let failed = DeviceMemory::write(&[0.0; 10], array.slice_mut());
    assert_eq!(failed.map_err(|e| e.kind()), Err(ErrorKind::OutOfMemory));
    DeviceMemory::write(&[0.0; 10], array.slice_mut())?;
    drop((array, stream, device));
    assert_eq!(fake.leaks(), [0; 6]);
    Ok(())
}

#[test]
fn a_launch_reaches_the_driver_as_it_was_put_together() -> Outcome {
    let (device, fake, stream) = bench()?;
    let (a, mut x) = (DeviceArray::<f64>::zeroed(&stream, 9)?, DeviceArray::<f64>::zeroed(&stream, 9)?);
    let kernel = kernel(&device)?;
    let launch = Launch::new(&kernel, &stream).grid(70_000).block(128).shared_bytes(100 << 10);
    // SAFETY: nothing runs.
    unsafe { launch.slice(&a.slice()).slice_mut(&x.slice_mut()).argument(21u32).argument(-1i64).launch("invert") }?;
    let launches = fake.launches();
    let launched = &launches[0];
    assert_eq!((launched.function.as_str(), launched.grid, launched.block), ("getri", 70_000, 128));
    assert_eq!((launched.shared_bytes, launched.arguments.len()), (100 << 10, 4));
    assert_eq!(launched.u64(0), Some(a.slice().as_raw()));
    assert_eq!(launched.u64(1), Some(x.slice().as_raw()));
    assert_eq!((launched.u32(2), launched.u64(3)), (Some(21), Some(u64::MAX)));
    assert_eq!(fake.faults(), Vec::<String>::new());
    Ok(())
}

#[test]
fn shapes_that_no_device_can_run_are_refused_before_the_driver_sees_them() -> Outcome {
    let (device, fake, stream) = bench()?;
    let kernel = kernel(&device)?;
    let launch = || Launch::new(&kernel, &stream).block(32);
    let bad = [launch().grid(1 << 31), launch().block(0), launch().block(1025), launch().shared_bytes(228 << 10)];
    let many = (0..33u32).fold(launch(), |launch, i| launch.argument(i));
    for launch in bad.into_iter().chain([many]) {
        // SAFETY: nothing runs.
        let refused = unsafe { launch.launch("invert") };
        assert_eq!(refused.map_err(|e| e.kind()), Err(ErrorKind::Argument));
    }
    // SAFETY: nothing runs.
    unsafe { launch().grid(0).launch("invert") }?;
    assert!(fake.launches().is_empty());
    // SAFETY: nothing runs.
    unsafe { launch().grid((1 << 31) - 1).launch("invert") }?;
    assert_eq!(fake.launches().len(), 1);
    Ok(())
}

#[test]
fn memory_used_on_another_stream_is_ordered_before_and_after_and_freed_last() -> Outcome {
    let (device, fake, home) = bench()?;
    let other = Stream::new(&device)?;
    let kernel = kernel(&device)?;
    let array = DeviceArray::<f32>::zeroed(&home, 8)?;
    // SAFETY: nothing runs.
    unsafe { Launch::new(&kernel, &other).slice(&array.slice()).launch("invert") }?;
    drop(array);
    let calls = fake.calls();
    let at = |wanted: &dyn Fn(&Call) -> bool| calls.iter().position(wanted).unwrap_or(usize::MAX);
    let raw = |stream: &Stream| stream.as_raw().addr() as u64;
    let marks = |stream: u64| at(&move |call| matches!(call, Call::Record { stream: s, .. } if s.as_raw() == stream));
    let waits = |stream: u64| at(&move |call| matches!(call, Call::Wait { stream: s, .. } if s.as_raw() == stream));
    let order = [
        at(&|call| matches!(call, Call::Fill { .. })),
        marks(raw(&home)),
        waits(raw(&other)),
        at(&|call| matches!(call, Call::Launch(_))),
        marks(raw(&other)),
        waits(raw(&home)),
        at(&|call| matches!(call, Call::Free { stream, .. } if stream.as_raw() == raw(&home))),
    ];
    assert!(order.is_sorted() && order[6] < usize::MAX, "{order:?} of {calls:#?}");
    Ok(())
}

#[test]
fn an_error_of_earlier_work_is_named_when_it_surfaces_and_the_device_stays_lost() -> Outcome {
    let (device, fake, stream) = bench()?;
    let kernel = kernel(&device)?;
    let array = DeviceArray::<f32>::zeroed(&stream, 8)?;
    // SAFETY: nothing runs.
    unsafe { Launch::new(&kernel, &stream).grid(12).block(64).launch("invert") }?;
    fake.fail(Step::Synchronize, 0, code::ILLEGAL_ADDRESS);
    let Err(error) = stream.synchronize() else { panic!("must fail") };
    assert_eq!(error.kind(), ErrorKind::Device);
    let text = error.to_string();
    assert!(text.contains("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), "{text}");
    assert!(text.contains("invert (kernel getri, 12 blocks of 64 threads"), "{text}");
    for later in [
        stream.synchronize(),
        DeviceMemory::read(array.slice(), &mut [0.0]),
        DeviceArray::<f32>::zeroed(&stream, 1).map(drop),
        Stream::new(&device).map(drop),
        kernel_again(&device),
    ] {
        let Err(error) = later else { panic!("must fail") };
        assert!(error.to_string().contains("lost earlier: CUDA_ERROR_ILLEGAL_ADDRESS"), "{error}");
    }
    drop((array, stream, device));
    Ok(())
}

fn kernel_again(device: &Device) -> Outcome {
    kernel(device).map(drop)
}

#[test]
fn an_error_in_a_read_surfaces_there_and_a_refused_launch_at_once() -> Outcome {
    let (device, fake, stream) = bench()?;
    let kernel = kernel(&device)?;
    let array = DeviceArray::<f32>::zeroed(&stream, 8)?;
    fake.fail(Step::Launch, 0, code::LAUNCH_OUT_OF_RESOURCES);
    // SAFETY: nothing runs.
    let Err(error) = (unsafe { Launch::new(&kernel, &stream).launch("factorize") }) else { panic!("must fail") };
    assert_eq!(error.operation(), "factorize");
    DeviceMemory::read(array.slice(), &mut [0.0; 8])?;
    // SAFETY: nothing runs.
    unsafe { Launch::new(&kernel, &stream).launch("factorize") }?;
    fake.fail(Step::Synchronize, 0, code::ILLEGAL_ADDRESS);
    let Err(error) = DeviceMemory::read(array.slice(), &mut [0.0; 8]) else { panic!("must fail") };
    assert!(error.to_string().contains("factorize (kernel getri"), "{error}");
    Ok(())
}

#[test]
fn captured_launches_run_when_the_graph_does_and_as_often() -> Outcome {
    let (device, fake, stream) = bench()?;
    let kernel = kernel(&device)?;
    let (from, mut to) = (DeviceArray::<u32>::zeroed(&stream, 4)?, DeviceArray::<u32>::zeroed(&stream, 4)?);
    let graph = stream.capture(|| {
        DeviceMemory::copy(from.slice(), to.slice_mut())?;
        // SAFETY: nothing runs.
        unsafe { Launch::new(&kernel, &stream).slice(&from.slice()).launch("invert") }
    })?;
    assert!(fake.launches().is_empty());
    for _ in 0..2 {
        // SAFETY: nothing runs; the memory is alive.
        unsafe { graph.launch(&stream) }?;
    }
    assert_eq!(fake.launches().len(), 2);
    drop((graph, from, to, kernel, stream, device));
    assert_eq!((fake.leaks(), fake.faults()), ([0; 6], vec![]));
    Ok(())
}

#[test]
fn waiting_and_allocating_inside_a_capture_is_refused_and_dropping_is_put_off() -> Outcome {
    let (device, fake, stream) = bench()?;
    let home = Stream::new(&device)?;
    let kernel = kernel(&device)?;
    let mut array = Some(DeviceArray::<u32>::zeroed(&stream, 4)?);
    let elsewhere = DeviceArray::<u32>::zeroed(&home, 4)?;
    stream.capture(|| {
        assert!(stream.synchronize().is_err());
        assert!(DeviceArray::<u32>::zeroed(&stream, 4).is_err());
        if let Some(array) = &array {
            assert!(DeviceMemory::read(array.slice(), &mut [0]).is_err());
        }
        // SAFETY: nothing runs.
        let foreign = unsafe { Launch::new(&kernel, &stream).slice(&elsewhere.slice()).launch("invert") };
        assert_eq!(foreign.map_err(|e| e.kind()), Err(ErrorKind::Argument));
        array = None;
        assert_eq!(fake.live().len(), 2, "not freed yet");
        Ok(())
    })?;
    assert_eq!(fake.live().len(), 1, "freed after the capture");
    assert_eq!(fake.faults(), Vec::<String>::new(), "the driver saw none of it");
    Ok(())
}

#[test]
fn a_failed_capture_ends_the_capture() -> Outcome {
    let (_device, fake, stream) = bench()?;
    assert!(stream.capture(|| Err(no_such_part())).is_err());
    stream.synchronize()?;
    let panicking = || stream.capture(|| panic!("the caller's"));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(panicking)).is_err());
    stream.synchronize()?;
    assert_eq!((fake.leaks()[5], fake.faults().len()), (0, 0));
    Ok(())
}

#[test]
fn a_callers_stream_is_used_and_not_destroyed() -> Outcome {
    let (device, fake, _) = bench()?;
    let raw = fake.callers_stream();
    // SAFETY: the fake's own stream, which is never destroyed.
    let stream = unsafe { Stream::from_raw(&device, std::ptr::without_provenance_mut(raw as usize)) }?;
    let array = DeviceArray::<f32>::zeroed(&stream, 5)?;
    // SAFETY: the array is alive and nobody writes it.
    let view = unsafe { DeviceSlice::<f32>::from_raw(&stream, array.slice().as_raw(), 5) };
    let mut back = [1.0; 5];
    DeviceMemory::read(view, &mut back)?;
    assert_eq!(back, [0.0; 5]);
    let before = fake.leaks()[2];
    drop((array, stream));
    assert_eq!((fake.leaks()[2], fake.faults().len()), (before, 0));
    // SAFETY: refused.
    assert!(unsafe { Stream::from_raw(&device, std::ptr::null_mut()) }.is_err());
    Ok(())
}

#[test]
fn a_device_without_memory_pools_frees_as_well() -> Outcome {
    let fake = Arc::new(Fake::new(limits()).without_pools());
    let device = Device::with(Arc::<Fake>::clone(&fake), 0, Arc::new(FakeCompiler::default()), DiskCache::off())?;
    drop(DeviceArray::<f32>::zeroed(&Stream::new(&device)?, 5)?);
    drop(device);
    assert_eq!(fake.leaks(), [0; 6]);
    Ok(())
}

#[test]
fn time_passes_between_events() -> Outcome {
    let (device, fake, stream) = bench()?;
    let start = stream.record()?;
    drop(DeviceArray::<f32>::zeroed(&stream, 5)?);
    let end = stream.record()?;
    assert!(end.elapsed_ms(&start)? > 0.0 && end.passed()?);
    drop((start, end, stream, device));
    assert_eq!(fake.leaks(), [0; 6]);
    Ok(())
}
