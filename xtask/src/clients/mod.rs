//! `cargo xtask clients`: real SQS clients against the real server.

mod install;
mod suite;

use anyhow::{Result, bail};

use self::install::{Installed, Wanted};
use self::suite::{SUITES, Suite};
use crate::binary::build_as_tested;
use crate::report::Outcome;
use crate::workspace::Workspace;

/// Run real SQS clients against the server: boto3 in both encodings, the AWS CLI, Celery, the SDK for JavaScript.
///
/// What they are is in `crates/server/clients`; they are installed below `target/clients`, in pinned versions, the first time.
/// Each suite gets a server of its own, on a free port and a new directory, or, for the walk of the README there, on a table of
/// Amazon's DynamoDB Local. What cannot be installed or started is SKIPPED, with the reason.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only the suites whose name contains this.
    #[arg(long)]
    only: Option<String>,
}

/// Runs the suites; `false` when a check failed.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<bool> {
    let outcome = run_suites(workspace, args.only.as_deref())?;
    match &outcome {
        Outcome::Ok => println!("all clients are content"),
        Outcome::Failed(problems) => println!("FAILED: {}", problems.join("\n        ")),
        Outcome::Skipped(reason) => println!("SKIPPED: {reason}"),
    }
    Ok(!outcome.is_failure())
}

/// The step of `cargo xtask test`.
pub(crate) fn step(workspace: &Workspace) -> Result<Outcome> {
    run_suites(workspace, None)
}

/// Installs what all suites need, as far as it can be had.
pub(crate) fn fetch(workspace: &Workspace) {
    for suite in SUITES {
        // The suite itself tries again, and says what is missing.
        let _ = Installed::get(workspace, suite.wants);
    }
}

fn run_suites(workspace: &Workspace, only: Option<&str>) -> Result<Outcome> {
    let suites: Vec<&Suite> =
        SUITES.iter().filter(|suite| only.is_none_or(|part| suite.name.contains(part))).collect();
    if suites.is_empty() {
        return Ok(Outcome::failed("no suite has such a name"));
    }
    let binary = build_as_tested(workspace, "millpond", "server")?;
    let (mut problems, mut skipped, mut checks) = (Vec::new(), Vec::new(), 0);
    let mut missing = Vec::new();
    for suite in suites {
        println!("\n--- {} ---", suite.name);
        let ready = installed(workspace, suite.wants, &mut missing)
            .and_then(|installed| Ok((installed, suite.engine(workspace)?)));
        let (installed, engine) = match ready {
            Ok(ready) => ready,
            Err(error) => {
                println!("SKIPPED {}: {error:#}", suite.name);
                skipped.push(format!("{}: {error:#}", suite.name));
                continue;
            }
        };
        match suite.run(workspace, &installed, engine.as_ref(), &binary) {
            Ok(count) => checks += count,
            Err(error) => {
                println!("FAILED {}: {error:#}", suite.name);
                problems.push(format!("{}: {error:#}", suite.name));
            }
        }
    }
    println!("\n{checks} checks by real clients went well");
    Ok(if problems.is_empty() && !skipped.is_empty() {
        Outcome::Skipped(format!(
            "{checks} checks went well, but not all ran: {}",
            skipped.join("; ")
        ))
    } else {
        Outcome::from_problems(problems)
    })
}

/// A client; one that could not be installed once is not tried again.
fn installed(
    workspace: &Workspace,
    wanted: Wanted,
    missing: &mut Vec<(Wanted, String)>,
) -> Result<Installed> {
    if let Some((_, reason)) = missing.iter().find(|(known, _)| *known == wanted) {
        bail!("{reason}");
    }
    let installed = Installed::get(workspace, wanted);
    if let Err(error) = &installed {
        missing.push((wanted, format!("{error:#}")));
    }
    installed
}
