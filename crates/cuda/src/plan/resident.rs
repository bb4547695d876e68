//! The numbers of kernels that work on a matrix on chip: all of it at once, or a window of its columns.

use std::fmt;

use batchla_core::{BatchLayout, Numbers, Operation, Problem, ScalarKind, SourceKind, Transpose};

use super::chip::{has_fast_doubles, order_on_chip, tensor_step};
use super::resident_table::{Tuned, last, row, row_of_few, tuned};
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
    /// Whether each matrix had better have more threads: where there are few, or no matrix instructions.
    pub few: bool,
    /// Whether the kernel is compiled for this order alone or, where there are more panels than one, for orders of so many.
    pub exact: bool,
    /// Whether the launch gives the inverse; otherwise the factors.
    pub inverts: bool,
    /// Right-hand sides that are solved for at a time, where the launch gives solutions; 0: one a lane.
    pub solves: Option<usize>,
    /// Whether a matrix is one panel that goes from memory to registers and back.
    pub in_registers: bool,
    /// Bytes of shared memory a block whose size depends on the order.
    pub dynamic_shared_bytes: usize,
}

/// Crews of four warps with all registers, of which a multiprocessor has so many at once.
const FEW_A_MULTIPROCESSOR: usize = 2;

/// Rows that one warp can hold, and a byte can count.
pub(super) const MOST_ORDER: usize = 256;

/// Whether a problem is one that a launch may solve from matrices to solutions: one matrix for all is factored once.
fn solves(problem: &Problem) -> bool {
    let one_each = problem.a().batch() == problem.out().batch();
    problem.operation() == Operation::Solve && problem.transpose() == Transpose::None && one_each
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
        let Tuned { order: last, panel, rows, helpers, registers, window, tensor, receipt } = if self.few {
            row_of_few(scalar, self.inverts, order)
        } else {
            row(scalar, self.inverts, self.solves.is_some(), order)
        }?;
        let what = if self.inverts { "inverse" } else { "LU" };
        let tensor = u8::from(tensor);
        let numbers = format!(
            "panel={panel} rows={rows} window={window} helpers={helpers} registers={registers} tensor={tensor}"
        );
        let served = if self.solves.is_some() { last.max(panel) } else { last };
        Some(Numbers {
            row: format!("{what} on chip, {scalar}, orders up to {served}: {numbers}"),
            receipt: receipt.clone(),
        })
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
        let sides = solves(problem).then(|| problem.right_hand_sides());
        let few = problem.a().batch() <= FEW_A_MULTIPROCESSOR * limits.multiprocessors as usize;
        let sized = |inverts| Self::sized(request, (scalar, order, few), sides, limits, inverts);
        let plan = sized(inverts)?;
        if plan.is_none() && inverts { sized(false) } else { Ok(plan) }
    }

    /// How the last rows and columns of a large matrix are factored, in place: by windows. Nothing where there is no room, or no more than a window.
    pub(super) fn finishing(scalar: ScalarKind, order: usize, limits: &Limits) -> Option<Self> {
        let by_windows = row(scalar, false, false, order).is_some_and(|row| row.window > 0 && row.window < order);
        // The table has no windows for what is small: the planner leaves nothing as small.
        let name = if by_windows { "resident" } else { "resident:panel=8,rows=1,helpers=1,window=16" };
        let plan = Self::sized(&Request::parse(name).ok()?, (scalar, order, false), None, limits, false).ok()??;
        (plan.window > 0).then_some(plan)
    }

    fn sized(
        request: &Request<'_>,
        (scalar, order, few): (ScalarKind, usize, bool),
        sides: Option<usize>,
        limits: &Limits,
        inverts: bool,
    ) -> Result<Option<Self>, String> {
        let solves = sides.is_some();
        // Where there are no matrix instructions no columns of doubles are held in registers, which is what the rows for many are for.
        let apart = row_of_few(scalar, inverts, order).filter(|row| few || row.tensor && !has_fast_doubles(limits));
        let own = apart.or(row(scalar, inverts, solves, order)).unwrap_or(tuned(order, 8, 1, 0, 128));
        let pack = 16 / scalar_bytes(scalar);
        let exact = request.number_or("exact", 0..=1, usize::from(limits.exact_orders))? == 1;
        // Without the order the compiler keeps a wide panel in memory: up to 47 KB a thread, 12 GB of an H200's, which launches ran out of.
        let widest = if exact || !limits.exact_orders { own.panel } else { own.panel.min(8) };
        let usual = widest.min(order.next_multiple_of(pack)).max(pack).max(2);
        let panel = request.number_or("panel", 2..=64, usual)?;
        if !panel.is_multiple_of(pack) {
            return Err(format!("panels of {panel} columns are no whole {pack}, which 16 bytes hold"));
        }
        let helpers = request.number_or("helpers", 0..=8, own.helpers)?;
        let in_registers = exact && helpers == 0 && (1..=panel).contains(&order);
        let on_chip = if in_registers { order } else { order_on_chip(order, panel) };
        let needed = on_chip.div_ceil(WARP);
        let own_rows = if own.by_thread() && !in_registers { 1 } else { own.rows };
        let rows = request.number_or("rows", 1..=MOST_ORDER / WARP, own_rows.max(needed))?;
        if rows < needed || on_chip > MOST_ORDER {
            return Err(format!(
                "{WARP} threads of {rows} rows cannot hold a panel of order {on_chip}: {needed} rows are needed, of at most {}",
                MOST_ORDER / WARP
            ));
        }
        let threads = if helpers > 0 { WARP } else { on_chip.div_ceil(rows).next_power_of_two() };
        let rows = match (threads, order) {
            (1, _) => on_chip,
            // Threads of several rows look the last one up, and there is none.
            (_, 0) => 1,
            _ => rows,
        };
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
        let teams = match rows {
            _ if threads == 1 => 2 * WARP,
            1 => (block / crew).max(1),
            // An inverse by one warp alone.
            2.. if inverts && !in_registers && crew == WARP => 4,
            _ => (WARP / crew).max(1),
        };
        let mut plan = Self {
            panel,
            threads,
            rows,
            window: 0,
            helpers,
            teams,
            blocks: 1,
            tensor,
            few: apart.is_some(),
            exact,
            inverts,
            solves: None,
            in_registers,
            dynamic_shared_bytes: 0,
        };
        if let Some(sides) = sides.filter(|_| in_registers) {
            // Of many, each lane has one.
            let own = if 2 * sides >= threads { 0 } else { sides.clamp(1, pack).next_power_of_two() };
            plan.solves = Some(request.number_or("solve-columns", 0..=8, own)?);
        }
        let limit = limits.shared_bytes_per_block as usize;
        let fits =
            |plan: &Self| plan.fixed_bytes(scalar) <= STATIC_SHARED_BYTES && plan.shared_bytes(scalar, order) <= limit;
        let least_teams = (WARP / crew).max(1);
        let by_windows = |window| Self { teams: least_teams, panel: usual, window, ..plan.clone() };
        // The table's window or, on a smaller chip, the widest that there is room for, of 32 columns at most.
        let whole = if own.window < order { own.window } else { 0 };
        let narrower = (1..=32 / own.panel)
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
        // Sixteen rows at a time come from registers to where those of a panel are solved for.
        if plan.window > 0 && tensor && !16usize.is_multiple_of(panel) {
            return Err(format!("windows by matrix instructions need panels that divide 16 columns, not of {panel}"));
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
        // Right-hand sides take some beside; as measured (`benches/record/nvidia-h200/2026-11-29/choices-registers-solution.csv`).
        let beside = match scalar {
            _ if plan.solves.is_none() => 0,
            ScalarKind::F32 => 40,
            ScalarKind::F64 | ScalarKind::C32 => 16,
            ScalarKind::C64 => 0,
        };
        let registers = request.number_or("registers", 24..=255, (own.registers + beside).min(255))?;
        let by_registers = resident_blocks(crew * plan.teams, registers, limits);
        plan.blocks = request.number_or("blocks", 1..=32, by_registers)?;
        plan.dynamic_shared_bytes = plan.dynamic_bytes(scalar, order);
        Ok(Some(plan))
    }

    /// Whether a thread has a matrix of its own.
    pub(crate) fn by_thread(&self) -> bool {
        self.in_registers && self.threads == 1 && self.solves.is_none()
    }

    /// The kernel.
    pub(crate) fn entry(&self) -> &'static str {
        match (self.inverts, self.solves) {
            (true, _) => "getrf_getri",
            (false, None) => "getrf",
            (false, Some(_)) => "gesv",
        }
    }

    /// Threads that work on one matrix.
    pub fn crew(&self) -> usize {
        self.threads + self.helpers * WARP
    }

    /// The last order at which that was faster by windows, none of whose columns are held in registers: `benches/record/nvidia-h200/2026-11-24/odd-by-windows.csv`.
    const LAST_ODD_BY_WINDOWS: usize = 104;

    /// From this order on inverses of complex doubles gain by copies through L1: `benches/record/nvidia-h200/2026-11-27/odd-inverse.csv`.
    const FIRST_BY_LINES: usize = 61;

    /// Whether columns of `layout` begin on and off a pack of doubles in turn, and on chip are to do so too, so that they are copied by packs: not for inverses
    /// and not for wide matrices by windows, which lose more by it than by copies of single elements. Or on and off a sector of L2, where copies of complex doubles had better go
    /// through L1: of inverses of the largest orders alone.
    pub(crate) fn odd(&self, scalar: ScalarKind, layout: &BatchLayout) -> bool {
        let (strides, order) = (layout.strides(), layout.rows());
        let odd = strides.row == 1 && order % 2 == 1 && strides.col % 2 == 1;
        let gains = match (scalar, self.inverts) {
            (ScalarKind::F64, false) => self.window == 0 || order <= Self::LAST_ODD_BY_WINDOWS,
            (ScalarKind::C64, true) => order >= Self::FIRST_BY_LINES,
            _ => false,
        };
        odd && gains && self.tensor
    }

    /// What a kernel compiled for the order knows of it: all, or how many panels there are.
    pub(crate) fn order_class(&self, order: usize) -> usize {
        if order <= self.panel { order } else { order_on_chip(order, self.panel) }
    }
}

impl fmt::Display for ResidentPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { panel, threads, rows, window, helpers, teams, blocks, tensor, exact, inverts, solves, .. } = self;
        let what = if *inverts {
            "inverse"
        } else if solves.is_some() {
            "solution"
        } else {
            "LU"
        };
        write!(
            f,
            "{what} on chip panel={panel} threads={threads} rows={rows} window={window} helpers={helpers} teams={teams} blocks={blocks}"
        )?;
        write!(f, " tensor={} exact={}", u8::from(*tensor), u8::from(*exact))?;
        solves.map_or(Ok(()), |columns| write!(f, " solve-columns={columns}"))
    }
}
