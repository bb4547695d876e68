//! What a GPU offers a kernel, as plain data: of the device at hand, or of a named one for plans without a device.

use std::fmt;

/// The numbers that plans are made from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// The GPU's name.
    pub name: String,
    /// Compute capability, for example `(9, 0)`.
    pub compute_capability: (u32, u32),
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of shared memory that one block may ask for (the larger limit, which a kernel opts in to).
    pub shared_bytes_per_block: u32,
    /// Bytes of shared memory a multiprocessor.
    pub shared_bytes_per_multiprocessor: u32,
    /// Bytes of shared memory that the system takes for each block beside what it asks for.
    pub reserved_shared_bytes_per_block: u32,
    /// 32-bit registers a multiprocessor.
    pub registers_per_multiprocessor: u32,
    /// 32-bit registers a block.
    pub registers_per_block: u32,
    /// 32-bit registers a thread.
    pub registers_per_thread: u32,
    /// Threads a block.
    pub threads_per_block: u32,
    /// Threads a multiprocessor.
    pub threads_per_multiprocessor: u32,
    /// Blocks a multiprocessor.
    pub blocks_per_multiprocessor: u32,
    /// Threads a warp.
    pub warp: u32,
    /// Bytes of the level-2 cache.
    pub l2_bytes: u64,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// Whether a kernel may be compiled for one order alone where it is faster so: worth it where kernels run more often than
    /// they are compiled.
    pub exact_orders: bool,
}

/// Name, capability, multiprocessors; shared memory a block and a multiprocessor and reserved, in KiB; threads and
/// blocks a multiprocessor; level-2 cache in MiB; memory in GiB.
type Preset = (&'static str, (u32, u32), u32, (u32, u32, u32), (u32, u32), u64, u64);

/// From NVIDIA's tables of compute capabilities and data sheets.
const PRESETS: [Preset; 7] = [
    ("Tesla V100-SXM2-32GB", (7, 0), 80, (96, 96, 0), (2048, 32), 6, 32),
    ("NVIDIA A100-SXM4-80GB", (8, 0), 108, (163, 164, 1), (2048, 32), 40, 80),
    ("NVIDIA GeForce RTX 3090", (8, 6), 82, (99, 100, 1), (1536, 16), 6, 24),
    ("NVIDIA L40S", (8, 9), 142, (99, 100, 1), (1536, 24), 96, 48),
    ("NVIDIA H200", (9, 0), 132, (227, 228, 1), (2048, 32), 50, 140),
    ("NVIDIA B200", (10, 0), 148, (227, 228, 1), (2048, 32), 126, 180),
    ("NVIDIA RTX PRO 6000 Blackwell", (12, 0), 188, (99, 100, 1), (1536, 24), 128, 96),
];

impl Limits {
    /// Blocks that fit the shared memory of a multiprocessor, each with so many bytes of it.
    pub(crate) fn blocks_by_shared_bytes(&self, bytes: usize) -> usize {
        let each = bytes + self.reserved_shared_bytes_per_block as usize;
        self.shared_bytes_per_multiprocessor as usize / each.max(1)
    }

    /// The architectures that [`Limits::preset`] knows.
    pub const PRESETS: [&'static str; 7] = ["sm_70", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"];

    /// The limits of a well-known GPU of an architecture: V100 (`sm_70`), A100 (`sm_80`), RTX 3090 (`sm_86`), L40S (`sm_89`), H200
    /// (`sm_90`), B200 (`sm_100`), RTX PRO 6000 (`sm_120`).
    pub fn preset(architecture: &str) -> Option<Self> {
        PRESETS.iter().map(Self::of_preset).find(|limits| limits.architecture() == architecture)
    }

    /// The least of what some GPUs offer, each number for itself: what a kernel may use that has to run on all of them. None of no GPUs.
    ///
    /// ```
    /// use batchla_cuda::Limits;
    /// let [old, new] = ["sm_80", "sm_90"].map(|name| Limits::preset(name).expect("a preset"));
    /// let both = Limits::least([&new, &old]).expect("two GPUs");
    /// assert_eq!((both.architecture(), both.memory_bytes), ("sm_80".to_owned(), old.memory_bytes));
    /// ```
    pub fn least<'a>(all: impl IntoIterator<Item = &'a Self>) -> Option<Self> {
        all.into_iter().cloned().reduce(|a, b| Self {
            name: if a.name == b.name { a.name } else { format!("{} and {}", a.name, b.name) },
            compute_capability: a.compute_capability.min(b.compute_capability),
            multiprocessors: a.multiprocessors.min(b.multiprocessors),
            shared_bytes_per_block: a.shared_bytes_per_block.min(b.shared_bytes_per_block),
            shared_bytes_per_multiprocessor: a.shared_bytes_per_multiprocessor.min(b.shared_bytes_per_multiprocessor),
            // Taken, not offered.
            reserved_shared_bytes_per_block: a.reserved_shared_bytes_per_block.max(b.reserved_shared_bytes_per_block),
            registers_per_multiprocessor: a.registers_per_multiprocessor.min(b.registers_per_multiprocessor),
            registers_per_block: a.registers_per_block.min(b.registers_per_block),
            registers_per_thread: a.registers_per_thread.min(b.registers_per_thread),
            threads_per_block: a.threads_per_block.min(b.threads_per_block),
            threads_per_multiprocessor: a.threads_per_multiprocessor.min(b.threads_per_multiprocessor),
            blocks_per_multiprocessor: a.blocks_per_multiprocessor.min(b.blocks_per_multiprocessor),
            warp: a.warp.min(b.warp),
            l2_bytes: a.l2_bytes.min(b.l2_bytes),
            memory_bytes: a.memory_bytes.min(b.memory_bytes),
            exact_orders: a.exact_orders && b.exact_orders,
        })
    }

    fn of_preset(&(name, compute_capability, multiprocessors, shared, resident, l2, memory): &Preset) -> Self {
        Self {
            name: name.to_owned(),
            compute_capability,
            multiprocessors,
            shared_bytes_per_block: shared.0 << 10,
            shared_bytes_per_multiprocessor: shared.1 << 10,
            reserved_shared_bytes_per_block: shared.2 << 10,
            registers_per_multiprocessor: 65_536,
            registers_per_block: 65_536,
            registers_per_thread: 255,
            threads_per_block: 1024,
            threads_per_multiprocessor: resident.0,
            blocks_per_multiprocessor: resident.1,
            warp: 32,
            l2_bytes: l2 << 20,
            memory_bytes: memory << 30,
            exact_orders: true,
        }
    }

    /// The architecture as compilers name it, for example `sm_90`.
    pub fn architecture(&self) -> String {
        let (major, minor) = self.compute_capability;
        format!("sm_{major}{minor}")
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}): {} multiprocessors, {} KiB shared memory a block of {} KiB, {} threads and {} blocks each, {} MiB L2, {:.1} GiB",
            self.name,
            self.architecture(),
            self.multiprocessors,
            self.shared_bytes_per_block >> 10,
            self.shared_bytes_per_multiprocessor >> 10,
            self.threads_per_multiprocessor,
            self.blocks_per_multiprocessor,
            self.l2_bytes >> 20,
            self.memory_bytes as f64 / f64::from(1 << 30),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_found_by_its_architecture() {
        for name in Limits::PRESETS {
            let limits = Limits::preset(name).unwrap();
            assert_eq!(limits.architecture(), name);
            let taken = limits.shared_bytes_per_block + limits.reserved_shared_bytes_per_block;
            assert_eq!(taken, limits.shared_bytes_per_multiprocessor, "one block can take a multiprocessor's");
        }
        assert_eq!(Limits::preset("sm_35"), None);
    }

    #[test]
    fn limits_print_as_one_line() {
        let line = Limits::preset("sm_90").unwrap().to_string();
        assert!(
            line.starts_with("NVIDIA H200 (sm_90): 132 multiprocessors, 227 KiB") && !line.contains('\n'),
            "{line}"
        );
    }
}
