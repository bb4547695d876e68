//! What an operation starts from: matrices, or factors of them.

use crate::batch::BatchRef;
use crate::layout::BatchLayout;
use crate::memory::Memory;
use crate::scalar::Scalar;

/// What an operation starts from.
#[derive(Debug)]
pub enum Source<'a, T: Scalar, M: Memory> {
    /// The matrices lie where the result will be.
    InPlace,
    /// Matrices elsewhere, only read.
    Matrix(BatchRef<'a, T, M>),
    /// Factors from an earlier factorisation, only read.
    Factors(FactorsRef<'a, T, M>),
}

/// Borrowed factors `A = P L U`: `L` (unit diagonal, not stored) below and `U` on and above the diagonal of `lu`.
#[derive(Debug)]
pub struct FactorsRef<'a, T: Scalar, M: Memory> {
    /// The packed factors.
    pub lu: BatchRef<'a, T, M>,
    /// `n` 0-based exchanges a matrix, one matrix after another: step `k` exchanged rows `k` and `pivots[k]`.
    pub pivots: M::Slice<'a, u32>,
    /// One [`Outcome`](crate::Outcome) word a matrix.
    pub outcomes: M::Slice<'a, u32>,
}

/// [`Source`] without the operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceKind {
    /// See [`Source::InPlace`].
    InPlace,
    /// See [`Source::Matrix`].
    Matrix,
    /// See [`Source::Factors`].
    Factors,
}

impl SourceKind {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::InPlace => "in place",
            Self::Matrix => "from matrices",
            Self::Factors => "from factors",
        }
    }
}

impl<T: Scalar, M: Memory> Source<'_, T, M> {
    /// Which of the three it is.
    pub fn kind(&self) -> SourceKind {
        match self {
            Self::InPlace => SourceKind::InPlace,
            Self::Matrix(_) => SourceKind::Matrix,
            Self::Factors(_) => SourceKind::Factors,
        }
    }

    /// The same source for a shorter time.
    pub fn reborrow(&self) -> Source<'_, T, M> {
        match self {
            Self::InPlace => Source::InPlace,
            Self::Matrix(a) => Source::Matrix(a.reborrow()),
            Self::Factors(factors) => Source::Factors(factors.reborrow()),
        }
    }

    /// Where the elements of matrices or factors lie; `None` in place.
    pub fn layout(&self) -> Option<&BatchLayout> {
        match self {
            Self::InPlace => None,
            Self::Matrix(a) => Some(a.layout()),
            Self::Factors(factors) => Some(factors.lu.layout()),
        }
    }
}

impl<T: Scalar, M: Memory> FactorsRef<'_, T, M> {
    /// The same factors for a shorter time.
    pub fn reborrow(&self) -> FactorsRef<'_, T, M> {
        FactorsRef {
            lu: self.lu.reborrow(),
            pivots: M::reborrow_slice(&self.pivots),
            outcomes: M::reborrow_slice(&self.outcomes),
        }
    }
}
