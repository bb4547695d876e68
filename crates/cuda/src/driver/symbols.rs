//! The functions of the driver library that we call, looked up one by one before the first call.
//!
//! cudarc declares them, and is what our signatures are held against; but it panics on a library or symbol that is missing, and
//! its result type is an enumeration, in which a newer driver's codes have no place. So we look them up and take results as numbers.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::mem::ManuallyDrop;

use batchla_core::{Error, ErrorKind};
use cudarc::driver::sys;
use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec, CUmemoryPool, CUmodule, CUresult,
    CUstream,
};
use libloading::Library;

/// Where the driver library may be.
#[cfg(not(windows))]
pub(super) const CANDIDATES: &[&str] = &["libcuda.so.1", "libcuda.so", "/usr/lib/wsl/lib/libcuda.so.1"];
/// Where the driver library may be.
#[cfg(windows)]
pub(super) const CANDIDATES: &[&str] = &["nvcuda.dll"];

macro_rules! symbols {
    ($($name:ident($($argument:ty),*);)*) => {
        /// The driver's functions, by their exported names.
        #[allow(non_snake_case)]
        pub(super) struct Symbols {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> u32,)*
            // Never unloaded: the driver's own threads run in it.
            _library: ManuallyDrop<Library>,
        }

        impl Symbols {
            fn of(library: Library, path: &str) -> Result<Self, Error> {
                Ok(Self {
                    $($name: {
                        // The same declaration as cudarc's, or this does not compile.
                        let _: unsafe fn($($argument),*) -> CUresult = sys::$name;
                        // SAFETY: the function of this name has this signature in every driver (the name carries its revision),
                        // and its result is an enumeration of 32 bits.
                        let symbol = unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) };
                        *symbol.map_err(|cause| missing_symbol(path, stringify!($name), cause))?
                    },)*
                    _library: ManuallyDrop::new(library),
                })
            }
        }
    };
}

symbols! {
    cuInit(c_uint);
    cuDriverGetVersion(*mut c_int);
    cuGetErrorName(CUresult, *mut *const c_char);
    cuGetErrorString(CUresult, *mut *const c_char);
    cuDeviceGetCount(*mut c_int);
    cuDeviceGet(*mut CUdevice, c_int);
    cuDeviceGetName(*mut c_char, c_int, CUdevice);
    cuDeviceGetAttribute(*mut c_int, sys::CUdevice_attribute, CUdevice);
    cuDeviceTotalMem_v2(*mut usize, CUdevice);
    cuDeviceGetDefaultMemPool(*mut CUmemoryPool, CUdevice);
    cuDevicePrimaryCtxRetain(*mut CUcontext, CUdevice);
    cuDevicePrimaryCtxRelease_v2(CUdevice);
    cuCtxGetCurrent(*mut CUcontext);
    cuCtxSetCurrent(CUcontext);
    cuMemGetInfo_v2(*mut usize, *mut usize);
    cuMemPoolSetAttribute(CUmemoryPool, sys::CUmemPool_attribute, *mut c_void);
    cuMemAlloc_v2(*mut CUdeviceptr, usize);
    cuMemFree_v2(CUdeviceptr);
    cuMemAllocAsync(*mut CUdeviceptr, usize, CUstream);
    cuMemFreeAsync(CUdeviceptr, CUstream);
    cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
    cuMemFreeHost(*mut c_void);
    cuPointerGetAttributes(c_uint, *mut sys::CUpointer_attribute, *mut *mut c_void, CUdeviceptr);
    cuMemcpyHtoDAsync_v2(CUdeviceptr, *const c_void, usize, CUstream);
    cuMemcpyDtoHAsync_v2(*mut c_void, CUdeviceptr, usize, CUstream);
    cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, usize, CUstream);
    cuMemsetD8Async(CUdeviceptr, u8, usize, CUstream);
    cuModuleLoadData(*mut CUmodule, *const c_void);
    cuModuleUnload(CUmodule);
    cuModuleGetFunction(*mut CUfunction, CUmodule, *const c_char);
    cuFuncGetAttribute(*mut c_int, sys::CUfunction_attribute, CUfunction);
    cuFuncSetAttribute(CUfunction, sys::CUfunction_attribute, c_int);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(*mut c_int, CUfunction, c_int, usize);
    cuLaunchKernel(CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void, *mut *mut c_void);
    cuStreamCreate(*mut CUstream, c_uint);
    cuStreamDestroy_v2(CUstream);
    cuStreamSynchronize(CUstream);
    cuStreamIsCapturing(CUstream, *mut sys::CUstreamCaptureStatus);
    cuStreamWaitEvent(CUstream, CUevent, c_uint);
    cuEventCreate(*mut CUevent, c_uint);
    cuEventDestroy_v2(CUevent);
    cuEventRecord(CUevent, CUstream);
    cuEventQuery(CUevent);
    cuEventSynchronize(CUevent);
    cuEventElapsedTime(*mut f32, CUevent, CUevent);
    cuStreamBeginCapture_v2(CUstream, sys::CUstreamCaptureMode);
    cuStreamEndCapture(CUstream, *mut CUgraph);
    cuGraphInstantiateWithFlags(*mut CUgraphExec, CUgraph, c_ulonglong);
    cuGraphLaunch(CUgraphExec, CUstream);
    cuGraphDestroy(CUgraph);
    cuGraphExecDestroy(CUgraphExec);
}

impl std::fmt::Debug for Symbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Symbols")
    }
}

impl Symbols {
    /// The first library of the candidates that loads.
    pub(super) fn load(candidates: &[&str]) -> Result<Self, Error> {
        let mut causes = Vec::new();
        for &path in candidates {
            // SAFETY: a driver library's initialisers only prepare itself.
            match unsafe { Library::new(path) } {
                Ok(library) => return Self::of(library, path),
                Err(cause) => causes.push(cause),
            }
        }
        let error = Error::new(
            ErrorKind::Unavailable,
            "open device",
            format!("there is no NVIDIA driver on this machine: none of {} could be loaded", candidates.join(", ")),
        )
        .advise("install the NVIDIA driver (525 or newer; in a container, expose it), or use the CPU backend");
        Err(match causes.into_iter().next() {
            Some(cause) => error.caused_by(cause),
            None => error,
        })
    }
}

fn missing_symbol(path: &str, name: &str, cause: libloading::Error) -> Error {
    Error::new(ErrorKind::Unavailable, "open device", format!("the driver library {path} has no function {name}"))
        .advise("update the NVIDIA driver to 525 (CUDA 12.0) or newer")
        .caused_by(cause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_driver_the_error_names_what_was_looked_for() {
        let error = Symbols::load(&["libno-such-driver.so.1", "libno-such-driver.so"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let text = error.to_string();
        assert!(
            text.contains("libno-such-driver.so.1, libno-such-driver.so") && text.contains("NVIDIA driver"),
            "{text}"
        );
        assert!(std::error::Error::source(&error).is_some(), "the loader's own words are kept");
        assert!(crate::device::Device::is_absent(&error), "{error}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_library_that_lacks_a_function_is_an_error_that_names_both() {
        // A library that every Linux has, and that is no driver.
        let error = Symbols::load(&["libm.so.6"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("libm.so.6 has no function cuInit"), "{error}");
        assert!(error.advice().contains("update"), "{error}");
        assert!(!crate::device::Device::is_absent(&error), "an old driver is not none");
    }
}
