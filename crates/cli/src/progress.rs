//! How far long work is: a bar where somebody looks, lines where it is written down.

use std::fmt;
use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::interrupt::Doing;
use crate::memory::bytes;

/// What is over sooner shows nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between lines.
const EVERY: Duration = Duration::from_secs(10);
const TEMPLATE: &str = "{msg} {wide_bar} {percent}%  {rate}  {eta} left";

/// The progress of one input.
pub(crate) struct Progress {
    what: String,
    matrices: usize,
    matrix_bytes: usize,
    done: AtomicUsize,
    start: Instant,
    shown: Option<Shown>,
    last: Mutex<Instant>,
}

enum Shown {
    Bar(ProgressBar),
    Lines,
}

impl Progress {
    /// Of `matrices` matrices that take `matrix_bytes` bytes each.
    pub(crate) fn new(what: String, matrices: usize, matrix_bytes: usize, quiet: bool) -> Self {
        let start = Instant::now();
        let shown = (!quiet)
            .then(|| if std::io::stderr().is_terminal() { bar(&what, matrices, matrix_bytes) } else { Shown::Lines });
        Self { what, matrices, matrix_bytes, done: AtomicUsize::new(0), start, shown, last: Mutex::new(start) }
    }

    /// So many more matrices are done.
    pub(crate) fn advance(&self, matrices: usize) {
        let done = self.done.fetch_add(matrices, Ordering::Relaxed) + matrices;
        let Ok(mut last) = self.last.lock() else { return };
        match &self.shown {
            Some(Shown::Bar(bar)) if self.start.elapsed() > PATIENCE => bar.set_position(done as u64),
            Some(Shown::Lines) if last.elapsed() > EVERY && done < self.matrices => {
                *last = Instant::now();
                // Where standard error is closed, nobody misses it.
                let _ = writeln!(std::io::stderr(), "{}", self.line(done));
            }
            _ => {}
        }
    }

    /// Takes the bar away.
    pub(crate) fn clear(&self) {
        if let Some(Shown::Bar(bar)) = &self.shown {
            bar.finish_and_clear();
        }
    }

    fn line(&self, done: usize) -> String {
        let seconds = self.start.elapsed().as_secs_f64();
        let left = seconds * (self.matrices - done) as f64 / done.max(1) as f64;
        let rate = bytes((done * self.matrix_bytes) as f64 / seconds);
        format!("{}: {done} of {} matrices, {rate}/s, {left:.0} s left", self.what, self.matrices)
    }
}

fn bar(what: &str, matrices: usize, matrix_bytes: usize) -> Shown {
    let bar = ProgressBar::with_draw_target(Some(matrices as u64), ProgressDrawTarget::stderr_with_hz(5));
    let rate = move |state: &ProgressState, text: &mut dyn fmt::Write| {
        // A text cannot refuse.
        let _ = write!(text, "{}/s", bytes(state.per_sec() * matrix_bytes as f64));
    };
    // The template is a constant, and tried by a test.
    let style = ProgressStyle::with_template(TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar());
    Shown::Bar(bar.with_message(what.to_owned()).with_style(style.with_key("rate", rate)))
}

impl Doing for Progress {
    fn told(&self) -> String {
        let done = self.done.load(Ordering::Relaxed);
        format!("{}: {done} of {} matrices were done, and no file of them was finished", self.what, self.matrices)
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_one() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }

    #[test]
    fn a_line_tells_rate_and_time_left() {
        let progress = Progress::new("invert a.npy".to_owned(), 100, 1000, true);
        progress.advance(50);
        let line = progress.line(50);
        assert!(line.starts_with("invert a.npy: 50 of 100 matrices, ") && line.ends_with(" s left"), "{line}");
        assert!(progress.told().contains("50 of 100 matrices were done"));
    }
}
