//! The files of one input's results, all of them finished or none.

use std::io::Write;

use batchla::npy::{ArrayWriter, ElementKind, Target, Writer};
use batchla::{Error, Outcome, Scalar};

use crate::interrupt::Interrupt;
use crate::operation::{Column, Done, Product, Written};
use crate::output::Output;

/// Where the results of an input go.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    pub(crate) matrices: Option<Output>,
    pub(crate) columns: Vec<Output>,
    pub(crate) outcomes: Option<Output>,
}

/// Results under way.
pub(crate) struct Sink<T: Scalar> {
    matrices: Option<Writer<T>>,
    columns: Vec<ArrayWriter>,
    outcomes: Option<Outcomes>,
}

/// How each matrix fared, as LAPACK's `info` or in words.
enum Outcomes {
    Info(ArrayWriter),
    Csv { target: Target, next: usize },
}

impl Outputs {
    /// All of them.
    pub(crate) fn all(&self) -> Vec<&Output> {
        self.matrices.iter().chain(&self.columns).chain(&self.outcomes).collect()
    }

    /// Begins all of them, for so many matrices of leading dimensions `leading`.
    pub(crate) fn begin<T: Scalar>(
        &self,
        written: &Written,
        leading: &[usize],
        interrupt: &Interrupt,
    ) -> Result<Sink<T>, Error> {
        let matrices = self.matrices.as_ref().zip(written.matrices.as_ref());
        let matrices = matrices.map(|(output, shape)| {
            let target = output.begin(interrupt)?;
            if written.vectors {
                Writer::vectors(target, &shape[..shape.len() - 1])
            } else {
                Writer::new(target, shape)
            }
        });
        let matrices = matrices.transpose()?;
        let columns = self.columns.iter().zip(&written.columns);
        let columns =
            columns.map(|(output, column)| ArrayWriter::new(output.begin(interrupt)?, column.kind, &column.shape));
        let columns = columns.collect::<Result<_, _>>()?;
        let outcomes = self.outcomes.as_ref().map(|output| {
            let mut target = output.begin(interrupt)?;
            if !output.name().ends_with(".csv") {
                return ArrayWriter::new(target, ElementKind::Int32, leading).map(Outcomes::Info);
            }
            let head = writeln!(target, "matrix,outcome,column");
            target.check(head)?;
            Ok(Outcomes::Csv { target, next: 0 })
        });
        Ok(Sink { matrices, columns, outcomes: outcomes.transpose()? })
    }
}

impl<T: Scalar> Sink<T> {
    /// Writes what came of a chunk; gives the memory that serves again.
    pub(crate) fn push(&mut self, done: Done<T>) -> Result<Vec<Vec<T>>, Error> {
        if let (Some(writer), Product::Apart(batch) | Product::InPlace(batch)) = (&mut self.matrices, &done.product) {
            writer.push(batch)?;
        }
        for (writer, column) in self.columns.iter_mut().zip(&done.columns) {
            match column {
                Column::Integers(integers) => writer.push_int32(integers)?,
                Column::Numbers(numbers) => writer.push(numbers)?,
                Column::Reals(reals) => writer.push(reals)?,
            }
        }
        if let Some(outcomes) = &mut self.outcomes {
            outcomes.push(&done.outcomes)?;
        }
        let first = if let Product::InPlace(batch) = done.product { Some(batch.into_vec()) } else { None };
        Ok(first.into_iter().chain(done.spent.into_iter().map(|operand| operand.into_memory())).collect())
    }

    /// Gives all files their names.
    pub(crate) fn finish(mut self, interrupt: &Interrupt) -> Result<(), Error> {
        // What a full disk refuses, it refuses before the first of them has its name.
        if let Some(writer) = &mut self.matrices {
            writer.flush()?;
        }
        self.columns.iter_mut().try_for_each(ArrayWriter::flush)?;
        match &mut self.outcomes {
            Some(Outcomes::Info(writer)) => writer.flush()?,
            Some(Outcomes::Csv { target, .. }) => {
                let flushed = target.flush();
                target.check(flushed)?;
            }
            None => {}
        }
        interrupt.finish(|| {
            self.matrices.map_or(Ok(()), Writer::finish)?;
            self.columns.into_iter().try_for_each(ArrayWriter::finish)?;
            match self.outcomes {
                Some(Outcomes::Info(writer)) => writer.finish(),
                Some(Outcomes::Csv { target, .. }) => target.finish(),
                None => Ok(()),
            }
        })
    }
}

impl Outcomes {
    fn push(&mut self, outcomes: &[Outcome]) -> Result<(), Error> {
        match self {
            // No matrix has so many columns that its info overflows.
            Self::Info(writer) => writer
                .push_int32(&outcomes.iter().map(|o| i32::try_from(o.info()).unwrap_or(i32::MAX)).collect::<Vec<_>>()),
            Self::Csv { target, next } => {
                let mut lines = String::new();
                for (matrix, outcome) in (*next..).zip(outcomes) {
                    lines += &match outcome {
                        Outcome::Regular => format!("{matrix},regular,\n"),
                        Outcome::Singular { column } => format!("{matrix},singular,{column}\n"),
                        Outcome::NotFinite => format!("{matrix},not finite,\n"),
                    };
                }
                *next += outcomes.len();
                let written = target.write_all(lines.as_bytes());
                target.check(written)
            }
        }
    }
}
