//! Where the numbers go: a folder a GPU and day, and a table that grows while it is measured.

use std::fs::{File, create_dir_all};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use batchla_core::{Error, ErrorKind};
use batchla_cuda::Device;

use crate::results::Row;

/// The columns of the table.
pub const HEADER: &str =
    "figure,scalar,order,batch,series,contestant,median_ms,min_ms,gflops,residual_ratio,speedup,details";

/// A table of measurements on disk; each row is there as soon as it is measured.
#[derive(Debug)]
pub struct Table {
    file: File,
    path: PathBuf,
}

impl Table {
    /// A new table of that name, in the place of one that may be there.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn create(folder: &Path, name: &str) -> Result<Self, Error> {
        Self::create_with(folder, name, HEADER)
    }

    /// The same with columns of its own.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn create_with(folder: &Path, name: &str, header: &str) -> Result<Self, Error> {
        create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
        let path = folder.join(name).with_extension("csv");
        let file = File::create(&path).map_err(|error| unwritable(&path, error))?;
        let mut table = Self { file, path };
        table.line(header)?;
        Ok(table)
    }

    /// Appends a row.
    ///
    /// # Errors
    /// [`ErrorKind::Io`].
    pub fn push(&mut self, row: &Row) -> Result<(), Error> {
        let Row { figure, scalar, order, batch, series, contestant, timing, speedup } = row;
        let speedup = speedup.map_or_else(String::new, |speedup| format!("{speedup:.3}"));
        let series = series.replace(',', " ");
        self.line(&format!(
            "{figure},{scalar},{order},{batch},{series},{contestant},{:.5},{:.5},{:.2},{:.4},{speedup},{}",
            timing.median_ms,
            timing.min_ms,
            timing.gflops,
            timing.residual,
            timing.details.replace(',', ";"),
        ))
    }

    pub(crate) fn line(&mut self, text: &str) -> Result<(), Error> {
        writeln!(self.file, "{text}").map_err(|error| unwritable(&self.path, error))
    }
}

/// Has a measurement fill a table of that name with such columns, and writes beside it, as words, what it told, with the GPU, the day and the command.
/// Gives the folder.
///
/// # Errors
/// Those of the measurement, after which rows measured until then are in the table; [`ErrorKind::Io`].
pub fn measured(
    (name, header): (&str, &str),
    (gpu, command): (&Device, &str),
    output: Option<PathBuf>,
    tell: &mut dyn FnMut(&str),
    measure: impl FnOnce(&mut Table, &mut dyn FnMut(&str)) -> Result<(), Error>,
) -> Result<PathBuf, Error> {
    let folder = output.unwrap_or_else(|| default_folder(&gpu.limits().name, name));
    let mut table = Table::create_with(&folder, name, header)?;
    let mut text = format!("# batchla bench {name}\n\n{gpu}, {}: `{command}`\n\n", today());
    measure(&mut table, &mut |line| {
        text.push_str(&format!("- {line}\n"));
        tell(line);
    })?;
    text.push_str(&format!("\nAll numbers are in [{name}.csv]({name}.csv).\n"));
    write(&folder.join(name).with_extension("md"), &text)?;
    Ok(folder)
}

/// Writes a whole file.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(|error| unwritable(path, error))
}

pub(crate) fn unwritable(path: &Path, error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new(ErrorKind::Io, "record", format!("{} cannot be written", path.display()))
        .advise("name another folder with --output")
        .caused_by(error)
}

/// `benches/record/<gpu>/<date>` below the working folder; with a number behind it where there is a table of that name already.
pub fn default_folder(gpu: &str, name: &str) -> PathBuf {
    let folder = Path::new("benches/record").join(kebab(gpu));
    let date = today();
    let numbered = (2..).map(|k| folder.join(format!("{date}-{k}")));
    let mut folders = std::iter::once(folder.join(&date)).chain(numbered);
    folders.find(|folder| !folder.join(name).with_extension("csv").exists()).unwrap_or(folder)
}

/// A name in lower case with hyphens: `NVIDIA H200` is `nvidia-h200`.
fn kebab(name: &str) -> String {
    let plain = name.to_lowercase();
    let words: Vec<&str> = plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.join("-")
}

/// The date in UTC, as 2026-01-31.
pub(crate) fn today() -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_and_a_day_name_a_folder() {
        assert_eq!(kebab("NVIDIA GeForce RTX 3090"), "nvidia-geforce-rtx-3090");
        let days = [(0, "1970-01-01"), (11_016, "2000-02-29"), (11_017, "2000-03-01"), (20_453, "2025-12-31")];
        assert!(days.into_iter().all(|(day, expected)| date(day) == expected));
        assert!(default_folder("NVIDIA H200", "paper").starts_with("benches/record/nvidia-h200"));
    }
}
