//! The binary `millpond`.

mod api;
mod cli;
mod demo;
mod place;
mod progress;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let outcome = match cli::Cli::parse().command {
        cli::Command::Demo(demo) => demo::run(&demo),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("millpond: {error}");
            ExitCode::FAILURE
        }
    }
}
