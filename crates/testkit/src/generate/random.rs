//! Dense random matrices.

use batchla_core::Scalar;

use super::deviates::Deviates;
use super::from_fn;

pub(super) fn uniform<W: Scalar<Real = f64>>(n: usize, deviates: &mut Deviates) -> Vec<W> {
    from_fn(n, |_, _| deviates.element(Deviates::uniform))
}

pub(super) fn normal<W: Scalar<Real = f64>>(n: usize, deviates: &mut Deviates) -> Vec<W> {
    from_fn(n, |_, _| deviates.element(Deviates::normal))
}

pub(super) fn small_integers<W: Scalar<Real = f64>>(n: usize, deviates: &mut Deviates) -> Vec<W> {
    from_fn(n, |_, _| deviates.element(|d| d.integer(9)))
}

pub(super) fn condition<W: Scalar<Real = f64>>(n: usize, kappa: f64, deviates: &mut Deviates) -> Vec<W> {
    let step = n.saturating_sub(1).max(1) as f64;
    let sigma = |k: usize| W::from_real(kappa.powf(-(k as f64) / step));
    let mut a = from_fn(n, |i, j| if i == j { sigma(i) } else { W::zero() });
    reflect(&mut a, n, deviates);
    // The other factor from the left of the transpose: all work runs along neighbours in memory.
    let mut a = from_fn(n, |i, j| a[i * n + j]);
    reflect(&mut a, n, deviates);
    a
}

/// Multiplies a matrix given by rows from the left by a random orthogonal (unitary) matrix: a product of reflectors of orders `1 ..= n`, each of
/// which takes a random normal vector to a multiple of the first unit vector (Stewart 1980).
fn reflect<W: Scalar<Real = f64>>(a: &mut [W], n: usize, deviates: &mut Deviates) {
    let norm2 = |v: &[W]| v.iter().map(|x| (*x * x.conj()).re()).sum::<f64>();
    for first in (0..n).rev() {
        let mut v: Vec<W> = (first..n).map(|_| deviates.element(Deviates::normal)).collect();
        // With the sign of the first element nothing cancels.
        let length = norm2(&v).sqrt();
        let x = v[0];
        v[0] += x.scale(length / x.modulus());
        let square = norm2(&v);
        let rows = &mut a[first * n..];
        let mut product = vec![W::zero(); n];
        for (v, row) in v.iter().zip(rows.chunks_exact(n)) {
            product.iter_mut().zip(row).for_each(|(sum, x)| *sum += v.conj() * *x);
        }
        for (v, row) in v.iter().zip(rows.chunks_exact_mut(n)) {
            let factor = v.scale(2.0 / square);
            row.iter_mut().zip(&product).for_each(|(x, sum)| *x -= factor * *sum);
        }
    }
}

pub(super) fn diagonally_dominant<W: Scalar<Real = f64>>(n: usize, deviates: &mut Deviates) -> Vec<W> {
    let mut a = uniform::<W>(n, deviates);
    for j in 0..n {
        let column = &mut a[j * n..(j + 1) * n];
        column[j] = W::zero();
        let others: f64 = column.iter().map(|x| x.modulus()).sum();
        column[j] = deviates.unit::<W>().scale(2.0 * (1.0 + others));
    }
    a
}

pub(super) fn positive_definite<W: Scalar<Real = f64>>(n: usize, deviates: &mut Deviates) -> Vec<W> {
    let g = normal::<W>(n, deviates);
    let row = |i: usize| &g[i * n..(i + 1) * n];
    let product = |i: usize, j: usize| row(i).iter().zip(row(j)).map(|(x, y)| *x * y.conj()).sum::<W>();
    let mut a = vec![W::zero(); n * n];
    for j in 0..n {
        a[j * n + j] = W::from_real(1.0 + product(j, j).re() / n as f64);
        for i in j + 1..n {
            let x = product(i, j).scale(1.0 / n as f64);
            (a[j * n + i], a[i * n + j]) = (x, x.conj());
        }
    }
    a
}

pub(super) fn low_rank<W: Scalar<Real = f64>>(n: usize, deviates: &mut Deviates) -> Vec<W> {
    let rank = n.div_ceil(2);
    let mut factor = || -> Vec<W> { (0..n * rank).map(|_| deviates.element(Deviates::normal)).collect() };
    let (x, y) = (factor(), factor());
    let row = |of: &[W], i: usize| of[i * rank..(i + 1) * rank].to_vec();
    let rows: Vec<_> = (0..n).map(|i| (row(&x, i), row(&y, i))).collect();
    from_fn(n, |i, j| rows[i].0.iter().zip(&rows[j].1).map(|(x, y)| *x * y.conj()).sum())
}
