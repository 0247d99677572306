//! A server that was started here: on a fresh directory, stopped by the ids of its own processes.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;

const START_MAX: Duration = Duration::from_secs(120);
const STOP_MAX: Duration = Duration::from_secs(15);
const POLL_EVERY: Duration = Duration::from_millis(50);

/// A port that was free a moment ago. If another process takes it first, the server ends and says so.
pub(super) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// A server. Dropping it ends exactly what was started, and removes its data.
pub(super) struct Running {
    pub(super) address: SocketAddr,
    /// What it is made of; the server proper is the last.
    children: Vec<Child>,
    directory: PathBuf,
    log: PathBuf,
}

impl Running {
    /// One that is to listen on this port, with a fresh directory for its data.
    pub(super) fn new(workspace: &Workspace, name: &str, port: u16) -> Result<Self> {
        let place = workspace.path("target/compare");
        let directory = place.join(format!("data-{name}-{}", std::process::id()));
        if directory.exists() {
            fs::remove_dir_all(&directory)?;
        }
        fs::create_dir_all(&directory)?;
        let log = place.join(format!("{name}.log"));
        File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        Ok(Self { address, children: Vec::new(), directory, log })
    }

    /// Where its data goes.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Starts a process of it. What it says goes to its log.
    pub(super) fn spawn(&mut self, command: &mut Command) -> Result<()> {
        let program = command.get_program().to_string_lossy().into_owned();
        let log = File::options().append(true).open(&self.log)?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot run {program}"))?;
        self.children.push(child);
        Ok(())
    }

    /// Waits until it takes connections and has said this, if anything.
    pub(super) fn wait(mut self, word: &str) -> Result<Self> {
        let started = Instant::now();
        let said = |log: &Path| fs::read_to_string(log).unwrap_or_default();
        while TcpStream::connect_timeout(&self.address, START_MAX).is_err()
            || !said(&self.log).contains(word)
        {
            let mut ended = false;
            for child in &mut self.children {
                ended |= child.try_wait()?.is_some();
            }
            if ended || started.elapsed() > START_MAX {
                let said = said(&self.log);
                let last = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("nothing");
                bail!("it does not answer; it said last: {last} (see {})", self.log.display());
            }
            std::thread::sleep(POLL_EVERY);
        }
        Ok(self)
    }

    /// The process of the server proper.
    pub(super) fn id(&self) -> Option<u32> {
        self.children.last().map(Child::id)
    }

    fn stop(&mut self) {
        // Scripts that start servers do not always end them: what they have started is asked to end too.
        let mut all: Vec<u32> = self.children.iter().map(Child::id).collect();
        let mut at = 0;
        while let Some(id) = all.get(at).copied() {
            all.extend(children_of(id));
            at += 1;
        }
        signal("-TERM", &all);
        let asked = Instant::now();
        while asked.elapsed() < STOP_MAX && all.iter().any(|id| lives(*id)) {
            for child in &mut self.children {
                let _ = child.try_wait();
            }
            std::thread::sleep(POLL_EVERY);
        }
        all.retain(|id| lives(*id));
        signal("-KILL", &all);
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
        // It is made anew each time.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn signal(which: &str, ids: &[u32]) {
    if !ids.is_empty() {
        let ids = ids.iter().map(u32::to_string);
        // Some may have ended by now, which it complains about.
        let _ = Command::new("kill").arg(which).args(ids).stderr(Stdio::null()).status();
    }
}

/// Not ended, or ended and not yet waited for by a parent other than this process.
fn lives(id: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

fn children_of(id: u32) -> Vec<u32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{id}/task")) else { return Vec::new() };
    let children =
        tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    children.flat_map(|line| ids(&line)).collect()
}

fn ids(line: &str) -> Vec<u32> {
    line.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}
