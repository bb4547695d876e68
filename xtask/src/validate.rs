//! `cargo xtask validate`: everything that must hold before a pull request, in the order in which it fails fastest.

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// One call of cargo.
struct Step {
    /// What it looks at.
    name: String,
    /// Cargo's arguments.
    arguments: String,
    /// Set for this step alone.
    variable: Option<(&'static str, &'static str)>,
    /// What to do where it fails.
    advice: &'static str,
}

impl Step {
    fn new(name: impl Into<String>, arguments: impl Into<String>, advice: &'static str) -> Self {
        Self { name: name.into(), arguments: arguments.into(), variable: None, advice }
    }

    fn with(self, name: &'static str, value: &'static str) -> Self {
        Self { variable: Some((name, value)), ..self }
    }

    /// Whether it succeeded.
    fn run(&self, root: &Path) -> io::Result<bool> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
        let mut command = Command::new(cargo);
        command.args(self.arguments.split(' ')).envs(self.variable).current_dir(root);
        Ok(command.status()?.success())
    }
}

/// Runs one step after another until one fails.
pub(crate) fn run(root: &Path) -> Result<ExitCode, Box<dyn Error>> {
    let steps = steps(root)?;
    let start = Instant::now();
    for (step, number) in steps.iter().zip(1..) {
        println!("[{number}/{}] {}: cargo {}", steps.len(), step.name, step.arguments);
        let begun = Instant::now();
        let succeeded = step.run(root)?;
        println!("      {}, {:.1} s", if succeeded { "ok" } else { "FAILED" }, begun.elapsed().as_secs_f64());
        if !succeeded {
            println!("{}, then run `cargo xtask validate` again", step.advice);
            return Ok(ExitCode::FAILURE);
        }
    }
    println!("all {} steps hold, {:.1} s", steps.len(), start.elapsed().as_secs_f64());
    Ok(ExitCode::SUCCESS)
}

fn steps(root: &Path) -> io::Result<Vec<Step>> {
    let lint = "repair what the lint names, or allow it in place with a reason";
    let clippy = |name: &str, what: &str| {
        Step::new(format!("lints, {name}"), format!("clippy --quiet {what} -- -D warnings"), lint)
    };
    let mut steps = vec![
        Step::new("format", "fmt --all --check", "run `cargo fmt --all`"),
        clippy("everything", "--workspace --all-targets --all-features"),
        clippy("core without features", "--package batchla-core --no-default-features"),
        clippy("core with all features", "--package batchla-core --all-features"),
        clippy("the CUDA backend's plans without its driver", "--package batchla-cuda --no-default-features"),
        clippy("the facade without features", "--package batchla --no-default-features"),
        clippy("the facade by default", "--package batchla"),
        Step::new("tests", "test --quiet --workspace --all-features", "repair what the test names"),
        Step::new(
            "documentation",
            "doc --quiet --workspace --all-features --no-deps",
            "repair the link or comment named",
        )
        .with("RUSTDOCFLAGS", "-D warnings"),
    ];
    for example in examples(root)? {
        let arguments = format!("run --quiet --package batchla --all-features --example {example}");
        let advice = "an example checks its own result: repair it, or what it shows";
        steps.push(Step::new(format!("example {example}"), arguments, advice).with("BATCHLA_BACKEND", "cpu"));
    }
    Ok(steps)
}

/// The names of the files of `examples`, in order.
fn examples(root: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(root.join("examples"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}
