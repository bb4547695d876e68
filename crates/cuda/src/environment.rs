//! The environment variables of this crate, read here and nowhere else.

use std::ffi::OsString;
use std::path::PathBuf;

use etcetera::BaseStrategy;

/// What the environment says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Where compiled kernels are kept; none if nowhere.
    pub cache: Option<PathBuf>,
    /// Folders of CUDA toolkits, in which NVRTC may be.
    pub toolkits: Vec<PathBuf>,
}

impl Environment {
    /// Reads `BATCHLA_CACHE_DIR` (a folder, or `off`), `CUDA_HOME` and `CUDA_PATH`.
    pub fn read() -> Self {
        Self::from(|name| std::env::var_os(name))
    }

    fn from(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let folder = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = match folder("BATCHLA_CACHE_DIR") {
            Some(value) if value.as_os_str() == "off" => None,
            Some(value) => Some(value),
            None => etcetera::choose_base_strategy().ok().map(|user| user.cache_dir().join("batchla").join("kernels")),
        };
        let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(folder);
        #[cfg(unix)]
        let toolkits = toolkits.chain([PathBuf::from("/usr/local/cuda")]);
        let mut unique = Vec::new();
        for toolkit in toolkits {
            if !unique.contains(&toolkit) {
                unique.push(toolkit);
            }
        }
        Self { cache, toolkits: unique }
    }
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
    fn toolkits_are_named_once_and_in_order() {
        let toolkits = with(&[("CUDA_HOME", "/a"), ("CUDA_PATH", "/a")]).toolkits;
        assert_eq!(toolkits.iter().filter(|path| path.ends_with("a")).count(), 1);
        assert_eq!(toolkits[0], PathBuf::from("/a"));
    }
}
