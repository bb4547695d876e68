//! The library: found, loaded, asked what it is.

use std::ffi::{CStr, c_char, c_int};
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use batchla_core::{Error, ErrorKind};
use libloading::Library;

use super::Preference;

pub(super) type Program = *mut std::ffi::c_void;

macro_rules! symbols {
    ($($name:ident($($argument:ty),*);)*) => {
        #[allow(non_snake_case)]
        pub(super) struct Symbols {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> c_int,)*
            nvrtcGetErrorString: unsafe extern "C" fn(c_int) -> *const c_char,
            // Never unloaded: it keeps state of its own.
            _library: ManuallyDrop<Library>,
        }

        impl Symbols {
            fn of(library: Library, path: &Path) -> Result<Self, Error> {
                Ok(Self {
                    $($name: {
                        // SAFETY: the function of this name has this signature in every NVRTC since CUDA 11.2.
                        let symbol = unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) };
                        *symbol.map_err(|cause| missing_symbol(path, stringify!($name), cause))?
                    },)*
                    nvrtcGetErrorString: {
                        // SAFETY: as above.
                        let symbol = unsafe { library.get(b"nvrtcGetErrorString\0") };
                        *symbol.map_err(|cause| missing_symbol(path, "nvrtcGetErrorString", cause))?
                    },
                    _library: ManuallyDrop::new(library),
                })
            }
        }
    };
}

symbols! {
    nvrtcVersion(*mut c_int, *mut c_int);
    nvrtcGetNumSupportedArchs(*mut c_int);
    nvrtcGetSupportedArchs(*mut c_int);
    nvrtcCreateProgram(*mut Program, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char);
    nvrtcDestroyProgram(*mut Program);
    nvrtcCompileProgram(Program, c_int, *const *const c_char);
    nvrtcGetProgramLogSize(Program, *mut usize);
    nvrtcGetProgramLog(Program, *mut c_char);
    nvrtcGetCUBINSize(Program, *mut usize);
    nvrtcGetCUBIN(Program, *mut c_char);
    nvrtcGetPTXSize(Program, *mut usize);
    nvrtcGetPTX(Program, *mut c_char);
}

fn missing_symbol(path: &Path, name: &str, cause: libloading::Error) -> Error {
    let what = format!("{} has no function {name}", path.display());
    Error::new(ErrorKind::Unavailable, "load NVRTC", what)
        .advise("install NVRTC 11.2 or newer, best the one of CUDA 12 or 13")
        .caused_by(cause)
}

/// A loaded NVRTC.
pub(super) struct Nvrtc {
    pub(super) symbols: Symbols,
    pub(super) path: PathBuf,
    pub(super) version: (c_int, c_int),
    /// Compute capabilities that it compiles for, as 90 for 9.0; ascending.
    pub(super) architectures: Vec<c_int>,
}

impl Nvrtc {
    /// The first library of the candidates that is as preferred, else the first that can be used.
    pub(super) fn load(candidates: &[PathBuf], preference: Preference) -> Result<Self, Error> {
        let (mut causes, mut unusable, mut other) = (Vec::new(), None, None);
        for path in candidates {
            // What names no folder is the loader's to find; what does need not be tried where nothing is.
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            if folder.is_some() && !path.exists() {
                continue;
            }
            if let Some(folder) = folder {
                preload_builtins(folder);
            }
            // SAFETY: a compiler's initialisers only prepare itself.
            let library = match unsafe { Library::new(path) } {
                Ok(library) => library,
                Err(cause) => {
                    causes.push(cause);
                    continue;
                }
            };
            match Symbols::of(library, path).and_then(|symbols| Self::of(symbols, path.clone())) {
                Ok(nvrtc) if preference.is_met_by(nvrtc.version.0) => return Ok(nvrtc),
                Ok(nvrtc) => other = other.or(Some(nvrtc)),
                // One that is too old does not hide another.
                Err(error) => unusable = unusable.or(Some(error)),
            }
        }
        match (other, unusable) {
            (Some(nvrtc), _) => return Ok(nvrtc),
            (None, Some(error)) => return Err(error),
            (None, None) => {}
        }
        let names: Vec<_> = candidates.iter().map(|path| path.display().to_string()).collect();
        let what = format!("there is no NVRTC, which compiles kernels: none of {} could be loaded", names.join(", "));
        let error = Error::new(ErrorKind::Unavailable, "load NVRTC", what).advise(
            "install the CUDA toolkit and set CUDA_HOME, or `pip install nvidia-cuda-nvrtc` and put the folder of libnvrtc into LD_LIBRARY_PATH",
        );
        Err(match causes.into_iter().next() {
            Some(cause) => error.caused_by(cause),
            None => error,
        })
    }

    fn of(symbols: Symbols, path: PathBuf) -> Result<Self, Error> {
        let mut this = Self { symbols, path, version: (0, 0), architectures: Vec::new() };
        let (mut major, mut minor, mut count) = (0, 0, 0);
        // SAFETY: writes two numbers.
        this.check("nvrtcVersion", unsafe { (this.symbols.nvrtcVersion)(&mut major, &mut minor) })?;
        // SAFETY: writes one number.
        this.check("nvrtcGetNumSupportedArchs", unsafe { (this.symbols.nvrtcGetNumSupportedArchs)(&mut count) })?;
        let mut architectures = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: writes as many numbers as it said.
        let code = unsafe { (this.symbols.nvrtcGetSupportedArchs)(architectures.as_mut_ptr()) };
        this.check("nvrtcGetSupportedArchs", code)?;
        architectures.sort_unstable();
        this.version = (major, minor);
        this.architectures = architectures;
        Ok(this)
    }

    pub(super) fn check(&self, call: &str, code: c_int) -> Result<(), Error> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: gives a string of static lifetime for any number, or null.
        let text = unsafe { (self.symbols.nvrtcGetErrorString)(code) };
        // SAFETY: not null, and ends in a zero byte.
        let text = if text.is_null() { "error".into() } else { unsafe { CStr::from_ptr(text) }.to_string_lossy() };
        Err(Error::new(ErrorKind::Compile, "compile", format!("{text} ({code}), reported by {call} of {self}")))
    }
}

/// NVRTC opens a second library by name, where the loader looks; from a folder of its own it must be there already.
fn preload_builtins(folder: &Path) {
    let Ok(files) = std::fs::read_dir(folder) else { return };
    for file in files.flatten() {
        let name = file.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("libnvrtc-builtins.so") || name.starts_with("nvrtc-builtins64_") {
            // SAFETY: it holds data for the compiler.
            if let Ok(library) = unsafe { Library::new(file.path()) } {
                std::mem::forget(library);
            }
        }
    }
}

impl fmt::Display for Nvrtc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NVRTC {}.{}", self.version.0, self.version.1)
    }
}

impl fmt::Debug for Nvrtc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nvrtc").field("version", &self.version).field("path", &self.path).finish_non_exhaustive()
    }
}
