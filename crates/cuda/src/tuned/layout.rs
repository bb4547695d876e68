//! How the matrices lie that a table was measured with.

use batchla_core::{BatchLayout, Error, ErrorKind, Operation, Problem, ScalarKind, SourceKind};
use serde::{Deserialize, Serialize};

/// Which neighbours in a matrix are neighbours in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TunedLayout {
    /// Those in a column, in input and result.
    ColumnMajor,
    /// Those in a row.
    RowMajor,
}

impl TunedLayout {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::ColumnMajor => "column-major",
            Self::RowMajor => "row-major",
        }
    }

    /// So many matrices, dense.
    ///
    /// # Errors
    /// [`ErrorKind::Layout`] where they would overflow.
    pub fn of(self, batch: usize, order: usize) -> Result<BatchLayout, Error> {
        match self {
            Self::ColumnMajor => BatchLayout::column_major(batch, order, order),
            Self::RowMajor => BatchLayout::row_major(batch, order, order),
        }
    }

    /// That of a layout; none where matrices are interleaved, or no neighbours are.
    pub(super) fn found(layout: &BatchLayout) -> Option<Self> {
        let strides = layout.strides();
        match (strides.lanes, strides.row, strides.col) {
            (1, 1, _) => Some(Self::ColumnMajor),
            (1, _, 1) => Some(Self::RowMajor),
            _ => None,
        }
    }

    /// A problem of this layout, from matrices: LU in place, or inverses apart.
    ///
    /// # Errors
    /// As of the layout.
    pub fn problem(
        self,
        scalar: ScalarKind,
        operation: Operation,
        batch: usize,
        order: usize,
    ) -> Result<Problem, Error> {
        use num_complex::Complex;
        let layout = self.of(batch, order)?;
        macro_rules! of {
            ($scalar:ty) => {
                match operation {
                    Operation::Factorize => Problem::factorize::<$scalar>(SourceKind::InPlace, layout, layout),
                    Operation::Invert => Problem::invert::<$scalar>(SourceKind::Matrix, layout, layout),
                    other => Err(Error::new(ErrorKind::Unsupported, "tune", format!("{} is not tuned", other.name()))
                        .advise("tune factorize or invert; others are made of their steps")),
                }
            };
        }
        match scalar {
            ScalarKind::F32 => of!(f32),
            ScalarKind::F64 => of!(f64),
            ScalarKind::C32 => of!(Complex<f32>),
            ScalarKind::C64 => of!(Complex<f64>),
        }
    }
}
