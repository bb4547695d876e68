//! The program in a folder of its own.

#![allow(dead_code, reason = "every test takes what it needs")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder of its own, with the program run in it.
pub(crate) struct Bench(TempDir);

impl Bench {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_batchla"));
        command.args(args).current_dir(self.0.path()).env_remove("BATCHLA_BACKEND").env("BATCHLA_TUNED_DIR", "off");
        command
    }

    pub(crate) fn batchla(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs with `--json` and gives exit code and summary.
    pub(crate) fn summary(&self, args: &[&str]) -> (i32, Value) {
        let output = self.batchla(&[args, &["--json"]].concat());
        let text = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}{errors}")))
    }

    /// Runs what must fail: gives the error, after making sure that `names` are all the files there are.
    pub(crate) fn error(&self, args: &[&str], names: &[&str]) -> String {
        let output = self.batchla(args);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{text}");
        assert_eq!(self.names(), names, "{text}");
        text
    }

    /// Runs with bytes on its standard input.
    pub(crate) fn fed(&self, args: &[&str], bytes: &[u8]) -> Output {
        let mut command = self.command(args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        std::thread::scope(|scope| {
            // A program that refuses its input early closes the pipe.
            scope.spawn(move || drop(stdin.write_all(bytes)));
            child.wait_with_output().unwrap()
        })
    }

    /// Runs a shell line in which BATCHLA is the program.
    #[cfg(unix)]
    pub(crate) fn shell(&self, line: &str) -> Output {
        let line = line.replace("BATCHLA", env!("CARGO_BIN_EXE_batchla"));
        Command::new("sh").args(["-c", &line]).current_dir(self.folder()).output().unwrap()
    }

    /// Runs what must succeed.
    pub(crate) fn well(&self, args: &[&str]) -> String {
        let output = self.batchla(args);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }
}

/// Whether a tool is there that tests need; where `BATCHLA_REQUIRE` names it, its absence fails.
pub(crate) fn there(name: &str, found: bool) -> bool {
    if !found {
        let required = std::env::var("BATCHLA_REQUIRE").unwrap_or_default();
        assert!(
            !required.split(',').any(|required| required == name),
            "BATCHLA_REQUIRE names {name}, which is not there"
        );
        eprintln!("SKIPPED: no {name}");
    }
    found
}

/// Runs a Python script beside NumPy; false where there is none.
pub(crate) fn numpy(script: &str, folder: &Path) -> bool {
    let python = |script: &str| Command::new("python3").args(["-c", script]).current_dir(folder).output();
    if !there("numpy", python("import numpy").is_ok_and(|output| output.status.success())) {
        return false;
    }
    let output = python(&format!("import numpy as np\n{script}")).unwrap();
    assert!(output.status.success(), "{}\n{script}", String::from_utf8_lossy(&output.stderr));
    true
}
