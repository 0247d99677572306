//! `cargo xtask moto`: the AWS emulator moto, fetched once and run on demand, for the `lambda` crate's tests with real
//! clients of Kinesis, SQS, DynamoDB Streams and Lambda; and the linter that comes with it, for the template.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::report::Outcome;
use crate::test::count::Counts;
use crate::workspace::Workspace;

/// Tests find the server's address here.
const ENDPOINT_VARIABLE: &str = "MILLPOND_MOTO";

/// The package, as pip names it. `awslambda` needs what the extra `server` brings.
const PACKAGE: &str = "moto[server]>=5.1,<6";

/// A Python environment of its own, made anew when `target` is cleaned.
const DIRECTORY: &str = "target/moto";
const LOG: &str = "target/moto.log";

/// What the linter looks at.
const TEMPLATE: &str = "crates/lambda/template.yaml";

/// About 60 MB; a download that takes longer is given up.
const FETCH_MAX: Duration = Duration::from_mins(5);
const START_MAX: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(100);
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Fetch and start moto, an AWS emulator, on a free port.
///
/// Needs Python 3 with `venv` and `pip`; the package is installed once, into an environment below `target`. Without `--run`
/// the server stays up until it is interrupted.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only fetch what is needed, start nothing.
    #[arg(long, conflicts_with = "run")]
    fetch: bool,
    /// Run the command after `--` with `MILLPOND_MOTO` set to the server's address, then stop.
    #[arg(long, requires = "command")]
    run: bool,
    /// The command for `--run`.
    #[arg(last = true, requires = "run")]
    command: Vec<String>,
}

/// Does what the arguments ask; `false` when the command that was run failed.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<bool> {
    if args.fetch {
        println!("{}", install(workspace)?.display());
        return Ok(true);
    }
    let mut running = Running::start(workspace)?;
    if let Some((program, arguments)) = args.command.split_first() {
        let status = workspace
            .command(program)
            .args(arguments)
            .env(ENDPOINT_VARIABLE, running.endpoint())
            .status()
            .with_context(|| format!("cannot run {program}"))?;
        return Ok(status.success());
    }
    println!("export {ENDPOINT_VARIABLE}={}", running.endpoint());
    bail!("the server ended: {}", running.child.wait()?)
}

/// The step of `cargo xtask test`: the `lambda` crate's tests against the emulator.
pub(crate) fn step(workspace: &Workspace, counts: &mut Counts) -> Result<Outcome> {
    let running = match Running::start(workspace) {
        Ok(running) => running,
        Err(error) => {
            return Ok(Outcome::Skipped(format!(
                "moto could not be started, so sinks, breaker and sources were not tested with real clients: {error:#}"
            )));
        }
    };
    println!("moto at {}", running.endpoint());
    if let Some(problem) = lint(workspace)? {
        return Ok(Outcome::failed(problem));
    }
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--workspace", "--test", "moto", "--", "--include-ignored"]);
    cargo.env(ENDPOINT_VARIABLE, running.endpoint());
    counts.run(&mut cargo)
}

/// Checks the template by the linter for CloudFormation, which comes with moto and knows the service's own schemas.
fn lint(workspace: &Workspace) -> Result<Option<String>> {
    let linter = workspace.path(DIRECTORY).join("bin/cfn-lint");
    if !linter.is_file() {
        return Ok(Some("cfn-lint did not come with moto".into()));
    }
    let output = workspace.command(linter).arg(TEMPLATE).output().context("cannot run cfn-lint")?;
    let said = String::from_utf8_lossy(&output.stdout);
    Ok((!output.status.success()).then(|| format!("{TEMPLATE}: {}", said.trim())))
}

/// Makes sure that the server is installed, and returns its program.
pub(crate) fn install(workspace: &Workspace) -> Result<PathBuf> {
    let directory = workspace.path(DIRECTORY);
    let server = directory.join("bin/moto_server");
    // Written last: an installation that was interrupted is begun anew.
    let complete = directory.join("complete");
    if complete.is_file() && server.is_file() {
        return Ok(server);
    }
    if directory.is_dir() {
        fs::remove_dir_all(&directory).with_context(|| format!("cannot remove {DIRECTORY}"))?;
    }
    let mut make = workspace.command("python3");
    make.args(["-m", "venv"]).arg(&directory);
    within(&mut make, "python3 -m venv")?;
    let mut pip = workspace.command(directory.join("bin/python3"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE]);
    within(&mut pip, "pip install moto")?;
    if !server.is_file() {
        bail!("the package moto has no program moto_server");
    }
    fs::write(&complete, PACKAGE)?;
    Ok(server)
}

/// Runs a command, but not for longer than a download may take.
fn within(command: &mut Command, name: &str) -> Result<()> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {name}"))?;
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            if status.success() {
                return Ok(());
            }
            let mut said = String::new();
            if let Some(mut errors) = child.stderr.take() {
                errors.read_to_string(&mut said)?;
            }
            let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing");
            bail!("{name} failed ({status}); it said last: {last}");
        }
        if started.elapsed() > FETCH_MAX {
            child.kill()?;
            child.wait()?;
            bail!("{name} took longer than {} s", FETCH_MAX.as_secs());
        }
        std::thread::sleep(POLL_EVERY);
    }
}

/// A running server. Dropping it ends exactly the process that was started.
struct Running {
    child: Child,
    address: SocketAddr,
}

impl Running {
    fn start(workspace: &Workspace) -> Result<Self> {
        let server = install(workspace)?;
        let log = workspace.path(LOG);
        let output = File::create(&log).with_context(|| format!("cannot write {LOG}"))?;
        // Free a moment ago. If another process takes it first, the server ends and says so.
        let address = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let child = workspace
            .command(server)
            .args(["-H", "127.0.0.1", "-p", &address.port().to_string()])
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output)
            .spawn()
            .context("cannot run moto_server")?;
        let mut running = Self { child, address };
        let started = Instant::now();
        while !answers(address) {
            let ended = running.child.try_wait()?;
            if ended.is_some() || started.elapsed() > START_MAX {
                let said = fs::read_to_string(&log).unwrap_or_default();
                let last = said.lines().rfind(|line| !line.is_empty()).unwrap_or("nothing");
                bail!("the server does not answer; it said last: {last} (see {LOG})");
            }
            std::thread::sleep(POLL_EVERY);
        }
        Ok(running)
    }

    fn endpoint(&self) -> String {
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

/// Whether the server's own page is there.
fn answers(address: SocketAddr) -> bool {
    let ask = || -> Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, ANSWER_MAX)?;
        stream.set_read_timeout(Some(ANSWER_MAX))?;
        let request =
            format!("GET /moto-api/ HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes())?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}
