//! `batchla invert`: the inverses of a file's matrices into another file.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use batchla::npy::{AnyReader, Header, Reader, Writer};
use batchla::{
    AnyBackend, Backend, BatchLayout, BatchedInvert, Complex, Error, ErrorKind, HostPrepared, Options, Outcome,
    Prepared, Problem, Scalar, ScalarKind, SourceKind,
};
use batchla_testkit::{LIMIT, inverse_ratios};
use clap::Args;

use crate::backend::BackendChoice;
use crate::summary::{Check, Summary};
use crate::{SOME_FAILED, SUCCESS};

/// Bytes of matrices in memory at a time: a file may be larger than memory.
const PART: usize = 256 << 20;

/// Invert every matrix of a .npy file.
///
/// IN.npy holds square matrices of float32, float64, complex64 or complex128, in C or Fortran order: an array of shape
/// (..., n, n). OUT.npy gets their inverses, as an array of the same shape and type, in C order.
///
/// A matrix that has no inverse does not stop the others: its place in OUT.npy is filled with NaN, and the summary names it.
/// It is singular if a pivot is exactly zero, and not finite if it, or its inverse, holds a NaN or an infinity.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Invert {
    /// The matrices, of shape (..., n, n)
    #[arg(value_name = "IN.npy")]
    input: PathBuf,

    /// Where to write the inverses; a file there is replaced once the new one is whole
    #[arg(short, long, value_name = "OUT.npy")]
    output: PathBuf,

    /// Measure the left residual ‖I − XA‖ / (n ‖A‖ ‖X‖ ε) of every inverse, in higher precision
    #[arg(long)]
    check: bool,

    /// Print the summary as one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    backend: BackendChoice,
}

const EXAMPLES: &str = "\
Examples:
  batchla invert blocks.npy -o inverses.npy
  batchla invert blocks.npy -o inverses.npy --check --json
  batchla invert blocks.npy -o inverses.npy --backend cpu --threads 4
  batchla invert blocks.npy -o inverses.npy --backend cuda --device 1
  python3 -c 'import numpy; numpy.save(\"a.npy\", numpy.random.rand(1000, 8, 8))'

Exit code:
  0  all matrices were inverted
  1  the call failed, and nothing was written
  2  some matrices are singular or not finite, or failed the check; OUT.npy was written";

impl Invert {
    /// Runs the command and prints its summary; gives the exit code.
    pub(crate) fn run(&self) -> Result<u8, Error> {
        let reader = AnyReader::open(&self.input)?;
        self.refuse(reader.header())?;
        let backend = self.backend.backend()?;
        let summary = match reader.header().scalar {
            ScalarKind::F32 => self.invert::<f32>(&backend, reader.typed()?),
            ScalarKind::F64 => self.invert::<f64>(&backend, reader.typed()?),
            ScalarKind::C32 => self.invert::<Complex<f32>>(&backend, reader.typed()?),
            ScalarKind::C64 => self.invert::<Complex<f64>>(&backend, reader.typed()?),
        }?;
        let text = if self.json { summary.to_json()? } else { summary.to_string() };
        let printed = writeln!(std::io::stdout(), "{text}");
        printed.map_err(|e| Error::new(ErrorKind::Io, "invert", "the summary cannot be printed").caused_by(e))?;
        Ok(if summary.all_well() { SUCCESS } else { SOME_FAILED })
    }

    /// Refuses what can be seen to fail before anything is computed or written.
    fn refuse(&self, header: &Header) -> Result<(), Error> {
        let (input, output) = (self.input.display(), self.output.display());
        if header.rows() != header.cols() {
            let what = format!("the matrices of {input} are {} x {}, not square", header.rows(), header.cols());
            return Err(Error::new(ErrorKind::Shape, "invert", what).advise("only square matrices have an inverse"));
        }
        let same =
            fs::canonicalize(&self.input).ok().zip(fs::canonicalize(&self.output).ok()).is_some_and(|(a, b)| a == b);
        if same {
            let what = format!("the output {output} is the input");
            return Err(Error::new(ErrorKind::Argument, "invert", what).advise("name another file with --output"));
        }
        Ok(())
    }

    fn invert<T: Scalar>(&self, backend: &AnyBackend, mut reader: Reader<T>) -> Result<Summary, Error> {
        let header = reader.header().clone();
        let mut writer = Writer::create(&self.output, &header.shape)?;
        let mut summary = Summary::new(&self.input, &self.output, &header, backend);
        summary.check = self.check.then(|| Check::new(LIMIT));
        let matrix = header.rows() * header.cols() * T::KIND.bytes();
        let count = (PART / matrix.max(1)).max(1);
        while let Some(a) = reader.next_batch(count)? {
            if summary.matrices == 0 {
                summary.name_plan(plan::<T>(backend, a.layout())?.plan());
            }
            let start = Instant::now();
            let inverse = backend.invert(&a)?;
            summary.seconds += start.elapsed().as_secs_f64();
            writer.push(&inverse.batch)?;
            let outcomes: Vec<Outcome> = inverse.outcomes().map(|(_, outcome)| outcome).collect();
            if let Some(check) = &mut summary.check {
                check.add(summary.matrices, inverse_ratios(&a, &inverse.batch, &outcomes));
            }
            summary.add(&outcomes);
        }
        writer.finish()?;
        Ok(summary)
    }
}

/// What the backend prepares for such a batch.
fn plan<T: Scalar>(backend: &AnyBackend, layout: &BatchLayout) -> Result<HostPrepared, Error> {
    let problem = Problem::invert::<T>(SourceKind::Matrix, *layout, layout.packed()?)?;
    backend.prepare(&problem, &Options::default())
}
