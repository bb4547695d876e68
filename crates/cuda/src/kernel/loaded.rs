//! A loaded kernel, and the module that it is of.

use std::sync::{Arc, Mutex, PoisonError};

use batchla_core::{Error, ErrorKind};

use super::source::Specification;
use crate::driver::{Driver, DriverError, FunctionAttributes, FunctionHandle, ModuleHandle};

/// A kernel that is ready to launch. A cheap handle; it stays loaded as long as a handle or its device is alive.
#[derive(Clone, Debug)]
pub struct Kernel(Arc<Function>);

#[derive(Debug)]
struct Function {
    module: Arc<Module>,
    handle: FunctionHandle,
    name: Arc<str>,
    attributes: FunctionAttributes,
    /// Dynamic shared memory that it may be launched with so far.
    allowed: Mutex<u32>,
}

/// Dynamic shared memory that every kernel may be launched with.
const ALWAYS_ALLOWED: u32 = 48 << 10;

#[derive(Debug)]
pub(crate) struct Module {
    driver: Arc<dyn Driver>,
    handle: ModuleHandle,
}

impl Module {
    pub(crate) fn of(driver: &Arc<dyn Driver>, handle: ModuleHandle) -> Self {
        Self { driver: Arc::clone(driver), handle }
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: no kernel of it is held any more, and the streams that ran any waited before they dropped their device.
        if let Err(error) = unsafe { self.driver.unload_module(self.handle) } {
            log::debug!("a module was not unloaded: {error}");
        }
    }
}

impl Kernel {
    pub(crate) fn of(module: &Arc<Module>, specification: &Specification) -> Result<Self, Error> {
        let driver = &module.driver;
        let refused = |error: DriverError| {
            let what = format!("there is no kernel {specification}: {error}");
            Error::new(error.kind(), "load kernel", what).caused_by(error)
        };
        let handle = driver.function(module.handle, specification.entry()).map_err(refused)?;
        let attributes = driver.function_attributes(handle).map_err(refused)?;
        let (module, name) = (Arc::clone(module), Arc::from(specification.entry()));
        // What static shared memory takes is not there for the dynamic.
        let allowed = Mutex::new(ALWAYS_ALLOWED.saturating_sub(attributes.static_shared_bytes));
        Ok(Self(Arc::new(Function { module, handle, name, attributes, allowed })))
    }

    /// Its symbol.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What it needs: registers, spilled bytes, static shared memory.
    pub fn attributes(&self) -> FunctionAttributes {
        self.0.attributes
    }

    /// How many of its blocks one multiprocessor runs at a time.
    ///
    /// # Errors
    /// As [`Kernel::allow_shared_bytes`].
    pub fn blocks_per_multiprocessor(&self, block: u32, shared_bytes: u32) -> Result<u32, Error> {
        self.allow_shared_bytes(shared_bytes)?;
        let blocks = self.0.module.driver.blocks_per_multiprocessor(self.0.handle, block, shared_bytes);
        blocks.map_err(|e| e.into_error("query occupancy"))
    }

    /// Lets it be launched with so much dynamic shared memory. Launching does so by itself; doing it when preparing keeps it out of there.
    ///
    /// # Errors
    /// [`ErrorKind::Device`] where the device has less.
    pub fn allow_shared_bytes(&self, bytes: u32) -> Result<(), Error> {
        let mut allowed = self.0.allowed.lock().unwrap_or_else(PoisonError::into_inner);
        if bytes > *allowed {
            self.0.module.driver.allow_shared_bytes(self.0.handle, bytes).map_err(|error| {
                let what = format!("{bytes} bytes of shared memory a block are not to be had for {}", self.0.name);
                Error::new(ErrorKind::Device, "load kernel", what).caused_by(error)
            })?;
            *allowed = bytes;
        }
        Ok(())
    }

    pub(crate) fn handle(&self) -> FunctionHandle {
        self.0.handle
    }

    pub(crate) fn shared_name(&self) -> &Arc<str> {
        &self.0.name
    }
}
