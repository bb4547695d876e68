//! LAPACK's inverses, by SciPy in one Python process.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::cases::Case;

/// Written last: with it, a folder is whole.
const VERSIONS: &str = "versions.txt";

/// What SciPy made of a folder of files.
pub(crate) struct Scipy {
    folder: PathBuf,
    versions: String,
}

impl Scipy {
    /// Inverts every file of `folder`; `None` where there is no Python with SciPy.
    pub(crate) fn invert(folder: &Path) -> Result<Option<Self>, Box<dyn Error>> {
        let folder = folder.to_owned();
        let there = Command::new("python3").args(["-c", "import scipy.linalg.lapack"]).output();
        if !there.is_ok_and(|output| output.status.success()) {
            return Ok(None);
        }
        let output = Command::new("python3").args(["-c", include_str!("scipy.py")]).arg(&folder).output()?;
        if !output.status.success() {
            return Err(format!("SciPy is there, but: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let versions = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        fs::write(folder.join(VERSIONS), &versions)?;
        Ok(Some(Self { folder, versions }))
    }

    /// What it has made of a folder before.
    pub(crate) fn left_in(folder: &Path) -> Option<Self> {
        Some(Self { folder: folder.to_owned(), versions: fs::read_to_string(folder.join(VERSIONS)).ok()? })
    }

    /// Its version, and that of its LAPACK.
    pub(crate) fn describe(&self) -> &str {
        &self.versions
    }

    /// The case's matrices in Fortran order.
    pub(crate) fn fortran_order(&self, case: &Case) -> PathBuf {
        self.folder.join(format!("{}.fortran.npy", case.stem()))
    }

    /// The case's inverses; all NaN where there is none.
    pub(crate) fn inverses(&self, case: &Case) -> PathBuf {
        self.folder.join(format!("{}.inverse.npy", case.stem()))
    }
}
