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
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    kind: Vec<String>,
}

/// Builds a binary as it ships, with these options of cargo; where it is.
pub(crate) fn build(workspace: &Workspace, name: &str, options: &[&str]) -> Result<PathBuf> {
    let mut cargo = workspace.cargo();
    cargo.args(["build", "--quiet", "--workspace", "--bin", name]).args(options);
    executable(&mut cargo, name)
}

/// Builds a binary as the tests of its package have it; where it is.
///
/// What tests depend on asks for features of tokio, serde and others that the binary by itself does not need. With one of the
/// test programs named beside it, cargo takes those features too, and finds everything built by `cargo test --workspace`; without,
/// it compiles half of all dependencies and the AWS clients a second time, which takes minutes. That the features which the
/// binary itself asks for are enough is a check of `cargo xtask tidy`.
pub(crate) fn build_as_tested(workspace: &Workspace, name: &str, test: &str) -> Result<PathBuf> {
    build(workspace, name, &["--test", test])
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
    last_binary(&messages).with_context(|| format!("cargo does not say where {name} is"))
}

/// The last binary that cargo's messages name; test programs are none.
fn last_binary(messages: &str) -> Option<PathBuf> {
    let binary = |line: &str| {
        let Message { executable, target } = serde_json::from_str(line).ok()?;
        executable.filter(|_| target.is_some_and(|target| target.kind.iter().any(|k| k == "bin")))
    };
    messages.lines().filter_map(binary).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_is_found_among_libraries_and_test_programs() {
        let messages = r#"{"reason":"compiler-artifact","target":{"kind":["lib"],"name":"a"},"executable":null}
{"reason":"compiler-artifact","target":{"kind":["bin"],"name":"a"},"executable":"debug/a"}
{"reason":"compiler-artifact","target":{"kind":["test"],"name":"b"},"executable":"debug/deps/b-1"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(last_binary(messages), Some(PathBuf::from("debug/a")));
        assert_eq!(last_binary(r#"{"reason":"build-finished","success":true}"#), None);
    }
}
