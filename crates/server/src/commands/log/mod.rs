//! `millpond log`: topics, their records, and groups.

mod consume;
mod groups;
mod records;
mod topics;

use clap::{Args, Subcommand};

use super::Failure;
use super::door::Door;
use super::open::Make;
use super::output::Output;
use super::target::Target;

const EXAMPLES: &str = "Examples:
  millpond log create events --partitions 8 --retention-age 7days
  millpond log append events '{\"paid\":true}' --key customer-7
  millpond log append events --lines - < events.txt
  millpond log read events --from 2026-05-01T12:00:00Z
  millpond log follow events                                  what comes from now on
  millpond log consume events --group billing --follow        as a worker of a group
  millpond log lag events billing
  millpond log reset events billing --to earliest";

/// `millpond log`.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", super::EXIT_CODES))]
pub struct LogArgs {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    command: LogCommand,
}

#[derive(Debug, Subcommand)]
enum LogCommand {
    /// Creates a topic; one that exists with the same settings is fine.
    Create(topics::Create),
    /// Lists topics.
    #[command(alias = "ls")]
    List,
    /// Shows a topic: settings, and what is in each partition.
    Describe(topics::Name),
    /// Shows a topic's settings, or changes what is given of them.
    Config(topics::Configure),
    /// Deletes a topic with its records and groups.
    Delete(topics::Sure),
    /// Gives a topic more partitions.
    Grow(topics::Grow),
    /// Appends records: an argument, a file, or lines.
    Append(Box<records::Append>),
    /// Reads records from a place on.
    Read(records::Read),
    /// Reads records from a place on, and waits for more until interrupted.
    #[command(visible_alias = "tail")]
    Follow(records::Follow),
    /// Reads records as a worker of a group, and checkpoints what it printed.
    Consume(consume::Consume),
    /// Shows the offset of a place.
    Seek(records::Seek),
    /// Lists a topic's groups, with their lag.
    Groups(topics::Name),
    /// Makes a group; one that is there stays as it is.
    CreateGroup(groups::Create),
    /// Shows how far a group has come in each partition, and its workers.
    Lag(groups::Group),
    /// Changes what a group does with records that cannot be handled.
    ConfigGroup(groups::Configure),
    /// Forgets a group.
    DeleteGroup(groups::Sure),
    /// Moves a group to a place, in one partition or in all.
    Reset(groups::Reset),
    /// Moves a group behind everything that is there.
    SkipToEnd(groups::Group),
    /// Removes what the topic's retention says, oldest first.
    Trim(topics::Name),
    /// Finds objects that no record is in; with --remove, removes them.
    Sweep(topics::Sweep),
}

impl LogArgs {
    /// Whether it has something to do when it is interrupted, and does it itself.
    pub const fn minds_interrupts(&self) -> bool {
        matches!(self.command, LogCommand::Consume(_))
    }
}

/// Runs it.
pub async fn run(args: LogArgs) -> Result<(), Failure> {
    let make = match args.command {
        LogCommand::Create(_) => Make::IfMissing,
        _ => Make::No,
    };
    let door = Door::open(&args.target, make).await?;
    let out = Output::new(args.target.json);
    let outcome = Box::pin(dispatch(&door, out, args.command)).await;
    door.close().await;
    let group = "`millpond log create-group` makes one, and so does `millpond log consume --group`";
    let other = "`millpond log config` changes settings, `millpond log grow` adds partitions";
    outcome.map_err(|failure| {
        failure
            .advise("there is no topic", "`millpond log create NAME` makes one")
            .advise("has no group", group)
            .advise("already, with another configuration", other)
    })
}

async fn dispatch(door: &Door, out: Output, command: LogCommand) -> Result<(), Failure> {
    match command {
        LogCommand::Create(args) => topics::create(door, out, args).await,
        LogCommand::List => topics::list(door, out).await,
        LogCommand::Describe(args) => topics::describe(door, out, args).await,
        LogCommand::Config(args) => topics::configure(door, out, args).await,
        LogCommand::Delete(args) => topics::delete(door, out, args).await,
        LogCommand::Grow(args) => topics::grow(door, out, args).await,
        LogCommand::Append(args) => records::append(door, out, *args).await,
        LogCommand::Read(args) => records::read(door, out, args).await,
        LogCommand::Follow(args) => records::follow(door, out, args).await,
        LogCommand::Consume(args) => consume::consume(door, out, args).await,
        LogCommand::Seek(args) => records::seek(door, out, args).await,
        LogCommand::Groups(args) => groups::list(door, out, args).await,
        LogCommand::CreateGroup(args) => groups::create(door, out, args).await,
        LogCommand::Lag(args) => groups::lag(door, out, args).await,
        LogCommand::ConfigGroup(args) => groups::configure(door, out, args).await,
        LogCommand::DeleteGroup(args) => groups::delete(door, out, args).await,
        LogCommand::Reset(args) => groups::reset(door, out, args).await,
        LogCommand::SkipToEnd(args) => groups::skip_to_end(door, out, args).await,
        LogCommand::Trim(args) => topics::trim(door, out, args).await,
        LogCommand::Sweep(args) => topics::sweep(door, out, args).await,
    }
}
