//! `millpond sequence`: messages in any order in, the same in order out.

mod manage;
mod messages;
mod settings;

use clap::{Args, Subcommand};

use super::Failure;
use super::door::Door;
use super::open::Make;
use super::output::Output;
use super::target::Target;
use crate::api::MAIN_SEQUENCER;

const EXAMPLES: &str = "Examples:
  millpond sequence put --queue customer-7 --seq 1 second
  millpond sequence gaps customer-7                           what is missing: 0
  millpond sequence put --queue customer-7 --seq 0 first
  millpond sequence read customer-7                           first, second
  millpond sequence ranges customer-7 --follow                what the cursor passes, as it does
  millpond sequence config --gaps skip-after --gaps-after 1h";

/// `millpond sequence`.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", super::EXIT_CODES))]
pub struct SequenceArgs {
    #[command(flatten)]
    target: Target,
    /// The sequencer; its settings hold for all its queues.
    #[arg(long, global = true, value_name = "NAME", default_value = MAIN_SEQUENCER, help_heading = "Where")]
    sequencer: String,
    #[command(subcommand)]
    command: SequenceCommand,
}

#[derive(Debug, Subcommand)]
enum SequenceCommand {
    /// Puts messages: one with its number, or many as JSON lines.
    Put(messages::Put),
    /// Reads delivered messages in order, with the gaps among them.
    Read(messages::Read),
    /// Shows where a queue's cursor is.
    Cursor(manage::Queue),
    /// Tells what the cursor passes: once, or on and on.
    #[command(alias = "subscribe")]
    Ranges(messages::Ranges),
    /// Lists the numbers that are missing.
    #[command(alias = "missing")]
    Gaps(manage::Queue),
    /// Shows what waits ahead of the cursor.
    Pending(manage::Queue),
    /// Lists late arrivals that were kept aside.
    Late(messages::Late),
    /// Says that nothing will come for these numbers.
    DeclareGap(manage::DeclareGap),
    /// Gives up every missing number before this one, by hand.
    Skip(manage::To),
    /// Sets the cursor back, in a new epoch.
    Rewind(manage::To),
    /// Starts a queue over at a number, and removes all that is in it.
    Reset(manage::Reset),
    /// Removes delivered messages before this number.
    Trim(manage::To),
    /// Lists queues that have begun.
    #[command(alias = "ls")]
    List,
    /// Heals queues that nobody writes to, and lets gap timers run.
    Sweep(manage::Sweep),
    /// Lists a queue's readers and their places.
    Readers(manage::Queue),
    /// Says that a reader has dealt with everything before a number.
    Commit(manage::Reader),
    /// Moves a reader, back or forward.
    SeekReader(manage::Reader),
    /// Shows the sequencer's settings, or stores those that are given.
    Config(settings::Configure),
    /// Lists sequencers whose settings are stored.
    Sequencers,
}

/// Runs it.
pub async fn run(args: SequenceArgs) -> Result<(), Failure> {
    let make = match args.command {
        SequenceCommand::Put(_) | SequenceCommand::Config(_) => Make::IfMissing,
        _ => Make::No,
    };
    let door = Door::open(&args.target, make).await?;
    let out = Output::new(args.target.json);
    let outcome = Box::pin(dispatch(&door, out, &args.sequencer, args.command)).await;
    door.close().await;
    outcome
}

async fn dispatch(
    door: &Door,
    out: Output,
    name: &str,
    command: SequenceCommand,
) -> Result<(), Failure> {
    match command {
        SequenceCommand::Put(args) => messages::put(door, out, name, args).await,
        SequenceCommand::Read(args) => messages::read(door, out, name, args).await,
        SequenceCommand::Cursor(args) => manage::cursor(door, out, name, args).await,
        SequenceCommand::Ranges(args) => messages::ranges(door, out, name, args).await,
        SequenceCommand::Gaps(args) => manage::gaps(door, out, name, args).await,
        SequenceCommand::Pending(args) => manage::pending(door, out, name, args).await,
        SequenceCommand::Late(args) => messages::late(door, out, name, args).await,
        SequenceCommand::DeclareGap(args) => manage::declare_gap(door, out, name, args).await,
        SequenceCommand::Skip(args) => manage::moved(door, out, name, "skip", args).await,
        SequenceCommand::Rewind(args) => manage::moved(door, out, name, "rewind", args).await,
        SequenceCommand::Reset(args) => manage::reset(door, out, name, args).await,
        SequenceCommand::Trim(args) => manage::trim(door, out, name, args).await,
        SequenceCommand::List => manage::list(door, out, name).await,
        SequenceCommand::Sweep(args) => manage::sweep(door, out, name, args).await,
        SequenceCommand::Readers(args) => manage::readers(door, out, name, args).await,
        SequenceCommand::Commit(args) => manage::reader(door, out, name, "commit", args).await,
        SequenceCommand::SeekReader(args) => manage::reader(door, out, name, "seek", args).await,
        SequenceCommand::Config(args) => settings::configure(door, out, name, args).await,
        SequenceCommand::Sequencers => settings::list(door, out).await,
    }
}
