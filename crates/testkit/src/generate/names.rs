//! Generators as text: `name` or `name:value`.

use std::fmt;
use std::str::FromStr;

use batchla_core::{Error, ErrorKind};

use super::{Defect, Generator, Place};

impl Generator {
    /// The name in lower case, without the value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Normal => "normal",
            Self::Condition(_) => "condition",
            Self::DiagonallyDominant => "diagonally-dominant",
            Self::PositiveDefinite => "positive-definite",
            Self::PermutedIdentity => "permuted-identity",
            Self::Diagonal => "diagonal",
            Self::UpperTriangular => "upper-triangular",
            Self::LowerTriangular => "lower-triangular",
            Self::Hilbert => "hilbert",
            Self::Vandermonde => "vandermonde",
            Self::Toeplitz => "toeplitz",
            Self::Kahan => "kahan",
            Self::Frank => "frank",
            Self::Wilkinson => "wilkinson",
            Self::GradedRows(_) => "graded-rows",
            Self::GradedColumns(_) => "graded-columns",
            Self::Scaled(_) => "scaled",
            Self::BlockDiagonal => "block-diagonal",
            Self::Sparse(_) => "sparse",
            Self::LowRank => "low-rank",
            Self::SmallIntegers => "small-integers",
            Self::ZeroColumn(_) => "zero-column",
            Self::Exact => "exact",
            Self::ZeroPivot(_) => "zero-pivot",
            Self::RankDeficient => "rank-deficient",
            Self::DuplicateRows => "duplicate-rows",
            Self::Planted(_) => "planted",
        }
    }

    /// The same kind with another value; `None` where the kind has none or it is out of range.
    fn with_value(self, value: &str) -> Option<Self> {
        let number = |least: f64, most: f64| value.parse().ok().filter(|x| (least..=most).contains(x));
        Some(match self {
            Self::Condition(_) => Self::Condition(number(1.0, f64::MAX)?),
            Self::GradedRows(_) => Self::GradedRows(number(0.0, 1.0)?),
            Self::GradedColumns(_) => Self::GradedColumns(number(0.0, 1.0)?),
            Self::Scaled(_) => Self::Scaled(number(-1.0, 1.0)?),
            Self::Sparse(_) => Self::Sparse(number(0.0, 1.0)?),
            Self::ZeroColumn(_) => Self::ZeroColumn(value.parse().ok()?),
            Self::ZeroPivot(_) => Self::ZeroPivot(value.parse().ok()?),
            Self::Planted(_) => Self::Planted(Defect::ALL.into_iter().find(|defect| defect.name() == value)?),
            _ => return None,
        })
    }
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Self::Condition(kappa) => write!(f, ":{kappa:e}"),
            Self::GradedRows(x) | Self::GradedColumns(x) | Self::Scaled(x) | Self::Sparse(x) => write!(f, ":{x}"),
            Self::ZeroColumn(place) | Self::ZeroPivot(place) => write!(f, ":{place}"),
            Self::Planted(defect) => write!(f, ":{defect}"),
            _ => Ok(()),
        }
    }
}

impl FromStr for Generator {
    type Err = Error;

    /// Reads what `Display` writes; a missing value is that of the first of its kind in [`Generator::ALL`].
    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, value) = text.split_once(':').map_or((text, None), |(name, value)| (name, Some(value)));
        let kind = Self::ALL.into_iter().find(|generator| generator.name() == name);
        let read = kind.and_then(|kind| value.map_or(Some(kind), |value| kind.with_value(value)));
        read.ok_or_else(|| {
            let problem = match kind {
                Some(kind) => format!("`{text}` is not a generator, as `{kind}` is"),
                None => format!("there is no generator `{name}`"),
            };
            let choices = Self::ALL.map(|generator| generator.to_string()).join(", ");
            Error::new(ErrorKind::Argument, "generate", problem).advise(format!("choose one like these: {choices}"))
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("first"),
            Self::Middle => f.write_str("middle"),
            Self::Last => f.write_str("last"),
            Self::At(column) => column.fmt(f),
        }
    }
}

impl FromStr for Place {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "first" => Self::First,
            "middle" => Self::Middle,
            "last" => Self::Last,
            column => Self::At(column.parse()?),
        })
    }
}
