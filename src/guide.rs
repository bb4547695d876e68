//! A short guide: from other libraries to batchla, failure, layouts, numerics, plans. Its examples are tests.
//!
//! | question | page |
//! | --- | --- |
//! | I know NumPy, SciPy, PyTorch or MATLAB: what is what? | [`coming_from`] |
//! | What happens when a matrix fails? | [`failure`] |
//! | Where do the elements lie? | [`layouts`] |
//! | What may I expect of the numbers? | [`numerics`] |
//! | Which plan computes it, why, and how do I have another? | [`plans`] |
//!
//! The same operations are to be had without writing code, from the program `batchla`: `batchla invert --help`.

#[doc = include_str!("guide/coming_from.md")]
pub mod coming_from {}

#[doc = include_str!("guide/failure.md")]
pub mod failure {}

#[doc = include_str!("guide/layouts.md")]
pub mod layouts {}

#[doc = include_str!("guide/numerics.md")]
pub mod numerics {}

#[doc = include_str!("guide/plans.md")]
pub mod plans {}
