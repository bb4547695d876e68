//! Opening a GPU: is there a driver, is it new enough, which GPUs does it show?

use std::ffi::{CStr, c_int};
use std::ptr::null_mut;

use batchla_core::{Error, ErrorKind};
use cudarc::driver::sys::{self, CUcontext, CUdevice, CUdevice_attribute, CUresult};

use super::call;
use crate::driver::symbols::{CANDIDATES, Symbols};
use crate::driver::{DriverError, DriverResult, code};
use crate::limits::Limits;

/// The oldest CUDA that a driver must support.
const OLDEST: u32 = 12_000;

/// A GPU, by its primary context, which other users of CUDA in this process share.
///
/// Every call makes that context the calling thread's current one, and leaves it so.
#[derive(Debug)]
pub struct Real {
    pub(super) symbols: Symbols,
    pub(super) device: CUdevice,
    context: CUcontext,
    pub(super) driver_version: u32,
    pub(super) memory_pools: bool,
}

// SAFETY: the driver may be called from any thread; the context pointer is only ever handed to it.
unsafe impl Send for Real {}
// SAFETY: as above.
unsafe impl Sync for Real {}

impl Symbols {
    pub(super) fn check(&self, call: &'static str, code: u32) -> DriverResult<()> {
        if code == 0 {
            return Ok(());
        }
        type Describe = unsafe extern "C" fn(CUresult, *mut *const std::ffi::c_char) -> u32;
        type DescribeNumber = unsafe extern "C" fn(u32, *mut *const std::ffi::c_char) -> u32;
        let words = |describe: Describe, or: &'static str| {
            // SAFETY: the enumeration is passed as a 32-bit number, and the driver refuses numbers that it does not know.
            let describe = unsafe { std::mem::transmute::<Describe, DescribeNumber>(describe) };
            let mut text = std::ptr::null();
            // SAFETY: writes one pointer, to a string of static lifetime or null.
            let known = unsafe { describe(code, &mut text) } == 0 && !text.is_null();
            // SAFETY: not null, and ends in a zero byte.
            if known { unsafe { CStr::from_ptr(text) }.to_string_lossy() } else { or.into() }
        };
        let name = words(self.cuGetErrorName, "CUDA_ERROR");
        let text = words(self.cuGetErrorString, "an error that this driver has no text for");
        Err(DriverError { call, code, name, text })
    }

    /// Initialises the driver; gives the version that it supports.
    fn start(&self) -> Result<u32, Error> {
        let mut version = 0;
        // SAFETY: writes one number; needs no initialisation.
        unsafe { call!(self, cuDriverGetVersion(&mut version)) }.map_err(|e| e.into_error("open device"))?;
        old_enough(version.unsigned_abs())?;
        // SAFETY: takes no pointers.
        unsafe { call!(self, cuInit(0)) }.map_err(|e| e.into_error("open device"))?;
        Ok(version.unsigned_abs())
    }

    fn attribute(&self, device: CUdevice, attribute: CUdevice_attribute) -> DriverResult<u32> {
        let mut value: c_int = 0;
        // SAFETY: writes one number.
        unsafe { call!(self, cuDeviceGetAttribute(&mut value, attribute, device)) }?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    pub(super) fn limits(&self, device: CUdevice) -> DriverResult<Limits> {
        use CUdevice_attribute as A;
        let mut name = [0u8; 256];
        // SAFETY: writes at most 256 bytes, the last of them zero.
        unsafe { call!(self, cuDeviceGetName(name.as_mut_ptr().cast(), 256, device)) }?;
        let name = CStr::from_bytes_until_nul(&name).map_or_else(|_| "GPU".into(), CStr::to_string_lossy).into_owned();
        let mut memory = 0;
        // SAFETY: writes one number.
        unsafe { call!(self, cuDeviceTotalMem_v2(&mut memory, device)) }?;
        Ok(Limits {
            name,
            compute_capability: (
                self.attribute(device, A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
                self.attribute(device, A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
            ),
            multiprocessors: self.attribute(device, A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            shared_bytes_per_block: self.attribute(device, A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            shared_bytes_per_multiprocessor: self
                .attribute(device, A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
            reserved_shared_bytes_per_block: self
                .attribute(device, A::CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)?,
            registers_per_multiprocessor: self
                .attribute(device, A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
            registers_per_block: self.attribute(device, A::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)?,
            // The driver does not say; every architecture since 2012 has 255.
            registers_per_thread: 255,
            threads_per_block: self.attribute(device, A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            threads_per_multiprocessor: self
                .attribute(device, A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
            blocks_per_multiprocessor: self.attribute(device, A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
            warp: self.attribute(device, A::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
            l2_bytes: self.attribute(device, A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?.into(),
            memory_bytes: memory as u64,
            exact_orders: true,
        })
    }

    fn count(&self) -> Result<usize, Error> {
        let mut count: c_int = 0;
        // SAFETY: writes one number; the driver is initialised.
        unsafe { call!(self, cuDeviceGetCount(&mut count)) }.map_err(|e| e.into_error("open device"))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }
}

fn old_enough(version: u32) -> Result<(), Error> {
    if version >= OLDEST {
        return Ok(());
    }
    let (major, minor) = (version / 1000, version % 1000 / 10);
    Err(Error::new(
        ErrorKind::Unavailable,
        "open device",
        format!("the NVIDIA driver supports CUDA {major}.{minor}, and CUDA 12.0 is needed"),
    )
    .advise("update the NVIDIA driver to 525 or newer")
    .caused_by(DriverError {
        call: "cuDriverGetVersion",
        code: code::INSUFFICIENT_DRIVER,
        name: "CUDA_ERROR_INSUFFICIENT_DRIVER".into(),
        text: format!("version {version}").into(),
    }))
}

fn one_of(ordinal: usize, count: usize) -> Result<c_int, Error> {
    let there = match count {
        0 => "there is no GPU, or none is visible".to_owned(),
        1 => "there is one GPU, of ordinal 0".to_owned(),
        _ => format!("there are {count} GPUs, of ordinals 0 to {}", count - 1),
    };
    c_int::try_from(ordinal).ok().filter(|_| ordinal < count).ok_or_else(|| {
        Error::new(ErrorKind::Unavailable, "open device", format!("there is no GPU {ordinal}: {there}"))
            .advise("check nvidia-smi and CUDA_VISIBLE_DEVICES; without a GPU, use the CPU backend")
    })
}

impl Real {
    /// The GPUs that the driver of this machine shows, by their ordinals. Takes nothing of them.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] where there is no driver, or too old a one.
    pub fn list() -> Result<Vec<Limits>, Error> {
        let symbols = Symbols::load(CANDIDATES)?;
        symbols.start()?;
        let limits = |ordinal: usize| {
            let mut device = 0;
            // SAFETY: writes one number; the driver is initialised.
            unsafe { call!(symbols, cuDeviceGet(&mut device, ordinal as c_int)) }?;
            symbols.limits(device)
        };
        let all: DriverResult<Vec<_>> = (0..symbols.count()?).map(limits).collect();
        all.map_err(|e| e.into_error("list devices"))
    }

    /// A GPU by its ordinal.
    ///
    /// # Errors
    /// [`ErrorKind::Unavailable`] where there is no driver, too old a one, or no such GPU.
    pub fn open(ordinal: usize) -> Result<Self, Error> {
        let symbols = Symbols::load(CANDIDATES)?;
        let driver_version = symbols.start()?;
        let ordinal = one_of(ordinal, symbols.count()?)?;
        Self::retain(symbols, ordinal, driver_version).map_err(|e| e.into_error("open device"))
    }

    fn retain(symbols: Symbols, ordinal: c_int, driver_version: u32) -> DriverResult<Self> {
        let (mut device, mut context) = (0, null_mut());
        // SAFETY: writes one number.
        unsafe { call!(symbols, cuDeviceGet(&mut device, ordinal)) }?;
        // SAFETY: writes one pointer; released in `drop`.
        unsafe { call!(symbols, cuDevicePrimaryCtxRetain(&mut context, device)) }?;
        let mut real = Self { symbols, device, context, driver_version, memory_pools: false };
        // Set even where it is current already: it may be what is left of an earlier one at the same address.
        // SAFETY: the context was retained just now.
        unsafe { call!(real.symbols, cuCtxSetCurrent(context)) }?;
        if real.symbols.attribute(device, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED)? != 0 {
            let mut pool = null_mut();
            // SAFETY: writes one pointer.
            unsafe { call!(real.symbols, cuDeviceGetDefaultMemPool(&mut pool, device)) }?;
            // By default a pool gives its memory back at every synchronisation, and the next allocation is slow again.
            let mut threshold = u64::MAX;
            let attribute = sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
            let value = (&raw mut threshold).cast();
            // SAFETY: this attribute is a 64-bit number, which is read during the call.
            unsafe { call!(real.symbols, cuMemPoolSetAttribute(pool, attribute, value)) }?;
            real.memory_pools = true;
        }
        Ok(real)
    }

    /// Makes the context the calling thread's.
    pub(super) fn current(&self) -> DriverResult<()> {
        let mut current = null_mut();
        // SAFETY: writes one pointer.
        unsafe { call!(self.symbols, cuCtxGetCurrent(&mut current)) }?;
        if current == self.context {
            return Ok(());
        }
        // SAFETY: the context is retained as long as `self` lives.
        unsafe { call!(self.symbols, cuCtxSetCurrent(self.context)) }
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        // SAFETY: retained once, in `retain`.
        if let Err(error) = unsafe { call!(self.symbols, cuDevicePrimaryCtxRelease_v2(self.device)) } {
            log::debug!("the context was not released: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Device;

    #[test]
    fn too_old_a_driver_is_named_with_what_is_needed() {
        let error = old_enough(11_080).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("supports CUDA 11.8, and CUDA 12.0 is needed"), "{error}");
        assert!(error.advice().contains("525"), "{error}");
        assert!(!Device::is_absent(&error), "a GPU behind an old driver is not none");
        assert!(old_enough(12_000).is_ok() && old_enough(13_000).is_ok());
    }

    #[test]
    fn a_gpu_that_is_not_there_is_an_error_that_says_which_are() {
        for (ordinal, count, words) in [
            (0, 0, "there is no GPU, or none is visible"),
            (1, 1, "there is one GPU, of ordinal 0"),
            (usize::MAX, 8, "ordinals 0 to 7"),
        ] {
            let error = one_of(ordinal, count).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(error.to_string().contains(words) && error.advice().contains("nvidia-smi"), "{error}");
        }
        assert_eq!(one_of(7, 8).unwrap(), 7);
        assert!(Device::is_absent(&one_of(0, 0).unwrap_err()));
    }
}
