//! `millpond completions`: scripts for shells.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::Failure;
use super::output::print_text;
use crate::cli::Cli;

/// `millpond completions`.
///
/// For bash, for example: `millpond completions bash > ~/.local/share/bash-completion/completions/millpond`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Prints the script.
pub fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "millpond", &mut script);
    print_text(&String::from_utf8_lossy(&script))
}
