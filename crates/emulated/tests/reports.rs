//! What a check reports, and that what surrounds a fault is as on a GPU.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod machine;

use batchla_core::{
    Backend, Batch, BatchLayout, BatchedInvert, Error, ErrorKind, Memory, Prepared, Problem, ScalarKind, SourceKind,
};
use batchla_cuda::{Cuda, DeviceArray, DeviceMemory, KernelSource, Launch, Specification, Stream};
use batchla_emulated::{Checks, Emulated, Step, Trial};

use machine::open;

const SOURCE: KernelSource = KernelSource {
    name: "faults.cu",
    text: r#"#include "batchla_config.h"
extern "C" __global__ void beyond(float* x, unsigned int n) {
    if (threadIdx.x == 5) x[n] = 1.0f;
}
extern "C" __global__ void unwritten(float* x, unsigned int n) {
    __shared__ float line[64];
    if (threadIdx.x < 40) line[threadIdx.x] = 1.0f;
    __syncthreads();
    x[threadIdx.x] = line[threadIdx.x];
}
extern "C" __global__ void race(float* x, unsigned int n) {
    __shared__ float line[64];
    line[threadIdx.x] = 1.0f;
    x[threadIdx.x] = line[63 - threadIdx.x];
}
extern "C" __global__ void between_blocks(float* x, unsigned int n) {
    x[threadIdx.x] = 1.0f;
}
extern "C" __global__ void half_a_barrier(float* x, unsigned int n) {
    if (threadIdx.x < 32) __syncthreads();
    x[threadIdx.x] = 1.0f;
}
extern "C" __global__ void half_a_warp(float* x, unsigned int n) {
    if (threadIdx.x % 32 < 16) x[threadIdx.x] = __ballot_sync(0xffffffffu, 1);
}
extern "C" __global__ void two_exchanges(float* x, unsigned int n) {
    if (threadIdx.x % 32 < 16) __ballot_sync(0xffffffffu, 1);
    else __syncwarp();
}
extern "C" __global__ void undefined(float* x, unsigned int n) {
    x[threadIdx.x] = 1 << (threadIdx.x + n);
}
extern "C" __global__ void misaligned(float* x, unsigned int n) {
    if (threadIdx.x == 7) *reinterpret_cast<double*>(x + 1) = 1.0;
}
extern "C" __global__ void endless(float* x, unsigned int n) {
    while (true) *reinterpret_cast<volatile float*>(x + threadIdx.x + blockDim.x * blockIdx.x) = 1.0f;
}
extern "C" __global__ void sound(float* x, unsigned int n) {
    __shared__ float line[64];
    line[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (blockIdx.x == 0) x[threadIdx.x] = line[63 - threadIdx.x];
}
extern "C" __global__ void bytes(float* x, unsigned int n) {
    __shared__ unsigned char line[64];
    line[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (blockIdx.x == 0) x[threadIdx.x] = line[63 - threadIdx.x];
}
extern "C" __global__ void byte_of_another(float* x, unsigned int n) {
    __shared__ unsigned char line[64];
    line[threadIdx.x] = 1;
    x[threadIdx.x] = line[threadIdx.x ^ 1];
}
extern "C" __global__ void word_of_bytes(float* x, unsigned int n) {
    __shared__ __align__(4) unsigned char line[64];
    line[threadIdx.x] = 1;
    x[threadIdx.x] = *reinterpret_cast<const unsigned int*>(line + threadIdx.x / 4 * 4);
}
extern "C" __global__ void unwritten_byte(float* x, unsigned int n) {
    __shared__ unsigned char line[64];
    if (threadIdx.x % 4 > 0) line[threadIdx.x] = 1;
    __syncthreads();
    x[threadIdx.x] = line[threadIdx.x];
}
"#,
    headers: &[],
};

/// Two blocks of 64 threads on 64 numbers.
fn launched(gpu: &Cuda, entry: &str) -> Result<Vec<f32>, Error> {
    launched_of(gpu, SOURCE, entry)
}

fn launched_of(gpu: &Cuda, source: KernelSource, entry: &str) -> Result<Vec<f32>, Error> {
    let kernel = gpu.device().kernel(&Specification::new(source, entry).define("BATCHLA_SCALAR", 0))?;
    let stream = Stream::new(gpu.device())?;
    let mut array = DeviceArray::<f32>::zeroed(&stream, 64)?;
    let launch = Launch::new(&kernel, &stream).grid(2).block(64);
    // SAFETY: the kernels' two arguments; what they do beyond their bounds is noticed before it is done.
    unsafe { launch.slice_mut(&array.slice_mut()).argument(64u32).launch("test") }?;
    let mut back = vec![0.0; 64];
    DeviceMemory::read(array.slice(), &mut back).map(|()| back)
}

#[test]
fn every_fault_is_reported_with_kernel_block_thread_and_line() {
    for (entry, words) in [
        (
            "beyond",
            "out of bounds: block 0, thread 5 writes 4 bytes at byte 256 of an allocation, which has 256 at faults.cu:3",
        ),
        (
            "unwritten",
            "uninitialised memory: block 0, thread 40 reads 4 bytes that nobody wrote, 160 bytes into shared array line at faults.cu:9",
        ),
        ("race", "at faults.cu:14"),
        ("byte_of_another", "at faults.cu:54"),
        ("word_of_bytes", "at faults.cu:59"),
        (
            "unwritten_byte",
            "uninitialised memory: block 0, thread 0 reads 1 bytes that nobody wrote, 0 bytes into shared array line at faults.cu:65",
        ),
        ("between_blocks", "of another block writes it at faults.cu:17"),
        (
            "half_a_barrier",
            "barrier not reached by all: block 0, thread 0 waits in __syncthreads, where 32 threads of its block are; 32 of 64 threads have ended at faults.cu:20",
        ),
        (
            "half_a_warp",
            "divergent warp exchange: block 0, thread 0 waits in __ballot_sync, where 16 lanes of its warp are",
        ),
        (
            "two_exchanges",
            "divergent warp exchange: block 0, thread 16 comes to __syncwarp at faults.cu:28; thread 0 waits in __ballot_sync at faults.cu:27",
        ),
        (
            "undefined",
            "undefined behaviour: block 0, thread 0 a shift is by too much, or of a negative number at faults.cu:31",
        ),
        ("misaligned", "undefined behaviour: block 0, thread 7 an address is misaligned at faults.cu:34"),
        ("endless", "does not end"),
    ] {
        let Some(gpu) = open(Emulated::new("sm_90").checks(Checks::All)) else { return };
        let error = launched(&gpu, entry).unwrap_err();
        let text = error.to_string();
        assert_eq!(error.kind(), ErrorKind::Device, "{text}");
        assert!(text.contains(&format!("{entry}, ")) && text.contains(words), "{entry}: {text}");
        // As on a GPU, nothing more is to be had of it.
        assert!(launched(&gpu, "sound").unwrap_err().to_string().contains("lost"), "{entry}");
    }
}

/// Kernels that copy beside the thread, by the functions that all kernels have for it.
fn copying() -> KernelSource {
    let trial = Trial::new(ScalarKind::F32, 8, "left-looking", Step::Factorize);
    let text = r#"#include "batchla_config.h"
#include "instruction.cuh"
__shared__ float line[64];
__device__ inline void begin(const float* x) {
    copy_async(&line[threadIdx.x], x + 63 - threadIdx.x);
    commit_copies();
}
extern "C" __global__ void waited(float* x, unsigned int n) {
    if (blockIdx.x > 0) return;
    begin(x);
    wait_copies<0>();
    __syncthreads();
    x[threadIdx.x] = line[threadIdx.x] + 1.0f;
}
extern "C" __global__ void not_waited(float* x, unsigned int n) {
    begin(x);
    __syncthreads();
    if (blockIdx.x == 0) x[threadIdx.x] = line[threadIdx.x];
}
extern "C" __global__ void of_another(float* x, unsigned int n) {
    begin(x);
    if (threadIdx.x < 32) wait_copies<0>();
    __syncthreads();
    if (blockIdx.x == 0) x[threadIdx.x] = line[63 - threadIdx.x];
}
extern "C" __global__ void the_latest(float* x, unsigned int n) {
    begin(x);
    wait_copies<1>();
    if (blockIdx.x == 0) x[threadIdx.x] = line[threadIdx.x];
}
extern "C" __global__ void no_group(float* x, unsigned int n) {
    copy_async(&line[threadIdx.x], x + threadIdx.x);
    wait_copies<0>();
    if (blockIdx.x == 0) x[threadIdx.x] = line[threadIdx.x];
}
extern "C" __global__ void overwritten(float* x, unsigned int n) {
    begin(x);
    line[threadIdx.x] = 1.0f;
    wait_copies<0>();
}
"#;
    let headers = trial.kernels(&Emulated::new("sm_90").limits().unwrap()).unwrap()[0].source().headers;
    KernelSource { name: "copies.cu", text, headers }
}

#[test]
fn a_copy_that_is_touched_before_its_thread_has_waited_is_reported() {
    let entries = [
        ("not_waited", "reads", "copies.cu:18"),
        ("of_another", "reads", "copies.cu:24"),
        ("the_latest", "reads", "copies.cu:29"),
        ("no_group", "reads", "copies.cu:34"),
        ("overwritten", "writes", "copies.cu:38"),
    ];
    for (entry, does, line) in entries {
        let Some(gpu) = open(Emulated::new("sm_90").checks(Checks::All)) else { return };
        let text = launched_of(&gpu, copying(), entry).unwrap_err().to_string();
        assert!(text.contains("copy under way: block 0, thread "), "{entry}: {text}");
        assert!(text.contains(&format!("{does} 4 bytes")) && text.contains(line), "{entry}: {text}");
        assert!(text.contains("began it at copies.cu:"), "{entry}: {text}");
    }
}

#[test]
fn a_copy_brings_what_it_is_to_at_its_wait_and_at_once_on_architectures_without() {
    for architecture in ["sm_70", "sm_90"] {
        let Some(gpu) = open(Emulated::new(architecture).checks(Checks::All)) else { return };
        assert_eq!(launched_of(&gpu, copying(), "waited").unwrap(), [1.0; 64]);
    }
    // Not watched, what was not waited for is what was there before.
    let late = launched_of(&open(Emulated::new("sm_90")).unwrap(), copying(), "not_waited").unwrap();
    let at_once = launched_of(&open(Emulated::new("sm_70")).unwrap(), copying(), "not_waited").unwrap();
    assert!(late.iter().all(|x| x.is_nan()) && at_once == [0.0; 64], "{late:?}, {at_once:?}");
}

#[test]
fn a_sound_kernel_is_not_blamed_in_any_order_of_turns() {
    for seed in 0..8 {
        let Some(gpu) = open(Emulated::new("sm_90").seed(seed).checks(Checks::All)) else { return };
        let expected: Vec<f32> = (0..64u8).rev().map(f32::from).collect();
        for entry in ["sound", "bytes"] {
            assert_eq!(launched(&gpu, entry).unwrap(), expected, "{entry}");
        }
    }
}

#[test]
fn a_barrier_or_exchange_that_not_all_reach_is_reported_without_checks_too() {
    for entry in ["half_a_barrier", "half_a_warp", "two_exchanges"] {
        let Some(gpu) = open(Emulated::new("sm_90")) else { return };
        assert_eq!(launched(&gpu, entry).unwrap_err().kind(), ErrorKind::Device, "{entry}");
    }
}

#[test]
fn a_batch_larger_than_the_workspace_goes_through_it_in_parts() {
    let Some(gpu) = open(Emulated::new("sm_90").memory_bytes(1 << 20).checks(Checks::All)) else { return };
    let host = Batch::from_fn(200, 9, 9, |b, i, j| if i == j { 4.0 + b as f64 } else { 1.0 }).unwrap();
    let problem = Problem::invert::<f64>(SourceKind::Matrix, *host.layout(), *host.layout());
    let bytes = Prepared::workspace_bytes(&gpu.prepare(&problem.unwrap(), &Default::default()).unwrap());
    assert!(bytes < 200 * 9 * 9 * 8, "{bytes}");
    let inverse = gpu.invert(&gpu.to_device(&host).unwrap()).unwrap();
    let whole = open(Emulated::new("sm_90")).unwrap();
    let expected = whole.invert(&whole.to_device(&host).unwrap()).unwrap();
    let (x, expected) = (gpu.to_host(&inverse.batch).unwrap(), whole.to_host(&expected.batch).unwrap());
    assert_eq!(x.as_slice(), expected.as_slice());
}

#[test]
fn an_edit_that_does_not_fit_once_is_refused() {
    for from in ["no such text", "panel"] {
        let Some(gpu) = open(Emulated::new("sm_90").edit("getf2.cuh", from, "")) else { return };
        let a = gpu.allocate_batch::<f64>(BatchLayout::column_major(1, 3, 3).unwrap()).unwrap();
        let error = gpu.invert(&a).unwrap_err();
        assert!(error.kind() == ErrorKind::Argument && error.to_string().contains("times in getf2.cuh"), "{error}");
    }
    let Err(error) = Emulated::new("sm_35").open() else { panic!("there is no such preset") };
    assert_eq!(error.kind(), ErrorKind::Argument);
}
