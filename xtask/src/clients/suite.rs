//! One script with one client.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::install::{Installed, Wanted};
use crate::dynamodb_local;
use crate::on_demand::Running;
use crate::server::Server;
use crate::workspace::Workspace;

/// A suite takes seconds; on a machine that does ten other things, a minute.
const SUITE_MAX: Duration = Duration::from_secs(600);
const POLL_EVERY: Duration = Duration::from_millis(50);

/// What the server keeps its queues in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ground {
    /// A new directory, with a clock that the script can move.
    Directory,
    /// A table of Amazon's DynamoDB Local.
    DynamodbLocal,
}

/// A script, what it needs, and what it is called.
pub(crate) struct Suite {
    pub(crate) name: &'static str,
    pub(crate) wants: Wanted,
    script: &'static str,
    ground: Ground,
}

pub(crate) const SUITES: &[Suite] = &[
    Suite::new("boto3 (JSON)", Wanted::Python("requirements.txt"), "actions.py"),
    Suite::new("boto3 (Query)", Wanted::Python("requirements-query.txt"), "actions.py"),
    Suite::new("AWS CLI", Wanted::Python("requirements.txt"), "aws_cli.py"),
    Suite {
        ground: Ground::DynamodbLocal,
        ..Suite::new(
            "AWS CLI on DynamoDB Local",
            Wanted::Python("requirements.txt"),
            "aws_cli_walk.py",
        )
    },
    Suite::new("Celery", Wanted::Python("requirements.txt"), "celery_tasks.py"),
    Suite::new("SDK for JavaScript", Wanted::Node, "actions.mjs"),
    Suite::new("sqs-consumer", Wanted::Node, "consumer.mjs"),
];

impl Suite {
    const fn new(name: &'static str, wants: Wanted, script: &'static str) -> Self {
        Self { name, wants, script, ground: Ground::Directory }
    }

    /// Starts what the server's store needs, if anything; an error is why the suite cannot run here.
    pub(crate) fn engine(&self, workspace: &Workspace) -> Result<Option<Running>> {
        match self.ground {
            Ground::Directory => Ok(None),
            Ground::DynamodbLocal => dynamodb_local::start(workspace).map(Some),
        }
    }

    /// Runs the script against a server of its own; how many checks went well.
    pub(crate) fn run(
        &self,
        workspace: &Workspace,
        installed: &Installed,
        engine: Option<&Running>,
        binary: &Path,
    ) -> Result<usize> {
        let server = match engine {
            None => Server::start(workspace, binary, &["--test-clock"])?,
            Some(engine) => Server::start_on_table(workspace, binary, &engine.endpoint())?,
        };
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
