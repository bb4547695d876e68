//! What stands at the front of a file: magic, version, and a dictionary that names type, shape and order.

use std::fmt;
use std::io::Read;

use batchla_core::{BatchLayout, Error, ErrorKind};

use crate::array::ElementKind;
use crate::literal::{Value, dictionary};

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// No array of plain numbers needs more: 64 dimensions of 20 digits.
const LONGEST: u64 = 1 << 16;

/// NumPy's own limit.
const MOST_DIMENSIONS: usize = 64;

/// What a file is opened for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    Numbers,
    Integers,
}

/// The front of any array of plain numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Front {
    pub(crate) kind: ElementKind,
    pub(crate) shape: Vec<usize>,
    pub(crate) fortran_order: bool,
    pub(crate) big_endian: bool,
}

impl Front {
    /// Of an array in C order, little-endian.
    pub(crate) fn new(kind: ElementKind, shape: &[usize]) -> Result<Self, String> {
        if shape.len() > MOST_DIMENSIONS {
            return Err(format!("shape {} has {} dimensions", tuple(shape), shape.len()));
        }
        let front = Self { kind, shape: shape.to_vec(), fortran_order: false, big_endian: false };
        front.check_size()?;
        Ok(front)
    }

    /// Bytes of all elements.
    pub(crate) fn data_bytes(&self) -> u64 {
        (self.shape.iter().product::<usize>() * self.kind.bytes()) as u64
    }

    /// Holds the dimensions against the address space, once, so that their products need no further care.
    fn check_size(&self) -> Result<(), String> {
        let overflow = || format!("shape {} overflows 64 bits", tuple(&self.shape));
        // Empty dimensions do not excuse the others, as in NumPy.
        let sizes = self.shape.iter().map(|&extent| extent.max(1));
        let bytes = sizes.chain([self.kind.bytes()]).try_fold(1usize, usize::checked_mul).ok_or_else(overflow)?;
        isize::try_from(bytes).map_err(|_| overflow())?;
        let (leading, matrix) = self.shape.split_at(self.shape.len().saturating_sub(2));
        let [rows, cols] = [matrix.first().copied().unwrap_or(1), matrix.get(1).copied().unwrap_or(1)];
        BatchLayout::row_major(leading.iter().product(), rows, cols).map(|_| ()).map_err(|_| overflow())
    }

    /// Reads magic, version, length and dictionary; leaves `input` at the first element and gives the bytes read.
    pub(crate) fn read(input: &mut impl Read, name: &str, wanted: Wanted) -> Result<(Self, u64), Error> {
        let fault = |what: &str| Error::new(ErrorKind::Io, "read", format!("{name} {what}"));
        let mut take = |len: u64| {
            let mut bytes = Vec::new();
            let got =
                input.by_ref().take(len).read_to_end(&mut bytes).map_err(|e| fault("cannot be read").caused_by(e))?;
            Ok::<_, Error>((bytes, got as u64 == len))
        };
        let (prelude, whole) = take(8)?;
        if prelude.is_empty() {
            return Err(fault("is empty").advise("was it written to its end?"));
        }
        if prelude.starts_with(b"PK") {
            return Err(
                fault("is not a .npy file, but an archive").advise("name it .npz, and the array in it: a.npz:array")
            );
        }
        if !whole || !prelude.starts_with(MAGIC) {
            return Err(fault("is not a .npy file").advise("save the array with numpy.save"));
        }
        let version = (prelude[6], prelude[7]);
        let width = match version {
            (1, 0) => 2,
            (2 | 3, 0) => 4,
            (major, minor) => {
                return Err(fault(&format!("is of format version {major}.{minor}"))
                    .advise("versions 1.0, 2.0 and 3.0 are known: save the array with numpy.save"));
            }
        };
        let cut = || fault("ends within its header").advise("copy or save it again");
        let (length, whole) = take(width)?;
        if !whole {
            return Err(cut());
        }
        let length = length.iter().rev().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
        if length > LONGEST {
            return Err(fault(&format!("has a header of {length} bytes, which no array of plain numbers needs"))
                .advise("save one array of plain numbers with numpy.save"));
        }
        let (text, whole) = take(length)?;
        if !whole {
            return Err(cut());
        }
        Ok((Self::interpret(&String::from_utf8_lossy(&text), name, wanted)?, 8 + width + length))
    }

    fn interpret(text: &str, name: &str, wanted: Wanted) -> Result<Self, Error> {
        let fault = |kind, what: String| Error::new(kind, "read", format!("{name} {what}"));
        let broken = |why: String| {
            fault(ErrorKind::Io, format!("has a header that cannot be understood: {why}"))
                .advise("save the array again with numpy.save")
        };
        let (mut descr, mut order, mut shape) = (None, None, None);
        for (key, value) in dictionary(text).map_err(broken)? {
            let slot = match key {
                "descr" => &mut descr,
                "fortran_order" => &mut order,
                "shape" => &mut shape,
                _ => return Err(broken(format!("it has a key {key:?}"))),
            };
            if slot.replace(value).is_some() {
                return Err(broken(format!("it has the key {key:?} twice")));
            }
        }
        let missing = |key: &str| broken(format!("it has no {key:?}"));
        let (kind, big_endian) = match descr.ok_or_else(|| missing("descr"))? {
            Value::Text(descr) => element_type(descr).ok_or(descr),
            Value::Other(descr) => Err(descr),
            _ => return Err(broken("its \"descr\" is no type".to_owned())),
        }
        .map_err(|descr| {
            let descr: String = descr.chars().take(80).collect();
            wanted.unfit(&descr, name)
        })?;
        let Value::Truth(fortran_order) = order.ok_or_else(|| missing("fortran_order"))? else {
            return Err(broken("its \"fortran_order\" is neither True nor False".to_owned()));
        };
        let Value::Integers(extents) = shape.ok_or_else(|| missing("shape"))? else {
            return Err(broken("its \"shape\" is no tuple of sizes".to_owned()));
        };
        let shape: Result<Vec<usize>, _> = extents.iter().map(|&extent| usize::try_from(extent)).collect();
        let shape = shape.map_err(|_| broken(format!("shape {extents:?} overflows the address space")))?;
        let front = Self { kind, shape, fortran_order, big_endian };
        front.check_size().map_err(broken)?;
        Ok(front)
    }

    /// The bytes of a header of version 1.0, padded so that the elements start at a multiple of 64.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let descr = self.kind.descr(self.big_endian);
        let fortran = if self.fortran_order { "True" } else { "False" };
        let shape = tuple(&self.shape);
        let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}");
        let total = (10 + text.len() + 1).next_multiple_of(64);
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        // 64 dimensions of 20 digits stay far below 65535 bytes.
        bytes.extend(((total - 10) as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.resize(total - 1, b' ');
        bytes.push(b'\n');
        bytes
    }
}

impl Wanted {
    /// The error of elements of another type.
    pub(crate) fn unfit(self, descr: &str, name: &str) -> Error {
        let (but, advice) = match self {
            Self::Numbers => {
                ("", "convert them to float32, float64, complex64 or complex128 first: a.astype(numpy.float64)")
            }
            Self::Integers => (", not int32 or int64", "convert them first: a.astype(numpy.int32)"),
        };
        Error::new(ErrorKind::Io, "read", format!("{name} holds elements of type {descr:?}{but}")).advise(advice)
    }
}

/// `<f8` and its like: number type, and whether big-endian.
fn element_type(descr: &str) -> Option<(ElementKind, bool)> {
    let native = cfg!(target_endian = "big");
    let (big_endian, kind) = match descr.chars().next()? {
        '<' => (false, &descr[1..]),
        '>' => (true, &descr[1..]),
        '=' | '|' => (native, &descr[1..]),
        _ => (native, descr),
    };
    let known = ElementKind::ALL.into_iter().find(|known| known.letters() == kind)?;
    Some((known, big_endian))
}

/// A shape as Python prints it.
pub(crate) fn tuple(shape: &[usize]) -> String {
    match shape {
        [sole] => format!("({sole},)"),
        _ => format!("({})", shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

impl fmt::Display for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = if self.fortran_order { "Fortran" } else { "C" };
        write!(f, "{}, shape {}, {order} order", self.kind.name(), tuple(&self.shape))?;
        if self.big_endian { f.write_str(", big-endian") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use batchla_core::ScalarKind;
    use proptest::prelude::*;

    use super::*;
    use crate::header::Header;

    fn read(bytes: &[u8]) -> Result<(Front, u64), Error> {
        let (front, length) = Front::read(&mut &bytes[..], "a.npy", Wanted::Numbers)?;
        Header::of(&front, "a.npy")?.check_matrices("a.npy")?;
        Ok((front, length))
    }

    fn front(scalar: ScalarKind, shape: &[usize]) -> Front {
        Front::new(ElementKind::Scalar(scalar), shape).unwrap()
    }

    /// A header around `dictionary`, of `version` 1, 2 or 3.
    fn around(version: u8, dictionary: &str) -> Vec<u8> {
        let length = (dictionary.len() as u32).to_le_bytes();
        [MAGIC, &[version, 0][..], &length[..if version == 1 { 2 } else { 4 }], dictionary.as_bytes()].concat()
    }

    fn complaint(dictionary: &str) -> String {
        read(&around(1, dictionary)).unwrap_err().to_string()
    }

    #[test]
    fn headers_go_there_and_back_in_a_multiple_of_64_bytes() {
        for scalar in ScalarKind::ALL {
            for shape in [&[0, 0][..], &[3, 4], &[46, 21, 21], &[usize::MAX >> 5, 1, 1], &[1; 64]] {
                let front = front(scalar, shape);
                for (fortran_order, big_endian) in [(false, false), (true, false), (false, true)] {
                    let front = Front { fortran_order, big_endian, ..front.clone() };
                    let bytes = front.to_bytes();
                    assert_eq!(bytes.len() % 64, 0);
                    assert_eq!(read(&bytes).unwrap(), (front, bytes.len() as u64));
                }
            }
        }
    }

    #[test]
    fn every_version_and_spelling_of_the_types_is_read() {
        for version in [1, 2, 3] {
            for (descr, scalar) in [("<f4", "f32"), ("=f8", "f64"), ("c8", "c32"), ("|c16", "c64"), (">f8", "f64")] {
                let text = format!("{{'descr': '{descr}', 'fortran_order': True, 'shape': (2, 3), }}\n");
                let (front, _) = read(&around(version, &text)).unwrap();
                let header = Header::of(&front, "a.npy").unwrap();
                assert_eq!((header.scalar.name(), header.shape, header.fortran_order), (scalar, vec![2, 3], true));
                assert_eq!(header.big_endian, descr.starts_with('>'));
            }
        }
    }

    #[test]
    fn other_types_are_named_and_refused() {
        for descr in
            ["'|O'", "'<U3'", "'<i8'", "'|b1'", "'<f2'", "'<f16'", "'<M8[ns]'", "[('a', '<f8'), ('b', '<i4')]", "''"]
        {
            let text = complaint(&format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (2, 3), }}"));
            assert!(text.contains("holds elements of type") && text.contains(descr.trim_matches('\'')), "{text}");
        }
    }

    #[test]
    fn arrays_that_hold_no_matrices_are_refused_with_advice() {
        for shape in ["()", "(7,)"] {
            let text = complaint(&format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"));
            assert!(text.contains(shape) && text.contains("reshape"), "{text}");
        }
    }

    #[test]
    fn sizes_beyond_the_address_space_are_refused() {
        for shape in [
            "(9223372036854775807, 9223372036854775807)",
            "(4294967296, 4294967296, 0)",
            "(0, 4294967296, 4294967296)",
            "(1152921504606846976, 1, 1)",
            "(18446744073709551616, 1, 1)",
            "(-1, 2, 2)",
        ] {
            let text = complaint(&format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"));
            assert!(text.contains("cannot be understood"), "{text}");
        }
        assert!(Header::new(ScalarKind::C64, &[1 << 30, 1 << 30, 2]).is_err());
        assert!(Header::new(ScalarKind::C64, &[1; 65]).is_err() && Header::new(ScalarKind::F32, &[1]).is_err());
    }

    #[test]
    fn keys_that_are_missing_doubled_or_unknown_are_named() {
        for (dictionary, named) in [
            ("{'descr': '<f8', 'shape': (1, 1)}", "fortran_order"),
            ("{'descr': '<f8', 'descr': '<f8'}", "descr"),
            ("{'colour': 1}", "colour"),
            ("{'descr': '<f8', 'fortran_order': 0, 'shape': (1, 1)}", "neither True nor False"),
            ("{'descr': True, 'fortran_order': True, 'shape': (1, 1)}", "descr"),
        ] {
            let text = complaint(dictionary);
            assert!(text.contains(named), "{text}");
        }
    }

    #[test]
    fn a_front_that_is_no_header_is_refused() {
        for (bytes, named) in [
            (&b""[..], "is empty"),
            (b"PK\x03\x04 an archive", "not a .npy file"),
            (b"\x93NUM", "not a .npy file"),
            (b"\x93NUMPY\x01\x00", "within its header"),
            (b"\x93NUMPY\x01\x00\x10\x00{}", "within its header"),
            (b"\x93NUMPY\x04\x00\x10\x00{}", "version 4.0"),
            (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}", "4294967295 bytes"),
        ] {
            let error = read(bytes).unwrap_err();
            assert!(error.to_string().contains(named) && error.kind() == ErrorKind::Io, "{error}");
            assert!(error.to_string().contains("a.npy") && !error.advice().is_empty(), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), version in 0u8..5) {
            let _ = read(&bytes);
            let _ = read(&[MAGIC, &[version, 0][..], &bytes].concat());
        }

        #[test]
        fn no_change_of_a_header_makes_it_panic(at in 0usize..128, byte: u8, cut in 0usize..129) {
            let mut bytes = front(ScalarKind::F64, &[46, 21, 21]).to_bytes();
            bytes[at] = byte;
            let _ = read(&bytes[..cut.min(bytes.len())]);
            let _ = read(&bytes);
        }
    }
}
