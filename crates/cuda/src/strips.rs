//! `A = P L U` of large matrices, strip by strip of columns.

use batchla_core::Error;

use crate::operand::Operand;
use crate::plan::{GetrfPlan, Strips, scalar_bytes};
use crate::run::{DeviceFactors, Run};

impl Run<'_> {
    /// A strip is factored by one block a matrix, and then many bring what is behind it up to date: the trailing matrix, whose own first strip is next.
    pub(crate) fn getrf_by_strips(
        &self,
        plan: &GetrfPlan,
        strips: &Strips,
        a: Operand,
        to: &DeviceFactors,
        count: usize,
    ) -> Result<(), Error> {
        let (order, scalar) = (self.order() as usize, self.prepared().cuda_plan().scalar());
        // An order of 0 still has outcomes to write.
        for base in (0..order.max(1)).step_by(strips.width) {
            let lu = to.lu.trailing(base, scalar_bytes(scalar));
            let source = if base == 0 { a } else { lu };
            let behind = order.saturating_sub(base + strips.width);
            let factor = ("getrf_strip", count, plan.threads, plan.dynamic_shared_bytes);
            let tiles = count.saturating_mul(behind.div_ceil(strips.tile));
            let update = ("getrf_trailing", tiles, strips.threads(), strips.shared_bytes(scalar, order - base));
            for (entry, blocks, threads, bytes) in [Some(factor), (behind > 0).then_some(update)].into_iter().flatten()
            {
                let launch = self
                    .launch(entry, blocks, threads, bytes)?
                    .argument(source)
                    .argument(lu)
                    .argument(to.pivots)
                    .argument(to.status)
                    .argument(count as u64)
                    .argument(self.order())
                    .argument(base as i32);
                // SAFETY: the signature of `getrf_strip` and `getrf_trailing`; operands were held against the prepared layouts, the rest is workspace of that size.
                unsafe { launch.launch(self.operation()) }?;
            }
        }
        self.getrf_settle(&plan.settling(scalar, order), to, count, strips.width)
    }
}
