//! What a run starts from: matrices that are factored first, or factors of the caller's.

use batchla_core::{BatchRef, Error, FactorsRef, Scalar, Source};

use crate::driver::DevicePointer;
use crate::memory::DeviceMemory;
use crate::run::{DeviceFactors, Lying, Run};
use crate::stream::Stream;

/// A source on the device.
pub(crate) enum DeviceSource<'a, T: Scalar> {
    Matrices(Lying<'a, T>),
    Factors(FactorsRef<'a, T, DeviceMemory>),
}

impl<'a, T: Scalar> DeviceSource<'a, T> {
    /// `place`: where matrices lie that are in the result's place.
    pub(crate) fn new(
        source: &'a Source<'_, T, DeviceMemory>,
        place: Option<BatchRef<'a, T, DeviceMemory>>,
    ) -> Option<Self> {
        Some(match source {
            Source::InPlace => Self::Matrices(Lying(place?)),
            Source::Matrix(a) => Self::Matrices(Lying(a.reborrow())),
            Source::Factors(factors) => Self::Factors(factors.reborrow()),
        })
    }

    /// Matrices in it.
    pub(crate) fn batch(&self) -> usize {
        match self {
            Self::Matrices(a) => a.0.batch(),
            Self::Factors(factors) => factors.lu.batch(),
        }
    }

    /// The streams that its memory is at home on.
    pub(crate) fn homes(&self) -> [Option<&'a Stream>; 3] {
        match self {
            Self::Matrices(a) => [Some(a.home()), None, None],
            Self::Factors(factors) => {
                [Some(factors.lu.span().stream()), Some(factors.pivots.stream()), Some(factors.outcomes.stream())]
            }
        }
    }

    /// The matrices from `first` on, where they are not factors.
    pub(crate) fn matrices(&self, first: usize, batch: usize) -> Option<crate::operand::Operand> {
        match self {
            Self::Matrices(a) => Some(a.operand(first, batch)),
            Self::Factors(_) => None,
        }
    }

    /// Factors of the caller's as they are, exchanges unchecked.
    pub(crate) fn given(&self, first: usize, batch: usize, order: usize) -> Option<DeviceFactors> {
        let Self::Factors(factors) = self else { return None };
        let start = if factors.lu.batch() == 1 { 0 } else { first as u64 };
        Some(DeviceFactors {
            lu: Lying(factors.lu.reborrow()).operand(first, batch),
            pivots: DevicePointer(factors.pivots.as_raw() + start * order as u64 * 4),
            rows: DevicePointer(0),
            status: DevicePointer(factors.outcomes.as_raw() + start * 4),
        })
    }

    /// Queues what it takes to have the factors of `count` matrices from `first` on, their rows, and their outcomes in `status`.
    pub(crate) fn factored(
        &self,
        run: &Run<'_>,
        status: DevicePointer,
        first: usize,
        count: usize,
        order: usize,
    ) -> Result<DeviceFactors, Error> {
        let own = run.own_factors(status);
        let batch = self.batch();
        if let Some(given) = self.given(first, batch, order) {
            run.permutation(given.pivots, given.status, own.rows, status, count)?;
            return Ok(DeviceFactors { rows: own.rows, status, ..given });
        }
        if let Some(a) = self.matrices(first, batch) {
            run.getrf(a, &own, count)?;
        }
        Ok(own)
    }
}
