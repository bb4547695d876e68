//! What happens on Ctrl-C: files under way are removed, and what was done is told.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use batchla::Error;

/// Files under way, and what is being done, for the thread that waits for signals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    temporaries: Vec<PathBuf>,
    doing: Option<Arc<dyn Doing>>,
}

/// Something that takes long.
pub(crate) trait Doing: std::fmt::Debug + Send + Sync {
    /// What was done so far, in words.
    fn told(&self) -> String;
}

impl Interrupt {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a file: no signal falls between its making and the note of it.
    pub(crate) fn begin<T>(
        &self,
        create: impl FnOnce() -> Result<T, Error>,
        temporary: impl FnOnce(&T) -> Option<&Path>,
    ) -> Result<T, Error> {
        let mut state = self.state();
        let made = create()?;
        state.temporaries.extend(temporary(&made).map(Path::to_owned));
        Ok(made)
    }

    /// Gives all files their names: a signal finds all of them done, or none.
    pub(crate) fn finish(&self, rename: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let mut state = self.state();
        let renamed = rename();
        state.temporaries.clear();
        state.doing = None;
        renamed
    }

    /// What to tell of from now on.
    pub(crate) fn tell(&self, doing: Arc<dyn Doing>) {
        self.state().doing = Some(doing);
    }

    /// Waits for SIGINT, SIGTERM and SIGHUP in a thread of its own. A signal ends the process with 128 and its number, as it would without this; but
    /// before, files under way are removed. A write beyond the limit of a file's size becomes an error instead of an end.
    #[cfg(unix)]
    pub(crate) fn watch() -> Self {
        use std::sync::atomic::AtomicBool;

        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};

        let interrupt = Self::default();
        // Where signals cannot be had, one ends the program as it ends any other.
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
        // `nohup` has hangups ignored, and means it.
        let wanted = if ignores_hangup() { &[SIGINT, SIGTERM][..] } else { &[SIGINT, SIGTERM, SIGHUP] };
        if let Ok(mut signals) = signal_hook::iterator::Signals::new(wanted) {
            let interrupt = interrupt.clone();
            std::thread::spawn(move || {
                if let Some(signal) = signals.forever().next() {
                    interrupt.end(signal);
                }
            });
        }
        interrupt
    }

    #[cfg(not(unix))]
    pub(crate) fn watch() -> Self {
        Self::default()
    }

    #[cfg(unix)]
    fn end(&self, signal: i32) -> ! {
        use std::io::Write;
        // Held to the end: nothing is renamed from here on.
        let state = self.state();
        for temporary in &state.temporaries {
            let _ = std::fs::remove_file(temporary);
        }
        let told = state.doing.as_ref().map_or_else(|| "nothing was under way".to_owned(), |doing| doing.told());
        let _ = writeln!(std::io::stderr(), "\nbatchla: interrupted: {told}");
        signal_hook::low_level::exit(128 + signal)
    }
}

/// Whether the program was started with hangups ignored.
#[cfg(unix)]
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    // Bit 0 is signal 1.
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 == 1)
}
