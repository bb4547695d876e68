//! A seed gives the matrices that it gave: what was found with one can be looked at again, later and on other machines.

use batchla_core::{Complex, Real, Scalar};

use super::Generator;

/// A number that hangs on every element's size, sign and place.
fn fingerprint<T: Scalar>(generator: Generator) -> f64 {
    // Logarithms: no element is lost beside a large one.
    let part = |x: f64| match x {
        _ if x.is_nan() => 0.3,
        _ if x.is_infinite() => x.signum() * 5.0,
        _ if x == 0.0 => 0.0,
        _ => x.signum() * (2.0 + x.abs().log2() / 1100.0),
    };
    let matrix = |n: usize, b: usize| generator.matrix::<T>(n, 11, b);
    let elements = [1, 2, 5, 24].into_iter().flat_map(|n| (0..3).flat_map(move |b| matrix(n, b)));
    let parts = elements.flat_map(|x| [x.re().to_f64(), x.im().to_f64()]);
    parts.zip(1u32..).map(|(x, k)| part(x) * (0.7 * f64::from(k)).sin()).sum()
}

#[test]
fn a_seed_gives_the_matrices_that_it_gave() {
    let recorded = include_str!("fingerprints.tsv");
    let line = |g: &Generator| format!("{g}\t{:.9}\t{:.9}", fingerprint::<f64>(*g), fingerprint::<Complex<f64>>(*g));
    let now: Vec<_> = Generator::ALL.iter().map(line).collect();
    let numbers = |line: &str| line.split('\t').skip(1).map(|x| x.parse::<f64>().unwrap()).collect::<Vec<_>>();
    assert_eq!(recorded.lines().count(), now.len(), "one line a generator:\n{}", now.join("\n"));
    for (was, is) in recorded.lines().zip(&now) {
        // Logarithms differ in their last bits between platforms.
        let same = numbers(was).iter().zip(numbers(is)).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(same && was.split('\t').next() == is.split('\t').next(), "was and is:\n{was}\n{is}");
    }
}
