//! Installing clients in pinned versions, below `target/clients`, by the ordinary tools.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

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
            Wanted::Python(_) => install_python(workspace, directory, manifest)?,
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

fn install_python(workspace: &Workspace, directory: &Path, manifest: &Path) -> Result<()> {
    succeed(workspace.command("python3").args(["-m", "venv"]).arg(directory))
        .context("Python 3 with `venv` is needed")?;
    let mut pip = workspace.command(directory.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
        .arg(manifest);
    succeed(&mut pip).context("pip could not install the clients")
}

fn install_node(workspace: &Workspace, directory: &Path, manifest: &Path) -> Result<()> {
    succeed(workspace.command("node").arg("--version")).context("Node.js is needed")?;
    fs::copy(manifest, directory.join("package.json"))?;
    let mut npm = workspace.command("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel", "error"]);
    succeed(npm.current_dir(directory)).context("npm could not install the clients")?;
    Ok(())
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

fn succeed(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing");
        bail!("{program}: {}, and said last: {last}", output.status);
    }
    Ok(())
}
