//! The vectors of AVX-512 and AVX2.
//!
//! SAFETY, of the whole file: vectors are made and used only below [`run`], in functions compiled for an instruction set that was looked for;
//! loads and stores stay within the slices that they are given.

use std::arch::x86_64::*;

use self::look_up::{look_up_f32x8, look_up_f32x16, look_up_f64x4, look_up_f64x8};
use self::transpose::{transpose_f32x8, transpose_f32x16, transpose_f64x4, transpose_f64x8};
use super::{InstructionSet, Lanes, Simd, SimdReal, TABLE, Vector, Work};

mod look_up;
mod transpose;

/// Does work on an instruction set that this machine has; on plain code where it has not.
pub(super) fn run<T: Simd, W: Work<T>>(set: InstructionSet, work: W) -> W::Output {
    match set {
        // SAFETY: the processor has what the function is compiled for.
        InstructionSet::Avx512 if set.is_available() => unsafe {
            work.run_with_avx512::<T::Lanes<<T::Real as SimdReal>::Avx512>>()
        },
        // SAFETY: as above.
        InstructionSet::Avx2 if set.is_available() => unsafe {
            work.run_with_avx2::<T::Lanes<<T::Real as SimdReal>::Avx2>>()
        },
        _ => super::portable(work),
    }
}

/// One vector type: the trait's methods by the names of the intrinsics behind them, or by what is made of these. No closures: the compiler may make functions of them, which are then compiled for no instruction set.
macro_rules! vector {
    (
        $name:ident, $real:ty, $lanes:literal, $inner:ty, $mask:ty, $outline:ident,
        $splat:ident, $load:ident, $store:ident, $stream:ident, $add:ident, $mul:ident, $div:ident, $fma:ident, $fnma:ident,
        from_lanes: |$of:ident| $from_lanes:expr, max: $max:ident, spread: |$spread_of:ident, $lane:ident| $spread:expr,
        abs: |$abs_of:ident| $abs:expr, above: |$above_a:ident, $above_b:ident| $above:expr, equals: |$equals_a:ident, $equals_b:ident| $equals:expr,
        select: |$select_mask:ident, $yes:ident, $no:ident| $select:expr, bits: |$bits_of:ident| $bits:expr, of_bits: |$mask_of:ident| $of_bits:expr,
        largest: $largest:ident, counts: $counts:ident $store_counts:ident,
        load_part: |$load_from:ident| $load_part:expr, store_part: |$store_to:ident, $store_of:ident| $store_part:expr,
        zip: |$zip_a:ident, $zip_b:ident| $zip:expr, unzip: |$unzip_a:ident, $unzip_b:ident| $unzip:expr,
        transpose: $transpose:ident, looks_up: $looks_up:literal $look_up:ident
    ) => {
        /// A vector of the processor.
        #[derive(Clone, Copy, Debug)]
        #[repr(transparent)]
        pub struct $name($inner);

        impl Vector for $name {
            type Real = $real;
            type Mask = $mask;
            type Block = [Self; $lanes];
            const LANES: usize = $lanes;
            const LOOKS_UP: bool = $looks_up;

            #[inline(always)]
            fn splat(x: $real) -> Self {
                // SAFETY: see the head of the file.
                unsafe { Self($splat(x)) }
            }
            #[inline(always)]
            fn from_lanes($of: impl Fn(usize) -> $real) -> Self {
                // SAFETY: see the head of the file.
                unsafe { Self($from_lanes) }
            }
            #[inline(always)]
            fn load(from: &[$real]) -> Self {
                // SAFETY: see the head of the file; the slice is long enough, or indexing panics.
                unsafe { Self($load(from[..$lanes].as_ptr())) }
            }
            #[inline(always)]
            fn load_part($load_from: &[$real]) -> Self {
                // SAFETY: see the head of the file; no more is read than the slice holds.
                unsafe { Self($load_part) }
            }
            #[inline(always)]
            fn look_up(table: &[Self; TABLE], vectors: usize, places: &[u8]) -> Self {
                // SAFETY: see the head of the file.
                unsafe { $look_up(table, vectors, &places[..$lanes]) }
            }
            #[inline(always)]
            fn store(self, to: &mut [$real]) {
                // SAFETY: see the head of the file; the slice is long enough, or indexing panics.
                unsafe { $store(to[..$lanes].as_mut_ptr(), self.0) }
            }
            #[inline(always)]
            fn store_part(self, $store_to: &mut [$real]) {
                let $store_of = self.0;
                // SAFETY: see the head of the file; no more is written than the slice holds.
                unsafe { $store_part }
            }
            #[inline(always)]
            fn prefetch(place: *const $real) {
                // SAFETY: see the head of the file. No address is wrong: nothing is read.
                unsafe { _mm_prefetch::<_MM_HINT_T1>(place.cast()) }
            }
            #[inline(always)]
            fn stream(self, to: &mut Self) {
                // SAFETY: see the head of the file; a vector is aligned.
                unsafe { $stream(std::ptr::from_mut(to).cast(), self.0) }
            }
            #[inline(always)]
            fn fence() {
                // SAFETY: every processor of this architecture has it.
                unsafe { _mm_sfence() }
            }
            #[inline(always)]
            fn add(self, other: Self) -> Self {
                // SAFETY: see the head of the file.
                unsafe { Self($add(self.0, other.0)) }
            }
            #[inline(always)]
            fn mul(self, other: Self) -> Self {
                // SAFETY: see the head of the file.
                unsafe { Self($mul(self.0, other.0)) }
            }
            #[inline(always)]
            fn div(self, other: Self) -> Self {
                // SAFETY: see the head of the file.
                unsafe { Self($div(self.0, other.0)) }
            }
            #[inline(always)]
            fn mul_add(self, factor: Self, term: Self) -> Self {
                // SAFETY: see the head of the file.
                unsafe { Self($fma(self.0, factor.0, term.0)) }
            }
            #[inline(always)]
            fn minus_product(self, factor: Self, term: Self) -> Self {
                // SAFETY: see the head of the file.
                unsafe { Self($fnma(self.0, factor.0, term.0)) }
            }
            #[inline(always)]
            fn abs(self) -> Self {
                let $abs_of = self.0;
                // SAFETY: see the head of the file.
                unsafe { Self($abs) }
            }
            #[inline(always)]
            fn larger(self, other: Self) -> Self {
                // SAFETY: see the head of the file. The instruction gives the second operand where one is NaN.
                unsafe { Self($max(self.0, other.0)) }
            }
            #[inline(always)]
            fn above(self, other: Self) -> $mask {
                let ($above_a, $above_b) = (self.0, other.0);
                // SAFETY: see the head of the file.
                unsafe { $above }
            }
            #[inline(always)]
            fn equals(self, other: Self) -> $mask {
                let ($equals_a, $equals_b) = (self.0, other.0);
                // SAFETY: see the head of the file.
                unsafe { $equals }
            }
            #[inline(always)]
            fn select($select_mask: $mask, yes: Self, no: Self) -> Self {
                let ($yes, $no) = (yes.0, no.0);
                // SAFETY: see the head of the file.
                unsafe { Self($select) }
            }
            #[inline(always)]
            fn store_counts(self, to: &mut [u32]) {
                // SAFETY: see the head of the file; the slice is long enough, or indexing panics.
                unsafe { $store_counts(to[..$lanes].as_mut_ptr().cast(), $counts(self.0)) }
            }
            #[inline(always)]
            fn counting() -> Self {
                const NUMBERS: [$real; $lanes] = {
                    let mut numbers = [0.0; $lanes];
                    let mut i = 0;
                    while i < $lanes {
                        numbers[i] = i as $real;
                        i += 1;
                    }
                    numbers
                };
                Self::load(&NUMBERS)
            }
            #[inline(always)]
            fn largest(self) -> Self {
                // SAFETY: see the head of the file.
                unsafe { Self($largest(self.0)) }
            }
            #[inline(always)]
            fn spread(self, $lane: usize) -> Self {
                let $spread_of = self.0;
                // SAFETY: see the head of the file.
                unsafe { Self($spread) }
            }
            #[inline(always)]
            fn mask($mask_of: u32) -> $mask {
                // SAFETY: see the head of the file.
                unsafe { $of_bits }
            }
            #[inline(always)]
            fn bits($bits_of: $mask) -> u32 {
                // SAFETY: see the head of the file.
                unsafe { $bits }
            }
            #[inline(always)]
            fn zip(self, other: Self) -> (Self, Self) {
                let ($zip_a, $zip_b) = (self.0, other.0);
                // SAFETY: see the head of the file.
                let (first, second) = unsafe { $zip };
                (Self(first), Self(second))
            }
            #[inline(always)]
            fn unzip(self, other: Self) -> (Self, Self) {
                let ($unzip_a, $unzip_b) = (self.0, other.0);
                // SAFETY: see the head of the file.
                let (even, odd) = unsafe { $unzip };
                (Self(even), Self(odd))
            }
            #[inline(always)]
            fn block(x: Self) -> [Self; $lanes] {
                [x; $lanes]
            }
            #[inline(always)]
            fn transpose(mut block: [Self; $lanes]) -> [Self; $lanes] {
                // SAFETY: see the head of the file.
                unsafe { $transpose(&mut block) };
                block
            }
            #[inline(always)]
            fn outline<L: Lanes<Vector = Self>, W: Work<L::Number>>(work: W) -> W::Output {
                // SAFETY: see the head of the file.
                unsafe { work.$outline::<L>() }
            }
            #[inline(always)]
            fn from_reals(reals: &[$real]) -> &[Self] {
                // SAFETY: a vector is valid for whatever numbers there are, and of their layout.
                unsafe { reals.align_to().1 }
            }
            #[inline(always)]
            fn from_reals_mut(reals: &mut [$real]) -> &mut [Self] {
                // SAFETY: a vector is valid for whatever numbers there are, and of their layout.
                unsafe { reals.align_to_mut().1 }
            }
            #[inline(always)]
            fn as_reals(vectors: &[Self]) -> &[$real] {
                // SAFETY: numbers, one after another, without gaps.
                unsafe { std::slice::from_raw_parts(vectors.as_ptr().cast(), vectors.len() * $lanes) }
            }
            #[inline(always)]
            fn as_reals_mut(vectors: &mut [Self]) -> &mut [$real] {
                // SAFETY: as above; whatever is written is a number.
                unsafe { std::slice::from_raw_parts_mut(vectors.as_mut_ptr().cast(), vectors.len() * $lanes) }
            }
        }
    };
}

vector!(
    F64x8, f64, 8, __m512d, __mmask8, run_with_avx512,
    _mm512_set1_pd, _mm512_loadu_pd, _mm512_storeu_pd, _mm512_stream_pd, _mm512_add_pd, _mm512_mul_pd, _mm512_div_pd,
    _mm512_fmadd_pd, _mm512_fnmadd_pd,
    from_lanes: |of| _mm512_setr_pd(of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7)),
    max: _mm512_max_pd, spread: |a, lane| _mm512_permutexvar_pd(_mm512_set1_epi64(lane as i64), a),
    abs: |a| _mm512_abs_pd(a),
    above: |a, b| _mm512_cmp_pd_mask::<_CMP_GT_OQ>(a, b),
    equals: |a, b| _mm512_cmp_pd_mask::<_CMP_EQ_OQ>(a, b),
    select: |mask, yes, no| _mm512_mask_blend_pd(mask, no, yes),
    bits: |mask| _cvtmask8_u32(mask),
    of_bits: |bits| _cvtu32_mask8(bits),
    largest: largest_f64x8,
    counts: _mm512_cvttpd_epi32 _mm256_storeu_si256,
    load_part: |from| _mm512_maskz_loadu_pd(first(from.len()) as __mmask8, from.as_ptr()),
    store_part: |to, x| _mm512_mask_storeu_pd(to.as_mut_ptr(), first(to.len()) as __mmask8, x),
    zip: |a, b| (
        _mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), b),
        _mm512_permutex2var_pd(a, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), b),
    ),
    unzip: |a, b| (
        _mm512_permutex2var_pd(a, _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14), b),
        _mm512_permutex2var_pd(a, _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15), b),
    ),
    transpose: transpose_f64x8, looks_up: true look_up_f64x8
);

vector!(
    F32x16, f32, 16, __m512, __mmask16, run_with_avx512,
    _mm512_set1_ps, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_stream_ps, _mm512_add_ps, _mm512_mul_ps, _mm512_div_ps,
    _mm512_fmadd_ps, _mm512_fnmadd_ps,
    from_lanes: |of| _mm512_setr_ps(
        of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7),
        of(8), of(9), of(10), of(11), of(12), of(13), of(14), of(15),
    ),
    max: _mm512_max_ps, spread: |a, lane| _mm512_permutexvar_ps(_mm512_set1_epi32(lane as i32), a),
    abs: |a| _mm512_abs_ps(a),
    above: |a, b| _mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, b),
    equals: |a, b| _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b),
    select: |mask, yes, no| _mm512_mask_blend_ps(mask, no, yes),
    bits: |mask| _cvtmask16_u32(mask),
    of_bits: |bits| _cvtu32_mask16(bits),
    largest: largest_f32x16,
    counts: _mm512_cvttps_epi32 _mm512_storeu_si512,
    load_part: |from| _mm512_maskz_loadu_ps(first(from.len()), from.as_ptr()),
    store_part: |to, x| _mm512_mask_storeu_ps(to.as_mut_ptr(), first(to.len()), x),
    zip: |a, b| (
        _mm512_permutex2var_ps(a, _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), b),
        _mm512_permutex2var_ps(a, _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31), b),
    ),
    unzip: |a, b| (
        _mm512_permutex2var_ps(a, _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30), b),
        _mm512_permutex2var_ps(a, _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31), b),
    ),
    transpose: transpose_f32x16, looks_up: true look_up_f32x16
);

vector!(
    F64x4, f64, 4, __m256d, __m256d, run_with_avx2,
    _mm256_set1_pd, _mm256_loadu_pd, _mm256_storeu_pd, _mm256_stream_pd, _mm256_add_pd, _mm256_mul_pd, _mm256_div_pd,
    _mm256_fmadd_pd, _mm256_fnmadd_pd,
    from_lanes: |of| _mm256_setr_pd(of(0), of(1), of(2), of(3)),
    max: _mm256_max_pd, spread: |a, lane| _mm256_castps_pd(_mm256_permutevar8x32_ps(
        _mm256_castpd_ps(a),
        _mm256_add_epi32(_mm256_set1_epi32(2 * lane as i32), _mm256_setr_epi32(0, 1, 0, 1, 0, 1, 0, 1)),
    )),
    abs: |a| _mm256_andnot_pd(_mm256_set1_pd(-0.0), a),
    above: |a, b| _mm256_cmp_pd::<_CMP_GT_OQ>(a, b),
    equals: |a, b| _mm256_cmp_pd::<_CMP_EQ_OQ>(a, b),
    select: |mask, yes, no| _mm256_blendv_pd(no, yes, mask),
    bits: |mask| _mm256_movemask_pd(mask) as u32,
    of_bits: |bits| {
        let own = _mm256_setr_epi64x(1, 2, 4, 8);
        _mm256_castsi256_pd(_mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(i64::from(bits)), own), own))
    },
    largest: largest_f64x4,
    counts: _mm256_cvttpd_epi32 _mm_storeu_si128,
    load_part: |from| _mm256_maskload_pd(from.as_ptr(), chosen(from.len())),
    store_part: |to, x| _mm256_maskstore_pd(to.as_mut_ptr(), chosen(to.len()), x),
    zip: |a, b| {
        let (low, high) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
        (_mm256_permute2f128_pd::<0x20>(low, high), _mm256_permute2f128_pd::<0x31>(low, high))
    },
    unzip: |a, b| {
        let (low, high) = (_mm256_permute2f128_pd::<0x20>(a, b), _mm256_permute2f128_pd::<0x31>(a, b));
        (_mm256_unpacklo_pd(low, high), _mm256_unpackhi_pd(low, high))
    },
    transpose: transpose_f64x4, looks_up: false look_up_f64x4
);

vector!(
    F32x8, f32, 8, __m256, __m256, run_with_avx2,
    _mm256_set1_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_stream_ps, _mm256_add_ps, _mm256_mul_ps, _mm256_div_ps,
    _mm256_fmadd_ps, _mm256_fnmadd_ps,
    from_lanes: |of| _mm256_setr_ps(of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7)),
    max: _mm256_max_ps, spread: |a, lane| _mm256_permutevar8x32_ps(a, _mm256_set1_epi32(lane as i32)),
    abs: |a| _mm256_andnot_ps(_mm256_set1_ps(-0.0), a),
    above: |a, b| _mm256_cmp_ps::<_CMP_GT_OQ>(a, b),
    equals: |a, b| _mm256_cmp_ps::<_CMP_EQ_OQ>(a, b),
    select: |mask, yes, no| _mm256_blendv_ps(no, yes, mask),
    bits: |mask| _mm256_movemask_ps(mask) as u32,
    of_bits: |bits| {
        let own = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
        _mm256_castsi256_ps(_mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32(bits as i32), own), own))
    },
    largest: largest_f32x8,
    counts: _mm256_cvttps_epi32 _mm256_storeu_si256,
    load_part: |from| _mm256_maskload_ps(from.as_ptr(), chosen_halves(from.len())),
    store_part: |to, x| _mm256_maskstore_ps(to.as_mut_ptr(), chosen_halves(to.len()), x),
    zip: |a, b| {
        let (low, high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
        (_mm256_permute2f128_ps::<0x20>(low, high), _mm256_permute2f128_ps::<0x31>(low, high))
    },
    unzip: |a, b| {
        let (low, high) = (_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b));
        (_mm256_shuffle_ps::<0b1000_1000>(low, high), _mm256_shuffle_ps::<0b1101_1101>(low, high))
    },
    transpose: transpose_f32x8, looks_up: false look_up_f32x8
);

/// The largest number, in every lane: compared as integers, in whose order those are that are not negative, and sooner so.
#[inline(always)]
unsafe fn largest_f64x8(x: __m512d) -> __m512d {
    // SAFETY: see the head of the file.
    unsafe {
        let x = _mm512_castpd_si512(x);
        let x = _mm512_max_epu64(x, _mm512_shuffle_i64x2::<0x4e>(x, x));
        let x = _mm512_max_epu64(x, _mm512_shuffle_i64x2::<0xb1>(x, x));
        _mm512_castsi512_pd(_mm512_max_epu64(x, _mm512_permutex_epi64::<0xb1>(x)))
    }
}

/// The same.
#[inline(always)]
unsafe fn largest_f32x16(x: __m512) -> __m512 {
    // SAFETY: see the head of the file.
    unsafe {
        let x = _mm512_castps_si512(x);
        let x = _mm512_max_epu32(x, _mm512_shuffle_i32x4::<0x4e>(x, x));
        let x = _mm512_max_epu32(x, _mm512_shuffle_i32x4::<0xb1>(x, x));
        let x = _mm512_max_epu32(x, _mm512_shuffle_epi32::<0x4e>(x));
        _mm512_castsi512_ps(_mm512_max_epu32(x, _mm512_shuffle_epi32::<0xb1>(x)))
    }
}

/// The same.
#[inline(always)]
unsafe fn largest_f64x4(x: __m256d) -> __m256d {
    // SAFETY: see the head of the file.
    unsafe {
        let x = _mm256_max_pd(x, _mm256_permute2f128_pd::<1>(x, x));
        _mm256_max_pd(x, _mm256_permute_pd::<0b0101>(x))
    }
}

/// The same.
#[inline(always)]
unsafe fn largest_f32x8(x: __m256) -> __m256 {
    // SAFETY: see the head of the file.
    unsafe {
        let x = _mm256_max_ps(x, _mm256_permute2f128_ps::<1>(x, x));
        let x = _mm256_max_ps(x, _mm256_permute_ps::<0x4e>(x));
        _mm256_max_ps(x, _mm256_permute_ps::<0xb1>(x))
    }
}

/// A mask of the first `count` lanes, of sixteen at most.
#[inline(always)]
fn first(count: usize) -> u16 {
    if count >= 16 { u16::MAX } else { (1 << count) - 1 }
}

/// The first `count` of four lanes.
#[inline(always)]
fn chosen(count: usize) -> __m256i {
    // SAFETY: see the head of the file.
    unsafe { _mm256_cmpgt_epi64(_mm256_set1_epi64x(count as i64), _mm256_setr_epi64x(0, 1, 2, 3)) }
}

/// The first `count` of eight lanes.
#[inline(always)]
fn chosen_halves(count: usize) -> __m256i {
    // SAFETY: see the head of the file.
    unsafe { _mm256_cmpgt_epi32(_mm256_set1_epi32(count as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)) }
}
