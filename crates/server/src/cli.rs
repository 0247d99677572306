//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use millpond_embedded::Durability;

use crate::place::StorePlace;

/// Messaging without a broker cluster.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Append messages to lanes on the embedded engine and read them back, with rates.
    Demo(Demo),
}

/// What the demo does.
///
/// It appends messages to one sequenced lane from several callers at once, reads all of them back, checks every
/// one, and removes them again.
#[derive(Debug, Args)]
pub struct Demo {
    /// The store: a directory, which is made if it is not there.
    #[arg(long, value_name = "DIR", default_value = "./millpond-data")]
    pub store: StorePlace,

    /// How many messages to append.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub messages: u64,

    /// Bytes in each message.
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u64).range(8..=1_048_576))]
    pub bytes: u64,

    /// Callers that append at the same time, each waiting for its answer.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub callers: u64,

    /// When a message counts as appended.
    #[arg(long, value_enum, default_value_t = DurabilityChoice::Durable)]
    pub durability: DurabilityChoice,
}

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum DurabilityChoice {
    /// After it is on disk.
    Durable,
    /// Before it is on disk: a power failure loses acknowledged messages. For tests and caches.
    UnsafeNoSync,
}

impl From<DurabilityChoice> for Durability {
    fn from(choice: DurabilityChoice) -> Self {
        match choice {
            DurabilityChoice::Durable => Self::Durable,
            DurabilityChoice::UnsafeNoSync => Self::UnsafeNoSync,
        }
    }
}
