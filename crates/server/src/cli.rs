//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use millpond_embedded::Durability;
use serde::Deserialize;

use crate::config::ServeFlags;
use crate::place::StorePlace;

/// Messaging without a broker cluster.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true, after_help = crate::commands::EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve queues to clients of Amazon SQS.
    Serve(Serve),
    /// Look at the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    #[command(flatten)]
    Work(crate::commands::Family),
    /// Append messages to lanes on the embedded engine and read them back, with rates.
    Demo(Demo),
}

/// Serve queues to every client of Amazon SQS: SDKs, the AWS CLI, frameworks.
///
/// Without any option it keeps its data in ./millpond-data and listens on 127.0.0.1:9324. Everything can be set by
/// flag, by environment variable (MILLPOND_…) and in a TOML file (--config), in that order of precedence;
/// `millpond config check` shows what is in force. `--help` shows the limits too.
#[derive(Debug, Args)]
pub struct Serve {
    #[command(flatten)]
    pub flags: ServeFlags,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the configuration that `serve` would use, and where each value comes from; secrets are left out.
    Check(Serve),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
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
