//! Package tools (Maven, npm, pip), run for a bounded time.

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// Nothing that is fetched is larger than 100 MB; what takes longer is given up.
const FETCH_MAX: Duration = Duration::from_mins(5);
const POLL_EVERY: Duration = Duration::from_millis(50);

/// Runs a package tool. When it fails, the last that it said is part of the error.
pub(crate) fn finish(name: &str, command: &mut Command) -> Result<()> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => bail!("{name} is not installed"),
        Err(error) => return Err(error).with_context(|| format!("cannot run {name}")),
    };
    // Read as it comes: a tool that has much to say would wait for its reader.
    let errors = child.stderr.take().context("the tool has no standard error")?;
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        let mut errors = errors;
        // What cannot be read is missing from a message, no more.
        let _ = errors.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    });
    let started = Instant::now();
    while started.elapsed() < FETCH_MAX {
        let Some(status) = child.try_wait()? else {
            std::thread::sleep(POLL_EVERY);
            continue;
        };
        if status.success() {
            return Ok(());
        }
        let said = reader.join().unwrap_or_default();
        let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing");
        bail!("{name} failed ({status}); it said last: {last}");
    }
    child.kill()?;
    child.wait()?;
    bail!("{name} took longer than {} s", FETCH_MAX.as_secs())
}

/// Makes a virtual environment of Python with these packages, as pip names them.
pub(crate) fn python(workspace: &Workspace, directory: &Path, packages: &[&str]) -> Result<()> {
    let mut make = workspace.command("python3");
    finish("python3 -m venv", make.args(["-m", "venv"]).arg(directory))?;
    let mut pip = workspace.command(directory.join("bin/python3"));
    // Most of what is installed is never loaded, so that compiling all of it takes longer than it saves.
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]);
    finish("pip install", pip.args(packages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_that_fails_is_quoted_and_one_that_is_missing_is_named() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo first >&2; echo the reason >&2; echo >&2; exit 3"]);
        let error = finish("the shell", &mut command).unwrap_err().to_string();
        assert!(error.contains("the shell failed") && error.ends_with("the reason"), "{error}");
        let error = finish("a ghost", &mut Command::new("no-such-tool-here")).unwrap_err();
        assert_eq!(error.to_string(), "a ghost is not installed");
        finish("the shell", Command::new("sh").args(["-c", "true"])).unwrap();
    }
}
