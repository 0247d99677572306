//! `cargo xtask crash`: kill -9 under load, again and again.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use crate::binary::build_as_tested;
use crate::report::Outcome;
use crate::test::count::Counts;
use crate::workspace::Workspace;

/// How many cycles `cargo xtask test` runs.
const CYCLES_IN_TEST: u32 = 50;

/// Kill a real process under load, reopen its store and verify everything that was acknowledged; then the same with
/// the server and a real SQS client.
///
/// The load is made from a seed, which is printed when a cycle fails. The store is under
/// `target/crash`, in a directory named after the seed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many times to kill, reopen and verify.
    #[arg(long, default_value_t = CYCLES_IN_TEST)]
    cycles: u32,
    /// Repeats an earlier run; taken from the clock when absent.
    #[arg(long)]
    seed: Option<u64>,
}

/// Runs the loop; `false` when something acknowledged was lost.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<bool> {
    let seed = args.seed.map_or_else(seed_from_clock, Ok)?;
    let binary = build_as_tested(workspace, "millpond-sim", "simulation")?;
    let status = workspace
        .command(binary)
        .arg("crash")
        .args(["--cycles", &args.cycles.to_string(), "--seed", &seed.to_string(), "--dir"])
        .arg(workspace.path(format!("target/crash/{seed}")))
        .status()
        .context("cannot run the loop")?;
    if !status.success() {
        println!("to repeat: cargo xtask crash --cycles {} --seed {seed}", args.cycles);
    }
    Ok(status.success() && run_server(workspace, args.cycles)?)
}

/// The same with the server, under load from a real SQS client: a fifth as often, since it lives longer.
fn run_server(workspace: &Workspace, cycles: u32) -> Result<bool> {
    let mut cargo = workspace.cargo();
    cargo
        .args(["test", "--quiet", "--workspace", "--test", "server", "crash::"])
        .args(["--", "--nocapture"])
        .env("MILLPOND_CRASH_CYCLES", cycles.div_ceil(5).to_string());
    // Counted, so that a filter that finds no test is a failure.
    let outcome = Counts::default().run(&mut cargo)?;
    if let Outcome::Failed(problems) = &outcome {
        println!("the server: {}", problems.join("; "));
    }
    Ok(!outcome.is_failure())
}

/// The step of `cargo xtask test`.
pub(crate) fn step(workspace: &Workspace) -> Result<Outcome> {
    let well = run(workspace, &Args { cycles: CYCLES_IN_TEST, seed: None })?;
    Ok(if well { Outcome::Ok } else { Outcome::failed("see how to repeat it above") })
}

pub(crate) fn seed_from_clock() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?.as_secs())
}
