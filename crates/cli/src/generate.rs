//! `batchla generate`: test matrices into a file.

use std::io::Write;

use batchla::npy::Writer;
use batchla::{Batch, BatchLayout, Complex, Error, ErrorKind, Scalar, ScalarKind};
use batchla_testkit::{Generator, right_hand_sides};
use clap::Args;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde::Serialize;

use crate::backend::Threads;
use crate::bench::scalar;
use crate::input::Input;
use crate::interrupt::Interrupt;
use crate::memory::bytes;
use crate::output::Output;
use crate::progress::Progress;
use crate::{SUCCESS, print};

/// Bytes of matrices that are made and written together.
const PIECE: usize = 8_000_000;

/// Write test matrices of a kind to a .npy file.
///
/// Matrix b depends on kind, order, type, seed and b alone: never on how many there are. Everything is computed in float64 and rounded once.
/// Random kinds come from a ChaCha stream, the same on every machine.
#[derive(Debug, Args)]
#[command(after_help = examples())]
pub(crate) struct Generate {
    /// The kind, perhaps with a value: uniform, condition:1e8, zero-column:last; or right-hand-sides
    #[arg(value_name = "KIND")]
    kind: String,

    /// How many matrices
    #[arg(long, value_name = "COUNT", default_value_t = 1000)]
    batch: usize,

    /// Their order
    #[arg(long, value_name = "N", default_value_t = 16)]
    order: usize,

    /// Columns of each right-hand side
    #[arg(long, value_name = "K", default_value_t = 1)]
    columns: usize,

    /// Their type: f32, f64, c32 (complex64) or c64 (complex128)
    #[arg(long, value_name = "TYPE", value_parser = scalar, default_value = "f64")]
    scalar: ScalarKind,

    /// What the random numbers start from
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,

    /// Where to write them; - is standard output
    #[arg(short, long, value_name = "OUT")]
    output: String,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,

    /// Print what was written as one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    threads: Threads,
}

fn examples() -> String {
    let mut kinds: Vec<String> = Generator::ALL.map(|generator| generator.to_string()).into();
    kinds.dedup_by_key(|kind| kind.split(':').next().map(str::to_owned));
    let kinds = kinds.chunks(6).map(|line| format!("  {}", line.join(", "))).collect::<Vec<_>>().join("\n");
    format!(
        "\
Kinds, each with a value where it takes one:
{kinds}

Examples:
  batchla generate uniform --batch 10000 --order 64 -o a.npy
  batchla generate condition:1e12 --scalar c32 --seed 7 -o a.npy
  batchla generate planted:zero-column -o a.npy                     every third matrix is singular
  batchla generate right-hand-sides --order 16 --columns 3 -o b.npy
  batchla generate normal -o - | batchla invert - -o x.npy"
    )
}

/// What was written.
#[derive(Serialize)]
struct Made<'a> {
    kind: &'a str,
    scalar: &'static str,
    shape: [usize; 3],
    seed: u64,
    output: String,
}

#[derive(Clone, Copy)]
enum Kind {
    Matrices(Generator),
    RightHandSides,
}

impl Generate {
    /// Runs the command; gives the exit code.
    pub(crate) fn run(&self) -> Result<u8, Error> {
        self.threads.share()?;
        let kind = match self.kind.as_str() {
            "right-hand-sides" => Kind::RightHandSides,
            name if name.starts_with("right-hand-sides:") => {
                let what = format!("{name}: right-hand-sides take no value");
                return Err(Error::new(ErrorKind::Argument, "generate", what)
                    .advise("say with --columns how many columns each has"));
            }
            name => Kind::Matrices(name.parse()?),
        };
        match self.scalar {
            ScalarKind::F32 => self.write::<f32>(kind),
            ScalarKind::F64 => self.write::<f64>(kind),
            ScalarKind::C32 => self.write::<Complex<f32>>(kind),
            ScalarKind::C64 => self.write::<Complex<f64>>(kind),
        }
    }

    fn write<T: Scalar>(&self, kind: Kind) -> Result<u8, Error> {
        let columns = if let Kind::Matrices(_) = kind { self.order } else { self.columns };
        let shape = [self.batch, self.order, columns];
        let interrupt = Interrupt::watch();
        let output = Output::of(&self.output, &Input::from("generated"), false, ".npy")?;
        let matrix = BatchLayout::column_major(1, self.order, columns)?.span().saturating_mul(T::KIND.bytes());
        let piece = (PIECE / matrix.max(1)).max(1);
        self.refuse_giants(matrix.saturating_mul(piece.min(self.batch)))?;
        let mut writer = Writer::<T>::new(output.begin(&interrupt)?, &shape)?;
        let progress =
            std::sync::Arc::new(Progress::new(format!("generate {}", self.kind), self.batch, matrix, self.quiet));
        interrupt.tell(progress.clone());
        for first in (0..self.batch).step_by(piece) {
            let count = piece.min(self.batch - first);
            writer.push(&self.piece::<T>(kind, first, count, columns)?)?;
            progress.advance(count);
        }
        progress.clear();
        writer.flush()?;
        interrupt.finish(|| writer.finish())?;
        let made = Made { kind: &self.kind, scalar: T::KIND.name(), shape, seed: self.seed, output: output.name() };
        let text = if self.json {
            serde_json::to_string(&made)
                .map_err(|e| Error::new(ErrorKind::Io, "generate", "the summary is no JSON").caused_by(e))?
        } else {
            format!(
                "{} {} x {} matrices of {}, {}, written to {}",
                shape[0],
                shape[1],
                shape[2],
                T::KIND,
                self.kind,
                output.name()
            )
        };
        match output {
            // Where the matrices go to standard output, words do not.
            Output::Standard => Ok(writeln!(std::io::stderr(), "{text}").map_or(SUCCESS, |()| SUCCESS)),
            Output::File(_) => print("generate", &text),
        }
    }

    /// Refuses a piece of so many bytes that memory does not hold, before a file is begun: whoever makes matrices takes it for granted.
    fn refuse_giants(&self, piece: usize) -> Result<(), Error> {
        // As it is computed, in up to twice the bytes; rounded; and put together.
        let needed = piece.saturating_mul(4);
        Vec::<u8>::new().try_reserve_exact(needed).map_err(|e| {
            let needed = bytes(needed as f64);
            let what = format!("matrices of order {} take {needed} of memory, which are not to be had", self.order);
            Error::new(ErrorKind::OutOfMemory, "generate", what).advise("ask for a smaller --order").caused_by(e)
        })
    }

    fn piece<T: Scalar>(&self, kind: Kind, first: usize, count: usize, columns: usize) -> Result<Batch<T>, Error> {
        let n = self.order;
        let layout = BatchLayout::column_major(count, n, columns)?;
        let matrix = |b: usize| match kind {
            Kind::Matrices(generator) => Ok(generator.matrix::<T>(n, self.seed, b)),
            Kind::RightHandSides => {
                let one = BatchLayout::column_major(1, n, columns)?;
                right_hand_sides::<T>(one, self.seed.wrapping_add(b as u64)).map(Batch::into_vec)
            }
        };
        let matrices: Vec<Vec<T>> = (first..first + count).into_par_iter().map(matrix).collect::<Result<_, _>>()?;
        Batch::from_vec(matrices.concat(), layout)
    }
}
