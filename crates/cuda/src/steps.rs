//! `A = P L U` by many launches, right-looking: a panel, its exchanges beside it, the update of columns on its right.

use std::ops::Range;

use batchla_core::Error;

use crate::driver::DevicePointer;
use crate::kernel::launch::{LARGEST_GRID, Launch};
use crate::operand::Operand;
use crate::plan::{GetrfPlan, Steps};
use crate::run::{DeviceFactors, Run};

impl Run<'_> {
    pub(crate) fn getrf_by_steps(
        &self,
        plan: &GetrfPlan,
        steps: &Steps,
        a: Operand,
        to: &DeviceFactors,
        count: usize,
    ) -> Result<(), Error> {
        let order = self.order() as usize;
        let (width, group) = (steps.width, steps.width * steps.together);
        // An order of 0 still has outcomes to write.
        for begin in (0..order.max(1)).step_by(width) {
            let end = (begin + width).min(order);
            self.panel(plan, a, to, count, begin..end)?;
            self.interchange(plan, to, count, begin..end)?;
            // The next panel takes what this group of panels has so far; the rest waits until the group is complete.
            let group_begin = begin / group * group;
            let next = (end + width).min(order);
            let complete = end == group_begin + group;
            self.update(steps, to, count, group_begin..end, end..if complete { order } else { next })?;
        }
        if to.rows != DevicePointer(0) {
            self.permutation(to.pivots, to.status, to.rows, to.status, count)?;
        }
        Ok(())
    }

    fn panel(
        &self,
        plan: &GetrfPlan,
        a: Operand,
        to: &DeviceFactors,
        count: usize,
        columns: Range<usize>,
    ) -> Result<(), Error> {
        let launch = self
            .launch("getrf_panel", count, plan.threads, plan.dynamic_shared_bytes)?
            .argument(a)
            .argument(to.lu)
            .argument(to.pivots)
            .argument(to.status)
            .argument(count as u64)
            .argument(self.order())
            .argument(columns.start as i32)
            .argument(columns.end as i32);
        // SAFETY: the signature of `getrf_panel`; operands were held against the prepared layouts, the rest is workspace of that size.
        unsafe { launch.launch(self.operation()) }
    }

    fn interchange(
        &self,
        plan: &GetrfPlan,
        to: &DeviceFactors,
        count: usize,
        columns: Range<usize>,
    ) -> Result<(), Error> {
        let launch = self
            .launch("laswp", count, plan.threads, self.order() as usize * 4)?
            .argument(to.lu)
            .argument(to.pivots)
            .argument(count as u64)
            .argument(self.order())
            .argument(columns.start as i32)
            .argument(columns.end as i32);
        // SAFETY: the signature of `laswp`; as above.
        unsafe { launch.launch(self.operation()) }
    }

    /// Columns `to_columns` take the part of the factored columns `from`.
    fn update(
        &self,
        steps: &Steps,
        to: &DeviceFactors,
        count: usize,
        from: Range<usize>,
        to_columns: Range<usize>,
    ) -> Result<(), Error> {
        let tiles = to_columns.len().div_ceil(steps.update.panel);
        let kernel = self.prepared().kernel("getrf_update")?;
        let (launches, each) = if steps.streamed { (count, 1) } else { (1, count) };
        if tiles == 0 {
            return Ok(());
        }
        let lanes = self.prepared().lanes();
        lanes.iter().try_for_each(|lane| lane.follow(self.stream()))?;
        let launched = (0..launches).try_for_each(|first| {
            let stream = lanes.get(first % lanes.len().max(1)).unwrap_or(self.stream());
            let launch = Launch::new(kernel, stream)
                .grid((each as u64).saturating_mul(tiles as u64).min(LARGEST_GRID))
                .block(steps.update.threads as u32)
                .shared_bytes(steps.update.dynamic_shared_bytes as u32)
                .argument(to.lu)
                .argument(to.status)
                .argument(first as u64)
                .argument(each as u64)
                .argument(self.order())
                .argument(from.start as i32)
                .argument(from.end as i32)
                .argument(to_columns.start as i32)
                .argument(to_columns.end as i32);
            // SAFETY: the signature of `getrf_update`; as above. Lanes follow the run's stream, which is ordered with the operands' homes by
            // the launch before, and is itself made to follow them.
            unsafe { launch.launch(self.operation()) }
        });
        // Also after a launch that failed: what the lanes have queued still uses the operands.
        let joined = lanes.iter().try_for_each(|lane| self.stream().follow(lane));
        launched.and(joined)
    }
}
