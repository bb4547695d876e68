//! Whole files: there and back, against an independent implementation of the format, and broken in every way.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use batchla_core::{Batch, BatchLayout, BatchRef, Complex, Error, ErrorKind, Scalar, Strides};
use batchla_npy::{AnyBatch, Archive, IntegerReader, Reader, Writer, peek, read, read_any, write, write_shaped};
use npyz::WriterBuilder;
use proptest::prelude::*;
use tempfile::TempDir;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    (folder, path)
}

fn numbered<T: Scalar>(batch: usize, rows: usize, cols: usize) -> Batch<T> {
    Batch::from_fn(batch, rows, cols, |b, i, j| T::from_f64((100 * b + 10 * i + j) as f64, b as f64)).unwrap()
}

fn assert_same<'a, T: Scalar>(a: impl Into<BatchRef<'a, T>>, b: impl Into<BatchRef<'a, T>>) {
    let (a, b) = (a.into(), b.into());
    let c_order = BatchLayout::row_major(a.batch(), a.layout().rows(), a.layout().cols()).unwrap();
    assert_eq!(a.to_layout(c_order).unwrap().as_slice(), b.to_layout(c_order).unwrap().as_slice());
}

fn there_and_back<T: Scalar>() {
    let (_folder, path) = folder();
    for (batch, rows, cols) in [(0, 3, 3), (1, 1, 1), (5, 4, 3), (3, 0, 0), (2, 1, 7), (2, 7, 1), (700, 5, 5)] {
        let a = numbered::<T>(batch, rows, cols);
        for layout in [
            BatchLayout::column_major(batch, rows, cols).unwrap(),
            BatchLayout::row_major(batch, rows, cols).unwrap(),
            BatchLayout::interleaved(batch, rows, cols, 4).unwrap(),
            BatchLayout::column_major(batch, rows, cols).unwrap().with_leading_dimension(rows + 2).unwrap(),
        ] {
            write(&path, &a.to_layout(layout).unwrap()).unwrap();
            assert_eq!(peek(&path).unwrap().shape, [batch, rows, cols]);
            assert_same(&read::<T>(&path).unwrap(), &a);
        }
    }
}

#[test]
fn batches_of_any_type_and_layout_go_there_and_back() {
    there_and_back::<f32>();
    there_and_back::<f64>();
    there_and_back::<Complex<f32>>();
    there_and_back::<Complex<f64>>();
}

/// Writes, by npyz, an array of `shape` whose elements count up in C order.
fn write_counted(path: &Path, shape: &[u64], fortran: bool, big_endian: bool) {
    let total: u64 = shape.iter().product();
    let mut values = Vec::new();
    for place in 0..total {
        let (mut rest, mut index) = (place, vec![0; shape.len()]);
        let axes: Vec<usize> = if fortran { (0..shape.len()).collect() } else { (0..shape.len()).rev().collect() };
        for axis in axes {
            index[axis] = rest % shape[axis];
            rest /= shape[axis];
        }
        values.push(index.iter().zip(shape).fold(0, |sum, (i, extent)| sum * extent + i) as f64);
    }
    let dtype = npyz::DType::new_scalar(if big_endian { ">f8" } else { "<f8" }.parse().unwrap());
    let order = if fortran { npyz::Order::Fortran } else { npyz::Order::C };
    let file = fs::File::create(path).unwrap();
    let mut writer = npyz::WriteOptions::new().dtype(dtype).shape(shape).order(order).writer(file).begin_nd().unwrap();
    writer.extend(values).unwrap();
    writer.finish().unwrap();
}

fn counted(batch: usize, rows: usize, cols: usize) -> Batch<f64> {
    Batch::from_fn(batch, rows, cols, |b, i, j| ((b * rows + i) * cols + j) as f64).unwrap()
}

#[test]
fn files_of_another_writer_are_read_in_both_orders_and_by_parts() {
    let (_folder, path) = folder();
    for shape in [&[3u64, 4][..], &[5, 3, 4], &[1, 4, 4], &[2, 3, 4, 3], &[2, 3, 2, 2, 2]] {
        let leading: u64 = shape[..shape.len() - 2].iter().product();
        let expected = counted(leading as usize, shape[shape.len() - 2] as usize, shape[shape.len() - 1] as usize);
        for (fortran, big_endian) in [(false, false), (false, true), (true, false), (true, true)] {
            write_counted(&path, shape, fortran, big_endian);
            assert_same(&read::<f64>(&path).unwrap(), &expected);
            for size in 1..7 {
                let mut reader = Reader::<f64>::open(&path).unwrap();
                let mut b = 0;
                while let Some(part) = reader.next_batch(size).unwrap() {
                    for (k, matrix) in part.view().matrices().enumerate() {
                        assert_eq!(matrix.at(1, 0), expected.get(b + k, 1, 0).unwrap());
                    }
                    b += part.batch();
                }
                assert_eq!((b as u64, reader.remaining()), (leading, 0));
            }
            let bytes = std::io::Cursor::new(fs::read(&path).unwrap());
            assert_same(&Reader::<f64>::new(bytes, "a stream").unwrap().read_to_end().unwrap(), &expected);
        }
    }
}

#[test]
fn nothing_is_transposed_while_reading() {
    let (_folder, path) = folder();
    write_counted(&path, &[5, 3, 4], false, false);
    assert_eq!(*read::<f64>(&path).unwrap().layout(), BatchLayout::row_major(5, 3, 4).unwrap());
    write_counted(&path, &[5, 3, 4], true, false);
    assert_eq!(read::<f64>(&path).unwrap().layout().strides(), Strides { lanes: 1, group: 1, row: 5, col: 15 });
    write_counted(&path, &[3, 4], true, false);
    assert_eq!(*read::<f64>(&path).unwrap().layout(), BatchLayout::column_major(1, 3, 4).unwrap());
}

#[test]
fn another_reader_reads_what_is_written() {
    let (_folder, path) = folder();
    let a = numbered::<Complex<f64>>(6, 2, 3);
    write_shaped(&path, &a, &[3, 2]).unwrap();
    let file = npyz::NpyFile::new(fs::File::open(&path).unwrap()).unwrap();
    assert_eq!((file.shape(), file.order()), (&[3, 2, 2, 3][..], npyz::Order::C));
    let c_order = a.to_layout(BatchLayout::row_major(6, 2, 3).unwrap()).unwrap();
    assert_eq!(file.into_vec::<Complex<f64>>().unwrap(), c_order.as_slice());
}

#[test]
fn a_file_of_another_type_is_refused_or_read_as_what_it_is() {
    let (_folder, path) = folder();
    write(&path, &numbered::<Complex<f32>>(2, 3, 3)).unwrap();
    let error = read::<f64>(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Argument);
    assert!(error.to_string().contains("c32") && error.to_string().contains("f64"), "{error}");
    let any = read_any(&path).unwrap();
    assert!(matches!(any, AnyBatch::C32(_)) && any.layout().batch() == 2 && any.scalar().name() == "c32");
}

#[test]
fn integers_of_another_type_are_told_to_become_integers() {
    let (_folder, path) = folder();
    for descr in ["<i2", "<u4", "<f8"] {
        let text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (1, 2), }}");
        let length = (text.len() as u16).to_le_bytes();
        fs::write(&path, [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes(), &[0; 16]].concat()).unwrap();
        let error = IntegerReader::open(&path).unwrap_err();
        assert!(error.to_string().contains(descr) && error.advice().contains("numpy.int32"), "{error}");
    }
}

#[test]
fn a_file_whose_length_is_not_what_it_promises_is_refused() {
    let (_folder, path) = folder();
    write(&path, &numbered::<f64>(3, 4, 4)).unwrap();
    let whole = fs::read(&path).unwrap();
    for bytes in [&whole[..whole.len() - 1], &whole[..200], &whole[..128], &[&whole[..], b"x"].concat()] {
        fs::write(&path, bytes).unwrap();
        let named = if bytes.len() < whole.len() { "ends early" } else { "goes on" };
        let stream = std::io::Cursor::new(bytes.to_vec());
        let streamed = Reader::<f64>::new(stream, "a.npy").and_then(Reader::read_to_end).unwrap_err();
        for error in [peek(&path).unwrap_err(), read::<f64>(&path).unwrap_err(), streamed] {
            assert!(error.kind() == ErrorKind::Io && error.to_string().contains(named), "{error}");
            assert!(error.to_string().contains("a.npy"), "{error}");
        }
    }
}

#[test]
fn a_promise_of_petabytes_takes_no_memory() {
    let (_folder, path) = folder();
    for shape in ["(1000000000000, 32, 32)", "(1000000, 1000000, 32, 32)"] {
        for order in ["False", "True"] {
            let text = format!("{{'descr': '<f4', 'fortran_order': {order}, 'shape': {shape}, }}");
            let length = (text.len() as u16).to_le_bytes();
            fs::write(&path, [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes(), &[0; 64]].concat()).unwrap();
            assert_eq!(read::<f32>(&path).unwrap_err().kind(), ErrorKind::Io);
            let stream = std::io::Cursor::new(fs::read(&path).unwrap());
            let error = Reader::<f32>::new(stream.clone(), "a stream").unwrap().next_batch(3).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Io | ErrorKind::Unsupported), "{error}");
            let error = Reader::<f32>::new(stream, "a stream").unwrap().read_to_end().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        }
    }
}

#[test]
fn what_is_no_file_is_refused() {
    let (folder, path) = folder();
    let a = numbered::<f32>(1, 2, 2);
    assert!(peek(&path).unwrap_err().to_string().contains("a.npy cannot be opened"));
    assert!(peek(folder.path()).unwrap_err().to_string().contains("is a directory"));
    assert!(write(folder.path(), &a).unwrap_err().to_string().contains("is a directory"));
    assert_eq!(write(folder.path().join("no/such/folder.npy"), &a).unwrap_err().kind(), ErrorKind::Io);
    fs::write(&path, "").unwrap();
    assert!(peek(&path).unwrap_err().to_string().contains("is empty"));
}

#[cfg(unix)]
#[test]
fn a_device_is_read_as_a_stream_and_never_replaced() {
    let a = numbered::<f32>(1, 2, 2);
    assert!(write("/dev/null", &a).unwrap_err().to_string().contains("no ordinary file"));
    assert!(peek("/dev/null").unwrap_err().to_string().contains("is empty"));
    assert!(peek("/dev/zero").unwrap_err().to_string().contains("is not a .npy file"));
}

fn names(folder: &Path) -> Vec<String> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn an_unfinished_file_leaves_the_old_one_and_nothing_else() {
    let (folder, path) = folder();
    fs::write(&path, "old").unwrap();
    let a = numbered::<f64>(2, 3, 3);
    let mut writer = Writer::<f64>::create(&path, &[4, 3, 3]).unwrap();
    writer.push(&a).unwrap();
    let error = writer.push(&numbered(3, 3, 3)).unwrap_err();
    assert!(error.kind() == ErrorKind::Shape && error.to_string().contains("2 of 4"), "{error}");
    assert_eq!(writer.push(&numbered(1, 4, 3)).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(writer.finish().unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!((names(folder.path()), fs::read(&path).unwrap()), (vec!["a.npy".to_owned()], b"old".to_vec()));
    assert_eq!(write_shaped(&path, &a, &[5]).unwrap_err().kind(), ErrorKind::Shape);
    assert_eq!(write_shaped(&path, &a, &[1; 63]).unwrap_err().kind(), ErrorKind::Argument);
    assert_eq!(names(folder.path()).len(), 1);
}

#[cfg(unix)]
#[test]
fn permissions_are_those_of_the_old_file_or_of_any_new_one() {
    use std::os::unix::fs::PermissionsExt;
    let (folder, path) = folder();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let a = numbered::<f32>(1, 2, 2);
    write(&path, &a).unwrap();
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    assert_eq!(mode(&path), mode(&plain));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    write(&path, &a).unwrap();
    assert_eq!(mode(&path), 0o600);
}

#[cfg(unix)]
#[test]
fn a_symbolic_link_is_written_through() {
    let (folder, path) = folder();
    let link = folder.path().join("link.npy");
    write(&path, &numbered::<f32>(1, 2, 2)).unwrap();
    std::os::unix::fs::symlink(&path, &link).unwrap();
    write(&link, &numbered::<f32>(3, 2, 2)).unwrap();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(peek(&path).unwrap().batch(), 3);
}

/// An archive of an array that is stored as it is, and the places of its first and last element.
fn stored(path: &Path, array: &[u8]) -> (usize, usize) {
    let mut zip = ZipWriter::new(fs::File::create(path).unwrap());
    zip.start_file("a.npy", SimpleFileOptions::default().compression_method(CompressionMethod::Stored)).unwrap();
    zip.write_all(array).unwrap();
    zip.finish().unwrap();
    let bytes = fs::read(path).unwrap();
    let start = bytes.windows(array.len()).position(|part| part == array).unwrap();
    (start + 128, start + array.len() - 8)
}

#[test]
fn a_damaged_byte_of_a_stored_array_is_noticed_however_it_is_read_from_front_to_back() {
    let (folder, path) = folder();
    let archive = folder.path().join("a.npz");
    for (fortran, parts) in [(false, &[2usize, 3, 7][..]), (true, &[7])] {
        write_counted(&path, &[7, 3, 3], fortran, false);
        // npyz pads to 128 bytes, as NumPy does.
        let (first, last) = stored(&archive, &fs::read(&path).unwrap());
        let whole = fs::read(&archive).unwrap();
        for damaged in [None, Some(first), Some(last)] {
            let mut bytes = whole.clone();
            if let Some(place) = damaged {
                bytes[place] ^= 1;
            }
            fs::write(&archive, bytes).unwrap();
            for &size in parts {
                let mut reader = Archive::open(&archive).unwrap().array("a").unwrap().typed::<f64>().unwrap();
                let mut read = || -> Result<(), Error> {
                    while reader.next_batch(size)?.is_some() {}
                    Ok(())
                };
                match (damaged, read()) {
                    (None, read) => read.unwrap(),
                    (Some(_), read) => {
                        let error = read.unwrap_err();
                        assert!(format!("{error:?}").contains("checksum"), "{error:?}");
                    }
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn no_change_of_a_file_makes_reading_panic(at in 0usize..300, bytes in prop::collection::vec(any::<u8>(), 0..8), cut in 0usize..400) {
        let (_folder, path) = folder();
        write(&path, &numbered::<f64>(2, 3, 3)).unwrap();
        let mut content = fs::read(&path).unwrap();
        for (place, byte) in content.iter_mut().skip(at).zip(&bytes) {
            *place = *byte;
        }
        content.truncate(cut.max(1));
        fs::write(&path, &content).unwrap();
        let _ = read_any(&path);
        let _ = Reader::<f64>::new(std::io::Cursor::new(content), "a stream").and_then(Reader::read_to_end);
    }
}
