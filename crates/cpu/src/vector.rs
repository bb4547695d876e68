//! Kernels of plain loops, compiled for the widest vectors that the processor has.
//!
//! A kernel works on columns in chunks of [`LANES`] elements. The compiler neither reorders nor fuses floating-point operations:
//! bits depend on nothing but whether the processor has fused multiply-add, which [`fused`] tells.

use batchla_core::Scalar;
use num_traits::Float;

/// Elements of a chunk. Columns in scratch memory are padded to whole chunks.
pub(crate) const LANES: usize = 8;

/// `LANES` neighbours in a column.
pub(crate) type Chunk<T> = [T; LANES];

/// A loop worth compiling for several instruction sets. `run` and all that it calls are `#[inline(always)]`, or they are
/// compiled for the smallest one.
pub(crate) trait Kernel {
    /// What it computes beside what it writes.
    type Output;

    /// Does the work, with fused multiply-add where `FMA` says so.
    fn run<const FMA: bool>(self) -> Self::Output;
}

/// Runs a kernel on the widest vectors at hand.
pub(crate) fn widest<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    {
        if fused() && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
            // SAFETY: the processor has what the function was compiled for.
            return unsafe { avx512(kernel) };
        }
        if fused() {
            // SAFETY: as above.
            return unsafe { avx2(kernel) };
        }
    }
    if fused() { kernel.run::<true>() } else { kernel.run::<false>() }
}

/// Whether kernels use fused multiply-add here: part of the name of their arithmetic.
pub(crate) fn fused() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        // Part of the base of this architecture, and an emulation on the others.
        cfg!(target_arch = "aarch64")
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx2,fma")]
fn avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<true>()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<true>()
}

/// The instruction set that faer's products run on here; part of the name of their arithmetic.
pub(crate) fn instruction_set() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            return "avx512";
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return "avx2";
        }
    }
    std::env::consts::ARCH
}

/// The whole chunks of a column.
#[inline(always)]
pub(crate) fn chunks<T>(column: &[T]) -> &[Chunk<T>] {
    column.as_chunks().0
}

/// The whole chunks of a column, to write.
#[inline(always)]
pub(crate) fn chunks_mut<T>(column: &mut [T]) -> &mut [Chunk<T>] {
    column.as_chunks_mut().0
}

/// `a - b s`, lane by lane. Chunks go in and come out by value: the compiler then knows that they do not overlap.
#[inline(always)]
pub(crate) fn minus_product<const FMA: bool, T: Scalar>(a: Chunk<T>, b: Chunk<T>, s: T) -> Chunk<T> {
    let mut difference = a;
    for i in 0..LANES {
        difference[i] = if FMA && T::IS_COMPLEX {
            let (re, im, minus_re, minus_im) = (s.re(), s.im(), -s.re(), -s.im());
            let (a, b) = (a[i], b[i]);
            T::from_parts(
                b.im().mul_add(im, b.re().mul_add(minus_re, a.re())),
                b.re().mul_add(minus_im, b.im().mul_add(-re, a.im())),
            )
        } else if FMA {
            T::from_real(b[i].re().mul_add(-s.re(), a[i].re()))
        } else if T::IS_COMPLEX {
            // Both parts by the same operations, which makes whole vectors of them.
            let (re, im, minus_im) = (s.re(), s.im(), -s.im());
            let (a, b) = (a[i], b[i]);
            T::from_parts(a.re() - b.re() * re - b.im() * minus_im, a.im() - b.im() * re - b.re() * im)
        } else {
            a[i] - b[i] * s
        };
    }
    difference
}

/// Whether all elements of whole chunks are finite.
pub(crate) fn all_finite<T: Scalar>(column: &[T]) -> bool {
    struct Finite<'a, T>(&'a [T]);
    impl<T: Scalar> Kernel for Finite<'_, T> {
        type Output = bool;

        #[inline(always)]
        fn run<const FMA: bool>(self) -> bool {
            let zero: T::Real = num_traits::zero();
            // An element that is not finite, times zero, is NaN and stays so in the sum.
            let mut sums = [zero; LANES];
            for chunk in chunks(self.0) {
                for (sum, x) in sums.iter_mut().zip(chunk) {
                    *sum += x.re() * zero;
                    if T::IS_COMPLEX {
                        *sum += x.im() * zero;
                    }
                }
            }
            sums.into_iter().all(|sum| sum == zero)
        }
    }
    widest(Finite(column))
}

/// `y -= Σ columns[k] weights[k]`, in order of `k`, for all whole chunks of `y`.
#[inline(always)]
pub(crate) fn subtract_columns<const FMA: bool, T: Scalar>(y: &mut [T], columns: &[T], ld: usize, weights: &[T]) {
    let y = chunks_mut(y);
    let mut done = 0;
    // More chunks of complex numbers than two do not fit the registers.
    while !T::IS_COMPLEX && y.len() - done >= 4 {
        subtract_blocks::<FMA, T, 4>(&mut y[done..], done, columns, ld, weights);
        done += 4;
    }
    while y.len() - done >= 2 {
        subtract_blocks::<FMA, T, 2>(&mut y[done..], done, columns, ld, weights);
        done += 2;
    }
    if y.len() > done {
        subtract_blocks::<FMA, T, 1>(&mut y[done..], done, columns, ld, weights);
    }
}

/// The first `B` chunks of `y`, which are kept in registers; `first` is their place in the columns.
#[inline(always)]
fn subtract_blocks<const FMA: bool, T: Scalar, const B: usize>(
    y: &mut [Chunk<T>],
    first: usize,
    columns: &[T],
    ld: usize,
    weights: &[T],
) {
    let Some(y) = y.first_chunk_mut::<B>() else { return };
    let mut sum = *y;
    for (column, &weight) in columns.chunks(ld).zip(weights) {
        let Some(column) = chunks(column)[first..].first_chunk::<B>() else { return };
        for (sum, chunk) in sum.iter_mut().zip(column) {
            *sum = minus_product::<FMA, T>(*sum, *chunk, weight);
        }
    }
    *y = sum;
}
