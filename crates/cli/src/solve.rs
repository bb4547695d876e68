//! `batchla solve`: linear systems.

use batchla::npy::Header;
use batchla::{AnyBackend, BatchLayout, BatchedSolve, Error, ErrorKind, Problem, Scalar, SourceKind, Transpose};
use clap::{Args, ValueEnum};

use crate::backend::BackendChoice;
use crate::input::Input;
use crate::invert::refuse_rectangles;
use crate::operation::{Chunk, Done, Operation, Product, Written};
use crate::stream::Streaming;

/// Solve A X = B for every matrix of a .npy file.
///
/// A holds square matrices, an array of shape (..., n, n). B holds right-hand sides of the same type: (..., n, k), or one vector a matrix,
/// (..., n). The leading dimensions are the same; a single matrix serves all right-hand sides, and a single right-hand side all matrices: (n, k), or a
/// vector (n,). Many vectors for a single matrix are of shape (..., n, 1): as (..., n) they would read like one right-hand side of n columns.
/// X gets the solutions, in the shape of B, with the leading dimensions of A where B is single.
///
/// A matrix that is singular or not finite does not stop the others: its solutions are NaN, and the summary names it.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Solve {
    /// The matrices: a file, a.npz:name, or - for standard input
    #[arg(value_name = "A")]
    a: String,

    /// The right-hand sides
    #[arg(value_name = "B")]
    b: String,

    /// Where to write the solutions; - is standard output
    #[arg(short, long, value_name = "X")]
    output: String,

    /// Which form of A
    #[arg(long, value_enum, default_value_t = Form::Plain)]
    form: Form,

    #[command(flatten)]
    streaming: Streaming,

    #[command(flatten)]
    backend: BackendChoice,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Form {
    /// A X = B
    Plain,
    /// Aᵀ X = B
    Transposed,
    /// Aᴴ X = B
    Conjugated,
}

const EXAMPLES: &str = "\
Examples:
  python3 -c 'import numpy as np; np.savez(\"s.npz\", a=np.random.rand(1000, 8, 8), b=np.random.rand(1000, 8))'
  batchla solve s.npz:a s.npz:b -o x.npy
  batchla solve a.npy b.npy -o x.npy --form transposed
  batchla solve one_matrix.npy many_right_hand_sides.npy -o x.npy
  batchla verify a.npy x.npy --rhs b.npy                            is it right?

Exit code:
  0  all systems were solved
  1  the call failed, and nothing was written
  2  some matrices are singular, or some matrices or solutions not finite; X was written";

struct Solution {
    backend: AnyBackend,
    transpose: Transpose,
}

impl Solve {
    /// Runs the command; gives the exit code.
    pub(crate) fn run(&self) -> Result<u8, Error> {
        let transpose = match self.form {
            Form::Plain => Transpose::None,
            Form::Transposed => Transpose::Transpose,
            Form::Conjugated => Transpose::ConjugateTranspose,
        };
        let operation = Solution { backend: self.backend.backend()?, transpose };
        let [a, b] = [&self.a, &self.b].map(|given| Input::from(given.as_str()));
        self.streaming.run(&operation, &[a], &[b], Some(&self.output))
    }
}

impl Operation for Solution {
    const NAME: &'static str = "solve";

    fn backend(&self) -> Option<&AnyBackend> {
        Some(&self.backend)
    }

    fn written(&self, headers: &[&Header]) -> Result<Written, Error> {
        let (a, b) = (headers[0], headers[1]);
        refuse_rectangles(Self::NAME, a, "only square systems are solved")?;
        refuse_heights(Self::NAME, a, b)?;
        let leading = if a.batch() == 1 { b.leading() } else { a.leading() };
        let shape = [leading, &b.shape[b.leading().len()..]].concat();
        let matrices = Some(shape);
        Ok(Written { matrices, vectors: b.vectors, extra_bytes: b.matrix_bytes(), ..Written::default() })
    }

    fn problem<T: Scalar>(&self, layouts: &[BatchLayout]) -> Result<Option<Problem>, Error> {
        let x = layouts[1].packed()?.with_batch(layouts[0].batch().max(layouts[1].batch()))?;
        Problem::solve::<T>(SourceKind::Matrix, layouts[0], Some(layouts[1]), x, self.transpose).map(Some)
    }

    fn compute<T: Scalar>(&self, chunk: Chunk<T>) -> Result<Done<T>, Error> {
        let [a, b] = [0, 1].map(|k| chunk.operands[k].view());
        let solution = self.backend.solve_transposed(a, b, self.transpose)?;
        let outcomes = solution.outcomes().map(|(_, outcome)| outcome).collect();
        Ok(Done::new(outcomes, Product::Apart(solution.x), chunk.operands))
    }
}

/// Refuses right-hand sides or solutions that do not fit their matrices.
pub(crate) fn refuse_heights(operation: &str, a: &Header, b: &Header) -> Result<(), Error> {
    if a.rows() == b.rows() {
        return Ok(());
    }
    let what = format!("matrices of order {} ({a}) and right-hand sides of {} rows ({b})", a.rows(), b.rows());
    Err(Error::new(ErrorKind::Shape, operation, what)
        .advise("right-hand sides have the shape (..., n, k), or (..., n) for one vector a matrix; many vectors for one matrix (..., n, 1): b[..., None]"))
}
