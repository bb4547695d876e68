//! LAPACK's `getrf` and `getri` of a shared library that the user names: OpenBLAS, MKL or another; and of batches, where it has these.

use std::error::Error;
use std::path::Path;

use batchla::{Complex, Scalar};
use libloading::{Library, Symbol};
use rayon::prelude::*;

use crate::contest::Peer;
use crate::plain::chunk;

type Getrf<T> = unsafe extern "C" fn(*const i32, *const i32, *mut T, *const i32, *mut u32, *mut i32);
type Getri<T> = unsafe extern "C" fn(*const i32, *mut T, *const i32, *const u32, *mut T, *const i32, *mut i32);
/// Of matrices and pivots, how far apart they are; and how many there are.
type GetrfBatch<T> = unsafe extern "C" fn(
    *const i32,
    *const i32,
    *mut T,
    *const i32,
    *const i32,
    *mut u32,
    *const i32,
    *const i32,
    *mut i32,
);
type GetriBatch<T> = unsafe extern "C" fn(
    *const i32,
    *const T,
    *const i32,
    *const i32,
    *const u32,
    *const i32,
    *mut T,
    *const i32,
    *const i32,
    *const i32,
    *mut i32,
);

/// A library with 32-bit integers, whose routines are used by many threads at a time, one matrix each.
pub(crate) struct Lapack {
    library: Library,
    name: String,
}

impl Lapack {
    /// Loads a library. Its own threads are kept out of it by the environment: `OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1`.
    pub(crate) fn load(path: &Path) -> Result<Self, Box<dyn Error>> {
        for variable in ["OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"] {
            if std::env::var(variable).as_deref() != Ok("1") {
                return Err(format!("set {variable}=1: the library must leave the threads to the batch").into());
            }
        }
        // SAFETY: the user names a library of linear algebra, whose initialisers have no other effect.
        let library = unsafe { Library::new(path) }?;
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Self { library, name: file.split('.').next().unwrap_or_default().to_owned() })
    }

    /// A routine without its letter, as `getrf`, under one of the names that it goes by.
    fn routine<T: Scalar, F>(&self, routine: &str) -> Result<Symbol<'_, F>, Box<dyn Error>> {
        let letter = match T::KIND {
            batchla::ScalarKind::F32 => 's',
            batchla::ScalarKind::F64 => 'd',
            batchla::ScalarKind::C32 => 'c',
            batchla::ScalarKind::C64 => 'z',
        };
        let names = [format!("{letter}{routine}_"), format!("scipy_{letter}{routine}_")];
        // SAFETY: these names have belonged to these signatures since LAPACK 1.0; complex numbers are pairs.
        let found = names.iter().find_map(|name| unsafe { self.library.get::<F>(name.as_bytes()) }.ok());
        found.ok_or_else(|| format!("{} has no {}", self.name, names[0]).into())
    }

    /// The library as a side for matrices of `T`.
    pub(crate) fn side<T: LapackScalar>(&self) -> Result<LapackSide<'_, T>, Box<dyn Error>> {
        Ok(LapackSide {
            name: &self.name,
            getrf: self.routine::<T, Getrf<T>>("getrf")?,
            getri: self.routine::<T, Getri<T>>("getri")?,
        })
    }

    /// The same by its routines for batches, if it has any.
    pub(crate) fn batch_side<T: LapackScalar>(&self) -> Option<LapackBatch<'_, T>> {
        Some(LapackBatch {
            name: format!("{} batch", self.name),
            getrf: self.routine::<T, GetrfBatch<T>>("getrf_batch_strided").ok()?,
            getri: self.routine::<T, GetriBatch<T>>("getri_oop_batch_strided").ok()?,
        })
    }
}

/// A number type that LAPACK has.
pub(crate) trait LapackScalar: Scalar {}
impl LapackScalar for f32 {}
impl LapackScalar for f64 {}
impl LapackScalar for Complex<f32> {}
impl LapackScalar for Complex<f64> {}

/// Its routines for one number type.
pub(crate) struct LapackSide<'a, T> {
    name: &'a str,
    getrf: Symbol<'a, Getrf<T>>,
    getri: Symbol<'a, Getri<T>>,
}

impl<T: LapackScalar> LapackSide<'_, T> {
    fn getrf(&self, matrix: &mut [T], pivots: &mut [u32]) {
        let (n, mut info) = (pivots.len() as i32, 0);
        assert!(matrix.len() == pivots.len() * pivots.len());
        // SAFETY: the matrix has n columns of n, and there are n pivots, which are positive integers of 32 bits.
        unsafe { (self.getrf)(&n, &n, matrix.as_mut_ptr(), &n, pivots.as_mut_ptr(), &mut info) }
        debug_assert!(info >= 0);
    }
}

impl<T: LapackScalar> Peer<T> for LapackSide<'_, T> {
    fn name(&self) -> &str {
        self.name
    }

    fn factorize(&self, matrices: &mut [T], pivots: &mut [u32], order: usize) {
        let chunk = chunk(pivots.len() / order);
        let chunks = matrices.par_chunks_mut(chunk * order * order).zip(pivots.par_chunks_mut(chunk * order));
        chunks.for_each(|(matrices, pivots)| {
            for (matrix, pivots) in matrices.chunks_mut(order * order).zip(pivots.chunks_mut(order)) {
                self.getrf(matrix, pivots);
            }
        });
    }

    fn invert(&self, matrices: &mut [T], order: usize) {
        let area = order * order;
        matrices.par_chunks_mut(chunk(matrices.len() / area) * area).for_each(|matrices| {
            let (n, mut info) = (order as i32, 0);
            let mut pivots = vec![0; order];
            let mut work = vec![num_traits::zero::<T>(); 64 * order];
            let length = work.len() as i32;
            for matrix in matrices.chunks_exact_mut(area) {
                self.getrf(matrix, &mut pivots);
                // SAFETY: as for `getrf`; the workspace is as long as is said.
                unsafe {
                    (self.getri)(&n, matrix.as_mut_ptr(), &n, pivots.as_ptr(), work.as_mut_ptr(), &length, &mut info);
                }
                debug_assert!(info >= 0);
            }
        });
    }

    fn exchanges(&self, pivots: &[u32]) -> Vec<u32> {
        from_zero(pivots)
    }
}

/// Its routines for batches of one number type.
pub(crate) struct LapackBatch<'a, T> {
    name: String,
    getrf: Symbol<'a, GetrfBatch<T>>,
    getri: Symbol<'a, GetriBatch<T>>,
}

impl<T: LapackScalar> LapackBatch<'_, T> {
    /// Factors dense matrices, one after another; gives how many there are.
    fn getrf(&self, matrices: &mut [T], pivots: &mut [u32], order: usize) -> i32 {
        let (n, area, batch) = (order as i32, (order * order) as i32, (pivots.len() / order) as i32);
        assert!(matrices.len() == pivots.len() * order);
        let mut info = vec![0; batch as usize];
        // SAFETY: there are so many matrices of n columns of n, as many times n pivots, and an answer for each.
        unsafe {
            (self.getrf)(&n, &n, matrices.as_mut_ptr(), &n, &area, pivots.as_mut_ptr(), &n, &batch, info.as_mut_ptr());
        }
        debug_assert!(info.iter().all(|&info| info >= 0));
        batch
    }
}

impl<T: LapackScalar> Peer<T> for LapackBatch<'_, T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn factorize(&self, matrices: &mut [T], pivots: &mut [u32], order: usize) {
        let chunk = chunk(pivots.len() / order);
        let chunks = matrices.par_chunks_mut(chunk * order * order).zip(pivots.par_chunks_mut(chunk * order));
        chunks.for_each(|(matrices, pivots)| {
            self.getrf(matrices, pivots, order);
        });
    }

    /// It inverts from one place to another, so each chunk is factored in a copy.
    fn invert(&self, matrices: &mut [T], order: usize) {
        let area = order * order;
        matrices.par_chunks_mut(chunk(matrices.len() / area) * area).for_each(|matrices| {
            let mut lu = matrices.to_vec();
            let mut pivots = vec![0; matrices.len() / order];
            let batch = self.getrf(&mut lu, &mut pivots, order);
            let (n, apart, mut info) = (order as i32, area as i32, vec![0; batch as usize]);
            let (lu, p, to) = (lu.as_ptr(), pivots.as_ptr(), matrices.as_mut_ptr());
            // SAFETY: as for `getrf`; there are as many inverses.
            unsafe { (self.getri)(&n, lu, &n, &apart, p, &n, to, &n, &apart, &batch, info.as_mut_ptr()) }
            debug_assert!(info.iter().all(|&info| info >= 0));
        });
    }

    fn exchanges(&self, pivots: &[u32]) -> Vec<u32> {
        from_zero(pivots)
    }
}

/// Exchanges as LAPACK counts them, from 1.
fn from_zero(pivots: &[u32]) -> Vec<u32> {
    pivots.iter().map(|p| p.wrapping_sub(1)).collect()
}
