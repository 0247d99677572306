//! The part of `cargo metadata` that the checks read.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::workspace::Workspace;

/// All packages of the build and how they depend on each other.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) workspace_members: Vec<String>,
    pub(crate) resolve: Resolve,
}

/// One package, of the workspace or not.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    pub(crate) manifest_path: String,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

/// A dependency as a manifest names it.
#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for a normal dependency, else `dev` or `build`.
    pub(crate) kind: Option<String>,
}

/// Something that cargo builds: a library, a binary, a test.
#[derive(Deserialize)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) kind: Vec<String>,
}

/// The graph that cargo resolved.
#[derive(Deserialize)]
pub(crate) struct Resolve {
    pub(crate) nodes: Vec<Node>,
}

/// One package of the graph.
#[derive(Deserialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) deps: Vec<Edge>,
}

/// One resolved dependency.
#[derive(Deserialize)]
pub(crate) struct Edge {
    pub(crate) pkg: String,
    pub(crate) dep_kinds: Vec<EdgeKind>,
}

/// Why the dependency is there.
#[derive(Deserialize)]
pub(crate) struct EdgeKind {
    pub(crate) kind: Option<String>,
}

impl Metadata {
    /// Asks cargo.
    pub(crate) fn load(workspace: &Workspace) -> Result<Self> {
        let output = workspace
            .cargo()
            .args(["metadata", "--format-version", "1", "--all-features"])
            .output()
            .context("cannot run cargo metadata")?;
        if !output.status.success() {
            bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        serde_json::from_slice(&output.stdout).context("cannot understand cargo metadata")
    }

    /// The workspace's own packages.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| self.workspace_members.contains(&package.id))
    }

    /// Whether the workspace has a package with such a target, as in `("millpond-sim", "bin", "x")`.
    pub(crate) fn has_target(&self, package: &str, kind: &str, target: &str) -> bool {
        self.members().filter(|member| member.name == package).any(|member| {
            member
                .targets
                .iter()
                .any(|found| found.name == target && found.kind.iter().any(|k| k == kind))
        })
    }

    /// Packages by their id.
    pub(crate) fn by_id(&self) -> BTreeMap<&str, &Package> {
        self.packages.iter().map(|package| (package.id.as_str(), package)).collect()
    }
}

impl Package {
    /// The name of the directory that holds the package: `store` for `crates/store`.
    pub(crate) fn directory(&self) -> &str {
        Path::new(&self.manifest_path)
            .parent()
            .and_then(Path::file_name)
            .and_then(|name| name.to_str())
            .unwrap_or(&self.name)
    }
}
