//! How each matrix fared.

use std::fmt;

/// What became of one matrix. A failed matrix is data, never an [`Error`](crate::Error), and never disturbs its neighbours.
///
/// On a device an outcome is one `u32` word: 0 for regular, LAPACK's `info` (the column plus one) for
/// singular, all bits set for not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The result is there, and finite.
    Regular,
    /// The pivot of this column (0-based) is the first that is exactly zero. Factors are those of LAPACK's `getrf`;
    /// inverse and solution are all NaN; the determinant is zero.
    Singular {
        /// The column, counted from 0.
        column: usize,
    },
    /// The input or the stored result holds a NaN or an infinity. Outranks [`Outcome::Singular`]; inverse and solution
    /// are all NaN.
    NotFinite,
}

impl Outcome {
    const NOT_FINITE: u32 = u32::MAX;

    /// Whether the result can be used.
    pub fn is_regular(self) -> bool {
        self == Self::Regular
    }

    /// LAPACK's `info`: 0 for regular, the 1-based column of the first zero pivot for singular, −1 for not finite
    /// (for which LAPACK has no code).
    pub fn info(self) -> i64 {
        match self {
            Self::Regular => 0,
            Self::Singular { column } => column as i64 + 1,
            Self::NotFinite => -1,
        }
    }

    /// The device's word for this outcome.
    pub fn to_word(self) -> u32 {
        match self {
            Self::Regular => 0,
            Self::Singular { column } => u32::try_from(column + 1).unwrap_or(Self::NOT_FINITE - 1),
            Self::NotFinite => Self::NOT_FINITE,
        }
    }

    /// The outcome behind a device's word.
    pub fn from_word(word: u32) -> Self {
        match word {
            0 => Self::Regular,
            Self::NOT_FINITE => Self::NotFinite,
            info => Self::Singular { column: info as usize - 1 },
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Regular => f.write_str("regular"),
            Self::Singular { column } => write!(f, "singular (zero pivot in column {column})"),
            Self::NotFinite => f.write_str("not finite"),
        }
    }
}

/// Exchanges as LAPACK's `ipiv`: 1-based.
///
/// Ours are 0-based: step `k` exchanged rows `k` and `pivots[k]`.
#[doc(alias = "ipiv")]
pub fn lapack_pivots(pivots: &[u32]) -> Vec<i32> {
    pivots.iter().map(|&p| p as i32 + 1).collect()
}

/// The permutation that sequential exchanges amount to: row `i` of `P⁻¹A` is row `permutation[i]` of `A`.
///
/// # Panics
/// Where an exchange is with a row that there is not, as LAPACK's 1-based ones may be.
pub fn permutation(pivots: &[u32]) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..pivots.len() as u32).collect();
    for (k, &p) in pivots.iter().enumerate() {
        rows.swap(k, p as usize);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_go_there_and_back() {
        for outcome in
            [Outcome::Regular, Outcome::Singular { column: 0 }, Outcome::Singular { column: 511 }, Outcome::NotFinite]
        {
            assert_eq!(Outcome::from_word(outcome.to_word()), outcome);
            assert_eq!(outcome.is_regular(), outcome.to_word() == 0);
        }
        // A column that no word holds is singular still.
        let beyond = Outcome::from_word(Outcome::Singular { column: 1 << 40 }.to_word());
        assert!(matches!(beyond, Outcome::Singular { .. }), "{beyond}");
    }

    #[test]
    fn info_is_lapacks() {
        assert_eq!(Outcome::Regular.info(), 0);
        assert_eq!(Outcome::Singular { column: 3 }.info(), 4);
        assert_eq!(Outcome::NotFinite.info(), -1);
    }

    #[test]
    fn exchanges_become_a_permutation() {
        assert_eq!(permutation(&[2, 2, 2]), [2, 0, 1]);
        assert_eq!(lapack_pivots(&[2, 2, 2]), [3, 3, 3]);
    }
}
