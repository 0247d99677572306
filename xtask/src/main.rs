//! The project's own tools, run as `cargo xtask <command>`.

#![allow(
    clippy::disallowed_methods,
    reason = "tools measure and wait for real processes in real time"
)]

mod bench;
mod binary;
mod clients;
mod cost;
mod crash;
mod dynamodb_local;
mod fuzz;
mod lambda;
mod metadata;
mod model;
mod moto;
mod on_demand;
mod package_tools;
mod report;
mod server;
mod sim;
mod test;
mod tidy;
mod workspace;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// The project's own tools.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Tidy(tidy::Args),
    Test(test::Args),
    #[command(hide = true)]
    Step(test::beside::Args),
    DynamodbLocal(dynamodb_local::Args),
    Moto(moto::Args),
    Lambda(lambda::Args),
    Cost(cost::Args),
    Clients(clients::Args),
    Model(model::Args),
    Crash(crash::Args),
    Sim(sim::Args),
    Fuzz(fuzz::Args),
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let workspace = Workspace::find();
    let result = match cli.command {
        Command::Tidy(args) => tidy::run(&workspace, &args),
        Command::Test(args) => test::run(&workspace, &args),
        Command::Step(args) => test::beside::run(&workspace, &args),
        Command::DynamodbLocal(args) => dynamodb_local::run(&workspace, &args),
        Command::Moto(args) => moto::run(&workspace, &args),
        Command::Lambda(args) => lambda::run(&workspace, &args),
        Command::Cost(args) => cost::run(&workspace, &args),
        Command::Clients(args) => clients::run(&workspace, &args),
        Command::Model(args) => model::run(&workspace, &args),
        Command::Crash(args) => crash::run(&workspace, &args),
        Command::Fuzz(args) => fuzz::run(&workspace, &args),
        Command::Sim(args) => sim::run(&workspace, &args),
        Command::Bench(args) => bench::run(&workspace, &args),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn every_command_can_be_parsed() {
        super::Cli::command().debug_assert();
    }
}
