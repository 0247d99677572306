//! The server that clients talk to: started on a free port, stopped by its own id.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// A running server. Dropping it ends exactly the process that was started.
pub(crate) struct Server {
    child: Child,
    endpoint: String,
    _directory: Option<Directory>,
}

impl Server {
    /// Starts it on a new directory, with these options.
    pub(crate) fn start(workspace: &Workspace, binary: &Path, options: &[&str]) -> Result<Self> {
        let directory = Directory::new(workspace)?;
        let mut command = workspace.command(binary);
        command.args(["serve", "--store"]).arg(&directory.0).args(options);
        Self::run(command, Some(directory))
    }

    /// Starts it on a new table of the DynamoDB engine at this endpoint.
    pub(crate) fn start_on_table(
        workspace: &Workspace,
        binary: &Path,
        endpoint: &str,
    ) -> Result<Self> {
        let mut command = workspace.command(binary);
        command.args(["serve", "--store", "dynamodb:queues", "--create-table"]);
        command.env("AWS_ENDPOINT_URL", endpoint);
        Self::run(command, None)
    }

    fn run(mut command: Command, directory: Option<Directory>) -> Result<Self> {
        let mut child = command
            .args(["--listen", "127.0.0.1:0", "--log-level", "warn"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot run the server")?;
        let output = child.stdout.take().context("the server has no output")?;
        let mut endpoint = None;
        for line in BufReader::new(output).lines() {
            let line = line?;
            endpoint = endpoint.or(line.strip_prefix("endpoint ").map(|e| e.trim().to_owned()));
            if line.starts_with("stop ") {
                break;
            }
        }
        let Some(endpoint) = endpoint else {
            bail!("the server ended: {}", child.wait()?);
        };
        Ok(Self { child, endpoint, _directory: directory })
    }

    /// The address to give to a client.
    pub(crate) fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// The id of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A directory that is removed when it is not needed any more.
struct Directory(PathBuf);

impl Directory {
    fn new(workspace: &Workspace) -> Result<Self> {
        let path = workspace.path(format!("target/server/data-{}", std::process::id()));
        let directory = Self(path);
        directory.remove();
        std::fs::create_dir_all(&directory.0)?;
        Ok(directory)
    }

    fn remove(&self) {
        // It is made anew, or not needed any more.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.remove();
    }
}
