//! One input through an operation, in chunks, to its results: whatever the command.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use batchla::npy::{AnyReader, Header, Reader};
use batchla::{AnyBackend, Backend, Batch, Complex, Error, ErrorKind, Options, Prepared, Scalar, ScalarKind};
use clap::Args;

use crate::input::Input;
use crate::interrupt::Interrupt;
use crate::memory::{self, bytes};
use crate::operation::{Chunk, Operand, Operation, Written};
use crate::output::{Output, refuse_clashes, refuse_namesakes};
use crate::pipeline::{self, CHUNKS};
use crate::progress::Progress;
use crate::sink::Outputs;
use crate::summary::{Check, Summary};
use crate::{SOME_FAILED, SUCCESS, print};

/// What the program itself takes, at most a quarter of the bound.
const OWN: usize = 8_000_000;
/// Chunks of a small input, so that reading, computing and writing overlap.
const PIECES: usize = 16;
/// Smaller chunks than so many bytes cost more than they overlap.
const LEAST: usize = 1_000_000;
/// Larger ones leave the caches of a CPU; a GPU wants more at a time.
const MOST: usize = 12_000_000;
const MOST_ON_GPU: usize = 128_000_000;

/// What all commands over streams share.
#[derive(Debug, Args)]
pub(crate) struct Streaming {
    /// Where to write how each matrix fared: a .npy of LAPACK's info (0 regular, k + 1 singular in column k, -1 not finite), or a .csv in words
    #[arg(long, value_name = "FILE")]
    outcomes: Option<String>,

    /// Memory to work in, as 500MB or 2GB (MB = 10^6 bytes); files may be larger. An array of a .npz archive that is neither compressed nor in C order, and
    /// larger than this, is not held against its checksum
    #[arg(long, value_name = "BYTES", default_value = "1GB", value_parser = memory::parse)]
    memory: usize,

    /// Show no progress
    #[arg(short, long)]
    quiet: bool,

    /// Print the summary as JSON: one object a line, one for each input
    #[arg(long)]
    json: bool,
}

/// One run of an operation: the matrices, and where what comes of them goes.
struct Job<'a> {
    input: &'a Input,
    outputs: Outputs,
    /// The opened inputs, where one of them can be opened only once.
    readers: Option<Vec<AnyReader>>,
}

/// How much a job has to do, and how it is cut.
struct Extent {
    written: Written,
    /// How many matrices, and their leading dimensions.
    total: usize,
    leading: Vec<usize>,
    /// Bytes that are read for each.
    own: usize,
    /// Matrices of a chunk.
    count: usize,
}

/// What a chunk is read from.
enum Source<T: Scalar> {
    Stream(Reader<T>),
    Shared(Arc<Batch<T>>),
}

impl Streaming {
    /// Runs an operation over each input, prints the summaries and gives the exit code.
    pub(crate) fn run<O: Operation>(
        &self,
        operation: &O,
        inputs: &[Input],
        others: &[Input],
        output: Option<&str>,
    ) -> Result<u8, Error> {
        let interrupt = Interrupt::watch();
        let mut code = SUCCESS;
        let read: Vec<&Input> = inputs.iter().chain(others).chain(operation.beside()).collect();
        if read.iter().filter(|input| ***input == Input::Standard).count() > 1 {
            return Err(Error::new(ErrorKind::Argument, O::NAME, "standard input can be read once")
                .advise("name files for all inputs but one"));
        }
        refuse_namesakes(O::NAME, inputs)?;
        // What can be refused is refused before there is a result of any input.
        let several = inputs.len() > 1;
        let jobs = inputs.iter().map(|input| self.job(operation, input, others, output, several));
        let jobs = jobs.collect::<Result<Vec<_>, Error>>()?;
        let outputs: Vec<&Output> = jobs.iter().flat_map(|job| job.outputs.all()).collect();
        refuse_clashes(O::NAME, &read, &outputs)?;
        for mut job in jobs {
            let readers = job.readers.take().map_or_else(|| open(O::NAME, job.input, others), Ok)?;
            let summary = match readers[0].header().scalar {
                ScalarKind::F32 => self.typed::<f32, O>(operation, &job, readers, &interrupt),
                ScalarKind::F64 => self.typed::<f64, O>(operation, &job, readers, &interrupt),
                ScalarKind::C32 => self.typed::<Complex<f32>, O>(operation, &job, readers, &interrupt),
                ScalarKind::C64 => self.typed::<Complex<f64>, O>(operation, &job, readers, &interrupt),
            }?;
            let text = if self.json { summary.to_json()? } else { summary.to_string() };
            // Where results go to standard output, words do not.
            if job.outputs.all().contains(&&Output::Standard) {
                let printed = writeln!(std::io::stderr(), "{text}");
                printed
                    .map_err(|e| Error::new(ErrorKind::Io, O::NAME, "the summary cannot be printed").caused_by(e))?;
            } else {
                print(O::NAME, &text)?;
            }
            if !summary.all_well() {
                code = SOME_FAILED;
            }
        }
        Ok(code)
    }

    /// Opens an input and works out where its results go.
    fn job<'a, O: Operation>(
        &self,
        operation: &O,
        input: &'a Input,
        others: &[Input],
        output: Option<&str>,
        several: bool,
    ) -> Result<Job<'a>, Error> {
        let readers = open(O::NAME, input, others)?;
        let columns = self.extent(operation, &headers(&readers))?.written.columns;
        let place = |given: &str, suffix: &str| Output::of(given, input, several, suffix);
        let outputs = Outputs {
            matrices: output.map(|given| place(given, ".npy")).transpose()?,
            columns: columns.iter().map(|column| place(&column.given, column.suffix)).collect::<Result<_, _>>()?,
            outcomes: self.outcomes.as_deref().map(|given| place(given, "-outcomes.npy")).transpose()?,
        };
        // Files are opened again when it is their turn: the system bounds how many are open at a time.
        let again = std::iter::once(input).chain(others).all(|input| input.file().is_some_and(Path::is_file));
        Ok(Job { input, outputs, readers: (!again).then_some(readers) })
    }

    /// Holds the headers against each other and against the memory.
    fn extent<O: Operation>(&self, operation: &O, headers: &[&Header]) -> Result<Extent, Error> {
        let written = operation.written(headers)?;
        let (total, leading) = broadcast(O::NAME, headers)?;
        let own = headers.iter().filter(|header| !serves_all(header, total)).map(|header| header.matrix_bytes());
        let own = own.fold(0, usize::saturating_add);
        let scattered = headers.iter().any(|header| header.fortran_order && header.batch() > 1);
        let on_gpu = operation.backend().is_some_and(|backend| backend.name() == "cuda");
        let count = self.count(O::NAME, total, own.saturating_add(written.extra_bytes), scattered, on_gpu)?;
        Ok(Extent { written, total, leading, own, count })
    }

    fn typed<T: Scalar, O: Operation>(
        &self,
        operation: &O,
        job: &Job<'_>,
        readers: Vec<AnyReader>,
        interrupt: &Interrupt,
    ) -> Result<Summary, Error> {
        let start = Instant::now();
        let Extent { written, total, leading, own, count } = self.extent(operation, &headers(&readers))?;
        let header = readers[0].header().clone();
        let what = format!("{} {}", O::NAME, job.input);
        let progress = Arc::new(Progress::new(what, total, own, self.quiet));
        interrupt.tell(progress.clone());
        let mut sink = job.outputs.begin::<T>(&written, &leading, interrupt)?;
        let mut summary = Summary::new(O::NAME, job.input.to_string(), &job.outputs, &header, operation.backend());
        let mut sources = Vec::new();
        for reader in readers {
            let mut reader = reader.typed::<T>()?;
            let one = if serves_all(reader.header(), total) { reader.next_batch(1)? } else { None };
            sources.push(one.map_or_else(|| Source::Stream(reader), |one| Source::Shared(Arc::new(one))));
        }
        let mut left = total;
        let read = |mut memory: Vec<Vec<T>>| {
            let now = count.min(left);
            left -= now;
            if now == 0 {
                return Ok(None);
            }
            memory.resize_with(sources.len(), Vec::new);
            let operands = sources.iter_mut().zip(memory).map(|(source, memory)| source.next(now, memory));
            Ok(Some(Chunk { operands: operands.collect::<Result<Vec<_>, Error>>()? }))
        };
        let work = |chunk: Chunk<T>| {
            if summary.matrices == 0 {
                let layouts: Vec<_> = chunk.operands.iter().map(|operand| *operand.view().layout()).collect();
                if let (Some(backend), Some(problem)) = (operation.backend(), operation.problem::<T>(&layouts)?) {
                    summary.name_plan(AnyBackend::prepare(backend, &problem, &Options::default())?.plan());
                }
            }
            let begun = Instant::now();
            let done = operation.compute(chunk)?;
            summary.seconds += begun.elapsed().as_secs_f64();
            if let Some(ratios) = done.ratios {
                summary.check.get_or_insert_with(Check::new).add(summary.matrices, ratios);
            }
            summary.add(&done.outcomes);
            Ok(done)
        };
        let write = |done: crate::operation::Done<T>| {
            let matrices = done.outcomes.len();
            let spent = sink.push(done)?;
            progress.advance(matrices);
            Ok(spent)
        };
        let streamed = pipeline::run(read, work, write);
        progress.clear();
        streamed?;
        sink.finish(interrupt)?;
        summary.end(start.elapsed().as_secs_f64());
        Ok(summary)
    }

    /// How many matrices of `each` bytes a chunk has.
    fn count(&self, name: &str, total: usize, each: usize, scattered: bool, on_gpu: bool) -> Result<usize, Error> {
        if total == 0 {
            return Ok(1);
        }
        let each = each.max(1);
        let room = self.memory - (self.memory / 4).min(OWN);
        // In Fortran order a part of the matrices is scattered over the whole file: best all at once.
        if scattered && total.saturating_mul(each) <= room {
            return Ok(total);
        }
        let most = room / CHUNKS / each;
        if most == 0 {
            let chunks = each.saturating_mul(CHUNKS);
            let needed = memory::at_least(chunks.saturating_add((chunks / 3).min(OWN) + 1));
            let bound = bytes(self.memory as f64);
            let what = format!("{CHUNKS} matrices at a time and the program take {needed}, and the bound is {bound}");
            return Err(Error::new(ErrorKind::Argument, name, what).advise(format!("give --memory at least {needed}")));
        }
        let helps = if on_gpu { MOST_ON_GPU } else { MOST };
        let wanted = total.div_ceil(PIECES).clamp(LEAST / each, helps / each);
        Ok(if scattered { most } else { most.min(wanted).max(1) })
    }
}

impl<T: Scalar> Source<T> {
    fn next(&mut self, count: usize, memory: Vec<T>) -> Result<Operand<T>, Error> {
        match self {
            Self::Shared(batch) => Ok(Operand::Shared(batch.clone())),
            // The batches were held against each other: all of them have so many.
            Self::Stream(reader) => reader
                .next_batch_in(count, memory)?
                .map(Operand::Own)
                .ok_or_else(|| Error::new(ErrorKind::Io, "read", format!("{reader:?} ended before the other inputs"))),
        }
    }
}

/// Opens the matrices and what goes with them: numbers of one type.
fn open(operation: &str, input: &Input, others: &[Input]) -> Result<Vec<AnyReader>, Error> {
    let matrices = input.open()?;
    matrices.check_matrices()?;
    let (scalar, shape) = (matrices.header().scalar, matrices.header().shape.clone());
    let mut readers = vec![matrices];
    for other in others {
        let reader = other.open()?;
        // As NumPy has it: one vector a matrix, in the matrices' shape without its last dimension; or one for all.
        let there = &reader.header().shape;
        let vectors = there.len() == 1 || *there == shape[..shape.len() - 1];
        let reader = if vectors { reader.vectors() } else { reader };
        reader.check_matrices()?;
        if reader.header().scalar != scalar {
            let what = format!("{input} holds {scalar} numbers, and {other} {}", reader.header().scalar);
            return Err(
                Error::new(ErrorKind::Argument, operation, what).advise("give both one type, with NumPy's astype")
            );
        }
        readers.push(reader);
    }
    Ok(readers)
}

fn headers(readers: &[AnyReader]) -> Vec<&Header> {
    readers.iter().map(AnyReader::header).collect()
}

/// Whether it is of one matrix, of `total` that are computed.
fn serves_all(header: &Header, total: usize) -> bool {
    header.batch() == 1 && total != 1
}

/// The number and leading dimensions of the results: equal for all operands, but for those of one matrix.
fn broadcast(operation: &str, headers: &[&Header]) -> Result<(usize, Vec<usize>), Error> {
    let widest = headers.iter().find(|header| header.batch() != 1).unwrap_or(&headers[0]);
    let leading = widest.leading();
    match headers.iter().find(|header| header.batch() != 1 && header.leading() != leading) {
        None => Ok((widest.batch(), leading.to_vec())),
        Some(other) => {
            let what = format!("{leading:?} matrices and {:?} operands do not go together", other.leading());
            Err(Error::new(ErrorKind::Shape, operation, what)
                .advise("give equal leading dimensions, or one matrix for all"))
        }
    }
}
