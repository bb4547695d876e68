//! `op(A) x = b` from the factors, one column at a time.

use batchla_core::{MatrixRef, Scalar, Transpose};

/// Solves in place of `x`: `L y = P⁻¹ b`, `U x = y`; transposed, `op(U) y = b`, `op(L) z = y`, `x = P z`.
pub(super) fn solve<T: Scalar>(lu: MatrixRef<'_, T>, pivots: &[u32], transpose: Transpose, x: &mut [T]) {
    let n = lu.rows();
    match transpose {
        Transpose::None => {
            for (k, &p) in pivots.iter().enumerate() {
                x.swap(k, p as usize);
            }
            for i in 0..n {
                for k in 0..i {
                    x[i] -= lu.at(i, k) * x[k];
                }
            }
            for i in (0..n).rev() {
                for k in i + 1..n {
                    x[i] -= lu.at(i, k) * x[k];
                }
                x[i] = x[i].divide(lu.at(i, i));
            }
        }
        Transpose::Transpose | Transpose::ConjugateTranspose => {
            let op = |z: T| if transpose == Transpose::Transpose { z } else { z.conj() };
            for i in 0..n {
                for k in 0..i {
                    x[i] -= op(lu.at(k, i)) * x[k];
                }
                x[i] = x[i].divide(op(lu.at(i, i)));
            }
            for i in (0..n).rev() {
                // Where elements grow, products that matter together may each be lost beside `x[i]`.
                let products = (i + 1..n).rev().fold(T::zero(), |sum, k| sum + op(lu.at(k, i)) * x[k]);
                x[i] -= products;
            }
            for (k, &p) in pivots.iter().enumerate().rev() {
                x.swap(k, p as usize);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use batchla_core::{Batch, BatchedDeterminant, BatchedFactorize, BatchedInvert, BatchedSolve, Complex, Outcome};

    use super::*;
    use crate::reference::Reference;

    fn batch<T: Scalar>(rows: &[&[T]]) -> Batch<T> {
        Batch::from_fn(1, rows.len(), rows[0].len(), |_, i, j| rows[i][j]).unwrap()
    }

    #[test]
    fn two_by_two_systems_worked_by_hand() {
        // A = [1 2; 3 4], b = A (1, 1) = (3, 7); Aᵀ (1, 1) = (4, 6).
        let a = batch::<f64>(&[&[1.0, 2.0], &[3.0, 4.0]]);
        for (b, transpose) in [([3.0, 7.0], Transpose::None), ([4.0, 6.0], Transpose::Transpose)] {
            let solution = Reference.solve_transposed(&a, &batch(&[&[b[0]], &[b[1]]]), transpose).unwrap();
            for i in 0..2 {
                assert!((solution.x.get(0, i, 0).unwrap() - 1.0).abs() < 1e-15);
            }
        }
    }

    #[test]
    fn conjugation_is_not_forgotten() {
        // A = [i 1; 0 2]: Aᴴ = [-i 0; 1 2], Aᴴ (1, 1) = (-i, 3).
        let z = Complex::<f64>::new;
        let a = batch(&[&[z(0.0, 1.0), z(1.0, 0.0)], &[z(0.0, 0.0), z(2.0, 0.0)]]);
        let b = batch(&[&[z(0.0, -1.0)], &[z(3.0, 0.0)]]);
        let x = Reference.solve_transposed(&a, &b, Transpose::ConjugateTranspose).unwrap().x;
        assert_eq!((x.get(0, 0, 0).unwrap(), x.get(0, 1, 0).unwrap()), (z(1.0, 0.0), z(1.0, 0.0)));
    }

    #[test]
    fn an_inverse_and_a_determinant_worked_by_hand() {
        // [4 3; 6 3]: determinant -6, inverse [-1/2 1/2; 1 -2/3].
        let a = batch::<f64>(&[&[4.0, 3.0], &[6.0, 3.0]]);
        let x = Reference.invert(&a).unwrap().batch;
        for (i, j, expected) in [(0, 0, -0.5), (0, 1, 0.5), (1, 0, 1.0), (1, 1, -2.0 / 3.0)] {
            assert!((x.get(0, i, j).unwrap() - expected).abs() < 1e-15);
        }
        let d = Reference.determinant(&a).unwrap().values()[0];
        assert!((d.value() + 6.0).abs() < 1e-14 && d.sign == -1.0);
    }

    #[test]
    fn a_singular_matrix_gives_nan_and_a_zero_determinant() {
        let a = batch::<f32>(&[&[1.0, 2.0], &[2.0, 4.0]]);
        let inverse = Reference.invert(&a).unwrap();
        assert_eq!(inverse.outcomes().next(), Some((0, Outcome::Singular { column: 1 })));
        assert!(inverse.batch.as_slice().iter().all(|x| x.is_nan()));
        assert_eq!(Reference.determinant(&a).unwrap().values()[0].value(), 0.0);
    }

    #[test]
    fn factors_multiply_back() {
        let a = batch::<f64>(&[&[1.0, 2.0, 4.0], &[2.0, 8.0, 2.0], &[4.0, 4.0, 8.0]]);
        let back = Reference.factorize(&a).unwrap().reconstruct().unwrap();
        for (x, y) in back.as_slice().iter().zip(a.as_slice()) {
            assert!((x - y).abs() < 1e-14);
        }
    }
}
