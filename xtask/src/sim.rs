//! `cargo xtask sim`: processes in a simulated world, seed by seed.

use anyhow::{Context, Result};

use crate::binary::build_as_tested;
use crate::crash::seed_from_clock;
use crate::report::Outcome;
use crate::workspace::Workspace;

/// What `cargo xtask test` runs: fresh seeds, and of those some twice.
const SEEDS_IN_TEST: u64 = 1_000;
const OPERATIONS_IN_TEST: u64 = 100;

/// Run queues, the sequencer and the log in simulated worlds, in which a seed decides what happens.
///
/// Two to five processes share a store. They are killed at any request, paused, have their clocks
/// set wrong, and their requests fail in every way. Histories are checked; some seeds run twice and
/// must leave the same trace, byte for byte. A seed that fails is printed with what led to it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many seeds.
    #[arg(long, default_value_t = SEEDS_IN_TEST)]
    seeds: u64,
    /// Operations of each seed.
    #[arg(long, default_value_t = OPERATIONS_IN_TEST)]
    operations: u64,
    /// The first seed; taken from the clock when absent.
    #[arg(long)]
    first: Option<u64>,
    /// What is simulated: loose, strict, sequencer, log. Default: all in turn.
    #[arg(long, value_delimiter = ',')]
    kinds: Vec<String>,
}

/// Runs the seeds; `false` when one of them went wrong.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<bool> {
    let first = args.first.map_or_else(seed_from_clock, Ok)?;
    let binary = build_as_tested(workspace, "millpond-sim", "simulation")?;
    let mut command = workspace.command(binary);
    command.args(["simulate", "--first", &first.to_string()]);
    command.args(["--seeds", &args.seeds.to_string()]);
    command.args(["--operations", &args.operations.to_string()]);
    if !args.kinds.is_empty() {
        command.args(["--kinds", &args.kinds.join(",")]);
    }
    println!("seeds from {first} on, {} operations each", args.operations);
    Ok(command.status().context("cannot run the simulator")?.success())
}

/// The step of `cargo xtask test`.
pub(crate) fn step(workspace: &Workspace) -> Result<Outcome> {
    let (seeds, operations) = (SEEDS_IN_TEST, OPERATIONS_IN_TEST);
    let well = run(workspace, &Args { seeds, operations, first: None, kinds: Vec::new() })?;
    Ok(if well { Outcome::Ok } else { Outcome::failed("see the seed above") })
}
