//! NumPy's files through every command, and the results read by NumPy and held against its own.
//!
//! Skipped with a note where there is no `python3` with NumPy, unless the environment variable `BATCHLA_REQUIRE` names `numpy`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod program;

use crate::program::{Bench, numpy};

/// Every type, order and byte order, as the name of a file.
fn files() -> Vec<String> {
    let mut names = Vec::new();
    for dtype in ["f4", "f8", "c8", "c16"] {
        for order in ["C", "F"] {
            for end in ["little", "big"] {
                names.push(format!("{dtype}-{order}-{end}"));
            }
        }
    }
    names
}

const MAKE: &str = "
import itertools
rng = np.random.default_rng(5)
def random(shape, dtype):
    a = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if np.dtype(dtype).kind == 'c' else 0)
    return a.astype(dtype)
for dtype, order, (name, end) in itertools.product(['f4', 'f8', 'c8', 'c16'], 'CF', [('little', '<'), ('big', '>')]):
    a, b, v = random((2, 3, 5, 5), end + dtype), random((2, 3, 5, 2), end + dtype), random((2, 3, 5), end + dtype)
    a[1, 2, :, 3] = 0
    for what, array in [('a', a), ('b', b), ('v', v)]:
        np.save(f'{what}-{dtype}-{order}-{name}.npy', np.array(array, order=order))
";

const COMPARE: &str = "
for dtype, order, end in itertools.product(['f4', 'f8', 'c8', 'c16'], 'CF', ['little', 'big']):
    name = f'{dtype}-{order}-{end}.npy'
    load = lambda what: np.load(f'{what}-{name}')
    a, b, v = (load(what).astype('<' + dtype).astype('c16') for what in 'abv')
    results = [load(what) for what in ('x', 'lu', 's', 'w', 'd')]
    for result in results:
        assert result.dtype == np.dtype('<' + dtype) and result.flags.c_contiguous, (name, result.dtype)
    x, lu, s, w, d = results
    regular = np.ones((2, 3), bool)
    regular[1, 2] = False
    info = np.zeros((2, 3), 'i4')
    info[1, 2] = 4
    assert (load('info') == info).all() and load('info').dtype == np.dtype('<i4')
    assert np.isnan(x[1, 2]).all() and np.isnan(s[1, 2]).all() and np.isnan(w[1, 2]).all()
    near = lambda one, other: np.abs(one - other).max() <= (1e-3 if dtype in ('f4', 'c8') else 1e-11) * np.abs(other).max()
    assert near(x[regular], np.linalg.inv(a[regular]))
    assert near(s[regular], np.linalg.solve(a[regular], b[regular]))
    assert w.shape == (2, 3, 5) and near(w[regular], np.linalg.solve(a[regular], v[regular][..., None])[..., 0])
    assert d.shape == (2, 3) and near(d, np.linalg.det(a))
    pivots = load('p')
    assert pivots.dtype == np.dtype('<i4') and pivots.shape == (2, 3, 5)
    for k in np.ndindex(2, 3):
        rows = a[k].copy()
        for step, row in enumerate(pivots[k]):
            rows[[step, row]] = rows[[row, step]]
        assert near((np.tril(lu[k], -1) + np.eye(5)) @ np.triu(lu[k]), rows), (name, k)
";

#[test]
fn every_command_reads_numpys_files_and_numpy_reads_the_results() {
    let bench = Bench::new();
    if !numpy(MAKE, bench.folder()) {
        return;
    }
    for name in files() {
        let file = |what: &str| format!("{what}-{name}.npy");
        let [a, b, v, x, lu, p, s, w, d, info] = ["a", "b", "v", "x", "lu", "p", "s", "w", "d", "info"].map(file);
        for command in [
            &["invert", &a, "-o", &x, "--outcomes", &info][..],
            &["factorize", &a, "-o", &lu, "-p", &p],
            &["solve", &a, &b, "-o", &s],
            &["solve", &a, &v, "-o", &w],
            &["det", &a, "-o", &d],
        ] {
            let (code, summary) = bench.summary(command);
            assert_eq!((code, summary["singular"]["count"].as_u64()), (2, Some(1)), "{command:?} {summary}");
        }
    }
    assert!(numpy(&format!("import itertools{COMPARE}"), bench.folder()));
}

#[test]
fn generated_files_are_numpys() {
    let bench = Bench::new();
    for (scalar, dtype) in [("f32", "f4"), ("f64", "f8"), ("c32", "c8"), ("c64", "c16")] {
        bench.well(&[
            "generate",
            "hilbert",
            "--batch",
            "2",
            "--order",
            "3",
            "--scalar",
            scalar,
            "-o",
            &format!("{dtype}.npy"),
        ]);
    }
    numpy(
        "
for dtype in ('f4', 'f8', 'c8', 'c16'):
    a = np.load(f'{dtype}.npy')
    assert a.dtype == np.dtype('<' + dtype) and a.shape == (2, 3, 3)
    hilbert = 1 / (np.arange(3)[:, None] + np.arange(3) + 1)
    assert np.allclose(np.abs(a), hilbert)
",
        bench.folder(),
    );
}
