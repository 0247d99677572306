//! Measures Millpond on this machine, beside the limit that the machine itself sets.
//!
//! Machines differ and are noisy, so figures that can be ratios are: a bare write-ahead log is measured in the same
//! run. Run it as `cargo xtask bench`.

mod backlog;
mod error;
mod log;
mod measure;
mod queue;
mod report;
mod sends;
mod sequencer;
mod wal;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use millpond_store::Environment;

use crate::error::{BenchError, Result};
use crate::report::Report;

/// Measure Millpond on this machine.
#[derive(Debug, Parser)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure, print a table, and say for each figure whether it reaches its target.
    Run(Run),
    /// A process that fills a store and waits to be killed: part of `run`.
    #[command(hide = true)]
    Fill(backlog::Fill),
}

/// What to measure.
#[derive(Debug, clap::Args)]
struct Run {
    /// What to measure: sends, log, backlog, queue, sequencer. Default: all.
    #[arg(value_enum)]
    what: Vec<What>,
    /// Where to put the stores: on the disk that is to be measured. Default: a new directory for temporary files.
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Write the figures as JSON to this file too.
    #[arg(long)]
    json: Option<PathBuf>,
    /// A share of the full work, in percent: for a quick look.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=100))]
    percent: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum What {
    /// Single sends by 64 callers, beside a bare write-ahead log.
    Sends,
    /// Log append and sequential read, beside bare appends.
    Log,
    /// A million messages: memory, opening after a kill, reading behind what was consumed, disk after draining.
    Backlog,
    /// A queue: send, receive and ack with a standing backlog, and receives at backlogs of all sizes.
    Queue,
    /// A sequencer's messages, shuffled within 100, in batches of 25.
    Sequencer,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("bench: a figure misses its target");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<bool> {
    let runtime = tokio::runtime::Runtime::new().map_err(BenchError::file("runtime"))?;
    let environment = Environment::system();
    let run = match command {
        Command::Run(run) => run,
        Command::Fill(fill) => {
            return runtime.block_on(backlog::fill(&fill, &environment)).map(|()| true);
        }
    };
    let temporary = match &run.dir {
        Some(dir) => {
            std::fs::create_dir_all(dir).map_err(BenchError::file(dir))?;
            tempfile::tempdir_in(dir)
        }
        None => tempfile::tempdir(),
    };
    let temporary = temporary.map_err(BenchError::file("temporary directory"))?;
    let wanted = |what| run.what.is_empty() || run.what.contains(&what);
    let mut report = Report::default();
    if wanted(What::Sends) {
        runtime.block_on(sends::measure(
            temporary.path(),
            run.percent,
            &environment,
            &mut report,
        ))?;
    }
    if wanted(What::Log) {
        runtime.block_on(log::measure(temporary.path(), run.percent, &environment, &mut report))?;
    }
    if wanted(What::Backlog) {
        runtime.block_on(backlog::measure(
            temporary.path(),
            run.percent,
            &environment,
            &mut report,
        ))?;
    }
    if wanted(What::Queue) {
        runtime.block_on(queue::measure(
            temporary.path(),
            run.percent,
            &environment,
            &mut report,
        ))?;
    }
    if wanted(What::Sequencer) {
        runtime.block_on(sequencer::measure(
            temporary.path(),
            run.percent,
            &environment,
            &mut report,
        ))?;
    }
    print!("{report}");
    if let Some(path) = &run.json {
        report.write_json(path)?;
    }
    Ok(report.all_reached())
}
