//! `millpond queue`: everything that queues can do.

mod admin;
mod config;
mod messages;
mod settle;
mod tail;
mod tasks;
mod topics;

use clap::{Args, Subcommand};

use super::Failure;
use super::door::Door;
use super::open::Make;
use super::output::Output;
use super::target::Target;
pub use admin::check_sure;
pub use settle::failures;

const EXAMPLES: &str = "Examples:
  millpond queue create orders --visibility 5m
  millpond queue send orders 'one chair' --attribute colour=red
  millpond queue send orders --jsonl messages.jsonl           {\"body\":\"…\",\"group\":\"…\"} a line; - is standard input
  millpond queue receive orders --max 10 --wait 20s --json > taken
  millpond queue ack orders - < taken
  millpond queue tail orders                                  shows what comes, and takes nothing
  millpond queue config orders --dead-letters dead --receives-max 5
  millpond queue redrive dead";

/// `millpond queue`.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", super::EXIT_CODES))]
pub struct QueueArgs {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    command: QueueCommand,
}

/// A queue, and perhaps one of its clients.
#[derive(Debug, Clone, Args)]
pub struct Place {
    /// The queue.
    queue: String,
    /// The client of the queue; without it, the main one.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    client: String,
}

#[derive(Debug, Subcommand)]
enum QueueCommand {
    /// Creates a queue; one that exists with the same configuration is fine.
    Create(admin::Create),
    /// Lists queues.
    #[command(alias = "ls")]
    List(admin::List),
    /// Shows a queue: configuration, clients and how many messages each has.
    Describe(admin::Describe),
    /// Shows a queue's configuration, or changes what is given of it.
    Config(admin::Configure),
    /// Sends messages: an argument, a file, or lines.
    Send(Box<messages::Send>),
    /// Receives messages on loan; acknowledge them, or they come back.
    Receive(messages::Receive),
    /// Acknowledges messages: they are finished.
    Ack(settle::Receipts),
    /// Finishes a task, well or badly, with a result that is kept with its status.
    Finish(settle::Finish),
    /// Keeps messages on loan until this long from now.
    Extend(settle::Extend),
    /// Gives messages back that were not worked on.
    Release(settle::Receipts),
    /// Gives messages back that could not be worked on, with what went wrong.
    Nack(settle::Nack),
    /// Shows the first messages from the old end, without taking them.
    Peek(messages::Peek),
    /// Shows messages as they come, without taking them, until interrupted: of the first 10,000 from the old end, those
    /// that it has not shown yet. One that comes and goes within half a second may be missed.
    Tail(tail::Tail),
    /// Shows one message by its id, without taking it.
    Get(messages::Get),
    /// Counts messages, and what happened to those that were: also what was shed, by reason.
    Count(admin::Where),
    /// Removes every message of a client.
    Purge(admin::Sure),
    /// Deletes a queue and everything in it.
    Delete(admin::SureName),
    /// Shows messages of a queue that went to its dead-letter queue.
    DeadLetters(messages::Peek),
    /// Brings messages of a dead-letter queue back to where they came from.
    Redrive(admin::Redrive),
    /// Lists tasks in a state, in a queue that keeps status.
    Tasks(tasks::List),
    /// Shows the status of one task.
    Task(messages::Get),
    /// Lets a group go on that was blocked by a message that failed too often.
    Unblock(admin::Unblock),
    /// Removes what has ended, sheds what is too much, stores counters.
    Maintain(admin::Where),
    /// Topics: a message to several queues, its body stored once.
    #[command(subcommand)]
    Topics(topics::TopicCommand),
}

impl QueueCommand {
    /// Whether it may be the first that is done with a store.
    const fn makes(&self) -> Make {
        match self {
            Self::Create(_) => Make::IfMissing,
            _ => Make::No,
        }
    }
}

/// Runs it.
pub async fn run(args: QueueArgs) -> Result<(), Failure> {
    let door = Door::open(&args.target, args.command.makes()).await?;
    let out = Output::new(args.target.json);
    let outcome = Box::pin(dispatch(&door, out, args.command)).await;
    door.close().await;
    let known =
        "`millpond queue list` shows those that there are, `millpond queue create NAME` makes one";
    let dead = "`millpond queue config NAME --dead-letters QUEUE --receives-max COUNT` names one";
    outcome.map_err(|failure| {
        failure
            .advise("there is no queue", known)
            .advise("has no dead-letter queue", dead)
            .advise("status is not kept", "`millpond queue config NAME --status TIME` keeps it")
    })
}

async fn dispatch(door: &Door, out: Output, command: QueueCommand) -> Result<(), Failure> {
    match command {
        QueueCommand::Create(args) => admin::create(door, out, args).await,
        QueueCommand::List(args) => admin::list(door, out, args).await,
        QueueCommand::Describe(args) => admin::describe(door, out, args).await,
        QueueCommand::Config(args) => admin::configure(door, out, args).await,
        QueueCommand::Send(args) => messages::send(door, out, *args).await,
        QueueCommand::Receive(args) => messages::receive(door, out, args).await,
        QueueCommand::Ack(args) => settle::ack(door, out, args).await,
        QueueCommand::Finish(args) => settle::finish(door, out, args).await,
        QueueCommand::Extend(args) => settle::extend(door, out, args).await,
        QueueCommand::Release(args) => settle::release(door, out, args).await,
        QueueCommand::Nack(args) => settle::nack(door, out, args).await,
        QueueCommand::Peek(args) => messages::peek(door, out, args).await,
        QueueCommand::Tail(args) => tail::tail(door, out, args).await,
        QueueCommand::Get(args) => messages::get(door, out, args).await,
        QueueCommand::Count(args) => admin::count(door, out, args).await,
        QueueCommand::Purge(args) => admin::purge(door, out, args).await,
        QueueCommand::Delete(args) => admin::delete(door, out, args).await,
        QueueCommand::DeadLetters(args) => messages::dead_letters(door, out, args).await,
        QueueCommand::Redrive(args) => admin::redrive(door, out, args).await,
        QueueCommand::Tasks(args) => tasks::list(door, out, args).await,
        QueueCommand::Task(args) => tasks::get(door, out, args).await,
        QueueCommand::Unblock(args) => admin::unblock(door, out, args).await,
        QueueCommand::Maintain(args) => admin::maintain(door, out, args).await,
        QueueCommand::Topics(command) => topics::run(door, out, command).await,
    }
}
