//! A DynamoDB Local that runs, and stops when it is dropped.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::fetch::{SOURCES, Source};
use crate::workspace::Workspace;

/// Tests find the server's address here.
pub(crate) const ENDPOINT_VARIABLE: &str = "MILLPOND_DYNAMODB_LOCAL";

/// A Java virtual machine on a busy machine with two cores is up in a fraction of this.
const START_MAX: Duration = Duration::from_secs(60);
const POLL_EVERY: Duration = Duration::from_millis(100);
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// Where the server's own output goes.
const LOG: &str = "target/dynamodb-local.log";

/// A running server. Dropping it ends exactly the process that was started.
pub(crate) struct Running {
    child: Child,
    address: SocketAddr,
    name: &'static str,
}

impl Running {
    /// Fetches what is missing and starts the best version that can be had.
    pub(crate) fn start(workspace: &Workspace) -> Result<Self> {
        let java = workspace.command("java").arg("-version").output();
        if !java.is_ok_and(|output| output.status.success()) {
            bail!("Java (`java`) is not installed");
        }
        let mut reasons = Vec::new();
        for source in SOURCES {
            match Self::start_source(workspace, source) {
                Ok(running) => return Ok(running),
                Err(error) => reasons.push(format!("{}: {error:#}", source.name)),
            }
        }
        bail!("{}", reasons.join("; "))
    }

    fn start_source(workspace: &Workspace, source: &Source) -> Result<Self> {
        let directory = source.fetch(workspace)?;
        let log = workspace.path(LOG);
        fs::create_dir_all(log.parent().context("the log has no directory")?)?;
        let output = File::create(&log).with_context(|| format!("cannot write {LOG}"))?;
        let address = free_address()?;
        let child = workspace
            .command("java")
            .args(source.java_arguments(&directory))
            .args(["-inMemory", "-sharedDb", "-port", &address.port().to_string()])
            .args(source.server_options())
            .env("DDB_LOCAL_TELEMETRY", "0")
            .stdin(Stdio::null())
            .stderr(output.try_clone()?)
            .stdout(output)
            .spawn()
            .context("cannot run java")?;
        let mut running = Self { child, address, name: source.name };
        running.wait_until_ready(&log)?;
        Ok(running)
    }

    fn wait_until_ready(&mut self, log: &Path) -> Result<()> {
        let started = Instant::now();
        loop {
            let ended = self.child.try_wait()?;
            if ended.is_none() && list_tables(self.address).is_ok() {
                return Ok(());
            }
            if ended.is_some() || started.elapsed() > START_MAX {
                let said = fs::read_to_string(log).unwrap_or_default();
                let last = said.lines().rfind(|line| !line.is_empty()).unwrap_or("nothing");
                let how =
                    ended.map_or("does not answer".into(), |status| format!("ended ({status})"));
                bail!("the server {how}; it said last: {last} (see {LOG})");
            }
            std::thread::sleep(POLL_EVERY);
        }
    }

    /// Which server this is.
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The address to give to a client.
    pub(crate) fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until the server ends by itself.
    pub(crate) fn wait(&mut self) -> Result<ExitStatus> {
        self.child.wait().context("cannot wait for the server")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago. If another process takes it first, the server fails to start
/// and says so.
fn free_address() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no free port")?;
    Ok(listener.local_addr()?)
}

/// Asks the server for its tables, as the SDK would: the signature is not checked, only its form.
fn list_tables(address: SocketAddr) -> Result<String> {
    let body = "{}";
    let request = format!(
        "POST / HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
         Content-Type: application/x-amz-json-1.0\r\nContent-Length: {}\r\n\
         X-Amz-Target: DynamoDB_20120810.ListTables\r\nX-Amz-Date: 20260101T000000Z\r\n\
         Authorization: AWS4-HMAC-SHA256 Credential=dummy/20260101/us-east-1/dynamodb/aws4_request, \
         SignedHeaders=host;x-amz-date;x-amz-target, Signature=00\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_MAX)?;
    stream.set_read_timeout(Some(ANSWER_MAX))?;
    stream.set_write_timeout(Some(ANSWER_MAX))?;
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    if !answer.starts_with("HTTP/1.1 200") || !answer.contains("TableNames") {
        bail!("unexpected answer: {}", answer.lines().next().unwrap_or_default());
    }
    Ok(answer)
}
