//! `cargo xtask accuracy`: the left residual ratios `‖I − XA‖₁ / (n ‖A‖₁ ‖X‖₁ ε)` of a backend's inverses beside those of LAPACK's
//! `getrf` and `getri`, called through SciPy, on the very same files.
//!
//! Ours must be below [`LIMIT`], and no matrix of ours above `max(1, 3 × SciPy's)`; where SciPy's own is at the limit, growth has spoilt the
//! matrix for partial pivoting, and only the second holds. A matrix that SciPy fails on is not compared.

mod cases;
mod scipy;

use std::error::Error;
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use batchla::{AnyBackend, Backend, Batch, BatchRef, BatchedInvert, Complex, Scalar, ScalarKind, npy};
use batchla_testkit::{LIMIT, inverse_ratio};

use self::cases::Case;
use self::scipy::Scipy;
use crate::receipt;

/// The exit code of a comparison that did not take place, as in automake.
const SKIPPED: u8 = 77;

/// Whose inverses, and of which files.
#[derive(Debug, clap::Args)]
pub(crate) struct Accuracy {
    /// The backend whose inverses are looked at: cpu, cuda
    #[arg(long, default_value = "cpu")]
    backend: String,

    /// Where the files of both sides stay. What SciPy left there is taken as it is: a machine without it, but with a GPU, compares by the files of another
    #[arg(long, value_name = "FOLDER")]
    files: Option<PathBuf>,

    /// The file to write [default: benches/record/CPU/DATE-accuracy.csv]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// Writes the matrices, has both sides invert them, compares.
pub(crate) fn run(root: &Path, options: &Accuracy) -> Result<ExitCode, Box<dyn Error>> {
    let own = tempfile::tempdir()?;
    let folder = options.files.as_deref().unwrap_or(own.path());
    let cases = Case::all(root)?;
    let scipy = match Scipy::left_in(folder) {
        Some(scipy) => Some(scipy),
        None => {
            fs::create_dir_all(folder)?;
            for case in &cases {
                case.write(folder)?;
            }
            Scipy::invert(folder)?
        }
    };
    let backend = batchla::backend(&options.backend)?;
    let against = scipy.as_ref().map_or("none: there is no python3 with scipy", Scipy::describe);
    println!("{}\nSciPy: {against}\n\n{}", backend.describe(), Row::HEADER);
    let mut rows = Vec::new();
    for case in &cases {
        let row = match case.scalar {
            ScalarKind::F32 => compare::<f32>(&backend, case, folder, scipy.as_ref())?,
            ScalarKind::F64 => compare::<f64>(&backend, case, folder, scipy.as_ref())?,
            ScalarKind::C32 => compare::<Complex<f32>>(&backend, case, folder, scipy.as_ref())?,
            ScalarKind::C64 => compare::<Complex<f64>>(&backend, case, folder, scipy.as_ref())?,
        };
        println!("{row}");
        rows.push(row);
    }
    let misses = rows.iter().filter(|row| row.verdict == Verdict::Missed).count();
    println!("\n{misses} of {} rows missed", rows.len());
    if scipy.is_some() {
        println!("written to {}", record(root, options, &backend, against, &rows)?);
    } else {
        println!("SKIPPED: nothing was compared with SciPy and nothing recorded; install it: pip install scipy");
    }
    Ok(match (misses, scipy) {
        (1.., _) => ExitCode::FAILURE,
        (0, None) => ExitCode::from(SKIPPED),
        (0, Some(_)) => ExitCode::SUCCESS,
    })
}

fn record(
    root: &Path,
    options: &Accuracy,
    backend: &AnyBackend,
    against: &str,
    rows: &[Row],
) -> Result<String, Box<dyn Error>> {
    let path = options.out.clone().unwrap_or_else(|| receipt::path(root, "accuracy"));
    let columns = "worst left residual ratio of the batch, from the file in C and in Fortran order; \
                   margin: the largest of any matrix's ours / max(1, 3 x SciPy's)";
    let notes = [
        ("machine", backend.describe()),
        ("against", against.to_owned()),
        ("command", format!("cargo xtask accuracy --backend {}", options.backend)),
        ("columns", columns.to_owned()),
    ];
    let mut file = receipt::create(&path, &notes)?;
    writeln!(file, "matrices,scalar,order,batch,ours_c,ours_fortran,scipy,margin,verdict")?;
    for Row { name, scalar, order, batch, ours, fortran, scipy, margin, verdict } in rows {
        writeln!(file, "{name},{scalar},{order},{batch},{ours:.3e},{fortran:.3e},{scipy:.3e},{margin:.3e},{verdict}")?;
    }
    file.flush()?;
    Ok(path.strip_prefix(root).unwrap_or(&path).display().to_string())
}

/// How a case fared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Holds,
    Missed,
    /// SciPy finds no inverse of some matrix.
    ScipyFailed,
    NotCompared,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Holds => "holds",
            Self::Missed => "MISSED",
            Self::ScipyFailed => "SciPy failed",
            Self::NotCompared => "not compared",
        })
    }
}

/// A case and the worst of its matrices.
struct Row {
    name: String,
    scalar: ScalarKind,
    order: usize,
    batch: usize,
    ours: f64,
    fortran: f64,
    scipy: f64,
    margin: f64,
    verdict: Verdict,
}

impl Row {
    const HEADER: &str = "matrices               scalar order batch    ours C   Fortran     SciPy    margin";
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, scalar, order, batch, ours, fortran, scipy, margin, verdict } = self;
        write!(f, "{name:<22} {scalar:<6} {order:>5} {batch:>5} ")?;
        write!(f, "{ours:>9.1e} {fortran:>9.1e} {scipy:>9.1e} {margin:>9.1e}  {verdict}")
    }
}

/// Both sides' inverses of one file, matrix by matrix.
fn compare<T: Scalar>(
    backend: &AnyBackend,
    case: &Case,
    folder: &Path,
    scipy: Option<&Scipy>,
) -> Result<Row, Box<dyn Error>> {
    let a = npy::read::<T>(case.file(folder))?;
    let ours = ratios(&a, (&backend.invert(&a)?.batch).into());
    let (mut fortran, mut theirs) = (vec![f64::NAN; ours.len()], vec![f64::NAN; ours.len()]);
    if let Some(scipy) = scipy {
        let a = npy::read::<T>(scipy.fortran_order(case))?;
        fortran = ratios(&a, (&backend.invert(&a)?.batch).into());
        theirs = ratios(&a, (&npy::read::<T>(scipy.inverses(case))?).into());
    }
    let (mut verdict, mut margin) = (if scipy.is_some() { Verdict::Holds } else { Verdict::NotCompared }, 0.0f64);
    for ((&ours, &fortran), &theirs) in ours.iter().zip(&fortran).zip(&theirs) {
        let worse = if scipy.is_some() { worst(&[ours, fortran]) } else { ours };
        if theirs.is_infinite() {
            verdict = Verdict::ScipyFailed;
            continue;
        }
        // `max` takes 1 for the NaN of no SciPy.
        let times = worse / (3.0 * theirs).max(1.0);
        let held = (worse < LIMIT || theirs >= LIMIT) && (times <= 1.0 || scipy.is_none());
        margin = margin.max(times);
        if !held {
            verdict = Verdict::Missed;
            break;
        }
    }
    let [ours, fortran, theirs] = [ours, fortran, theirs].map(|ratios| worst(&ratios));
    let (order, batch) = (a.layout().rows(), a.batch());
    Ok(Row { name: case.name.clone(), scalar: T::KIND, order, batch, ours, fortran, scipy: theirs, margin, verdict })
}

/// The ratio of every matrix; infinite where there is no inverse.
fn ratios<T: Scalar>(a: &Batch<T>, x: BatchRef<'_, T>) -> Vec<f64> {
    a.view().matrices().zip(x.matrices()).map(|(a, x)| inverse_ratio(a, x)).collect()
}

fn worst(ratios: &[f64]) -> f64 {
    ratios.iter().copied().fold(f64::NAN, f64::max)
}
