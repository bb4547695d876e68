//! Matrices as planes of `f64`, near one, and columns of sums of products in higher precision.

use batchla_core::{MatrixRef, Real, Scalar, ScalarKind};

use crate::double_double::{add_products, exponent, heads, ldexp, ldexp_all, two_sum};

/// `2^-exponent` times a matrix, real and imaginary parts apart, columns one after another.
pub(super) struct Planes {
    rows: usize,
    re: Plane,
    im: Option<Plane>,
    exponent: i32,
}

struct Plane {
    values: Vec<f64>,
    /// Upper halves of the values for exact products; empty where `f64` holds products of the scalar exactly.
    heads: Vec<f64>,
}

impl Planes {
    /// The matrix with its largest part brought into [1, 2). Only parts too small to matter beside that are rounded.
    pub(super) fn scaled<T: Scalar>(matrix: MatrixRef<'_, T>) -> Self {
        let mut columns = vec![T::zero(); matrix.rows() * matrix.cols()];
        matrix.copy_to_columns(&mut columns, matrix.rows());
        Self::near_one(&columns, matrix.rows())
    }

    /// Column `j` alone, scaled likewise.
    pub(super) fn scaled_column<T: Scalar>(matrix: MatrixRef<'_, T>, j: usize) -> Self {
        let column: Vec<T> = (0..matrix.rows()).map(|i| matrix.at(i, j)).collect();
        Self::near_one(&column, matrix.rows())
    }

    fn near_one<T: Scalar>(columns: &[T], rows: usize) -> Self {
        let part = |x: &T| x.re().to_f64().abs().max(x.im().to_f64().abs());
        let exponent = exponent(columns.iter().map(part).fold(0.0, f64::max));
        Self::new(columns, rows, -exponent)
    }

    /// The matrix as it is.
    pub(super) fn of<T: Scalar>(matrix: MatrixRef<'_, T>) -> Self {
        Self::times_power(matrix, 0)
    }

    /// The matrix times `2^power`.
    pub(super) fn times_power<T: Scalar>(matrix: MatrixRef<'_, T>, power: i32) -> Self {
        let mut columns = vec![T::zero(); matrix.rows() * matrix.cols()];
        matrix.copy_to_columns(&mut columns, matrix.rows());
        Self::new(&columns, matrix.rows(), power)
    }

    fn new<T: Scalar>(columns: &[T], rows: usize, power: i32) -> Self {
        let plane = |part: fn(T) -> T::Real| {
            let mut values: Vec<f64> = columns.iter().map(|&x| part(x).to_f64()).collect();
            ldexp_all(&mut values, power);
            let double = matches!(T::KIND, ScalarKind::F64 | ScalarKind::C64);
            Plane { heads: if double { heads(&values) } else { Vec::new() }, values }
        };
        Self { rows, re: plane(T::re), im: T::IS_COMPLEX.then(|| plane(T::im)), exponent: -power }
    }

    pub(super) fn exponent(&self) -> i32 {
        self.exponent
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Both parts of element (i, j).
    pub(super) fn at(&self, i: usize, j: usize) -> (f64, f64) {
        let at = j * self.rows + i;
        (self.re.values[at], self.im.as_ref().map_or(0.0, |im| im.values[at]))
    }

    pub(super) fn exchange_rows(&mut self, pivots: &[u32]) {
        let rows = self.rows.max(1);
        for plane in [Some(&mut self.re), self.im.as_mut()].into_iter().flatten() {
            for values in [&mut plane.values, &mut plane.heads] {
                for column in values.chunks_exact_mut(rows) {
                    pivots.iter().enumerate().for_each(|(k, &p)| column.swap(k, p as usize));
                }
            }
        }
    }

    pub(super) fn conjugate(&mut self) {
        if let Some(im) = &mut self.im {
            im.values.iter_mut().chain(&mut im.heads).for_each(|x| *x = -*x);
        }
    }

    /// The 1-norm of what is held.
    pub(super) fn norm(&self) -> f64 {
        (0..self.columns()).map(|j| (0..self.rows).map(|i| self.modulus(i, j)).sum()).fold(0.0, larger)
    }

    /// The largest modulus in rows `0 .. end(j)` of all columns `j`.
    pub(super) fn largest(&self, end: impl Fn(usize) -> usize) -> f64 {
        let column = |j: usize| (0..end(j)).map(|i| self.modulus(i, j)).fold(0.0, larger);
        (0..self.columns()).map(column).fold(0.0, larger)
    }

    fn columns(&self) -> usize {
        self.re.values.len().checked_div(self.rows).unwrap_or(0)
    }

    fn modulus(&self, i: usize, j: usize) -> f64 {
        let (re, im) = self.at(i, j);
        if self.im.is_some() { re.hypot(im) } else { re.abs() }
    }
}

/// One column of sums.
pub(super) struct Sums {
    re: Sum,
    im: Option<Sum>,
}

struct Sum {
    hi: Vec<f64>,
    lo: Vec<f64>,
}

impl Sums {
    pub(super) fn new(rows: usize, complex: bool) -> Self {
        let zeros = || Sum { hi: vec![0.0; rows], lo: vec![0.0; rows] };
        Self { re: zeros(), im: complex.then(zeros) }
    }

    /// Column `j` of `matrix`, times `2^power`.
    pub(super) fn set(&mut self, matrix: &Planes, j: usize, power: i32) {
        let set = |sum: &mut Sum, plane: &Plane| {
            sum.lo.fill(0.0);
            sum.hi.copy_from_slice(&plane.values[j * matrix.rows..(j + 1) * matrix.rows]);
            ldexp_all(&mut sum.hi, power);
        };
        set(&mut self.re, &matrix.re);
        if let (Some(sum), Some(plane)) = (&mut self.im, &matrix.im) {
            set(sum, plane);
        }
    }

    /// `2^power` in place `j`, else zeros.
    pub(super) fn set_unit(&mut self, j: usize, power: i32) {
        for sum in [Some(&mut self.re), self.im.as_mut()].into_iter().flatten() {
            sum.hi.fill(0.0);
            sum.lo.fill(0.0);
        }
        self.re.hi[j] = ldexp(1.0, power);
    }

    /// Subtracts `factor` times column `k` of `matrix`, from row `first` on.
    pub(super) fn subtract_product(&mut self, first: usize, matrix: &Planes, k: usize, factor: (f64, f64)) {
        let (re, im) = factor;
        let rows = k * matrix.rows + first..(k + 1) * matrix.rows;
        self.re.add(first, -re, &matrix.re, rows.clone());
        if let (Some(sum), Some(plane)) = (&mut self.im, &matrix.im) {
            self.re.add(first, im, plane, rows.clone());
            sum.add(first, -re, plane, rows.clone());
            sum.add(first, -im, &matrix.re, rows);
        }
    }

    /// Subtracts element (k, j) of `matrix` in place `i`.
    pub(super) fn subtract_element(&mut self, i: usize, matrix: &Planes, k: usize, j: usize) {
        let (re, im) = matrix.at(k, j);
        self.re.subtract(i, re);
        if let Some(sum) = &mut self.im {
            sum.subtract(i, im);
        }
    }

    /// The 1-norm.
    pub(super) fn norm(&self) -> f64 {
        match &self.im {
            None => self.re.values().map(f64::abs).sum(),
            Some(im) => self.re.values().zip(im.values()).map(|(re, im)| re.hypot(im)).sum(),
        }
    }
}

impl Sum {
    fn add(&mut self, first: usize, factor: f64, plane: &Plane, at: std::ops::Range<usize>) {
        let (hi, lo) = (&mut self.hi[first..], &mut self.lo[first..]);
        let x = &plane.values[at.clone()];
        if plane.heads.is_empty() {
            hi.iter_mut().zip(x).for_each(|(sum, x)| *sum += factor * x);
        } else {
            add_products(hi, lo, factor, x, &plane.heads[at]);
        }
    }

    fn subtract(&mut self, i: usize, x: f64) {
        let (hi, lo) = two_sum(self.hi[i], -x);
        self.hi[i] = hi;
        self.lo[i] += lo;
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.hi.iter().zip(&self.lo).map(|(hi, lo)| hi + lo)
    }
}

/// The larger of two, NaN if either is.
pub(super) fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || a >= b { a } else { b }
}
