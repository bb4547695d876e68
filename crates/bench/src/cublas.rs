//! cuBLAS, found when the program runs. The only file here with `unsafe`.

use std::ffi::{CStr, OsString, c_int, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr::{null_mut, with_exposed_provenance_mut};

use batchla_core::{Backend, Error, ErrorKind, ScalarKind};
use batchla_cuda::{Cuda, DeviceSlice, Environment, Stream};
use libloading::Library;

type Status = c_int;
type Handle = *mut c_void;
type Pointers = *mut c_void;
type Words = *mut c_void;
type Create = unsafe extern "C" fn(*mut Handle) -> Status;
type SetStream = unsafe extern "C" fn(Handle, *mut c_void) -> Status;
type GetVersion = unsafe extern "C" fn(Handle, *mut c_int) -> Status;
type Destroy = unsafe extern "C" fn(Handle) -> Status;
type Getrf = unsafe extern "C" fn(Handle, c_int, Pointers, c_int, Words, Words, c_int) -> Status;
type Getri = unsafe extern "C" fn(Handle, c_int, Pointers, c_int, Words, Pointers, c_int, Words, c_int) -> Status;
type Getrs = unsafe extern "C" fn(
    Handle,
    c_int,
    c_int,
    c_int,
    Pointers,
    c_int,
    Words,
    Pointers,
    c_int,
    *mut c_int,
    c_int,
) -> Status;
type Matinv = unsafe extern "C" fn(Handle, c_int, Pointers, c_int, Pointers, c_int, Words, c_int) -> Status;

/// The names under which systems have the library.
const NAMES: [&str; 3] = ["libcublas.so", "libcublas.so.13", "libcublas.so.12"];

/// The largest order of `matinvBatched`.
pub(crate) const MATINV_ORDER: usize = 32;

/// cuBLAS on the stream of a backend.
pub(crate) struct Cublas {
    handle: Handle,
    destroy: Destroy,
    version: String,
    routines: [Routines; 4],
    /// Keeps the stream, which the handle uses, and its context.
    stream: Stream,
}

/// The batched routines of one type.
#[derive(Clone, Copy)]
struct Routines {
    getrf: Getrf,
    getri: Getri,
    getrs: Getrs,
    matinv: Matinv,
}

/// Operands of a batched routine on the device: square column-major matrices behind an array of pointers.
pub(crate) struct Operands<'a> {
    pub(crate) scalar: ScalarKind,
    pub(crate) order: usize,
    pub(crate) batch: usize,
    /// Pointers to the matrices, each as two words, the lower one first.
    pub(crate) a: DeviceSlice<'a, u32>,
    /// Pointers to the inverses, or to right-hand sides.
    pub(crate) x: DeviceSlice<'a, u32>,
    pub(crate) pivots: DeviceSlice<'a, u32>,
    pub(crate) info: DeviceSlice<'a, u32>,
}

impl Cublas {
    /// Loads the library from `given` (a file or a folder), else from where systems have it; the error tells where it was looked for.
    pub(crate) fn find(gpu: &Cuda, given: Option<&Path>) -> Result<Self, String> {
        let places = places(given);
        // SAFETY: cuBLAS's initialisers have no requirements.
        let Some(library) = places.iter().find_map(|place| unsafe { Library::new(place) }.ok()) else {
            let tried: Vec<_> = places.iter().map(|place| place.to_string_lossy()).collect();
            return Err(format!("no cuBLAS was found; looked for {}", tried.join(", ")));
        };
        // Never unloaded: its threads and exit handlers may outlive the handle.
        Self::on(Box::leak(Box::new(library)), gpu)
    }

    fn on(library: &'static Library, gpu: &Cuda) -> Result<Self, String> {
        let mut routines = Vec::new();
        for scalar in ScalarKind::ALL {
            let letter = scalar.letter().to_ascii_uppercase();
            routines.push(Routines {
                getrf: symbol(library, &format!("cublas{letter}getrfBatched\0"))?,
                getri: symbol(library, &format!("cublas{letter}getriBatched\0"))?,
                getrs: symbol(library, &format!("cublas{letter}getrsBatched\0"))?,
                matinv: symbol(library, &format!("cublas{letter}matinvBatched\0"))?,
            });
        }
        let routines = routines.try_into().map_err(|_| "cuBLAS has not all four types".to_owned())?;
        let create: Create = symbol(library, "cublasCreate_v2\0")?;
        let destroy: Destroy = symbol(library, "cublasDestroy_v2\0")?;
        let set_stream: SetStream = symbol(library, "cublasSetStream_v2\0")?;
        let get_version: GetVersion = symbol(library, "cublasGetVersion_v2\0")?;
        // Makes the device's context current on this thread; the library works on the current one.
        gpu.synchronize().map_err(|error| error.to_string())?;
        let mut handle = null_mut();
        // SAFETY: writes one handle; the device's primary context is current.
        status("cublasCreate", unsafe { create(&mut handle) })?;
        let stream = gpu.stream().clone();
        let mut cublas = Self { handle, destroy, version: String::new(), routines, stream };
        // SAFETY: the handle was just made, and the stream is kept as long as it.
        status("cublasSetStream", unsafe { set_stream(handle, cublas.stream.as_raw()) })?;
        let mut version = 0;
        // SAFETY: writes one number.
        status("cublasGetVersion", unsafe { get_version(handle, &mut version) })?;
        let (major, minor) = if version >= 100_000 {
            (version / 10_000, version / 100 % 100)
        } else {
            (version / 1000, version / 100 % 10)
        };
        cublas.version = format!("{major}.{minor}.{}", version % 100);
        Ok(cublas)
    }

    /// The library's version, as `12.9.1`.
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    fn routines(&self, scalar: ScalarKind) -> &Routines {
        let [f32, f64, c32, c64] = &self.routines;
        match scalar {
            ScalarKind::F32 => f32,
            ScalarKind::F64 => f64,
            ScalarKind::C32 => c32,
            ScalarKind::C64 => c64,
        }
    }

    /// Queues the factorisation of `a` in its place; 1-based exchanges.
    pub(crate) fn getrf(&self, operands: &Operands<'_>) -> Result<(), Error> {
        let (n, batch) = operands.check()?;
        let [a, _, pivots, info] = operands.raw();
        // SAFETY: `check` saw room for the batch in all of them; they are used in the order of this handle's stream.
        let done = unsafe { (self.routines(operands.scalar).getrf)(self.handle, n, a, n.max(1), pivots, info, batch) };
        status("getrfBatched", done).map_err(failed)
    }

    /// Queues the inversion of the factors in `a` into `x`.
    pub(crate) fn getri(&self, operands: &Operands<'_>) -> Result<(), Error> {
        let (n, batch) = operands.check()?;
        let ([a, x, pivots, info], ld) = (operands.raw(), n.max(1));
        let getri = self.routines(operands.scalar).getri;
        // SAFETY: as in `getrf`; `a` and `x` are different matrices.
        status("getriBatched", unsafe { getri(self.handle, n, a, ld, pivots, x, ld, info, batch) }).map_err(failed)
    }

    /// Queues the solution with the factors in `a` of so many right-hand sides in `x`, in their place.
    pub(crate) fn getrs(&self, operands: &Operands<'_>, columns: usize) -> Result<(), Error> {
        let (n, batch) = operands.check()?;
        let ([a, x, pivots, _], ld) = (operands.raw(), n.max(1));
        let getrs = self.routines(operands.scalar).getrs;
        let columns = c_int::try_from(columns).map_err(|error| failed(error.to_string()))?;
        let mut info = 0; // the host's, of the arguments alone
        // SAFETY: as in `getrf`; the caller's right-hand sides have so many columns. 0: not transposed.
        let done = unsafe { getrs(self.handle, 0, n, columns, a, ld, pivots, x, ld, &mut info, batch) };
        status("getrsBatched", done).map_err(failed)
    }

    /// Queues the inversion of `a` into `x`, in one kernel; orders up to [`MATINV_ORDER`].
    pub(crate) fn matinv(&self, operands: &Operands<'_>) -> Result<(), Error> {
        let (n, batch) = operands.check()?;
        let ([a, x, _, info], ld) = (operands.raw(), n.max(1));
        let matinv = self.routines(operands.scalar).matinv;
        // SAFETY: as in `getri`.
        status("matinvBatched", unsafe { matinv(self.handle, n, a, ld, x, ld, info, batch) }).map_err(failed)
    }
}

impl Drop for Cublas {
    fn drop(&mut self) {
        // SAFETY: this is the last use of the handle; it waits for its work.
        let _ = unsafe { (self.destroy)(self.handle) };
    }
}

impl fmt::Debug for Cublas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuBLAS {} on {:?}", self.version, self.stream)
    }
}

impl Operands<'_> {
    /// Refuses arrays that are too short; gives order and batch as C has them.
    fn check(&self) -> Result<(c_int, c_int), Error> {
        let Self { order, batch, a, x, pivots, info, .. } = self;
        let room =
            a.len() >= 2 * batch && x.len() >= 2 * batch && pivots.len() >= batch * order && info.len() >= *batch;
        match (c_int::try_from(*order), c_int::try_from(*batch)) {
            (Ok(n), Ok(count)) if room => Ok((n, count)),
            _ => Err(failed(format!("{batch} matrices of order {order} do not fit the arrays given"))),
        }
    }

    fn raw(&self) -> [*mut c_void; 4] {
        [self.a, self.x, self.pivots, self.info].map(|slice| with_exposed_provenance_mut(slice.as_raw() as usize))
    }
}

fn places(given: Option<&Path>) -> Vec<OsString> {
    let mut places: Vec<PathBuf> = Vec::new();
    if let Some(given) = given {
        places.push(given.to_owned());
        places.extend(NAMES.map(|name| given.join(name)));
    }
    places.extend(NAMES.map(PathBuf::from));
    let folders = Environment::read().toolkits;
    places.extend(folders.iter().flat_map(|folder| NAMES.map(|name| folder.join("lib64").join(name))));
    places.into_iter().map(PathBuf::into_os_string).collect()
}

/// A function of the library.
fn symbol<F: Copy>(library: &'static Library, name: &str) -> Result<F, String> {
    let name = CStr::from_bytes_with_nul(name.as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: the types above are those of cublas_api.h, with untyped device pointers.
    let symbol = unsafe { library.get::<F>(name.to_bytes_with_nul()) };
    symbol.map(|symbol| *symbol).map_err(|error| format!("cuBLAS was found, but not its {name:?}: {error}"))
}

fn status(call: &str, status: Status) -> Result<(), String> {
    if status == 0 { Ok(()) } else { Err(format!("{call} failed with status {status}")) }
}

fn failed(what: String) -> Error {
    Error::new(ErrorKind::Device, "cuBLAS", what).advise("leave its columns empty, or give another library")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_that_was_given_is_tried_first() {
        let places = places(Some(Path::new("/some/folder")));
        assert_eq!(places[1], "/some/folder/libcublas.so");
        assert!(places.iter().any(|place| place == "libcublas.so.13"));
        assert!(places.iter().any(|place| place == "/usr/local/cuda/lib64/libcublas.so.12"));
    }
}
