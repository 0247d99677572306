//! Building a binary of the workspace.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::workspace::Workspace;

/// The part of cargo's messages that says where a binary is.
#[derive(Deserialize)]
struct Message {
    executable: Option<PathBuf>,
}

/// Builds a binary, with these options of cargo; where it is. Like all tests, it is built with the features that the whole
/// workspace asks of its dependencies: for one package alone, many of them would be compiled a second time.
pub(crate) fn build(workspace: &Workspace, name: &str, options: &[&str]) -> Result<PathBuf> {
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--quiet", "--workspace", "--bin", name]).args(options);
    executable(&mut cargo, name)
}

/// Runs a build that makes one binary; where it is.
pub(crate) fn executable(cargo: &mut Command, name: &str) -> Result<PathBuf> {
    let output = cargo
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    if !output.status.success() {
        bail!("{name} cannot be built: {}", output.status);
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let built = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok()?.executable)
        .next_back();
    built.with_context(|| format!("cargo does not say where {name} is"))
}
