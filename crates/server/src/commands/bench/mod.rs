//! `millpond bench`: load against a store, or against any endpoint that speaks the SQS protocol.

mod bodies;
mod load;
mod report;
mod sqs;
mod usage;
mod work;

use std::sync::Arc;

use clap::{Args, ValueEnum};

use super::Failure;
use super::output::Output;
use super::target::Target;
use load::Load;
use report::print;
use work::{Plan, measure};

/// `millpond bench`.
///
/// Sends and receives messages as fast as it goes with so many callers at a time, each waiting for its answer, and
/// prints rates and latencies. Against a store it calls the library in this process; against an endpoint it speaks the
/// SQS protocol, so that any server can be compared. It makes a queue of its own and deletes it at the end.
#[derive(Debug, Args)]
#[command(after_help = super::EXIT_CODES)]
pub struct BenchArgs {
    #[command(flatten)]
    target: Target,

    /// An SQS endpoint, such as http://127.0.0.1:9324; instead of --store.
    #[arg(long, value_name = "URL", conflicts_with = "server")]
    endpoint: Option<String>,

    /// What to do.
    #[arg(long, value_enum, default_value_t = Workload::Cycle)]
    workload: Workload,

    /// How many messages.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    messages: u64,

    /// Callers at a time.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    concurrency: u16,

    /// Bytes in each message.
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(1..=262_144))]
    bytes: u32,

    /// Messages in each request.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=10))]
    batch: u8,

    /// Messages that wait in the queue all the while, sent before the work is measured. Default: for receive, as many as
    /// are received; none for others.
    #[arg(long, value_parser = clap::value_parser!(u64).range(..=100_000_000))]
    backlog: Option<u64>,

    /// The endpoint's process on this machine: shows what it and its children use while the work is measured (Linux).
    #[arg(long, value_name = "PID", requires = "endpoint")]
    process: Option<u32>,

    /// The queue; without it, one of a name that is not in use.
    #[arg(long)]
    queue: Option<String>,

    /// Leaves the queue there.
    #[arg(long)]
    keep: bool,

    /// Sends requests to the endpoint without a signature; without it, they are signed, with a dummy key if none is given.
    #[arg(long, requires = "endpoint")]
    unsigned: bool,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// Sends.
    Send,
    /// Receives and deletes, while as many messages again wait.
    Receive,
    /// Sends, receives and deletes, in turn.
    Cycle,
    /// Receives and deletes until the queue is empty.
    Drain,
}

impl Workload {
    /// Its name.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Cycle => "cycle",
            Self::Drain => "drain",
        }
    }
}

/// Runs it.
pub async fn run(args: BenchArgs) -> Result<(), Failure> {
    if args.target.server.is_some() {
        let problem =
            "the native API is not measured: give the server as --endpoint, which speaks SQS";
        return Err(Failure::Usage(problem.to_owned()));
    }
    let out = Output::new(args.target.json);
    let load = Arc::new(Load::open(&args).await?);
    let plan = Plan {
        workload: args.workload,
        messages: args.messages,
        concurrency: usize::from(args.concurrency),
        bytes: usize::try_from(args.bytes).unwrap_or(usize::MAX),
        batch: usize::from(args.batch),
        backlog: args.backlog,
        process: args.process,
    };
    let measured = Box::pin(measure(&load, &plan)).await;
    let place = load.place().to_owned();
    // All callers have ended.
    if let Some(load) = Arc::into_inner(load) {
        load.close(args.keep).await;
    }
    print(out, &place, &plan, &measured?)
}
