//! Installing clients in pinned versions, below `target/clients`, by the ordinary tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::package_tools::{finish, python};
use crate::workspace::Workspace;

const CLIENTS: &str = "crates/server/clients";
const PLACE: &str = "target/clients";

/// What a suite needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// A virtual environment with what this file names.
    Python(&'static str),
    /// `node_modules` with what `package.json` names.
    Node,
}

/// What is there.
pub(crate) struct Installed {
    wanted: Wanted,
    directory: PathBuf,
}

impl Installed {
    /// Installs it, unless it is there already in these versions.
    pub(crate) fn get(workspace: &Workspace, wanted: Wanted) -> Result<Self> {
        let (manifest, name) = match wanted {
            Wanted::Python(file) => (format!("{CLIENTS}/python/{file}"), file.replace(".txt", "")),
            Wanted::Node => (format!("{CLIENTS}/node/package.json"), "node".to_owned()),
        };
        let manifest = workspace.path(manifest);
        let directory = workspace.path(PLACE).join(name);
        let installed = Self { wanted, directory };
        installed.make_sure(workspace, &manifest)?;
        if wanted == Wanted::Node {
            let scripts = manifest.parent().context("the manifest has no directory")?;
            copy_scripts(scripts, &installed.directory)?;
        }
        Ok(installed)
    }

    fn make_sure(&self, workspace: &Workspace, manifest: &Path) -> Result<()> {
        let directory = &self.directory;
        let pinned = fs::read_to_string(manifest)
            .with_context(|| format!("cannot read {}", manifest.display()))?;
        let stamp = directory.join("installed");
        if fs::read_to_string(&stamp).is_ok_and(|installed| installed == pinned) {
            return Ok(());
        }
        if directory.exists() {
            fs::remove_dir_all(directory)?;
        }
        fs::create_dir_all(directory)?;
        match self.wanted {
            Wanted::Python(_) => {
                let file = manifest.to_str().context("the path of the manifest is not UTF-8")?;
                python(workspace, directory, &["-r", file])?;
            }
            Wanted::Node => install_node(workspace, directory, manifest)?,
        }
        Ok(fs::write(&stamp, pinned)?)
    }

    /// The command that runs a script.
    pub(crate) fn command(&self, workspace: &Workspace, script: &str) -> Command {
        match self.wanted {
            Wanted::Python(_) => {
                let mut command = workspace.command(self.directory.join("bin/python"));
                command.arg(workspace.path(format!("{CLIENTS}/python/{script}")));
                // The working tree stays as it is.
                command.env("PYTHONDONTWRITEBYTECODE", "1");
                command
            }
            Wanted::Node => {
                let mut command = workspace.command("node");
                command.arg(self.directory.join(script));
                command
            }
        }
    }
}

fn install_node(workspace: &Workspace, directory: &Path, manifest: &Path) -> Result<()> {
    finish("Node.js (`node`)", workspace.command("node").arg("--version"))?;
    fs::copy(manifest, directory.join("package.json"))?;
    let mut npm = workspace.command("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel", "error"]);
    finish("npm install", npm.current_dir(directory))
}

/// Modules are looked for beside the script that wants them, so it goes there.
fn copy_scripts(scripts: &Path, directory: &Path) -> Result<()> {
    for script in fs::read_dir(scripts)? {
        let script = script?.path();
        if script.extension().is_some_and(|extension| extension == "mjs") {
            fs::copy(&script, directory.join(script.file_name().unwrap_or_default()))?;
        }
    }
    Ok(())
}
