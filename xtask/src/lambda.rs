//! `cargo xtask lambda`: builds the functions as one would deploy them, and has AWS's own tool look at the template and at what
//! was built. Nothing is deployed, and no AWS account is asked.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::package_tools::python;
use crate::workspace::Workspace;

/// The packages, as pip names them. The first brings a linker for other architectures along.
const PACKAGES: [&str; 2] = ["cargo-lambda>=1.9,<2", "aws-sam-cli>=1.150,<2"];

/// A Python environment of its own, made anew when `target` is cleaned.
const DIRECTORY: &str = "target/lambda-tools";

const TEMPLATE: &str = "crates/lambda/template.yaml";

/// Where `cargo lambda` puts what the template deploys.
const BUILT: &str = "target/lambda";

/// The functions: one binary each.
const FUNCTIONS: [&str; 5] =
    ["log-consumer", "queue-worker", "sequencer-intake", "sequencer-ranges", "stream-consumer"];

/// Bytes 18 and 19 of an executable for 64-bit ARM and for x86-64.
const ARM64: [u8; 2] = [0xB7, 0x00];
const X86_64: [u8; 2] = [0x3E, 0x00];

/// Build the Lambda functions with `cargo lambda`, and check them and the template with `sam`.
///
/// Needs Python 3 with `venv` and `pip`; the tools are installed once, into an environment below `target`. A release build
/// takes minutes.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Build for x86-64. The template deploys to 64-bit ARM.
    #[arg(long)]
    x86_64: bool,
    /// Only check the template; build nothing.
    #[arg(long, conflicts_with = "x86_64")]
    check: bool,
}

/// Does what the arguments ask; `false` when a tool was not content.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<bool> {
    let programs = install(workspace)?;
    if !sam(workspace, &programs, &["validate", "--lint"])? {
        return Ok(false);
    }
    if args.check {
        return Ok(true);
    }
    let architecture = if args.x86_64 { "--x86-64" } else { "--arm64" };
    let mut build = workspace.command(programs.join("cargo-lambda"));
    build.args(["lambda", "build", "--release", architecture, "--package", "millpond-lambda"]);
    build.args(["--lambda-dir", BUILT]);
    // The linker is found by the path.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(programs.clone()).chain(std::env::split_paths(&path));
    build.env("PATH", std::env::join_paths(paths)?);
    if !build.status().context("cannot run cargo lambda")?.success() {
        return Ok(false);
    }
    for name in FUNCTIONS {
        let machine = if args.x86_64 { X86_64 } else { ARM64 };
        let size = check(&workspace.path(BUILT).join(name).join("bootstrap"), machine)?;
        println!("{BUILT}/{name}/bootstrap: {size} bytes");
    }
    sam(workspace, &programs, &["build", "--build-dir", "target/sam"])
}

/// That a program is there, for this machine, and may be executed. Returns its size.
fn check(path: &Path, machine: [u8; 2]) -> Result<u64> {
    let bytes = fs::read(path).with_context(|| format!("{} was not built", path.display()))?;
    if !bytes.starts_with(b"\x7FELF") || bytes.get(18..20) != Some(machine.as_slice()) {
        bail!("{} is not an executable for the architecture that was asked for", path.display());
    }
    let metadata = fs::metadata(path)?;
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 == 0 {
        bail!("{} may not be executed", path.display());
    }
    Ok(metadata.len())
}

fn sam(workspace: &Workspace, programs: &Path, args: &[&str]) -> Result<bool> {
    let mut sam = workspace.command(programs.join("sam"));
    sam.args(args).args(["--template-file", TEMPLATE]).env("SAM_CLI_TELEMETRY", "0");
    Ok(sam.status().context("cannot run sam")?.success())
}

/// Makes sure that the tools are installed, and returns the directory that they are in.
fn install(workspace: &Workspace) -> Result<PathBuf> {
    let directory = workspace.path(DIRECTORY);
    // Written last: an installation that was interrupted is begun anew.
    let complete = directory.join("complete");
    if !complete.is_file() {
        if directory.is_dir() {
            fs::remove_dir_all(&directory).with_context(|| format!("cannot remove {DIRECTORY}"))?;
        }
        python(workspace, &directory, &PACKAGES)?;
        fs::write(&complete, PACKAGES.join("\n"))?;
    }
    Ok(directory.join("bin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_deployed_is_an_executable_for_its_architecture() {
        let directory = std::env::temp_dir().join(format!("bootstrap-{}", std::process::id()));
        let mut elf = vec![0; 64];
        elf[..4].copy_from_slice(b"\x7FELF");
        elf[18..20].copy_from_slice(&ARM64);
        fs::write(&directory, &elf).unwrap();
        assert!(check(&directory, X86_64).unwrap_err().to_string().contains("architecture"));
        let refused = check(&directory, ARM64);
        assert!(cfg!(not(unix)) || refused.unwrap_err().to_string().contains("not be executed"));
        fs::remove_file(&directory).unwrap();
        assert!(check(&directory, ARM64).unwrap_err().to_string().contains("was not built"));
    }
}
