//! The binary `millpond`.

mod api;
mod cli;
mod commands;
mod config;
mod demo;
mod http;
mod place;
mod progress;
mod serve;
mod telemetry;

use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _};

use crate::cli::{Cli, Command, ConfigCommand};
use crate::config::{Config, ConfigError, ServeFlags};

type Outcome = Result<(), Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    if let Command::Work(family) = cli.command {
        return commands::run(family);
    }
    match run(cli.command, &matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("millpond: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command, matches: &ArgMatches) -> Outcome {
    match command {
        Command::Work(_) => {}
        Command::Demo(demo) => demo::run(&demo)?,
        Command::Serve(serve) => serve::run(resolve(serve.flags, matches, &["serve"])?)?,
        Command::Config(ConfigCommand::Check(serve)) => {
            print!("{}", config::check(&resolve(serve.flags, matches, &["config", "check"])?));
        }
    }
    Ok(())
}

/// The configuration; the matches of the subcommand know which values came from where.
fn resolve(flags: ServeFlags, matches: &ArgMatches, path: &[&str]) -> Result<Config, ConfigError> {
    let inner = path.iter().try_fold(matches, |matches, name| matches.subcommand_matches(name));
    Config::resolve(flags, inner.unwrap_or(matches))
}
