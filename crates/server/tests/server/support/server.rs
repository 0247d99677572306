//! The binary, started on a free port and ended by its own id.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{PATIENCE, eventually};

/// A running server. It ends with this.
pub struct Server {
    child: Child,
    /// `http://127.0.0.1:1234`.
    pub endpoint: String,
    /// `127.0.0.1:1234`.
    pub address: String,
    /// What it said at the start.
    pub said: String,
    directory: Arc<tempfile::TempDir>,
    log: Arc<Mutex<String>>,
    /// Reads the log until the server has ended.
    reader: Option<JoinHandle<()>>,
}

impl Server {
    /// A server on a new directory, with these arguments.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_in(Arc::new(tempfile::tempdir().unwrap()), arguments)
    }

    /// A server on a directory that may have been used before.
    pub fn start_in(directory: Arc<tempfile::TempDir>, arguments: &[&str]) -> Self {
        Self::start_with(directory, arguments, &[])
    }

    /// The same with variables.
    pub fn start_with(
        directory: Arc<tempfile::TempDir>,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        Self::start_at("127.0.0.1:0", directory, arguments, variables)
    }

    /// The same on another address.
    pub fn start_at(
        listen: &str,
        directory: Arc<tempfile::TempDir>,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let mut child = command(directory.path())
            .args(["serve", "--listen", listen])
            .args(arguments)
            .envs(variables.iter().copied())
            .spawn()
            .expect("the binary runs");
        let log = Arc::new(Mutex::new(String::new()));
        let errors = BufReader::new(child.stderr.take().unwrap());
        let reader = std::thread::spawn({
            let log = Arc::clone(&log);
            move || {
                for line in errors.lines().map_while(Result::ok) {
                    let mut log = log.lock().unwrap();
                    log.push_str(&line);
                    log.push('\n');
                }
            }
        });
        let mut said = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        while !said.contains("\nstop ") {
            let before = said.len();
            output.read_line(&mut said).unwrap();
            if said.len() == before {
                let status = child.wait().unwrap();
                panic!("the server ended: {status}\n{said}\n{}", log.lock().unwrap());
            }
        }
        let endpoint = said.lines().find_map(|line| line.strip_prefix("endpoint ")).unwrap();
        let endpoint = endpoint.trim().to_owned();
        let address = endpoint.split_once("://").unwrap().1.to_owned();
        Self { child, endpoint, address, said, directory, log, reader: Some(reader) }
    }

    pub fn directory(&self) -> Arc<tempfile::TempDir> {
        Arc::clone(&self.directory)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// What it logged so far.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Its memory in bytes.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let kilobytes: u64 = line.trim().strip_suffix("kB").unwrap().trim().parse().unwrap();
        kilobytes * 1_024
    }

    /// Asks it to stop, as a service manager does.
    pub fn terminate(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    }

    /// Kills it, as a power failure or the system does.
    pub fn kill(mut self) -> Arc<tempfile::TempDir> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.directory()
    }

    /// Waits until it has ended.
    pub fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        let child = &mut self.child;
        eventually("the server ends", || {
            status = child.try_wait().unwrap();
            status.is_some()
        });
        // From here on the log is complete.
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        status.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("--- the server's log ---\n{}", self.log());
        }
    }
}

/// The binary with nothing of this process's configuration.
pub fn command(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("MILLPOND_") || text.starts_with("OTEL_") {
            command.env_remove(name);
        }
    }
    command
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env("AWS_EC2_METADATA_DISABLED", "true");
    command
}

/// Runs the binary to its end: whether it went well, and what it said on both outputs. One that does not end by itself is
/// ended.
pub fn run(directory: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> (bool, String) {
    let mut child =
        command(directory).args(arguments).envs(variables.iter().copied()).spawn().unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > PATIENCE {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{arguments:?} did not end within {PATIENCE:?}");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    // What it says fits into a pipe.
    let (mut said, mut errors) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    (child.wait().unwrap().success(), said + &errors)
}
