//! The binary, a store or a server, and what it prints.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Where commands go.
pub enum Place {
    /// A directory of its own.
    Store(TempDir),
    /// A server on such a directory.
    Server(TempDir, Server),
}

/// A server that ends with the test.
pub struct Server {
    child: Child,
    pub url: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Serves a directory on a port that is free.
    pub fn start(directory: &Path, more: &[&str]) -> Self {
        let mut child = clean(Command::new(env!("CARGO_BIN_EXE_millpond")))
            .current_dir(directory)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let mut url = None;
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let found = line.split_whitespace().find(|word| word.starts_with("http"));
            if let Some(found) = found {
                url = Some(found.trim_end_matches('/').to_owned());
                break;
            }
        }
        Self { child, url: url.expect("the server says where it listens") }
    }
}

/// A command that sees nothing of the machine's own settings.
fn clean(mut command: Command) -> Command {
    for name in ["MILLPOND_STORE", "MILLPOND_OBJECTS", "MILLPOND_ACCESS_KEY_ID", "MILLPOND_CA_FILE"]
    {
        command.env_remove(name);
    }
    command.env("AWS_EC2_METADATA_DISABLED", "true");
    command
}

impl Place {
    /// A store without a server. It has been made already.
    pub fn store() -> Self {
        let directory = TempDir::new().unwrap();
        let place = Self::Store(directory);
        place.good(&["store", "create"]);
        place
    }

    /// A server.
    pub fn server() -> Self {
        let directory = TempDir::new().unwrap();
        let server = Server::start(directory.path(), &[]);
        Self::Server(directory, server)
    }

    pub fn directory(&self) -> &Path {
        match self {
            Self::Store(directory) | Self::Server(directory, _) => directory.path(),
        }
    }

    /// A command in the directory, without a server.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = clean(Command::new(env!("CARGO_BIN_EXE_millpond")));
        command.current_dir(self.directory()).args(arguments);
        command
    }

    /// Runs a command with this on its standard input.
    pub fn run_with(&self, arguments: &[&str], input: &str) -> Output {
        let mut command = self.command(arguments);
        if let Self::Server(_, server) = self {
            command.args(["--server", &server.url]);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let mut stdin = child.stdin.take().unwrap();
        // A command that does not read its input may be gone already.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().unwrap()
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.run_with(arguments, "")
    }

    /// What a command prints that must succeed.
    pub fn good_with(&self, arguments: &[&str], input: &str) -> String {
        let output = self.run_with(arguments, input);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn good(&self, arguments: &[&str]) -> String {
        self.good_with(arguments, "")
    }

    /// The same as JSON lines.
    pub fn json(&self, arguments: &[&str]) -> Vec<Value> {
        self.json_with(arguments, "")
    }

    pub fn json_with(&self, arguments: &[&str], input: &str) -> Vec<Value> {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        let printed = self.good_with(&arguments, input);
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Exit code and message of a command that must fail.
    pub fn bad(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{arguments:?} succeeded");
        (output.status.code().expect("it ended by itself"), said)
    }
}
