//! `cargo xtask bench`: speed on the embedded engine, beside what the machine itself can do, over HTTP, and beside other
//! servers.

mod compare;
mod http;
mod wire;

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// Measure speed, memory and disk on the embedded engine, and say which targets are reached.
///
/// A bare write-ahead log is measured in the same run as the limit. The figures are printed as a table and written
/// to `target/bench/millpond.json`; those of the server over HTTP to `target/bench/http.json`. It takes about five minutes
/// and 4 GB of disk, and is not part of CI.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<BenchCommand>,

    /// What to measure: sends, log, backlog, queue, sequencer, http. Default: all.
    what: Vec<String>,
    /// A share of the full work, in percent: for a quick look.
    #[arg(long, default_value_t = 100)]
    percent: u64,
}

#[derive(clap::Subcommand)]
enum BenchCommand {
    Compare(compare::Args),
}

/// What is measured over HTTP.
const HTTP: &str = "http";

/// Runs the measurements; `false` when a target is missed.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<bool> {
    if let Some(BenchCommand::Compare(args)) = &args.command {
        return compare::run(workspace, args);
    }
    let (over_http, what): (Vec<_>, Vec<_>) = args.what.iter().partition(|what| *what == HTTP);
    let all = args.what.is_empty();
    let mut well = true;
    if all || !what.is_empty() {
        well &= run_engine(workspace, &what, args.percent)?;
    }
    if all || !over_http.is_empty() {
        well &= http::run(workspace, args.percent)?;
    }
    Ok(well)
}

fn run_engine(workspace: &Workspace, what: &[&String], percent: u64) -> Result<bool> {
    let status = workspace
        .cargo()
        .args(["run", "--quiet", "--release", "--package", "millpond-bench", "--", "run"])
        .args(what)
        .args(["--percent", &percent.to_string()])
        .arg("--dir")
        .arg(workspace.path("target/bench"))
        .arg("--json")
        .arg(workspace.path("target/bench/millpond.json"))
        .status()
        .context("cannot run cargo")?;
    Ok(status.success())
}
