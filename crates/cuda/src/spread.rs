//! `A = P L U` of few matrices, each by many blocks: a launch a panel.

use batchla_core::Error;

use crate::operand::Operand;
use crate::plan::GetrfPlan;
use crate::run::{DeviceFactors, Run};

impl Run<'_> {
    /// Each launch brings what is behind the latest panel up to date, and factors the next; one more brings rows of `L` to their places.
    pub(crate) fn getrf_spread(
        &self,
        plan: &GetrfPlan,
        a: Operand,
        to: &DeviceFactors,
        count: usize,
    ) -> Result<(), Error> {
        let order = self.order() as usize;
        let columns = |first: usize| (order - first).div_ceil(plan.panel);
        // An order of 0 still has outcomes to write.
        for first in (0..order.max(1)).step_by(plan.panel) {
            let blocks = count.saturating_mul(if first == 0 { 1 } else { columns(first) });
            let launch = self
                .launch("getrf_spread", blocks, plan.threads, plan.dynamic_shared_bytes)?
                .argument(a)
                .argument(to.lu)
                .argument(to.pivots)
                .argument(to.status)
                .argument(count as u64)
                .argument(self.order())
                .argument(first as i32);
            // SAFETY: the signature of `getrf_spread`; operands were held against the prepared layouts, the rest is workspace of that size.
            unsafe { launch.launch(self.operation()) }?;
        }
        self.getrf_settle(plan, to, count, (order, plan.panel))
    }

    /// Rows of `L` to their places in its first `columns`, of which `width` were factored together, and the permutation.
    pub(crate) fn getrf_settle(
        &self,
        plan: &GetrfPlan,
        to: &DeviceFactors,
        count: usize,
        (columns, width): (usize, usize),
    ) -> Result<(), Error> {
        let blocks = count.saturating_mul(columns.div_ceil(width).max(1));
        let launch = self
            .launch("getrf_settle", blocks, plan.threads, plan.dynamic_shared_bytes)?
            .argument(to.lu)
            .argument(to.pivots)
            .argument(to.rows)
            .argument(count as u64)
            .argument(self.order())
            .argument(columns as i32)
            .argument(width as i32);
        // SAFETY: the signature of `getrf_settle`; as above.
        unsafe { launch.launch(self.operation()) }
    }
}
