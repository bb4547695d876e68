//! The factorisation's numbers.

use std::fmt;

use batchla_core::ScalarKind;

use super::blocked::{self, Strips};
use super::chip::{election_bytes, has_fast_doubles, line_bytes, tensor_step};
use super::streamed_table::{Tuned, table, tuned};
use super::{Family, Request, STATIC_SHARED_BYTES, WARP, resident_blocks, scalar_bytes, spread};
use crate::limits::Limits;

/// On which side of a factored panel the work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Looking {
    /// A panel takes its updates from the left, just before it is factored.
    Left,
    /// A factored panel updates everything on its right.
    Right,
}

/// How rows are interchanged beside the panel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Interchange {
    /// One exchange after another, on both sides at once.
    Serial,
    /// All of a panel's at once, on both sides.
    Grouped,
    /// All at once on the left; on the right when a panel is loaded.
    Delayed,
}

/// How a pivot is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Search {
    /// Within each warp, then among the warps: one barrier.
    Warps,
    /// By a binary tree in shared memory: a barrier a level.
    Tree,
}

/// How `A = P L U` is computed: one team of threads a matrix.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GetrfPlan {
    /// Columns of a panel.
    pub panel: usize,
    /// Threads that work on one matrix.
    pub threads: usize,
    /// Rows of the panel that a thread holds in registers; 0: the panel lies in shared memory.
    pub rows: usize,
    /// Columns of the streamed part that are fetched at a time.
    pub ahead: usize,
    /// How many such fetches shared memory has room for; 0: they go to registers.
    pub stages: usize,
    /// Whether the update from the left goes by matrix instructions.
    pub tensor: bool,
    /// Matrices a block.
    pub teams: usize,
    /// Blocks a multiprocessor that the compiler leaves room for.
    pub blocks: usize,
    /// See [`Looking`].
    pub looking: Looking,
    /// See [`Interchange`].
    pub interchange: Interchange,
    /// See [`Search`].
    pub search: Search,
    /// Bytes of shared memory a block whose size depends on the order.
    pub dynamic_shared_bytes: usize,
    /// Where LU goes by many launches; what is above is then the panel's.
    pub steps: Option<Steps>,
    /// Whether each matrix is shared out to many blocks, a launch a panel: for few matrices.
    pub spread: bool,
    /// Where LU goes strip by strip: of each the factors, and then what the columns behind it take.
    pub strips: Option<Strips>,
}

/// A right-looking LU by many launches, as MAGMA's slides on batched LU have it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Steps {
    /// Columns that one launch factors.
    pub width: usize,
    /// How many such panels there are before columns beyond the next panel are updated, by all of them at once.
    pub together: usize,
    /// Whether each matrix is updated by a launch of its own, dealt out over some streams.
    pub streamed: bool,
    /// How columns are updated.
    pub update: Box<GetrfPlan>,
}

/// Threads of a block of small matrices.
const SMALL_BLOCK: usize = 128;

impl GetrfPlan {
    pub(super) fn choose(
        family: &Family,
        request: &Request<'_>,
        scalar: ScalarKind,
        order: usize,
        limits: &Limits,
    ) -> Result<Self, String> {
        if family.spread {
            let plan = Self::tile(family, request, (spread::numbers(scalar, order), None), scalar, order, limits)?;
            return Ok(Self { spread: true, ..plan });
        }
        if family.strips {
            let strips = Strips::choose(request, scalar, order, limits)?;
            let own = blocked::numbers(scalar, order);
            return Self::tile(family, request, (own, Some(strips)), scalar, order, limits);
        }
        let row = table(scalar).iter().find(|row| order <= row.order && !family.shared_panel);
        let own = row.copied().unwrap_or(tuned(order, 8, 0, [8, 0], 128));
        let Some(stepwise) = family.steps else {
            return Self::tile(family, request, (own, None), scalar, order, limits);
        };

        let registers = own.registers.max(128);
        let (panel, ahead) = (own.panel.min(8), own.ahead.min(8));
        let columns = Tuned { panel, ahead, stages: 0, registers, tensor: false, ..own };
        let update = Self::tile(family, request, (columns, None), scalar, order, limits)?;
        let inner = if stepwise.blocked_panel { update.clone() } else { Self { panel: 1, ahead: 1, ..update.clone() } };
        let (width, together) =
            (request.number_or("width", 1..=64, 32)?, request.number_or("together", 1..=64, stepwise.together)?);
        if !width.is_multiple_of(update.panel) || inner.teams > 1 {
            return Err(format!("panels of {width} columns are no whole blocks of {}", update.panel));
        }
        let steps = Steps { width, together, streamed: stepwise.streamed, update: Box::new(update) };
        let dynamic_shared_bytes = inner.dynamic_bytes(scalar, order);
        Ok(Self { dynamic_shared_bytes, steps: Some(steps), ..inner })
    }

    /// One kernel's numbers: the table's, or those asked for, as far as the GPU has room.
    fn tile(
        family: &Family,
        request: &Request<'_>,
        (own, strips): (Tuned, Option<Strips>),
        scalar: ScalarKind,
        order: usize,
        limits: &Limits,
    ) -> Result<Self, String> {
        let Family { looking, interchange, search, .. } = *family;
        let limit = limits.shared_bytes_per_block as usize;
        let most = limits.threads_per_block as usize;
        let rows = request.number_or("rows", 0..=8, own.rows)?;
        // A block has one tree, so no matrices share one.
        let shares = family.in_one_launch() && search != Search::Tree && rows == 1;
        let threads = match rows {
            0 => order.next_multiple_of(WARP).clamp(WARP, 256),
            1 if order <= WARP && shares => order.next_power_of_two().max(4),
            rows => order.div_ceil(rows).next_multiple_of(WARP).max(WARP),
        };
        let threads = request.number_or("threads", 4..=most, threads)?;
        let whole = threads.is_multiple_of(WARP) || (threads < WARP && threads.is_power_of_two() && shares);
        if !whole || (rows > 0 && threads * rows < order) || threads > most {
            return Err(format!(
                "{threads} threads of {rows} rows cannot hold a panel of order {order}: threads come in warps of {WARP}, or in powers of two below \
                 that with one row each, and at most {most}"
            ));
        }
        let (teams, blocks, dynamic_shared_bytes) = (1, 1, 0);
        let mut plan = Self {
            panel: own.panel,
            threads,
            rows,
            ahead: own.ahead,
            stages: if rows > 0 { own.stages } else { 0 },
            tensor: false,
            teams,
            blocks,
            looking,
            interchange,
            search,
            dynamic_shared_bytes,
            steps: None,
            spread: false,
            strips,
        };
        while rows == 0 && plan.panel > 1 && plan.shared_bytes(scalar, order) > limit {
            // In shared memory, as wide as it fits.
            plan.panel /= 2;
        }
        // A lane solves one column of U.
        plan.panel = request.number_or("panel", 1..=WARP, plan.panel)?;
        if threads < WARP {
            plan.panel = plan.panel.min(threads);
        }
        while plan.stages > 0 && !plan.panel.is_multiple_of(plan.ahead) {
            plan.ahead -= 1;
        }
        if let Some(Strips { width, .. }) =
            plan.strips.as_ref().filter(|strips| !strips.width.is_multiple_of(plan.panel))
        {
            return Err(format!("strips of {width} columns are no whole panels of {}", plan.panel));
        }
        plan.choose_streaming(family, request, own.tensor && has_fast_doubles(limits), scalar)?;

        if shares && threads <= WARP {
            plan.teams = SMALL_BLOCK / threads;
        }
        let least_teams = (WARP / threads).max(1);
        while plan.teams > least_teams && plan.fixed_bytes(scalar) > STATIC_SHARED_BYTES {
            plan.teams /= 2;
        }
        plan.teams = request.number_or("teams", 1..=256, plan.teams)?;
        if plan.teams > 1 && (threads > WARP || rows == 0 || search == Search::Tree) {
            return Err(format!(
                "{} matrices a block need teams of one warp at most with rows in registers, and no tree, not {threads} threads",
                plan.teams
            ));
        }
        if !(threads * plan.teams).is_multiple_of(WARP) {
            return Err(format!("{} teams of {threads} threads are no whole warps", plan.teams));
        }
        let fixed = plan.fixed_bytes(scalar);
        if fixed > STATIC_SHARED_BYTES {
            return Err(format!(
                "a panel of {} columns takes {fixed} bytes of shared memory, {STATIC_SHARED_BYTES} are there",
                plan.panel
            ));
        }
        let registers = request.number_or("registers", 24..=255, own.registers)?;
        let blocks = resident_blocks(threads * plan.teams, registers, limits);
        plan.blocks = request.number_or("blocks", 1..=32, blocks)?;
        let wanted = plan.tensor;
        plan.fit_stages(scalar, order, limits);
        plan.tensor &= plan.stages > 0;
        if wanted && !plan.tensor && request.number("tensor", 0..=1)?.is_some() {
            return Err(format!(
                "order {order} leaves no room for stages of {} columns, which matrix instructions need, in the {} bytes of shared memory that {} has for a block",
                plan.ahead, limit, limits.name
            ));
        }
        plan.stages = request.number_or("stages", 0..=16, plan.stages)?;
        if plan.stages == 1
            || (plan.stages == 0 && plan.tensor)
            || (plan.stages > 0 && (rows == 0 || !plan.panel.is_multiple_of(plan.ahead)))
        {
            return Err(format!(
                "{} stages of {} columns do not make panels of {} in registers: two or more whole ones do",
                plan.stages, plan.ahead, plan.panel
            ));
        }
        let all = plan.shared_bytes(scalar, order);
        if all > limit {
            return Err(format!(
                "order {order} needs {all} bytes of shared memory a block, {} has {limit}",
                limits.name
            ));
        }
        plan.dynamic_shared_bytes = plan.dynamic_bytes(scalar, order);
        Ok(plan)
    }

    /// Whether the streamed part goes by matrix instructions (as `wanted` unless other numbers that are asked for forbid it), and how many columns are fetched at a time.
    fn choose_streaming(
        &mut self,
        family: &Family,
        request: &Request<'_>,
        wanted: bool,
        scalar: ScalarKind,
    ) -> Result<(), String> {
        let delays =
            self.looking == Looking::Left && self.interchange == Interchange::Delayed && family.in_one_launch();
        let (ahead, stages) = (request.number("ahead", 1..=64)?, request.number_or("stages", 0..=16, self.stages)?);
        let step = tensor_step(scalar)
            .filter(|step| delays && stages > 0 && self.threads > WARP && self.panel.is_multiple_of(*step));
        let free = step.is_some() && ahead.is_none_or(|ahead| Some(ahead) == step);
        self.tensor = self.strips.is_none() && request.number_or("tensor", 0..=1, usize::from(wanted && free))? == 1;
        self.ahead = match step {
            _ if !self.tensor => ahead.unwrap_or(self.ahead).min(self.panel),
            Some(step) => {
                self.stages = stages;
                request.number_or("ahead", step..=step, step)?
            }
            None => {
                return Err(format!(
                    "matrix instructions need doubles, more than one warp, stages and panels of whole steps; not {scalar}, {} threads, {} columns",
                    self.threads, self.panel
                ));
            }
        };
        Ok(())
    }

    /// As many stages of the streamed part as leave room for all the blocks that registers do; none where even the fewest are too many.
    fn fit_stages(&mut self, scalar: ScalarKind, order: usize, limits: &Limits) {
        let fits = |plan: &Self, blocks: usize| {
            let bytes = plan.shared_bytes(scalar, order);
            bytes <= limits.shared_bytes_per_block as usize && blocks <= limits.blocks_by_shared_bytes(bytes)
        };
        let ahead = self.ahead;
        while self.stages > 2 && !fits(self, self.blocks) {
            self.stages -= 1;
        }
        while self.stages > 0 && !self.tensor && self.ahead.is_multiple_of(2) && !fits(self, self.blocks) {
            self.ahead /= 2;
        }
        while self.stages > 0 && self.blocks > 1 && !fits(self, self.blocks) {
            self.blocks -= 1;
        }
        if !fits(self, 1) {
            (self.stages, self.ahead) = (0, ahead);
        }
    }

    /// Whether diagonal blocks stay in shared memory.
    fn keeps_diagonal(&self) -> bool {
        self.stages > 0 && self.looking == Looking::Left
    }

    /// What depends on the order: `Shared` of `team.cuh`.
    fn dynamic_bytes(&self, scalar: ScalarKind, order: usize) -> usize {
        let places = order.next_multiple_of(self.threads) * 4;
        let (elements, positions) = match self.rows {
            0 => ((order + 1) * self.panel, 2 * places),
            rows => (self.stages * self.ahead * rows * self.threads, places),
        };
        let factored = self.strips.as_ref().map_or(order, |strips| strips.width.min(order));
        let lines = if self.keeps_diagonal() { factored.next_multiple_of(self.panel) } else { 0 };
        let elements = (elements * scalar_bytes(scalar)).next_multiple_of(16);
        self.teams * (elements + lines * line_bytes(scalar, self.panel) + positions.next_multiple_of(16))
    }

    /// How rows of `L` go to their places at the end.
    pub(crate) fn settling(&self, scalar: ScalarKind, order: usize) -> Self {
        let own = Self {
            looking: Looking::Right,
            interchange: Interchange::Grouped,
            stages: 0,
            ahead: self.panel,
            strips: None,
            ..self.clone()
        };
        Self { dynamic_shared_bytes: own.dynamic_bytes(scalar, order), ..own }
    }

    /// All shared memory of a block.
    pub(super) fn shared_bytes(&self, scalar: ScalarKind, order: usize) -> usize {
        self.fixed_bytes(scalar) + self.dynamic_bytes(scalar, order)
    }

    /// What does not depend on the order: `Team` of `team.cuh`, and the tree of a search.
    fn fixed_bytes(&self, scalar: ScalarKind) -> usize {
        let line = line_bytes(scalar, self.panel);
        let lines = if self.keeps_diagonal() { 2 * self.panel + 1 } else { 3 * self.panel };
        let moves = (5 * self.panel + 1) * 4;
        let team = election_bytes(scalar, self.panel, self.threads) + lines * line + moves;
        let tree = if self.search == Search::Tree { self.threads * 12 } else { 0 };
        self.teams * team.next_multiple_of(16) + tree
    }
}

impl fmt::Display for GetrfPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { panel, threads, rows, ahead, stages, tensor, teams, blocks, .. } = self;
        write!(f, "panel={panel} threads={threads} rows={rows} ahead={ahead} stages={stages}")?;
        write!(f, " tensor={} teams={teams} blocks={blocks}", u8::from(*tensor))?;
        write!(f, " {:?}/{:?}/{:?}", self.looking, self.interchange, self.search)?;
        if self.spread {
            return f.write_str(" by a launch a panel");
        }
        if let Some(strips) = &self.strips {
            return write!(f, " by {strips}");
        }
        let Some(Steps { width, together, streamed, update }) = &self.steps else { return Ok(()) };
        let how = if *streamed { "a launch a matrix" } else { "one launch" };
        write!(f, " by steps: width={width} together={together}, update by {how}: panel={}", update.panel)
    }
}
