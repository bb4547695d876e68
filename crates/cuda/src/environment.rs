//! The environment variables of this crate, read here and nowhere else.

use std::ffi::OsString;
use std::path::PathBuf;

use batchla_core::{Error, ErrorKind};
use etcetera::BaseStrategy;

const DEVICE_MEMORY: &str = "BATCHLA_DEVICE_MEMORY";

/// What the environment says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Where compiled kernels are kept; none if nowhere.
    pub cache: Option<PathBuf>,
    /// The most bytes of compiled kernels that are kept.
    pub cache_bytes: u64,
    /// Where tables that were measured on this machine are; none if nowhere.
    pub tuned: Option<PathBuf>,
    /// Folders of CUDA toolkits, in which NVRTC may be.
    pub toolkits: Vec<PathBuf>,
    /// How much of a GPU's memory a run from host memory may take, in the user's words.
    pub device_memory: Option<String>,
}

impl Environment {
    /// The bound where `BATCHLA_CACHE_SIZE` says none: thousands of kernels.
    pub const CACHE_BYTES: u64 = 512_000_000;

    /// Reads `BATCHLA_CACHE_DIR` and `BATCHLA_TUNED_DIR` (a folder, or `off`), `BATCHLA_CACHE_SIZE` and `BATCHLA_DEVICE_MEMORY` (bytes, or as 500MB or 4GB),
    /// `CUDA_HOME` and `CUDA_PATH`.
    pub fn read() -> Self {
        Self::from(|name| std::env::var_os(name))
    }

    fn from(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let folder = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let place = |name: &str, own: Option<PathBuf>| match folder(name) {
            Some(value) if value.as_os_str() == "off" => None,
            Some(value) => Some(value),
            None => own,
        };
        let user = etcetera::choose_base_strategy().ok();
        let cache = user.as_ref().map(|user| user.cache_dir().join("batchla").join("kernels"));
        let tuned = user.map(|user| user.data_dir().join("batchla").join("tuned"));
        let size = variable("BATCHLA_CACHE_SIZE").filter(|value| !value.is_empty());
        let cache_bytes = size.map_or(Self::CACHE_BYTES, |size| {
            size.to_str().and_then(bytes).unwrap_or_else(|| {
                log::warn!("BATCHLA_CACHE_SIZE={} is no size such as 512MB, and not used", size.display());
                Self::CACHE_BYTES
            })
        });
        let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(folder);
        #[cfg(unix)]
        let toolkits = toolkits.chain([PathBuf::from("/usr/local/cuda")]);
        let mut unique = Vec::new();
        for toolkit in toolkits {
            if !unique.contains(&toolkit) {
                unique.push(toolkit);
            }
        }
        let device_memory = variable(DEVICE_MEMORY).map(|value| value.to_string_lossy().into_owned());
        Self {
            cache: place("BATCHLA_CACHE_DIR", cache),
            cache_bytes,
            tuned: place("BATCHLA_TUNED_DIR", tuned),
            toolkits: unique,
            device_memory: device_memory.filter(|words| !words.is_empty()),
        }
    }

    /// The bytes of a GPU's memory that a run from host memory may take; none where nothing is said.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] where what is said is no number of bytes.
    pub fn device_memory(&self) -> Result<Option<u64>, Error> {
        let Some(words) = &self.device_memory else { return Ok(None) };
        bytes(words).filter(|&bytes| bytes > 0).map(Some).ok_or_else(|| {
            Error::new(ErrorKind::Argument, "environment", format!("{DEVICE_MEMORY}={words} is no number of bytes"))
                .advise("write it as 500MB or 4GB (MB = 10^6 bytes)")
        })
    }
}

/// A size as `512MB`; MB is 10^6 bytes.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit: u64 = match text[digits..].trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(pairs: &[(&str, &str)]) -> Environment {
        Environment::from(|name| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.into()))
    }

    #[test]
    fn the_cache_goes_where_the_variable_says() {
        assert_eq!(with(&[("BATCHLA_CACHE_DIR", "/some/folder")]).cache, Some(PathBuf::from("/some/folder")));
        assert_eq!(with(&[("BATCHLA_CACHE_DIR", "off")]).cache, None);
        let default = with(&[("BATCHLA_CACHE_DIR", "")]).cache;
        assert!(default.is_none_or(|path| path.ends_with("batchla/kernels")));
    }

    #[test]
    fn a_bound_of_device_memory_is_a_number_of_bytes_or_refused() {
        let bound = |words| with(&[("BATCHLA_DEVICE_MEMORY", words)]).device_memory();
        assert_eq!((bound("").unwrap(), bound("4096").unwrap()), (None, Some(4096)));
        assert_eq!((bound("500MB").unwrap(), bound("3 GB").unwrap()), (Some(500_000_000), Some(3_000_000_000)));
        for words in ["0", "much", "-1", "5TB", "99999999999GB"] {
            assert!(bound(words).unwrap_err().to_string().contains(words));
        }
    }

    #[test]
    fn the_cache_is_bounded_as_the_variable_says_and_nonsense_is_the_default() {
        for (value, expected) in [
            ("1000", 1000),
            ("2MB", 2_000_000),
            ("3 GB", 3_000_000_000),
            ("0", 0),
            ("", Environment::CACHE_BYTES),
            ("much", Environment::CACHE_BYTES),
            ("-1", Environment::CACHE_BYTES),
            ("99999999999999999999GB", Environment::CACHE_BYTES),
        ] {
            assert_eq!(with(&[("BATCHLA_CACHE_SIZE", value)]).cache_bytes, expected, "{value}");
        }
    }

    #[test]
    fn tables_are_where_the_variable_says() {
        assert_eq!(with(&[("BATCHLA_TUNED_DIR", "/some/folder")]).tuned, Some(PathBuf::from("/some/folder")));
        assert_eq!(with(&[("BATCHLA_TUNED_DIR", "off")]).tuned, None);
        assert!(with(&[]).tuned.is_none_or(|path| path.ends_with("batchla/tuned")));
    }

    #[test]
    fn toolkits_are_named_once_and_in_order() {
        let toolkits = with(&[("CUDA_HOME", "/a"), ("CUDA_PATH", "/a")]).toolkits;
        assert_eq!(toolkits.iter().filter(|path| path.ends_with("a")).count(), 1);
        assert_eq!(toolkits[0], PathBuf::from("/a"));
    }
}
