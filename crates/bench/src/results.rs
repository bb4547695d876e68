//! What was measured, and how figures ask for it.

use batchla_core::ScalarKind;

use crate::measure::Timing;

/// One measurement in one figure.
#[derive(Clone, Debug)]
pub struct Row {
    /// The figure's name.
    pub figure: &'static str,
    /// The type.
    pub scalar: ScalarKind,
    /// The order.
    pub order: usize,
    /// Matrices.
    pub batch: usize,
    /// The curve that it belongs to.
    pub series: String,
    /// Who ran.
    pub contestant: String,
    /// How long it took.
    pub timing: Timing,
    /// How many times as fast as the curve's base.
    pub speedup: Option<f64>,
}

/// All measurements so far.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// In the order of measurement.
    pub rows: Vec<Row>,
}

impl Results {
    /// The fastest contestant of a curve at a point.
    pub fn best(&self, figure: &str, scalar: ScalarKind, series: &str, order: usize) -> Option<&Row> {
        let here =
            |row: &&Row| row.figure == figure && row.scalar == scalar && row.series == series && row.order == order;
        self.rows.iter().filter(here).max_by(|a, b| a.timing.gflops.total_cmp(&b.timing.gflops))
    }

    /// The orders of a panel, ascending.
    pub fn orders(&self, figure: &str, scalar: ScalarKind) -> Vec<usize> {
        let panel = self.rows.iter().filter(|row| row.figure == figure && row.scalar == scalar);
        let mut orders: Vec<usize> = panel.map(|row| row.order).collect();
        orders.sort_unstable();
        orders.dedup();
        orders
    }

    /// The types of a figure, in the order of the paper's panels.
    pub fn scalars(&self, figure: &str) -> Vec<ScalarKind> {
        let panels = [ScalarKind::C32, ScalarKind::C64, ScalarKind::F32, ScalarKind::F64];
        panels.into_iter().filter(|&scalar| !self.orders(figure, scalar).is_empty()).collect()
    }

    /// How many times as fast as another a curve is, at each order where both were measured.
    pub fn ratios(&self, figure: &str, scalar: ScalarKind, series: &str, base: &str) -> Vec<(usize, f64)> {
        let at = |name: &str, order| self.best(figure, scalar, name, order).map(|row| row.timing.gflops);
        let ratio = |order| Some((order, at(series, order)? / at(base, order)?));
        self.orders(figure, scalar).into_iter().filter_map(ratio).collect()
    }
}
