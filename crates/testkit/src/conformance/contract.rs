//! What holds whatever the numbers: neighbours, gaps, repeated bits, failed matrices, empty batches.

use batchla_core::{Batch, BatchLayout, Extras, Outcome, Scalar, Transpose};
use num_traits::{Float, one, zero};

use super::failed::{all_nan, is_condition_of_failed, is_determinant_of_failed};
use super::guarded::{Complete, Given, Guarded, Left, Route, bits, in_words};
use super::order::Order;
use super::{Scope, Tally, Verdict};
use crate::generate::Generator;

fn dense<T: Scalar>(generator: Generator, batch: usize, n: usize, seed: u64) -> Result<Batch<T>, String> {
    generator.batch(BatchLayout::column_major(batch, n, n).map_err(in_words)?, seed).map_err(in_words)
}

fn right_hand_sides<T: Scalar>(batch: usize, n: usize, columns: usize) -> Result<Batch<T>, String> {
    Batch::from_fn(batch, n, columns, |b, i, j| T::from_f64((1 + (b + 3 * i + 7 * j) % 11) as f64, (i % 3) as f64))
        .map_err(in_words)
}

/// Every operation's result on `a`, by `route`.
fn all_operations<T: Scalar, B: Complete<T>>(
    guarded: &Guarded<'_, B>,
    a: &Batch<T>,
    route: Route,
) -> Result<Vec<(&'static str, Left<T>)>, String> {
    let (batch, n) = (a.batch(), a.layout().rows());
    let extras = Extras::none().with_determinant();
    let factors = guarded.factorize(a, route, extras)?;
    if let Some(at) = factors.pivots.iter().enumerate().position(|(at, &p)| (p as usize) < at % n || p as usize >= n) {
        return Err(format!("factorize: pivot {} of matrix {} is {}", at % n, at / n, factors.pivots[at]));
    }
    let b = right_hand_sides(batch, n, 2)?;
    let mut all = vec![
        ("invert", guarded.invert(Given::Matrices(a), route, extras.with_condition())?),
        ("solve", guarded.solve(Given::Matrices(a), &b, route, Transpose::None)?),
        ("determinant", guarded.determinant(Given::Matrices(a), Order::ColumnMajor)?),
    ];
    let between = Route::Between(Order::ColumnMajor, Order::ColumnMajor);
    all.push(("invert from factors", guarded.invert(Given::Factors(&factors), between, Extras::none())?));
    for transpose in Transpose::ALL {
        all.push(("solve from factors", guarded.solve(Given::Factors(&factors), &b, between, transpose)?));
    }
    all.push(("determinant from factors", guarded.determinant(Given::Factors(&factors), Order::RowMajor)?));
    all.push(("factorize", factors));
    Ok(all)
}

/// Where two results differ in matrix `b`, if they do: elements, pivots, outcome, extras.
fn difference<T: Scalar>(one: (&Left<T>, usize), other: (&Left<T>, usize)) -> Option<String> {
    let ((left, b), (right, c)) = (one, other);
    let elements = left.matrix(b).iter().zip(right.matrix(c)).position(|(&x, &y)| bits(x) != bits(y));
    if let Some(at) = elements {
        return Some(format!("element {at} is {} and {}", left.matrix(b)[at], right.matrix(c)[at]));
    }
    if left.outcomes[b] != right.outcomes[c] {
        return Some(format!("the outcomes are {} and {}", left.outcomes[b], right.outcomes[c]));
    }
    if !left.pivots.is_empty() && left.pivots_of(b) != right.pivots_of(c) {
        return Some(format!("the pivots are {:?} and {:?}", left.pivots_of(b), right.pivots_of(c)));
    }
    let determinant =
        |left: &Left<T>, b: usize| left.determinants.as_ref().map(|d| [bits(d[b].sign), bits(d[b].log_abs)]);
    let condition = |left: &Left<T>, b: usize| left.conditions.as_ref().map(|c| bits(c[b]));
    (determinant(left, b) != determinant(right, c) || condition(left, b) != condition(right, c))
        .then(|| "the determinants or conditions differ".to_owned())
}

pub(super) fn one_bad_matrix_spares_its_neighbours<T: Scalar, B: Complete<T>>(
    guarded: &Guarded<'_, B>,
    scope: &Scope,
) -> Verdict {
    type Plant<T> = (&'static str, fn(&mut [T], usize), fn(usize) -> Outcome);
    let plants: [Plant<T>; 5] = [
        ("a NaN", |a, n| a[n * n / 2] = T::nan(), |_| Outcome::NotFinite),
        ("an infinity", |a, n| a[n * n - 1] = T::from_f64(f64::INFINITY, 0.0), |_| Outcome::NotFinite),
        ("a zero column", |a, n| a[n / 2 * n..(n / 2 + 1) * n].fill(zero()), |n| Outcome::Singular { column: n / 2 }),
        ("all zeros", |a, _| a.fill(zero()), |_| Outcome::Singular { column: 0 }),
        (
            "a zero column and a NaN",
            |a, n| {
                a[..n].fill(zero());
                a[n * n - 1] = T::nan();
            },
            |_| Outcome::NotFinite,
        ),
    ];
    let mut tally = Tally::default();
    for (turn, &n) in scope.orders.iter().filter(|&&n| n > 1 && n <= scope.thorough).enumerate() {
        let healthy = dense::<T>(Generator::Normal, 6, n, 11 + n as u64)?;
        let route = [
            Route::Between(Order::ColumnMajor, Order::RowMajor),
            Route::InPlace(Order::Interleaved(4)),
            Route::InPlace(Order::PaddedColumns),
            Route::Between(Order::BatchFirst, Order::Interleaved(8)),
        ][turn % 4];
        let before = all_operations(guarded, &healthy, route)?;
        for (name, plant, expected) in plants {
            let mut planted = healthy.clone();
            plant(&mut planted.as_mut_slice()[2 * n * n..3 * n * n], n);
            for ((operation, before), (_, after)) in before.iter().zip(all_operations(guarded, &planted, route)?) {
                let say = |what: String| Err(format!("{operation}, n = {n}, {route:?}, {name} in matrix 2: {what}"));
                for b in [0, 1, 3, 4, 5] {
                    if let Some(what) = difference((before, b), (&after, b)) {
                        return say(format!("neighbour {b} changed: {what}"));
                    }
                }
                if after.outcomes[2] != expected(n) {
                    return say(format!("its outcome is {}, not {}", after.outcomes[2], expected(n)));
                }
                let result_is_nan = after.matrix(2).iter().all(|&x| all_nan(x));
                if (operation.starts_with("invert") || operation.starts_with("solve")) && !result_is_nan {
                    return say("its result is not all NaN".to_owned());
                }
                if let Some(d) = after.determinants.as_ref().map(|d| d[2])
                    && !is_determinant_of_failed(d, expected(n))
                {
                    return say(format!("its determinant is {d:?}"));
                }
                if let Some(condition) = after.conditions.as_ref().map(|conditions| conditions[2])
                    && !is_condition_of_failed::<T>(condition, expected(n))
                {
                    return say(format!("its condition is {condition}"));
                }
                tally.compared += 6;
            }
        }
    }
    Ok(tally)
}

pub(super) fn the_same_matrix_gives_the_same_bits<T: Scalar, B: Complete<T>>(
    guarded: &Guarded<'_, B>,
    scope: &Scope,
) -> Verdict {
    let mut tally = Tally::default();
    for (turn, &n) in scope.orders.iter().filter(|&&n| n > 0).enumerate() {
        let order = Order::ALL[turn % Order::ALL.len()];
        let route = if turn % 2 == 0 { Route::InPlace(order) } else { Route::Between(order, Order::ColumnMajor) };
        let a = dense::<T>(Generator::Normal, if n <= 33 { 37 } else { 2 }, n, 5)?;
        // Matrix 1 alone; matrix 1 in every other place of a batch of another size; and all of it once more.
        let area = n * n;
        let alone = Batch::from_fn(1, n, n, |_, i, j| a.as_slice()[area + j * n + i]).map_err(in_words)?;
        let twice =
            Batch::from_fn(if n <= 65 { 9 } else { 3 }, n, n, |b, i, j| a.as_slice()[(b % 2) * area + j * n + i])
                .map_err(in_words)?;
        let first = all_operations(guarded, &a, route)?;
        let again = all_operations(guarded, &a, route)?;
        let alone = all_operations(guarded, &alone, route)?;
        let twice = all_operations(guarded, &twice, route)?;
        for (i, (operation, first)) in first.iter().enumerate() {
            let solves = operation.starts_with("solve");
            let mut pairs: Vec<_> = (0..a.batch()).map(|b| (b, &again[i].1, b)).collect();
            if !solves {
                // Right-hand sides differ from route to route.
                pairs.push((1, &alone[i].1, 0));
                pairs.extend((0..twice[i].1.outcomes.len()).map(|c| (c % 2, &twice[i].1, c)));
            }
            for (b, other, c) in pairs {
                if first.arithmetic != other.arithmetic {
                    return Err(format!(
                        "{operation}, n = {n}: the batch's size chose between arithmetic {} and {}",
                        first.arithmetic, other.arithmetic
                    ));
                }
                if let Some(what) = difference((first, b), (other, c)) {
                    return Err(format!(
                        "{operation}, n = {n}, {route:?}: matrix {b} of {} and {c} of {}: {what}",
                        a.batch(),
                        other.out.batch()
                    ));
                }
                tally.compared += 1;
            }
        }
    }
    Ok(tally)
}

pub(super) fn orders_and_places_keep_bits_and_gaps<T: Scalar, B: Complete<T>>(
    guarded: &Guarded<'_, B>,
    scope: &Scope,
) -> Verdict {
    let mut tally = Tally::default();
    for &n in scope.orders.iter().filter(|&&n| n > 0 && n <= scope.thorough) {
        let a = dense::<T>(Generator::Uniform, 5, n, 3)?;
        let plain = all_operations(guarded, &a, Route::Between(Order::ColumnMajor, Order::ColumnMajor))?;
        for (turn, order) in Order::ALL.into_iter().enumerate() {
            let next = Order::ALL[(turn + 3) % Order::ALL.len()];
            for route in [Route::InPlace(order), Route::Between(order, next)] {
                for ((operation, plain), (_, other)) in plain.iter().zip(all_operations(guarded, &a, route)?) {
                    for b in 0..a.batch() {
                        // Only equal arithmetic promises equal bits; that the gaps are whole is checked in every run.
                        if plain.arithmetic == other.arithmetic
                            && let Some(what) = difference((plain, b), (&other, b))
                        {
                            return Err(format!(
                                "{operation}, n = {n}, {route:?}: matrix {b} against column-major: {what}"
                            ));
                        }
                        if plain.outcomes[b] != other.outcomes[b] {
                            return Err(format!(
                                "{operation}, n = {n}, {route:?}: matrix {b} is {}",
                                other.outcomes[b]
                            ));
                        }
                        tally.compared += 1;
                    }
                }
            }
        }
    }
    Ok(tally)
}

pub(super) fn empty_batches_and_orders_zero_and_one_work<T: Scalar, B: Complete<T>>(
    guarded: &Guarded<'_, B>,
    _scope: &Scope,
) -> Verdict {
    let mut tally = Tally::default();
    for order in Order::ALL {
        for (batch, n) in [(0, 0), (0, 1), (0, 5), (3, 0), (1, 1), (7, 1)] {
            let four: T = T::from_f64(4.0, 0.0);
            let a = Batch::from_fn(batch, n, n, |_, _, _| four).map_err(in_words)?;
            for (operation, left) in all_operations(guarded, &a, Route::InPlace(order))? {
                let say = |what: &str| Err(format!("{operation} of {batch} matrices of order {n}, {order:?}: {what}"));
                if left.outcomes.len() != batch || !left.outcomes.iter().all(|outcome| outcome.is_regular()) {
                    return say("not all are regular");
                }
                if let Some(d) = &left.determinants {
                    let expected = if n == 0 { one() } else { four };
                    let near = |d: T| (d - expected).modulus() <= T::EPSILON.scale(T::from_f64(8.0, 0.0).re());
                    if d.len() != batch || !d.iter().all(|d| near(d.value())) {
                        return say("the determinants are wrong");
                    }
                }
                let quarter = one::<T>().divide(four);
                if operation.starts_with("invert") && left.out.as_slice().iter().any(|&x| x != quarter) {
                    return say("the inverse of 4 is not 1/4");
                }
                tally.compared += 1 + batch;
            }
        }
    }
    // No right-hand sides at all.
    let a = dense::<T>(Generator::Normal, 3, 4, 1)?;
    let none = Batch::zeros(BatchLayout::column_major(3, 4, 0).map_err(in_words)?).map_err(in_words)?;
    let left = guarded.solve(
        Given::Matrices(&a),
        &none,
        Route::Between(Order::ColumnMajor, Order::RowMajor),
        Transpose::None,
    )?;
    if !left.outcomes.iter().all(|outcome| outcome.is_regular()) {
        return Err("solve without right-hand sides: not all are regular".to_owned());
    }
    Ok(tally)
}

pub(super) fn extremes_of_the_range_keep_the_contract<T: Scalar, B: Complete<T>>(
    guarded: &Guarded<'_, B>,
    _scope: &Scope,
) -> Verdict {
    let mut tally = Tally::default();
    let tiny = T::SAFE_MINIMUM;
    let big = Float::recip(tiny);
    let two = T::EPSILON / T::UNIT_ROUNDOFF;
    // diag(d, d, ...): the inverse is 1/d, and overflows for a d below the reciprocal of the largest number.
    for (name, d, outcome) in [
        ("the safe minimum", tiny, Outcome::Regular),
        ("its reciprocal", big, Outcome::Regular),
        ("a subnormal number", tiny * T::EPSILON, Outcome::NotFinite),
    ] {
        for n in [1, 2, 5, 33] {
            let a =
                Batch::from_fn(3, n, n, |_, i, j| if i == j { T::from_real(d) } else { zero() }).map_err(in_words)?;
            let left = guarded.invert(Given::Matrices(&a), Route::InPlace(Order::ColumnMajor), Extras::none())?;
            let say = |what: String| Err(format!("inverse of diag({name}), n = {n}: {what}"));
            if left.outcomes.iter().any(|&o| o != outcome) {
                return say(format!("the outcome is {}, not {outcome}", left.outcomes[0]));
            }
            let expected = one::<T>().divide(T::from_real(d));
            for (at, &x) in left.out.as_slice().iter().enumerate() {
                let diagonal = at % (n * n) % (n + 1) == 0;
                let right = match (outcome, diagonal) {
                    (Outcome::Regular, true) => (x - expected).modulus() <= expected.modulus() * T::EPSILON * two,
                    (Outcome::Regular, false) => x == zero(),
                    _ => all_nan(x),
                };
                if !right {
                    return say(format!("element {at} is {x}"));
                }
            }
            let factors = guarded.factorize(&a, Route::InPlace(Order::ColumnMajor), Extras::none())?;
            if factors.outcomes.iter().any(|o| !o.is_regular()) || factors.out.as_slice() != a.as_slice() {
                return say("a diagonal matrix is not its own U".to_owned());
            }
            tally.compared += 3;
        }
    }
    // A subnormal pivot over an equal element: the multiplier is 1, where a reciprocal would overflow.
    let s = T::from_real(tiny * T::EPSILON * two);
    for n in [2, 9, 40] {
        let a = Batch::from_fn(1, n, n, |_, i, j| {
            if j == 0 {
                s
            } else if i == j {
                one()
            } else {
                zero()
            }
        })
        .map_err(in_words)?;
        let left = guarded.factorize(&a, Route::InPlace(Order::RowMajor), Extras::none())?;
        if !left.outcomes[0].is_regular() || left.matrix(0)[1..n].iter().any(|&l| l != one()) {
            return Err(format!(
                "a subnormal pivot, n = {n}: {}, multipliers {:?}",
                left.outcomes[0],
                &left.matrix(0)[1..n]
            ));
        }
        tally.compared += 1;
    }
    Ok(tally)
}

#[cfg(test)]
mod tests;
