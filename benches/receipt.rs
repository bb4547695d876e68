//! Records of measurements: where they lie, and what stands at their head so that they can be made again.

use std::fs::{File, create_dir_all};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Where the record of this machine and day lies: `benches/record/<cpu>/<date>-<name>.csv` below `root`.
pub(crate) fn path(root: &Path, name: &str) -> PathBuf {
    root.join("benches/record").join(slug(&cpu_model())).join(format!("{}-{name}.csv", today()))
}

/// A file that begins with comment lines: processor, date, compiler, and `notes`.
pub(crate) fn create(path: &Path, notes: &[(&str, String)]) -> io::Result<BufWriter<File>> {
    if let Some(folder) = path.parent() {
        create_dir_all(folder)?;
    }
    let mut file = BufWriter::new(File::create(path)?);
    for (name, value) in [("cpu", cpu_model()), ("date", today()), ("rustc", rustc())].iter().chain(notes) {
        writeln!(file, "# {name}: {value}")?;
    }
    Ok(file)
}

/// The processor's name for itself.
fn cpu_model() -> String {
    let lines = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = lines.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.trim().to_owned())
}

/// A name in lower case with hyphens: `Intel(R) Xeon(R) CPU @ 2.50GHz` is `intel-xeon-cpu-2-50ghz`.
fn slug(name: &str) -> String {
    let plain = name.to_lowercase().replace("(r)", " ").replace("(tm)", " ");
    let words: Vec<&str> = plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.join("-")
}

fn rustc() -> String {
    let output = Command::new("rustc").arg("--version").output();
    output.map_or_else(|_| "unknown".to_owned(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The date in UTC, as 2026-01-31.
fn today() -> String {
    date(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400))
}

/// The date of a day after 1970-01-01, counted in years that begin in March, so that the leap day comes last (Hinnant 2014).
fn date(day: u64) -> String {
    let day = day + 719_468; // since 0000-03-01
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let march_month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * march_month + 2) / 5 + 1, (march_month + 2) % 12 + 1);
    format!("{:04}-{month:02}-{day:02}", 400 * era + year + u64::from(month <= 2))
}

// Run where a crate with a test harness includes this file.
#[test]
fn days_have_their_dates() {
    let days = [(0, "1970-01-01"), (11_016, "2000-02-29"), (11_017, "2000-03-01"), (20_453, "2025-12-31")];
    for (day, expected) in days {
        assert_eq!(date(day), expected);
    }
}

#[test]
fn a_slug_is_a_name_for_a_folder() {
    assert_eq!(slug("Intel(R) Xeon(R) CPU @ 2.50GHz"), "intel-xeon-cpu-2-50ghz");
}
