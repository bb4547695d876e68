//! What the strides of other crates amount to.

use crate::error::{Error, ErrorKind};
use crate::layout::{BatchLayout, Strides};

/// Extent of a dimension and distance of its neighbours, as the other crate gives them.
pub(super) type Axis = (usize, isize);

/// The layout of another crate's strides; `advice` says how it makes a plain copy.
pub(super) fn strided(source: &str, axes: [Axis; 3], advice: &str) -> Result<BatchLayout, Error> {
    let refuse = |what: String| Error::new(ErrorKind::Layout, source, what).advise(advice);
    let [batch, rows, cols] = axes.map(|(extent, _)| extent);
    let empty = batch == 0 || rows == 0 || cols == 0;
    let mut strides = [1; 3];
    for (place, (extent, stride)) in strides.iter_mut().zip(axes) {
        *place = match usize::try_from(stride) {
            // A stride along which there is nowhere to go is often zero, and means nothing.
            _ if extent < 2 || empty => 1,
            Ok(stride) if stride > 0 => stride,
            _ => {
                let [b, i, j] = axes.map(|(_, stride)| stride);
                return Err(refuse(format!(
                    "{batch} x ({rows} x {cols}) with strides of {b} a matrix, {i} a row, {j} a column: they must be positive"
                )));
            }
        };
    }
    let [group, row, col] = strides;
    BatchLayout::new(batch, rows, cols, Strides { lanes: 1, group, row, col })
        // A sole matrix is given the stride it would have in a batch of its like.
        .and_then(|layout| if batch > 1 { Ok(layout) } else { layout.with_group_stride(layout.span().max(1)) })
        .map_err(|error| refuse(format!("{batch} x ({rows} x {cols}) is no batch layout")).caused_by(error))
}
