//! The crash loop.

use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use millpond_store::{Clock, Environment, Rng, SeededRng};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::report::Acknowledged;
use crate::verify::Expected;

/// A worker lives at least this long once it is ready, and at most [`LIFE_MILLIS_MAX`].
const LIFE_MILLIS_MIN: u64 = 20;
const LIFE_MILLIS_MAX: u64 = 300;

/// How to run the loop.
#[derive(Clone, Debug)]
pub struct Options {
    /// How often to kill and check.
    pub cycles: u32,
    /// The same seed makes the same load and the same moments of death.
    pub seed: u64,
    /// Where the store is; it is made anew.
    pub directory: PathBuf,
}

/// What the loop did.
#[derive(Clone, Debug)]
pub struct Report {
    cycles: u32,
    seed: u64,
    acknowledged: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cycles, seed, acknowledged } = self;
        write!(f, "{cycles} kills, {acknowledged} acknowledged writes, none lost (seed {seed})")
    }
}

/// Runs the loop with the running program as the worker.
///
/// # Errors
/// When something acknowledged was lost, or the worker could not be run.
pub async fn run(options: &Options) -> anyhow::Result<Report> {
    let Options { cycles, seed, directory } = options;
    if directory.exists() {
        std::fs::remove_dir_all(directory).with_context(|| directory.display().to_string())?;
    }
    let clock = Environment::system().clock;
    let rng = SeededRng::new(*seed);
    let mut expected = Expected::default();
    for cycle in 1..=*cycles {
        let life = LIFE_MILLIS_MIN + rng.next_u64() % (LIFE_MILLIS_MAX - LIFE_MILLIS_MIN + 1);
        let worker = start(options, cycle)?;
        live_and_die(worker, Duration::from_millis(life), &*clock, &mut expected)
            .await
            .with_context(|| format!("cycle {cycle} with seed {seed}"))?;
        expected.check(directory).await.with_context(|| {
            format!("cycle {cycle} with seed {seed}; the store is in {}", directory.display())
        })?;
        if cycle.is_multiple_of(10) {
            println!("{cycle} of {cycles} kills, {} acknowledged writes", expected.acknowledged);
        }
    }
    Ok(Report { cycles: *cycles, seed: *seed, acknowledged: expected.acknowledged })
}

fn start(options: &Options, cycle: u32) -> anyhow::Result<Child> {
    let program = std::env::current_exe().context("where is this program?")?;
    Command::new(program)
        .arg("worker")
        .args(["--seed", &options.seed.to_string(), "--cycle", &cycle.to_string(), "--dir"])
        .arg(&options.directory)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("the worker did not start")
}

/// Takes in what the worker reports until it is killed, and what is left in the pipe then.
async fn live_and_die(
    mut worker: Child,
    life: Duration,
    clock: &dyn Clock,
    expected: &mut Expected,
) -> anyhow::Result<()> {
    let out = worker.stdout.take().context("the worker has no output")?;
    let mut lines = BufReader::new(out).lines();
    if lines.next_line().await?.as_deref() != Some("ready") {
        bail!("the worker could not open the store: {}", worker.wait().await?);
    }
    let death = clock.sleep(life);
    tokio::pin!(death);
    let mut alive = true;
    loop {
        tokio::select! {
            biased;
            () = &mut death, if alive => {
                alive = false;
                // SIGKILL on Unix.
                worker.start_kill().context("the worker ended by itself")?;
            }
            line = lines.next_line() => match line? {
                // A line that death cut off says nothing.
                Some(line) => match line.parse::<Acknowledged>() {
                    Ok(report) => expected.add(report),
                    Err(error) if alive => return Err(error),
                    Err(_) => {}
                },
                None => break,
            },
        }
    }
    let status = worker.wait().await?;
    if alive {
        bail!("the worker ended by itself: {status}");
    }
    Ok(())
}
