//! Kernel source text, what it is specialised to, and the digest that names the result.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// The name under which kernel sources include their constants.
pub const CONFIGURATION: &str = "batchla_config.h";

/// The options that every kernel is compiled with, before its own.
pub const BASE_OPTIONS: &[&str] = &["--std=c++17"];

/// The static text of a kernel and of the headers it includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelSource {
    /// The file's name, for messages.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
    /// Every header that it includes, directly or not: the name in the `#include`, and the text.
    pub headers: &'static [(&'static str, &'static str)],
}

/// A kernel, specialised: which source, which constants, which symbol.
///
/// ```
/// use batchla_cuda::{KernelSource, Specification};
/// let source = KernelSource { name: "getrf.cu", text: "#include \"batchla_config.h\"\n", headers: &[] };
/// let specification = Specification::new(source, "getrf").define("N", 21).define("T", "double");
/// assert_eq!(specification.configuration(), "#pragma once\n#define N 21\n#define T double\n");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Specification {
    source: KernelSource,
    entry: String,
    constants: Vec<(String, String)>,
    options: Vec<String>,
}

impl Specification {
    /// The kernel `entry` (an `extern "C"` symbol) of a source.
    pub fn new(source: KernelSource, entry: impl Into<String>) -> Self {
        Self { source, entry: entry.into(), constants: Vec::new(), options: Vec::new() }
    }

    /// Adds a line to the generated header.
    #[must_use]
    pub fn define(mut self, name: impl Into<String>, value: impl fmt::Display) -> Self {
        self.constants.push((name.into(), value.to_string()));
        self
    }

    /// Adds an option of the compiler, for example `--fmad=false`.
    #[must_use]
    pub fn option(mut self, option: impl Into<String>) -> Self {
        self.options.push(option.into());
        self
    }

    /// The source.
    pub fn source(&self) -> &KernelSource {
        &self.source
    }

    /// The kernel's symbol.
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// The constants, in order.
    pub fn constants(&self) -> &[(String, String)] {
        &self.constants
    }

    /// The generated header's text.
    pub fn configuration(&self) -> String {
        let lines = self.constants.iter().map(|(name, value)| format!("#define {name} {value}\n"));
        std::iter::once("#pragma once\n".to_owned()).chain(lines).collect()
    }

    /// All options but the architecture.
    pub fn options(&self) -> impl Iterator<Item = &str> {
        BASE_OPTIONS.iter().copied().chain(self.options.iter().map(String::as_str))
    }

    /// What names the compiled result: this crate's version, all text, all options, the architecture, and the compiler with its
    /// version. The symbol is not part of it, so that kernels of one source share one result.
    pub fn digest(&self, architecture: &str, compiler: &str) -> Digest {
        let mut hash = Sha256::new();
        // Each part with its length, so that no two lists of parts read the same.
        let mut part = |part: &str| {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        };
        for text in [env!("CARGO_PKG_VERSION"), architecture, compiler] {
            part(text);
        }
        for text in [self.source.name, self.source.text, &self.configuration()] {
            part(text);
        }
        part(&self.source.headers.len().to_string());
        for (name, text) in self.source.headers {
            part(name);
            part(text);
        }
        self.options().for_each(part);
        Digest(hash.finalize().into())
    }

    /// What is kept beside the compiled result, for people: all that its digest is of, in words.
    pub fn about(&self, architecture: &str, compiler: &str) -> String {
        format!("{self} for {architecture} by {compiler}")
    }
}

impl fmt::Display for Specification {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.entry, self.source.name)?;
        for (i, (name, value)) in self.constants.iter().enumerate() {
            write!(f, "{}{name}={value}", if i == 0 { " (" } else { ", " })?;
        }
        f.write_str(if self.constants.is_empty() { "" } else { ")" })
    }
}

/// The name of a compiled kernel: SHA-256, printed in hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const SOURCE: KernelSource = KernelSource { name: "a.cu", text: "text", headers: &[("h.cuh", "header")] };

    fn base() -> Specification {
        Specification::new(SOURCE, "entry").define("N", 3).option("--fmad=false")
    }

    #[test]
    fn the_digest_tells_apart_whatever_may_change_the_code() {
        let source = |source: KernelSource| Specification { source, ..base() };
        let all = [
            base().digest("sm_90", "NVRTC 13.0"),
            base().digest("sm_80", "NVRTC 13.0"),
            base().digest("sm_90", "NVRTC 12.9"),
            base().define("M", 1).digest("sm_90", "NVRTC 13.0"),
            base().option("-G").digest("sm_90", "NVRTC 13.0"),
            Specification::new(SOURCE, "entry").define("N", 4).option("--fmad=false").digest("sm_90", "NVRTC 13.0"),
            source(KernelSource { name: "b.cu", ..SOURCE }).digest("sm_90", "NVRTC 13.0"),
            source(KernelSource { text: "texts", ..SOURCE }).digest("sm_90", "NVRTC 13.0"),
            source(KernelSource { headers: &[], ..SOURCE }).digest("sm_90", "NVRTC 13.0"),
            source(KernelSource { headers: &[("h.cuh", "other")], ..SOURCE }).digest("sm_90", "NVRTC 13.0"),
            source(KernelSource { headers: &[("h.cuhh", "eader")], ..SOURCE }).digest("sm_90", "NVRTC 13.0"),
        ];
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
    }

    #[test]
    fn kernels_of_one_source_share_one_digest_and_equal_input_gives_equal_digests() {
        let other = Specification { entry: "other".into(), ..base() };
        assert_eq!(base().digest("sm_90", "c"), other.digest("sm_90", "c"));
        assert_eq!(base().digest("sm_90", "c").to_string().len(), 64);
    }

    #[test]
    fn a_specification_prints_what_it_is() {
        assert_eq!(base().define("T", "double").to_string(), "entry of a.cu (N=3, T=double)");
    }
}
