//! Getting servers as packages, by the ordinary tools, into `target/compare`: nothing is installed outside it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

const PLACE: &str = "target/compare/packages";

const DEPENDENCY_PLUGIN: &str =
    "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies";

/// What is there under its name is complete: it is renamed when all went well.
fn once(
    workspace: &Workspace,
    name: &str,
    fetch: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let complete = workspace.path(PLACE).join(name);
    if complete.is_dir() {
        return Ok(complete);
    }
    println!("fetching {name} into {PLACE}");
    let partial = workspace.path(PLACE).join(format!("{name}.partial"));
    if partial.exists() {
        fs::remove_dir_all(&partial)?;
    }
    fs::create_dir_all(&partial)?;
    fetch(&partial).with_context(|| format!("{name} cannot be had"))?;
    fs::rename(&partial, &complete)?;
    Ok(complete)
}

/// Unpacks a package of Debian, and whatever this system lacks of what it depends on.
pub(super) fn debian(workspace: &Workspace, package: &str) -> Result<PathBuf> {
    once(workspace, package, |into| {
        let archives = into.join("archives");
        fs::create_dir_all(&archives)?;
        let mut names = missing(workspace, package)?;
        names.insert(real_name(workspace, package)?);
        let mut download = workspace.command("apt-get");
        download.args(["--quiet", "download"]).args(&names).current_dir(&archives);
        succeed(&mut download)?;
        for archive in fs::read_dir(&archives)? {
            let mut unpack = workspace.command("dpkg");
            unpack.arg("-x").arg(archive?.path()).arg(into);
            succeed(&mut unpack)?;
        }
        Ok(fs::remove_dir_all(&archives)?)
    })
}

/// What apt would install with it here; nothing is.
fn missing(workspace: &Workspace, package: &str) -> Result<BTreeSet<String>> {
    let mut simulate = workspace.command("apt-get");
    simulate.args(["--simulate", "--no-install-recommends", "install", package]);
    let said = succeed(&mut simulate)?;
    let name = |line: &str| Some(line.strip_prefix("Inst ")?.split_whitespace().next()?.to_owned());
    Ok(said.lines().filter_map(name).collect())
}

/// `postgresql` only depends on the package of the release's version, such as `postgresql-15`.
fn real_name(workspace: &Workspace, package: &str) -> Result<String> {
    let said = succeed(workspace.command("apt-cache").args(["depends", package]))?;
    let versioned = |line: &str| {
        let name = line.trim().strip_prefix("Depends: ")?;
        let version = name.strip_prefix(package)?.strip_prefix('-')?;
        version.chars().all(|letter| letter.is_ascii_digit()).then(|| name.to_owned())
    };
    Ok(said.lines().find_map(versioned).unwrap_or_else(|| package.to_owned()))
}

/// A program out of unpacked packages, with their libraries.
pub(super) fn unpacked(workspace: &Workspace, root: &Path, program: &Path) -> Command {
    let mut command = workspace.command(program);
    let libraries = [root.join("usr/lib"), root.join("lib")]
        .iter()
        .filter_map(|directory| fs::read_dir(directory).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with("-linux-gnu"))
        .map(|path| path.to_string_lossy().into_owned())
        .collect::<Vec<_>>();
    if !libraries.is_empty() {
        command.env("LD_LIBRARY_PATH", libraries.join(":"));
    }
    command
}

/// A jar with all that it depends on: the directory.
pub(super) fn maven(
    workspace: &Workspace,
    group: &str,
    name: &str,
    version: &str,
) -> Result<PathBuf> {
    once(workspace, &format!("{name}-{version}"), |into| {
        let project = into.join("pom.xml");
        let text = format!(
            "<project><modelVersion>4.0.0</modelVersion>\
             <groupId>millpond</groupId><artifactId>compare</artifactId><version>1</version>\
             <dependencies><dependency><groupId>{group}</groupId>\
             <artifactId>{name}</artifactId><version>{version}</version></dependency></dependencies>\
             </project>\n"
        );
        fs::write(&project, text)?;
        let mut mvn = workspace.command("mvn");
        mvn.args(["--batch-mode", "--quiet", "--file"]).arg(&project);
        mvn.args([DEPENDENCY_PLUGIN, "-DincludeScope=runtime"]);
        mvn.arg(format!("-DoutputDirectory={}", into.display()));
        succeed(&mut mvn).map(|_| ())
    })
}

/// Builds a program of a Go module: the directory that it is in.
pub(super) fn go(workspace: &Workspace, name: &str, module: &str) -> Result<PathBuf> {
    once(workspace, name, |into| {
        let mut go = workspace.command("go");
        // Modules go to Go's own cache, as for any other program.
        go.args(["install", module]).env("GOBIN", into);
        succeed(&mut go).map(|_| ())
    })
}

/// Runs a tool; what it said.
pub(super) fn succeed(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing");
        bail!("{program}: {}, and said last: {last}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
