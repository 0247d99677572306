//! `cargo xtask cost`: what operations cost on DynamoDB, as the service itself counts.

use std::process::Command;

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// Print the DynamoDB units that each operation takes, and fail when one takes more than allowed.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// Runs the measurement; `false` when something costs too much.
pub(crate) fn run(workspace: &Workspace, _: &Args) -> Result<bool> {
    Ok(command(workspace).status().context("cannot run cargo test")?.success())
}

/// The measurements are tests that print their tables, in modules that end in `cost`.
fn command(workspace: &Workspace) -> Command {
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--workspace", "--test", "dynamodb", "cost::", "--", "--nocapture"]);
    cargo
}
