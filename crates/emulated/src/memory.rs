//! Device memory: host memory whose extent is known, and which of its words were ever written.

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The bytes that writes are remembered for together.
pub(crate) const WORD: usize = 4;

/// The driver's own alignment.
const ALIGNMENT: usize = 256;

/// What memory holds that nobody wrote: NaN for every scalar type, and no index.
pub(crate) const POISON: u8 = 0xFF;

/// One allocation.
#[derive(Debug)]
pub(crate) struct Allocation {
    start: NonNull<u8>,
    layout: Layout,
    written: Box<[AtomicBool]>,
}

// SAFETY: plain memory, reached through raw pointers by those to whom the driver's contract gives it.
unsafe impl Send for Allocation {}
// SAFETY: as above.
unsafe impl Sync for Allocation {}

impl Allocation {
    /// Memory that is not initialised, as on a device; none where the host has none.
    pub(crate) fn new(bytes: usize) -> Option<Self> {
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT).ok()?;
        // SAFETY: the layout has a size above zero.
        let start = NonNull::new(unsafe { std::alloc::alloc(layout) })?;
        // SAFETY: allocated just now, with so many bytes.
        unsafe { start.write_bytes(POISON, layout.size()) };
        let written = (0..layout.size().div_ceil(WORD)).map(|_| AtomicBool::new(false)).collect();
        Some(Self { start, layout, written })
    }

    pub(crate) fn start(&self) -> usize {
        self.start.as_ptr().expose_provenance()
    }

    pub(crate) fn len(&self) -> usize {
        self.layout.size()
    }

    /// Notes that bytes were written.
    pub(crate) fn wrote(&self, offset: usize, bytes: usize) {
        for word in &self.written[offset / WORD..(offset + bytes).div_ceil(WORD)] {
            word.store(true, Ordering::Relaxed);
        }
    }

    /// Whether any of some bytes was ever written.
    pub(crate) fn was_written(&self, offset: usize, bytes: usize) -> bool {
        self.written[offset / WORD..(offset + bytes).div_ceil(WORD)].iter().any(|word| word.load(Ordering::Relaxed))
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout; whoever could reach it holds this.
        unsafe { std::alloc::dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// All that is allocated, by address.
#[derive(Debug, Default)]
pub(crate) struct Memory(Mutex<BTreeMap<usize, Arc<Allocation>>>);

impl Memory {
    fn all(&self) -> MutexGuard<'_, BTreeMap<usize, Arc<Allocation>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn insert(&self, allocation: Allocation) -> usize {
        let start = allocation.start();
        self.all().insert(start, Arc::new(allocation));
        start
    }

    pub(crate) fn remove(&self, start: usize) -> Option<Arc<Allocation>> {
        self.all().remove(&start)
    }

    /// The allocation that holds all of some bytes, and where in it they start.
    pub(crate) fn find(&self, address: usize, bytes: usize) -> Option<(Arc<Allocation>, usize)> {
        let all = self.all();
        let (&start, allocation) = all.range(..=address).next_back()?;
        let offset = address - start;
        (offset.checked_add(bytes)? <= allocation.len()).then(|| (Arc::clone(allocation), offset))
    }

    /// Every allocation, by address.
    pub(crate) fn snapshot(&self) -> Vec<Arc<Allocation>> {
        self.all().values().cloned().collect()
    }

    /// Allocations, and their bytes.
    pub(crate) fn used(&self) -> (usize, u64) {
        let all = self.all();
        (all.len(), all.values().map(|allocation| allocation.len() as u64).sum())
    }
}
