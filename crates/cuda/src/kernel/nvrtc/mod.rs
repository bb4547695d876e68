//! NVRTC, NVIDIA's compiler as a library: found at run time, given headers in memory, asked for machine code.

mod library;
mod program;

use std::ffi::c_int;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use batchla_core::Error;

use self::library::Nvrtc;
use super::cache::{Compiler, Image};
use super::source::Specification;

/// Which NVRTC to prefer where there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preference {
    /// The newest.
    Newest,
    /// CUDA 12's: newer ones do not compile for the GPU, or make code that its driver does not load.
    Twelve,
}

impl Preference {
    pub(crate) fn of(driver_version: u32, compute_capability: (u32, u32)) -> Self {
        if driver_version < 13_000 || compute_capability < (7, 5) { Self::Twelve } else { Self::Newest }
    }

    /// The library's names, in the order to try them.
    fn names(self) -> &'static [&'static str] {
        match (self, cfg!(windows)) {
            (Self::Newest, false) => &["libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"],
            (Self::Twelve, false) => &["libnvrtc.so.12", "libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.11.2"],
            (Self::Newest, true) => &["nvrtc64_130_0.dll", "nvrtc64_120_0.dll", "nvrtc64_112_0.dll"],
            (Self::Twelve, true) => &["nvrtc64_120_0.dll", "nvrtc64_130_0.dll", "nvrtc64_112_0.dll"],
        }
    }

    /// Whether the library of this version will do, or is only better than none.
    fn is_met_by(self, major: c_int) -> bool {
        self == Self::Newest || major <= 12
    }
}

/// Where toolkits keep their libraries.
const FOLDERS: &[&str] =
    if cfg!(windows) { &["bin", "bin/x64"] } else { &["lib64", "lib", "targets/x86_64-linux/lib"] };

/// Everywhere NVRTC may be: where the loader looks, then in toolkits.
fn candidates(toolkits: &[PathBuf], preference: Preference) -> Vec<PathBuf> {
    let names = preference.names();
    let in_toolkits = toolkits.iter().flat_map(|toolkit| FOLDERS.iter().map(|folder| toolkit.join(folder)));
    let by_path = in_toolkits.flat_map(|folder| names.iter().map(move |name| folder.join(name)));
    names.iter().map(PathBuf::from).chain(by_path).collect()
}

/// NVRTC, looked for when first needed. No GPU is needed to compile for one.
#[derive(Debug)]
pub struct LazyNvrtc {
    candidates: Vec<PathBuf>,
    preference: Preference,
    loaded: Mutex<Option<Arc<Nvrtc>>>,
}

impl LazyNvrtc {
    /// The newest of this machine: where the loader looks, then in `CUDA_HOME`, `CUDA_PATH` and the usual folder.
    pub fn newest() -> Self {
        Self::new(&crate::environment::Environment::read().toolkits, Preference::Newest)
    }

    /// The newest of one folder, whatever else this machine has.
    ///
    /// ```
    /// use batchla_cuda::{Compiler, LazyNvrtc};
    /// assert!(LazyNvrtc::in_folder("/no/such/folder").version().is_err());
    /// ```
    pub fn in_folder(folder: impl AsRef<Path>) -> Self {
        let preference = Preference::Newest;
        let candidates = preference.names().iter().map(|name| folder.as_ref().join(name)).collect();
        Self { candidates, preference, loaded: Mutex::default() }
    }

    pub(crate) fn new(toolkits: &[PathBuf], preference: Preference) -> Self {
        Self { candidates: candidates(toolkits, preference), preference, loaded: Mutex::default() }
    }

    fn get(&self) -> Result<Arc<Nvrtc>, Error> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(nvrtc) = &*loaded {
            return Ok(Arc::clone(nvrtc));
        }
        let nvrtc = Arc::new(Nvrtc::load(&self.candidates, self.preference)?);
        log::debug!("{nvrtc} from {}", nvrtc.path.display());
        Ok(Arc::clone(loaded.insert(nvrtc)))
    }
}

impl Compiler for LazyNvrtc {
    fn version(&self) -> Result<String, Error> {
        Ok(self.get()?.to_string())
    }

    fn compile(&self, specification: &Specification, architecture: &str) -> Result<Image, Error> {
        self.get()?.compile(specification, architecture)
    }
}

#[cfg(test)]
mod tests {
    use batchla_core::ErrorKind;

    use super::super::source::KernelSource;
    use super::program::{Target, target};
    use super::*;

    const SOURCE: KernelSource = KernelSource {
        name: "scale.cu",
        text: "#include \"batchla_config.h\"\n#include \"scale.cuh\"\nextern \"C\" __global__ void scale(T* x) { x[threadIdx.x] = scaled(x[threadIdx.x]); }\n",
        headers: &[("scale.cuh", "#pragma once\n__device__ inline T scaled(T x) { return x * FACTOR; }\n")],
    };

    fn scale() -> Specification {
        Specification::new(SOURCE, "scale").define("T", "double").define("FACTOR", 3)
    }

    /// The NVRTC at hand; without one the test says so, and fails where `BATCHLA_REQUIRE` names it.
    fn nvrtc() -> Option<LazyNvrtc> {
        let nvrtc = LazyNvrtc::new(&crate::environment::Environment::read().toolkits, Preference::Newest);
        match nvrtc.get() {
            Ok(_) => Some(nvrtc),
            Err(error) => {
                let required = std::env::var("BATCHLA_REQUIRE").unwrap_or_default();
                assert!(!required.split(',').any(|name| name == "nvrtc"), "{error}");
                println!("skipped: {error}");
                None
            }
        }
    }

    #[test]
    fn a_kernel_with_headers_in_memory_becomes_machine_code() {
        let Some(nvrtc) = nvrtc() else { return };
        let image = nvrtc.compile(&scale(), "sm_90").unwrap();
        assert!(image.bytes.starts_with(b"\x7fELF"), "not a CUBIN");
        assert!(image.bytes.windows(5).any(|window| window == b"scale"), "no symbol in it");
        assert!(nvrtc.version().unwrap().starts_with("NVRTC 1"));
    }

    #[test]
    fn a_compiler_of_a_folder_is_that_folders_or_none() {
        let error = LazyNvrtc::in_folder("/no/such/folder").version().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("/no/such/folder"), "{error}");
        let Some(found) = nvrtc() else { return };
        let path = found.get().unwrap().path.clone();
        let Some(folder) = path.parent().filter(|folder| folder.is_absolute()) else { return };
        assert_eq!(LazyNvrtc::in_folder(folder).version().unwrap(), found.version().unwrap());
    }

    #[test]
    fn what_the_assembler_says_of_a_kernel_is_in_the_log() {
        let Some(nvrtc) = nvrtc() else { return };
        let log = nvrtc.compile(&scale().option("--ptxas-options=-v"), "sm_80").unwrap().log;
        assert!(log.contains("Compiling entry function 'scale'") && log.contains("bytes spill stores"), "{log}");
        assert!(log.contains(" registers"), "{log}");
    }

    #[test]
    fn equal_input_compiles_to_equal_bytes() {
        let Some(nvrtc) = nvrtc() else { return };
        assert!(nvrtc.compile(&scale(), "sm_80").unwrap() == nvrtc.compile(&scale(), "sm_80").unwrap());
    }

    #[test]
    fn a_gpu_newer_than_the_compiler_gets_ptx_that_ends_in_a_zero_byte() {
        let Some(nvrtc) = nvrtc() else { return };
        let image = nvrtc.compile(&scale(), "sm_999").unwrap();
        let newest = nvrtc.get().unwrap().architectures.last().copied().unwrap();
        let text = String::from_utf8_lossy(&image.bytes).into_owned();
        assert!(text.contains(&format!(".target sm_{newest}")) && image.bytes.last() == Some(&0), "{text}");
    }

    #[test]
    fn a_gpu_that_the_compiler_has_given_up_is_refused_in_words() {
        let Some(nvrtc) = nvrtc() else { return };
        let loaded = nvrtc.get().unwrap();
        match nvrtc.compile(&scale(), "sm_70") {
            Ok(image) => assert!(loaded.version.0 < 13 && image.bytes.starts_with(b"\x7fELF")),
            Err(error) => {
                assert!(loaded.version.0 >= 13, "{error}");
                assert_eq!(error.kind(), ErrorKind::Compile);
                let text = error.to_string();
                assert!(text.contains("does not compile for sm_70: it knows sm_75 to sm_"), "{text}");
                assert!(error.advice().contains("NVRTC"), "{text}");
            }
        }
    }

    #[test]
    fn a_syntax_error_is_reported_with_its_line() {
        let Some(nvrtc) = nvrtc() else { return };
        let broken = KernelSource { name: "broken.cu", text: "\n\nint f( { return 1; }\n", headers: &[] };
        let error = nvrtc.compile(&Specification::new(broken, "f"), "sm_90").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Compile);
        assert!(error.to_string().contains("broken.cu(3): error"), "{error}");
        let log = std::error::Error::source(&error).unwrap().to_string();
        assert!(log.contains("broken.cu(3): error") && log.contains("detected in the compilation"), "{log}");
    }

    #[test]
    fn a_header_that_is_not_given_is_an_error_that_names_it() {
        let Some(nvrtc) = nvrtc() else { return };
        let source = KernelSource { headers: &[], ..SOURCE };
        let specification = Specification::new(source, "scale").define("T", "float");
        let error = nvrtc.compile(&specification, "sm_90").unwrap_err();
        assert!(error.to_string().contains("scale.cuh"), "{error}");
    }

    #[test]
    fn without_a_compiler_the_error_says_what_was_looked_for_and_what_to_install() {
        let error =
            Nvrtc::load(&["libno-such-nvrtc.so".into(), "/no/such/folder/libnvrtc.so.12".into()], Preference::Newest)
                .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        let text = error.to_string();
        assert!(text.contains("libno-such-nvrtc.so, /no/such/folder/libnvrtc.so.12"), "{text}");
        assert!(error.advice().contains("pip install nvidia-cuda-nvrtc") && text.contains("LD_LIBRARY_PATH"), "{text}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_library_that_is_no_compiler_is_named_with_the_function_it_lacks() {
        let error = Nvrtc::load(&["libm.so.6".into()], Preference::Newest).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("libm.so.6 has no function nvrtc"), "{error}");
    }

    /// A library that says it is NVRTC of this version, and has only as many of its functions as are asked for before it compiles; one that is `too_old` lacks one.
    #[cfg(target_os = "linux")]
    fn library(folder: &Path, major: c_int, too_old: bool) -> PathBuf {
        let mut text = format!(
            "int nvrtcVersion(int *major, int *minor) {{ *major = {major}; *minor = 0; return 0; }}
            int nvrtcGetNumSupportedArchs(int *count) {{ *count = 1; return 0; }}
            int nvrtcGetSupportedArchs(int *all) {{ *all = 90; return 0; }}
            const char *nvrtcGetErrorString(int code) {{ return 0; }}"
        );
        let rest = ["CreateProgram", "DestroyProgram", "CompileProgram", "GetProgramLogSize", "GetProgramLog"];
        let results = ["GetPTXSize", "GetPTX", "GetCUBINSize", "GetCUBIN"];
        for name in rest.iter().chain(&results[..if too_old { 2 } else { 4 }]) {
            text += &format!("int nvrtc{name}(void) {{ return 1; }}");
        }
        let (source, built) = (folder.join(format!("{major}.c")), folder.join(format!("{major}.so")));
        std::fs::write(&source, text).unwrap();
        // What links Rust compiles C.
        let done = std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&built, &source]).status();
        assert!(done.unwrap().success());
        built
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_compiler_that_will_not_do_hides_none_that_will() {
        let folder = tempfile::tempdir().unwrap();
        let [old, twelve, thirteen] =
            [(11, true), (12, false), (13, false)].map(|(v, old)| library(folder.path(), v, old));
        let of = |all: &[&PathBuf], preference| {
            let all: Vec<_> = all.iter().map(|&path| path.clone()).collect();
            Nvrtc::load(&all, preference).map(|nvrtc| nvrtc.version.0)
        };
        assert_eq!(of(&[&old, &thirteen, &twelve], Preference::Newest).unwrap(), 13);
        assert_eq!(of(&[&old, &thirteen, &twelve], Preference::Twelve).unwrap(), 12);
        // Where there is no other, it says itself what it does not compile for.
        assert_eq!(of(&[&old, &thirteen], Preference::Twelve).unwrap(), 13);
        let error = of(&[&old], Preference::Newest).unwrap_err();
        assert!(error.to_string().contains("11.so has no function nvrtcGetCUBIN"), "{error}");
    }

    #[test]
    fn the_nearest_older_architecture_serves_one_that_is_not_known() {
        let known = [75, 80, 90, 100, 120];
        assert_eq!(target("sm_90", &known), Ok(Target::Cubin(90)));
        assert_eq!(target("sm_103", &known), Ok(Target::Ptx(100)));
        assert_eq!(target("sm_130", &known), Ok(Target::Ptx(120)));
        assert_eq!(target("sm_70", &known), Err("it knows sm_75 to sm_120".into()));
        assert!(target("gfx90a", &known).is_err() && target("sm_90", &[]).is_err());
    }

    #[test]
    fn an_older_driver_or_gpu_prefers_the_compiler_of_its_time() {
        assert_eq!(Preference::of(12_040, (9, 0)), Preference::Twelve);
        assert_eq!(Preference::of(13_000, (7, 0)), Preference::Twelve);
        assert_eq!(Preference::of(13_000, (9, 0)), Preference::Newest);
        let all = candidates(&["/opt/cuda".into()], Preference::Newest);
        assert!(all[0].parent().is_some_and(|folder| folder.as_os_str().is_empty()), "the loader's folders first");
        assert!(all.last().is_some_and(|path| path.starts_with("/opt/cuda")));
    }
}
