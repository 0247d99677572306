//! The checks that cargo does for us. Their output goes straight to the terminal.

use std::process::Command;

use anyhow::{Context, Result};

use crate::report::Outcome;
use crate::workspace::Workspace;

/// The code is formatted as rustfmt does it.
pub(super) fn format(workspace: &Workspace) -> Result<Outcome> {
    succeed(workspace.cargo().args(["fmt", "--all", "--check"]), "run `cargo fmt`")
}

/// Clippy has nothing to say, tests and examples included.
pub(super) fn clippy(workspace: &Workspace) -> Result<Outcome> {
    let mut cargo = workspace.cargo();
    cargo.args(["clippy", "--quiet", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    succeed(&mut cargo, "see clippy's messages above")
}

/// The documentation builds, and its links lead somewhere.
pub(super) fn docs(workspace: &Workspace) -> Result<Outcome> {
    let mut cargo = workspace.cargo();
    cargo.args(["doc", "--quiet", "--workspace", "--no-deps", "--document-private-items"]);
    cargo.env("RUSTDOCFLAGS", "-D warnings");
    succeed(&mut cargo, "see rustdoc's messages above")
}

/// What ships builds with the features that it asks for itself. The other checks, and all tests, have those too that only
/// tests ask for; after [`docs`], which has the same dependencies, it takes seconds.
pub(super) fn features(workspace: &Workspace) -> Result<Outcome> {
    let mut cargo = workspace.cargo();
    cargo.args(["check", "--quiet", "--workspace"]);
    succeed(&mut cargo, "a feature is missing in a manifest: see the messages above")
}

fn succeed(command: &mut Command, advice: &str) -> Result<Outcome> {
    let status = command.status().context("cannot run cargo")?;
    Ok(if status.success() { Outcome::Ok } else { Outcome::failed(advice) })
}
