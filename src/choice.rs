//! Which backend to use, and why.

use batchla_core::{Backend, Error, ErrorKind};
use log::Level;

use crate::any::AnyBackend;

/// The environment variable that names a backend for [`auto`].
const VARIABLE: &str = "BATCHLA_BACKEND";

/// The names that [`backend`] takes in this build, best first.
pub fn backends() -> &'static [&'static str] {
    &[
        #[cfg(feature = "cuda")]
        "cuda",
        #[cfg(feature = "cpu")]
        "cpu",
    ]
}

/// The best backend of this machine, or the one that the environment variable `BATCHLA_BACKEND` names.
///
/// The best is a GPU that works, else the CPU. A GPU is tried before it is taken: one matrix of order 1 is factored on it, which finds out
/// whether driver, compiler, memory and launches work, and takes the time of opening a GPU and, the first time ever, of compiling that
/// kernel. So choose once, and clone.
///
/// [`AnyBackend::why`] says how it was chosen; so does the log: at level `info`, or `warn` where there is a GPU that cannot be used.
///
/// # Errors
/// [`ErrorKind::Argument`] where the variable names no backend; [`ErrorKind::Unavailable`] where the one it names is not to be had, or what
/// opening it reports; and where this build has no backend that works here.
pub fn auto() -> Result<AnyBackend, Error> {
    let (chosen, level) = match std::env::var_os(VARIABLE) {
        Some(name) if !name.is_empty() => {
            let name = name.to_string_lossy();
            let named = backend(&name).map_err(|error| {
                Error::new(error.kind(), "backend", format!("{VARIABLE}={name} names none that is to be had"))
                    .caused_by(error)
            })?;
            (named.because(format!("{VARIABLE}={name}")), Level::Info)
        }
        _ => best()?,
    };
    log::log!(level, "backend {}: {}", chosen.describe(), chosen.why());
    Ok(chosen)
}

/// The backend of that name; see [`backends`].
///
/// `cuda` is the first GPU that the driver shows, `cuda:1` another, `cuda:0,1` several that share each batch, `cuda:all` all of them. GPUs are opened but
/// not tried: what else is missing, their compiler for one, is an error of the first problem prepared.
///
/// # Errors
/// [`ErrorKind::Argument`] for a name that is none; [`ErrorKind::Unavailable`] where the backend is not to be had; what the device reports.
pub fn backend(name: &str) -> Result<AnyBackend, Error> {
    match name {
        #[cfg(feature = "cuda")]
        "cuda" => gpus("0"),
        #[cfg(feature = "cpu")]
        "cpu" => Ok(AnyBackend::new(batchla_cpu::Cpu::new())),
        #[cfg(feature = "cuda")]
        _ if name.starts_with("cuda:") => gpus(&name["cuda:".len()..]),
        _ => Err(Error::new(ErrorKind::Argument, "backend", format!("there is no backend {name:?} in this build"))
            .advise(format!("the backends are: {}", backends().join(", ")))),
    }
}

/// GPUs by their numbers, `0,1`, or `all`.
#[cfg(feature = "cuda")]
fn gpus(which: &str) -> Result<AnyBackend, Error> {
    use batchla_cuda::CudaHost;
    if which == "all" {
        return Ok(AnyBackend::new(CudaHost::all()?));
    }
    let ordinals: Result<Vec<usize>, _> = which.split(',').map(|ordinal| ordinal.trim().parse()).collect();
    let ordinals = ordinals.map_err(|_| {
        Error::new(ErrorKind::Argument, "backend", format!("{which:?} names no GPUs"))
            .advise("write cuda:0, cuda:0,1 or cuda:all")
    })?;
    Ok(AnyBackend::new(CudaHost::open(ordinals)?))
}

/// The best backend, and how loudly to tell of it.
#[cfg(feature = "cuda")]
fn best() -> Result<(AnyBackend, Level), Error> {
    match crate::gpu::working() {
        Ok(gpu) => {
            let host = AnyBackend::new(batchla_cuda::CudaHost::new([gpu])?);
            Ok((host.because("a GPU that works"), Level::Info))
        }
        Err(no_gpu) => without(no_gpu),
    }
}

/// The best backend where there is no GPU.
#[cfg(feature = "cuda")]
fn without(no_gpu: crate::gpu::NoGpu) -> Result<(AnyBackend, Level), Error> {
    if !backends().contains(&"cpu") {
        return Err(no_gpu.into_error());
    }
    Ok((backend("cpu")?.because(no_gpu.to_string()), no_gpu.level()))
}

#[cfg(not(feature = "cuda"))]
fn best() -> Result<(AnyBackend, Level), Error> {
    match backends().first() {
        Some(name) => Ok((backend(name)?.because("the best backend of this build"), Level::Info)),
        None => Err(Error::new(ErrorKind::Unavailable, "backend", "this build has no backend")
            .advise("switch on the feature cpu or cuda")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = backend("abacus").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Argument);
        assert!(backends().iter().all(|name| error.advice().contains(name)));
    }

    #[cfg(feature = "cuda")]
    #[test]
    fn gpus_are_named_by_numbers_or_refused_in_words() {
        for name in ["cuda:", "cuda:first", "cuda:0,,1", "cuda:-1"] {
            let error = backend(name).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Argument, "{error}");
            assert!(error.advice().contains("cuda:all"), "{error}");
        }
        // Whether there are any is for the driver to say.
        for name in ["cuda:7777", "cuda:0,7777"] {
            assert_eq!(backend(name).unwrap_err().kind(), ErrorKind::Unavailable, "{name}");
        }
    }

    #[cfg(all(feature = "cuda", feature = "cpu"))]
    #[test]
    fn the_cpu_stands_in_for_a_gpu_that_is_missing_or_broken_and_names_the_error() {
        use crate::gpu::NoGpu;
        let error = || Error::new(ErrorKind::Device, "open device", "smoke rises");
        for (no_gpu, level) in [(NoGpu::Absent(error()), Level::Info), (NoGpu::Broken(error()), Level::Warn)] {
            let (chosen, told) = without(no_gpu).unwrap();
            assert_eq!((chosen.name(), told), ("cpu", level));
            assert!(
                chosen.why().contains("GPU") && chosen.why().ends_with("open device: smoke rises"),
                "{}",
                chosen.why()
            );
        }
    }

    #[cfg(all(feature = "cuda", feature = "cpu"))]
    #[test]
    fn the_best_is_a_gpu_that_works_else_the_cpu() {
        assert_eq!(backends(), ["cuda", "cpu"]);
        let ((chosen, level), gpu) = (best().unwrap(), crate::gpu::working());
        let expected = match &gpu {
            Ok(_) => ("cuda", "a GPU that works".to_owned(), Level::Info),
            Err(no_gpu) => ("cpu", no_gpu.to_string(), no_gpu.level()),
        };
        assert_eq!((chosen.name(), chosen.why().to_owned(), level), expected);
    }
}
