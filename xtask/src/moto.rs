//! `cargo xtask moto`: the AWS emulator moto, fetched once and run on demand, for tests of `lambda` and of commands with real
//! clients of Kinesis, SQS, DynamoDB Streams and Lambda; and the linter that comes with it, for the template.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::on_demand::{OnDemand, Running, Start, What};
use crate::package_tools::python;
use crate::report::Outcome;
use crate::test::count::Counts;
use crate::workspace::Workspace;

/// The package, as pip names it. `awslambda` needs what the extra `server` brings.
const PACKAGE: &str = "moto[server]>=5.1,<6";

/// A Python environment of its own, made anew when `target` is cleaned.
const DIRECTORY: &str = "target/moto";
const LOG: &str = "target/moto.log";

/// What the linter looks at.
const TEMPLATE: &str = "crates/lambda/template.yaml";

const MOTO: OnDemand = OnDemand { variable: "MILLPOND_MOTO", fetch, start };

/// Fetch and start moto, an AWS emulator, on a free port.
///
/// Needs Python 3 with `venv` and `pip`; the package is installed once, into an environment below `target`. Without `--run`
/// the server stays up until it is interrupted. Its address is in `MILLPOND_MOTO`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    what: What,
}

/// Does what the arguments ask; `false` when the command that was run failed.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<bool> {
    MOTO.run(workspace, &args.what)
}

/// The step of `cargo xtask test`: all tests against the emulator.
pub(crate) fn step(workspace: &Workspace, counts: &mut Counts) -> Result<Outcome> {
    let running = match start(workspace) {
        Ok(running) => running,
        Err(error) => {
            return Ok(Outcome::Skipped(format!(
                "moto could not be started, so sinks, breaker and sources were not tested with real clients: {error:#}"
            )));
        }
    };
    println!("{} at {}", running.name, running.endpoint());
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--workspace", "--test", "moto", "--", "--include-ignored"]);
    cargo.env(MOTO.variable, running.endpoint());
    counts.run(&mut cargo)
}

/// The step of `cargo xtask test` that checks the template by the linter for CloudFormation, which comes with moto, knows the
/// service's own schemas and is what `sam validate --lint` runs.
pub(crate) fn lint(workspace: &Workspace) -> Result<Outcome> {
    if let Err(error) = install(workspace) {
        return Ok(Outcome::Skipped(format!(
            "cfn-lint cannot be had, so {TEMPLATE} was not checked: {error:#}"
        )));
    }
    let linter = workspace.path(DIRECTORY).join("bin/cfn-lint");
    if !linter.is_file() {
        return Ok(Outcome::failed("cfn-lint did not come with moto"));
    }
    let output = workspace.command(linter).arg(TEMPLATE).output().context("cannot run cfn-lint")?;
    let said = String::from_utf8_lossy(&output.stdout);
    Ok(if output.status.success() {
        println!("{TEMPLATE}: cfn-lint has nothing to say");
        Outcome::Ok
    } else {
        Outcome::failed(format!("{TEMPLATE}: {}", said.trim()))
    })
}

/// Installs what is missing, and names the program.
pub(crate) fn fetch(workspace: &Workspace) -> Result<String> {
    Ok(install(workspace)?.display().to_string())
}

/// Makes sure that the server is installed, and returns its program.
pub(crate) fn install(workspace: &Workspace) -> Result<PathBuf> {
    let directory = workspace.path(DIRECTORY);
    let server = directory.join("bin/moto_server");
    // Written last: an installation that was interrupted is begun anew.
    let complete = directory.join("complete");
    if complete.is_file() && server.is_file() {
        return Ok(server);
    }
    if directory.is_dir() {
        fs::remove_dir_all(&directory).with_context(|| format!("cannot remove {DIRECTORY}"))?;
    }
    python(workspace, &directory, &[PACKAGE])?;
    if !server.is_file() {
        bail!("the package moto has no program moto_server");
    }
    fs::write(&complete, PACKAGE)?;
    Ok(server)
}

fn start(workspace: &Workspace) -> Result<Running> {
    let server = install(workspace)?;
    let command = |address: SocketAddr| {
        let mut command = workspace.command(&server);
        command.args(["-H", "127.0.0.1", "-p", &address.port().to_string()]);
        command
    };
    // The server's own page.
    let request = |address: SocketAddr| {
        format!("GET /moto-api/ HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
    };
    Start { name: "moto", log: LOG, command: &command, request, answer: "" }.run(workspace)
}
