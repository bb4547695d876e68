//! Seeded matrices of many kinds, and what is known of them beforehand.
//!
//! Matrix `b` of a batch depends on the generator, the order, the seed and `b` alone: never on the batch's size or layout.
//! Everything is computed in `f64` and rounded once to the scalar. Complex scalars get complex elements: random ones have
//! two random parts, and a real definition `A` becomes `D A D` with `D = diag(1, i, −1, −i, 1, ...)`, which keeps singular
//! values, sizes of elements and pivot choices.

mod deviates;
mod exact;
mod expected;
mod names;
mod planted;
mod random;
mod scaled;
mod structured;

use batchla_core::{Batch, BatchLayout, Complex, Error, Scalar, ScalarKind};

use self::deviates::Deviates;
use self::exact::Flaw;
pub use self::expected::Expected;
pub use self::planted::Defect;

/// A way to make matrices of any order: plain data, written and read as `uniform`, `condition:1e8`, `zero-column:last`.
///
/// ```
/// use batchla_testkit::Generator;
/// let generator: Generator = "condition:1e8".parse()?;
/// let a = generator.matrix::<f32>(21, 7, 0);
/// assert_eq!(a.len(), 21 * 21);
/// # Ok::<(), batchla_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Generator {
    /// Parts uniform in [−1, 1).
    Uniform,
    /// Parts of normal distribution.
    Normal,
    /// `U diag(σ) Vᴴ` with `σ_k = κ^(−k/(n−1))` and random orthogonal (unitary) factors, so that `κ₂(A) = κ` but for the
    /// rounding to the scalar; LAPACK's `xLAGGE` (Stewart 1980). `κ ≥ 1`.
    Condition(f64),
    /// Strictly dominant by columns: `|a_jj| = 2 (1 + Σ_{i≠j} |a_ij|)`. Partial pivoting exchanges nothing.
    DiagonallyDominant,
    /// Symmetric (Hermitian) positive definite: `I + G Gᴴ / n`, `G` normal.
    PositiveDefinite,
    /// The rows of the identity in random order.
    PermutedIdentity,
    /// Diagonal, of sizes between 2⁻⁸ and 2⁸.
    Diagonal,
    /// Upper triangular and well conditioned: `1 ≤ |a_ii| < 2`, `|a_ij| ≤ 1/n`.
    UpperTriangular,
    /// Lower triangular and well conditioned: `1 ≤ |a_ii| < 2`, `|a_ij| ≤ 1/n`.
    LowerTriangular,
    /// `a_ij = 1 / (i + j + 1)` from `i = j = 0` (Hilbert 1894): positive definite, `κ` about `e^(3.5 n)`.
    Hilbert,
    /// `a_ij = x_i^j` with random nodes in [−1, 1), or on the unit circle.
    Vandermonde,
    /// `a_ij = t_(i−j)`, `t` uniform.
    Toeplitz,
    /// `diag(1, s, ..., s^(n−1))` times the unit upper triangle whose other elements are `−c`; `s = sin 1.2`, `c = cos 1.2`
    /// (Kahan 1966): far worse conditioned than its diagonal tells.
    Kahan,
    /// `a_ij = n − max(i, j)` for `i ≤ j + 1`, else 0 (Frank 1958): upper Hessenberg, determinant 1, ill conditioned.
    Frank,
    /// 1 on the diagonal and in the last column, −1 below the diagonal (Wilkinson 1961): the growth of partial pivoting is `2^(n−1)`.
    Wilkinson,
    /// Normal, the rows scaled by powers of two from 1 down to `2^(−fraction·e)`, where `2^e` is the end of the type's range.
    GradedRows(f64),
    /// As [`Generator::GradedRows`], by columns.
    GradedColumns(f64),
    /// Normal, all of it scaled by `2^(fraction·e)`, where `2^e` is the end of the type's range; the fraction may be negative.
    Scaled(f64),
    /// Normal blocks of orders 1 to 8 along the diagonal.
    BlockDiagonal,
    /// Normal, each element there with this probability, else zero. It may be singular by its structure.
    Sparse(f64),
    /// `X Yᴴ`, `X` and `Y` normal with `⌈n/2⌉` columns, rounded: whether a pivot becomes zero is up to rounding.
    LowRank,
    /// Integers from −9 to 9, with many ties between pivots; may be singular.
    SmallIntegers,
    /// Normal, but one column is zero.
    ZeroColumn(Place),
    /// `P L U`, whose elimination rounds nothing in any scalar (see [`Generator::exact`]).
    Exact,
    /// As [`Generator::Exact`], but one pivot is zero.
    ZeroPivot(Place),
    /// As [`Generator::Exact`], but of rank `⌊n/2⌋`: all later pivots are zero.
    RankDeficient,
    /// As [`Generator::Exact`], but two rows are equal, so that the last pivot is zero. Regular below order 2.
    DuplicateRows,
    /// Diagonally dominant matrices, every third of which has a defect (see [`Generator::planted`]).
    Planted(Defect),
}

/// A column, for orders not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Column 0.
    First,
    /// Column `⌊n/2⌋`.
    Middle,
    /// Column `n − 1`.
    Last,
    /// This column, or the last where there are fewer.
    At(usize),
}

impl Place {
    /// The column in a matrix of order `n`, counted from 0; 0 for order 0.
    pub fn column(self, n: usize) -> usize {
        let last = n.saturating_sub(1);
        match self {
            Self::First => 0,
            Self::Middle => (n / 2).min(last),
            Self::Last => last,
            Self::At(column) => column.min(last),
        }
    }
}

impl Generator {
    /// One of every kind, and more of those that have a parameter.
    pub const ALL: [Self; 43] = [
        Self::Uniform,
        Self::Normal,
        Self::Condition(1e8),
        Self::Condition(1.0),
        Self::Condition(1e3),
        Self::Condition(1e15),
        Self::DiagonallyDominant,
        Self::PositiveDefinite,
        Self::PermutedIdentity,
        Self::Diagonal,
        Self::UpperTriangular,
        Self::LowerTriangular,
        Self::Hilbert,
        Self::Vandermonde,
        Self::Toeplitz,
        Self::Kahan,
        Self::Frank,
        Self::Wilkinson,
        Self::GradedRows(0.4),
        Self::GradedColumns(0.4),
        Self::Scaled(0.4),
        Self::Scaled(0.7),
        Self::Scaled(-0.7),
        Self::BlockDiagonal,
        Self::Sparse(0.2),
        Self::LowRank,
        Self::SmallIntegers,
        Self::ZeroColumn(Place::First),
        Self::ZeroColumn(Place::Middle),
        Self::ZeroColumn(Place::Last),
        Self::ZeroColumn(Place::At(3)),
        Self::Exact,
        Self::ZeroPivot(Place::First),
        Self::ZeroPivot(Place::Middle),
        Self::ZeroPivot(Place::Last),
        Self::RankDeficient,
        Self::DuplicateRows,
        Self::Planted(Defect::NaN),
        Self::Planted(Defect::Infinity),
        Self::Planted(Defect::ZeroColumn),
        Self::Planted(Defect::Subnormal),
        Self::Planted(Defect::Tiny),
        Self::Planted(Defect::Huge),
    ];

    /// A batch of these matrices. Gaps in the layout hold zeros.
    ///
    /// # Errors
    /// [`ErrorKind::Shape`](batchla_core::ErrorKind::Shape) where the layout is not square; memory.
    pub fn batch<T: Scalar>(self, layout: BatchLayout, seed: u64) -> Result<Batch<T>, Error> {
        let n = layout.order("generate")?;
        let mut batch = Batch::zeros(layout)?;
        for (b, mut matrix) in batch.view_mut().into_matrices().enumerate() {
            matrix.copy_from_columns(&self.matrix(n, seed, b), n);
        }
        Ok(batch)
    }

    /// Matrix `b` of any batch with this order and seed, column by column.
    pub fn matrix<T: Scalar>(self, n: usize, seed: u64, b: usize) -> Vec<T> {
        fn rounded<W: Scalar<Real = f64>, T: Scalar>(working: &[W]) -> Vec<T> {
            working.iter().map(|x| T::from_f64(x.re(), x.im())).collect()
        }
        let range = Range::of(T::KIND);
        if T::IS_COMPLEX {
            rounded(&self.in_double::<Complex<f64>>(n, seed, b, range))
        } else {
            rounded(&self.in_double::<f64>(n, seed, b, range))
        }
    }

    /// Whether elimination with partial pivoting makes no rounding error up to order 200, in any scalar: pivots and factors are
    /// then the same, bit for bit but for signs of zeros, in whatever order a backend works.
    pub fn exact(self) -> bool {
        self.flaw().is_some() || matches!(self, Self::Diagonal | Self::UpperTriangular | Self::Kahan)
    }

    /// What was planted in matrix `b`, if anything: every third matrix from the second on has the defect.
    pub fn planted(self, b: usize) -> Option<Defect> {
        match self {
            Self::Planted(defect) if b % 3 == 1 => Some(defect),
            _ => None,
        }
    }

    fn flaw(self) -> Option<Flaw> {
        match self {
            Self::PermutedIdentity => Some(Flaw::OnlyPermuted),
            Self::Exact => Some(Flaw::None),
            Self::ZeroPivot(place) => Some(Flaw::ZeroPivot(place)),
            Self::RankDeficient => Some(Flaw::RankDeficient),
            Self::DuplicateRows => Some(Flaw::DuplicateRows),
            _ => None,
        }
    }

    fn in_double<W: Scalar<Real = f64>>(self, n: usize, seed: u64, b: usize, range: Range) -> Vec<W> {
        let mut deviates = Deviates::of_matrix(seed, b);
        let deviates = &mut deviates;
        match self {
            Self::Uniform => random::uniform(n, deviates),
            Self::Normal => random::normal(n, deviates),
            Self::Condition(kappa) => random::condition(n, kappa, deviates),
            Self::DiagonallyDominant => random::diagonally_dominant(n, deviates),
            Self::PositiveDefinite => random::positive_definite(n, deviates),
            Self::Diagonal => structured::diagonal(n, deviates),
            Self::UpperTriangular => structured::triangular(n, deviates, |i, j| i < j),
            Self::LowerTriangular => structured::triangular(n, deviates, |i, j| i > j),
            Self::Hilbert => structured::hilbert(n),
            Self::Vandermonde => structured::vandermonde(n, deviates),
            Self::Toeplitz => structured::toeplitz(n, deviates),
            Self::Kahan => structured::kahan(n),
            Self::Frank => structured::frank(n),
            Self::Wilkinson => structured::wilkinson(n),
            Self::GradedRows(fraction) => scaled::graded(n, fraction, range, deviates, |i, _| i),
            Self::GradedColumns(fraction) => scaled::graded(n, fraction, range, deviates, |_, j| j),
            Self::Scaled(fraction) => scaled::scaled(n, fraction, range, deviates),
            Self::BlockDiagonal => structured::block_diagonal(n, deviates),
            Self::Sparse(density) => structured::sparse(n, density, deviates),
            Self::LowRank => random::low_rank(n, deviates),
            Self::SmallIntegers => random::small_integers(n, deviates),
            Self::ZeroColumn(place) => structured::zero_column(n, place, deviates),
            Self::PermutedIdentity => exact::matrix(n, Flaw::OnlyPermuted, deviates),
            Self::Exact => exact::matrix(n, Flaw::None, deviates),
            Self::ZeroPivot(place) => exact::matrix(n, Flaw::ZeroPivot(place), deviates),
            Self::RankDeficient => exact::matrix(n, Flaw::RankDeficient, deviates),
            Self::DuplicateRows => exact::matrix(n, Flaw::DuplicateRows, deviates),
            Self::Planted(_) => planted::matrix(n, self.planted(b), range, deviates),
        }
    }
}

/// A batch of normal right-hand sides, of any shape; unrelated to the matrices of the same seed.
///
/// # Errors
/// [`ErrorKind::OutOfMemory`](batchla_core::ErrorKind::OutOfMemory).
pub fn right_hand_sides<T: Scalar>(layout: BatchLayout, seed: u64) -> Result<Batch<T>, Error> {
    let mut batch = Batch::zeros(layout)?;
    for (b, mut matrix) in batch.view_mut().into_matrices().enumerate() {
        // Matrices and right-hand sides of one stream would make the solution a column of the identity.
        let mut deviates = Deviates::of_matrix(!seed, b);
        matrix.fill_with(|_, _| T::from_f64(deviates.normal(), deviates.normal()));
    }
    Ok(batch)
}

/// The exponents of a scalar: its normal numbers have sizes from `2^(min − 1)` to below `2^max`.
#[derive(Clone, Copy, Debug)]
struct Range {
    min: i32,
    max: i32,
}

impl Range {
    fn of(kind: ScalarKind) -> Self {
        match kind {
            ScalarKind::F32 | ScalarKind::C32 => Self { min: f32::MIN_EXP, max: f32::MAX_EXP },
            ScalarKind::F64 | ScalarKind::C64 => Self { min: f64::MIN_EXP, max: f64::MAX_EXP },
        }
    }
}

/// Element (i, j) from its formula, column by column.
fn from_fn<W>(n: usize, mut element: impl FnMut(usize, usize) -> W) -> Vec<W> {
    (0..n * n).map(|at| element(at % n, at / n)).collect()
}

#[cfg(test)]
mod fingerprints;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) mod textbook;
