//! `cargo xtask model`: long histories on the embedded engine, each judged by its model.

use std::process::Command;

use anyhow::{Context, Result};

use crate::report::Outcome;
use crate::test::count::Counts;
use crate::workspace::Workspace;

/// Operations of all models together in CI.
const OPERATIONS: u64 = 300_000;

/// Run random histories of queues, logs, sequencers, lanes, stores and consumers on the embedded engine, and compare every
/// answer with a model.
///
/// Prints how many operations each model has judged, and the seed. The same seed makes the same histories.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Operations of all models together.
    #[arg(long, default_value_t = OPERATIONS)]
    operations: u64,
    /// Repeats a run.
    #[arg(long)]
    seed: Option<u64>,
    /// Only the models whose name contains this: queues, logs, sequencers, stores, lanes, consumers.
    #[arg(long, default_value = "")]
    only: String,
}

/// Runs the models; `false` when one was contradicted.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<bool> {
    let mut cargo = command(workspace, &args.only, args.operations);
    if let Some(seed) = args.seed {
        cargo.env("MILLPOND_MODEL_SEED", seed.to_string());
    }
    Ok(cargo.status().context("cannot run cargo test")?.success())
}

/// The step of `cargo xtask test`.
pub(crate) fn step(workspace: &Workspace, counts: &mut Counts) -> Result<Outcome> {
    counts.run(&mut command(workspace, "", OPERATIONS))
}

fn command(workspace: &Workspace, only: &str, operations: u64) -> Command {
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--workspace", "--test", "embedded", &format!("models::{only}")]);
    cargo.args(["--", "--nocapture"]).env("MILLPOND_MODEL_OPERATIONS", operations.to_string());
    cargo
}
