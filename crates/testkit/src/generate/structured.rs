//! Matrices known by name, and matrices with zeros in known places.

use std::cmp::Ordering;

use batchla_core::Scalar;

use super::deviates::Deviates;
use super::{Place, from_fn, random};

pub(super) fn hilbert<W: Scalar<Real = f64>>(n: usize) -> Vec<W> {
    from_fn(n, |i, j| turned(i, j, 1.0 / (i + j + 1) as f64))
}

pub(super) fn vandermonde<W: Scalar<Real = f64>>(n: usize, deviates: &mut Deviates) -> Vec<W> {
    let nodes: Vec<W> = (0..n)
        .map(|_| {
            let x = deviates.uniform();
            if W::IS_COMPLEX {
                let (im, re) = (std::f64::consts::PI * x).sin_cos();
                W::from_parts(re, im)
            } else {
                W::from_real(x)
            }
        })
        .collect();
    let mut power = vec![W::one(); n];
    let mut a = Vec::with_capacity(n * n);
    for _ in 0..n {
        a.extend_from_slice(&power);
        power.iter_mut().zip(&nodes).for_each(|(power, x)| *power *= *x);
    }
    a
}

pub(super) fn toeplitz<W: Scalar<Real = f64>>(n: usize, deviates: &mut Deviates) -> Vec<W> {
    let t: Vec<W> = (0..2 * n).map(|_| deviates.element(Deviates::uniform)).collect();
    from_fn(n, |i, j| t[n + i - j])
}

pub(super) fn kahan<W: Scalar<Real = f64>>(n: usize) -> Vec<W> {
    let (s, c) = 1.2f64.sin_cos();
    from_fn(n, |i, j| {
        let row = s.powi(i as i32);
        match i.cmp(&j) {
            Ordering::Less => turned(i, j, -c * row),
            Ordering::Equal => turned(i, j, row),
            Ordering::Greater => W::zero(),
        }
    })
}

pub(super) fn frank<W: Scalar<Real = f64>>(n: usize) -> Vec<W> {
    from_fn(n, |i, j| if i <= j + 1 { turned(i, j, (n - i.max(j)) as f64) } else { W::zero() })
}

pub(super) fn wilkinson<W: Scalar<Real = f64>>(n: usize) -> Vec<W> {
    from_fn(n, |i, j| match (i == j || j + 1 == n, i > j) {
        (true, _) => turned(i, j, 1.0),
        (false, true) => turned(i, j, -1.0),
        (false, false) => W::zero(),
    })
}

/// Element (i, j) of `D A D`, `D = diag(iᵏ)`, for a complex type; of `A` itself for a real one.
fn turned<W: Scalar<Real = f64>>(i: usize, j: usize, x: f64) -> W {
    match (i + j) % 4 {
        1 if W::IS_COMPLEX => W::from_parts(0.0, x),
        2 if W::IS_COMPLEX => W::from_parts(-x, 0.0),
        3 if W::IS_COMPLEX => W::from_parts(0.0, -x),
        _ => W::from_real(x),
    }
}

pub(super) fn diagonal<W: Scalar<Real = f64>>(n: usize, deviates: &mut Deviates) -> Vec<W> {
    from_fn(n, |i, j| if i == j { deviates.unit::<W>().scale((8.0 * deviates.uniform()).exp2()) } else { W::zero() })
}

pub(super) fn triangular<W: Scalar<Real = f64>>(
    n: usize,
    deviates: &mut Deviates,
    inside: fn(usize, usize) -> bool,
) -> Vec<W> {
    // Without the 1/n the condition number would grow as 2ⁿ (Viswanath and Trefethen 1998). A complex part gets half, so that
    // |re| + |im| stays below the diagonal's too.
    let size = if W::IS_COMPLEX { 0.5 } else { 1.0 } / n.max(1) as f64;
    from_fn(n, |i, j| {
        if i == j {
            deviates.unit::<W>().scale(1.0 + deviates.fraction())
        } else if inside(i, j) {
            deviates.element::<W>(Deviates::uniform).scale(size)
        } else {
            W::zero()
        }
    })
}

pub(super) fn block_diagonal<W: Scalar<Real = f64>>(n: usize, deviates: &mut Deviates) -> Vec<W> {
    let mut block = Vec::with_capacity(n);
    while block.len() < n {
        let (number, order) = (block.len(), 1 + deviates.below(8));
        block.extend(std::iter::repeat_n(number, order));
    }
    from_fn(n, |i, j| if block[i] == block[j] { deviates.element(Deviates::normal) } else { W::zero() })
}

pub(super) fn sparse<W: Scalar<Real = f64>>(n: usize, density: f64, deviates: &mut Deviates) -> Vec<W> {
    from_fn(n, |_, _| if deviates.fraction() < density { deviates.element(Deviates::normal) } else { W::zero() })
}

pub(super) fn zero_column<W: Scalar<Real = f64>>(n: usize, place: Place, deviates: &mut Deviates) -> Vec<W> {
    let mut a = random::normal(n, deviates);
    let k = place.column(n);
    a.iter_mut().skip(k * n).take(n).for_each(|x| *x = W::zero());
    a
}
