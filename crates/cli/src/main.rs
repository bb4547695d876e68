//! The program `batchla`: batched linear algebra from files.

mod backend;
mod bench;
mod cache;
mod determinant;
mod devices;
mod factorize;
mod generate;
mod input;
mod interrupt;
mod invert;
mod memory;
mod operation;
mod output;
mod pipeline;
mod plan;
mod progress;
mod shell;
mod sink;
mod solve;
mod stream;
mod summary;
mod tune;
mod verify;
mod warm;

use std::error::Error as _;
use std::io::ErrorKind::BrokenPipe;
use std::io::Write;
use std::process::ExitCode;

use batchla::{Error, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

/// Everything succeeded.
const SUCCESS: u8 = 0;
/// The call failed; nothing was written.
const FAILURE: u8 = 1;
/// The result was written, but some matrices failed.
const SOME_FAILED: u8 = 2;

/// Batched linear algebra for many small dense matrices, from files.
#[derive(Debug, Parser)]
#[command(name = "batchla", version, max_term_width = 100, propagate_version = true)]
#[command(after_help = "Exit code: 0 if all went well, 1 if the call failed, 2 if some matrices failed.")]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Invert(invert::Invert),
    Factorize(factorize::Factorize),
    Solve(solve::Solve),
    Det(determinant::Det),
    Verify(verify::Verify),
    Generate(generate::Generate),
    Devices(devices::Devices),
    Warm(warm::Warm),
    Plan(plan::Plan),
    Tune(tune::TuneOptions),
    Cache(cache::Cache),
    Bench(bench::Bench),
    Completions(shell::Completions),
    Man(shell::Man),
}

fn main() -> ExitCode {
    let program = match Program::try_parse() {
        Ok(program) => program,
        Err(usage) => {
            // clap's own exit code for wrong usage is 2, which means something else here.
            let code = if usage.use_stderr() { FAILURE } else { SUCCESS };
            return usage.print().map_or(ExitCode::from(FAILURE), |()| code.into());
        }
    };
    let code = match program.command {
        Command::Bench(bench) => bench.run(),
        Command::Invert(invert) => invert.run(),
        Command::Factorize(factorize) => factorize.run(),
        Command::Solve(solve) => solve.run(),
        Command::Det(det) => det.run(),
        Command::Verify(verify) => verify.run(),
        Command::Generate(generate) => generate.run(),
        Command::Devices(devices) => devices.run(),
        Command::Warm(warm) => warm.run(),
        Command::Plan(plan) => plan.run(),
        Command::Tune(tune) => tune.run(),
        Command::Cache(cache) => cache.run(),
        Command::Completions(completions) => completions.run(Program::command()),
        Command::Man(man) => man.run(Program::command()),
    };
    code.unwrap_or_else(|error| {
        // Where standard error is closed, only the exit code is left to tell.
        let _ = writeln!(std::io::stderr(), "{}", explain(&error));
        FAILURE
    })
    .into()
}

/// Prints what a command has to say. Who stops reading, as `head` does, has read enough.
fn print(command: &str, text: &str) -> Result<u8, Error> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(e) if e.kind() != BrokenPipe => {
            Err(Error::new(ErrorKind::Io, command, "the result cannot be printed").caused_by(e))
        }
        _ => Ok(SUCCESS),
    }
}

/// The error and what caused it, a line each.
fn explain(error: &Error) -> String {
    let mut text = format!("batchla: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        // Some errors say their cause themselves.
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str(&format!("\n  because: {words}"));
        }
        source = cause.source();
    }
    text
}
