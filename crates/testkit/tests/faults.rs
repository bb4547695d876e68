//! Planted faults: a backend that is right but for one mistake must turn the suite red.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use batchla_core::{
    Backend, BatchLayout, BatchRef, BatchedDeterminant, BatchedFactorize, BatchedInvert, BatchedSolve, Complex,
    Determinant, DeterminantArgs, Element, Error, FactorizeArgs, HostArray, HostMemory, InvertArgs, MatrixMut,
    MatrixRef, Options, Outcome, Prepared, Problem, ReportMut, Scalar, SolveArgs, Source, Transpose,
};
use batchla_testkit::{
    Defect, Generator, Place, Reference, ReferencePrepared, ReferenceWorkspace, Scope, Tally, check, cross_check, run,
};
use num_traits::{Float, one, zero};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    NoPivoting,
    LastOfEqualPivots,
    PivotByModulus,
    FactorTransposed,
    FactorsZero,
    FactorsOfTheTranspose,
    InterchangeDroppedOnTheLeft,
    InterchangeDropped,
    PivotsAsPermutation,
    PivotsOneBased,
    PaddingWritten,
    InputWritten,
    NeighbourDisturbed,
    NanSwallowed,
    StaleScratch,
    SingularOffByOne,
    SingularIsLastZeroPivot,
    SingularUnseen,
    SingularOutranksNotFinite,
    StaleInverseOfSingular,
    RowMajorAsTransposed,
    ConjugationForgotten,
    TransposeForgotten,
    OneMatrixNotBroadcast,
    LastMatrixSkipped,
    OutcomeUnwritten,
    BitsByPlace,
    BitsByBatch,
    SignOfExchangesLost,
    ConditionByWrongNorm,
    ConditionInfinite,
    ConditionOffByALittle,
    FailedConditionsExchanged,
    ZerosUnwritten,
    DeterminantOffByALittle,
    PhaseOffByALittle,
    DeterminantBesideTheInverseLost,
    DeterminantOfMatricesLost,
    DeterminantOfFactorsLost,
    WrongInPlace,
    RegularCalledSingular,
    OneRightHandSideNotBroadcast,
    ReciprocalOfTinyPivots,
    /// No fault: quotients are rounded twice where nothing under- or overflows by it.
    RoundedOtherwise,
    ArgumentsUnchecked,
    UnknownPlanAccepted,
    SingularDeterminantNotZero,
    NotFiniteDeterminantHasALogarithm,
    ZeroDeterminantHasALogarithm,
    SmallErrorInOneElement,
    PivotUnwritten,
    OutcomeBehindTheEnd,
    TailWritten,
    RightHandSideWritten,
    SolutionCalledSingular,
    FailedSolutionLeft,
    FailedCalledRegular,
}

#[derive(Clone, Debug)]
struct Faulty {
    fault: Fault,
    /// What [`Fault::StaleScratch`] leaves behind: that some run met a NaN.
    stale: Arc<AtomicBool>,
}

impl Faulty {
    fn new(fault: Fault) -> Self {
        Self { fault, stale: Arc::default() }
    }

    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}

impl Backend for Faulty {
    type Memory = HostMemory;
    type Stream = ();
    type Prepared = ReferencePrepared;
    type Workspace = ReferenceWorkspace;

    fn name(&self) -> &str {
        "faulty"
    }
    fn describe(&self) -> String {
        format!("{:?}", self.fault)
    }
    fn stream(&self) -> &() {
        &()
    }
    fn prepare(&self, problem: &Problem, options: &Options) -> Result<ReferencePrepared, Error> {
        let none = Options::default();
        Reference.prepare(problem, if self.is(Fault::UnknownPlanAccepted) { &none } else { options })
    }
    fn workspace(&self, prepared: &ReferencePrepared) -> Result<ReferenceWorkspace, Error> {
        Reference.workspace(prepared)
    }
    fn allocate<E: Element>(&self, len: usize) -> Result<HostArray<E>, Error> {
        HostArray::zeroed(len)
    }
    fn write<E: Element>(&self, from: &[E], to: &mut [E]) -> Result<(), Error> {
        HostMemory::write(from, to)
    }
    fn synchronize(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// LU with the faults that lie in the elimination itself.
fn eliminate<T: Scalar>(fault: Fault, a: &mut MatrixMut<'_, T>, pivots: &mut [u32]) -> Outcome {
    let n = a.rows();
    let finite = |a: &MatrixMut<'_, T>| (0..n).all(|j| (0..n).all(|i| a.at(i, j).finite()));
    let (before, mut singular) = (finite(a), None);
    for k in 0..n {
        let size = |x: T| if fault == Fault::PivotByModulus { x.modulus() } else { x.abs1() };
        let mut p = k;
        for i in k + 1..n {
            let (this, best) = (size(a.at(i, k)), size(a.at(p, k)));
            let better = match fault {
                Fault::NoPivoting => false,
                Fault::LastOfEqualPivots => this >= best,
                _ => this > best,
            };
            if better {
                p = i;
            }
        }
        pivots[k] = p as u32;
        let from = if fault == Fault::InterchangeDroppedOnTheLeft { k } else { 0 };
        for j in from..n {
            let (x, y) = (a.at(k, j), a.at(p, j));
            a.set(k, j, y);
            a.set(p, j, x);
        }
        let pivot = a.at(k, k);
        if pivot == zero() {
            singular = match fault {
                Fault::SingularIsLastZeroPivot => Some(k),
                _ => singular.or(Some(k)),
            };
            continue;
        }
        let reciprocal = one::<T>() / pivot;
        for i in k + 1..n {
            let usual = pivot.abs1() > T::EPSILON && pivot.abs1() < T::EPSILON.recip();
            let l = match fault {
                Fault::ReciprocalOfTinyPivots => a.at(i, k) * reciprocal,
                Fault::RoundedOtherwise if usual => a.at(i, k) * reciprocal,
                _ => a.at(i, k).divide(pivot),
            };
            a.set(i, k, l);
            for j in k + 1..n {
                a.set(i, j, a.at(i, j) - l * a.at(k, j));
            }
        }
    }
    match (before && finite(a), singular) {
        (false, Some(column)) if fault == Fault::SingularOutranksNotFinite => Outcome::Singular { column },
        (false, _) => Outcome::NotFinite,
        (true, Some(column)) => Outcome::Singular { column },
        (true, None) => Outcome::Regular,
    }
}

/// Faults in what is said of each matrix.
fn misreport(fault: Fault, outcome: Outcome) -> Outcome {
    match (fault, outcome) {
        (Fault::SingularOffByOne, Outcome::Singular { column }) => Outcome::Singular { column: column + 1 },
        (Fault::SingularUnseen, Outcome::Singular { .. }) => Outcome::Regular,
        (Fault::NanSwallowed, Outcome::NotFinite) => Outcome::Regular,
        (Fault::RegularCalledSingular, Outcome::Regular) => Outcome::Singular { column: 0 },
        (_, outcome) => outcome,
    }
}

/// Transposes a square matrix where it stands.
fn transpose<T: Scalar>(a: &mut MatrixMut<'_, T>) {
    for j in 0..a.cols() {
        for i in 0..j {
            let (x, y) = (a.at(i, j), a.at(j, i));
            a.set(i, j, y);
            a.set(j, i, x);
        }
    }
}

fn elements<T: Scalar>(a: MatrixRef<'_, T>) -> Vec<T> {
    (0..a.cols()).flat_map(|j| (0..a.rows()).map(move |i| a.at(i, j))).collect()
}

fn nudge<T: Scalar>(x: T) -> T {
    x + x.scale(T::EPSILON)
}

/// Faults that lie in how results are laid down, the same for every operation.
fn disturb<T: Scalar>(faulty: &Faulty, in_place: bool, out: batchla_core::BatchMut<'_, T>, outcomes: &mut [u32]) {
    let (layout, batch) = (*out.layout(), out.batch());
    let mut span = out.into_span();
    let start = span.as_mut_ptr();
    let element = |b: usize, i: usize, j: usize| start.wrapping_add(layout.offset(b, i, j));
    let (rows, cols) = (layout.rows(), layout.cols());
    if rows == 0 || cols == 0 || batch == 0 {
        return;
    }
    match faulty.fault {
        Fault::PaddingWritten => {
            let taken: std::collections::HashSet<usize> = (0..batch)
                .flat_map(|b| (0..cols).flat_map(move |j| (0..rows).map(move |i| layout.offset(b, i, j))))
                .collect();
            if let Some(gap) = (0..layout.span()).find(|at| !taken.contains(at)) {
                // SAFETY: within the span, which lies in one allocation of the suite's that nobody else uses now.
                unsafe { *start.add(gap) = zero() };
            }
        }
        Fault::NeighbourDisturbed => {
            for b in (0..batch - 1).filter(|&b| outcomes[b] != 0) {
                // SAFETY: an element that the layout names.
                unsafe { *element(b + 1, 0, 0) = one() };
            }
        }
        Fault::LastMatrixSkipped if batch > 2 => {
            // SAFETY: an element that the layout names.
            unsafe { *element(batch - 1, rows - 1, cols - 1) = zero() };
        }
        Fault::BitsByPlace if batch > 1 => {
            // SAFETY: an element that the layout names.
            unsafe { *element(1, 0, 0) = nudge(*element(1, 0, 0)) };
        }
        Fault::BitsByBatch if batch > 5 => {
            // SAFETY: an element that the layout names.
            unsafe { *element(1, 0, 0) = nudge(*element(1, 0, 0)) };
        }
        Fault::SmallErrorInOneElement => {
            // SAFETY: an element that the layout names.
            unsafe {
                let x = element(0, rows - 1, cols - 1);
                *x += x.read().scale(T::EPSILON).scale(T::from_f64(1e4, 0.0).re());
            }
        }
        Fault::StaleScratch if rows > 1 => {
            let met = faulty.stale.swap(outcomes[..batch].contains(&Outcome::NotFinite.to_word()), Ordering::Relaxed);
            if met {
                let last = element(batch - 1, rows - 1, cols - 1);
                // SAFETY: an element that the layout names.
                unsafe { *last = nudge(*last) };
            }
        }
        Fault::WrongInPlace if in_place => {
            // SAFETY: an element that the layout names.
            unsafe { *element(0, 0, 0) = nudge(nudge(*element(0, 0, 0))) };
        }
        Fault::OutcomeUnwritten => outcomes[batch - 1] = 0xA5A5_A5A5,
        Fault::OutcomeBehindTheEnd => outcomes[batch] = 0,
        Fault::TailWritten => {
            // SAFETY: within the suite's allocation, which has a tail behind the batch.
            unsafe { *start.add(layout.span()) = zero() };
        }
        _ => {}
    }
}

fn write_input<T: Scalar>(a: &BatchRef<'_, T>) {
    if a.layout().elements() > 0 {
        let at = a.layout().offset(0, 0, 0);
        // SAFETY: the suite's own memory, which nobody else uses now; that it may not be written is what the suite must see.
        unsafe { *a.span().as_ptr().cast_mut().add(at) = zero() };
    }
}

impl<T: Scalar> BatchedFactorize<T> for Faulty {
    fn run_factorize(
        &self,
        prepared: &ReferencePrepared,
        args: FactorizeArgs<'_, T, HostMemory>,
        _workspace: &mut ReferenceWorkspace,
    ) -> Result<(), Error> {
        args.check(prepared.problem())?;
        let FactorizeArgs { source, mut lu, pivots, mut report, .. } = args;
        let (n, row_major) = (prepared.problem().order(), lu.layout().is_row_major());
        for (b, mut lu) in lu.reborrow().into_matrices().enumerate() {
            if let Source::Matrix(a) = &source
                && let Some(a) = a.matrix(b)
            {
                lu.fill_with(|i, j| a.at(i, j));
            }
            let turned = self.is(Fault::FactorsOfTheTranspose) || self.is(Fault::RowMajorAsTransposed) && row_major;
            if turned {
                transpose(&mut lu);
            }
            let pivots = &mut pivots[b * n..(b + 1) * n];
            let outcome = eliminate(self.fault, &mut lu, pivots);
            if turned || self.is(Fault::FactorTransposed) {
                transpose(&mut lu);
            }
            if self.is(Fault::FactorsZero) {
                lu.fill_with(|_, _| zero());
            }
            if let Some(determinants) = &mut report.determinants {
                let identity: Vec<u32> = (0..n as u32).collect();
                let signs = if self.is(Fault::SignOfExchangesLost) { &identity } else { &*pivots };
                let outcome = if self.is(Fault::SingularDeterminantNotZero) { Outcome::Regular } else { outcome };
                let determinant = Determinant::from_factors(outcome, |k| lu.at(k, k), signs);
                let little = T::from_f64(1e-9, 0.0).re();
                determinants[b] = match self.fault {
                    Fault::DeterminantOffByALittle => {
                        Determinant { log_abs: determinant.log_abs + little, ..determinant }
                    }
                    Fault::PhaseOffByALittle => {
                        Determinant { sign: determinant.sign + T::from_real(little), ..determinant }
                    }
                    Fault::NotFiniteDeterminantHasALogarithm if outcome == Outcome::NotFinite => {
                        Determinant { log_abs: zero(), ..determinant }
                    }
                    Fault::ZeroDeterminantHasALogarithm if matches!(outcome, Outcome::Singular { .. }) => {
                        Determinant { log_abs: zero(), ..determinant }
                    }
                    _ => determinant,
                };
            }
            match self.fault {
                Fault::PivotsAsPermutation => pivots.copy_from_slice(&batchla_core::permutation(pivots)),
                Fault::PivotsOneBased => pivots.iter_mut().for_each(|p| *p += 1),
                Fault::InterchangeDropped if n > 2 => pivots[n / 2] = (n / 2) as u32,
                Fault::PivotUnwritten if n > 2 => pivots[n / 2] = 0xA5A5_A5A5,
                _ => {}
            }
            report.outcomes[b] = misreport(self.fault, outcome).to_word();
        }
        if let (true, Source::Matrix(a)) = (self.is(Fault::InputWritten), &source) {
            write_input(a);
        }
        disturb(self, matches!(source, Source::InPlace), lu, report.outcomes);
        Ok(())
    }
}

/// The report, lent, so that what was written can be spoiled afterwards.
fn lend<'a, T: Scalar>(report: &'a mut ReportMut<'_, T, HostMemory>) -> ReportMut<'a, T, HostMemory> {
    let mut lent = ReportMut::new(&mut *report.outcomes);
    if let Some(determinants) = &mut report.determinants {
        lent = lent.with_determinants(&mut **determinants);
    }
    if let Some(conditions) = &mut report.conditions {
        lent = lent.with_conditions(&mut **conditions);
    }
    lent
}

impl<T: Scalar> BatchedInvert<T> for Faulty {
    fn run_invert(
        &self,
        prepared: &ReferencePrepared,
        args: InvertArgs<'_, T, HostMemory>,
        workspace: &mut ReferenceWorkspace,
    ) -> Result<(), Error> {
        if self.is(Fault::ArgumentsUnchecked) && args.check(prepared.problem()).is_err() {
            return Ok(());
        }
        let InvertArgs { source, mut x, mut report, .. } = args;
        let before: Vec<T> = (x.share().matrices()).flat_map(|m| (m.rows() > 0).then(|| m.at(0, 0))).collect();
        let stale: Vec<Vec<T>> = match self.fault {
            Fault::ZerosUnwritten => x.share().matrices().map(elements).collect(),
            _ => Vec::new(),
        };
        Reference.run_invert(prepared, InvertArgs::new(&source, &mut x, lend(&mut report)), workspace)?;
        for (b, mut x) in x.reborrow().into_matrices().enumerate() {
            let outcome = Outcome::from_word(report.outcomes[b]);
            if self.is(Fault::StaleInverseOfSingular) && !outcome.is_regular() && x.rows() > 0 {
                x.set(0, 0, before[b]);
            }
            if self.is(Fault::RowMajorAsTransposed) && x.col_stride() == 1 && x.rows() > 1 {
                transpose(&mut x);
            }
            for (at, &before) in stale.get(b).into_iter().flatten().enumerate() {
                let (i, j) = (at % x.rows(), at / x.rows());
                if x.at(i, j) == zero() {
                    x.set(i, j, before);
                }
            }
            report.outcomes[b] = misreport(self.fault, outcome).to_word();
            if let Some(conditions) = &mut report.conditions {
                conditions[b] = match self.fault {
                    Fault::ConditionByWrongNorm => conditions[b] + conditions[b],
                    Fault::ConditionInfinite => Float::infinity(),
                    Fault::ConditionOffByALittle => conditions[b] * T::from_f64(1.0 + 1e-9, 0.0).re(),
                    Fault::FailedConditionsExchanged if Float::is_nan(conditions[b]) => Float::infinity(),
                    Fault::FailedConditionsExchanged if !outcome.is_regular() => Float::nan(),
                    _ => conditions[b],
                };
            }
            if let (Fault::DeterminantBesideTheInverseLost, Some(determinants)) = (self.fault, &mut report.determinants)
            {
                determinants[b] = Determinant::zero();
            }
        }
        if let (true, Source::Matrix(a)) = (self.is(Fault::InputWritten), &source) {
            write_input(a);
        }
        disturb(self, matches!(source, Source::InPlace), x, report.outcomes);
        Ok(())
    }
}

impl<T: Scalar> BatchedSolve<T> for Faulty {
    fn run_solve(
        &self,
        prepared: &ReferencePrepared,
        args: SolveArgs<'_, T, HostMemory>,
        workspace: &mut ReferenceWorkspace,
    ) -> Result<(), Error> {
        args.check(prepared.problem())?;
        let SolveArgs { source, b, mut x, mut report, .. } = args;
        let problem = prepared.problem();
        let transpose = match (self.fault, problem.transpose()) {
            (Fault::ConjugationForgotten, Transpose::ConjugateTranspose) => Transpose::Transpose,
            (Fault::TransposeForgotten, _) => Transpose::None,
            (_, transpose) => transpose,
        };
        let other =
            Problem::solve::<T>(problem.source(), *problem.a(), problem.b().copied(), *problem.out(), transpose)?;
        let prepared = Reference.prepare(&other, &Options::default())?;
        Reference.run_solve(&prepared, SolveArgs::new(&source, b.as_ref(), &mut x, lend(&mut report)), workspace)?;
        let skipped = match self.fault {
            Fault::OneMatrixNotBroadcast => source.layout().map(BatchLayout::batch),
            Fault::OneRightHandSideNotBroadcast => b.as_ref().map(BatchRef::batch),
            _ => None,
        };
        if skipped == Some(1) {
            x.reborrow().into_matrices().skip(1).for_each(|mut x| x.fill_with(|_, _| zero()));
        }
        for (word, mut x) in report.outcomes.iter_mut().zip(x.reborrow().into_matrices()) {
            let outcome = Outcome::from_word(*word);
            if self.is(Fault::FailedSolutionLeft) && !outcome.is_regular() && x.rows() * x.cols() > 0 {
                x.set(0, 0, one());
            }
            *word = match (self.fault, outcome) {
                (Fault::SolutionCalledSingular, Outcome::Regular) => Outcome::Singular { column: 0 },
                (Fault::FailedCalledRegular, _) => Outcome::Regular,
                _ => misreport(self.fault, outcome),
            }
            .to_word();
        }
        if let (true, Some(b)) = (self.is(Fault::RightHandSideWritten), &b) {
            write_input(b);
        }
        disturb(self, b.is_none(), x, report.outcomes);
        Ok(())
    }
}

impl<T: Scalar> BatchedDeterminant<T> for Faulty {
    fn run_determinant(
        &self,
        prepared: &ReferencePrepared,
        args: DeterminantArgs<'_, T, HostMemory>,
        workspace: &mut ReferenceWorkspace,
    ) -> Result<(), Error> {
        let DeterminantArgs { source, mut report, .. } = args;
        Reference.run_determinant(prepared, DeterminantArgs::new(&source, lend(&mut report)), workspace)?;
        let lost = match self.fault {
            Fault::DeterminantOfMatricesLost => matches!(source, Source::Matrix(_)),
            Fault::DeterminantOfFactorsLost => matches!(source, Source::Factors(_)),
            _ => false,
        };
        if let (true, Some(determinants)) = (lost, &mut report.determinants) {
            determinants.fill(Determinant::zero());
        }
        Ok(())
    }
}

/// Small enough for some forty runs of the whole suite.
const SCOPE: Scope = Scope { orders: &[0, 1, 2, 5, 8, 17, 33], thorough: 5, many: None, huge: None, ..Scope::QUICK };

/// The checks that faults are held against, by short names.
mod seen_by {
    pub(super) const FACTORS: &str = "factors_multiply_back_to_the_matrix";
    pub(super) const PIVOTS: &str = "pivots_are_lapacks_but_for_ties";
    pub(super) const EXACT: &str = "exact_arithmetic_gives_exact_factors";
    pub(super) const INVERSE: &str = "the_inverse_times_the_matrix_is_the_identity";
    pub(super) const SOLUTIONS: &str = "solutions_solve_their_systems";
    pub(super) const DETERMINANTS: &str = "determinants_are_the_product_of_the_pivots";
    pub(super) const NEIGHBOURS: &str = "one_bad_matrix_spares_its_neighbours";
    pub(super) const BITS: &str = "the_same_matrix_gives_the_same_bits";
    pub(super) const ORDERS: &str = "orders_and_places_keep_bits_and_gaps";
    pub(super) const EMPTY: &str = "empty_batches_and_orders_zero_and_one_work";
    pub(super) const EXTREMES: &str = "extremes_of_the_range_keep_the_contract";
    pub(super) const ARGUMENTS: &str = "bad_arguments_give_the_documented_error";
    pub(super) const AGAIN: &str = "what_was_prepared_runs_again_and_on_smaller_batches";
}

/// Whether each of these checks sees the fault, and says so in these words.
fn turns_red<T: Scalar>(fault: Fault, seen_by: &[(&str, &str)]) {
    for &(name, words) in seen_by {
        let verdict = check::<T, _>(&Faulty::new(fault), name, &SCOPE, &Options::default());
        assert!(
            verdict.as_ref().is_err_and(|what| what.contains(words)),
            "{fault:?}, {name}: {verdict:?}, not {words:?}"
        );
    }
}

/// About how much each check compares in [`SCOPE`]: what a check passes over, no fault can show.
const COMPARED: [usize; 14] = [837, 849, 200, 665, 556, 1720, 540, 2298, 2160, 1224, 39, 26, 33, 6];
/// The checks that measure a residual ratio.
const MEASURED: [&str; 3] = [seen_by::FACTORS, seen_by::INVERSE, seen_by::SOLUTIONS];

#[test]
fn the_frame_without_a_fault_is_green_and_compared_throughout() {
    fn green<T: Scalar>() {
        let verdicts = run::<T, _>(&Faulty::new(Fault::None), &SCOPE, &Options::default());
        for ((name, verdict), expected) in verdicts.into_iter().zip(COMPARED) {
            // Whether some matrices are singular is up to the last bits of what the platform's logarithms make of them.
            let near = |tally: &Tally| tally.compared.abs_diff(expected) <= expected / 50;
            let usual = if MEASURED.contains(&name) { 0.1..10.0 } else { 0.0..0.1 };
            assert!(
                verdict.as_ref().is_ok_and(|tally| near(tally) && usual.contains(&tally.worst)),
                "{name}: {verdict:?}, not about {expected}"
            );
        }
    }
    green::<f64>();
    green::<Complex<f32>>();
}

#[test]
fn pivots_that_rounding_decides_are_exempt_and_counted() {
    let verdict = check::<f32, _>(&Faulty::new(Fault::RoundedOtherwise), seen_by::PIVOTS, &SCOPE, &Options::default());
    assert!(verdict.as_ref().is_ok_and(|tally| (5..50).contains(&tally.exempt)), "{verdict:?}");
}

#[test]
fn a_cross_check_names_what_differs_and_counts_ties() -> Result<(), Error> {
    let layout = BatchLayout::column_major(6, 4, 4)?;
    let against = |fault: Fault, generator: Generator| {
        let a = generator.batch::<f64>(layout, 3)?;
        cross_check(&Reference, &Faulty::new(fault), &a)
    };
    let all: Vec<usize> = (0..6).collect();
    let none = against(Fault::None, Generator::Normal)?;
    assert!(none.holds() && none.matrices == 6 && none.ties == 0, "{none}");
    let unpivoted = against(Fault::NoPivoting, Generator::Normal)?;
    assert!(!unpivoted.holds() && unpivoted.pivots_differ == all, "{unpivoted}");
    let unseen = against(Fault::SingularUnseen, Generator::ZeroColumn(Place::Last))?;
    assert!(!unseen.holds() && unseen.outcomes_differ == all && unseen.pivots_differ.is_empty(), "{unseen}");
    let tied = against(Fault::LastOfEqualPivots, Generator::Wilkinson)?;
    assert!(tied.holds() && tied.ties == 6, "{tied}");
    // Nothing is said of the pivots of what is not finite, by either.
    let swallowed = against(Fault::NanSwallowed, Generator::Planted(Defect::NaN))?;
    assert_eq!(swallowed.outcomes_differ, [1, 4]);
    assert!(swallowed.pivots_differ.is_empty() && swallowed.ties == 0, "{swallowed}");
    Ok(())
}

macro_rules! faults {
    ($($name:ident: $fault:ident, $scalar:ty, $($check:ident $words:literal),+;)*) => {$(
        #[test]
        fn $name() {
            turns_red::<$scalar>(Fault::$fault, &[$((seen_by::$check, $words)),+]);
        }
    )*};
}

faults! {
    no_pivoting_is_seen: NoPivoting, f64,
        FACTORS "residual ratio", PIVOTS "LAPACK's rule", EXACT "factors differ", INVERSE "residual ratio",
        SOLUTIONS "is regular, its matrix", DETERMINANTS "by itself or with the inverse";
    the_last_of_equal_pivots_is_seen: LastOfEqualPivots, f32,
        FACTORS "the pivots are", PIVOTS "LAPACK's rule", EXACT "factors differ",
        DETERMINANTS "by itself or with the inverse";
    a_pivot_chosen_by_modulus_is_seen: PivotByModulus, Complex<f64>,
        PIVOTS "LAPACK's rule", DETERMINANTS "by itself or with the inverse";
    a_transposed_factor_is_seen: FactorTransposed, f64,
        FACTORS "residual ratio", EXACT "factors differ", INVERSE "residual ratio", SOLUTIONS "residual ratio",
        EXTREMES "multipliers";
    factors_of_zeros_are_seen: FactorsZero, f64,
        FACTORS "residual ratio", EXACT "factors differ", SOLUTIONS "its matrix regular";
    factors_of_the_transpose_are_seen: FactorsOfTheTranspose, f64,
        FACTORS "residual ratio", PIVOTS "LAPACK's rule", EXACT "factors differ", INVERSE "residual ratio",
        SOLUTIONS "residual ratio", DETERMINANTS "by itself or with the inverse", NEIGHBOURS "its outcome is",
        EXTREMES "multipliers";
    an_interchange_dropped_on_the_left_is_seen: InterchangeDroppedOnTheLeft, f64,
        FACTORS "residual ratio", EXACT "factors differ", INVERSE "residual ratio", SOLUTIONS "residual ratio";
    a_dropped_interchange_is_seen: InterchangeDropped, f32,
        FACTORS "residual ratio", PIVOTS "LAPACK's rule", EXACT "factors differ", INVERSE "residual ratio",
        SOLUTIONS "residual ratio", DETERMINANTS "with the factors";
    a_permutation_for_pivots_is_seen: PivotsAsPermutation, f64,
        FACTORS "pivot ", PIVOTS "LAPACK's rule", EXACT "factors differ", INVERSE "pivot ", SOLUTIONS "pivot ",
        DETERMINANTS "pivot ", NEIGHBOURS "pivot ", BITS "pivot ", ORDERS "pivot ";
    pivots_counted_from_one_are_seen: PivotsOneBased, f64,
        FACTORS "pivot ", PIVOTS "LAPACK's rule", EXACT "factors differ", INVERSE "pivot ", SOLUTIONS "pivot ",
        DETERMINANTS "pivot ", NEIGHBOURS "pivot ", BITS "pivot ", ORDERS "pivot ", EMPTY "pivot ";
    written_padding_is_seen: PaddingWritten, f64,
        FACTORS "was overwritten", PIVOTS "was overwritten", EXACT "was overwritten", INVERSE "was overwritten",
        SOLUTIONS "was overwritten", DETERMINANTS "was overwritten", NEIGHBOURS "was overwritten",
        BITS "was overwritten", ORDERS "was overwritten", EMPTY "was overwritten";
    a_written_input_is_seen: InputWritten, f64,
        FACTORS "was changed", PIVOTS "was changed", EXACT "was changed", INVERSE "was changed",
        SOLUTIONS "was changed", DETERMINANTS "was changed", NEIGHBOURS "was changed", BITS "was changed",
        ORDERS "was changed";
    a_disturbed_neighbour_is_seen: NeighbourDisturbed, f64,
        FACTORS "residual ratio", EXACT "factors differ", INVERSE "not all NaN", SOLUTIONS "residual ratio",
        DETERMINANTS "with the factors", NEIGHBOURS "neighbour", EXTREMES "element ";
    a_swallowed_nan_is_seen: NanSwallowed, f64,
        FACTORS "not not finite", PIVOTS "the reference says", INVERSE "not not finite", SOLUTIONS "residual ratio",
        DETERMINANTS "with the factors", NEIGHBOURS "its outcome is", EXTREMES "the outcome is";
    stale_scratch_is_seen: StaleScratch, f64,
        NEIGHBOURS "neighbour", AGAIN "differs from the first";
    a_singular_column_off_by_one_is_seen: SingularOffByOne, f64,
        FACTORS "not singular", PIVOTS "the reference says", EXACT "factors differ", INVERSE "not singular",
        NEIGHBOURS "its outcome is";
    the_last_zero_pivot_for_the_first_is_seen: SingularIsLastZeroPivot, f64,
        FACTORS "not singular", PIVOTS "the reference says", EXACT "factors differ", INVERSE "not singular",
        NEIGHBOURS "its outcome is";
    an_unseen_singular_matrix_is_seen: SingularUnseen, f64,
        FACTORS "not singular", PIVOTS "the reference says", EXACT "factors differ", INVERSE "residual ratio",
        SOLUTIONS "residual ratio", DETERMINANTS "with the factors", NEIGHBOURS "its outcome is";
    singular_above_not_finite_is_seen: SingularOutranksNotFinite, f64,
        NEIGHBOURS "its outcome is";
    a_stale_inverse_is_seen: StaleInverseOfSingular, f64,
        INVERSE "not all NaN", NEIGHBOURS "not all NaN", EXTREMES "element ";
    row_major_treated_as_transposed_is_seen: RowMajorAsTransposed, f64,
        FACTORS "residual ratio", PIVOTS "LAPACK's rule", EXACT "factors differ", INVERSE "residual ratio",
        SOLUTIONS "residual ratio", DETERMINANTS "by itself or with the inverse", ORDERS "against column-major",
        EXTREMES "multipliers";
    a_forgotten_conjugation_is_seen: ConjugationForgotten, Complex<f64>,
        SOLUTIONS "residual ratio";
    a_forgotten_transposition_is_seen: TransposeForgotten, f32,
        SOLUTIONS "residual ratio";
    one_matrix_that_does_not_serve_all_is_seen: OneMatrixNotBroadcast, f64,
        SOLUTIONS "residual ratio";
    one_right_hand_side_that_does_not_serve_all_is_seen: OneRightHandSideNotBroadcast, f64,
        SOLUTIONS "residual ratio";
    a_skipped_last_matrix_is_seen: LastMatrixSkipped, f64,
        FACTORS "residual ratio", EXACT "factors differ", INVERSE "not regular", SOLUTIONS "residual ratio",
        DETERMINANTS "with the factors", BITS "element 0 is", EMPTY "the inverse of 4", EXTREMES "element ",
        AGAIN "differs from the first";
    an_unwritten_outcome_is_seen: OutcomeUnwritten, f64,
        FACTORS "was not written", PIVOTS "was not written", EXACT "was not written", INVERSE "was not written",
        SOLUTIONS "was not written", DETERMINANTS "was not written", NEIGHBOURS "was not written",
        BITS "was not written", ORDERS "was not written", EMPTY "was not written", EXTREMES "was not written",
        AGAIN "differs from the first";
    bits_that_depend_on_the_place_are_seen: BitsByPlace, f64,
        EXACT "factors differ", BITS "element 0 is", EMPTY "the inverse of 4", EXTREMES "not its own U";
    bits_that_depend_on_the_batch_are_seen: BitsByBatch, f64,
        EXACT "factors differ", BITS "element 0 is", EMPTY "the inverse of 4", AGAIN "differs from the first";
    a_lost_sign_is_seen: SignOfExchangesLost, f64,
        DETERMINANTS "with the factors";
    a_wrong_condition_is_seen: ConditionByWrongNorm, f64,
        INVERSE "the norms give";
    an_infinite_condition_is_seen: ConditionInfinite, f64,
        INVERSE "the norms give";
    a_condition_that_is_off_by_a_little_is_seen: ConditionOffByALittle, f64,
        INVERSE "the norms give";
    conditions_of_failed_matrices_that_are_exchanged_are_seen: FailedConditionsExchanged, f32,
        INVERSE "its condition", NEIGHBOURS "its condition";
    zeros_that_are_not_written_are_seen: ZerosUnwritten, f64,
        INVERSE "residual ratio";
    a_determinant_that_is_off_by_a_little_is_seen: DeterminantOffByALittle, f64,
        DETERMINANTS "with the factors", EMPTY "the determinants are wrong";
    a_phase_that_is_off_by_a_little_is_seen: PhaseOffByALittle, Complex<f64>,
        DETERMINANTS "with the factors", EMPTY "the determinants are wrong";
    a_lost_determinant_beside_the_inverse_is_seen: DeterminantBesideTheInverseLost, f64,
        DETERMINANTS "by itself or with the inverse", EMPTY "the determinants are wrong";
    a_lost_determinant_of_matrices_is_seen: DeterminantOfMatricesLost, f64,
        DETERMINANTS "by itself or with the inverse", EMPTY "the determinants are wrong";
    a_lost_determinant_of_factors_is_seen: DeterminantOfFactorsLost, f64,
        DETERMINANTS "by itself or with the inverse", EMPTY "the determinants are wrong";
    what_is_wrong_in_place_alone_is_seen: WrongInPlace, f64,
        EXACT "factors differ", ORDERS "against column-major";
    a_regular_matrix_called_singular_is_seen: RegularCalledSingular, f64,
        FACTORS "not regular", PIVOTS "the reference says", EXACT "factors differ", INVERSE "not regular",
        SOLUTIONS "nothing was compared", EMPTY "not all are regular", EXTREMES "the outcome is";
    the_reciprocal_of_a_tiny_pivot_is_seen: ReciprocalOfTinyPivots, f64,
        FACTORS "not regular", PIVOTS "the reference says", DETERMINANTS "by itself or with the inverse",
        EXTREMES "not its own U";
    unchecked_arguments_are_seen: ArgumentsUnchecked, f64,
        ARGUMENTS "was accepted";
    an_accepted_unknown_plan_is_seen: UnknownPlanAccepted, f64,
        ARGUMENTS "was accepted";
    a_determinant_of_a_singular_matrix_is_seen: SingularDeterminantNotZero, f64,
        DETERMINANTS "with the factors", NEIGHBOURS "its determinant is";
    a_logarithm_of_what_is_not_finite_is_seen: NotFiniteDeterminantHasALogarithm, f64,
        DETERMINANTS "with the factors", NEIGHBOURS "its determinant is";
    a_logarithm_of_zero_is_seen: ZeroDeterminantHasALogarithm, f64,
        DETERMINANTS "with the factors", NEIGHBOURS "its determinant is";
    a_small_error_in_one_element_is_seen: SmallErrorInOneElement, f64,
        FACTORS "residual ratio", EXACT "factors differ", INVERSE "residual ratio", SOLUTIONS "residual ratio",
        DETERMINANTS "with the factors", BITS "element 0 is", EMPTY "the inverse of 4", EXTREMES "element ";
    an_unwritten_pivot_is_seen: PivotUnwritten, f64,
        FACTORS "was not written", BITS "was not written";
    an_outcome_behind_the_end_is_seen: OutcomeBehindTheEnd, f64,
        FACTORS "behind their end", SOLUTIONS "behind their end", EMPTY "behind their end";
    a_written_tail_is_seen: TailWritten, f64,
        FACTORS "was overwritten", INVERSE "was overwritten", SOLUTIONS "was overwritten";
    a_written_right_hand_side_is_seen: RightHandSideWritten, f64,
        SOLUTIONS "was changed", NEIGHBOURS "was changed";
    a_regular_solution_called_singular_is_seen: SolutionCalledSingular, f64,
        SOLUTIONS "its matrix regular", EMPTY "not all are regular";
    what_is_left_of_a_failed_solution_is_seen: FailedSolutionLeft, f64,
        NEIGHBOURS "not all NaN";
    a_failed_solution_called_regular_is_seen: FailedCalledRegular, f64,
        SOLUTIONS "is regular, its matrix", NEIGHBOURS "its outcome is";
}
