//! Problems that reach the kernels of a plan, for each scalar type at any order.

use batchla::{BatchLayout, Complex, Error, Extras, Problem, Scalar, SourceKind, Strides, Transpose};

/// Problems of an order.
type Problems = fn(usize) -> Result<Vec<Problem>, Error>;

/// Matrices that keep a GPU busy; a few have plans of their own.
const MANY: usize = 1000;

/// Columns first, from matrices and from factors, with all extras.
pub(super) const COLUMNS_FIRST: [Problems; 4] =
    [columns_first::<f32>, columns_first::<f64>, columns_first::<Complex<f32>>, columns_first::<Complex<f64>>];
/// Rows first, to factors and to inverses.
pub(super) const ROWS_FIRST: [Problems; 4] =
    [rows_first::<f32>, rows_first::<f64>, rows_first::<Complex<f32>>, rows_first::<Complex<f64>>];
/// What is compared of a plan that is not the planner's: columns first, to factors and to inverses.
pub(super) const COMPARED: [Problems; 4] =
    [compared::<f32>, compared::<f64>, compared::<Complex<f32>>, compared::<Complex<f64>>];
/// Every pair of layouts that kernels tell apart, every number of right-hand sides.
pub(super) const EVERY: [Problems; 4] = [every::<f32>, every::<f64>, every::<Complex<f32>>, every::<Complex<f64>>];

fn columns_first<T: Scalar>(order: usize) -> Result<Vec<Problem>, Error> {
    let [columns, ..] = layouts(MANY, order)?;
    let [few, ..] = layouts(1, order)?;
    let mut all = both_ways::<T>(columns)?;
    all.extend(both_ways::<T>(few)?);
    all.push(Problem::invert::<T>(SourceKind::Factors, columns, columns)?);
    all.push(Problem::determinant::<T>(SourceKind::Factors, columns)?);
    for right_hand_sides in [1, order.max(1)] {
        all.push(solve::<T>(SourceKind::Matrix, columns, right_hand_sides)?);
    }
    Ok(all)
}

fn rows_first<T: Scalar>(order: usize) -> Result<Vec<Problem>, Error> {
    let ([_, rows, _], [_, few, _]) = (layouts(MANY, order)?, layouts(1, order)?);
    Ok([both_ways::<T>(rows)?, both_ways::<T>(few)?].concat())
}

fn both_ways<T: Scalar>(a: BatchLayout) -> Result<Vec<Problem>, Error> {
    let factorize = Problem::factorize::<T>(SourceKind::InPlace, a, a)?;
    Ok(vec![factorize, Problem::invert::<T>(SourceKind::Matrix, a, a)?.with_extras(extras())?])
}

fn compared<T: Scalar>(order: usize) -> Result<Vec<Problem>, Error> {
    let [columns, ..] = layouts(MANY, order)?;
    Ok(vec![
        Problem::factorize::<T>(SourceKind::Matrix, columns, columns)?,
        Problem::invert::<T>(SourceKind::Matrix, columns, columns)?,
    ])
}

fn every<T: Scalar>(order: usize) -> Result<Vec<Problem>, Error> {
    let mut all = Vec::new();
    for layouts in [layouts(MANY, order)?, layouts(1, order)?] {
        all.extend(every_pair::<T>(layouts)?);
    }
    Ok(all)
}

fn every_pair<T: Scalar>(layouts: [BatchLayout; 3]) -> Result<Vec<Problem>, Error> {
    let mut all = Vec::new();
    for a in layouts {
        let order = a.rows();
        for out in layouts {
            all.push(Problem::factorize::<T>(SourceKind::Matrix, a, out)?);
            all.push(Problem::invert::<T>(SourceKind::Matrix, a, out)?.with_extras(extras())?);
            all.push(Problem::invert::<T>(SourceKind::Factors, a, out)?);
        }
        for source in [SourceKind::Matrix, SourceKind::Factors] {
            all.push(Problem::determinant::<T>(source, a)?);
            for right_hand_sides in [1, 2, 4, 8, 16, order.max(17)] {
                all.push(solve::<T>(source, a, right_hand_sides)?);
            }
        }
    }
    Ok(all)
}

fn extras() -> Extras {
    Extras::none().with_determinant().with_condition()
}

fn solve<T: Scalar>(source: SourceKind, a: BatchLayout, right_hand_sides: usize) -> Result<Problem, Error> {
    let x = BatchLayout::column_major(a.batch(), a.rows(), right_hand_sides)?;
    Problem::solve::<T>(source, a, None, x, Transpose::None)
}

/// Columns first, rows first, and neither rows nor columns neighbours.
fn layouts(batch: usize, order: usize) -> Result<[BatchLayout; 3], Error> {
    let col = 2 * order.max(1);
    let strided = Strides { lanes: 1, group: col * col, row: 2, col };
    Ok([
        BatchLayout::column_major(batch, order, order)?,
        BatchLayout::row_major(batch, order, order)?,
        BatchLayout::new(batch, order, order, strided)?,
    ])
}
