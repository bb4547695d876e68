//! `batchla factorize`: LU with partial pivoting.

use batchla::npy::{ElementKind, Header};
use batchla::{AnyBackend, BatchLayout, BatchedFactorize, Error, Problem, Scalar, SourceKind};
use clap::Args;

use crate::backend::BackendChoice;
use crate::input::expand;
use crate::invert::refuse_rectangles;
use crate::operation::{Beside, Chunk, Column, Done, Operation, Product, Written};
use crate::stream::Streaming;

/// Factor every matrix of a .npy file: A = P L U.
///
/// IN holds square matrices, an array of shape (..., n, n). LU gets, in an array of the same shape and type, L below the diagonal (ones on
/// it, which are not stored) and U on and above it. PIVOTS gets the exchanges of rows, int32 of shape (..., n), counted from 0: step k
/// exchanged row k with the row that pivot k names, as scipy.linalg.lu_factor has them.
///
/// A zero pivot does not stop the factorisation: the summary names the matrix, and its factors are those of LAPACK's getrf.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Factorize {
    /// The matrices: files, quoted patterns, a.npz:name, or - for standard input
    #[arg(value_name = "IN", required = true)]
    inputs: Vec<String>,

    /// Where to write the factors; a folder gets a file called after each input; - is standard output
    #[arg(short, long, value_name = "LU")]
    output: String,

    /// Where to write the exchanges of rows
    #[arg(short, long, value_name = "PIVOTS")]
    pivots: String,

    #[command(flatten)]
    streaming: Streaming,

    #[command(flatten)]
    backend: BackendChoice,
}

const EXAMPLES: &str = "\
Examples:
  batchla factorize a.npy -o lu.npy -p pivots.npy
  batchla factorize 'run/*.npy' -o factors/ -p factors/ --json
  batchla verify a.npy lu.npy --pivots pivots.npy                   is it right?

  In Python, a right-hand side b with the factors of matrix 7:
  scipy.linalg.lu_solve((numpy.load('lu.npy')[7], numpy.load('pivots.npy')[7]), b)

Exit code:
  0  all matrices were factored
  1  the call failed, and nothing was written but the results of inputs before the one that failed
  2  some matrices are singular or not finite; the files were written";

struct Factorization<'a> {
    backend: AnyBackend,
    pivots: &'a str,
}

impl Factorize {
    /// Runs the command; gives the exit code.
    pub(crate) fn run(&self) -> Result<u8, Error> {
        let inputs = expand(&self.inputs)?;
        let operation = Factorization { backend: self.backend.backend()?, pivots: &self.pivots };
        self.streaming.run(&operation, &inputs, &[], Some(&self.output))
    }
}

impl Operation for Factorization<'_> {
    const NAME: &'static str = "factorize";

    fn backend(&self) -> Option<&AnyBackend> {
        Some(&self.backend)
    }

    fn written(&self, headers: &[&Header]) -> Result<Written, Error> {
        let header = headers[0];
        refuse_rectangles(Self::NAME, header, "rectangular matrices are not factored")?;
        let shape = header.shape[..header.shape.len() - 1].to_vec();
        let pivots = Beside { given: self.pivots.to_owned(), suffix: "-pivots.npy", kind: ElementKind::Int32, shape };
        // The exchanges, as they are computed and as they are written.
        let extra_bytes = 2 * 4 * header.rows();
        Ok(Written { matrices: Some(header.shape.clone()), columns: vec![pivots], extra_bytes, ..Written::default() })
    }

    fn problem<T: Scalar>(&self, layouts: &[BatchLayout]) -> Result<Option<Problem>, Error> {
        Problem::factorize::<T>(SourceKind::InPlace, layouts[0], layouts[0]).map(Some)
    }

    fn compute<T: Scalar>(&self, mut chunk: Chunk<T>) -> Result<Done<T>, Error> {
        let mut batch = chunk.operands.remove(0).into_batch();
        let record = self.backend.factorize_in_place(&mut batch)?;
        let outcomes = record.report().read_outcomes()?;
        // Orders are far below 2³¹.
        let pivots = record.read_pivots()?.into_iter().map(|row| row as i32).collect();
        let columns = vec![Column::Integers(pivots)];
        Ok(Done { columns, ..Done::new(outcomes, Product::InPlace(batch), Vec::new()) })
    }
}
