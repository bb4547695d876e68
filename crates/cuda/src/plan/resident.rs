//! The numbers of kernels that work on a matrix on chip: all of it at once, or a window of its columns.

use std::fmt;

use batchla_core::{Numbers, Operation, Problem, Receipt, ScalarKind, SourceKind, Transpose};

use super::{Request, STATIC_SHARED_BYTES, WARP, resident_blocks, scalar_bytes};
use crate::limits::Limits;

/// How a matrix is factored, or inverted at once, on chip: it lies in shared memory, and one crew of threads works on it. Where there is no room for all of it,
/// or more matrices at a time are faster, it is factored by windows of some columns.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResidentPlan {
    /// Columns of a panel.
    pub panel: usize,
    /// Threads that factor panels: one warp, or less.
    pub threads: usize,
    /// Rows of a panel that such a thread holds in registers.
    pub rows: usize,
    /// Columns that are on chip at a time; 0: all.
    pub window: usize,
    /// Warps beside those, which bring the columns behind the panel up to date meanwhile.
    pub helpers: usize,
    /// Matrices a block.
    pub teams: usize,
    /// Blocks a multiprocessor that the compiler leaves room for.
    pub blocks: usize,
    /// Whether products go by the matrix instructions for doubles. The bits are the same.
    pub tensor: bool,
    /// Whether the kernel is compiled for this order alone or, where there are more panels than one, for orders of so many.
    pub exact: bool,
    /// Whether the launch gives the inverse; otherwise the factors.
    pub inverts: bool,
    /// Right-hand sides that are solved for at a time, where the launch gives solutions; otherwise 0.
    pub solves: usize,
    /// Whether a matrix is one panel that goes from memory to registers and back.
    pub in_registers: bool,
    /// Bytes of shared memory a block whose size depends on the order.
    pub dynamic_shared_bytes: usize,
}

/// Up to which order, which panel, rows a thread (more where the order needs them), helpers, registers a thread and window are best, and whether by matrix
/// instructions.
#[derive(Clone, Copy)]
struct Tuned {
    order: usize,
    panel: usize,
    rows: usize,
    helpers: usize,
    registers: usize,
    window: usize,
    tensor: bool,
}

const fn tuned(order: usize, panel: usize, rows: usize, helpers: usize, registers: usize) -> Tuned {
    Tuned { order, panel, rows, helpers, registers, window: 0, tensor: false }
}

const fn tensor(order: usize, panel: usize, rows: usize, helpers: usize, registers: usize) -> Tuned {
    Tuned { tensor: true, ..tuned(order, panel, rows, helpers, registers) }
}

const fn window(window: usize, row: Tuned) -> Tuned {
    Tuned { window, ..row }
}

/// Beyond the last row left-looking plans are faster or, where the kernel inverts, LU and inversion by windows. Measured on an H200, 2026-11-21 and, up to order 48,
/// 2026-11-22: orders up to 36 one by one (batches of 10 000, of 100 000 at 8 and 16), above at 48, 64, 80, 96, 112, 128, 160, 190 (batches of 10 000) and 256
/// (batches of 4 000).
fn table(scalar: ScalarKind, inverts: bool) -> &'static [Tuned] {
    const F32: &[Tuned] = &[
        tuned(4, 4, 1, 0, 64),
        tuned(8, 8, 1, 0, 64),
        tuned(16, 16, 1, 0, 56),
        tuned(32, 32, 1, 0, 80),
        tuned(36, 36, 2, 0, 128),
        tuned(48, 8, 2, 0, 128),
        tuned(64, 8, 2, 1, 96),
        tuned(96, 8, 3, 2, 128),
        tuned(112, 8, 4, 2, 168),
        tuned(128, 8, 4, 3, 128),
        window(32, tuned(160, 8, 1, 1, 168)),
        window(32, tuned(256, 8, 1, 1, 255)),
    ];
    const F32_INVERSE: &[Tuned] = &[
        tuned(4, 4, 1, 0, 64),
        tuned(16, 16, 1, 0, 64),
        tuned(32, 32, 1, 0, 128),
        tuned(36, 36, 2, 0, 168),
        tuned(48, 8, 2, 0, 128),
        tuned(64, 8, 2, 1, 128),
        tuned(96, 8, 3, 2, 128),
        tuned(128, 8, 4, 3, 128),
    ];
    const F64: &[Tuned] = &[
        tuned(4, 4, 1, 0, 64),
        tuned(16, 16, 1, 0, 80),
        tuned(20, 20, 1, 0, 96),
        tuned(32, 32, 1, 0, 128),
        tuned(36, 36, 2, 0, 168),
        tensor(40, 8, 2, 0, 168),
        tensor(48, 8, 2, 1, 128),
        tensor(64, 8, 2, 1, 168),
        tensor(80, 8, 3, 2, 168),
        window(48, tensor(96, 8, 1, 1, 255)),
        window(32, tensor(128, 8, 1, 1, 255)),
        window(16, tensor(176, 8, 1, 1, 255)),
        window(48, tensor(192, 8, 1, 3, 255)),
        window(32, tensor(256, 8, 1, 3, 255)),
    ];
    const F64_INVERSE: &[Tuned] = &[
        tuned(8, 8, 1, 0, 64),
        tuned(12, 12, 1, 0, 80),
        tuned(16, 16, 1, 0, 96),
        tuned(20, 20, 1, 0, 128),
        tuned(32, 32, 1, 0, 168),
        tensor(48, 8, 2, 1, 128),
        tensor(64, 8, 2, 1, 168),
        tensor(72, 8, 3, 1, 255),
    ];
    const C32: &[Tuned] = &[
        tuned(4, 4, 1, 0, 64),
        tuned(8, 8, 1, 0, 128),
        tuned(16, 16, 1, 0, 80),
        tuned(20, 20, 1, 0, 96),
        tuned(32, 32, 1, 0, 128),
        tuned(48, 8, 2, 0, 168),
        tuned(64, 8, 2, 1, 168),
        tuned(80, 8, 3, 1, 255),
        window(32, tuned(160, 8, 1, 1, 255)),
        window(16, tuned(192, 8, 1, 1, 255)),
    ];
    const C32_INVERSE: &[Tuned] = &[
        tuned(4, 4, 1, 0, 64),
        tuned(8, 8, 1, 0, 96),
        tuned(28, 28, 1, 0, 128),
        tuned(32, 8, 1, 0, 128),
        tuned(64, 8, 2, 1, 168),
        tuned(80, 8, 3, 2, 168),
    ];
    const C64: &[Tuned] = &[
        tuned(4, 4, 1, 0, 80),
        tuned(6, 6, 1, 0, 96),
        tuned(8, 8, 1, 0, 168),
        tuned(12, 12, 1, 0, 96),
        tuned(16, 16, 1, 0, 255),
        tuned(28, 28, 1, 0, 168),
        tuned(32, 32, 1, 0, 255),
        tensor(48, 8, 2, 0, 255),
        tensor(64, 8, 2, 1, 255),
        window(16, tensor(96, 8, 1, 1, 255)),
    ];
    const C64_INVERSE: &[Tuned] = &[
        tuned(4, 4, 1, 0, 80),
        tuned(8, 8, 1, 0, 168),
        tuned(12, 12, 1, 0, 128),
        tuned(16, 16, 1, 0, 255),
        tuned(24, 24, 1, 0, 200),
        tuned(32, 4, 1, 0, 112),
        tensor(64, 8, 2, 1, 255),
    ];
    match (scalar, inverts) {
        (ScalarKind::F32, false) => F32,
        (ScalarKind::F32, true) => F32_INVERSE,
        (ScalarKind::F64, false) => F64,
        (ScalarKind::F64, true) => F64_INVERSE,
        (ScalarKind::C32, false) => C32,
        (ScalarKind::C32, true) => C32_INVERSE,
        (ScalarKind::C64, false) => C64,
        (ScalarKind::C64, true) => C64_INVERSE,
    }
}

/// Rows that one warp can hold, and a byte can count.
pub(super) const MOST_ORDER: usize = 256;

pub(super) const RECEIPT: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-21",
    "batchla bench plans resident:panel=…,rows=…,blocks=…,teams=… at orders 48 to 256; no record was kept",
);
/// Of orders up to 48.
const SMALL: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-22",
    "batchla bench plans resident:panel=…,rows=…,blocks=…,teams=…: benches/record/nvidia-h200/2026-11-22/choices-lu.csv",
);
const SMALL_INVERSE: Receipt = Receipt::new(
    "NVIDIA H200",
    "2026-11-22",
    "batchla bench plans --inverse resident:panel=…,rows=…,blocks=…: benches/record/nvidia-h200/2026-11-22/choices-inverse.csv",
);

/// Whether a problem is one that a launch may solve from matrices to solutions: one matrix for all is factored once.
fn solves(problem: &Problem) -> bool {
    let one_each = problem.a().batch() == problem.out().batch();
    problem.operation() == Operation::Solve && problem.transpose() == Transpose::None && one_each
}

/// The last order of a table.
fn last(scalar: ScalarKind, inverts: bool) -> usize {
    table(scalar, inverts).last().map_or(0, |row| row.order)
}

/// The order of a matrix on chip, where it has whole panels; what is beyond it is the identity.
fn order_on_chip(order: usize, panel: usize) -> usize {
    order.next_multiple_of(panel).max(panel)
}

impl ResidentPlan {
    /// The last order at which such plans are faster than left-looking ones.
    pub(super) fn best_up_to(problem: &Problem) -> usize {
        let last = |inverts| last(problem.scalar(), inverts);
        last(false).max(if problem.operation() == Operation::Invert { last(true) } else { 0 })
    }

    /// The row of the table that the plan of a problem is from; the last one beyond it.
    pub(super) fn row(&self, problem: &Problem) -> Option<Numbers> {
        let (scalar, order) = (problem.scalar(), problem.order());
        let rows = table(scalar, self.inverts);
        let &Tuned { order: last, panel, rows, helpers, registers, window, tensor } =
            rows.iter().find(|row| order <= row.order).or(rows.last())?;
        let what = if self.inverts { "inverse" } else { "LU" };
        let tensor = u8::from(tensor);
        let numbers = format!(
            "panel={panel} rows={rows} window={window} helpers={helpers} registers={registers} tensor={tensor}"
        );
        let receipt = match (last <= 48, self.inverts) {
            (false, _) => RECEIPT,
            (true, false) => SMALL,
            (true, true) => SMALL_INVERSE,
        };
        Some(Numbers { row: format!("{what} on chip, {scalar}, orders up to {last}: {numbers}"), receipt })
    }

    /// Whether the planner chooses such a plan by itself.
    pub(super) fn is_best(problem: &Problem, limits: &Limits) -> bool {
        let served = problem.order() <= Self::best_up_to(problem);
        served && matches!(Self::choose(&Request::default(), problem, limits), Ok(Some(_)))
    }

    /// Nothing where the problem starts from factors, or the chip is too small for a matrix. An inversion is one launch where that is faster, or LU is not on chip;
    /// otherwise, or where a window of either is asked for, the plan is of LU alone.
    pub(super) fn choose(request: &Request<'_>, problem: &Problem, limits: &Limits) -> Result<Option<Self>, String> {
        let (scalar, order) = (problem.scalar(), problem.order());
        if problem.source() == SourceKind::Factors || order > MOST_ORDER {
            return Ok(None);
        }
        let inverts = problem.operation() == Operation::Invert
            && request.number("inverse-window", 0..=MOST_ORDER)?.is_none_or(|window| window == 0)
            && match request.number("window", 0..=MOST_ORDER)? {
                Some(window) => window == 0,
                None => order <= last(scalar, true) || order > last(scalar, false),
            };
        let plan = Self::sized(request, problem, limits, inverts)?;
        if plan.is_none() && inverts { Self::sized(request, problem, limits, false) } else { Ok(plan) }
    }

    fn sized(request: &Request<'_>, problem: &Problem, limits: &Limits, inverts: bool) -> Result<Option<Self>, String> {
        let (scalar, order) = (problem.scalar(), problem.order());
        let table = table(scalar, inverts);
        let own = table.iter().find(|row| order <= row.order).or(table.last()).copied();
        let own = own.unwrap_or(tuned(order, 8, 1, 0, 128));
        let pack = 16 / scalar_bytes(scalar);
        let panel = request.number_or("panel", 2..=64, own.panel.min(order.next_multiple_of(pack)).max(pack).max(2))?;
        if !panel.is_multiple_of(pack) {
            return Err(format!("panels of {panel} columns are no whole {pack}, which 16 bytes hold"));
        }
        let helpers = request.number_or("helpers", 0..=8, own.helpers)?;
        let exact = request.number_or("exact", 0..=1, usize::from(limits.exact_orders))? == 1;
        let in_registers = exact && helpers == 0 && (1..=panel).contains(&order);
        let on_chip = if in_registers { order } else { order_on_chip(order, panel) };
        let needed = on_chip.div_ceil(WARP);
        let rows = request.number_or("rows", 1..=MOST_ORDER / WARP, own.rows.max(needed))?;
        if rows < needed || on_chip > MOST_ORDER {
            return Err(format!(
                "{WARP} threads of {rows} rows cannot hold a panel of order {on_chip}: {needed} rows are needed, of at most {}",
                MOST_ORDER / WARP
            ));
        }
        let threads = if helpers > 0 { WARP } else { on_chip.div_ceil(rows).next_power_of_two() };
        let can = threads == WARP && tensor_step(scalar).is_some_and(|step| panel.is_multiple_of(step));
        let tensor =
            request.number_or("tensor", 0..=1, usize::from(own.tensor && can && has_fast_doubles(limits)))? == 1;
        if tensor && !can {
            return Err(format!(
                "matrix instructions need doubles, whole warps and panels of whole steps; not {scalar}, {threads} threads, {panel} columns"
            ));
        }
        let crew = threads + helpers * WARP;
        // Blocks of one warp for small crews, but for the shortest rows, and where a matrix is one panel, but for the largest inverse.
        let small = crew <= 8 && !(in_registers && order * scalar_bytes(scalar) <= 16);
        let single = small || in_registers && crew == WARP && !(inverts && order == WARP);
        let block = if single { WARP } else { 2 * WARP };
        let teams = if rows > 1 { (WARP / crew).max(1) } else { (block / crew).max(1) };
        let mut plan = Self {
            panel,
            threads,
            rows,
            window: 0,
            helpers,
            teams,
            blocks: 1,
            tensor,
            exact,
            inverts,
            solves: if in_registers && solves(problem) {
                problem.right_hand_sides().clamp(1, pack).next_power_of_two()
            } else {
                0
            },
            in_registers,
            dynamic_shared_bytes: 0,
        };
        let limit = limits.shared_bytes_per_block as usize;
        let fits =
            |plan: &Self| plan.fixed_bytes(scalar) <= STATIC_SHARED_BYTES && plan.shared_bytes(scalar, order) <= limit;
        let least_teams = (WARP / crew).max(1);
        let by_windows = |window: usize| Self { teams: least_teams, panel: own.panel, window, ..plan.clone() };
        // The table's window or, on a smaller chip, the largest that there is room for.
        let whole = if own.window < order { own.window } else { 0 };
        let narrower = (1..=4)
            .rev()
            .map(|panels| panels * own.panel)
            .filter(|&window| window < order && !inverts && threads == WARP);
        let Some(window) = [whole].into_iter().chain(narrower).find(|&window| fits(&by_windows(window))) else {
            return Ok(None);
        };
        // Whole panels, also where another panel was asked for.
        let window = if window > 0 { (window / panel).max(1) * panel } else { 0 };
        plan.window = request.number_or("window", 0..=MOST_ORDER, window)?;
        if plan.window >= order {
            plan.window = 0;
        }
        if plan.window > 0 && (inverts || threads != WARP || !plan.window.is_multiple_of(panel)) {
            return Err(format!(
                "windows of {} columns are for whole panels of {panel} and whole warps, not {threads} threads",
                plan.window
            ));
        }
        if plan.window > 0 {
            plan.teams = 1;
        }
        while plan.teams > least_teams && !fits(&plan) {
            plan.teams /= 2;
        }
        plan.teams = request.number_or("teams", 1..=256, plan.teams)?;
        if plan.teams > 1 && crew > WARP || !(crew * plan.teams).is_multiple_of(WARP) {
            return Err(format!(
                "{} matrices a block need crews of one warp at most that make whole warps, not of {crew} threads",
                plan.teams
            ));
        }
        if !fits(&plan) {
            return Err(format!(
                "{} matrices a block with panels of {panel} columns take {} bytes of shared memory beside {} that are there without asking, of at \
                 most {limit} and {STATIC_SHARED_BYTES}",
                plan.teams,
                plan.dynamic_bytes(scalar, order),
                plan.fixed_bytes(scalar)
            ));
        }
        // Right-hand sides take some beside; how many are best was not measured.
        let beside = if plan.solves > 0 { 40 } else { 0 };
        let registers = request.number_or("registers", 24..=255, (own.registers + beside).min(255))?;
        let by_registers = resident_blocks(crew * plan.teams, registers, limits);
        plan.blocks = request.number_or("blocks", 1..=32, by_registers)?;
        plan.dynamic_shared_bytes = plan.dynamic_bytes(scalar, order);
        Ok(Some(plan))
    }

    /// The kernel.
    pub(crate) fn entry(&self) -> &'static str {
        match (self.inverts, self.solves) {
            (true, _) => "getrf_getri",
            (false, 0) => "getrf",
            (false, _) => "gesv",
        }
    }

    /// Threads that work on one matrix.
    pub fn crew(&self) -> usize {
        self.threads + self.helpers * WARP
    }

    /// What a kernel compiled for the order knows of it: all, or how many panels there are.
    pub(crate) fn order_class(&self, order: usize) -> usize {
        if order <= self.panel { order } else { order_on_chip(order, self.panel) }
    }

    /// What depends on the order: `Chip` of `resident.cuh`.
    fn dynamic_bytes(&self, scalar: ScalarKind, order: usize) -> usize {
        if self.in_registers {
            return 0;
        }
        let order = order_on_chip(order, self.panel);
        let bytes = scalar_bytes(scalar);
        let (columns, done, beside) = match self.window {
            0 => (order, 0, 0),
            window => (window, ((order - 1) / window).next_multiple_of(4), 2 * self.panel),
        };
        let stride = column_stride(scalar, order, self.tensor && self.window > 0);
        let inverts = usize::from(self.inverts);
        let one = stride * (columns + beside) * bytes
            + order.next_multiple_of(16)
                * (4 + inverts * (bytes + 4) + columns.div_ceil(self.panel).next_multiple_of(4) + done);
        self.teams * (one + self.stagger(one, (self.threads * bytes).max(16)))
    }

    /// What does not: `Staggered<Shared>` of `lookahead.cuh`.
    fn fixed_bytes(&self, scalar: ScalarKind) -> usize {
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

/// Elements from a column on chip to the next: `Resident::stride_of` of `resident.cuh`. `by_tensor`: windows whose products go by matrix instructions.
pub(super) fn column_stride(scalar: ScalarKind, order: usize, by_tensor: bool) -> usize {
    let pack = 16 / scalar_bytes(scalar);
    if by_tensor && pack == 2 { (order + 3) / 8 * 8 + 4 } else { (order.div_ceil(pack) | 1) * pack }
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
    let (kept, lines) = if warps <= 2 { (panel, 1) } else { (2, panel) };
    (kept * warps * candidate + lines * line_bytes(scalar, panel) + (5 * panel + 2) * 4).next_multiple_of(16)
}

impl fmt::Display for ResidentPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { panel, threads, rows, window, helpers, teams, blocks, tensor, exact, inverts, solves, .. } = self;
        let what = if *inverts {
            "inverse"
        } else if *solves > 0 {
            "solution"
        } else {
            "LU"
        };
        write!(
            f,
            "{what} on chip panel={panel} threads={threads} rows={rows} window={window} helpers={helpers} teams={teams} blocks={blocks}"
        )?;
        write!(f, " tensor={} exact={}", u8::from(*tensor), u8::from(*exact))
    }
}
