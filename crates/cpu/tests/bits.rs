//! The same matrix gives the same bits, wherever it stands, in whatever layout, on however many threads.

#![allow(clippy::unwrap_used)] // Generic tests are called by the #[test] functions.

mod matrices;

use batchla_core::*;
use batchla_cpu::{Cpu, CpuPlan, CpuScalar, InstructionSet};
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

/// Fewer large matrices than threads, one of them singular: what one thread computes, and several together, whoever comes in time. One of c64 is too large for one thread to invert but by blocks.
fn threads_that_share_a_matrix_change_no_bit<T: CpuScalar>() {
    for (set, order) in [(InstructionSet::widest(), 317), (InstructionSet::Portable, 203)] {
        let mut random = matrices::Random::new(5);
        let zero = |b, j| b == 2 && j == order - 9;
        let one = |b, j, x| if zero(b, j) { T::from_f64(0.0, 0.0) } else { x };
        let a = Batch::<T>::from_fn(3, order, order, |b, _, j| one(b, j, random.scalar())).unwrap();
        for batch in 1..=3 {
            let a = Batch::from_fn(batch, order, order, |b, i, j| a.get(b, i, j).unwrap()).unwrap();
            let b = random_batch(batch, order, order + 3);
            let cpu = |threads| Cpu::builder().threads(threads).instruction_set(set).build().unwrap();
            let expected = everything(&cpu(1), "blocked", &a, &b);
            for threads in [2, 3, 7] {
                let found = everything(&cpu(threads), "blocked", &a, &b);
                assert!(found == expected, "{batch} x {} n={order}, {set}, {threads} threads", T::KIND);
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

fn determinants_on_the_way_are_those_of_factors<T: CpuScalar>() {
    let cpu = Cpu::builder().threads(2).build().unwrap();
    for n in [1, 2, 4, 7, 8, 9, 16, 24, 31, 40, 70] {
        let mut a = random::<T>(37, n, n, 8);
        // What is singular ends a pass, in the middle of a group or of a pair.
        for b in [13, 20] {
            a.view_mut().into_matrices().nth(b).unwrap().fill_with(|_, _| T::from_f64(0.0, 0.0));
        }
        let (mut lu, mut pivots, mut words) = (a.clone(), vec![0; 37 * n], vec![9; 37]);
        let mut determinants = vec![Determinant::nan(); 37];
        let problem = Problem::factorize::<T>(SourceKind::InPlace, *a.layout(), *a.layout()).unwrap();
        let problem = problem.with_extras(Extras::none().with_determinant()).unwrap();
        let prepared = cpu.prepare(&problem, &Options::default()).unwrap();
        let mut view = lu.view_mut();
        let report = ReportMut::new(&mut words[..]).with_determinants(&mut determinants[..]);
        let args = FactorizeArgs::new(&Source::InPlace, &mut view, &mut pivots, report);
        cpu.run_factorize(&prepared, args, &mut cpu.workspace(&prepared).unwrap()).unwrap();
        assert_eq!(words.iter().filter(|&&word| word == 0).count(), 35, "n={n}");
        assert_eq!(determinants, cpu.determinant(&a).unwrap().values(), "n={n}");
        assert_eq!(all_bits(&lu), all_bits(cpu.factorize(&a).unwrap().lu()), "n={n}");
    }
}

/// Everything that a plan computes of a batch, as bits.
fn everything<T: CpuScalar>(cpu: &Cpu, plan: &str, a: &Batch<T>, b: &Batch<T>) -> Vec<Bits> {
    let (n, options) = (a.layout().rows(), Options::default().with_plan(plan));
    let (mut lu, mut pivots, mut words) =
        (Batch::zeros(*a.layout()).unwrap(), vec![0; a.batch() * n], vec![0; a.batch()]);
    let problem = Problem::factorize::<T>(SourceKind::Matrix, *a.layout(), *a.layout()).unwrap();
    let prepared = cpu.prepare(&problem, &options).unwrap();
    let source = Source::Matrix(a.view());
    let mut view = lu.view_mut();
    let args = FactorizeArgs::new(&source, &mut view, &mut pivots, ReportMut::new(&mut words[..]));
    cpu.run_factorize(&prepared, args, &mut cpu.workspace(&prepared).unwrap()).unwrap();
    let mut results = vec![
        all_bits(&lu),
        vec![pivots.iter().chain(&words).map(|&word| (u64::from(word), 0)).collect()],
        all_bits(&cpu.invert_with(a, Extras::none(), &options).unwrap().batch),
    ];
    for transpose in Transpose::ALL {
        let problem =
            Problem::solve::<T>(SourceKind::Matrix, *a.layout(), Some(*b.layout()), *b.layout(), transpose).unwrap();
        let prepared = cpu.prepare(&problem, &options).unwrap();
        let mut x = Batch::zeros(*b.layout()).unwrap();
        let mut view = x.view_mut();
        let (source, given) = (Source::Matrix(a.view()), b.view());
        let args = SolveArgs::new(&source, Some(&given), &mut view, ReportMut::new(&mut words[..]));
        cpu.run_solve(&prepared, args, &mut cpu.workspace(&prepared).unwrap()).unwrap();
        results.push(all_bits(&x));
    }
    results
}

/// Random matrices; with zeros of either sign, ties and singular ones; and pivots at both ends of the range.
fn plans_and_instruction_sets_of_one_arithmetic_give_the_same_bits<T: CpuScalar>() {
    let sets = InstructionSet::ALL.into_iter().filter(|set| set.is_available());
    let cpus: Vec<_> = sets.map(|set| Cpu::builder().threads(1).instruction_set(set).build().unwrap()).collect();
    for n in [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 23, 31, 33, 48, 55, 64, 65, 83, 150] {
        let mut random = matrices::Random::new(n as u64);
        let tiny = T::SAFE_MINIMUM.to_f64() / 2.0;
        let a = Batch::<T>::from_fn(19, n, n, |b, _, j| match b % 4 {
            0 | 1 => random.scalar(),
            2 => T::from_f64(-(random.next() * 2.0).round(), (random.next() * 1.2).round()),
            _ if b == 7 && j == n / 2 => T::from_f64(tiny * random.next(), tiny * random.next()),
            _ => random.scalar::<T>() * T::from_f64(10f64.powi(j as i32 % 3 - 1), 0.0),
        })
        .unwrap();
        let b = random_batch(19, n, 5);
        let expected = everything(&cpus[0], "blocked", &a, &b);
        for cpu in &cpus {
            for plan in ["interleaved", "blocked"] {
                let found = everything(cpu, plan, &a, &b);
                for (what, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    assert!(found == expected, "{plan} {} n={n}, result {what}, {}", T::KIND, cpu.describe());
                }
            }
        }
    }
}

/// A NaN is never the largest of a column, wherever it stands and whoever looks for it.
fn a_nan_leaves_plans_and_instruction_sets_the_same_exchanges<T: CpuScalar>() {
    for n in [4, 7, 9, 16, 20, 33, 64, 77] {
        let mut random = matrices::Random::new(n as u64);
        let nan = |b: usize, i, j| (i, j) == (b * 5 % n, b * 3 % n);
        let a = Batch::<T>::from_fn(24, n, n, |b, i, j| if nan(b, i, j) { T::nan() } else { random.scalar() }).unwrap();
        let b = random_batch(24, n, 1);
        let mut expected = None;
        for set in InstructionSet::ALL.into_iter().filter(|set| set.is_available()) {
            let cpu = Cpu::builder().threads(1).instruction_set(set).build().unwrap();
            for plan in ["interleaved", "blocked"] {
                let exchanges = everything(&cpu, plan, &a, &b)[1].clone();
                let first = expected.get_or_insert_with(|| exchanges.clone());
                assert!(*first == exchanges, "{plan} n={n}, {}", cpu.describe());
            }
        }
    }
}

/// Singular matrices, so that pairs are given up at once, regular ones, a singular one, regular ones, many singular ones, and regular ones: many groups or pairs at a time,
/// where neighbours lie in plain memory, and one by one, where they do not; in two stretches, of which the second finds what the first has left in its memory.
fn plain_and_padded_memory_give_the_same_bits<T: CpuScalar>() {
    for set in InstructionSet::ALL.into_iter().filter(|set| set.is_available()) {
        let cpu = Cpu::builder().threads(1).grain(48).instruction_set(set).build().unwrap();
        for n in (1..=9).chain([16, 18, 32, 41, 64]) {
            let mut random = matrices::Random::new(n as u64);
            let zero_row = |b, i| (b < 4 || b == 13 || (30..51).contains(&b)) && i == 0;
            let a = Batch::<T>::from_fn(
                70,
                n,
                n,
                |b, i, _| {
                    if zero_row(b, i) { T::from_f64(0.0, 0.0) } else { random.scalar() }
                },
            )
            .unwrap();
            let padded = a.to_layout(a.layout().with_leading_dimension(n + 1).unwrap()).unwrap();
            let b = random_batch(70, n, 2);
            for plan in ["interleaved", "blocked"] {
                let found = [&a, &padded].map(|a| everything(&cpu, plan, a, &b));
                assert!(found[0] == found[1], "{plan} {} n={n}, {}", T::KIND, cpu.describe());
                let told = [&a, &padded].map(|a| {
                    let options = Options::default().with_plan(plan);
                    let report = cpu.invert_with(a, Extras::none().with_determinant(), &options).unwrap().report;
                    let words: Vec<_> = report.outcomes().collect();
                    (words, report.determinants().unwrap().to_vec())
                });
                assert!(told[0] == told[1], "{plan} {} n={n}, {}", T::KIND, cpu.describe());
            }
        }
    }
}

/// Results of more than 8 MiB, which go past the caches where they lie without gaps, by blocks: of columns that end within a vector or with one. One of them is not regular.
fn large_results_have_the_bits_of_those_in_place<T: CpuScalar>() {
    for n in [96, 133, 144] {
        let batch = (8 << 20) / (n * n * size_of::<T>()) + 2;
        let mut a = random::<T>(batch, n, n, 8);
        a.as_mut_slice()[n * n..][..n].fill(T::from_f64(0.0, 0.0));
        for set in InstructionSet::ALL.into_iter().filter(|set| set.is_available()) {
            let cpu = Cpu::builder().instruction_set(set).build().unwrap();
            let (mut lu, mut inverse) = (a.clone(), a.clone());
            cpu.factorize_in_place(&mut lu).unwrap();
            cpu.invert_in_place(&mut inverse).unwrap();
            let same = |found: &Batch<T>, expected: &Batch<T>| all_bits(found) == all_bits(expected);
            assert!(same(cpu.factorize(&a).unwrap().lu(), &lu), "LU of order {n}, {set}");
            assert!(same(&cpu.invert(&a).unwrap().batch, &inverse), "inverses of order {n}, {set}");
        }
    }
}

fn random_batch<T: CpuScalar>(batch: usize, rows: usize, cols: usize) -> Batch<T> {
    random(batch, rows, cols, 77)
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
    large_results_have_the_bits_of_those_in_place
    layouts_do_not_change_bits
    places_and_threads_do_not_change_bits
    threads_that_share_a_matrix_change_no_bit
    in_place_and_from_factors_give_the_same_bits
    determinants_on_the_way_are_those_of_factors
    plans_and_instruction_sets_of_one_arithmetic_give_the_same_bits
    a_nan_leaves_plans_and_instruction_sets_the_same_exchanges
    plain_and_padded_memory_give_the_same_bits
}
