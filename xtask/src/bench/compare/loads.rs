//! The loads, and the clients that put them on servers.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::contenders::{Client, Contender};
use super::running::Running;
use crate::binary::{build, executable};
use crate::workspace::Workspace;

/// A load that takes longer is given up.
const LOAD_MAX: Duration = Duration::from_secs(180);
const POLL_EVERY: Duration = Duration::from_millis(10);

/// What is done to each server.
pub(super) struct Load {
    pub(super) name: &'static str,
    workload: &'static str,
    batch: u64,
    callers: u64,
    /// Whether as many messages as are measured wait all the while.
    backlog: bool,
}

pub(super) const LOADS: [Load; 5] = [
    Load { name: "send 1, 64 callers", workload: "send", batch: 1, callers: 64, backlog: false },
    Load { name: "send 10, 16 callers", workload: "send", batch: 10, callers: 16, backlog: false },
    Load { name: "receive 10, 16", workload: "receive", batch: 10, callers: 16, backlog: true },
    Load { name: "cycle 10, 16", workload: "cycle", batch: 10, callers: 16, backlog: true },
    Load { name: "drain 10, 16", workload: "drain", batch: 10, callers: 16, backlog: false },
];

/// What a load on a server came to.
pub(super) struct Figure {
    /// Messages a second.
    pub(super) rate: f64,
    /// All that the client has said.
    pub(super) said: Value,
}

/// The programs that make load.
pub(super) struct Clients<'a> {
    workspace: &'a Workspace,
    millpond: PathBuf,
    others: PathBuf,
}

impl<'a> Clients<'a> {
    /// Builds them for release, or takes a `millpond` that is there.
    pub(super) fn build(workspace: &'a Workspace, millpond: Option<PathBuf>) -> Result<Self> {
        let millpond = match millpond {
            Some(file) => file.canonicalize().with_context(|| format!("no {}", file.display()))?,
            None => build(workspace, "millpond", &["--release"])?,
        };
        let mut cargo = workspace.cargo();
        cargo.args(["build", "--quiet", "--release", "--manifest-path", "compare/Cargo.toml"]);
        // Not where the workspace is built: what other servers' clients need is no part of it.
        cargo.arg("--target-dir").arg(workspace.path("target/compare/build"));
        let others = executable(&mut cargo, "the clients in compare/")?;
        Ok(Self { workspace, millpond, others })
    }

    /// The server's own binary.
    pub(super) fn millpond(&self) -> &Path {
        &self.millpond
    }

    /// Puts a load on a server.
    pub(super) fn run(
        &self,
        contender: &Contender,
        running: &Running,
        load: &Load,
        messages: u64,
    ) -> Result<Figure> {
        let mut command = match contender.client {
            Client::Sqs => {
                let mut command = self.workspace.command(&self.millpond);
                command.args(["bench", "--json", "--unsigned", "--endpoint"]);
                command.arg(format!("http://{}", running.address));
                command
            }
            Client::Own(name) => {
                let mut command = self.workspace.command(&self.others);
                command.args(["--server", name, "--address", &running.address.to_string()]);
                command
            }
        };
        command.args(["--workload", load.workload, "--messages", &messages.to_string()]);
        command.args(["--batch", &load.batch.to_string()]);
        command.args(["--concurrency", &load.callers.to_string()]);
        let backlog = if load.backlog { messages } else { 0 };
        command.args(["--backlog", &backlog.to_string()]);
        if let Some(id) = running.id() {
            command.args(["--process", &id.to_string()]);
        }
        let said = within(&mut command).with_context(|| format!("{}: the client", load.name))?;
        let rate = said.get("messages_per_second").and_then(Value::as_f64).context("no rate")?;
        Ok(Figure { rate, said })
    }
}

/// Runs a client to its end; the JSON that it prints.
fn within(command: &mut Command) -> Result<Value> {
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if started.elapsed() > LOAD_MAX {
            child.kill()?;
            child.wait()?;
            bail!("it did not end within {} s", LOAD_MAX.as_secs());
        }
        std::thread::sleep(POLL_EVERY);
    };
    // What they print fits into a pipe.
    let (mut said, mut complained) = (String::new(), String::new());
    child.stdout.take().context("no output")?.read_to_string(&mut said)?;
    child.stderr.take().context("no output")?.read_to_string(&mut complained)?;
    if !status.success() {
        bail!("{status}: {}", complained.trim());
    }
    serde_json::from_str(&said).with_context(|| format!("not JSON: {said}"))
}
