//! Simulation: several processes on one store, in one thread, under a virtual clock, in an order and with faults that a
//! seed decides. The same seed makes the same trace, byte for byte.
//!
//! Processes are killed at any request (before it is made, or before its answer comes), paused, have their wall clocks
//! set wrong, and their requests fail in every way that a store can. Histories are checked while they run and at the end.

mod clock;
mod gate;
mod history;
mod log;
mod queue;
mod sequencer;
mod world;

use std::fmt;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

use anyhow::{Context, ensure};

use self::log::LogScenario;
use self::queue::QueueScenario;
use self::sequencer::SequencerScenario;
use self::world::{Scenario, World};

/// What is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// A queue whose messages come in any order.
    Loose,
    /// A queue with strict order within groups.
    Strict,
    /// A sequencer.
    Sequencer,
    /// A log with a group of consumers.
    Log,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Loose, Self::Strict, Self::Sequencer, Self::Log];
}

/// Which seeds to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The first seed; those behind it follow.
    pub first: u64,
    /// How many seeds.
    pub seeds: u64,
    /// Operations of each seed.
    pub operations: u64,
    /// What is simulated. Empty: everything in turn, by the seed.
    pub kinds: Vec<Kind>,
    /// How many of the seeds run twice, to be compared byte for byte.
    pub twice: u64,
}

/// What was run, with nothing found to be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// Seeds.
    pub seeds: u64,
    /// Operations in all of them together.
    pub operations: u64,
    /// Seeds that ran twice and left the same trace.
    pub same: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seeds, operations, same } = self;
        write!(f, "{seeds} seeds, {operations} operations, {same} seeds twice: nothing wrong")
    }
}

/// Runs the seeds one after the other.
///
/// # Errors
/// What was found to be wrong, with its seed and how it can be repeated.
pub fn run(options: &Options) -> anyhow::Result<Report> {
    let mut report = Report { seeds: 0, operations: 0, same: 0 };
    let kinds = if options.kinds.is_empty() { &Kind::ALL[..] } else { &options.kinds };
    for (seed, kind) in
        (options.first..).zip(kinds.iter().cycle()).take(usize::try_from(options.seeds)?)
    {
        let again = format!("to repeat: simulate --kinds {kind:?} --first {seed} --seeds 1");
        let again = || again.to_lowercase();
        let (trace, operations) = simulate(*kind, seed, options.operations).with_context(again)?;
        if report.same < options.twice {
            let (second, _) = simulate(*kind, seed, options.operations).with_context(again)?;
            let differs = trace.lines().zip(second.lines()).zip(1..).find(|((a, b), _)| a != b);
            ensure!(trace == second, "{}: two runs differ: {differs:?}", again());
            report.same += 1;
        }
        report.seeds += 1;
        report.operations += operations;
    }
    Ok(report)
}

/// Runs one seed; returns its trace and how many operations it had.
///
/// # Errors
/// What was found to be wrong, with the end of the trace.
pub fn simulate(kind: Kind, seed: u64, operations: u64) -> anyhow::Result<(String, u64)> {
    let seed = BuildHasherDefault::<DefaultHasher>::default().hash_one(seed);
    match kind {
        Kind::Loose => in_world(seed, operations, &QueueScenario::new(false)),
        Kind::Strict => in_world(seed, operations, &QueueScenario::new(true)),
        Kind::Sequencer => in_world(seed, operations, &SequencerScenario::default()),
        Kind::Log => in_world(seed, operations, &LogScenario::default()),
    }
}

fn in_world(seed: u64, operations: u64, scenario: &impl Scenario) -> anyhow::Result<(String, u64)> {
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let mut world = World::new(seed);
    let outcome = runtime.block_on(world.run(scenario, operations));
    let trace = world.trace();
    match outcome {
        Ok(operations) => Ok((trace, operations)),
        Err(error) => {
            let lines: Vec<&str> = trace.lines().collect();
            let end = lines.get(lines.len().saturating_sub(60)..).unwrap_or_default().join("\n");
            Err(error.context(format!("the trace ends with\n{end}")))
        }
    }
}
