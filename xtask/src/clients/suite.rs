//! One script with one client.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::install::{Installed, Wanted};
use crate::server::Server;
use crate::workspace::Workspace;

/// A suite takes seconds; on a machine that does ten other things, a minute.
const SUITE_MAX: Duration = Duration::from_secs(600);
const POLL_EVERY: Duration = Duration::from_millis(50);

/// A script, what it needs, and what it is called.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) wants: Wanted,
    script: &'static str,
}

pub(crate) const SUITES: &[Suite] = &[
    Suite { name: "boto3 (JSON)", wants: Wanted::Python("requirements.txt"), script: "actions.py" },
    Suite {
        name: "boto3 (Query)",
        wants: Wanted::Python("requirements-query.txt"),
        script: "actions.py",
    },
    Suite { name: "AWS CLI", wants: Wanted::Python("requirements.txt"), script: "aws_cli.py" },
    Suite { name: "Celery", wants: Wanted::Python("requirements.txt"), script: "celery_tasks.py" },
    Suite { name: "SDK for JavaScript", wants: Wanted::Node, script: "actions.mjs" },
    Suite { name: "sqs-consumer", wants: Wanted::Node, script: "consumer.mjs" },
];

impl Suite {
    /// Runs the script against a server of its own; how many checks went well.
    pub(crate) fn run(
        &self,
        workspace: &Workspace,
        installed: &Installed,
        binary: &Path,
    ) -> Result<usize> {
        let server = Server::start(workspace, binary, &["--test-clock"])?;
        let mut command = installed.command(workspace, self.script);
        command.arg(server.endpoint()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot run {}", self.script))?;
        let output = child.stdout.take().context("the script has no output")?;
        // What it says is shown as it comes, by a thread that ends with the script.
        let reader = std::thread::spawn(move || {
            let mut checks = 0;
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                println!("{line}");
                checks += usize::from(line.starts_with("ok "));
            }
            checks
        });
        let ended = wait(&mut child);
        let checks = reader.join().unwrap_or(0);
        ended?;
        if checks == 0 {
            bail!("it checked nothing");
        }
        Ok(checks)
    }
}

fn wait(child: &mut Child) -> Result<()> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            if !status.success() {
                bail!("{status}, after {:.0} s", started.elapsed().as_secs_f64());
            }
            return Ok(());
        }
        if started.elapsed() > SUITE_MAX {
            // It may end at this very moment.
            let _ = child.kill();
            let _ = child.wait();
            bail!("it did not end within {} s", SUITE_MAX.as_secs());
        }
        std::thread::sleep(POLL_EVERY);
    }
}
