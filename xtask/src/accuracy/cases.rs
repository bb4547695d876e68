//! Which matrices are compared.

use std::error::Error;
use std::path::{Path, PathBuf};

use batchla::{Batch, BatchLayout, Complex, Scalar, ScalarKind, npy};
use batchla_testkit::Generator;

/// Real batches: where they come from, and the number types in which they are compared.
const REAL: [(&str, [ScalarKind; 2]); 2] = [
    ("ldg_blocks_46x21x21_f64", [ScalarKind::F64, ScalarKind::F32]),
    ("helmholtz_patches_60x36x36_c128", [ScalarKind::C64, ScalarKind::C32]),
];

/// Made batches: kind, orders, matrices.
const MADE: [(Generator, &[usize], usize); 10] = [
    (Generator::Hilbert, &[12], 1),
    (Generator::Kahan, &[64], 1),
    (Generator::Vandermonde, &[12, 32], 4),
    (Generator::GradedRows(0.4), &[33, 100], 4),
    (Generator::GradedColumns(0.4), &[33, 100], 4),
    (Generator::Condition(1e12), &[16, 33, 64, 100], 4),
    (Generator::Frank, &[24], 1),
    (Generator::Wilkinson, &[40], 1),
    (Generator::Uniform, &[8, 32], 16),
    (Generator::Normal, &[5, 16, 64, 128, 190, 256], 4),
];

/// Where a case's matrices come from.
enum Origin {
    File(PathBuf),
    Generator { generator: Generator, order: usize, batch: usize },
}

/// One batch in one number type.
pub(crate) struct Case {
    /// What the matrices are.
    pub(crate) name: String,
    /// Their number type.
    pub(crate) scalar: ScalarKind,
    origin: Origin,
    stem: String,
}

impl Case {
    /// All of them; `root` holds the examples' data.
    pub(crate) fn all(root: &Path) -> Result<Vec<Self>, Box<dyn Error>> {
        let mut cases = Vec::new();
        for (file, scalars) in REAL {
            let name = file.split_once("_").map_or(file, |(name, _)| name);
            for scalar in scalars {
                let origin = Origin::File(root.join("examples/data").join(file).with_extension("npy"));
                cases.push(Self { name: name.to_owned(), scalar, origin, stem: format!("{name}-{scalar}") });
            }
        }
        for (generator, orders, batch) in MADE {
            for &order in orders {
                for scalar in ScalarKind::ALL {
                    let stem = format!("{}-{order}-{scalar}", generator.name());
                    let origin = Origin::Generator { generator, order, batch };
                    cases.push(Self { name: generator.to_string(), scalar, origin, stem });
                }
            }
        }
        Ok(cases)
    }

    /// The file's name without its extension.
    pub(crate) fn stem(&self) -> &str {
        &self.stem
    }

    /// The file of its matrices.
    pub(crate) fn file(&self, folder: &Path) -> PathBuf {
        folder.join(&self.stem).with_extension("npy")
    }

    /// Writes that file.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Box<dyn Error>> {
        match self.scalar {
            ScalarKind::F32 => npy::write(self.file(folder), &self.matrices::<f32>()?)?,
            ScalarKind::F64 => npy::write(self.file(folder), &self.matrices::<f64>()?)?,
            ScalarKind::C32 => npy::write(self.file(folder), &self.matrices::<Complex<f32>>()?)?,
            ScalarKind::C64 => npy::write(self.file(folder), &self.matrices::<Complex<f64>>()?)?,
        }
        Ok(())
    }

    fn matrices<T: Scalar>(&self) -> Result<Batch<T>, batchla::Error> {
        match &self.origin {
            Origin::File(path) => match npy::read_any(path)? {
                npy::AnyBatch::F32(batch) => rounded(&batch),
                npy::AnyBatch::F64(batch) => rounded(&batch),
                npy::AnyBatch::C32(batch) => rounded(&batch),
                npy::AnyBatch::C64(batch) => rounded(&batch),
            },
            &Origin::Generator { generator, order, batch } => {
                generator.batch(BatchLayout::column_major(batch, order, order)?, 1)
            }
        }
    }
}

/// The same matrices in another number type.
fn rounded<S: Scalar, T: Scalar>(from: &Batch<S>) -> Result<Batch<T>, batchla::Error> {
    use batchla::Real;
    let numbers = from.as_slice().iter().map(|x| T::from_f64(x.re().to_f64(), x.im().to_f64()));
    Batch::from_vec(numbers.collect(), *from.layout())
}
