//! `batchla verify`: results held against what they were computed from.

use std::sync::Mutex;

use batchla::npy::{Header, IntegerReader};
use batchla::{
    AnyBackend, BatchLayout, BatchRef, Error, ErrorKind, MatrixRef, Outcome, Problem, Real, Scalar, Transpose,
};
use batchla_testkit::{Ratios, factorization_ratio, inverse_ratio, solution_ratio};
use clap::Args;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use crate::backend::Threads;
use crate::input::Input;
use crate::invert::refuse_rectangles;
use crate::operation::{Chunk, Done, Operation, Product, Written};
use crate::solve::refuse_heights;
use crate::stream::Streaming;

/// Hold a result against the matrices that it was computed from.
///
/// RESULT holds the inverses of A; or with --rhs the solutions of A X = B; or with --pivots the factors of A. Each matrix gets a residual
/// ratio, as LAPACK's own tests use it, in a precision about twice that of float64: ‖I − XA‖ / (n ‖A‖ ‖X‖ ε), ‖B − AX‖ / (n ‖A‖ ‖X‖ ε),
/// ‖PA − LU‖ / (n ‖A‖ ε). It is a few units for a good result, and below 30. Any program may have computed RESULT.
///
/// Results that hold a NaN or an infinity are counted, named and not compared.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Verify {
    /// The matrices: a file, a.npz:name, or - for standard input
    #[arg(value_name = "A")]
    a: String,

    /// The result
    #[arg(value_name = "RESULT")]
    result: String,

    /// RESULT holds solutions of A X = B, and this is B
    #[arg(long, value_name = "B")]
    rhs: Option<String>,

    /// RESULT holds factors, and these are their exchanges of rows: int32 or int64, counted from 0, in C order
    #[arg(long, value_name = "PIVOTS", conflicts_with = "rhs")]
    pivots: Option<String>,

    #[command(flatten)]
    streaming: Streaming,

    #[command(flatten)]
    threads: Threads,
}

const EXAMPLES: &str = "\
Examples:
  batchla verify a.npy inverses.npy
  batchla verify a.npy x.npy --rhs b.npy --json
  batchla verify a.npy lu.npy --pivots pivots.npy

Exit code:
  0  every ratio is below 30
  1  the call failed
  2  some ratio is not, or some result is not finite";

/// What a result is said to be.
enum Claim {
    Inverse,
    /// Of the operand after it.
    Solution,
    /// The exchanges come in the order of the chunks.
    Factors {
        exchanges: Mutex<IntegerReader>,
        file: Input,
    },
}

impl Verify {
    /// Runs the command; gives the exit code.
    pub(crate) fn run(&self) -> Result<u8, Error> {
        self.threads.share()?;
        let claim = match &self.pivots {
            Some(pivots) => {
                Claim::Factors { exchanges: Mutex::new(IntegerReader::open(pivots)?), file: Input::File(pivots.into()) }
            }
            None if self.rhs.is_some() => Claim::Solution,
            None => Claim::Inverse,
        };
        let others = [Some(&self.result), self.rhs.as_ref()].into_iter().flatten();
        let others: Vec<Input> = others.map(|given| Input::from(given.as_str())).collect();
        self.streaming.run(&claim, &[Input::from(self.a.as_str())], &others, None)
    }
}

impl Operation for Claim {
    const NAME: &'static str = "verify";

    fn backend(&self) -> Option<&AnyBackend> {
        None
    }

    fn beside(&self) -> Option<&Input> {
        if let Self::Factors { file, .. } = self { Some(file) } else { None }
    }

    fn written(&self, headers: &[&Header]) -> Result<Written, Error> {
        let (a, result) = (headers[0], headers[1]);
        refuse_rectangles(Self::NAME, a, "only square matrices have inverses, solutions and factors")?;
        match self {
            Self::Solution => {
                refuse_heights(Self::NAME, a, result)?;
                let b = headers[2];
                refuse_heights(Self::NAME, a, b)?;
                if result.cols() != b.cols() {
                    let (there, wanted) = (result.cols(), b.cols());
                    let what =
                        format!("solutions of {there} columns ({result}) for right-hand sides of {wanted} ({b})");
                    return Err(Error::new(ErrorKind::Shape, Self::NAME, what)
                        .advise("name the solutions of these right-hand sides"));
                }
            }
            Self::Inverse | Self::Factors { .. } if (a.rows(), a.cols()) != (result.rows(), result.cols()) => {
                let what = format!("the matrices ({a}) and the result ({result}) differ in order");
                return Err(Error::new(ErrorKind::Shape, Self::NAME, what).advise("name the result of these matrices"));
            }
            _ => {}
        }
        if result.batch() < a.batch() || headers.get(2).is_some_and(|b| b.batch() > result.batch()) {
            let what = format!("{} results for {} matrices", result.batch(), a.batch());
            return Err(Error::new(ErrorKind::Shape, Self::NAME, what).advise("name the result of these matrices"));
        }
        if let Self::Factors { exchanges, .. } = self {
            let pivots = exchanges.lock().map(|pivots| pivots.shape().to_vec()).unwrap_or_default();
            if pivots != a.shape[..a.shape.len() - 1] {
                let what = format!("pivots of shape {pivots:?} for matrices of shape {:?}", a.shape);
                return Err(Error::new(ErrorKind::Shape, Self::NAME, what).advise("pivots have the shape (..., n)"));
            }
        }
        Ok(Written::default())
    }

    fn problem<T: Scalar>(&self, _: &[BatchLayout]) -> Result<Option<Problem>, Error> {
        Ok(None)
    }

    fn compute<T: Scalar>(&self, chunk: Chunk<T>) -> Result<Done<T>, Error> {
        let (a, result) = (chunk.operands[0].view(), chunk.operands[1].view());
        let outcomes: Vec<Outcome> = (0..result.batch()).into_par_iter().map(|b| finite(result.matrix(b))).collect();
        let ratios = match self {
            Self::Inverse => inverse_ratios(a, result, &outcomes),
            Self::Solution => {
                let rhs = chunk.operands[2].view();
                ratios(&outcomes, |k| Some(solution_ratio(of(a, k)?, Transpose::None, result.matrix(k)?, of(rhs, k)?)))
            }
            Self::Factors { exchanges: pivots, .. } => {
                let n = a.layout().rows();
                let mut reader =
                    pivots.lock().map_err(|_| Error::new(ErrorKind::Io, Self::NAME, "pivots were lost"))?;
                let pivots = exchanges(&reader.next(n * result.batch())?, n)?;
                let exchanges = |k: usize| pivots.get(k * n..(k + 1) * n);
                ratios(&outcomes, |k| Some(factorization_ratio(a.matrix(k)?, result.matrix(k)?, exchanges(k)?)))
            }
        };
        Ok(Done { ratios: Some(ratios), ..Done::new(outcomes, Product::None, chunk.operands) })
    }
}

/// The residual ratios of inverses, by as many threads as there are.
pub(crate) fn inverse_ratios<T: Scalar>(a: BatchRef<'_, T>, x: BatchRef<'_, T>, outcomes: &[Outcome]) -> Ratios {
    ratios(outcomes, |k| Some(inverse_ratio(of(a, k)?, x.matrix(k)?)))
}

/// The ratios of the regular ones; one that cannot be had fails.
fn ratios(outcomes: &[Outcome], ratio: impl Fn(usize) -> Option<f64> + Sync) -> Ratios {
    let regular: Vec<usize> = (0..outcomes.len()).filter(|&k| outcomes[k].is_regular()).collect();
    let all: Vec<(usize, f64)> = regular.into_par_iter().map(|k| (k, ratio(k).unwrap_or(f64::INFINITY))).collect();
    let mut ratios = Ratios::default();
    all.into_iter().for_each(|(k, ratio)| ratios.add(k, ratio));
    ratios
}

/// Matrix `k`, or the one that serves all.
fn of<T: Scalar>(batch: BatchRef<'_, T>, k: usize) -> Option<MatrixRef<'_, T>> {
    batch.matrix(if batch.batch() == 1 { 0 } else { k })
}

fn finite<T: Scalar>(matrix: Option<MatrixRef<'_, T>>) -> Outcome {
    let number = |x: T| x.re().to_f64().is_finite() && x.im().to_f64().is_finite();
    let finite =
        |matrix: MatrixRef<'_, T>| (0..matrix.rows()).all(|i| (0..matrix.cols()).all(|j| number(matrix.at(i, j))));
    if matrix.is_some_and(finite) { Outcome::Regular } else { Outcome::NotFinite }
}

/// Exchanges that are some: step k exchanges row k with itself or a later one.
fn exchanges(pivots: &[i64], n: usize) -> Result<Vec<u32>, Error> {
    let exchange = |(at, &pivot): (usize, &i64)| {
        let row = u32::try_from(pivot).ok().filter(|&row| (at % n..n).contains(&(row as usize)));
        row.ok_or_else(|| {
            let what = format!("step {} cannot exchange row {pivot} in a matrix of order {n}", at % n);
            Error::new(ErrorKind::Argument, "verify", what).advise("pivots count rows from 0, and from their step on")
        })
    };
    pivots.iter().enumerate().map(exchange).collect()
}
