//! The same matrix gives the same bits, wherever it stands, in whatever layout, on however many threads.

#![allow(clippy::unwrap_used)] // Generic tests are called by the #[test] functions.

mod matrices;

use batchla_core::*;
use batchla_cpu::{Cpu, CpuPlan, CpuScalar};
use matrices::{bits, random};

type Bits = Vec<Vec<(u64, u64)>>;

fn all_bits<T: Scalar>(batch: &Batch<T>) -> Bits {
    batch.view().matrices().map(bits).collect()
}

fn layouts(batch: usize, n: usize) -> Vec<BatchLayout> {
    let column_major = BatchLayout::column_major(batch, n, n).unwrap();
    let row_major = BatchLayout::row_major(batch, n, n).unwrap();
    vec![
        column_major,
        row_major,
        column_major.with_leading_dimension(n + 3).unwrap().with_group_stride((n + 3) * n + 5).unwrap(),
        row_major.with_leading_dimension(n + 1).unwrap(),
        BatchLayout::interleaved(batch, n, n, 4).unwrap(),
    ]
}

fn layouts_do_not_change_bits<T: CpuScalar>() {
    let cpu = Cpu::builder().threads(2).grain(3).build().unwrap();
    for n in [1, 4, 9, 16, 21, 33, 64, 100] {
        for plan in CpuPlan::NAMES {
            let options = Options::default().with_plan(plan);
            let a = random::<T>(11, n, n, n as u64);
            let expected = all_bits(&cpu.invert_with(&a, Extras::none(), &options).unwrap().batch);
            let (mut lus, mut pivots) = (Vec::new(), Vec::new());
            for layout in layouts(11, n) {
                let mut there = a.to_layout(layout).unwrap();
                let inverse = cpu.invert_with(&there, Extras::none(), &options).unwrap();
                assert_eq!(all_bits(&inverse.batch), expected, "{plan} {layout}");
                let record = cpu.factorize_in_place(&mut there).unwrap();
                pivots.push(record.read_pivots().unwrap());
                lus.push(all_bits(&there));
            }
            assert!(lus.iter().all(|lu| *lu == lus[0]) && pivots.iter().all(|p| *p == pivots[0]), "order {n}");
        }
    }
}

fn places_and_threads_do_not_change_bits<T: CpuScalar>() {
    let serial = Cpu::builder().threads(1).build().unwrap();
    for n in [4, 9, 16, 21, 33, 70] {
        for plan in CpuPlan::NAMES {
            let options = Options::default().with_plan(plan);
            let a = random::<T>(19, n, n, 3);
            let expected = all_bits(&serial.invert_with(&a, Extras::none(), &options).unwrap().batch);
            for (threads, grain) in [(1, 1), (2, 1), (3, 2), (2, 5), (4, 100)] {
                let cpu = Cpu::builder().threads(threads).grain(grain).build().unwrap();
                let inverse = cpu.invert_with(&a, Extras::none(), &options).unwrap();
                assert_eq!(all_bits(&inverse.batch), expected, "{threads} threads, {grain} at a time");
            }
            for place in [0, 1, 7, 8, 18] {
                let alone = Batch::<T>::from_fn(1, n, n, |_, i, j| a.get(place, i, j).unwrap()).unwrap();
                let inverse = serial.invert_with(&alone, Extras::none(), &options).unwrap();
                assert_eq!(all_bits(&inverse.batch)[0], expected[place]);
            }
        }
    }
}

fn in_place_and_from_factors_give_the_same_bits<T: CpuScalar>() {
    let cpu = Cpu::new();
    for n in [1, 5, 9, 24, 40, 70] {
        let a = random::<T>(9, n, n, 6);
        let inverse = cpu.invert(&a).unwrap();
        let mut in_place = a.clone();
        assert!(cpu.invert_in_place(&mut in_place).unwrap().all_regular());
        assert_eq!(all_bits(&in_place), all_bits(&inverse.batch));
        let lu = cpu.factorize(&a).unwrap();
        assert_eq!(all_bits(&lu.invert().unwrap().batch), all_bits(&inverse.batch));
        let (one, other) = (cpu.determinant(&a).unwrap(), lu.determinant().unwrap());
        assert_eq!(one.values(), other.values());
    }
}

#[test]
fn padding_is_left_alone() {
    let layout = BatchLayout::column_major(3, 9, 9).unwrap().with_leading_dimension(12).unwrap();
    let mut memory = vec![f64::NAN; layout.span() + 7];
    let a = random::<f64>(3, 9, 9, 2);
    BatchMut::new(&mut memory, layout).unwrap().copy_from(&a.view()).unwrap();
    let before: Vec<bool> = memory.iter().map(|x| x.is_nan()).collect();
    let mut view = BatchMut::new(&mut memory, layout).unwrap();
    assert!(Cpu::new().invert_in_place(&mut view).unwrap().all_regular());
    assert_eq!(memory.iter().map(|x| x.is_nan()).collect::<Vec<_>>(), before);
}

macro_rules! for_every_scalar {
    ($($test:ident)*) => { $(mod $test {
        use super::*;
        #[test] fn f32() { super::$test::<f32>(); }
        #[test] fn f64() { super::$test::<f64>(); }
        #[test] fn c32() { super::$test::<Complex<f32>>(); }
        #[test] fn c64() { super::$test::<Complex<f64>>(); }
    })* };
}

for_every_scalar! {
    layouts_do_not_change_bits
    places_and_threads_do_not_change_bits
    in_place_and_from_factors_give_the_same_bits
}
