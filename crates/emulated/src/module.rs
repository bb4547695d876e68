//! A compiled kernel, loaded: its entries, where its shared arrays lie, and the source lines of its machine code.

use std::ffi::c_void;
use std::io::Write;
use std::ops::Range;

use addr2line::Loader;
use libloading::Library;
use object::{Object, ObjectSegment, ObjectSymbol, SymbolKind};
use tempfile::NamedTempFile;

use crate::hooks::Emulator;

/// A kernel that takes the addresses of its arguments.
pub(crate) type Entry = unsafe extern "C" fn(*mut *mut c_void);

/// A shared array of fixed size.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) name: String,
    /// From the dynamic shared memory's start on.
    pub(crate) offset: isize,
    pub(crate) bytes: usize,
}

/// A loaded object.
#[derive(Debug)]
pub(crate) struct Module {
    library: Library,
    /// Kept in memory, since a file would outlive a process that never drops its modules.
    object: Vec<u8>,
    /// What the object was linked at, in this process.
    base: usize,
    /// Code and constants.
    pub(crate) image: Range<usize>,
    pub(crate) shared: Vec<Shared>,
    memory: unsafe extern "C" fn() -> *mut u8,
}

impl Module {
    /// Loads an object that the host compiler made.
    pub(crate) fn load(object: &[u8]) -> Result<Self, String> {
        let in_words = |error: &dyn std::fmt::Display| format!("the object is not one of ours: {error}");
        let file = on_disk(object).map_err(|error| in_words(&error))?;
        let parsed = object::File::parse(object).map_err(|error| in_words(&error))?;
        // SAFETY: made by our own compiler from our own text; loading it runs nothing but its empty initialisers.
        let library = unsafe { Library::new(file.path()) }.map_err(|error| in_words(&error))?;
        type Attach = unsafe extern "C" fn(*const Emulator);
        // SAFETY: the stand-in defines both with these signatures.
        let (attach, memory) = unsafe {
            let attach = library.get::<Attach>(b"emulator_attach\0").map_err(|error| in_words(&error))?;
            let memory = library.get::<unsafe extern "C" fn() -> *mut u8>(b"emulator_memory\0");
            (*attach, *memory.map_err(|error| in_words(&error))?)
        };
        // SAFETY: the table is static, and laid out as the stand-in declares it.
        unsafe { attach(&raw const crate::hooks::EMULATOR) };
        let symbol = |name: &str| parsed.symbols().find(|symbol| symbol.name() == Ok(name));
        let (Some(linked), Some(dynamic)) = (symbol("emulator_attach"), symbol("memory")) else {
            return Err("the object has no table of symbols".to_owned());
        };
        let base = (attach as *const () as usize).wrapping_sub(linked.address() as usize);
        let shared = parsed
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Tls && symbol.name() != Ok("memory") && symbol.size() > 0)
            .map(|symbol| Shared {
                name: last_name(symbol.name().unwrap_or_default()),
                offset: symbol.address() as isize - dynamic.address() as isize,
                bytes: symbol.size() as usize,
            })
            .collect();
        let ends = parsed.segments().map(|segment| segment.address() + segment.size());
        let image = base..base + ends.max().unwrap_or(0) as usize;
        Ok(Self { library, object: object.to_vec(), base, image, shared, memory })
    }

    pub(crate) fn entry(&self, name: &str) -> Option<Entry> {
        // SAFETY: the stand-in defines it with this signature.
        let entry = unsafe { self.library.get::<Entry>(format!("emulator_run_{name}\0").as_bytes()) };
        entry.ok().map(|entry| *entry)
    }

    /// Where the dynamic shared memory of blocks run by this thread lies.
    pub(crate) fn memory(&self) -> *mut u8 {
        // SAFETY: it takes and changes nothing.
        unsafe { (self.memory)() }
    }

    /// Bytes of shared memory that the kernels have without asking.
    pub(crate) fn static_shared_bytes(&self) -> usize {
        self.shared.iter().map(|shared| shared.bytes).sum()
    }

    /// The source lines of an address that a call returns to: the innermost, then those it was inlined into.
    pub(crate) fn line(&self, at: usize) -> String {
        let lines = || -> Option<String> {
            let loader = Loader::new(on_disk(&self.object).ok()?.path()).ok()?;
            let mut frames = loader.find_frames((at.wrapping_sub(1).wrapping_sub(self.base)) as u64).ok()?;
            let mut lines: Vec<String> = Vec::new();
            while let Ok(Some(frame)) = frames.next() {
                let Some((file, line)) = frame.location.and_then(|place| place.file.zip(place.line)) else { continue };
                let name = file.rsplit('/').next().unwrap_or(file);
                if !["cuda.h", "checks.h", "main.cpp"].contains(&name) {
                    lines.push(format!("{name}:{line}"));
                }
            }
            lines.dedup();
            (!lines.is_empty()).then(|| lines.join(", from "))
        };
        lines().unwrap_or_else(|| "an unknown line".to_owned())
    }
}

/// A file for those who take nothing else; it is gone when dropped.
fn on_disk(object: &[u8]) -> std::io::Result<NamedTempFile> {
    let mut file = NamedTempFile::new()?;
    file.write_all(object)?;
    Ok(file)
}

/// A variable's own name, from a mangled one: the last that is preceded by its length.
fn last_name(mangled: &str) -> String {
    let starts = (0..mangled.len()).filter(|&at| mangled.is_char_boundary(at));
    let named = |at: usize| {
        let rest = &mangled[at..];
        let name = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let length: usize = rest[..rest.len() - name.len()].parse().ok()?;
        (name.len() == length || name.get(length..)?.starts_with('_')).then(|| name.get(..length))?
    };
    starts.filter_map(named).next_back().unwrap_or(mangled).to_owned()
}

#[cfg(test)]
mod tests {
    use super::last_name;

    #[test]
    fn a_shared_array_is_called_by_its_own_name() {
        assert_eq!(last_name("_ZZ5getrfE5teams"), "teams");
        assert_eq!(last_name("_ZZ14search_by_treeI5PanelILi0EEERK9CandidateRT_R4TeamiiiE4tree"), "tree");
        assert_eq!(last_name("plain"), "plain");
    }
}
