//! Numbers as bytes, in bulk.
//!
//! A piece is read or written at a time, small enough to stay in cache: the conversion then costs next to nothing beside
//! the copy out of the file, whatever the byte order, and takes no unsafe code.

use std::io::{self, Read, Write};

use batchla_core::{Real, Scalar, ScalarKind};

/// Bytes converted at a time; a multiple of every element's size.
const PIECE: usize = if cfg!(miri) { 1 << 9 } else { 1 << 17 };

/// Appends `count` elements from `input` to `elements`; tells how many there were before the input's end.
///
/// Memory grows with what was read, not with what was asked for, unless the caller reserves it.
pub(crate) fn read<T: Scalar>(
    input: &mut impl Read,
    big_endian: bool,
    count: usize,
    elements: &mut Vec<T>,
) -> io::Result<usize> {
    let size = T::KIND.bytes();
    let mut piece = vec![0; PIECE.min(count.saturating_mul(size))];
    let mut done = 0;
    while done < count {
        let wanted = piece.len().min((count - done).saturating_mul(size));
        let got = fill(input, &mut piece[..wanted])?;
        if elements.capacity() - elements.len() < got / size {
            // At most doubled, and never beyond what was asked for.
            elements.try_reserve_exact(elements.len().max(got / size).min(count - done))?;
        }
        decode(&piece[..got], big_endian, elements);
        done += got / size;
        if got < wanted {
            break;
        }
    }
    Ok(done)
}

/// Writes all of `elements`, little-endian.
pub(crate) fn write<T: Scalar>(output: &mut impl Write, elements: &[T]) -> io::Result<()> {
    let size = T::KIND.bytes();
    let mut piece = vec![0; PIECE.min(size_of_val(elements))];
    for part in elements.chunks(PIECE / size) {
        let bytes = &mut piece[..part.len() * size];
        encode(part, bytes);
        output.write_all(bytes)?;
    }
    Ok(())
}

/// As many bytes as there are, up to the buffer's length.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match input.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(got)
}

// By way of f64, because that is what `Scalar` converts from and to; the detour is exact and compiles to nothing.
fn decode<T: Scalar>(bytes: &[u8], big_endian: bool, elements: &mut Vec<T>) {
    let single = |b: &[u8; 4]| f64::from(if big_endian { f32::from_be_bytes(*b) } else { f32::from_le_bytes(*b) });
    let double = |b: &[u8; 8]| if big_endian { f64::from_be_bytes(*b) } else { f64::from_le_bytes(*b) };
    let (singles, doubles) = (bytes.as_chunks().0, bytes.as_chunks().0);
    match T::KIND {
        ScalarKind::F32 => elements.extend(singles.iter().map(|x| T::from_f64(single(x), 0.0))),
        ScalarKind::F64 => elements.extend(doubles.iter().map(|x| T::from_f64(double(x), 0.0))),
        ScalarKind::C32 => {
            elements.extend(singles.as_chunks().0.iter().map(|[re, im]| T::from_f64(single(re), single(im))));
        }
        ScalarKind::C64 => {
            elements.extend(doubles.as_chunks().0.iter().map(|[re, im]| T::from_f64(double(re), double(im))));
        }
    }
}

fn encode<T: Scalar>(elements: &[T], bytes: &mut [u8]) {
    let single = |x: T::Real| (x.to_f64() as f32).to_le_bytes();
    let double = |x: T::Real| x.to_f64().to_le_bytes();
    match T::KIND {
        ScalarKind::F32 => bytes.as_chunks_mut().0.iter_mut().zip(elements).for_each(|(b, x)| *b = single(x.re())),
        ScalarKind::F64 => bytes.as_chunks_mut().0.iter_mut().zip(elements).for_each(|(b, x)| *b = double(x.re())),
        ScalarKind::C32 => {
            let parts = bytes.as_chunks_mut().0.as_chunks_mut().0;
            parts.iter_mut().zip(elements).for_each(|(b, x)| *b = [single(x.re()), single(x.im())]);
        }
        ScalarKind::C64 => {
            let parts = bytes.as_chunks_mut().0.as_chunks_mut().0;
            parts.iter_mut().zip(elements).for_each(|(b, x)| *b = [double(x.re()), double(x.im())]);
        }
    }
}

#[cfg(test)]
mod tests {
    use batchla_core::Complex;

    use super::*;

    fn there_and_back<T: Scalar>() {
        let ends = [f64::MAX, f64::MIN_POSITIVE, 1e-320, -0.0, f64::INFINITY, f64::NAN, f64::from(f32::MAX), 1e-45];
        let numbers: Vec<T> =
            (0..PIECE / T::KIND.bytes() + 3).map(|k| T::from_f64(ends[k % 8], k as f64 / 3.0)).collect();
        let mut bytes = Vec::new();
        write(&mut bytes, &numbers).unwrap();
        assert_eq!(bytes.len(), numbers.len() * T::KIND.bytes());
        let mut back = Vec::<T>::new();
        assert_eq!(read(&mut &bytes[..], false, numbers.len(), &mut back).unwrap(), numbers.len());
        let same = |a: f64, b: f64| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
        for (a, b) in numbers.iter().zip(&back) {
            assert!(same(a.re().to_f64(), b.re().to_f64()) && same(a.im().to_f64(), b.im().to_f64()), "{a} {b}");
        }
    }

    #[test]
    fn numbers_go_there_and_back() {
        there_and_back::<f32>();
        there_and_back::<f64>();
        there_and_back::<Complex<f32>>();
        there_and_back::<Complex<f64>>();
    }

    #[test]
    fn big_endian_numbers_are_turned_part_by_part() {
        let bytes = [1.5f32, -2.0, 0.1, 7.0].map(f32::to_be_bytes).concat();
        let mut numbers = Vec::<Complex<f32>>::new();
        assert_eq!(read(&mut &bytes[..], true, 2, &mut numbers).unwrap(), 2);
        assert_eq!(numbers, [Complex::new(1.5, -2.0), Complex::new(0.1, 7.0)]);
    }

    #[test]
    fn an_early_end_is_told_and_takes_no_memory() {
        let mut numbers = Vec::<f64>::new();
        assert_eq!(read(&mut &[0; 20][..], false, usize::MAX, &mut numbers).unwrap(), 2);
        assert!(numbers.capacity() < 10);
    }
}
