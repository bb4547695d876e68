//! Blocks of vectors transposed by as few shuffles as there can be: those that keep to 128 bits first, which are the quickest.
//!
//! SAFETY, of the whole file: the caller looked for the instruction set of the vectors.

use std::arch::x86_64::*;

use super::{F32x8, F32x16, F64x4, F64x8};

/// Four vectors' quarters transposed.
macro_rules! quarters {
    ($shuffle:ident, $wrap:ident, $a:expr, $b:expr, $c:expr, $d:expr) => {{
        let (even, odd) = ($shuffle::<0x88>($a, $b), $shuffle::<0xdd>($a, $b));
        let (other_even, other_odd) = ($shuffle::<0x88>($c, $d), $shuffle::<0xdd>($c, $d));
        [
            $wrap($shuffle::<0x88>(even, other_even)),
            $wrap($shuffle::<0x88>(odd, other_odd)),
            $wrap($shuffle::<0xdd>(even, other_even)),
            $wrap($shuffle::<0xdd>(odd, other_odd)),
        ]
    }};
}

/// Four vectors of single numbers transposed within 128 bits.
macro_rules! fours {
    ($low:ident, $high:ident, $to:ident, $from:ident, $pair_low:ident, $pair_high:ident, $a:expr, $b:expr, $c:expr, $d:expr) => {{
        let (low, high) = ($to($low($a, $b)), $to($high($a, $b)));
        let (other_low, other_high) = ($to($low($c, $d)), $to($high($c, $d)));
        [
            $from($pair_low(low, other_low)),
            $from($pair_high(low, other_low)),
            $from($pair_low(high, other_high)),
            $from($pair_high(high, other_high)),
        ]
    }};
}

/// Two vectors' halves transposed.
macro_rules! halves {
    ($permute:ident, $wrap:ident, $a:expr, $b:expr) => {
        ($wrap($permute::<0x20>($a, $b)), $wrap($permute::<0x31>($a, $b)))
    };
}

/// Transposes: pairs within 128 bits first, which need no instruction that looks further, then these.
#[inline(always)]
pub(super) unsafe fn transpose_f64x8(rows: &mut [F64x8; 8]) {
    let mut pairs = [[rows[0].0; 4]; 2];
    for i in 0..4 {
        let (a, b) = (rows[2 * i].0, rows[2 * i + 1].0);
        // SAFETY: the caller's.
        unsafe { (pairs[0][i], pairs[1][i]) = (_mm512_unpacklo_pd(a, b), _mm512_unpackhi_pd(a, b)) };
    }
    for c in 0..2 {
        let [a, b, c_, d] = pairs[c];
        // SAFETY: the caller's.
        let columns = unsafe { quarters!(_mm512_shuffle_f64x2, F64x8, a, b, c_, d) };
        for q in 0..4 {
            rows[2 * q + c] = columns[q];
        }
    }
}

/// The same of sixteen.
#[inline(always)]
pub(super) unsafe fn transpose_f32x16(rows: &mut [F32x16; 16]) {
    let mut fours = [[rows[0].0; 4]; 4];
    for i in 0..4 {
        let [a, b, c, d] = [rows[4 * i].0, rows[4 * i + 1].0, rows[4 * i + 2].0, rows[4 * i + 3].0];
        // SAFETY: the caller's.
        let four = unsafe {
            fours!(
                _mm512_unpacklo_ps,
                _mm512_unpackhi_ps,
                _mm512_castps_pd,
                _mm512_castpd_ps,
                _mm512_unpacklo_pd,
                _mm512_unpackhi_pd,
                a,
                b,
                c,
                d
            )
        };
        for c in 0..4 {
            fours[c][i] = four[c];
        }
    }
    for c in 0..4 {
        let [a, b, c_, d] = fours[c];
        // SAFETY: the caller's.
        let columns = unsafe { quarters!(_mm512_shuffle_f32x4, F32x16, a, b, c_, d) };
        for q in 0..4 {
            rows[4 * q + c] = columns[q];
        }
    }
}

/// The same of four double numbers.
#[inline(always)]
pub(super) unsafe fn transpose_f64x4(rows: &mut [F64x4; 4]) {
    let [a, b, c, d] = [rows[0].0, rows[1].0, rows[2].0, rows[3].0];
    // SAFETY: the caller's.
    unsafe {
        let (even, odd) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
        let (other_even, other_odd) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
        (rows[0], rows[2]) = halves!(_mm256_permute2f128_pd, F64x4, even, other_even);
        (rows[1], rows[3]) = halves!(_mm256_permute2f128_pd, F64x4, odd, other_odd);
    }
}

/// The same of eight.
#[inline(always)]
pub(super) unsafe fn transpose_f32x8(rows: &mut [F32x8; 8]) {
    let mut fours = [[rows[0].0; 4]; 2];
    for i in 0..2 {
        let [a, b, c, d] = [rows[4 * i].0, rows[4 * i + 1].0, rows[4 * i + 2].0, rows[4 * i + 3].0];
        // SAFETY: the caller's.
        fours[i] = unsafe {
            fours!(
                _mm256_unpacklo_ps,
                _mm256_unpackhi_ps,
                _mm256_castps_pd,
                _mm256_castpd_ps,
                _mm256_unpacklo_pd,
                _mm256_unpackhi_pd,
                a,
                b,
                c,
                d
            )
        };
    }
    for c in 0..4 {
        // SAFETY: the caller's.
        (rows[c], rows[4 + c]) = unsafe { halves!(_mm256_permute2f128_ps, F32x8, fours[0][c], fours[1][c]) };
    }
}
