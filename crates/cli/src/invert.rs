//! `batchla invert`: the inverses of matrices.

use batchla::npy::Header;
use batchla::{
    AnyBackend, Batch, BatchLayout, BatchedInvert, Error, ErrorKind, Outcome, Problem, Report, Scalar, SourceKind,
};
use clap::Args;

use crate::backend::BackendChoice;
use crate::input::expand;
use crate::operation::{Chunk, Done, Operation, Product, Written};
use crate::stream::Streaming;
use crate::verify::inverse_ratios;

/// Invert every matrix of a .npy file.
///
/// IN holds square matrices of float32, float64, complex64 or complex128, in C or Fortran order and either byte order: an array of shape
/// (..., n, n). OUT gets their inverses, as an array of the same shape and type, in C order.
///
/// A matrix that has no inverse does not stop the others: its place in OUT is filled with NaN, and the summary names it.
/// It is singular if a pivot is exactly zero, and not finite if it, or its inverse, holds a NaN or an infinity.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Invert {
    /// The matrices: files, quoted patterns, a.npz:name, or - for standard input
    #[arg(value_name = "IN", required = true)]
    inputs: Vec<String>,

    /// Where to write the inverses; a file there is replaced once the new one is whole. A folder gets a file called after each input; - is standard output
    #[arg(short, long, value_name = "OUT")]
    output: String,

    /// Measure the left residual ‖I − XA‖ / (n ‖A‖ ‖X‖ ε) of every inverse, in higher precision
    #[arg(long)]
    check: bool,

    #[command(flatten)]
    streaming: Streaming,

    #[command(flatten)]
    backend: BackendChoice,
}

const EXAMPLES: &str = "\
Examples:
  python3 -c 'import numpy; numpy.save(\"a.npy\", numpy.random.rand(1000, 8, 8))'
  batchla invert a.npy -o inverses.npy
  batchla invert a.npy -o inverses.npy --check --json
  batchla invert a.npy -o inverses.npy --outcomes outcomes.csv      which matrices failed, and why
  batchla invert huge.npy -o inverses.npy --memory 4GB              a file larger than memory
  batchla invert 'run/*.npy' more.npz:blocks -o inverses/           many inputs, a file for each in a folder
  gunzip -c a.npy.gz | batchla invert - -o - | gzip > x.npy.gz      in a pipe
  batchla invert a.npy -o inverses.npy --backend cpu --threads 4
  batchla invert a.npy -o inverses.npy --backend cuda --device 1

Exit code:
  0  all matrices were inverted
  1  the call failed, and nothing was written but the results of inputs before the one that failed
  2  some matrices are singular or not finite, or failed the check; OUT was written";

struct Inversion {
    backend: AnyBackend,
    check: bool,
}

impl Invert {
    /// Runs the command; gives the exit code.
    pub(crate) fn run(&self) -> Result<u8, Error> {
        let inputs = expand(&self.inputs)?;
        let operation = Inversion { backend: self.backend.backend()?, check: self.check };
        self.streaming.run(&operation, &inputs, &[], Some(&self.output))
    }
}

impl Operation for Inversion {
    const NAME: &'static str = "invert";

    fn backend(&self) -> Option<&AnyBackend> {
        Some(&self.backend)
    }

    fn written(&self, headers: &[&Header]) -> Result<Written, Error> {
        refuse_rectangles(Self::NAME, headers[0], "only square matrices have an inverse")?;
        let extra_bytes = if self.check { headers[0].matrix_bytes() } else { 0 };
        Ok(Written { matrices: Some(headers[0].shape.clone()), extra_bytes, ..Written::default() })
    }

    fn problem<T: Scalar>(&self, layouts: &[BatchLayout]) -> Result<Option<Problem>, Error> {
        Problem::invert::<T>(SourceKind::InPlace, layouts[0], layouts[0]).map(Some)
    }

    fn compute<T: Scalar>(&self, mut chunk: Chunk<T>) -> Result<Done<T>, Error> {
        let a = chunk.operands.remove(0);
        let outcomes = |report: Report<T>| report.outcomes().map(|(_, outcome)| outcome).collect::<Vec<Outcome>>();
        if !self.check {
            let mut batch = a.into_batch();
            let outcomes = outcomes(self.backend.invert_in_place(&mut batch)?);
            return Ok(Done::new(outcomes, Product::InPlace(batch), Vec::new()));
        }
        let mut x = Batch::zeros(*a.view().layout())?;
        let outcomes = outcomes(self.backend.invert_into(a.view(), &mut x)?);
        let ratios = Some(inverse_ratios(a.view(), x.view(), &outcomes));
        Ok(Done { ratios, ..Done::new(outcomes, Product::Apart(x), vec![a]) })
    }
}

/// Refuses matrices that are not square, before anything is computed or written.
pub(crate) fn refuse_rectangles(operation: &str, header: &Header, advice: &str) -> Result<(), Error> {
    if header.rows() == header.cols() {
        return Ok(());
    }
    let what = format!("the matrices are {} x {}, not square ({header})", header.rows(), header.cols());
    Err(Error::new(ErrorKind::Shape, operation, what).advise(advice))
}
