//! The steps of a run: each queues one kernel, or one a block column, for some of the batch's matrices.

use batchla_core::{BatchRef, Error, ErrorKind, Scalar};

use crate::backend::CudaPrepared;
use crate::driver::DevicePointer;
use crate::kernel::launch::{LARGEST_GRID, Launch};
use crate::memory::DeviceMemory;
use crate::operand::Operand;
use crate::plan::{GetriPlan, Resources};
use crate::stream::Stream;
use crate::workspace::{CudaWorkspace, Parts};

/// How many streams the operands of a run may be at home on.
const HOMES: usize = 10;

/// One run: where it is queued, with whose memory, and what was prepared for it.
pub(crate) struct Run<'a> {
    prepared: &'a CudaPrepared,
    stream: &'a Stream,
    homes: [Option<&'a Stream>; HOMES],
    workspace: u64,
    operation: &'static str,
}

/// Factors of some matrices, with what belongs to them.
#[derive(Clone, Copy)]
pub(crate) struct DeviceFactors {
    pub(crate) lu: Operand,
    pub(crate) pivots: DevicePointer,
    pub(crate) rows: DevicePointer,
    pub(crate) status: DevicePointer,
}

impl<'a> Run<'a> {
    /// # Errors
    /// [`ErrorKind::Argument`] where the workspace is another problem's or the memory another device's.
    pub(crate) fn new(
        prepared: &'a CudaPrepared,
        stream: &'a Stream,
        workspace: &'a mut CudaWorkspace,
        homes: &[Option<&'a Stream>],
    ) -> Result<Self, Error> {
        let operation = prepared.problem_operation();
        let (there, needed) = (workspace.memory.len() as u64 * 4, prepared.parts().bytes);
        if there < needed {
            let what = format!("the workspace has {there} bytes, {needed} were prepared");
            return Err(Error::new(ErrorKind::Argument, operation, what)
                .advise("use the workspace that was made for what was prepared"));
        }
        let memory = workspace.memory.slice();
        let mut all = [None; HOMES];
        for (place, home) in all.iter_mut().zip(homes.iter().copied().flatten().chain([memory.stream()])) {
            *place = Some(home);
        }
        Ok(Self { prepared, stream, homes: all, workspace: memory.as_raw(), operation })
    }

    pub(crate) fn parts(&self) -> &'a Parts {
        self.prepared.parts()
    }

    /// A part of the workspace.
    pub(crate) fn scratch(&self, offset: u64) -> DevicePointer {
        DevicePointer(self.workspace + offset)
    }

    /// Factors in the workspace.
    pub(crate) fn own_factors(&self, status: DevicePointer) -> DeviceFactors {
        let parts = self.parts();
        DeviceFactors {
            lu: Operand::columns(self.scratch(parts.factors), self.prepared.cuda_plan().leading()),
            pivots: self.scratch(parts.pivots),
            rows: self.scratch(parts.rows),
            status,
        }
    }

    pub(crate) fn operation(&self) -> &'static str {
        self.operation
    }

    pub(crate) fn stream(&self) -> &'a Stream {
        self.stream
    }

    pub(crate) fn prepared(&self) -> &'a CudaPrepared {
        self.prepared
    }

    pub(crate) fn launch(
        &self,
        entry: &str,
        blocks: usize,
        threads: usize,
        shared_bytes: usize,
    ) -> Result<Launch<'a>, Error> {
        let kernel = self.prepared.kernel(entry)?;
        let launch = Launch::new(kernel, self.stream)
            .grid((blocks as u64).min(LARGEST_GRID))
            .block(threads as u32)
            .shared_bytes(shared_bytes as u32);
        Ok(self.homes.iter().copied().flatten().fold(launch, Launch::ordered_with))
    }

    /// `A = P L U`. No rows are written where `to.rows` is null.
    pub(crate) fn getrf(&self, a: Operand, to: &DeviceFactors, count: usize) -> Result<(), Error> {
        let plan = self.prepared.cuda_plan();
        let (teams, threads, bytes) = match (&plan.resident, &plan.getrf) {
            (Some(resident), _) => (resident.teams, resident.crew(), resident.dynamic_shared_bytes),
            (None, Some(getrf)) => {
                if let Some(strips) = &getrf.strips {
                    return self.getrf_by_strips(getrf, strips, a, to, count);
                }
                if getrf.spread {
                    return self.getrf_spread(getrf, a, to, count);
                }
                if let Some(steps) = &getrf.steps {
                    return self.getrf_by_steps(getrf, steps, a, to, count);
                }
                (getrf.teams, getrf.threads, getrf.dynamic_shared_bytes)
            }
            (None, None) => return Err(missing("getrf")),
        };
        let launch = self
            .launch("getrf", count.div_ceil(teams), threads * teams, bytes)?
            .argument(a)
            .argument(to.lu)
            .argument(to.pivots)
            .argument(to.rows)
            .argument(to.status)
            .argument(count as u64)
            .argument(self.order());
        // SAFETY: the signature of `getrf`; operands were held against the prepared layouts, the rest is workspace of that size.
        unsafe { launch.launch(self.operation) }
    }

    /// The inverses of some matrices, and their determinants where `determinants` is not null, in one launch.
    pub(crate) fn getrf_getri(
        &self,
        a: Operand,
        x: Operand,
        determinants: DevicePointer,
        status: DevicePointer,
        count: usize,
    ) -> Result<(), Error> {
        let Some(plan) = &self.prepared.cuda_plan().resident else { return Err(missing("getrf_getri")) };
        let launch = self
            .launch("getrf_getri", count.div_ceil(plan.teams), plan.crew() * plan.teams, plan.dynamic_shared_bytes)?
            .argument(a)
            .argument(x)
            .argument(determinants)
            .argument(status)
            .argument(count as u64)
            .argument(self.order());
        // SAFETY: the signature of `getrf_getri`; operands were held against the prepared layouts.
        unsafe { launch.launch(self.operation) }
    }

    /// The solutions of some systems in one launch.
    pub(crate) fn gesv(
        &self,
        a: Operand,
        b: Operand,
        x: Operand,
        status: DevicePointer,
        count: usize,
    ) -> Result<(), Error> {
        let Some(plan) = &self.prepared.cuda_plan().resident else { return Err(missing("gesv")) };
        let launch = self
            .launch("gesv", count.div_ceil(plan.teams), plan.crew() * plan.teams, plan.dynamic_shared_bytes)?
            .argument(a)
            .argument(b)
            .argument(x)
            .argument(status)
            .argument(count as u64)
            .argument(self.order())
            .argument(self.prepared.right_hand_sides() as i32);
        // SAFETY: the signature of `gesv`; operands were held against the prepared layouts.
        unsafe { launch.launch(self.operation) }
    }

    /// Rows of factors from the caller, and their outcomes, checked.
    pub(crate) fn permutation(
        &self,
        pivots: DevicePointer,
        given: DevicePointer,
        rows: DevicePointer,
        status: DevicePointer,
        count: usize,
    ) -> Result<(), Error> {
        let launch = self
            .launch("permutation", count, 32, self.order() as usize * 4)?
            .argument(pivots)
            .argument(given)
            .argument(rows)
            .argument(status)
            .argument(count as u64)
            .argument(self.order());
        // SAFETY: the signature of `permutation`; as above.
        unsafe { launch.launch(self.operation) }
    }

    /// The inverses of some factored matrices into `x`, by way of `unknown` for `U⁻¹`.
    pub(crate) fn getri(&self, from: &DeviceFactors, unknown: Operand, x: Operand, count: usize) -> Result<(), Error> {
        let plan = self.prepared.cuda_plan();
        let Some(getri) = &plan.getri else { return Err(missing("getri")) };
        let (scalar, order) = (plan.scalar(), plan.order());
        let (result, rows) = if getri.direct { (x, from.rows) } else { (unknown, DevicePointer(0)) };
        if getri.resident {
            let launch = self
                .launch(
                    "getri_resident",
                    count.saturating_mul(getri.parts.max(1)),
                    getri.threads,
                    getri.shared_bytes(scalar, order, order),
                )?
                .argument(from.lu)
                .argument(unknown)
                .argument(result)
                .argument(rows)
                .argument(from.status)
                .argument(count as u64)
                .argument(order as i32)
                .argument(getri.parts as i32);
            // SAFETY: the signature of `getri_resident`; as above.
            unsafe { launch.launch(self.operation) }?;
        } else {
            self.getri_by_blocks(getri, from, unknown, result, rows, count)?;
        }
        if getri.parts > 0 {
            self.fill_failed(result, from.status, count, order)?;
        }
        if getri.direct {
            return Ok(());
        }
        let launch = self
            .launch("lacpy", count, 256, 0)?
            .argument(unknown)
            .argument(x)
            .argument(from.rows)
            .argument(count as u64)
            .argument(order as i32);
        // SAFETY: the signature of `lacpy`; as above.
        unsafe { launch.launch(self.operation) }
    }

    /// `trtri` and `getri`: `X U = I`, then `X L = U⁻¹`.
    fn getri_by_blocks(
        &self,
        getri: &GetriPlan,
        from: &DeviceFactors,
        unknown: Operand,
        result: Operand,
        rows: DevicePointer,
        count: usize,
    ) -> Result<(), Error> {
        let plan = self.prepared.cuda_plan();
        let (scalar, order) = (plan.scalar(), plan.order());
        let columns = getri.block_columns(order);
        let steps = if getri.resources == Resources::Static { 1 } else { columns.max(1) };
        let range = |step: usize| if steps == 1 { (0, columns) } else { (step, step + 1) };

        for step in 0..steps {
            let (begin, end) = range(step);
            let lines = (end * getri.block).min(order);
            let threads = lines.div_ceil(getri.rows).next_multiple_of(32).clamp(32, getri.threads);
            let launch = self
                .launch("trtri", count, threads, getri.shared_bytes(scalar, order, lines))?
                .argument(from.lu)
                .argument(unknown)
                .argument(from.status)
                .argument(count as u64)
                .argument(order as i32)
                .argument(begin as i32)
                .argument(end as i32)
                .argument(lines.min(getri.lines).max(1) as i32);
            // SAFETY: the signature of `trtri`; as above, with the shared memory that so many lines take.
            unsafe { launch.launch(self.operation) }?;
        }
        for step in (0..steps).rev() {
            let (begin, end) = range(step);
            let lines = order - begin * getri.block;
            let launch = self
                .launch("getri", count, getri.threads, getri.shared_bytes(scalar, order, lines))?
                .argument(from.lu)
                .argument(unknown)
                .argument(result)
                .argument(rows)
                .argument(from.status)
                .argument(count as u64)
                .argument(order as i32)
                .argument(begin as i32)
                .argument(end as i32)
                .argument(lines.min(getri.lines).max(1) as i32);
            // SAFETY: the signature of `getri`; as above.
            unsafe { launch.launch(self.operation) }?;
        }
        Ok(())
    }

    /// `op(A) X = B` for some results. `one`: one factored matrix serves all. `form`: 0 `A`, 1 `Aᵀ`, 2 `Aᴴ`.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn getrs(
        &self,
        from: &DeviceFactors,
        one: bool,
        b: Operand,
        x: Operand,
        status: DevicePointer,
        count: usize,
        form: i32,
    ) -> Result<(), Error> {
        let Some(plan) = &self.prepared.cuda_plan().getrs else { return Err(missing("getrs")) };
        let columns = self.prepared.right_hand_sides();
        self.spread(from.status, u64::from(!one), status, count)?;
        let blocks = count.saturating_mul(columns.div_ceil(plan.columns));
        let launch = self
            .launch(plan.entry(), blocks, plan.threads, plan.shared_bytes)?
            .argument(if one { from.lu.shared() } else { from.lu })
            .argument(from.rows)
            .argument(u32::from(one))
            .argument(b)
            .argument(x)
            .argument(status)
            .argument(count as u64)
            .argument(self.order())
            .argument(columns as i32)
            .argument(form);
        // SAFETY: the signature of `getrs` and `getrs_resident`; as above.
        unsafe { launch.launch(self.operation) }?;
        self.fill_failed(x, status, count, columns)
    }

    /// Results of failed matrices, `columns` each, become NaN.
    fn fill_failed(&self, x: Operand, status: DevicePointer, count: usize, columns: usize) -> Result<(), Error> {
        let launch = self
            .launch("fill_failed", count, 256, 0)?
            .argument(x)
            .argument(status)
            .argument(count as u64)
            .argument(self.order())
            .argument(columns as i32);
        // SAFETY: the signature of `fill_failed`; as above.
        unsafe { launch.launch(self.operation) }
    }

    /// Each of some results starts with the outcome word of its matrix; `step` 0: of the one.
    pub(crate) fn spread(&self, from: DevicePointer, step: u64, to: DevicePointer, count: usize) -> Result<(), Error> {
        let launch = self
            .launch("spread", count.div_ceil(256), 256, 0)?
            .argument(from)
            .argument(step)
            .argument(to)
            .argument(count as u64);
        // SAFETY: the signature of `spread`; as above.
        unsafe { launch.launch(self.operation) }
    }

    /// Determinants from factors.
    pub(crate) fn determinant(&self, from: &DeviceFactors, to: DevicePointer, count: usize) -> Result<(), Error> {
        let launch = self
            .launch("determinant", count.div_ceil(4), 128, 0)?
            .argument(from.lu)
            .argument(from.pivots)
            .argument(from.status)
            .argument(to)
            .argument(count as u64)
            .argument(self.order());
        // SAFETY: the signature of `determinant`; as above.
        unsafe { launch.launch(self.operation) }
    }

    /// 1-norms of matrices; with the outcomes `status` of their inverses, the condition numbers.
    pub(crate) fn lange(
        &self,
        a: Operand,
        status: Option<DevicePointer>,
        to: DevicePointer,
        count: usize,
    ) -> Result<(), Error> {
        let launch = self
            .launch("lange", count.div_ceil(4), 128, 0)?
            .argument(a)
            .argument(status.unwrap_or_default())
            .argument(to)
            .argument(count as u64)
            .argument(self.order());
        // SAFETY: the signature of `lange`; as above.
        unsafe { launch.launch(self.operation) }
    }

    pub(crate) fn order(&self) -> i32 {
        self.prepared.cuda_plan().order() as i32
    }
}

/// A batch on the device, of which a run takes some matrices at a time.
pub(crate) struct Lying<'a, T: Scalar>(pub(crate) BatchRef<'a, T, DeviceMemory>);

impl<'a, T: Scalar> Lying<'a, T> {
    /// Matrices from `first` on, as results of a batch of `batch` see them.
    pub(crate) fn operand(&self, first: usize, batch: usize) -> Operand {
        Operand::new(DevicePointer(self.0.span().as_raw()), self.0.layout(), size_of::<T>(), first, batch)
    }

    pub(crate) fn home(&self) -> &'a Stream {
        self.0.span().stream()
    }
}

fn missing(what: &'static str) -> Error {
    Error::new(ErrorKind::Argument, what, "what was prepared has no such step")
        .advise("prepare the problem that is run")
}
