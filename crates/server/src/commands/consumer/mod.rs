//! `millpond consumer`: what consumers remember of messages, and their dead letters.

mod aws;
mod import;
mod letters;
mod mapping;
mod state;

use clap::{Args, Subcommand};

use super::Failure;
use super::door::Door;
use super::open::Make;
use super::output::Output;
use super::target::Target;

const EXAMPLES: &str = "Examples:
  millpond consumer sources billing                            which streams and shards it has seen
  millpond consumer state billing --unfinished                 what it tries again, and why
  millpond consumer forget billing 4951 --arn arn:…            takes it for new when it comes again
  millpond consumer letters --queue dead --reason exhausted    what it gave up
  millpond consumer redrive --queue dead --to-queue orders     sends that again
  millpond consumer redrive --from sqs:https://… --to kinesis:orders
                                                               the same in AWS
  millpond consumer enable --mapping 91eaeb7e-…                lets a stopped source deliver again";

/// `millpond consumer`.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", super::EXIT_CODES))]
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
    /// Forgets a message: when it comes again, it is as if for the first time. For rows that cannot be read, and block.
    Forget(state::ForgetArgs),
    /// Takes over the state that aws-stream-consumer-core kept, from items of its table.
    Import(import::ImportArgs),
    /// Lists dead letters in a queue, a topic, SQS or Kinesis, oldest first.
    Letters(letters::LettersArgs),
    /// Sends what is in dead letters to a queue, a topic, SQS or Kinesis. A letter in a queue is removed once it is there.
    Redrive(letters::RedriveArgs),
    /// Enables an event source mapping that a breaker has disabled. Delivery goes on where it stopped.
    Enable(mapping::EnableArgs),
}

/// Runs it.
pub async fn run(args: ConsumerArgs) -> Result<(), Failure> {
    let ConsumerArgs { target, command } = args;
    let out = Output::new(target.json);
    match command {
        ConsumerCommand::Enable(args) => Box::pin(mapping::enable(out, args)).await,
        ConsumerCommand::Letters(args) if aws::is_in_aws(&args.place()) => {
            Box::pin(aws::list(out, &args.place(), &args)).await
        }
        ConsumerCommand::Redrive(args) => {
            let (from, to) = (args.letters().place(), args.destination());
            if aws::is_in_aws(&from) || aws::is_in_aws(&to) {
                let places = (&from, &to);
                return Box::pin(aws::redrive(&target, out, places, args.letters())).await;
            }
            at_door(&target, out, ConsumerCommand::Redrive(args)).await
        }
        other => at_door(&target, out, other).await,
    }
}

/// What the API can do.
async fn at_door(target: &Target, out: Output, command: ConsumerCommand) -> Result<(), Failure> {
    let door = Door::open(target, Make::No).await?;
    let outcome = match command {
        ConsumerCommand::Sources(args) => Box::pin(state::sources(&door, out, args)).await,
        ConsumerCommand::State(args) => Box::pin(state::show(&door, out, args)).await,
        ConsumerCommand::Forget(args) => Box::pin(state::forget(&door, out, args)).await,
        ConsumerCommand::Import(args) => Box::pin(import::import(&door, out, args)).await,
        ConsumerCommand::Letters(args) => Box::pin(letters::list(&door, out, args)).await,
        ConsumerCommand::Redrive(args) => Box::pin(letters::redrive(&door, out, args)).await,
        ConsumerCommand::Enable(args) => Box::pin(mapping::enable(out, args)).await,
    };
    door.close().await;
    outcome.map_err(|failure| {
        failure
            .advise("there is no queue", "`millpond queue list` shows those that there are")
            .advise("there is no topic", "`millpond log list` shows all")
    })
}
