//! NumPy itself reads every file that we write, and the reverse.
//!
//! Skipped with a note where there is no `python3` with NumPy, unless the environment variable `BATCHLA_REQUIRE` names `numpy`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};

use batchla_core::{Batch, BatchLayout, Complex, Scalar};
use batchla_npy::{peek, read, write_shaped};

fn python(script: &str, folder: &Path) -> std::io::Result<Output> {
    Command::new("python3").args(["-c", script]).current_dir(folder).output()
}

/// Runs a script beside NumPy; false where there is none.
fn numpy(script: &str, folder: &Path) -> bool {
    if !python("import numpy", folder).is_ok_and(|output| output.status.success()) {
        let required = std::env::var("BATCHLA_REQUIRE").is_ok_and(|names| names.split(',').any(|name| name == "numpy"));
        assert!(!required, "BATCHLA_REQUIRE names numpy, but python3 cannot import it");
        eprintln!("SKIPPED: no python3 with numpy");
        return false;
    }
    let output = python(&format!("import numpy as np\n{script}"), folder).unwrap();
    assert!(output.status.success(), "{}\n{script}", String::from_utf8_lossy(&output.stderr));
    true
}

const SHAPES: [&[usize]; 7] = [&[3, 4], &[5, 3, 4], &[2, 3, 4, 4], &[0, 3, 3], &[2, 0, 0], &[1, 1, 1], &[2, 1, 5]];

/// Element (b, i, j): its place in C order, with half of it as the imaginary part.
fn element<T: Scalar>(place: usize) -> T {
    T::from_f64(place as f64 + 0.25, place as f64 / 2.0)
}

fn expected<T: Scalar>(shape: &[usize]) -> Batch<T> {
    let [leading @ .., rows, cols] = shape else { panic!("{shape:?}") };
    let batch = leading.iter().product();
    Batch::from_fn(batch, *rows, *cols, |b, i, j| element((b * rows + i) * cols + j)).unwrap()
}

const PYTHON_ELEMENTS: &str = "
def array(shape, dtype):
    count = np.arange(np.prod(shape, dtype=int))
    values = count + 0.25 + (count / 2 * 1j if np.dtype(dtype).kind == 'c' else 0)
    return values.astype(dtype).reshape(shape)
";

fn reads_numpy<T: Scalar>(dtype: &str) {
    let folder = tempfile::tempdir().unwrap();
    let script = format!(
        "{PYTHON_ELEMENTS}
for s, shape in enumerate({SHAPES:?}):
    for order in 'CF':
        for end in '<>=':
            for version in (1, 2, 3):
                a = np.array(array(tuple(shape), end + '{dtype}'), order=order)
                name = f'{{s}}{{order}}{{dict(zip(\"<>=\", \"lbn\"))[end]}}{{version}}.npy'
                np.lib.format.write_array(open(name, 'wb'), a, version=(version, 0))
"
    );
    if !numpy(&script, folder.path()) {
        return;
    }
    for (s, shape) in SHAPES.iter().enumerate() {
        for order in ["C", "F"] {
            for name in ["l1", "b1", "n1", "l2", "b3"] {
                let path = folder.path().join(format!("{s}{order}{name}.npy"));
                let (header, a) = (peek(&path).unwrap(), read::<T>(&path).unwrap());
                assert_eq!((&header.shape[..], header.scalar), (*shape, T::KIND));
                let c_order = BatchLayout::row_major(header.batch(), header.rows(), header.cols()).unwrap();
                let wanted = expected::<T>(shape).to_layout(c_order).unwrap();
                assert_eq!(a.to_layout(c_order).unwrap().as_slice(), wanted.as_slice(), "{}", path.display());
            }
        }
    }
}

fn numpy_reads<T: Scalar>(dtype: &str) {
    let folder = tempfile::tempdir().unwrap();
    for (s, shape) in SHAPES.iter().enumerate() {
        let a = expected::<T>(shape);
        let (batch, rows, cols) = (a.batch(), a.layout().rows(), a.layout().cols());
        let layouts = [
            BatchLayout::column_major(batch, rows, cols),
            BatchLayout::row_major(batch, rows, cols),
            BatchLayout::interleaved(batch, rows, cols, 8),
        ];
        for (l, layout) in layouts.into_iter().enumerate() {
            let path = folder.path().join(format!("{s}{l}.npy"));
            write_shaped(&path, &a.to_layout(layout.unwrap()).unwrap(), &shape[..shape.len() - 2]).unwrap();
        }
    }
    let script = format!(
        "{PYTHON_ELEMENTS}
for s, shape in enumerate({SHAPES:?}):
    for l in range(3):
        a = np.load(f'{{s}}{{l}}.npy')
        assert a.dtype == np.dtype('<{dtype}') and a.shape == tuple(shape), (a.dtype, a.shape)
        assert a.flags.c_contiguous and (a == array(tuple(shape), '<{dtype}')).all(), (s, l)
        np.load(f'{{s}}{{l}}.npy', mmap_mode='r' if a.size else None)
"
    );
    numpy(&script, folder.path());
}

#[test]
fn every_file_of_numpy_is_read() {
    reads_numpy::<f32>("f4");
    reads_numpy::<f64>("f8");
    reads_numpy::<Complex<f32>>("c8");
    reads_numpy::<Complex<f64>>("c16");
}

#[test]
fn numpy_reads_every_file_of_ours() {
    numpy_reads::<f32>("f4");
    numpy_reads::<f64>("f8");
    numpy_reads::<Complex<f32>>("c8");
    numpy_reads::<Complex<f64>>("c16");
}

#[test]
fn arrays_that_are_no_matrices_of_plain_numbers_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let script = "
arrays = [np.float64(1), np.zeros(3), np.zeros((2, 2), int), np.zeros((2, 2), bool), np.zeros((2, 2), np.float16),
          np.full((2, 2), 'text'), np.full((2, 2), None), np.zeros((2, 2), 'M8[ns]'),
          np.zeros((2, 2), [('a', '<f8'), ('\u{e4}', '<f8', (2, 2))])]
for k, a in enumerate(arrays):
    np.save(f'{k}.npy', a)
np.savez('9.npy', np.zeros((2, 2)))
import os
os.rename('9.npy.npz', '9.npy')
";
    if numpy(script, folder.path()) {
        for k in 0..10 {
            let error = peek(folder.path().join(format!("{k}.npy"))).unwrap_err();
            assert!(!error.advice().is_empty() && error.to_string().contains(&format!("{k}.npy")), "{error}");
            println!("{error}");
        }
    }
}
