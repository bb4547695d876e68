//! Operations on groups: matrices are taken over, one a lane, computed together, and handed over one by one.

use batchla_core::{
    BatchRef, Determinant, HostMemory, MatrixMut, MatrixRef, Operation, Outcome, Prepared, Real, Scalar, Source,
    Transpose,
};
use num_traits::Float;

use crate::backend::{Cpu, CpuPrepared, CpuScalar};
use crate::engine::Engine;
use crate::group::Group;
use crate::interleaved::Stretch;
use crate::lu::serving;
use crate::parallel::{Plain, Results, Together};
use crate::scratch::Threads;
use crate::simd::MOST_LANES;
use crate::team::Team;

/// A group on its way through an operation.
pub(crate) struct FactoredGroup<'a, T: Scalar> {
    engine: Engine,
    /// The factors.
    a: &'a mut [T],
    /// The exchanges of each matrix, one after another.
    exchanges: &'a [u32],
    outcomes: [Outcome; MOST_LANES],
    /// Threads that help.
    pub(crate) team: &'a Team,
    /// `‖A‖₁`, where the condition number is wanted.
    norms: Option<[T::Real; MOST_LANES]>,
}

/// Memory beside the factors.
pub(crate) struct Aside<'a, T> {
    /// Right-hand sides.
    pub(crate) x: &'a mut [T],
    /// A few columns.
    pub(crate) columns: &'a mut [T],
}

impl Cpu {
    /// Takes the matrices of a source over in groups, factors them unless they come as factors, and lets `finish` do the rest.
    pub(crate) fn for_each_factored_group<T: CpuScalar>(
        &self,
        prepared: &CpuPrepared,
        engine: Engine,
        source: &Source<'_, T, HostMemory>,
        threads: Threads<'_, T>,
        results: Results<'_, T>,
        finish: impl Fn(FactoredGroup<'_, T>, Aside<'_, T>, Together<'_, T>) + Sync,
    ) {
        let (operation, transpose) = (prepared.problem().operation(), prepared.transpose());
        let engine = engine.for_results_of(prepared.problem());
        self.for_each(prepared, threads, results, |scratch, mut results, team| {
            let (mut engine, mut given_up) = (engine, 0);
            loop {
                let Group { a, x, aside, exchanges } = &mut scratch.group;
                let done = run_plain(engine, operation, source, &mut results, (a, aside, exchanges));
                results.pass_over(done.unwrap_or(0));
                given_up = if done == Some(0) { given_up + 1 } else { 0 };
                // Where one pair after another is given up, pairs are time lost.
                if engine.pairs() && given_up == PATIENCE && results.left() >= engine.most_together() / 2 {
                    engine = engine.by_lanes();
                }
                // One group, or both matrices of a pair that was given up.
                for _ in 0..engine.together() / engine.lanes() {
                    let Some(together) = results.next_together(engine.lanes()) else { return };
                    let factored = factor((engine, team), operation, source, &together, (a, exchanges), transpose);
                    finish(factored, Aside { x, columns: &mut *aside }, together);
                }
            }
        });
    }

    /// Factors the one matrix that serves all right-hand sides, and solves with them.
    pub(crate) fn solve_with_one<T: CpuScalar>(
        &self,
        prepared: &CpuPrepared,
        engine: Engine,
        source: &Source<'_, T, HostMemory>,
        (threads, shared): (Threads<'_, T>, &mut Group<T>),
        results: Results<'_, T>,
        (b, transpose): (Option<&BatchRef<'_, T>>, Transpose),
    ) {
        let nothing = Together {
            first: 0,
            count: 1,
            more: false,
            matrices: [const { None }; MOST_LANES],
            pivots: &mut [],
            outcomes: &mut [],
            determinants: None,
            conditions: None,
        };
        let place = (&mut shared.a[..], &mut shared.exchanges[..]);
        let alone = Team::new(1);
        let lu = factor((engine, &alone), Operation::Solve, source, &nothing, place, transpose);
        self.for_each(prepared, threads, results, |scratch, mut results, team| {
            while let Some(together) = results.next_together(engine.lanes()) {
                lu.solve((&mut scratch.group.x, team), b, transpose, together);
            }
        });
    }
}

/// Pairs given up one after another, after which the rest of a stretch goes by lanes.
const PATIENCE: usize = 2;

/// Does what can be done without a look at single matrices; gives for how many of them. `None` where no matrices are like that.
fn run_plain<T: CpuScalar>(
    engine: Engine,
    operation: Operation,
    source: &Source<'_, T, HostMemory>,
    results: &mut Results<'_, T>,
    (a, aside, exchanges): (&mut [T], &mut [T], &mut [u32]),
) -> Option<usize> {
    let invert = operation == Operation::Invert;
    if !invert && operation != Operation::Factorize {
        return None;
    }
    let Plain { first, matrices: to, pivots, outcomes, determinants } = results.plain()?;
    // An inverse takes the diagonal's place; factors still have it when they are handed over.
    let (of_factors, determinants) = if invert { (None, determinants) } else { (determinants, None) };
    let (order, area) = (engine.order(), engine.order() * engine.order());
    let from = match source {
        Source::InPlace => None,
        Source::Matrix(a) if a.layout().is_plain() => Some(a.dense_slice()?.get(first * area..)?.get(..to.len())?),
        _ => return None,
    };
    let exchanges = if invert { exchanges } else { pivots };
    let (to_place, own_exchanges) = (&mut *to, &mut *exchanges);
    let stretch = Stretch { order, from, to: to_place, exchanges: own_exchanges, invert, determinants, a, aside };
    let done = engine.run_plain(stretch)?;
    outcomes[..done].fill(Outcome::Regular.to_word());
    for (b, determinant) in of_factors.into_iter().flatten().take(done).enumerate() {
        let (lu, exchanges) = (&to[b * area..(b + 1) * area], &exchanges[b * order..(b + 1) * order]);
        *determinant = Determinant::from_factors(Outcome::Regular, |k| lu[k * (order + 1)], exchanges);
    }
    Some(done)
}

/// Takes over and factors the matrices that belong to some results.
fn factor<'a, T: CpuScalar>(
    (engine, team): (Engine, &'a Team),
    operation: Operation,
    source: &Source<'_, T, HostMemory>,
    together: &Together<'_, T>,
    (a, exchanges): (&'a mut [T], &'a mut [u32]),
    transpose: Transpose,
) -> FactoredGroup<'a, T> {
    let (lanes, order) = (engine.lanes(), engine.order());
    let (a, exchanges) = (&mut a[..engine.area()], &mut exchanges[..lanes * order]);
    let mut group =
        FactoredGroup { engine, a, exchanges: &[], outcomes: [Outcome::NotFinite; MOST_LANES], team, norms: None };
    let from = in_lanes(lanes, together.count, |lane| match source {
        Source::InPlace => together.matrices[lane].as_ref().map(MatrixMut::share),
        Source::Matrix(a) => serving(a, together.first + lane),
        Source::Factors(factors) => serving(&factors.lu, together.first + lane),
    });
    let Some(from) = from else { return group };
    if together.conditions.is_some() {
        group.norms = Some(from.map(one_norm));
    }
    if let Source::Factors(factors) = source {
        engine.pack((&from[..lanes], together.more), group.a);
        for lane in 0..lanes {
            let last = together.first + together.count - 1;
            let b = if factors.lu.batch() == 1 { 0 } else { last.min(together.first + lane) };
            exchanges[lane * order..(lane + 1) * order].copy_from_slice(&factors.pivots[b * order..(b + 1) * order]);
            group.outcomes[lane] = Outcome::from_word(factors.outcomes[b]);
        }
    } else {
        let zero_pivots = engine.pack_getrf((&from[..lanes], together.more), group.a, exchanges, team);
        for (outcome, column) in group.outcomes.iter_mut().zip(zero_pivots) {
            let column = column as usize;
            *outcome = if column < order { Outcome::Singular { column } } else { Outcome::Regular };
        }
    }
    group.exchanges = exchanges;
    // Factors that are but handed over are looked at then.
    if operation != Operation::Factorize || together.determinants.is_some() {
        let inverse_alone = operation == Operation::Invert && together.determinants.is_none();
        if !(inverse_alone && group.outcomes[0].is_regular() && engine.shows_in_inverse(group.a)) {
            spoil(&mut group.outcomes, engine.spoiled(group.a), |_| true);
        }
    }
    engine.before_getrs(group.a, transpose);
    group
}

/// What each lane takes in: those beyond `count` take what the last one does. `None` where there is nothing.
fn in_lanes<'a, T: Scalar>(
    lanes: usize,
    count: usize,
    of: impl Fn(usize) -> Option<MatrixRef<'a, T>>,
) -> Option<[MatrixRef<'a, T>; MOST_LANES]> {
    let mut all = [of(count - 1)?; MOST_LANES];
    for (lane, place) in all[..lanes.min(count)].iter_mut().enumerate() {
        *place = of(lane)?;
    }
    Some(all)
}

/// Marks lanes that are not finite, of those whose outcome counts.
fn spoil(outcomes: &mut [Outcome; MOST_LANES], lanes: u32, counts: impl Fn(Outcome) -> bool) {
    if lanes == 0 {
        return;
    }
    for (lane, outcome) in outcomes.iter_mut().enumerate() {
        if lanes >> lane & 1 == 1 && counts(*outcome) {
            *outcome = Outcome::NotFinite;
        }
    }
}

/// The 1-norm: the largest sum of moduli of a column; NaN where any is.
fn one_norm<T: Scalar>(a: MatrixRef<'_, T>) -> T::Real {
    largest_sum((0..a.cols()).map(|j| (0..a.rows()).map(|i| a.at(i, j).modulus()).sum()))
}

/// The largest of sums that are not negative; NaN where any is.
pub(crate) fn largest_sum<R: Real>(sums: impl Iterator<Item = R>) -> R {
    sums.fold(num_traits::zero(), |largest, sum| if sum <= largest { largest } else { sum })
}

impl<T: CpuScalar> FactoredGroup<'_, T> {
    /// Writes factors, exchanges and reports.
    pub(crate) fn unpack_factors(mut self, mut to: Together<'_, T>) {
        to.pivots.copy_from_slice(&self.exchanges[..to.pivots.len()]);
        let spoiled = self.engine.unpack(self.a, &mut to.matrices[..to.count]);
        spoil(&mut self.outcomes, spoiled, |_| true);
        self.report(&mut to);
    }

    /// Writes outcomes and determinants.
    pub(crate) fn report(&self, to: &mut Together<'_, T>) {
        for (word, outcome) in to.outcomes.iter_mut().zip(self.outcomes) {
            *word = outcome.to_word();
        }
        for (lane, determinant) in to.determinants.iter_mut().flat_map(|all| all.iter_mut()).enumerate() {
            *determinant = self.determinant(lane);
        }
    }

    /// Inverts, and writes inverses and reports.
    pub(crate) fn invert(self, aside: Aside<'_, T>, mut to: Together<'_, T>) {
        self.report(&mut to);
        let mut outcomes = self.outcomes;
        let matrices = &mut to.matrices[..to.count];
        let spoiled = self.engine.getri((self.a, aside.columns), self.exchanges, self.team, matrices);
        spoil(&mut outcomes, spoiled, Outcome::is_regular);
        conclude(&outcomes, &mut to);
        for (lane, condition) in to.conditions.iter_mut().flat_map(|all| all.iter_mut()).enumerate() {
            let norms = self.norms.zip(to.matrices[lane].as_ref());
            *condition = match (outcomes[lane], norms) {
                (Outcome::Regular, Some((norms, inverse))) => norms[lane] * one_norm(inverse.share()),
                (Outcome::Singular { .. }, _) => Float::infinity(),
                _ => Float::nan(),
            };
        }
    }

    /// Solves with right-hand sides from `b`, or from where the solutions go, and writes solutions and outcomes.
    pub(crate) fn solve(
        &self,
        (x, team): (&mut [T], &Team),
        b: Option<&BatchRef<'_, T>>,
        transpose: Transpose,
        mut to: Together<'_, T>,
    ) {
        let (engine, lanes) = (self.engine, self.engine.lanes());
        let given = in_lanes(lanes, to.count, |lane| match b {
            Some(b) => serving(b, to.first + lane),
            None => to.matrices[lane].as_ref().map(MatrixMut::share),
        });
        let Some(given) = given else { return };
        engine.pack((&given[..lanes], to.more), x);
        engine.getrs(self.a, x, self.exchanges, transpose, team);
        let mut outcomes = self.outcomes;
        let spoiled = engine.unpack(x, &mut to.matrices[..to.count]);
        spoil(&mut outcomes, spoiled, Outcome::is_regular);
        conclude(&outcomes, &mut to);
    }

    fn determinant(&self, lane: usize) -> Determinant<T> {
        let order = self.engine.order();
        let exchanges = &self.exchanges[lane * order..(lane + 1) * order];
        Determinant::from_factors(self.outcomes[lane], |k| self.engine.diagonal(self.a, lane, k), exchanges)
    }
}

/// Writes the outcomes of results that are written, and NaN where these are not to be used.
fn conclude<T: Scalar>(outcomes: &[Outcome; MOST_LANES], to: &mut Together<'_, T>) {
    for (lane, word) in to.outcomes.iter_mut().enumerate() {
        *word = outcomes[lane].to_word();
        if let (false, Some(result)) = (outcomes[lane].is_regular(), &mut to.matrices[lane]) {
            result.fill_with(|_, _| T::nan());
        }
    }
}
