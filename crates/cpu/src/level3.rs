//! Products and triangular solves of blocks, by faer on one thread.

use faer::linalg::matmul::matmul;
use faer::linalg::triangular_solve as triangular;
use faer::{Accum, Conj, MatMut, MatRef, Par};

use crate::backend::CpuScalar;

/// The `rows` x `cols` block at the start of `a`, whose columns are `ld` apart.
pub(crate) fn block<T>(a: &[T], ld: usize, rows: usize, cols: usize) -> MatRef<'_, T> {
    MatRef::from_column_major_slice_with_stride(a, rows, cols, ld)
}

/// The `rows` x `cols` block at the start of `a`, whose columns are `ld` apart, to write.
pub(crate) fn block_mut<T>(a: &mut [T], ld: usize, rows: usize, cols: usize) -> MatMut<'_, T> {
    MatMut::from_column_major_slice_with_stride_mut(a, rows, cols, ld)
}

/// `C -= A B`.
pub(crate) fn subtract_product<T: CpuScalar>(c: MatMut<'_, T>, a: MatRef<'_, T>, b: MatRef<'_, T>) {
    matmul(c, Accum::Add, a, b, -num_traits::one::<T>(), Par::Seq);
}

/// `B := L⁻¹ B` for a unit lower triangle.
pub(crate) fn solve_unit_lower<T: CpuScalar>(l: MatRef<'_, T>, b: MatMut<'_, T>) {
    triangular::solve_unit_lower_triangular_in_place(l, b, Par::Seq);
}

/// `B := U⁻¹ B`; uses reciprocals of the diagonal.
pub(crate) fn solve_upper<T: CpuScalar>(u: MatRef<'_, T>, b: MatMut<'_, T>) {
    triangular::solve_upper_triangular_in_place(u, b, Par::Seq);
}

/// `B := L⁻¹ B` for any lower triangle, or for its conjugate; uses reciprocals of the diagonal.
pub(crate) fn solve_lower_conj<T: CpuScalar>(l: MatRef<'_, T>, conj: Conj, b: MatMut<'_, T>) {
    triangular::solve_lower_triangular_in_place_with_conj(l, conj, b, Par::Seq);
}

/// `B := U⁻¹ B` for a unit upper triangle, or for its conjugate.
pub(crate) fn solve_unit_upper_conj<T: CpuScalar>(u: MatRef<'_, T>, conj: Conj, b: MatMut<'_, T>) {
    triangular::solve_unit_upper_triangular_in_place_with_conj(u, conj, b, Par::Seq);
}

/// `X := U⁻¹`, its upper triangle only; uses reciprocals of the diagonal.
pub(crate) fn invert_upper<T: CpuScalar>(x: MatMut<'_, T>, u: MatRef<'_, T>) {
    faer::linalg::triangular_inverse::invert_upper_triangular(x, u, Par::Seq);
}
