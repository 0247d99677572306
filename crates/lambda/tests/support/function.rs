//! A function's process: started, frozen and killed by its own id.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::engine::{REGION, TABLE};
use super::runtime_api::RuntimeApi;

pub const NAME: &str = "under-test";

/// How a function is started. Nothing of the test's own environment reaches it but the path of programs.
#[derive(Debug)]
pub struct Start(Command);

impl Start {
    /// A ready function.
    pub fn binary(path: impl AsRef<Path>) -> Self {
        Self::of(Command::new(path.as_ref()))
    }

    /// The function that this very test program is, when it is started in this way.
    pub fn this_program(test: &str) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads", "1"]);
        Self::of(command)
    }

    fn of(mut command: Command) -> Self {
        let path = std::env::var_os("PATH").unwrap_or_default();
        command.env_clear().env("PATH", path).stdin(Stdio::null());
        let start = Self(command);
        start
            .set("AWS_ACCESS_KEY_ID", "test")
            .set("AWS_SECRET_ACCESS_KEY", "test")
            .set("AWS_EC2_METADATA_DISABLED", "true")
            .set("AWS_REGION", REGION)
            .set("AWS_LAMBDA_FUNCTION_NAME", NAME)
            .set("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256")
            .set("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .set("MILLPOND_STORE", &format!("dynamodb:{TABLE}"))
    }

    pub fn set(mut self, name: &str, value: &str) -> Self {
        self.0.env(name, value);
        self
    }

    pub fn unset(mut self, name: &str) -> Self {
        self.0.env_remove(name);
        self
    }

    pub fn store(self, endpoint: &str) -> Self {
        self.set("AWS_ENDPOINT_URL_DYNAMODB", endpoint)
    }

    /// Starts it as the function behind this API.
    pub fn start(self, api: &RuntimeApi) -> Function {
        let mut start = self.set("AWS_LAMBDA_RUNTIME_API", &api.address());
        Function(start.0.stdout(Stdio::null()).spawn().unwrap())
    }

    /// The same, with what it logs in a file.
    pub fn start_logging(self, api: &RuntimeApi, log: &Path) -> Function {
        let mut start = self.set("AWS_LAMBDA_RUNTIME_API", &api.address());
        let log = std::fs::File::create(log).unwrap();
        start.0.stderr(log.try_clone().unwrap()).stdout(log);
        Function(start.0.spawn().unwrap())
    }

    /// Starts it, and waits until it ends by itself: whether it ended well, and what it complained of.
    pub async fn output(mut self) -> (bool, String) {
        let output = tokio::task::spawn_blocking(move || self.0.output().unwrap()).await.unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// A running function, ended when it is dropped.
#[derive(Debug)]
pub struct Function(Child);

impl Function {
    /// Ends it at once, in the middle of what it does: SIGKILL.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    /// Stops it in the middle of what it does, as Lambda does between invocations.
    pub fn freeze(&self) {
        self.signal("STOP");
    }

    /// Lets it go on.
    pub fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, signal: &str) {
        let pid = self.0.id().to_string();
        let done = Command::new("sh").args(["-c", "kill -\"$0\" \"$1\"", signal, &pid]).status();
        assert!(done.unwrap().success(), "the process {pid} takes no {signal}");
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for Function {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
