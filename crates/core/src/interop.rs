//! Zero-copy views of other crates' matrices as batches, and of ours as theirs; each behind the feature of its name.
//!
//! A matrix is a batch of one. Views that step backwards or stand still (reversed axes, broadcasts) are no layouts of
//! ours and are refused.

#[cfg(feature = "faer")]
mod faer;
#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "ndarray")]
mod ndarray;
#[cfg(any(feature = "faer", feature = "nalgebra", feature = "ndarray"))]
mod strides;
