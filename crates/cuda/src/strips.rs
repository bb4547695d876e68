//! `A = P L U` of large matrices, strip by strip of columns.

use batchla_core::Error;

use crate::operand::Operand;
use crate::plan::{GetrfPlan, Strips, scalar_bytes};
use crate::run::{DeviceFactors, Run};

impl Run<'_> {
    /// A strip is factored by one block a matrix, and then many bring columns behind it up to date: the next strip, or, where as many as go together are factored, all, until what is left is small
    /// enough to be finished on chip.
    pub(crate) fn getrf_by_strips(
        &self,
        plan: &GetrfPlan,
        strips: &Strips,
        a: Operand,
        to: &DeviceFactors,
        count: usize,
    ) -> Result<(), Error> {
        let (order, scalar) = (self.order() as usize, self.prepared().cuda_plan().scalar());
        let columns = strips.columns(order);
        // What both kernels of strips are given first; `base`: the row and column from which on they take the matrix.
        let begin = |entry, blocks, threads, bytes, base: usize| {
            let lu = to.lu.trailing(base, scalar_bytes(scalar));
            let launch = self
                .launch(entry, blocks, threads, bytes)?
                .argument(if base == 0 { a } else { lu })
                .argument(lu)
                .argument(to.pivots)
                .argument(count as u64)
                .argument(self.order())
                .argument(base as i32);
            Ok::<_, Error>(launch)
        };
        // An order of 0 still has outcomes to write.
        for base in (0..columns.max(1)).step_by(strips.width) {
            let group = base / strips.depth() * strips.depth();
            let launch = begin("getrf_strip", count, plan.threads, plan.dynamic_shared_bytes, base)?;
            let launch = launch.argument((base - group) as i32).argument(to.status);
            // SAFETY: the signature of `getrf_strip`; operands were held against the prepared layouts, the rest is workspace of that size.
            unsafe { launch.launch(self.operation()) }?;

            let next = base + strips.width;
            let complete = next == group + strips.depth() || next >= columns;
            let end = if complete { order } else { order.min(next + strips.width) };
            if next >= order {
                break;
            }
            let blocks = count.saturating_mul((end - next).div_ceil(strips.tile));
            let bytes = strips.shared_bytes(scalar, order - group);
            let launch = begin("getrf_trailing", blocks, strips.threads(), bytes, group)?;
            let launch = launch.argument((next - group) as i32).argument(end as i32);
            // SAFETY: the signature of `getrf_trailing`; as above.
            unsafe { launch.launch(self.operation()) }?;
        }
        if let Some((_, plan)) = &strips.finish {
            let launch = self
                .launch("getrf_finish", count, plan.crew(), plan.dynamic_shared_bytes)?
                .argument(to.lu.trailing(columns, scalar_bytes(scalar)))
                .argument(to.pivots)
                .argument(to.status)
                .argument(count as u64)
                .argument(self.order())
                .argument(columns as i32);
            // SAFETY: the signature of `getrf_finish`; as above.
            unsafe { launch.launch(self.operation()) }?;
        }
        self.getrf_settle(&plan.settling(scalar, order), to, count, (columns, strips.depth()))
    }
}
