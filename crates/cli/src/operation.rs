//! What a command does with a chunk of matrices; all that surrounds it is in `stream.rs`.

use std::sync::Arc;

use batchla::npy::{ElementKind, Header};
use batchla::{AnyBackend, Batch, BatchLayout, BatchRef, Error, Outcome, Problem, Scalar};
use batchla_testkit::Ratios;

use crate::input::Input;

/// A command over a stream of matrices.
pub(crate) trait Operation: Sync {
    /// The command's name.
    const NAME: &'static str;

    /// Where it computes; `None` where it only compares.
    fn backend(&self) -> Option<&AnyBackend>;

    /// What it reads beside the operands.
    fn beside(&self) -> Option<&Input> {
        None
    }

    /// Holds the operands' headers against each other; gives what is to be written.
    fn written(&self, headers: &[&Header]) -> Result<Written, Error>;

    /// What the backend is to do with a chunk of operands of these layouts, so that its plan can be told.
    fn problem<T: Scalar>(&self, layouts: &[BatchLayout]) -> Result<Option<Problem>, Error>;

    /// Works on a chunk.
    fn compute<T: Scalar>(&self, chunk: Chunk<T>) -> Result<Done<T>, Error>;
}

/// What comes of an input.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The shape of the main result, where it is of matrices.
    pub(crate) matrices: Option<Vec<usize>>,
    /// Whether these are vectors: the file then has not the last dimension, a 1.
    pub(crate) vectors: bool,
    /// Arrays beside it, in the order of [`Done::columns`].
    pub(crate) columns: Vec<Beside>,
    /// Bytes a matrix that are in memory beside the operands.
    pub(crate) extra_bytes: usize,
}

/// An array beside the main result.
#[derive(Debug)]
pub(crate) struct Beside {
    /// Where, as the user named it.
    pub(crate) given: String,
    /// What is added to the input's name where `given` is a folder.
    pub(crate) suffix: &'static str,
    pub(crate) kind: ElementKind,
    pub(crate) shape: Vec<usize>,
}

/// Matrices that are worked on together.
pub(crate) struct Chunk<T: Scalar> {
    /// The matrices, and what goes with them.
    pub(crate) operands: Vec<Operand<T>>,
}

/// An operand of a chunk.
pub(crate) enum Operand<T: Scalar> {
    Own(Batch<T>),
    /// One matrix that serves all chunks.
    Shared(Arc<Batch<T>>),
}

/// What came of a chunk.
pub(crate) struct Done<T: Scalar> {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) product: Product<T>,
    pub(crate) columns: Vec<Column<T>>,
    pub(crate) ratios: Option<Ratios>,
    /// Operands whose memory serves again; without the first, where the product has it.
    pub(crate) spent: Vec<Operand<T>>,
}

/// The main result of a chunk.
pub(crate) enum Product<T: Scalar> {
    None,
    /// In memory of its own.
    Apart(Batch<T>),
    /// Where the first operand was.
    InPlace(Batch<T>),
}

/// A piece of an array beside the main result.
pub(crate) enum Column<T: Scalar> {
    Integers(Vec<i32>),
    Numbers(Vec<T>),
    Reals(Vec<T::Real>),
}

impl<T: Scalar> Operand<T> {
    pub(crate) fn view(&self) -> BatchRef<'_, T> {
        match self {
            Self::Own(batch) => batch.view(),
            Self::Shared(batch) => batch.view(),
        }
    }

    /// The batch itself; a copy where it is shared.
    pub(crate) fn into_batch(self) -> Batch<T> {
        match self {
            Self::Own(batch) => batch,
            Self::Shared(batch) => Arc::unwrap_or_clone(batch),
        }
    }

    /// Memory for a later chunk.
    pub(crate) fn into_memory(self) -> Vec<T> {
        match self {
            Self::Own(batch) => batch.into_vec(),
            Self::Shared(_) => Vec::new(),
        }
    }
}

impl<T: Scalar> Done<T> {
    /// Without columns and ratios.
    pub(crate) fn new(outcomes: Vec<Outcome>, product: Product<T>, spent: Vec<Operand<T>>) -> Self {
        Self { outcomes, product, columns: Vec::new(), ratios: None, spent }
    }
}
