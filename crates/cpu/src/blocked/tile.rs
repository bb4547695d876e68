//! The tile: some vectors of some columns in registers while a product is subtracted from them.

use batchla_core::Scalar;

use crate::simd::{Lanes, Vector, Work, outline};

/// A part of a product `A B`: columns `first..first + depth` of `A`, and as many rows of `B`.
#[derive(Clone, Copy)]
pub(super) struct Factors<'a, L> {
    /// `A`'s columns, `ld` apart.
    pub(super) a: &'a [L],
    /// `B`'s columns, `ld` apart; `None` where they are those of the result.
    pub(super) b: Option<&'a [L]>,
    /// The row of `B` that belongs to `A`'s first column.
    pub(super) row: usize,
    pub(super) ld: usize,
}

/// Where the real part of number `i` of a column lies among real numbers.
#[inline(always)]
pub(super) fn place<L: Lanes>(i: usize) -> usize {
    if L::PARTS == 1 { i } else { i / L::COUNT * (2 * L::COUNT) + i % L::COUNT }
}

/// Number `i` of a column.
#[inline(always)]
pub(super) fn number<L: Lanes>(column: &[L], i: usize) -> L::Number {
    L::lane(column, i / L::COUNT, i % L::COUNT)
}

/// Number `i` of a column in every lane.
#[inline(always)]
pub(super) fn spread<L: Lanes>(column: &[L], i: usize) -> L {
    L::splat(number(column, i))
}

/// `sum[c][r] -= Σ A[i + r, k] B[k, j + c]` for each `k` of `first..end` in turn, from the last one on where `DOWN`. `own` are the result's
/// columns.
#[inline(always)]
pub(super) fn subtract<L: Lanes, const R: usize, const C: usize, const DOWN: bool>(
    sum: &mut [[L; R]; C],
    own: &[L],
    factors: Factors<'_, L>,
    steps: (usize, usize),
    i: usize,
    j: usize,
) {
    subtract_masked::<L, R, C, DOWN, false>(sum, own, factors, steps, i, j);
}

/// The same for the columns of `A` whose diagonal is in vector `i`, of which nothing below the diagonal counts.
#[inline(always)]
pub(super) fn subtract_upper<L: Lanes, const C: usize>(
    sum: &mut [[L; 1]; C],
    own: &[L],
    factors: Factors<'_, L>,
    i: usize,
) {
    subtract_masked::<L, 1, C, false, true>(sum, own, factors, (i * L::COUNT, (i + 1) * L::COUNT), i, 0);
}

#[inline(always)]
fn subtract_masked<L: Lanes, const R: usize, const C: usize, const DOWN: bool, const UPPER: bool>(
    sum: &mut [[L; R]; C],
    own: &[L],
    factors: Factors<'_, L>,
    (first, end): (usize, usize),
    i: usize,
    j: usize,
) {
    let Factors { a, b, row, ld } = factors;
    if first >= end {
        return;
    }
    let reals = L::Vector::as_reals(L::as_vectors(b.unwrap_or(own)));
    let stride = ld * L::PARTS * L::COUNT;
    // What is read below, at most.
    assert!(i + R <= ld && (end - 1) * ld + i + R <= a.len());
    assert!(row + end <= ld * L::COUNT && (j + C) * stride <= reals.len());
    let mut inner = *sum;
    for step in 0..end - first {
        let k = if DOWN { end - 1 - step } else { first + step };
        let mut l = [L::zero(); R];
        for r in 0..R {
            // SAFETY: column `k` of `A` has vector `i + r`.
            l[r] = unsafe { *a.get_unchecked(k * ld + i + r) };
        }
        let at = place::<L>(row + k);
        for c in 0..C {
            let at = at + (j + c) * stride;
            // SAFETY: column `j + c` of `B` has row `row + k`, whose parts are one vector apart.
            let u = unsafe {
                L::spread_parts(*reals.get_unchecked(at), *reals.get_unchecked(at + (L::PARTS - 1) * L::COUNT))
            };
            for r in 0..R {
                let next = inner[c][r].minus_product(l[r], u);
                inner[c][r] = if UPPER { L::select(lanes_before::<L>(step + 1), next, inner[c][r]) } else { next };
            }
        }
    }
    *sum = inner;
}

/// `C -= A B` for vectors `i..end` of the first `width` columns of the result, from the last of `A`'s columns on where `DOWN`.
#[inline(always)]
pub(super) fn subtract_product<L: Lanes, const DOWN: bool>(
    own: &mut [L],
    factors: Factors<'_, L>,
    depth: usize,
    (i, end): (usize, usize),
    width: usize,
) {
    outline::<L, _>(Product::<L, DOWN> { own, factors, depth, i, end, width });
}

struct Product<'a, L, const DOWN: bool> {
    own: &'a mut [L],
    factors: Factors<'a, L>,
    depth: usize,
    i: usize,
    end: usize,
    width: usize,
}

impl<T: Scalar, L: Lanes<Number = T>, const DOWN: bool> Work<T> for Product<'_, L, DOWN> {
    type Output = ();

    #[inline(always)]
    fn run<Same: Lanes<Number = T>>(self) {
        let Self { own, factors, depth, mut i, end, width } = self;
        while end - i >= 2 {
            subtract_vectors::<L, 2, DOWN>(own, factors, depth, i, width);
            i += 2;
        }
        if i < end {
            subtract_vectors::<L, 1, DOWN>(own, factors, depth, i, width);
        }
    }
}

/// The same for vectors `i..i + R`: what is there of `A` stays in the nearest cache, while columns of `B` come one after another.
#[inline(always)]
fn subtract_vectors<L: Lanes, const R: usize, const DOWN: bool>(
    own: &mut [L],
    factors: Factors<'_, L>,
    depth: usize,
    i: usize,
    width: usize,
) {
    let mut j = 0;
    if L::PARTS == 1 && size_of::<L>() == 64 {
        while width - j >= 8 {
            subtract_tile::<L, R, 8, DOWN>(own, factors, depth, i, j);
            j += 8;
        }
    }
    while width - j >= 4 {
        subtract_tile::<L, R, 4, DOWN>(own, factors, depth, i, j);
        j += 4;
    }
    while j < width {
        subtract_tile::<L, R, 1, DOWN>(own, factors, depth, i, j);
        j += 1;
    }
}

#[inline(always)]
fn subtract_tile<L: Lanes, const R: usize, const C: usize, const DOWN: bool>(
    own: &mut [L],
    factors: Factors<'_, L>,
    depth: usize,
    i: usize,
    j: usize,
) {
    let mut sum = load::<L, R, C>(own, factors.ld, i, j);
    subtract::<L, R, C, DOWN>(&mut sum, own, factors, (0, depth), i, j);
    store(own, factors.ld, i, j, sum);
}

/// Vectors `i..i + R` of `C` columns from `j` on.
#[inline(always)]
pub(super) fn load<L: Lanes, const R: usize, const C: usize>(a: &[L], ld: usize, i: usize, j: usize) -> [[L; R]; C] {
    let mut tile = [[L::zero(); R]; C];
    for c in 0..C {
        let column = &a[i + (j + c) * ld..][..R];
        for r in 0..R {
            tile[c][r] = column[r];
        }
    }
    tile
}

/// Writes vectors `i..i + R` of `C` columns from `j` on.
#[inline(always)]
pub(super) fn store<L: Lanes, const R: usize, const C: usize>(
    a: &mut [L],
    ld: usize,
    i: usize,
    j: usize,
    tile: [[L; R]; C],
) {
    for c in 0..C {
        let column = &mut a[i + (j + c) * ld..][..R];
        for r in 0..R {
            column[r] = tile[c][r];
        }
    }
}

/// The lanes above lane `lane`, that is: below it in the column.
#[inline(always)]
pub(super) fn lanes_after<L: Lanes>(lane: usize) -> <L::Vector as Vector>::Mask {
    L::Vector::lanes_after(lane)
}

/// The lanes before lane `lane`.
#[inline(always)]
pub(super) fn lanes_before<L: Lanes>(lane: usize) -> <L::Vector as Vector>::Mask {
    L::count(lane).above(L::Vector::counting())
}
