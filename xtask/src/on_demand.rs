//! Servers that are fetched once and run on demand: what `cargo xtask dynamodb-local` and `cargo xtask moto` share.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

/// A Java virtual machine on a machine with two cores, which run tests meanwhile, is up in a fraction of this.
const START_MAX: Duration = Duration::from_secs(120);
const POLL_EVERY: Duration = Duration::from_millis(100);
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// What to do with a server.
#[derive(clap::Args)]
pub(crate) struct What {
    /// Only fetch what is needed, start nothing.
    #[arg(long, conflicts_with = "run")]
    fetch: bool,
    /// Run the command after `--` with the server's address in its environment, then stop.
    #[arg(long, requires = "command")]
    run: bool,
    /// The command for `--run`.
    #[arg(last = true, requires = "run")]
    command: Vec<String>,
}

/// A server that can be had.
pub(crate) struct OnDemand {
    /// Tests find the server's address here.
    pub(crate) variable: &'static str,
    /// Makes sure that all is there, and names it.
    pub(crate) fetch: fn(&Workspace) -> Result<String>,
    pub(crate) start: fn(&Workspace) -> Result<Running>,
}

impl OnDemand {
    /// Does what the arguments ask; `false` when the command that was run failed.
    pub(crate) fn run(&self, workspace: &Workspace, args: &What) -> Result<bool> {
        if args.fetch {
            println!("{}", (self.fetch)(workspace)?);
            return Ok(true);
        }
        let mut running = (self.start)(workspace)?;
        if let Some((program, arguments)) = args.command.split_first() {
            let status = workspace
                .command(program)
                .args(arguments)
                .env(self.variable, running.endpoint())
                .status()
                .with_context(|| format!("cannot run {program}"))?;
            return Ok(status.success());
        }
        println!("{} at {}", running.name, running.endpoint());
        println!("export {}={}", self.variable, running.endpoint());
        bail!("the server ended: {}", running.child.wait()?)
    }
}

/// A running server. Dropping it ends exactly the process that was started.
pub(crate) struct Running {
    child: Child,
    address: SocketAddr,
    /// Which server this is.
    pub(crate) name: &'static str,
}

/// How a server is started, and what it answers when it is up.
pub(crate) struct Start<'a> {
    pub(crate) name: &'static str,
    /// Where the server's own output goes.
    pub(crate) log: &'static str,
    /// The command that starts it at an address.
    pub(crate) command: &'a dyn Fn(SocketAddr) -> Command,
    /// A whole HTTP request, for an address.
    pub(crate) request: fn(SocketAddr) -> String,
    /// What is in the answer.
    pub(crate) answer: &'static str,
}

impl Start<'_> {
    /// Starts the server on a free port and returns when it answers.
    pub(crate) fn run(&self, workspace: &Workspace) -> Result<Running> {
        let log = workspace.path(self.log);
        fs::create_dir_all(log.parent().context("the log has no directory")?)?;
        let output = File::create(&log).with_context(|| format!("cannot write {}", self.log))?;
        // Free a moment ago. If another process takes it first, the server ends and says so.
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let mut command = (self.command)(address);
        command.stdin(Stdio::null()).stderr(output.try_clone()?).stdout(output);
        let child = command.spawn().with_context(|| format!("cannot run {}", self.name))?;
        let mut running = Running { child, address, name: self.name };
        let started = Instant::now();
        loop {
            let ended = running.child.try_wait()?;
            if ended.is_none() && self.is_up(address) {
                return Ok(running);
            }
            if ended.is_some() || started.elapsed() > START_MAX {
                let said = fs::read_to_string(&log).unwrap_or_default();
                let last = said.lines().rfind(|line| !line.is_empty()).unwrap_or("nothing");
                let how =
                    ended.map_or("does not answer".into(), |status| format!("ended ({status})"));
                bail!("the server {how}; it said last: {last} (see {})", self.log);
            }
            std::thread::sleep(POLL_EVERY);
        }
    }

    fn is_up(&self, address: SocketAddr) -> bool {
        let ask = || -> Result<String> {
            let mut stream = TcpStream::connect_timeout(&address, ANSWER_MAX)?;
            stream.set_read_timeout(Some(ANSWER_MAX))?;
            stream.set_write_timeout(Some(ANSWER_MAX))?;
            stream.write_all((self.request)(address).as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ask().is_ok_and(|said| said.starts_with("HTTP/1.1 200") && said.contains(self.answer))
    }
}

impl Running {
    /// The address to give to a client.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
