//! Where what lies on chip: bytes of shared memory, as `resident.cuh`, `lookahead.cuh` and `panel.cuh` have it.

use batchla_core::ScalarKind;

use super::{ResidentPlan, WARP, scalar_bytes};
use crate::limits::Limits;

/// The order of a matrix on chip, where it has whole panels; what is beyond it is the identity.
pub(super) fn order_on_chip(order: usize, panel: usize) -> usize {
    order.next_multiple_of(panel).max(panel)
}

impl ResidentPlan {
    /// What depends on the order: `Chip` of `resident.cuh`.
    pub(super) fn dynamic_bytes(&self, scalar: ScalarKind, order: usize) -> usize {
        if self.in_registers {
            return 0;
        }
        let order = order_on_chip(order, self.panel);
        let bytes = scalar_bytes(scalar);
        let stride = column_stride(scalar, order, self.window > 0);
        let (columns, done, beside, origin) = match (self.window, self.front(scalar, order)) {
            (0, _) => (order, 0, 0, 1),
            // Registers are scarce, and bytes take some to be read.
            (window, Some(front)) => (window, (order - 1) / window, front, 4),
            (window, None) => (window, (order - 1) / window, 2 * self.panel * stride, 1),
        };
        let places = columns.div_ceil(self.panel) + done;
        let inverts = usize::from(self.inverts);
        let one = (stride * columns + beside) * bytes
            + order.next_multiple_of(16) * (origin + size_of::<u8>() + inverts * bytes + places);
        self.teams * (one + self.stagger(one, (self.threads * bytes).max(16)))
    }

    /// Elements of the rows of U that are beside a window whose columns are held in registers, if they are: `held.cuh`.
    fn front(&self, scalar: ScalarKind, order: usize) -> Option<usize> {
        const MOST_REGISTERS: usize = 160;
        let step = tensor_step(scalar).filter(|_| self.tensor)?;
        let warps = self.crew() / WARP;
        let columns = self.window.div_ceil(warps).next_multiple_of(step);
        let height = if self.exact { order } else { self.rows * WARP }.next_multiple_of(16);
        let registers = height * columns * scalar_bytes(scalar) / (WARP * size_of::<u32>());
        let pack = 16 / scalar_bytes(scalar);
        let column = (self.panel.div_ceil(pack) | 1) * pack;
        let holds = self.window >= 2 * self.panel && columns <= 2 * step && registers <= MOST_REGISTERS;
        holds.then_some(warps * columns * column)
    }

    /// What does not: `Staggered<Shared>` of `lookahead.cuh`, or the passages of `thread.cuh`.
    pub(super) fn fixed_bytes(&self, scalar: ScalarKind) -> usize {
        if self.by_thread() {
            let (order, pack) = (self.rows, 16 / scalar_bytes(scalar));
            let length = if (order * order).is_multiple_of(pack) { pack } else { 1 };
            let elements = ((order * order / length) | 1) * length * scalar_bytes(scalar);
            let places = if self.inverts { 0 } else { (order | 1) * 4 };
            return self.teams * (elements + places);
        }
        let (exchanges, lines) = if self.in_registers { (1, 1) } else { (2, self.panel) };
        let exchanges = exchanges * (2 * self.panel * 4).next_multiple_of(16);
        let upper = lines * line_bytes(scalar, self.panel);
        let one = election_bytes(scalar, self.panel, self.threads) + exchanges + upper;
        self.teams * (one + 16 + self.stagger(one + 16, 16))
    }

    /// By how much something is to be longer, so that `own` bytes of neighbouring teams of a warp lie in neighbouring banks.
    fn stagger(&self, bytes: usize, own: usize) -> usize {
        const BANKS: usize = 128;
        if self.threads == WARP { 0 } else { (2 * BANKS + own % BANKS - bytes % BANKS) % BANKS }
    }

    pub(super) fn shared_bytes(&self, scalar: ScalarKind, order: usize) -> usize {
        self.fixed_bytes(scalar) + self.dynamic_bytes(scalar, order)
    }
}

/// Elements from a column on chip to the next: `Resident::stride_of` of `resident.cuh`. `window`: not all columns of a matrix are on chip.
pub(super) fn column_stride(scalar: ScalarKind, order: usize, window: bool) -> usize {
    let pack = 16 / scalar_bytes(scalar);
    let packs = order.div_ceil(pack) | 1;
    let more = match packs % 8 {
        7 if window && pack == 1 => 4,
        1 if window && pack == 1 => 2,
        _ => 0,
    };
    (packs + more) * pack
}

/// Columns that a step of matrix instructions multiplies; none where there are no such instructions for the type.
pub(super) fn tensor_step(scalar: ScalarKind) -> Option<usize> {
    match scalar {
        ScalarKind::F64 => Some(8),
        ScalarKind::C64 => Some(4),
        ScalarKind::F32 | ScalarKind::C32 => None,
    }
}

/// Whether matrix instructions for doubles are faster than others: on data-centre GPUs.
pub(super) fn has_fast_doubles(limits: &Limits) -> bool {
    matches!(limits.compute_capability, (8, 0) | (9 | 10, _))
}

/// Bytes of a line of a block column in shared memory.
pub(super) fn line_bytes(scalar: ScalarKind, columns: usize) -> usize {
    (columns.div_ceil(16 / scalar_bytes(scalar)) + 1) * 16
}

/// `Election` of `panel.cuh`.
pub(super) fn election_bytes(scalar: ScalarKind, panel: usize, threads: usize) -> usize {
    let warps = threads.div_ceil(WARP);
    let row = panel.div_ceil(16 / scalar_bytes(scalar)) * 16;
    let told = 2 * scalar_bytes(scalar) + if warps > 1 { 8 } else { 0 };
    let candidate = ((row + told).div_ceil(16) | 1) * 16;
    let (kept, lines) = if warps <= 2 { (panel, 0) } else { (2, panel) };
    // The first zero pivot, and where warps meet.
    let others = 16;
    kept * warps * candidate + lines * line_bytes(scalar, panel) + others
}
