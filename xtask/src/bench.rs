//! `cargo xtask bench`: speed on the embedded engine, beside what the machine itself can do.

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// Measure speed, memory and disk on the embedded engine, and say which targets are reached.
///
/// A bare write-ahead log is measured in the same run as the limit. The figures are printed as a table and written
/// to `target/bench/millpond.json`. It takes about three minutes and 4 GB of disk, and is not part of CI.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to measure: sends, log, backlog, sequencer. Default: all.
    what: Vec<String>,
    /// A share of the full work, in percent: for a quick look.
    #[arg(long, default_value_t = 100)]
    percent: u64,
}

/// Runs the measurements; `false` when a target is missed.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<bool> {
    let status = workspace
        .cargo()
        .args(["run", "--quiet", "--release", "--package", "millpond-bench", "--", "run"])
        .args(&args.what)
        .args(["--percent", &args.percent.to_string()])
        .arg("--dir")
        .arg(workspace.path("target/bench"))
        .arg("--json")
        .arg(workspace.path("target/bench/millpond.json"))
        .status()
        .context("cannot run cargo")?;
    Ok(status.success())
}
