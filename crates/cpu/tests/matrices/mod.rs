//! Matrices and residuals of the tests, written down independently of the backend.

#![allow(dead_code, clippy::unwrap_used)] // Each test file uses a part; a failure here is the test's.

use batchla_core::{Batch, Complex, MatrixRef, Real, Scalar, permutation};

/// A small random generator (xorshift), the same on every machine.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Uniform in [-1, 1).
    pub(crate) fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    pub(crate) fn scalar<T: Scalar>(&mut self) -> T {
        T::from_f64(self.next(), self.next())
    }
}

/// A batch of random matrices.
pub(crate) fn random<T: Scalar>(batch: usize, rows: usize, cols: usize, seed: u64) -> Batch<T> {
    let mut random = Random::new(seed);
    Batch::from_fn(batch, rows, cols, |_, _, _| random.scalar()).unwrap()
}

/// Random, graded, Hilbert, Kahan and Vandermonde matrices.
pub(crate) fn zoo<T: Scalar>(n: usize, seed: u64) -> Batch<T> {
    let mut random = Random::new(seed);
    let grade: Vec<f64> = (0..n).map(|i| 10f64.powf(-8.0 * i as f64 / n.max(2) as f64)).collect();
    let (sine, cosine) = (1.2f64.sin(), 1.2f64.cos());
    Batch::from_fn(6, n, n, |b, i, j| match b {
        0 => random.scalar(),
        1 => random.scalar::<T>() * T::from_f64(grade[i], 0.0),
        2 => random.scalar::<T>() * T::from_f64(grade[j], 0.0),
        3 => T::from_f64(1.0 / (i + j + 1) as f64, 0.0),
        4 if i == j => T::from_f64(sine.powi(i as i32), 0.0),
        4 if i < j => T::from_f64(-cosine * sine.powi(i as i32), 0.0),
        4 => T::from_f64(0.0, 0.0),
        _ => T::from_f64(((i + 1) as f64 / n as f64).powi(j as i32), 0.0),
    })
    .unwrap()
}

/// A matrix in double precision, column by column.
pub(crate) struct Exact {
    n: usize,
    elements: Vec<Complex<f64>>,
}

impl Exact {
    pub(crate) fn new(n: usize, element: impl Fn(usize, usize) -> Complex<f64>) -> Self {
        Self { n, elements: (0..n * n).map(|at| element(at % n, at / n)).collect() }
    }

    pub(crate) fn of<T: Scalar>(a: MatrixRef<'_, T>) -> Self {
        Self::new(a.rows(), |i, j| wide(a.at(i, j)))
    }

    pub(crate) fn at(&self, i: usize, j: usize) -> Complex<f64> {
        self.elements[i + j * self.n]
    }

    pub(crate) fn norm(&self) -> f64 {
        let sum = |j: usize| (0..self.n).map(|i| self.at(i, j).norm()).sum();
        (0..self.n).map(sum).fold(0.0, |a: f64, b: f64| if b <= a { a } else { b })
    }

    fn times(&self, other: &Self) -> Self {
        Self::new(self.n, |i, j| (0..self.n).map(|k| self.at(i, k) * other.at(k, j)).sum())
    }

    fn minus(&self, other: &Self) -> Self {
        Self::new(self.n, |i, j| self.at(i, j) - other.at(i, j))
    }
}

pub(crate) fn wide<T: Scalar>(x: T) -> Complex<f64> {
    Complex::new(x.re().to_f64(), x.im().to_f64())
}

fn roundoff<T: Scalar>() -> f64 {
    T::UNIT_ROUNDOFF.to_f64()
}

/// `‖PA − LU‖₁ / (n ‖A‖₁ ε) / max(1, growth)`.
pub(crate) fn factor_ratio<T: Scalar>(a: MatrixRef<'_, T>, lu: MatrixRef<'_, T>, pivots: &[u32]) -> f64 {
    let (n, a, lu) = (a.rows(), Exact::of(a), Exact::of(lu));
    let rows = permutation(pivots);
    let one = Complex::new(1.0, 0.0);
    let zero = Complex::new(0.0, 0.0);
    let l = Exact::new(n, |i, j| {
        if i == j {
            one
        } else if i > j {
            lu.at(i, j)
        } else {
            zero
        }
    });
    let u = Exact::new(n, |i, j| if i <= j { lu.at(i, j) } else { zero });
    let pa = Exact::new(n, |i, j| a.at(rows[i] as usize, j));
    let largest = |m: &Exact| m.elements.iter().map(|x| x.norm()).fold(0.0, f64::max);
    let growth = largest(&u) / largest(&a);
    pa.minus(&l.times(&u)).norm() / (n as f64 * a.norm() * roundoff::<T>()) / growth.max(1.0)
}

/// `‖I − XA‖₁ / (n ‖A‖₁ ‖X‖₁ ε)`.
pub(crate) fn inverse_ratio<T: Scalar>(a: MatrixRef<'_, T>, x: MatrixRef<'_, T>) -> f64 {
    let (n, a, x) = (a.rows(), Exact::of(a), Exact::of(x));
    let identity = Exact::new(n, |i, j| Complex::new(f64::from(u8::from(i == j)), 0.0));
    identity.minus(&x.times(&a)).norm() / (n as f64 * a.norm() * x.norm() * roundoff::<T>())
}

/// The bits of all elements that are numbers of a matrix.
pub(crate) fn bits<T: Scalar>(a: MatrixRef<'_, T>) -> Vec<(u64, u64)> {
    let bits = |x: T| (x.re().to_f64().to_bits(), x.im().to_f64().to_bits());
    (0..a.cols()).flat_map(|j| (0..a.rows()).map(move |i| bits(a.at(i, j)))).collect()
}
