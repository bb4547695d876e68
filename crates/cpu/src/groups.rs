//! Operations on groups: matrices are gathered, one a lane, computed together, and written out one by one.

use batchla_core::{BatchRef, Determinant, HostMemory, MatrixMut, MatrixRef, Outcome, Scalar, Source, Transpose};
use num_traits::Float;

use crate::backend::{Cpu, CpuPrepared, CpuScalar};
use crate::interleaved::{Getrf, Getri, Getrs, Group, Pack, Spoiled, Unpack};
use crate::lu::serving;
use crate::parallel::{One, Results};
use crate::scratch::Threads;
use crate::simd::{InstructionSet, MOST_LANES, dispatch};

/// The results of a group, lane by lane. Lanes beyond the batch have none, and compute what the last one does.
pub(crate) type Ones<'a, T> = [Option<One<'a, T>>; MOST_LANES];

/// The matrices of a group, lane by lane.
type Refs<'a, T> = [MatrixRef<'a, T>; MOST_LANES];

/// A group on its way through an operation.
pub(crate) struct FactoredGroup<'a, T: Scalar> {
    set: InstructionSet,
    lanes: usize,
    order: usize,
    /// The factors.
    a: &'a mut [T],
    exchanges: &'a [u32],
    outcomes: [Outcome; MOST_LANES],
    /// `‖A‖₁`, where the condition number is wanted.
    norms: [Option<T::Real>; MOST_LANES],
}

impl Cpu {
    /// Takes the matrices of a source over in groups, factors them unless they come as factors, and lets `finish` do the rest, with
    /// room for right-hand sides and a few columns to set aside.
    pub(crate) fn for_each_factored_group<T: CpuScalar>(
        &self,
        prepared: &CpuPrepared,
        set: InstructionSet,
        source: &Source<'_, T, HostMemory>,
        threads: Threads<'_, T>,
        results: Results<'_, T>,
        finish: impl Fn(FactoredGroup<'_, T>, Aside<'_, T>, &mut Ones<'_, T>) + Sync,
    ) {
        let (lanes, order) = (prepared.shape().lanes, prepared.shape().order);
        self.for_each(prepared, threads, results, |scratch, mut results| {
            loop {
                let mut ones = gather(&mut results, lanes);
                if ones[0].is_none() {
                    break;
                }
                let group = &mut scratch.group;
                let aside = Aside { x: &mut group.x, columns: &mut group.aside };
                let place = (&mut group.a[..], &mut group.exchanges[..]);
                let in_lane = |lane: usize| ones[lane].as_ref().map(|one| (one.index, one.matrix.as_ref()));
                let wants_norms = ones[0].as_ref().is_some_and(|one| one.condition.is_some());
                let factored = factor(set, lanes, order, source, place, in_lane, wants_norms);
                finish(factored, aside, &mut ones);
            }
        });
    }
}

/// Memory beside the factors.
pub(crate) struct Aside<'a, T> {
    /// Right-hand sides.
    pub(crate) x: &'a mut [T],
    /// A few columns.
    pub(crate) columns: &'a mut [T],
}

/// The results of the next group.
pub(crate) fn gather<'a, T: Scalar>(results: &mut Results<'a, T>, lanes: usize) -> Ones<'a, T> {
    std::array::from_fn(|lane| if lane < lanes { results.next() } else { None })
}

/// The factors of the one matrix that serves a whole batch, in every lane.
pub(crate) fn factor_shared<'a, T: CpuScalar>(
    set: InstructionSet,
    lanes: usize,
    order: usize,
    source: &Source<'_, T, HostMemory>,
    group: &'a mut Group<T>,
) -> FactoredGroup<'a, T> {
    let place = (&mut group.a[..], &mut group.exchanges[..]);
    factor(set, lanes, order, source, place, |lane| (lane == 0).then_some((0, None)), false)
}

/// Takes over and factors the matrices whose places in the batch, and in the results, `in_lane` gives.
fn factor<'a, 'm, T: CpuScalar>(
    set: InstructionSet,
    lanes: usize,
    order: usize,
    source: &Source<'_, T, HostMemory>,
    (a, exchanges): (&'a mut [T], &'a mut [u32]),
    in_lane: impl Fn(usize) -> Option<(usize, Option<&'m MatrixMut<'m, T>>)>,
    wants_norms: bool,
) -> FactoredGroup<'a, T> {
    let mut outcomes = [Outcome::NotFinite; MOST_LANES];
    let mut norms = [None; MOST_LANES];
    let from = refs(lanes, |lane| {
        let (index, result) = in_lane(lane)?;
        match source {
            Source::InPlace => result.map(MatrixMut::share),
            Source::Matrix(a) => serving(a, index),
            Source::Factors(factors) => serving(&factors.lu, index),
        }
    });
    if let Some(from) = from {
        dispatch(set, Pack { from: &from[..lanes], to: a });
        if wants_norms {
            norms = std::array::from_fn(|lane| (lane < lanes).then(|| one_norm(from[lane])));
        }
        match source {
            Source::Factors(factors) => {
                for lane in 0..lanes {
                    let index = in_lane(lane).map_or(0, |(index, _)| index);
                    let b = if factors.lu.batch() == 1 { 0 } else { index };
                    let pivots = &factors.pivots[b * order..(b + 1) * order];
                    exchanges[lane * order..(lane + 1) * order].copy_from_slice(pivots);
                    outcomes[lane] = Outcome::from_word(factors.outcomes[b]);
                }
            }
            _ => {
                let zero_pivots = dispatch(set, Getrf { a, order, exchanges });
                for (outcome, column) in outcomes.iter_mut().zip(zero_pivots) {
                    let column = column as usize;
                    *outcome = if column < order { Outcome::Singular { column } } else { Outcome::Regular };
                }
            }
        }
        spoil(&mut outcomes, dispatch(set, Spoiled { a }));
    }
    FactoredGroup { set, lanes, order, a, exchanges, outcomes, norms }
}

/// What each lane takes in: of those beyond the last, the same as the first. `None` where not even that has anything.
fn refs<'a, T: Scalar>(lanes: usize, of: impl Fn(usize) -> Option<MatrixRef<'a, T>>) -> Option<Refs<'a, T>> {
    let mut refs = [of(0)?; MOST_LANES];
    for (lane, place) in refs[..lanes].iter_mut().enumerate().skip(1) {
        if let Some(matrix) = of(lane) {
            *place = matrix;
        }
    }
    Some(refs)
}

/// Marks lanes that are not finite.
fn spoil(outcomes: &mut [Outcome; MOST_LANES], lanes: u32) {
    for (lane, outcome) in outcomes.iter_mut().enumerate() {
        if lanes >> lane & 1 == 1 {
            *outcome = Outcome::NotFinite;
        }
    }
}

/// The 1-norm: the largest sum of moduli of a column; NaN where any is.
fn one_norm<T: Scalar>(a: MatrixRef<'_, T>) -> T::Real {
    let sums = (0..a.cols()).map(|j| (0..a.rows()).map(|i| a.at(i, j).modulus()).sum());
    sums.fold(num_traits::zero(), |largest: T::Real, sum: T::Real| if sum <= largest { largest } else { sum })
}

impl<T: CpuScalar> FactoredGroup<'_, T> {
    /// Writes factors, exchanges and reports.
    pub(crate) fn unpack_factors(&mut self, ones: &mut Ones<'_, T>) {
        for (lane, one) in ones.iter_mut().enumerate() {
            let Some(one) = one else { break };
            one.pivots.copy_from_slice(self.exchanges_of(lane));
        }
        dispatch(self.set, Unpack { from: self.a, to: &mut ones[..self.lanes] });
        self.report(ones);
    }

    /// Writes outcomes and determinants.
    pub(crate) fn report(&self, ones: &mut Ones<'_, T>) {
        for (lane, one) in ones.iter_mut().enumerate() {
            let Some(one) = one else { break };
            *one.outcome = self.outcomes[lane].to_word();
            if let Some(determinant) = &mut one.determinant {
                **determinant = self.determinant(lane);
            }
        }
    }

    /// Inverts, and writes inverses and reports.
    pub(crate) fn invert(&mut self, aside: Aside<'_, T>, ones: &mut Ones<'_, T>) {
        self.report(ones);
        let Self { set, order, exchanges, .. } = *self;
        dispatch(set, Getri { a: self.a, aside: aside.columns, order, exchanges });
        let mut outcomes = self.outcomes;
        spoil_regular(&mut outcomes, dispatch(set, Spoiled { a: self.a }));
        dispatch(set, Unpack { from: self.a, to: &mut ones[..self.lanes] });
        self.conclude(&outcomes, ones);
    }

    /// Solves with right-hand sides from `b`, or from where the solutions go, and writes solutions and reports.
    pub(crate) fn solve(
        &self,
        x: &mut [T],
        b: Option<&BatchRef<'_, T>>,
        transpose: Transpose,
        ones: &mut Ones<'_, T>,
    ) {
        let Self { set, lanes, order, exchanges, .. } = *self;
        let given = refs(lanes, |lane| {
            let one = ones[lane].as_ref()?;
            b.map_or_else(|| one.matrix.as_ref().map(MatrixMut::share), |b| serving(b, one.index))
        });
        let Some(given) = given else { return };
        dispatch(set, Pack { from: &given[..lanes], to: x });
        dispatch(set, Getrs { lu: self.a, x, order, exchanges, transpose });
        let mut outcomes = self.outcomes;
        spoil_regular(&mut outcomes, dispatch(set, Spoiled { a: x }));
        dispatch(set, Unpack { from: x, to: &mut ones[..lanes] });
        self.conclude(&outcomes, ones);
    }

    /// The outcome of one lane in every lane.
    pub(crate) fn served_by_first(mut self) -> Self {
        self.outcomes = [self.outcomes[0]; MOST_LANES];
        self
    }

    /// Writes outcomes and condition numbers of results that are written, and NaN where they are not to be used.
    fn conclude(&self, outcomes: &[Outcome; MOST_LANES], ones: &mut Ones<'_, T>) {
        for (lane, one) in ones.iter_mut().enumerate() {
            let Some(one) = one else { break };
            *one.outcome = outcomes[lane].to_word();
            let Some(result) = &mut one.matrix else { continue };
            if !outcomes[lane].is_regular() {
                result.fill_with(|_, _| T::nan());
            }
            if let (Some(condition), Some(norm)) = (&mut one.condition, self.norms[lane]) {
                **condition = match outcomes[lane] {
                    Outcome::Regular => norm * one_norm(result.share()),
                    Outcome::Singular { .. } => Float::infinity(),
                    Outcome::NotFinite => Float::nan(),
                };
            }
        }
    }

    fn determinant(&self, lane: usize) -> Determinant<T> {
        // Complex numbers lie in two planes: all real parts of a vector, then all imaginary ones.
        let parts = if T::IS_COMPLEX { 2 } else { 1 };
        let part = |at: usize, part: usize| {
            let place = (at * parts + part) * self.lanes + lane;
            let x = self.a[place / parts];
            if place % parts == 0 { x.re() } else { x.im() }
        };
        let diagonal = |k: usize| {
            let at = k + k * self.order;
            T::from_parts(part(at, 0), if parts == 2 { part(at, 1) } else { num_traits::zero() })
        };
        Determinant::from_factors(self.outcomes[lane], diagonal, self.exchanges_of(lane))
    }

    fn exchanges_of(&self, lane: usize) -> &[u32] {
        &self.exchanges[lane * self.order..(lane + 1) * self.order]
    }
}

/// Marks regular lanes whose results are not finite. (Others have no results.)
fn spoil_regular(outcomes: &mut [Outcome; MOST_LANES], lanes: u32) {
    for (lane, outcome) in outcomes.iter_mut().enumerate() {
        if outcome.is_regular() && lanes >> lane & 1 == 1 {
            *outcome = Outcome::NotFinite;
        }
    }
}
