//! MAGMA, through PyTorch in a process of its own: asked one measurement at a time, while ours wait.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use batchla_core::{Error, ErrorKind, ScalarKind};
use batchla_testkit::LIMIT;

use crate::figure::Routine;

const SCRIPT: &str = include_str!("magma.py");

/// A Python that has PyTorch with MAGMA, ready to measure.
#[derive(Debug)]
pub(crate) struct Magma {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    version: String,
}

/// What MAGMA took.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    /// The largest residual ratio of the matrices looked at.
    pub(crate) residual: f64,
    /// Milliseconds of a copy of the input, which PyTorch makes in each repetition.
    pub(crate) copy_ms: f64,
    /// Milliseconds of each repetition without that copy.
    pub(crate) times: Vec<f64>,
}

impl Magma {
    /// Starts a Python; the error says why it cannot measure.
    pub(crate) fn start(python: &str) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("MAGMA is left out: {python} cannot be run: {error}");
        let mut command = Command::new(python);
        let mut process = command
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .map_err(failed)?;
        let (Some(questions), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(format!("MAGMA is left out: {python} has no standard input and output"));
        };
        let mut answers = BufReader::new(answers);
        let mut version = String::new();
        answers.read_line(&mut version).map_err(failed)?;
        if version.is_empty() {
            let _ = process.wait();
            return Err(format!("MAGMA is left out: {python} has no PyTorch with MAGMA that sees this GPU"));
        }
        Ok(Self { process, questions, answers, version: version.trim().to_owned() })
    }

    /// Whose MAGMA, in which version.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// One measurement, on random matrices as ours are.
    pub(crate) fn measure(
        &mut self,
        routine: Routine,
        scalar: ScalarKind,
        order: usize,
        batch: usize,
        repetitions: usize,
    ) -> Result<Answer, Error> {
        let failed = |what: String| Error::new(ErrorKind::Unsupported, "MAGMA", what);
        let lost = |error: std::io::Error| failed(format!("its process is lost: {error}"));
        writeln!(self.questions, "{} {scalar} {order} {batch} {repetitions}", routine.name()).map_err(lost)?;
        self.questions.flush().map_err(lost)?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(lost)?;
        parse(&line).map_err(failed)
    }
}

impl Drop for Magma {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads an answer; its time counts only if its residuals are small.
fn parse(line: &str) -> Result<Answer, String> {
    let numbers: Option<Vec<f64>> = line.split_whitespace().map(|word| word.parse().ok()).collect();
    let Some([residual, copy_ms, whole @ ..]) = numbers.as_deref() else {
        return Err(if line.is_empty() { "its process ended".to_owned() } else { line.trim().to_owned() });
    };
    if residual.is_nan() || *residual >= LIMIT {
        return Err(format!("its result is wrong: residual ratio {residual:.1}, not below {LIMIT}"));
    }
    let times: Vec<f64> = whole.iter().map(|time| time - copy_ms).collect();
    if times.is_empty() || !times.iter().all(|time| *time > 0.0) {
        return Err("its times are shorter than the copy of the input".to_owned());
    }
    Ok(Answer { residual: *residual, copy_ms: *copy_ms, times })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_times_without_the_copy_of_a_right_result() {
        let answer = parse("0.25 0.5 2.0 1.5 1.75\n").unwrap();
        assert_eq!(answer, Answer { residual: 0.25, copy_ms: 0.5, times: vec![1.5, 1.0, 1.25] });
        assert!(parse("").unwrap_err().contains("ended"));
        assert!(parse("failed: out of memory\n").unwrap_err().contains("out of memory"));
        assert!(parse("nan 0.5 2.0").unwrap_err().contains("wrong"));
        assert!(parse("31.0 0.5 2.0").unwrap_err().contains("wrong"));
        assert!(parse("0.1 0.5").unwrap_err().contains("shorter"));
        assert!(parse("0.1 0.5 0.25").unwrap_err().contains("shorter"));
    }

    #[test]
    fn a_python_that_is_not_there_is_named() {
        assert!(Magma::start("/no/such/python").unwrap_err().contains("/no/such/python"));
    }
}
