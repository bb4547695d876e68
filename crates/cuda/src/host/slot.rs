//! A slot: device memory that a chunk has to itself, and how it is divided.

use batchla_core::{
    BatchLayout, BatchMut, BatchRef, Determinant, Element, Error, FactorsRef, Operation, Prepared, Problem, ReportMut,
    Scalar, ScalarKind, Source, SourceKind,
};

use crate::backend::CudaPrepared;
use crate::memory::{DeviceMemory, DeviceSlice, DeviceSliceMut};
use crate::plan::scalar_bytes;
use crate::stream::Stream;

/// Where what lies in a slot, in bytes from its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SlotParts {
    /// Matrices or factors, where they are not in the result's place.
    pub(super) a: u64,
    /// Right-hand sides, likewise.
    pub(super) b: u64,
    /// Results.
    pub(super) out: u64,
    /// Exchanges, given or computed.
    pub(super) pivots: u64,
    /// Outcome words of given factors.
    pub(super) given: u64,
    /// Outcome words of the results.
    pub(super) outcomes: u64,
    pub(super) determinants: u64,
    pub(super) conditions: u64,
    /// All of it.
    pub(super) bytes: u64,
}

/// Bytes of one group of interleaved matrices, or of one matrix, where batches are dense.
pub(super) fn group_bytes(layout: &BatchLayout, scalar: ScalarKind) -> usize {
    layout.strides().lanes * layout.rows() * layout.cols() * scalar_bytes(scalar)
}

impl SlotParts {
    /// For a chunk: `problem` is over dense layouts, and has the chunk's batch. None where the bytes cannot be counted.
    pub(super) fn of(problem: &Problem) -> Option<Self> {
        let (scalar, operation, extras) = (problem.scalar(), problem.operation(), problem.extras());
        let factors = problem.source() == SourceKind::Factors;
        let (order, batch, matrices) = (problem.order(), problem.batch(), problem.a().batch());
        let mut end = Some(0u64);
        let mut part = |there: bool, count: usize, bytes: usize| {
            let start = end;
            if there {
                let bytes = (count as u64).checked_mul(bytes as u64);
                end =
                    start.zip(bytes).and_then(|(start, bytes)| start.checked_add(bytes)?.checked_next_multiple_of(256));
            }
            start
        };
        let groups =
            |layout: &BatchLayout| (layout.batch().div_ceil(layout.strides().lanes), group_bytes(layout, scalar));
        let ((a, a_bytes), (out, out_bytes)) = (groups(problem.a()), groups(problem.out()));
        let (b, b_bytes) = problem.b().map_or((0, 0), groups);
        let complex = matches!(scalar, ScalarKind::C32 | ScalarKind::C64);
        let real = if complex { scalar_bytes(scalar) / 2 } else { scalar_bytes(scalar) };
        Some(Self {
            a: part(problem.source() != SourceKind::InPlace, a, a_bytes)?,
            b: part(problem.b().is_some(), b, b_bytes)?,
            out: part(operation != Operation::Determinant, out, out_bytes)?,
            pivots: part(factors || operation == Operation::Factorize, matrices, order * 4)?,
            given: part(factors, matrices, 4)?,
            outcomes: part(true, batch, 4)?,
            determinants: part(extras.determinant, batch, scalar_bytes(scalar) + real)?,
            conditions: part(extras.condition, batch, real)?,
            bytes: end?,
        })
    }
}

/// A chunk on the device.
pub(super) struct Chunk<'a> {
    pub(super) prepared: &'a CudaPrepared,
    pub(super) parts: &'a SlotParts,
    /// The slot's address.
    pub(super) start: u64,
    /// The stream that the kernels are queued on.
    pub(super) stream: &'a Stream,
    /// Results in the chunk.
    pub(super) count: usize,
    /// Whether one matrix serves them all.
    pub(super) one_matrix: bool,
    /// Whether one right-hand side does.
    pub(super) one_right: bool,
}

impl<'a> Chunk<'a> {
    fn problem(&self) -> &'a Problem {
        self.prepared.problem()
    }

    fn matrices(&self) -> usize {
        if self.one_matrix { 1 } else { self.count }
    }

    fn slice<E: Element>(&self, part: u64, len: usize) -> DeviceSlice<'a, E> {
        // SAFETY: within the slot, which is this chunk's; its parts are aligned and were written by the copies before, or are by the run.
        unsafe { DeviceSlice::from_raw(self.stream, self.start + part, len) }
    }

    pub(super) fn slice_mut<E: Element>(&self, part: u64, len: usize) -> DeviceSliceMut<'a, E> {
        // SAFETY: as above; parts do not overlap, and each is borrowed once a run.
        unsafe { DeviceSliceMut::from_raw(self.stream, self.start + part, len) }
    }

    fn batch<T: Scalar>(
        &self,
        part: u64,
        layout: &BatchLayout,
        count: usize,
    ) -> Result<BatchRef<'a, T, DeviceMemory>, Error> {
        let layout = layout.with_batch(count)?;
        // SAFETY: the slot has room for as many matrices of this layout.
        unsafe { BatchRef::from_span(self.slice(part, layout.span()), layout) }
    }

    /// The matrices, or factors with what belongs to them.
    pub(super) fn source<T: Scalar>(&self) -> Result<Source<'a, T, DeviceMemory>, Error> {
        let matrices = self.matrices();
        let a = || self.batch(self.parts.a, self.problem().a(), matrices);
        Ok(match self.problem().source() {
            SourceKind::InPlace => Source::InPlace,
            SourceKind::Matrix => Source::Matrix(a()?),
            SourceKind::Factors => Source::Factors(FactorsRef {
                lu: a()?,
                pivots: self.slice(self.parts.pivots, matrices * self.problem().order()),
                outcomes: self.slice(self.parts.given, matrices),
            }),
        })
    }

    /// The right-hand sides, where they are not in the results' place.
    pub(super) fn right<T: Scalar>(&self) -> Result<Option<BatchRef<'a, T, DeviceMemory>>, Error> {
        let count = if self.one_right { 1 } else { self.count };
        self.problem().b().map(|layout| self.batch(self.parts.b, layout, count)).transpose()
    }

    /// The results.
    pub(super) fn out<T: Scalar>(&self) -> Result<BatchMut<'a, T, DeviceMemory>, Error> {
        let layout = self.problem().out().with_batch(self.count)?;
        // SAFETY: the slot has room for as many matrices of this layout.
        unsafe { BatchMut::from_span(self.slice_mut(self.parts.out, layout.span()), layout) }
    }

    pub(super) fn report<T: Scalar>(&self) -> ReportMut<'a, T, DeviceMemory> {
        let extras = self.problem().extras();
        let mut report = ReportMut::new(self.slice_mut(self.parts.outcomes, self.count));
        if extras.determinant {
            report = report.with_determinants(self.slice_mut::<Determinant<T>>(self.parts.determinants, self.count));
        }
        if extras.condition {
            report = report.with_conditions(self.slice_mut::<T::Real>(self.parts.conditions, self.count));
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use batchla_core::{Complex, Extras, Transpose};

    use super::*;

    #[test]
    fn a_slot_has_room_for_all_that_a_chunk_needs_and_no_more() {
        let a = BatchLayout::column_major(10, 5, 5).unwrap();
        let in_place = Problem::invert::<f64>(SourceKind::InPlace, a, a).unwrap();
        let parts = SlotParts::of(&in_place).unwrap();
        assert_eq!((parts.out, parts.outcomes, parts.bytes), (0, 2048, 2048 + 256));
        let extras = Extras::none().with_determinant().with_condition();
        let apart = Problem::invert::<Complex<f64>>(SourceKind::Matrix, a, a).unwrap().with_extras(extras).unwrap();
        let parts = SlotParts::of(&apart).unwrap();
        assert_eq!((parts.a, parts.out, parts.outcomes, parts.determinants), (0, 4096, 8192, 8448));
        assert_eq!(
            parts.conditions,
            parts.determinants + (10 * size_of::<Determinant<Complex<f64>>>() as u64).next_multiple_of(256)
        );
        let lanes = BatchLayout::interleaved(10, 5, 5, 4).unwrap();
        let whole = Problem::factorize::<f32>(SourceKind::InPlace, lanes, lanes).unwrap();
        assert_eq!(SlotParts::of(&whole).unwrap().pivots, (3 * 4 * 25 * 4u64).next_multiple_of(256));
        let one = BatchLayout::column_major(1, 5, 5).unwrap();
        let x = BatchLayout::column_major(10, 5, 2).unwrap();
        let solve = Problem::solve::<f64>(SourceKind::Factors, one, None, x, Transpose::None).unwrap();
        let parts = SlotParts::of(&solve).unwrap();
        assert_eq!((parts.out, parts.pivots, parts.given), (256, 256 + 1024, 256 + 1024 + 256));
    }
}
