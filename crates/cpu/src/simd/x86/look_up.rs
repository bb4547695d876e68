//! Numbers looked up in tables of a few vectors.
//!
//! SAFETY, of the whole file: the caller looked for the instruction set of the vectors, and there is a place for each lane.

use std::arch::x86_64::*;

use super::{F32x8, F32x16, F64x4, F64x8};
use crate::simd::{TABLE, Vector};

/// Looks numbers up by the processor's own table look-up.
macro_rules! look_up {
    ($name:ident, $vector:ident, $places:expr, $bit:expr, $next_bit:expr, $one:ident, $two:ident, $beyond:ident, $blend:ident) => {
        #[inline(always)]
        pub(in crate::simd::x86) unsafe fn $name(table: &[$vector; TABLE], vectors: usize, places: &[u8]) -> $vector {
            // SAFETY: the caller's.
            unsafe {
                let places = $places(places);
                if vectors == 1 {
                    return $vector($one(places, table[0].0));
                }
                let low = $two(table[0].0, places, table[1].0);
                if vectors == 2 {
                    return $vector(low);
                }
                let low = $blend($beyond(places, $bit), low, $two(table[2].0, places, table[3].0));
                if vectors <= 4 {
                    return $vector(low);
                }
                let (third, fourth) = ($two(table[4].0, places, table[5].0), $two(table[6].0, places, table[7].0));
                let high = $blend($beyond(places, $bit), third, fourth);
                $vector($blend($beyond(places, $next_bit), low, high))
            }
        }
    };
}

look_up!(
    look_up_f64x8,
    F64x8,
    wide_places,
    _mm512_set1_epi64(16),
    _mm512_set1_epi64(32),
    _mm512_permutexvar_pd,
    _mm512_permutex2var_pd,
    _mm512_test_epi64_mask,
    _mm512_mask_blend_pd
);
look_up!(
    look_up_f32x16,
    F32x16,
    narrow_places,
    _mm512_set1_epi32(32),
    _mm512_set1_epi32(64),
    _mm512_permutexvar_ps,
    _mm512_permutex2var_ps,
    _mm512_test_epi32_mask,
    _mm512_mask_blend_ps
);

#[inline(always)]
unsafe fn wide_places(places: &[u8]) -> __m512i {
    // SAFETY: the caller's; there are eight.
    unsafe { _mm512_cvtepu8_epi64(_mm_loadl_epi64(places.as_ptr().cast())) }
}

#[inline(always)]
unsafe fn narrow_places(places: &[u8]) -> __m512i {
    // SAFETY: the caller's; there are sixteen.
    unsafe { _mm512_cvtepu8_epi32(_mm_loadu_si128(places.as_ptr().cast())) }
}

/// One by one.
#[inline(always)]
pub(super) unsafe fn look_up_f64x4(table: &[F64x4; TABLE], _vectors: usize, places: &[u8]) -> F64x4 {
    let at = |lane: usize| F64x4::as_reals(table)[places[lane] as usize];
    // SAFETY: the caller's.
    F64x4(unsafe { _mm256_setr_pd(at(0), at(1), at(2), at(3)) })
}

/// One by one.
#[inline(always)]
pub(super) unsafe fn look_up_f32x8(table: &[F32x8; TABLE], _vectors: usize, places: &[u8]) -> F32x8 {
    let at = |lane: usize| F32x8::as_reals(table)[places[lane] as usize];
    // SAFETY: the caller's.
    F32x8(unsafe { _mm256_setr_ps(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7)) })
}
