//! Faults that other batched libraries had or have, each as a test of its own on the kernels' text.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

mod machine;

use std::cmp::Ordering;

use batchla_core::{
    Backend, Batch, BatchLayout, BatchedFactorize, BatchedInvert, BatchedSolve, Complex, Extras, FactorizeArgs, Memory,
    Options, Outcome, Problem, Report, Scalar, ScalarKind, Source, SourceKind, Transpose,
};
use batchla_cuda::Cuda;
use batchla_emulated::{Checks, Emulated, Step, Trial};

use machine::open;

/// Factors by this plan, with their pivots and outcomes.
fn factored<T: Scalar>(gpu: &Cuda, host: &Batch<T>, plan: &str) -> (Batch<T>, Vec<u32>, Vec<Outcome>) {
    let (layout, batch) = (*host.layout(), host.batch());
    let problem = Problem::factorize::<T>(SourceKind::InPlace, layout, layout).unwrap();
    let prepared = gpu.prepare(&problem, &Options::default().with_plan(plan)).unwrap();
    let (mut lu, mut pivots) = (gpu.to_device(host).unwrap(), gpu.allocate::<u32>(batch * layout.rows()).unwrap());
    let (mut report, mut view) = (Report::allocate(gpu, batch, Extras::none()).unwrap(), lu.view_mut());
    let arguments = FactorizeArgs::new(&Source::InPlace, &mut view, pivots.slice_mut(), report.view_mut());
    gpu.run_factorize(&prepared, arguments, &mut gpu.workspace(&prepared).unwrap()).unwrap();
    let mut chosen = vec![0; batch * layout.rows()];
    <Cuda as Backend>::Memory::read(pivots.slice(), &mut chosen).unwrap();
    (gpu.to_host(&lu).unwrap(), chosen, report.read_outcomes().unwrap())
}

#[test]
fn a_pivot_row_is_not_overwritten_while_others_search() {
    let Some(sound) = open(Emulated::new("sm_90")) else { return };
    // Four warps, which no barrier keeps together but the search's own.
    let trial = Trial::new(ScalarKind::F64, 100, "left-looking", Step::Factorize);
    let expected = trial.run(&sound, &sound).unwrap();
    for (seed, plan) in (1..).zip(["left-looking", "left-looking", "tree-search", "right-looking"]) {
        let watched = open(Emulated::new("sm_90").seed(seed).checks(Checks::All)).unwrap();
        assert!(Trial { plan, ..trial }.run(&watched, &sound).unwrap() == expected, "{plan}, seed {seed}");
    }
}

#[test]
fn nan_below_the_diagonal_is_seen() {
    let Some(gpu) = open(Emulated::new("sm_70").checks(Checks::All)) else { return };
    let n = 9;
    // Matrix b has its NaN in row b + 1 of the first column; the last has none.
    let host = Batch::from_fn(n, n, n, |b, i, j| match (i, j) {
        (i, 0) if i == b + 1 => f64::NAN,
        (i, j) if i == j => 4.0,
        _ => 1.0,
    });
    let inverse = gpu.invert(&gpu.to_device(&host.unwrap()).unwrap()).unwrap();
    let outcomes = inverse.report.read_outcomes().unwrap();
    assert!(outcomes[..n - 1].iter().all(|&outcome| outcome == Outcome::NotFinite), "{outcomes:?}");
    assert_eq!(outcomes[n - 1], Outcome::Regular);
}

#[test]
fn infinity_that_makes_no_nan_is_seen_whatever_the_plan() {
    let Some(gpu) = open(Emulated::new("sm_90").checks(Checks::All)) else { return };
    let n = 61;
    // In the last element, at the ends of the last column and of the last row; the last matrix has none.
    let host = Batch::from_fn(4, n, n, |b, i, j| match (b, i, j) {
        (0, 60, 60) | (1, 0, 60) => f64::INFINITY,
        (2, 60, 0) => f64::NEG_INFINITY,
        (_, i, j) if i == j => 4.0,
        _ => 1.0,
    });
    let host = host.unwrap();
    let windows = "resident:panel=8,window=16,helpers=1";
    for plan in [windows, &format!("{windows},tensor=0"), "resident:window=0", "left-looking", "blocked:finish=0"] {
        let (_, _, outcomes) = factored(&gpu, &host, plan);
        assert!(outcomes[..3].iter().all(|&outcome| outcome == Outcome::NotFinite), "{plan}: {outcomes:?}");
        assert_eq!(outcomes[3], Outcome::Regular, "{plan}");
    }
}

#[test]
fn of_numbers_that_differ_in_their_last_bits_the_largest_is_chosen_and_of_equals_the_first() {
    let Some(gpu) = open(Emulated::new("sm_90").checks(Checks::All)) else { return };
    chooses_the_largest::<f64>(&gpu, f64::EPSILON);
    chooses_the_largest::<f32>(&gpu, f32::EPSILON);
    chooses_the_largest::<Complex<f64>>(&gpu, Complex::new(f64::EPSILON, 0.0));
    chooses_the_largest::<Complex<f32>>(&gpu, Complex::new(f32::EPSILON, 0.0));
}

fn chooses_the_largest<T: Scalar>(gpu: &Cuda, epsilon: T) {
    let n = 61;
    // What column `first` has from its diagonal on: one, and so many units in the last place. The columns before it are the identity's.
    let units = |b: usize, i: usize| i * 7 % if b < 4 { 61 } else { 5 };
    let first = |b: usize| [0, 3, 8, 50][b % 4];
    // The last matrix: row 40 comes first, so that row 0 stands behind row 32, of which a thread may have both, when they tie for the second column.
    let (batch, exchanged) = (9, 8);
    let small = |k: usize| (0..k).fold(T::zero(), |sum, _| sum + epsilon);
    let host = Batch::from_fn(batch, n, n, |b, i, j| match j.cmp(&first(b)) {
        _ if b == exchanged && j == 0 => small(usize::from(i == 40)),
        _ if b == exchanged && j == 1 => small(if i % 32 == 0 { 3 } else { 1 }),
        Ordering::Less if i == j => T::one(),
        Ordering::Less => T::zero(),
        Ordering::Equal => T::one() + small(units(b, i)),
        Ordering::Greater => small((i * 31 + j * j * 17) % 61) / small(40),
    });
    let host = host.unwrap();
    let mut all = Vec::new();
    for plan in ["left-looking", "resident:window=0", "resident:panel=4,window=16,helpers=1"] {
        let (lu, chosen, _) = factored(gpu, &host, plan);
        for b in 0..exchanged {
            let most = (first(b)..n).map(|i| units(b, i)).max().unwrap();
            let expected = (first(b)..n).find(|&i| units(b, i) == most).unwrap();
            assert_eq!(chosen[b * n + first(b)] as usize, expected, "{plan}, {}, matrix {b}", T::KIND);
        }
        assert_eq!(chosen[exchanged * n..][..2], [40, 32], "{plan}, {}", T::KIND);
        all.push((chosen, lu.as_slice().to_vec()));
    }
    assert!(all.iter().all(|one| *one == all[0]), "{}", T::KIND);
}

#[test]
fn a_subnormal_pivot_gives_no_nan() {
    let Some(gpu) = open(Emulated::new("sm_90").checks(Checks::All)) else { return };
    let s = f64::from_bits(4);
    let host = Batch::from_fn(1, 2, 2, |_, i, j| if (i, j) == (1, 1) { 2.0 * s } else { s }).unwrap();
    let factors = gpu.factorize(&gpu.to_device(&host).unwrap()).unwrap();
    let lu = gpu.to_host(factors.lu()).unwrap();
    // The multiplier is one, where the pivot's reciprocal would be infinite.
    assert_eq!(lu.as_slice(), [s, 1.0, s, s]);
    assert_eq!(factors.record().report().read_outcomes().unwrap(), [Outcome::Regular]);
}

#[test]
fn a_subnormal_pivot_is_divided_by_where_the_inverse_does_not_overflow() {
    let Some(gpu) = open(Emulated::new("sm_90").checks(Checks::All)) else { return };
    // Its reciprocal is taken for infinite where subnormal numbers count as zero; zeros beside it would be NaN.
    let tiny = f64::MIN_POSITIVE / 2.0;
    for (n, plan) in
        [(5, "resident"), (40, "resident"), (40, "resident:inverse-window=16"), (66, "resident:inverse-window=8")]
    {
        let host = Batch::from_fn(2, n, n, |b, i, j| match (i == j, b == 1 && i == n - 1) {
            (true, true) => tiny,
            (true, false) => 2.0,
            _ => 0.0,
        });
        let a = gpu.to_device(&host.unwrap()).unwrap();
        let inverse = gpu.invert_with(&a, Extras::none(), &Options::default().with_plan(plan)).unwrap();
        assert_eq!(inverse.report.read_outcomes().unwrap(), [Outcome::Regular; 2], "{n}, {plan}");
        let x = gpu.to_host(&inverse.batch).unwrap();
        for (at, &x) in x.as_slice().iter().enumerate() {
            let (b, i, j) = (at / (n * n), at % n, at / n % n);
            let expected = if i != j {
                0.0
            } else if b == 1 && i == n - 1 {
                1.0 / tiny
            } else {
                0.5
            };
            assert_eq!(x, expected, "{n}, {plan}: ({b}, {i}, {j})");
        }
    }
}

#[test]
fn complex_pivots_just_above_the_least_that_has_a_reciprocal_give_no_nan() {
    let Some(gpu) = open(Emulated::new("sm_90").checks(Checks::All)) else { return };
    // The square of its modulus is subnormal, which the instruction for reciprocals takes for zero.
    let tiny = 2_f32.powi(-64);
    for n in [3, 33] {
        let host = Batch::from_fn(1, n, n, |_, i, j| match i == j {
            true => Complex::new(tiny, tiny),
            false => Complex::new(0.0, 0.0),
        });
        let inverse = gpu.invert(&gpu.to_device(&host.unwrap()).unwrap()).unwrap();
        assert_eq!(inverse.report.read_outcomes().unwrap(), [Outcome::Regular], "order {n}");
        let half = 0.5 / tiny;
        assert_eq!(gpu.to_host(&inverse.batch).unwrap().as_slice()[0], Complex::new(half, -half), "order {n}");
    }
}

#[test]
fn zeros_keep_their_signs_whatever_the_plan() {
    let Some(planner) = open(Emulated::new("sm_80")) else { return };
    for (scalar, order) in [(ScalarKind::C64, 33), (ScalarKind::C64, 35), (ScalarKind::F64, 33)] {
        let trial = Trial::new(scalar, order, "left-looking:inverse-window=0", Step::Invert);
        let trial = Trial { batch: Trial::KINDS, ..trial };
        let expected = trial.run(&planner, &planner).unwrap();
        let watched = open(Emulated::new("sm_90").seed(1).checks(Checks::All)).unwrap();
        for plan in ["left-looking", "resident"] {
            let left = Trial { plan, ..trial }.run(&watched, &planner).unwrap();
            assert!(left == expected, "{scalar:?} {order}, {plan}");
        }
    }
}

#[test]
fn what_overflows_beyond_a_matrix_says_nothing_of_its_inverse() {
    let Some(gpu) = open(Emulated::new("sm_90")) else { return };
    // The inverse of L grows to 2^148, beyond this type's numbers, and that of A to 2^88; what is beyond order 150, to the end of its class, is solved with L alone.
    let (n, scale) = (150, f32::powi(2.0, 60));
    let a = Batch::from_fn(1, n, n, |_, i, j| match i.cmp(&j) {
        Ordering::Less => 0.0,
        Ordering::Equal => scale,
        Ordering::Greater => -scale,
    });
    let factors = gpu.factorize(&gpu.to_device(&a.unwrap()).unwrap()).unwrap();
    let inverse = factors.invert().unwrap();
    assert_eq!(inverse.report.read_outcomes().unwrap(), [Outcome::Regular]);
    let inverse = gpu.to_host(&inverse.batch).unwrap();
    assert_eq!(inverse.get(0, n - 1, 0), Some(f32::powi(2.0, 148 - 60)));
}

#[test]
fn order_zero_leaves_no_stale_outcomes() {
    let Some(gpu) = open(Emulated::new("sm_90").checks(Checks::All)) else { return };
    let layout = BatchLayout::column_major(70, 0, 0).unwrap();
    let problem = Problem::factorize::<f64>(SourceKind::InPlace, layout, layout).unwrap();
    // The planner's own, and threads of several rows, none of which are there.
    for options in [Options::default(), Options::default().with_plan("resident:rows=8,helpers=1")] {
        let prepared = gpu.prepare(&problem, &options).unwrap();
        let mut workspace = gpu.workspace(&prepared).unwrap();
        let mut lu = gpu.allocate_batch::<f64>(layout).unwrap();
        let mut pivots = gpu.allocate::<u32>(0).unwrap();
        let mut report = Report::allocate(&gpu, 70, Extras::none()).unwrap();
        gpu.write(&[3; 70], report.view_mut().outcomes).unwrap();
        let mut view = lu.view_mut();
        let arguments = FactorizeArgs::new(&Source::InPlace, &mut view, pivots.slice_mut(), report.view_mut());
        gpu.run_factorize(&prepared, arguments, &mut workspace).unwrap();
        assert!(report.read_outcomes().unwrap().iter().all(|outcome| outcome.is_regular()));
    }
}

#[test]
fn a_batch_beyond_65_535_is_right_to_its_last_matrix() {
    let Some(gpu) = open(Emulated::new("sm_90")) else { return };
    let batch = 65_537;
    // [[0, b + 1], [1, 0]], whose inverse is [[0, 1], [1 / (b + 1), 0]]: every matrix its own, every one exchanges rows.
    let host = Batch::from_fn(batch, 2, 2, |b, i, j| match (i, j) {
        (0, 1) => (b + 1) as f64,
        (1, 0) => 1.0,
        _ => 0.0,
    });
    let inverse = gpu.invert(&gpu.to_device(&host.unwrap()).unwrap()).unwrap();
    assert!(inverse.report.read_outcomes().unwrap().iter().all(|outcome| outcome.is_regular()));
    let inverse = gpu.to_host(&inverse.batch).unwrap();
    for (b, x) in inverse.as_slice().chunks(4).enumerate() {
        assert_eq!(x, [0.0, 1.0 / (b + 1) as f64, 1.0, 0.0], "matrix {b}");
    }
}

#[test]
fn transposed_solves_take_the_unit_diagonal_for_l_and_the_other_for_u() {
    let Some(gpu) = open(Emulated::new("sm_70").checks(Checks::All)) else { return };
    // A = L U with small integers: every solution is exact.
    let (l, u) =
        ([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.25, 0.5, 1.0]], [[8.0, 4.0, 2.0], [0.0, 4.0, 2.0], [0.0, 0.0, 2.0]]);
    let a = |i: usize, j: usize| (0..3).map(|k| l[i][k] * u[k][j]).sum::<f64>();
    let x = [3.0, -2.0, 5.0];
    let host = Batch::from_fn(1, 3, 3, |_, i, j| a(i, j)).unwrap();
    let device = gpu.to_device(&host).unwrap();
    for transpose in Transpose::ALL {
        let op = |i: usize, j: usize| if transpose == Transpose::None { a(i, j) } else { a(j, i) };
        let b = Batch::from_fn(1, 3, 1, |_, i, _| (0..3).map(|j| op(i, j) * x[j]).sum()).unwrap();
        let solution = gpu.solve_transposed(&device, &gpu.to_device(&b).unwrap(), transpose).unwrap();
        assert_eq!(gpu.to_host(&solution.x).unwrap().as_slice(), x, "{transpose:?}");
    }
}
