//! `batchla det`: determinants.

use batchla::npy::{ElementKind, Header};
use batchla::{AnyBackend, BatchLayout, BatchedDeterminant, Error, Problem, Scalar, ScalarKind, SourceKind};
use clap::Args;

use crate::backend::BackendChoice;
use crate::input::expand;
use crate::invert::refuse_rectangles;
use crate::operation::{Beside, Chunk, Column, Done, Operation, Product, Written};
use crate::stream::Streaming;

/// Compute the determinant of every matrix of a .npy file.
///
/// IN holds square matrices, an array of shape (..., n, n). The results have the shape (...). A plain determinant overflows or underflows
/// where its type does; sign (for complex types a phase) and logarithm of the modulus, as numpy.linalg.slogdet gives them, do not.
///
/// The determinant of a singular matrix is 0 (sign 0, logarithm -inf), that of one that is not finite NaN; the summary names both.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
#[group(id = "results", required = true, multiple = true, args = ["output", "sign", "log"])]
pub(crate) struct Det {
    /// The matrices: files, quoted patterns, a.npz:name, or - for standard input
    #[arg(value_name = "IN", required = true)]
    inputs: Vec<String>,

    /// Where to write the determinants; a folder gets a file called after each input; - is standard output
    #[arg(short, long, value_name = "DET")]
    output: Option<String>,

    /// Where to write the signs, or phases
    #[arg(long, value_name = "SIGN")]
    sign: Option<String>,

    /// Where to write the natural logarithms of the moduli
    #[arg(long, value_name = "LOG")]
    log: Option<String>,

    #[command(flatten)]
    streaming: Streaming,

    #[command(flatten)]
    backend: BackendChoice,
}

const EXAMPLES: &str = "\
Examples:
  batchla det a.npy -o det.npy
  batchla det a.npy --sign sign.npy --log log.npy                   numpy.linalg.slogdet
  batchla generate normal --batch 5 --order 8 -o - | batchla det - -o det.npy

Exit code:
  0  all determinants are there
  1  the call failed, and nothing was written but the results of inputs before the one that failed
  2  some matrices are singular or not finite; the files were written";

struct Determination<'a> {
    backend: AnyBackend,
    wanted: &'a Det,
}

impl Det {
    /// Runs the command; gives the exit code.
    pub(crate) fn run(&self) -> Result<u8, Error> {
        let inputs = expand(&self.inputs)?;
        let operation = Determination { backend: self.backend.backend()?, wanted: self };
        self.streaming.run(&operation, &inputs, &[], None)
    }

    fn given(&self) -> [(Option<&String>, &'static str); 3] {
        [(self.output.as_ref(), "-det.npy"), (self.sign.as_ref(), "-sign.npy"), (self.log.as_ref(), "-log.npy")]
    }
}

impl Operation for Determination<'_> {
    const NAME: &'static str = "det";

    fn backend(&self) -> Option<&AnyBackend> {
        Some(&self.backend)
    }

    fn written(&self, headers: &[&Header]) -> Result<Written, Error> {
        let header = headers[0];
        refuse_rectangles(Self::NAME, header, "only square matrices have a determinant")?;
        let real = match header.scalar {
            ScalarKind::C32 => ScalarKind::F32,
            ScalarKind::C64 => ScalarKind::F64,
            real => real,
        };
        let columns = self.wanted.given().into_iter().zip([header.scalar, header.scalar, real]);
        let columns = columns.filter_map(|((given, suffix), kind)| {
            let (kind, shape) = (ElementKind::Scalar(kind), header.leading().to_vec());
            given.map(|given| Beside { given: given.clone(), suffix, kind, shape })
        });
        // The determinants, and what is written of them.
        let extra_bytes = 6 * header.scalar.bytes();
        Ok(Written { columns: columns.collect(), extra_bytes, ..Written::default() })
    }

    fn problem<T: Scalar>(&self, layouts: &[BatchLayout]) -> Result<Option<Problem>, Error> {
        Problem::determinant::<T>(SourceKind::Matrix, layouts[0]).map(Some)
    }

    fn compute<T: Scalar>(&self, chunk: Chunk<T>) -> Result<Done<T>, Error> {
        let determinants = self.backend.determinant(chunk.operands[0].view())?;
        let outcomes = determinants.outcomes().map(|(_, outcome)| outcome).collect();
        let values = determinants.values();
        let columns = [
            self.wanted.output.is_some().then(|| Column::Numbers(values.iter().map(|d| d.value()).collect())),
            self.wanted.sign.is_some().then(|| Column::Numbers(values.iter().map(|d| d.sign).collect())),
            self.wanted.log.is_some().then(|| Column::Reals(values.iter().map(|d| d.log_abs).collect())),
        ];
        let columns = columns.into_iter().flatten().collect();
        Ok(Done { columns, ..Done::new(outcomes, Product::None, chunk.operands) })
    }
}
