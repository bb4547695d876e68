//! Every plan on small matrices in every kind of layout, in few enough steps for an interpreter that watches each pointer
//! (`cargo xtask miri`).
#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use batchla_core::{Batch, BatchLayout, BatchedFactorize, BatchedInvert, Complex, Extras, Options, Real};
use batchla_cpu::{Cpu, CpuScalar, InstructionSet};

const BATCH: usize = 5;
/// Below, at and above the width of a tile.
const ORDERS: &[usize] = if cfg!(miri) { &[1, 5] } else { &[1, 2, 3, 5, 9, 17] };

/// Dense, with padding in every direction, rows first, by lanes with a group that is not full.
fn layouts(n: usize) -> [BatchLayout; 4] {
    let column_major = BatchLayout::column_major(BATCH, n, n).unwrap();
    let padded = column_major.with_leading_dimension(n + 2).unwrap().with_group_stride((n + 2) * n + 3).unwrap();
    let rows_first = BatchLayout::row_major(BATCH, n, n).unwrap().with_leading_dimension(n + 1).unwrap();
    [column_major, padded, rows_first, BatchLayout::interleaved(BATCH, n, n, 4).unwrap()]
}

/// Matrices whose pivots lie off the diagonal.
fn element<T: CpuScalar>(b: usize, i: usize, j: usize, n: usize) -> T {
    let large = if (i + 1) % n == j { 8.0 } else { 0.0 };
    T::from_f64(large + ((b + 3 * i + 5 * j) % 7) as f64 / 4.0, ((i + 2 * j) % 3) as f64 / 4.0)
}

fn product<T: CpuScalar>(a: &Batch<T>, x: &Batch<T>, n: usize) -> Batch<T> {
    let sum = |b: usize, i: usize, j: usize| {
        (0..n).fold(T::from_f64(0.0, 0.0), |sum, k| sum + a.get(b, i, k).unwrap() * x.get(b, k, j).unwrap())
    };
    Batch::from_fn(BATCH, n, n, sum).unwrap()
}

/// Whether `a x` is the identity, but for rounding.
fn is_inverse<T: CpuScalar>(a: &Batch<T>, x: &Batch<T>, n: usize) -> bool {
    let identity = product(a, x, n);
    let off =
        |b: usize, i: usize, j: usize| identity.get(b, i, j).unwrap() - T::from_f64(f64::from(u8::from(i == j)), 0.0);
    let close = |z: T| z.re().to_f64().abs() < 1e-4 && z.im().to_f64().abs() < 1e-4;
    (0..BATCH * n * n).all(|at| close(off(at / (n * n), at / n % n, at % n)))
}

fn memory_is_reached_where_layouts_say<T: CpuScalar>(plan: &str, set: InstructionSet) {
    let cpu = Cpu::builder().threads(1).instruction_set(set).build().unwrap();
    let options = Options::default().with_plan(plan);
    for &n in ORDERS {
        for layout in layouts(n) {
            let dense = Batch::from_fn(BATCH, n, n, |b, i, j| element::<T>(b, i, j, n)).unwrap();
            let a = dense.to_layout(layout).unwrap();
            let x = cpu.invert_with(&a, Extras::none(), &options).unwrap().batch;
            assert!(is_inverse(&dense, &x, n), "{plan}, {}, {layout}", T::KIND);
            let factors = cpu.factorize(&a).unwrap();
            let again = factors.invert().unwrap().batch;
            assert!(is_inverse(&dense, &again, n), "{plan}, {}, from factors, {layout}", T::KIND);
            let solution = factors.solve(&x).unwrap();
            // Of A s = A⁻¹: A s is the inverse again.
            assert!(is_inverse(&dense, &product(&dense, &solution.x, n), n), "{plan}, {}, solved, {layout}", T::KIND);
        }
    }
}

macro_rules! plans {
    ($($name:ident $plan:literal $set:ident;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn memory_is_reached_where_layouts_say_real() {
                memory_is_reached_where_layouts_say::<f32>($plan, InstructionSet::$set);
            }

            #[test]
            fn memory_is_reached_where_layouts_say_complex() {
                memory_is_reached_where_layouts_say::<Complex<f64>>($plan, InstructionSet::$set);
            }
        }
    )*};
}

plans! {
    interleaved "interleaved" Portable;
    blocked "blocked" Portable;
}
