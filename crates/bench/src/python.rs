//! Peers in Python, MAGMA through PyTorch and NumPy, in a process of their own: asked one measurement at a time, while ours wait.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use batchla_core::{Error, ErrorKind, ScalarKind};
use batchla_testkit::LIMIT;

use crate::figure::Routine;

/// A Python that has a peer, ready to measure.
#[derive(Debug)]
pub(crate) struct Python {
    peer: &'static str,
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    version: String,
}

/// What a peer took.
#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    /// The largest residual ratio of the matrices looked at.
    pub(crate) residual: f64,
    /// Milliseconds of a copy of the input, where it makes one in each repetition.
    pub(crate) copy_ms: f64,
    /// Milliseconds of each repetition without that copy.
    pub(crate) times: Vec<f64>,
}

impl Python {
    /// Starts one that has PyTorch with MAGMA; the error says why it cannot measure.
    pub(crate) fn magma(python: &str) -> Result<Self, String> {
        Self::start(
            Command::new(python).args(["-c", include_str!("magma.py")]),
            "MAGMA",
            "PyTorch with MAGMA that sees this GPU",
        )
    }

    /// Starts one that has NumPy, on so many threads; the error says why it cannot measure.
    pub(crate) fn numpy(python: &str, threads: usize) -> Result<Self, String> {
        let mut command = Command::new(python);
        command.args(["-c", include_str!("numpy.py")]);
        let variables = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"];
        command.envs(variables.map(|variable| (variable, threads.to_string())));
        Self::start(&mut command, "NumPy", "NumPy")
    }

    fn start(command: &mut Command, peer: &'static str, needs: &str) -> Result<Self, String> {
        let python = command.get_program().to_string_lossy().into_owned();
        let failed = |error: std::io::Error| format!("{peer} is left out: {python} cannot be run: {error}");
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().map_err(failed)?;
        let (Some(questions), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(format!("{peer} is left out: {python} has no standard input and output"));
        };
        let mut answers = BufReader::new(answers);
        let mut version = String::new();
        answers.read_line(&mut version).map_err(failed)?;
        if version.is_empty() {
            let _ = process.wait();
            return Err(format!("{peer} is left out: {python} has no {needs}"));
        }
        Ok(Self { peer, process, questions, answers, version: version.trim().to_owned() })
    }

    /// What it is, in which version.
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
        let peer = self.peer;
        let failed = |what: String| Error::new(ErrorKind::Unsupported, peer, what);
        let lost = |error: std::io::Error| failed(format!("its process is lost: {error}"));
        writeln!(self.questions, "{} {scalar} {order} {batch} {repetitions}", routine.name()).map_err(lost)?;
        self.questions.flush().map_err(lost)?;
        let mut line = String::new();
        self.answers.read_line(&mut line).map_err(lost)?;
        parse(&line).map_err(failed)
    }
}

impl Drop for Python {
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
        assert!(Python::magma("/no/such/python").unwrap_err().contains("/no/such/python"));
    }
}
