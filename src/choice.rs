//! Which backend to use, and why.

use batchla_core::{Error, ErrorKind};

use crate::any::AnyBackend;

/// The environment variable that names a backend for [`auto`].
const VARIABLE: &str = "BATCHLA_BACKEND";

/// The names that [`backend`] takes in this build, best first.
pub fn backends() -> &'static [&'static str] {
    &[
        #[cfg(feature = "cpu")]
        "cpu",
    ]
}

/// The best backend of this machine, or the one that the environment variable `BATCHLA_BACKEND` names.
///
/// [`AnyBackend::why`] says how it was chosen; so does the log, at level `info`.
///
/// # Errors
/// [`ErrorKind::Argument`] where the variable names no backend, [`ErrorKind::Unavailable`] where the one it names, or every one, is not to be had.
pub fn auto() -> Result<AnyBackend, Error> {
    let chosen = match std::env::var(VARIABLE) {
        Ok(name) if !name.is_empty() => backend(&name)?.because(format!("{VARIABLE}={name}")),
        _ => best()?,
    };
    log::info!("backend {}: {}", batchla_core::Backend::describe(&chosen), chosen.why());
    Ok(chosen)
}

/// The backend of that name; see [`backends`].
///
/// # Errors
/// [`ErrorKind::Argument`] for a name that is none, [`ErrorKind::Unavailable`] where the backend is not to be had.
pub fn backend(name: &str) -> Result<AnyBackend, Error> {
    match name {
        #[cfg(feature = "cpu")]
        "cpu" => Ok(AnyBackend::new(batchla_cpu::Cpu::new())),
        _ => Err(Error::new(ErrorKind::Argument, "backend", format!("there is no backend {name:?} in this build"))
            .advise(format!("the backends are: {}", backends().join(", ")))),
    }
}

fn best() -> Result<AnyBackend, Error> {
    match backends().first() {
        Some(name) => Ok(backend(name)?.because("the best backend of this build")),
        None => Err(Error::new(ErrorKind::Unavailable, "backend", "this build has no backend")
            .advise("switch on the feature cpu")),
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
}
