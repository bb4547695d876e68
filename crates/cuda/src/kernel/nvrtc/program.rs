//! One compilation: source and headers in, machine code or PTX and the log out.

use std::ffi::{CString, c_char, c_int};
use std::ptr::null_mut;

use batchla_core::{Error, ErrorKind};

use super::library::{Nvrtc, Program};
use crate::kernel::cache::Image;
use crate::kernel::source::{CONFIGURATION, Specification};

/// NVRTC found its second library nowhere.
const BUILTINS_MISSING: c_int = 7;

impl Nvrtc {
    /// What to compile for on behalf of an architecture: itself, or, where it is not known, the nearest older one's PTX.
    fn target(&self, architecture: &str) -> Result<Target, Error> {
        target(architecture, &self.architectures).map_err(|why| {
            Error::new(ErrorKind::Compile, "compile", format!("{self} does not compile for {architecture}: {why}"))
                .advise("install the NVRTC of another CUDA version: 12's compiles for sm_50 to sm_121")
        })
    }

    pub(super) fn compile(&self, specification: &Specification, architecture: &str) -> Result<Image, Error> {
        let target = self.target(architecture)?;
        let source = specification.source();
        let configuration = specification.configuration();
        let headers = source.headers.iter().copied().chain([(CONFIGURATION, configuration.as_str())]);
        let (names, texts): (Vec<_>, Vec<_>) = headers.unzip();
        let (names, texts) = (strings(names)?, strings(texts)?);
        let (name, text) = (string(source.name)?, string(source.text)?);
        let options = strings(std::iter::once(target.option().as_str()).chain(specification.options()))?;
        let count = c_int::try_from(names.len()).unwrap_or(c_int::MAX);
        let mut program = OwnedProgram { nvrtc: self, program: null_mut() };
        // SAFETY: all strings end in zero bytes and live through the call, which copies them; as many names as texts.
        let code = unsafe {
            (self.symbols.nvrtcCreateProgram)(
                &mut program.program,
                text.as_ptr(),
                name.as_ptr(),
                count,
                pointers(&texts).as_ptr(),
                pointers(&names).as_ptr(),
            )
        };
        self.check("nvrtcCreateProgram", code)?;
        let count = c_int::try_from(options.len()).unwrap_or(c_int::MAX);
        // SAFETY: as many options as said, each ending in a zero byte.
        let code = unsafe { (self.symbols.nvrtcCompileProgram)(program.program, count, pointers(&options).as_ptr()) };
        let log = program.log();
        self.check("nvrtcCompileProgram", code).map_err(|error| match code {
            BUILTINS_MISSING => error.advise("put the folder of libnvrtc-builtins into LD_LIBRARY_PATH"),
            _ => self.failed(specification, architecture, &log),
        })?;
        Ok(Image { bytes: program.image(target)?, log })
    }

    /// The first lines of the log; the whole of it is the source.
    fn failed(&self, specification: &Specification, architecture: &str, log: &str) -> Error {
        let lines: Vec<_> = log.lines().filter(|line| !line.trim().is_empty()).take(6).collect();
        let what = format!("{self} refused {specification} for {architecture}: {}", lines.join("\n"));
        Error::new(ErrorKind::Compile, "compile", what).caused_by(log)
    }
}

/// What a kernel is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Machine code.
    Cubin(c_int),
    /// PTX, which the driver of a newer GPU compiles on.
    Ptx(c_int),
}

impl Target {
    fn option(self) -> String {
        match self {
            Self::Cubin(number) => format!("--gpu-architecture=sm_{number}"),
            Self::Ptx(number) => format!("--gpu-architecture=compute_{number}"),
        }
    }
}

pub(super) fn target(architecture: &str, known: &[c_int]) -> Result<Target, String> {
    let number = architecture.strip_prefix("sm_").and_then(|number| number.parse().ok());
    let number: c_int = number.ok_or("an architecture is written like sm_90")?;
    match known.iter().rev().find(|&&known| known <= number) {
        Some(&exact) if exact == number => Ok(Target::Cubin(number)),
        Some(&older) => Ok(Target::Ptx(older)),
        None => {
            let (first, last) = (known.first().unwrap_or(&0), known.last().unwrap_or(&0));
            Err(format!("it knows sm_{first} to sm_{last}"))
        }
    }
}

fn string(text: &str) -> Result<CString, Error> {
    let holds_zero = |_| Error::new(ErrorKind::Argument, "compile", "a source or an option holds a zero byte");
    CString::new(text).map_err(holds_zero)
}

fn strings<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Vec<CString>, Error> {
    texts.into_iter().map(string).collect()
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|string| string.as_ptr()).collect()
}

/// A program of NVRTC's.
struct OwnedProgram<'a> {
    nvrtc: &'a Nvrtc,
    program: Program,
}

impl OwnedProgram<'_> {
    fn log(&self) -> String {
        let symbols = &self.nvrtc.symbols;
        let bytes = self.bytes("log", symbols.nvrtcGetProgramLogSize, symbols.nvrtcGetProgramLog).unwrap_or_default();
        String::from_utf8_lossy(&bytes).trim_end_matches(['\0', '\n']).to_owned()
    }

    fn image(&self, target: Target) -> Result<Vec<u8>, Error> {
        let symbols = &self.nvrtc.symbols;
        match target {
            Target::Cubin(_) => self.bytes("CUBIN", symbols.nvrtcGetCUBINSize, symbols.nvrtcGetCUBIN),
            Target::Ptx(_) => self.bytes("PTX", symbols.nvrtcGetPTXSize, symbols.nvrtcGetPTX),
        }
    }

    fn bytes(
        &self,
        what: &str,
        size: unsafe extern "C" fn(Program, *mut usize) -> c_int,
        get: unsafe extern "C" fn(Program, *mut c_char) -> c_int,
    ) -> Result<Vec<u8>, Error> {
        let mut len = 0;
        // SAFETY: writes one number.
        self.nvrtc.check(what, unsafe { size(self.program, &mut len) })?;
        let mut bytes = vec![0u8; len];
        // SAFETY: writes as many bytes as it said.
        self.nvrtc.check(what, unsafe { get(self.program, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }
}

impl Drop for OwnedProgram<'_> {
    fn drop(&mut self) {
        if !self.program.is_null() {
            // SAFETY: created, and destroyed once.
            unsafe { (self.nvrtc.symbols.nvrtcDestroyProgram)(&mut self.program) };
        }
    }
}
