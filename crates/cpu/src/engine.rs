//! How the plans of our own compute a group of matrices: which routines, on which vectors, in how much memory.

use batchla_core::{MatrixMut, MatrixRef, Operation, Problem, Receipt, Scalar, ScalarKind, SourceKind, Transpose};

use crate::backend::CpuScalar;
use crate::blocked::{self, BlockedGetrs, PackColumns, Pairs, Transposed, UnpackColumns, pairs};
use crate::interleaved::{self, Getri, Getrs, Pack, PackGetrf, Stretch, Unpack};
use crate::routines::Spoiled;
use crate::simd::{InstructionSet, MOST_LANES};
use crate::team::Team;

/// Which routines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// A matrix a lane.
    Interleaved,
    /// One matrix at a time, by blocks.
    Blocked,
}

/// The way to compute groups of matrices of one order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Engine {
    kind: Kind,
    set: InstructionSet,
    /// Lanes of a vector.
    width: usize,
    order: usize,
    /// The distance of columns, in numbers.
    ld: usize,
    /// Whether plain matrices are factored and inverted two at a time.
    pairs: bool,
    /// Whether results go past the caches.
    streams: bool,
}

/// Results of more bytes go past the caches: before they are read, most are out of them anyhow. On an EPYC with 32 MiB of third-level cache reading them
/// afterwards costs what is won here at about so many.
const LARGE: usize = 8 << 20;

pub(crate) const STREAMS_RECEIPT: Receipt = Receipt::new(
    "AMD EPYC with 32 MiB of third-level cache, two threads",
    "2026-11-28",
    "past the caches and by way of them in turns, f64 and f32 of orders 100 to 256; no record was kept",
);

/// Elements of a group's memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) a: usize,
    pub(crate) x: usize,
    pub(crate) aside: usize,
    pub(crate) exchanges: usize,
}

impl Sizes {
    /// Bytes, with elements of so many.
    pub(crate) fn bytes(&self, element: usize) -> u64 {
        let elements = self.a.saturating_add(self.x).saturating_add(self.aside) as u64;
        elements.saturating_mul(element as u64).saturating_add(4 * self.exchanges as u64)
    }
}

impl Engine {
    pub(crate) fn new(kind: Kind, set: InstructionSet, scalar: ScalarKind, order: usize) -> Self {
        let width = match scalar {
            ScalarKind::F32 | ScalarKind::C32 => set.lanes::<f32>(),
            ScalarKind::F64 | ScalarKind::C64 => set.lanes::<f64>(),
        };
        let ld = match kind {
            Kind::Interleaved => interleaved::leading_dimension(order).saturating_mul(width),
            Kind::Blocked => blocked::leading_dimension(order, width, scalar),
        };
        let pairs = kind == Kind::Blocked && pairs::serves(set, scalar, order);
        Self { kind, set, width, order, ld, pairs, streams: false }
    }

    /// The same by lanes, with the same bits.
    pub(crate) fn by_lanes(self) -> Self {
        let ld = interleaved::leading_dimension(self.order).saturating_mul(self.width);
        Self { kind: Kind::Interleaved, ld, pairs: false, ..self }
    }

    /// The same for a problem, whose results may be large.
    pub(crate) fn for_results_of(self, problem: &Problem) -> Self {
        let large = problem.out().elements().saturating_mul(problem.scalar().bytes()) > LARGE;
        let apart = problem.operation() != Operation::Solve && problem.source() != SourceKind::InPlace;
        let real = matches!(problem.scalar(), ScalarKind::F32 | ScalarKind::F64);
        let pays = self.kind == Kind::Blocked && !self.pairs && real;
        Self { streams: large && apart && pays, ..self }
    }

    /// Whether results go past the caches, where they lie without gaps.
    pub(crate) fn streams(&self) -> bool {
        self.streams
    }

    pub(crate) fn instruction_set(&self) -> InstructionSet {
        self.set
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    pub(crate) fn order(&self) -> usize {
        self.order
    }

    /// Matrices of a group.
    pub(crate) fn lanes(&self) -> usize {
        if self.kind == Kind::Interleaved { self.width } else { 1 }
    }

    /// Matrices that are computed together at most: those of a group, or a pair.
    pub(crate) fn together(&self) -> usize {
        if self.pairs { 2 } else { self.lanes() }
    }

    /// Whether plain matrices are factored and inverted two at a time.
    pub(crate) fn pairs(&self) -> bool {
        self.pairs
    }

    /// Matrices of the largest group that there may be: of [lanes](Self::by_lanes), where pairs are given up.
    pub(crate) fn most_together(&self) -> usize {
        if self.pairs { self.width } else { self.lanes() }
    }

    /// Elements of a group's factors.
    pub(crate) fn area(&self) -> usize {
        self.ld.saturating_mul(self.order)
    }

    /// The memory that a group with so many right-hand sides needs, and the largest group's factors.
    pub(crate) fn sizes(&self, right_hand_sides: usize, aside: bool) -> Sizes {
        let columns = |count: usize| self.ld.saturating_mul(count);
        let blocked = self.kind == Kind::Blocked;
        let set_aside = if blocked { blocked::columns_aside(self.order) } else { interleaved::COLUMNS };
        let set_aside = columns(if aside { set_aside } else { 0 });
        // Where pairs are given up, the memory is that of groups by lanes.
        let (a, least_aside) = if self.pairs {
            let by_lanes = self.by_lanes().sizes(0, aside);
            (by_lanes.a, by_lanes.aside.max(columns(pairs::columns_aside(self.order))))
        } else {
            (0, 0)
        };
        Sizes {
            a: self.area().max(a),
            x: columns(right_hand_sides),
            aside: set_aside.max(least_aside),
            exchanges: self.order.saturating_mul(self.most_together()),
        }
    }

    /// Takes matrices over, all of one shape; whether this thread takes `more` over after them.
    pub(crate) fn pack<T: CpuScalar>(&self, (from, more): (&[MatrixRef<'_, T>], bool), to: &mut [T]) {
        match self.kind {
            Kind::Interleaved => T::pack(self.set, Pack { from, to, more }),
            Kind::Blocked => T::pack_columns(self.set, PackColumns { from: from[0], to, ld: self.ld }),
        }
    }

    /// Factors or inverts as many whole groups of a plain stretch as are regular, in one go; gives their number of matrices. `None` where there is no such way.
    pub(crate) fn run_plain<T: CpuScalar>(&self, stretch: Stretch<'_, T>) -> Option<usize> {
        match self.kind {
            Kind::Interleaved => stretch.determinants.is_none().then(|| T::stretch(self.set, stretch)),
            Kind::Blocked => self.pairs.then(|| T::pairs(self.set, Pairs(stretch))),
        }
    }

    /// Hands matrices over; gives those that are not finite, bit by bit.
    pub(crate) fn unpack<T: CpuScalar>(&self, from: &[T], to: &mut [Option<MatrixMut<'_, T>>]) -> u32 {
        match (self.kind, to) {
            (Kind::Interleaved, to) => T::unpack(self.set, Unpack { from, to, exchanges: None }),
            (Kind::Blocked, to) => self.unpack_columns(from, to, None),
        }
    }

    /// Hands over the matrix of a group of one; `exchanges`: of an inverse whose columns are still to come to their places.
    fn unpack_columns<T: CpuScalar>(
        &self,
        from: &[T],
        to: &mut [Option<MatrixMut<'_, T>>],
        exchanges: Option<&[u32]>,
    ) -> u32 {
        let [Some(to), ..] = to else { return 0 };
        u32::from(
            T::unpack_columns(self.set, UnpackColumns { from, ld: self.ld, to, exchanges, streams: self.streams }) != 0,
        )
    }

    /// Takes matrices over, as [`pack`](Self::pack) does, and factors them; gives the column of the first zero pivot of each.
    pub(crate) fn pack_getrf<T: CpuScalar>(
        &self,
        (from, more): (&[MatrixRef<'_, T>], bool),
        a: &mut [T],
        exchanges: &mut [u32],
        team: &Team,
    ) -> [u32; MOST_LANES] {
        match self.kind {
            Kind::Interleaved => T::pack_getrf(self.set, PackGetrf { from, more, a, exchanges }),
            Kind::Blocked => {
                self.pack((from, more), a);
                [blocked::getrf(self.set, team, a, self.ld, exchanges) as u32; MOST_LANES]
            }
        }
    }

    /// Inverts from factors, in their place, and hands the inverses over; gives those that are not finite, bit by bit.
    pub(crate) fn getri<T: CpuScalar>(
        &self,
        (a, aside): (&mut [T], &mut [T]),
        exchanges: &[u32],
        team: &Team,
        to: &mut [Option<MatrixMut<'_, T>>],
    ) -> u32 {
        match self.kind {
            Kind::Interleaved => {
                let exchange = !interleaved::columns_move(self.order, to);
                T::getri(self.set, Getri { a, aside, order: self.order, exchanges, exchange });
                T::unpack(self.set, Unpack { from: a, to, exchanges: (!exchange).then_some(exchanges) })
            }
            Kind::Blocked => {
                let exchange = !blocked::columns_move(self.order);
                blocked::getri(self.set, team, (&mut *a, aside), self.ld, exchanges, exchange);
                self.unpack_columns(a, to, (!exchange).then_some(exchanges))
            }
        }
    }

    /// Makes factors ready to be solved with.
    pub(crate) fn before_getrs<T: CpuScalar>(&self, lu: &mut [T], transpose: Transpose) {
        if self.kind == Kind::Blocked && transpose != Transpose::None {
            let conj = transpose == Transpose::ConjugateTranspose;
            T::transposed(self.set, Transposed { a: lu, ld: self.ld, order: self.order, conj });
        }
    }

    /// Solves from factors that are ready.
    pub(crate) fn getrs<T: CpuScalar>(
        &self,
        lu: &[T],
        x: &mut [T],
        exchanges: &[u32],
        transpose: Transpose,
        team: &Team,
    ) {
        match self.kind {
            Kind::Interleaved => T::getrs(self.set, Getrs { lu, x, order: self.order, exchanges, transpose }),
            Kind::Blocked => team.share(x, self.ld, self.order * self.order, |_, x| {
                T::blocked_getrs(self.set, BlockedGetrs { lu, x, ld: self.ld, exchanges, transpose });
            }),
        }
    }

    /// Which matrices are not finite, bit by bit.
    pub(crate) fn spoiled<T: CpuScalar>(&self, a: &[T]) -> u32 {
        let interleaved = self.kind == Kind::Interleaved;
        let rows = if interleaved { self.order } else { self.order.div_ceil(self.width) };
        let lanes = T::spoiled(self.set, Spoiled { a, ld: self.ld / self.width, rows });
        if interleaved { lanes } else { u32::from(lanes != 0) }
    }

    /// Whether what is not finite in regular factors makes their inverse so, whose elements are looked at: one matrix at a time it does, but for a diagonal whose
    /// reciprocal is zero.
    pub(crate) fn shows_in_inverse<T: Scalar>(&self, a: &[T]) -> bool {
        self.kind == Kind::Blocked && (0..self.order).all(|k| self.diagonal(a, 0, k).finite())
    }

    /// `U`'s diagonal, of the matrix in a lane.
    pub(crate) fn diagonal<T: Scalar>(&self, a: &[T], lane: usize, k: usize) -> T {
        let column = k * (self.ld / self.width);
        let (vector, lane) = match self.kind {
            Kind::Interleaved => (column + k, lane),
            Kind::Blocked => (column + k / self.width, k % self.width),
        };
        // Complex numbers lie in two planes: all real parts of a vector, then all imaginary ones.
        if !T::IS_COMPLEX {
            return a[vector * self.width + lane];
        }
        let part = |part: usize| {
            let place = (2 * vector + part) * self.width + lane;
            if place.is_multiple_of(2) { a[place / 2].re() } else { a[place / 2].im() }
        };
        T::from_parts(part(0), part(1))
    }
}
