//! `batchla completions`, `batchla man`: what a shell and a manual want to know of the program.

use std::fs;
use std::path::PathBuf;

use batchla::{Error, ErrorKind};
use clap::{Args, Command};
use clap_complete::Shell;

use crate::print;

/// Print completions for a shell.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

const COMPLETIONS: &str = "\
Examples:
  batchla completions bash > ~/.local/share/bash-completion/completions/batchla
  batchla completions zsh  > ~/.zfunc/_batchla
  batchla completions fish > ~/.config/fish/completions/batchla.fish";

/// Write man pages, one a command, into a folder.
#[derive(Debug, Args)]
#[command(after_help = MAN)]
pub(crate) struct Man {
    /// The folder; it is made where there is none
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

const MAN: &str = "\
Examples:
  batchla man ~/.local/share/man/man1 && man batchla-invert";

impl Completions {
    /// Runs the command; gives the exit code.
    pub(crate) fn run(&self, mut program: Command) -> Result<u8, Error> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut program, "batchla", &mut text);
        print("completions", String::from_utf8_lossy(&text).trim_end())
    }
}

impl Man {
    /// Runs the command; gives the exit code.
    pub(crate) fn run(&self, program: Command) -> Result<u8, Error> {
        let folder = self.folder.display();
        let made = fs::create_dir_all(&self.folder).and_then(|()| clap_mangen::generate_to(program, &self.folder));
        made.map_err(|e| {
            Error::new(ErrorKind::Io, "man", format!("pages cannot be written to {folder}"))
                .advise("name a folder that may be written to")
                .caused_by(e)
        })?;
        print("man", &format!("written to {folder}"))
    }
}
