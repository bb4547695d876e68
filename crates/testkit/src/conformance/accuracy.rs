//! Residuals, pivots and determinants over a covering set of orders, batches, layouts and generators.

use batchla_core::{
    Batch, BatchLayout, BatchedFactorize, Determinant, Extras, MatrixRef, Outcome, Real, Scalar, Transpose,
};
use num_traits::Float;

use super::failed::{all_nan, is_condition_of_failed, is_determinant_of_failed};
use super::guarded::{Complete, Given, Guarded, Left, Route, in_words};
use super::order::Order;
use super::{Scope, Tally, Verdict};
use crate::agreement::{self, Choice};
use crate::generate::{Defect, Expected, Generator, right_hand_sides};
use crate::reference::Reference;
use crate::residual::{self, LIMIT};

/// One member of the covering set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    generator: Generator,
    batch: usize,
    n: usize,
    route: Route,
    seed: u64,
}

/// Every order meets every generator (large ones some); layouts, places and batches rotate, so that each meets each.
pub(super) fn cases(scope: &Scope) -> impl Iterator<Item = Case> + '_ {
    let generators = Generator::ALL;
    scope.orders.iter().enumerate().flat_map(move |(turn, &n)| {
        let step = match n {
            0..=33 => 1,
            34..=65 => 3,
            _ => 8,
        };
        (turn % step..generators.len()).step_by(step).map(move |g| {
            let mark = turn + g / step;
            let many = match (mark % generators.len(), n) {
                (0, 0..=4) => scope.huge,
                (1 | 2, 0..=33) => scope.many,
                _ => None,
            };
            let batch = many.unwrap_or([1, 7, 2, 0, 2, 1, 7][mark % 7].min(if n > 100 { 2 } else { 7 }));
            let (from, to) = (Order::ALL[mark % Order::ALL.len()], Order::ALL[(mark / 3 + g) % Order::ALL.len()]);
            let route = if mark % 3 == 0 { Route::InPlace(from) } else { Route::Between(from, to) };
            Case { generator: generators[g], batch, n, route, seed: 1000 + mark as u64 }
        })
    })
}

impl Case {
    fn matrices<T: Scalar>(&self) -> Result<Batch<T>, String> {
        let layout = BatchLayout::column_major(self.batch, self.n, self.n).map_err(in_words)?;
        self.generator.batch(layout, self.seed).map_err(in_words)
    }

    fn fail(&self, what: impl std::fmt::Display) -> String {
        let Self { generator, batch, n, route, seed } = self;
        format!("{generator}, {batch} matrices of order {n}, {route:?}, seed {seed}: {what}")
    }

    /// Holds outcomes, and pivots if there are any, against what the generator promises.
    fn expected<T: Scalar>(&self, left: &Left<T>, which: fn(&Expected) -> Option<Outcome>) -> Result<(), String> {
        for (b, &outcome) in left.outcomes.iter().enumerate() {
            let expected = self.generator.expected::<T>(self.n, self.seed, b);
            if let Some(right) = which(&expected).filter(|&right| right != outcome) {
                return Err(self.fail(format!("matrix {b} is {outcome}, not {right}")));
            }
            if let Some(right) = expected.pivots.filter(|right| !left.pivots.is_empty() && right != left.pivots_of(b)) {
                return Err(self.fail(format!("matrix {b}: the pivots are {:?}, not {right:?}", left.pivots_of(b))));
            }
        }
        Ok(())
    }

    /// Whether step `k` exchanges row `k` with itself or one below, whatever became of the matrix.
    fn valid_pivots<T: Scalar>(&self, left: &Left<T>) -> Result<(), String> {
        for b in 0..left.outcomes.len() {
            let pivots = left.pivots_of(b);
            if let Some((k, p)) = pivots.iter().enumerate().find(|&(k, &p)| (p as usize) < k || p as usize >= self.n) {
                return Err(self.fail(format!("matrix {b}: pivot {k} is {p}")));
            }
        }
        Ok(())
    }

    /// Whether the elements of matrix `b` carry the type's full precision; subnormal ones do not.
    fn precise(&self, b: usize) -> bool {
        !matches!(self.generator.planted(b), Some(Defect::Subnormal | Defect::Tiny))
    }

    /// Whether pivots are decided by chance, so that ties within rounding do not happen.
    fn random(&self) -> bool {
        matches!(self.generator, Generator::Uniform | Generator::Normal | Generator::PositiveDefinite)
    }

    fn well_conditioned(&self) -> bool {
        use Generator::{Condition, DiagonallyDominant, LowerTriangular, UpperTriangular};
        matches!(self.generator, DiagonallyDominant | LowerTriangular | UpperTriangular)
            || matches!(self.generator, Condition(kappa) if kappa <= 1e3)
    }
}

fn within(ratio: f64, limit: f64) -> bool {
    ratio < limit
}

pub(super) fn factors_multiply_back_to_the_matrix<T: Scalar, B: Complete<T>>(
    guarded: &Guarded<'_, B>,
    scope: &Scope,
) -> Verdict {
    let mut tally = Tally::default();
    for case in cases(scope) {
        let a = case.matrices::<T>()?;
        let left = guarded.factorize(&a, case.route, Extras::none()).map_err(|what| case.fail(what))?;
        case.valid_pivots(&left)?;
        case.expected(&left, |expected| expected.factors)?;
        for (b, (a, lu)) in a.view().matrices().zip(left.out.view().matrices()).enumerate() {
            let pivots = left.pivots_of(b);
            if left.outcomes[b] == Outcome::NotFinite || !case.precise(b) {
                continue;
            }
            // Factors of a singular matrix are getrf's: they multiply back as well, those of zeros to zeros.
            let zeros = one_norm(a) == 0.0 && one_norm(lu) == 0.0;
            let ratio = if zeros { 0.0 } else { residual::factorization_ratio(a, lu, pivots) };
            if !within(ratio, LIMIT) {
                return Err(case.fail(format!("matrix {b} ({}): residual ratio {ratio:.3}", left.outcomes[b])));
            }
            tally.add(ratio);
        }
    }
    Ok(tally)
}

pub(super) fn pivots_are_lapacks_but_for_ties<T: Scalar, B: Complete<T>>(
    guarded: &Guarded<'_, B>,
    scope: &Scope,
) -> Verdict {
    let mut tally = Tally::default();
    for case in cases(scope) {
        let a = case.matrices::<T>()?;
        let left = guarded.factorize(&a, case.route, Extras::none()).map_err(|what| case.fail(what))?;
        let reference = Reference.factorize(&a).map_err(in_words)?;
        for (b, outcome) in reference.outcomes() {
            let (ours, theirs) = (left.outcomes[b], outcome);
            let finite = |outcome| outcome != Outcome::NotFinite;
            if finite(ours) != finite(theirs) || (case.generator.exact() && ours != theirs) {
                return Err(case.fail(format!("matrix {b} is {ours}, the reference says {theirs}")));
            }
            let (Some(a), Some(pivots), true) = (a.view().matrix(b), reference.pivots(b), finite(ours)) else {
                continue;
            };
            match agreement::compare_pivots(a, left.pivots_of(b), pivots) {
                Choice::Same => {}
                Choice::Tie { .. } if !case.generator.exact() && !case.random() => tally.exempt += 1,
                Choice::Tie { column } | Choice::Wrong { column } => {
                    let (ours, theirs) = (left.pivots_of(b)[column], pivots[column]);
                    return Err(
                        case.fail(format!("matrix {b}: pivot {column} is row {ours}, LAPACK's rule says {theirs}"))
                    );
                }
            }
            tally.compared += 1;
        }
    }
    Ok(tally)
}

pub(super) fn exact_arithmetic_gives_exact_factors<T: Scalar, B: Complete<T>>(
    guarded: &Guarded<'_, B>,
    scope: &Scope,
) -> Verdict {
    let mut tally = Tally::default();
    for case in cases(scope).filter(|case| case.generator.exact()) {
        let a = case.matrices::<T>()?;
        let left = guarded.factorize(&a, case.route, Extras::none().with_determinant())?;
        let reference = Reference.factorize(&a).map_err(in_words)?;
        for (b, outcome) in reference.outcomes() {
            let area = case.n * case.n;
            let lu = &reference.lu().as_slice()[b * area..(b + 1) * area];
            if outcome == Outcome::NotFinite {
                continue;
            }
            let same = left.outcomes[b] == outcome
                && left.pivots_of(b) == reference.pivots(b).unwrap_or(&[])
                && left.matrix(b).iter().zip(lu).all(|(x, y)| x == y);
            if !same {
                return Err(case.fail(format!(
                    "matrix {b} ({} and {outcome}): factors differ from the exact ones",
                    left.outcomes[b]
                )));
            }
            tally.compared += 1;
        }
    }
    Ok(tally)
}

pub(super) fn the_inverse_times_the_matrix_is_the_identity<T: Scalar, B: Complete<T>>(
    guarded: &Guarded<'_, B>,
    scope: &Scope,
) -> Verdict {
    let mut tally = Tally::default();
    let extras = Extras::none().with_determinant().with_condition();
    for (turn, case) in cases(scope).enumerate() {
        let a = case.matrices::<T>()?;
        let left = if turn % 4 == 3 {
            let factors = guarded.factorize(&a, case.route, Extras::none()).map_err(|what| case.fail(what))?;
            case.valid_pivots(&factors)?;
            guarded.invert(Given::Factors(&factors), case.route, Extras::none())
        } else {
            guarded.invert(Given::Matrices(&a), case.route, extras)
        };
        let left = left.map_err(|what| case.fail(what))?;
        case.expected(&left, |expected| expected.inverse)?;
        for (b, (a, x)) in a.view().matrices().zip(left.out.view().matrices()).enumerate() {
            if !left.outcomes[b].is_regular() {
                if (0..case.n).any(|j| (0..case.n).any(|i| !all_nan(x.at(i, j)))) {
                    return Err(
                        case.fail(format!("matrix {b} is {}, but its inverse is not all NaN", left.outcomes[b]))
                    );
                }
                if let Some(condition) = left.conditions.as_ref().map(|conditions| conditions[b])
                    && !is_condition_of_failed::<T>(condition, left.outcomes[b])
                {
                    return Err(case.fail(format!("matrix {b} is {}, its condition {condition}", left.outcomes[b])));
                }
                continue;
            }
            let ratio = residual::inverse_ratio(a, x);
            if case.precise(b) {
                if !within(ratio, LIMIT) {
                    return Err(case.fail(format!("matrix {b}: residual ratio {ratio:.3}")));
                }
                tally.add(ratio);
            }
            if let Some(conditions) = &left.conditions {
                let (a, x, given) = (one_norm(a), one_norm(x), conditions[b].to_f64());
                if case.n > 0 && !is_condition::<T>(given, a, x, case.n) {
                    let expected = a * x;
                    return Err(case.fail(format!("matrix {b}: condition {given:e}, but the norms give {expected:e}")));
                }
            }
        }
    }
    Ok(tally)
}

pub(super) fn solutions_solve_their_systems<T: Scalar, B: Complete<T>>(
    guarded: &Guarded<'_, B>,
    scope: &Scope,
) -> Verdict {
    let mut tally = Tally::default();
    for (turn, case) in cases(scope).enumerate() {
        let columns = [1, 3, 1, 17][turn % 4].min(if case.n > 64 { 3 } else { 17 });
        let transpose = Transpose::ALL[turn % 3];
        let a = case.matrices::<T>()?;
        // Every third time one matrix serves all right-hand sides or one right-hand side all matrices.
        let serves = case.batch > 0 && matches!(case.route, Route::Between(..));
        let (matrices, rights) = match turn % 6 {
            1 if serves => (1, case.batch),
            4 if serves => (case.batch, 1),
            _ => (case.batch, case.batch),
        };
        let area = case.n * case.n;
        let few =
            |count: usize| Batch::from_fn(count, case.n, case.n, |b, i, j| a.as_slice()[b * area + j * case.n + i]);
        let a = few(matrices).map_err(in_words)?;
        let layout = BatchLayout::column_major(rights, case.n, columns).map_err(in_words)?;
        let b: Batch<T> = right_hand_sides(layout, case.seed).map_err(in_words)?;
        let factors = guarded.factorize(&a, case.route, Extras::none()).map_err(|what| case.fail(what))?;
        case.valid_pivots(&factors)?;
        let source = if turn % 2 == 0 { Given::Matrices(&a) } else { Given::Factors(&factors) };
        let left = guarded.solve(source, &b, case.route, transpose).map_err(|what| case.fail(what))?;
        for (at, x) in left.out.view().matrices().enumerate() {
            let (m, r) = (if matrices == 1 { 0 } else { at }, if rights == 1 { 0 } else { at });
            if !left.outcomes[at].is_regular() {
                // Where the inverse is far from overflow, solutions do not overflow.
                let inverse = case.generator.expected::<T>(case.n, case.seed, m).inverse;
                let finite = case.precise(m) && inverse == Some(Outcome::Regular);
                if factors.outcomes[m].is_regular() && (finite || left.outcomes[at] != Outcome::NotFinite) {
                    return Err(case.fail(format!("solution {at} is {}, its matrix regular", left.outcomes[at])));
                }
                continue;
            }
            if !factors.outcomes[m].is_regular() {
                return Err(case.fail(format!("solution {at} is regular, its matrix {}", factors.outcomes[m])));
            }
            let (Some(a), Some(b), Some(lu)) = (a.view().matrix(m), b.view().matrix(r), factors.out.view().matrix(m))
            else {
                continue;
            };
            if !case.precise(m) || case.n == 0 {
                continue;
            }
            let ratio = residual::solution_ratio(a, transpose, x, b) / residual::growth(a, lu).max(1.0);
            if !within(ratio, LIMIT) {
                return Err(
                    case.fail(format!("solution {at}, {transpose:?}, {columns} columns: residual ratio {ratio:.3}"))
                );
            }
            tally.add(ratio);
        }
    }
    Ok(tally)
}

pub(super) fn determinants_are_the_product_of_the_pivots<T: Scalar, B: Complete<T>>(
    guarded: &Guarded<'_, B>,
    scope: &Scope,
) -> Verdict {
    let mut tally = Tally::default();
    for (turn, case) in cases(scope).enumerate() {
        let a = case.matrices::<T>()?;
        let extras = Extras::none().with_determinant();
        let factors = guarded.factorize(&a, case.route, extras).map_err(|what| case.fail(what))?;
        case.valid_pivots(&factors)?;
        let other = match turn % 3 {
            0 => guarded.determinant(Given::Matrices(&a), Order::ALL[turn % 8]),
            1 => guarded.determinant(Given::Factors(&factors), Order::ALL[turn % 8]),
            _ => guarded.invert(Given::Matrices(&a), case.route, extras),
        }
        .map_err(|what| case.fail(what))?;
        for b in 0..case.batch {
            let (outcome, area) = (factors.outcomes[b], case.n * case.n);
            let lu = &factors.out.as_slice()[b * area..(b + 1) * area];
            let expected = Determinant::from_factors(outcome, |k| lu[k * (case.n + 1)], factors.pivots_of(b));
            for (left, name) in [(&factors, "with the factors"), (&other, "by itself or with the inverse")] {
                let Some(given) = left.determinants.as_ref().map(|d| d[b]) else {
                    return Err(case.fail("no determinants came back"));
                };
                // Another plan may round each pivot otherwise; its error is that of the factorisation.
                let slack = if left.arithmetic == factors.arithmetic { 1.0 } else { 1e3 };
                let roundings = T::EPSILON.to_f64() * (4 * case.n + 4) as f64 * slack;
                let size: f64 = (0..case.n).map(|k| lu[k * (case.n + 1)].modulus().to_f64().ln().abs()).sum();
                let near = if outcome.is_regular() {
                    (given.log_abs.to_f64() - expected.log_abs.to_f64()).abs() <= roundings * (1.0 + size)
                        && (given.sign - expected.sign).modulus().to_f64() <= roundings
                } else {
                    is_determinant_of_failed(given, outcome)
                };
                let well = left.arithmetic == factors.arithmetic || case.well_conditioned();
                if well && !near {
                    return Err(case.fail(format!("matrix {b} ({outcome}), {name}: {given:?}, not {expected:?}")));
                }
                tally.compared += 1;
            }
        }
    }
    Ok(tally)
}

/// Whether a matrix of order `n` and its inverse, of norms `a` and `x`, have the condition number `given`: the product within what rounding
/// does to sums, or infinite where the type does not reach as far.
fn is_condition<T: Scalar>(given: f64, a: f64, x: f64, n: usize) -> bool {
    let (expected, end) = (a * x, T::Real::max_value().to_f64());
    let near = (given - expected).abs() <= expected * T::EPSILON.to_f64() * (8 + 2 * n) as f64;
    near || given.is_infinite() && (a > end || x > end || expected > end)
}

/// `max_j sum_i |a_ij|`.
fn one_norm<T: Scalar>(a: MatrixRef<'_, T>) -> f64 {
    let sum = |j: usize| (0..a.rows()).map(|i| a.at(i, j).modulus().to_f64()).sum::<f64>();
    (0..a.cols()).map(sum).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests;
