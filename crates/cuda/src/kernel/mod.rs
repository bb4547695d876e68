//! From kernel source to something that can be launched.

#[cfg(feature = "driver")]
pub(crate) mod cache;
pub(crate) mod disk;
#[cfg(feature = "driver")]
pub(crate) mod launch;
#[cfg(feature = "driver")]
pub(crate) mod loaded;
#[cfg(feature = "driver")]
pub(crate) mod nvrtc;
pub(crate) mod source;
