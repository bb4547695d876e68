//! `batchla cache`: the compiled kernels that are kept on disk.

use std::io;
use std::time::Duration;

use batchla::cuda::{DiskCache, Environment};
use batchla::{Error, ErrorKind};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::memory::bytes;
use crate::{SUCCESS, print};

/// Look at, or clear, the compiled kernels that are kept on disk.
///
/// A kernel is compiled when a problem first needs it, and then kept: in the folder that BATCHLA_CACHE_DIR names (off: nowhere), else in the user's cache
/// folder. Beyond BATCHLA_CACHE_SIZE (512MB by default) the least recently used go. What is removed is compiled again when it is needed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cache {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Every kernel: its size, how long ago it was used, and what it is; the least recently used first
    List {
        /// Print one JSON object a line, one for each kernel
        #[arg(long)]
        json: bool,
    },
    /// Remove all of them
    Clear,
    /// Print the folder
    Path,
}

const EXAMPLES: &str = "\
Examples:
  batchla cache list
  batchla cache clear
  du -sh \"$(batchla cache path)\"";

impl Cache {
    /// Runs the command; gives the exit code.
    pub(crate) fn run(&self) -> Result<u8, Error> {
        let environment = Environment::read();
        let Some(folder) = environment.cache.as_ref() else {
            let what = "kernels are not kept on disk: BATCHLA_CACHE_DIR is off, or there is no home folder";
            return Err(Error::new(ErrorKind::Unavailable, "cache", what).advise("set BATCHLA_CACHE_DIR to a folder"));
        };
        let shown = folder.display().to_string();
        if matches!(self.what, What::Path) {
            return print("cache", &shown);
        }
        if !folder.exists() {
            let empty = format!("no kernels in {shown}: the folder is not there yet");
            return if matches!(self.what, What::List { json: true }) { Ok(SUCCESS) } else { print("cache", &empty) };
        }
        let failed = |error: io::Error| {
            Error::new(ErrorKind::Io, "cache", format!("{shown} cannot be read or written")).caused_by(error)
        };
        let cache = DiskCache::of(&environment);
        if cache.folder().is_none() {
            return Err(Error::new(
                ErrorKind::Io,
                "cache",
                format!("{shown} is not used: others may write to it, or nobody"),
            )
            .advise("make it a folder of yours alone: chmod 700"));
        }
        match self.what {
            What::Clear => {
                let (count, size) = cache.clear().map_err(failed)?;
                print("cache", &format!("{count} kernels, {}, were removed from {shown}", bytes(size as f64)))
            }
            What::List { json } => match list(&cache, json).map_err(failed)? {
                // No kernel, no line.
                text if text.is_empty() => Ok(SUCCESS),
                text => print("cache", &text),
            },
            What::Path => print("cache", &shown),
        }
    }
}

fn list(cache: &DiskCache, as_json: bool) -> io::Result<String> {
    let entries = cache.entries()?;
    let age = |entry: &batchla::cuda::DiskEntry| entry.used.elapsed().unwrap_or_default();
    if as_json {
        let lines = entries.iter().map(|entry| {
            json!({
                "file": entry.path.display().to_string(), "bytes": entry.bytes, "unused_seconds": age(entry).as_secs(), "about": entry.about,
            })
            .to_string()
        });
        return Ok(lines.collect::<Vec<_>>().join("\n"));
    }
    let lines = entries.iter().map(|entry| {
        let about = entry.about.as_deref().unwrap_or("damaged, or of another version: not used");
        format!("{:>9}  {:>8}  {about}\n", bytes(entry.bytes as f64), ago(age(entry)))
    });
    let all: u64 = entries.iter().map(|entry| entry.bytes).sum();
    let most = bytes(cache.most_bytes() as f64);
    let folder = cache.folder().map(|folder| folder.display().to_string()).unwrap_or_default();
    Ok(format!(
        "{}{} kernels, {} of at most {most}, in {folder}",
        lines.collect::<String>(),
        entries.len(),
        bytes(all as f64)
    ))
}

/// How long ago, in the largest whole unit.
fn ago(age: Duration) -> String {
    let seconds = age.as_secs();
    let units = [(86_400, "d"), (3_600, "h"), (60, "min")];
    let fits = units.into_iter().find(|(length, _)| seconds >= *length);
    fits.map_or_else(|| format!("{seconds} s"), |(length, unit)| format!("{} {unit}", seconds / length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_told_in_the_largest_whole_unit() {
        let told = [0, 59, 60, 7_199, 7_200, 86_400 * 40].map(|seconds| ago(Duration::from_secs(seconds)));
        assert_eq!(told, ["0 s", "59 s", "1 min", "1 h", "2 h", "40 d"]);
    }
}
