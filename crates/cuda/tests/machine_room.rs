//! Memory, streams, graphs and kernels on a GPU at hand. Without one it says so; `BATCHLA_REQUIRE=cuda` makes that a failure.
#![cfg(feature = "driver")]

use batchla_core::{Error, ErrorKind, Memory};
use batchla_cuda::{
    Device, DeviceArray, DeviceMemory, Kernel, KernelSource, Launch, PinnedArray, Specification, Stream,
};

type Outcome = Result<(), Error>;

const SOURCE: KernelSource = KernelSource {
    name: "add.cu",
    text: r#"
#include "batchla_config.h"
#include "add.cuh"
extern "C" __global__ void add(float* x, unsigned long long n) {
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    if (i < n) x[i] = added(x[i]);
}
extern "C" __global__ void add_in_shared(float* x, unsigned long long n) {
    extern __shared__ float many[];
    unsigned long long i = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
    many[20000 + threadIdx.x] = i < n ? added(x[i]) : 0.0f;
    __syncthreads();
    if (i < n) x[i] = many[20000 + threadIdx.x];
}
"#,
    headers: &[("add.cuh", "#pragma once\n__device__ inline float added(float x) { return x + AMOUNT; }\n")],
};

/// The GPU at hand.
fn device() -> Option<Device> {
    match Device::open(0) {
        Ok(device) => Some(device),
        Err(error) => {
            let required = std::env::var("BATCHLA_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|name| name == "cuda"), "{error}");
            println!("skipped: {error}");
            None
        }
    }
}

fn kernel(device: &Device, entry: &str) -> Result<Kernel, Error> {
    device.kernel(&Specification::new(SOURCE, entry).define("AMOUNT", "1.0f"))
}

fn add(kernel: &Kernel, stream: &Stream, array: &mut DeviceArray<f32>) -> Outcome {
    let n = array.len() as u64;
    let launch = Launch::new(kernel, stream).grid(n.div_ceil(256)).block(256);
    // SAFETY: the kernel's two arguments; it checks its bounds.
    unsafe { launch.slice_mut(&array.slice_mut()).argument(n).launch("add") }
}

fn numbers(len: usize) -> Vec<f32> {
    (0..len).map(|i| (i % 1_000_003) as f32).collect()
}

fn holds(array: &DeviceArray<f32>, added: f32) -> Result<bool, Error> {
    let mut back = vec![f32::NAN; array.len()];
    DeviceMemory::read(array.slice(), &mut back)?;
    Ok(back.iter().zip(numbers(array.len())).all(|(&got, was)| got == was + added))
}

fn filled(stream: &Stream, len: usize) -> Result<DeviceArray<f32>, Error> {
    let mut array = DeviceArray::zeroed(stream, len)?;
    DeviceMemory::write(&numbers(len), array.slice_mut())?;
    Ok(array)
}

#[test]
fn the_device_tells_what_it_is() -> Outcome {
    let Some(device) = device() else { return Ok(()) };
    println!("{device}\n{:#?}", device.limits());
    let (free, total) = device.memory()?;
    assert!(free <= total && total <= device.limits().memory_bytes && device.limits().multiprocessors > 0);
    assert_eq!(Device::list()?.first(), Some(device.limits()));
    let Err(error) = Device::open(1_000_000) else { panic!("there is no such GPU") };
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    Ok(())
}

#[test]
fn many_numbers_go_to_the_device_and_back() -> Outcome {
    let Some(device) = device() else { return Ok(()) };
    let stream = Stream::new(&device)?;
    for len in [0, 1, 10_000_000] {
        assert!(holds(&filled(&stream, len)?, 0.0)?, "{len}");
    }
    let mut pinned = PinnedArray::<f32>::zeroed(&device, 100_000)?;
    pinned.copy_from_slice(&numbers(100_000));
    let mut array = DeviceArray::zeroed(&stream, pinned.len())?;
    DeviceMemory::write(&pinned, array.slice_mut())?;
    pinned.fill(f32::NAN);
    DeviceMemory::read(array.slice(), &mut pinned)?;
    assert!(pinned.iter().eq(&numbers(100_000)));
    let mut copy = DeviceArray::zeroed(&Stream::new(&device)?, array.len())?;
    DeviceMemory::copy(array.slice(), copy.slice_mut())?;
    drop(array);
    assert!(holds(&copy, 0.0)?);
    Ok(())
}

#[test]
fn transfers_report_their_speed() -> Outcome {
    let Some(device) = device() else { return Ok(()) };
    let stream = Stream::new(&device)?;
    let data = vec![1.0f32; 1 << 26];
    let mut back = vec![0.0f32; 1 << 26];
    let mut array = DeviceArray::zeroed(&stream, data.len())?;
    for round in 0..3 {
        let start = std::time::Instant::now();
        DeviceMemory::write(&data, array.slice_mut())?;
        stream.synchronize()?;
        let written = start.elapsed().as_secs_f64();
        DeviceMemory::read(array.slice(), &mut back)?;
        let read = start.elapsed().as_secs_f64() - written;
        let gigabytes = size_of_val(data.as_slice()) as f64 * 1e-9;
        println!("round {round}: written at {:.1} GB/s, read at {:.1} GB/s", gigabytes / written, gigabytes / read);
    }
    assert!(back == data);
    Ok(())
}

#[test]
fn a_kernel_runs_on_our_stream_and_on_the_callers() -> Outcome {
    let Some(device) = device() else { return Ok(()) };
    let kernel = kernel(&device, "add")?;
    println!("{:?}, {} blocks", kernel.attributes(), kernel.blocks_per_multiprocessor(256, 0)?);
    let ours = Stream::new(&device)?;
    let mut array = filled(&ours, 1_000_001)?;
    let start = ours.record()?;
    add(&kernel, &ours, &mut array)?;
    println!("{} ms", ours.record()?.elapsed_ms(&start)?);
    assert!(holds(&array, 1.0)?);
    // SAFETY: a stream of the same context, kept until after the handle.
    let callers = unsafe { Stream::from_raw(&device, ours.as_raw()) }?;
    let mut array = filled(&callers, 1000)?;
    add(&kernel, &callers, &mut array)?;
    assert!(holds(&array, 1.0)?);
    Ok(())
}

#[test]
fn a_kernel_gets_more_shared_memory_than_it_has_by_default() -> Outcome {
    let Some(device) = device() else { return Ok(()) };
    let (kernel, stream) = (kernel(&device, "add_in_shared")?, Stream::new(&device)?);
    let mut array = filled(&stream, 12_345)?;
    let launch = Launch::new(&kernel, &stream).grid(100).block(128).shared_bytes(4 * 20_128);
    // SAFETY: the kernel's two arguments; it checks its bounds, and the shared memory is what it uses.
    unsafe { launch.slice_mut(&array.slice_mut()).argument(12_345u64).launch("add") }?;
    assert!(holds(&array, 1.0)?);
    Ok(())
}

#[test]
fn a_graph_runs_twice() -> Outcome {
    let Some(device) = device() else { return Ok(()) };
    let (kernel, stream) = (kernel(&device, "add")?, Stream::new(&device)?);
    let mut array = filled(&stream, 5000)?;
    let graph = stream.capture(|| {
        assert!(stream.synchronize().is_err(), "waiting is refused, and does not spoil the capture");
        add(&kernel, &stream, &mut array)
    })?;
    assert!(holds(&array, 0.0)?, "captured, not run");
    for _ in 0..2 {
        // SAFETY: array and kernel are alive, and nobody else uses them.
        unsafe { graph.launch(&stream) }?;
    }
    assert!(holds(&array, 2.0)?);
    Ok(())
}

#[test]
fn memory_may_be_used_on_other_streams_and_dropped_at_once() -> Outcome {
    let Some(device) = device() else { return Ok(()) };
    let kernel = kernel(&device, "add")?;
    let (home, other) = (Stream::new(&device)?, Stream::new(&device)?);
    for _ in 0..20 {
        let mut array = filled(&home, 1_000_000)?;
        for _ in 0..10 {
            add(&kernel, &other, &mut array)?;
            add(&kernel, &home, &mut array)?;
        }
        assert!(holds(&array, 20.0)?);
        add(&kernel, &other, &mut array)?;
        drop(array);
        // May get the very same memory.
        let next = filled(&home, 1_000_000)?;
        assert!(holds(&next, 0.0)?);
    }
    other.synchronize()
}

#[test]
fn two_threads_work_at_once() -> Outcome {
    let Some(device) = device() else { return Ok(()) };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| -> Result<bool, Error> {
                    let (kernel, stream) = (kernel(&device, "add")?, Stream::new(&device)?);
                    let mut array = filled(&stream, 3_000_000)?;
                    (0..50).try_for_each(|_| add(&kernel, &stream, &mut array))?;
                    holds(&array, 50.0)
                })
            })
            .collect();
        for thread in threads {
            assert!(matches!(thread.join(), Ok(Ok(true))));
        }
    });
    Ok(())
}

#[test]
fn a_pebibyte_is_not_to_be_had_and_the_device_works_on() -> Outcome {
    let Some(device) = device() else { return Ok(()) };
    let stream = Stream::new(&device)?;
    let Err(error) = DeviceArray::<f32>::zeroed(&stream, (1 << 50) / 4) else { panic!("it cannot be") };
    println!("{error}");
    assert_eq!(error.kind(), ErrorKind::OutOfMemory);
    assert!(holds(&filled(&stream, 1000)?, 0.0)?);
    Ok(())
}

#[test]
fn a_kernel_that_does_not_compile_or_is_not_there_is_an_error() -> Outcome {
    let Some(device) = device() else { return Ok(()) };
    let broken = KernelSource { name: "broken.cu", text: "\nint f( {}\n", headers: &[] };
    let Err(error) = device.kernel(&Specification::new(broken, "f")) else { panic!("it cannot compile") };
    println!("{error}");
    assert_eq!(error.kind(), ErrorKind::Compile);
    assert!(error.to_string().contains("broken.cu(2)"), "{error}");
    let Err(error) = kernel(&device, "no_such_kernel") else { panic!("there is none") };
    println!("{error}");
    assert_eq!(error.kind(), ErrorKind::Compile);
    assert!(kernel(&device, "add").is_ok());
    Ok(())
}
