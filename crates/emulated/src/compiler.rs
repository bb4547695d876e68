//! The host's C++ compiler in NVRTC's place: kernel text in, a shared object out.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use batchla_core::{Error, ErrorKind};
use batchla_cuda::{BASE_OPTIONS, CONFIGURATION, Compiler, DiskCache, Image, KernelSource, Specification};

use crate::Checks;

/// The stand-in for CUDA C++.
const CUDA: &str = include_str!("stand_in/cuda.h");
/// What instrumented code calls.
const CHECKS: &str = include_str!("stand_in/checks.h");

/// Copies that go on beside the thread.
const COPIES: &str = include_str!("stand_in/copies.h");

/// A change of kernel text: file, what stands there exactly once, what it becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) file: String,
    pub(crate) from: String,
    pub(crate) to: String,
}

/// A C++17 compiler of this machine.
#[derive(Debug)]
pub(crate) struct HostCompiler {
    program: OsString,
    /// The compiler in its own words.
    said: String,
    /// All that an object depends on, but its kernel.
    version: String,
    flags: Vec<&'static str>,
    checks: Checks,
    edits: Vec<Edit>,
    /// What was compiled from text as it is.
    kept: DiskCache,
}

impl HostCompiler {
    /// The compiler that `CXX` names, else the first of `c++`, `g++`, `clang++`.
    pub(crate) fn find(checks: Checks, edits: Vec<Edit>, kept: DiskCache) -> Result<Self, Error> {
        let named = env::var_os("CXX").filter(|name| !name.is_empty());
        let candidates =
            named.map_or_else(|| ["c++", "g++", "clang++"].map(OsString::from).to_vec(), |name| vec![name]);
        let found = candidates.iter().find_map(|program| Some((program, version(program)?)));
        let Some((program, said)) = found else {
            let tried: Vec<_> = candidates.iter().map(|program| program.to_string_lossy()).collect();
            let what = format!("there is no C++17 compiler: none of {} runs", tried.join(", "));
            return Err(Error::new(ErrorKind::Unavailable, "open emulator", what)
                .advise("install g++ 9 or clang++ 11 or newer, or name one in CXX"));
        };
        let flags = flags(&said, checks);
        // Whatever changes the object is part of what names it.
        let version = format!("{said} {} {CUDA} {CHECKS} {COPIES}", flags.join(" "));
        Ok(Self { program: program.clone(), said, version, flags, checks, edits, kept })
    }

    /// Whether a fault is planted in a kernel's text.
    fn is_planted(&self, source: &KernelSource) -> bool {
        let mut files = source.headers.iter().map(|header| header.0).chain([source.name]);
        files.any(|file| self.edits.iter().any(|edit| edit.file == file))
    }

    fn edited(&self, file: &str, text: &str) -> Result<String, Error> {
        let mut text = text.to_owned();
        for edit in self.edits.iter().filter(|edit| edit.file == file) {
            let count = text.matches(&edit.from).count();
            if count != 1 {
                let what = format!("{:?} is {count} times in {file}, not once", edit.from);
                return Err(Error::new(ErrorKind::Argument, "edit kernel", what));
            }
            text = text.replacen(&edit.from, &edit.to, 1);
        }
        if file == "instruction.cuh" {
            text += COPIES;
        }
        Ok(text)
    }

    fn run(&self, folder: &Path, arguments: &[&str]) -> Result<Output, Error> {
        Command::new(&self.program).args(arguments).current_dir(folder).output().map_err(|error| {
            let what = format!("{} does not run: {error}", self.program.to_string_lossy());
            Error::new(ErrorKind::Unavailable, "compile", what).caused_by(error)
        })
    }
}

fn version(program: &OsStr) -> Option<String> {
    let output = Command::new(program).arg("--version").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned))?
}

fn flags(version: &str, checks: Checks) -> Vec<&'static str> {
    // No product is fused but by name, as `--fmad=false` has it; symbols of one object are no other's.
    let mut flags = vec!["-g1", "-ffp-contract=off", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-w"];
    flags.extend(["-fno-exceptions", "-fno-rtti", "-fno-math-errno"]);
    if !version.contains("clang") {
        flags.extend(["-fno-gnu-unique", "-fno-extern-tls-init"]);
    }
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("fma") {
        flags.push("-mfma");
    }
    match checks {
        // Compiled faster, and run hardly slower.
        Checks::None => flags.push("-Og"),
        Checks::All => {
            flags.extend(["-O1", "-fsanitize=thread", "-fsanitize=undefined"]);
            // What these look at before an access, the emulator finds at it, in a third of the compiler's time.
            flags.push("-fno-sanitize=null,alignment,object-size,pointer-overflow");
        }
    }
    flags
}

/// The names of all kernels of a source.
fn kernels(text: &str) -> Vec<&str> {
    let name = |rest: &'_ str| -> Option<(usize, usize)> {
        let mut at = 0;
        loop {
            let start = at + rest[at..].find(|c: char| c.is_ascii_alphabetic() || c == '_')?;
            let end = start + rest[start..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
            match &rest[start..end] {
                "void" => at = end,
                "__launch_bounds__" => at = end + rest[end..].find(')')? + 1,
                _ => return Some((start, end)),
            }
        }
    };
    let parts = text.split("__global__").skip(1);
    parts.filter_map(|rest| name(rest).map(|(start, end)| &rest[start..end])).collect()
}

/// The oldest architecture that takes the same side of every branch on it in the texts: what is compiled once serves them all.
fn like<'a>(architecture: &str, texts: impl Iterator<Item = &'a str>) -> String {
    let number = |text: &str| text.split(|c: char| !c.is_ascii_digit()).next()?.parse::<u32>().ok();
    let branches = texts.flat_map(|text| text.split("__CUDA_ARCH__ >= ").skip(1)).filter_map(number);
    let own = number(architecture.trim_start_matches("sm_")).unwrap_or(0);
    format!("sm_{}", branches.map(|least| least / 10).filter(|&least| least <= own).max().unwrap_or(70))
}

fn failed(what: String) -> Error {
    Error::new(ErrorKind::Compile, "compile", what)
}

impl Compiler for HostCompiler {
    fn version(&self) -> Result<String, Error> {
        Ok(self.version.clone())
    }

    fn compile(&self, specification: &Specification, architecture: &str) -> Result<Image, Error> {
        let source = specification.source();
        let texts = source.headers.iter().map(|header| header.1).chain([source.text, CUDA, COPIES]);
        let architecture = &like(architecture, texts);
        if self.is_planted(source) {
            return self.object(specification, architecture);
        }
        let name = specification.digest(architecture, &self.version);
        if let Some(bytes) = self.kept.load(&name) {
            return Ok(Image { bytes, log: String::new() });
        }
        let image = self.object(specification, architecture)?;
        self.kept.store(&name, &format!("{specification} for {architecture} by {}", self.said), &image.bytes);
        Ok(image)
    }
}

impl HostCompiler {
    fn object(&self, specification: &Specification, architecture: &str) -> Result<Image, Error> {
        let source = specification.source();
        let folder = tempfile::tempdir().map_err(|error| failed(format!("no folder to compile in: {error}")))?;
        let write = |name: &str, text: &str| {
            let written = fs::write(folder.path().join(name), text);
            written.map_err(|error| failed(format!("{name} cannot be written: {error}")))
        };
        let text = self.edited(source.name, source.text)?;
        let mut main = String::from("#include \"cuda.h\"\n");
        if self.checks == Checks::All {
            main += "#include \"checks.h\"\n";
        }
        main += &format!("#include \"{}\"\n", source.name);
        kernels(&text).iter().for_each(|kernel| main += &format!("EMULATED_KERNEL({kernel})\n"));
        write("main.cpp", &main)?;
        write("cuda.h", CUDA)?;
        write("checks.h", CHECKS)?;
        write(CONFIGURATION, &specification.configuration())?;
        write(source.name, &text)?;
        for (name, text) in source.headers {
            write(name, &self.edited(name, text)?)?;
        }
        let number = architecture.trim_start_matches("sm_");
        let architecture = format!("-D__CUDA_ARCH__={number}0");
        let standard: Vec<_> = BASE_OPTIONS.iter().map(|option| option.replacen("--std", "-std", 1)).collect();
        let mut arguments: Vec<&str> = standard.iter().map(String::as_str).chain(self.flags.iter().copied()).collect();
        arguments.extend([&architecture, "-c", "main.cpp", "-o", "kernel.o"]);
        let compiled = self.run(folder.path(), &arguments)?;
        if !compiled.status.success() {
            let log = String::from_utf8_lossy(&compiled.stderr);
            return Err(failed(format!("{specification} does not compile for the host:\n{log}")));
        }
        // Apart from compiling, so that no sanitizer's library is linked: their calls come to the emulator.
        let linked = self.run(folder.path(), &["-shared", "-nostdlib", "kernel.o", "-o", "kernel.so", "-lm", "-lc"])?;
        if !linked.status.success() {
            let log = String::from_utf8_lossy(&linked.stderr);
            return Err(failed(format!("{specification} does not link for the host:\n{log}")));
        }
        let bytes = fs::read(folder.path().join("kernel.so")).map_err(|error| failed(error.to_string()))?;
        Ok(Image { bytes, log: String::from_utf8_lossy(&compiled.stderr).into_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_found_by_name_with_launch_bounds_and_without() {
        let text = "extern \"C\" __global__ void spread(int a) {}\n\
                    extern \"C\" __global__ void __launch_bounds__(A* B, C)\n    getrf(int b) {}";
        assert_eq!(kernels(text), ["spread", "getrf"]);
    }

    #[test]
    fn architectures_on_one_side_of_every_branch_share_an_object() {
        let like =
            |architecture| like(architecture, ["#if __CUDA_ARCH__ >= 800\n", "__CUDA_ARCH__ >= 900"].into_iter());
        assert_eq!(
            ["sm_70", "sm_75", "sm_80", "sm_86", "sm_90", "sm_120"].map(like),
            ["sm_70", "sm_70", "sm_80", "sm_80", "sm_90", "sm_90"]
        );
    }
}
