//! The commands that work with what is in a store: directly, or through a running server.
//!
//! Each command says what it wants as a request of the native API ([`crate::api`]); the [`Door`](door::Door) answers it
//! from a store that it opens, or passes it to a server. So both ways give the same answers, and everything that a
//! command can do, a program can do over HTTP.
//!
//! A family of commands is a module here with its `Args` and a `run`; a new one is added to [`Family`] and to `cli.rs`.

pub mod bench;
pub mod completions;
pub mod consumer;
mod door;
mod exit;
mod http_client;
mod input;
pub mod log;
mod open;
mod output;
mod progress;
pub mod queue;
pub mod sequence;
mod signature;
pub mod store;
mod target;
mod values;

use std::process::ExitCode;

pub use exit::{EXIT_CODES, Failure};

/// A family of commands.
#[derive(Debug, clap::Subcommand)]
pub enum Family {
    /// Queues: create, send, receive, acknowledge, look, dead letters, topics.
    Queue(Box<queue::QueueArgs>),
    /// Sequencer: put messages in any order, read them in order, see and skip gaps.
    Sequence(Box<sequence::SequenceArgs>),
    /// Log: topics with offsets, append, read, follow, groups and their lag.
    Log(Box<log::LogArgs>),
    /// Consumers: what they remember of messages, and their dead letters.
    Consumer(Box<consumer::ConsumerArgs>),
    /// The store itself: create, verify, policies, sweep, statistics.
    Store(Box<store::StoreArgs>),
    /// Load against a store or any SQS endpoint, with rates and latencies.
    Bench(Box<bench::BenchArgs>),
    /// Prints a script that completes commands in a shell.
    Completions(completions::CompletionsArgs),
}

/// Runs a command to its end.
pub fn run(family: Family) -> ExitCode {
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            return Failure::Broken(format!("cannot start: {error}")).report();
        }
    };
    let minds_interrupts = matches!(&family, Family::Log(args) if args.minds_interrupts());
    let outcome = runtime.block_on(async {
        tokio::select! {
            biased;
            outcome = start(family) => outcome,
            _ = tokio::signal::ctrl_c(), if !minds_interrupts => Err(Failure::Interrupted),
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

async fn start(family: Family) -> Result<(), Failure> {
    match family {
        Family::Queue(args) => Box::pin(queue::run(*args)).await,
        Family::Sequence(args) => Box::pin(sequence::run(*args)).await,
        Family::Log(args) => Box::pin(log::run(*args)).await,
        Family::Consumer(args) => Box::pin(consumer::run(*args)).await,
        Family::Store(args) => Box::pin(store::run(*args)).await,
        Family::Bench(args) => Box::pin(bench::run(*args)).await,
        Family::Completions(args) => completions::run(&args),
    }
}
