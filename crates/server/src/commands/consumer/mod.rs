//! `millpond consumer`: what consumers remember of messages, and their dead letters.
//!
//! These commands open the store themselves: what consumers keep in it is not part of the native API.

mod letters;
mod state;

use clap::{Args, Subcommand};
use millpond_consumer::redrive::RedriveError;
use millpond_consumer::state::StateError;
use millpond_lanes::Ground;

use super::Failure;
use super::open::{Make, open};
use super::output::Output;
use super::target::Target;
use crate::api::{ApiError, Backend};

/// `millpond consumer`.
#[derive(Debug, Args)]
#[command(after_help = super::EXIT_CODES)]
pub struct ConsumerArgs {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    command: ConsumerCommand,
}

#[derive(Debug, Subcommand)]
enum ConsumerCommand {
    /// Lists the sources and shards that a consumer keeps state of.
    Sources(state::SourcesArgs),
    /// Shows what a consumer remembers of messages: tasks, attempts, errors.
    State(state::StateArgs),
    /// Lists dead letters in a queue or a topic, oldest first.
    Letters(letters::LettersArgs),
    /// Sends what is in dead letters to a queue or a topic. A letter in a queue is removed once it is there.
    Redrive(letters::RedriveArgs),
}

/// Runs it.
pub async fn run(args: ConsumerArgs) -> Result<(), Failure> {
    if args.target.server.is_some() {
        let problem = "what consumers keep is not served: use --store, with the server stopped if \
                       it is a directory";
        return Err(Failure::Usage(problem.to_owned()));
    }
    let out = Output::new(args.target.json);
    let (ground, backend) = open(&args.target, Make::No).await?;
    let outcome = start(&ground, &args.target, args.command, out).await;
    drop(ground);
    if let Backend::Embedded(store, _) = backend {
        store.close().await;
    }
    outcome
}

async fn start(
    ground: &Ground,
    target: &Target,
    command: ConsumerCommand,
    out: Output,
) -> Result<(), Failure> {
    match command {
        ConsumerCommand::Sources(args) => state::sources(ground, &args, out).await,
        ConsumerCommand::State(args) => state::show(ground, &args, out).await,
        ConsumerCommand::Letters(args) => letters::list(ground, &args, out).await,
        ConsumerCommand::Redrive(args) => letters::redrive(ground, target, &args, out).await,
    }
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Store(error) => error.into(),
            other => Self::Broken(other.to_string()),
        }
    }
}

impl From<RedriveError> for Failure {
    fn from(error: RedriveError) -> Self {
        match error {
            RedriveError::Queue(error) => ApiError::from(error).into(),
            RedriveError::Log(error) => ApiError::from(error).into(),
            other => Self::Broken(other.to_string()),
        }
    }
}
