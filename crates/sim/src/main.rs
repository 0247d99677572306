//! `millpond-sim`: crash loops from the command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use millpond_sim::{crash, load, simulation};

#[derive(Parser)]
#[command(about, version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Kill a process under load, reopen its store, and check everything it acknowledged; again and again.
    Crash {
        /// How often.
        #[arg(long, default_value_t = 50)]
        cycles: u32,
        /// The same seed makes the same load and the same moments of death.
        #[arg(long)]
        seed: u64,
        /// Where the store is; it is made anew.
        #[arg(long)]
        dir: PathBuf,
    },
    /// Run processes in a simulated world: the same seed, the same history.
    Simulate {
        /// The first seed; those behind it follow.
        #[arg(long)]
        first: u64,
        /// How many seeds.
        #[arg(long, default_value_t = 1_000)]
        seeds: u64,
        /// Operations of each seed.
        #[arg(long, default_value_t = 200)]
        operations: u64,
        /// How many of the seeds run twice, to be compared.
        #[arg(long, default_value_t = 10)]
        twice: u64,
        /// What is simulated. Default: everything in turn.
        #[arg(long, value_delimiter = ',')]
        kinds: Vec<simulation::Kind>,
    },
    /// Put load on a store and report what is acknowledged, until killed: the process that `crash` kills.
    #[command(hide = true)]
    Worker {
        #[arg(long)]
        seed: u64,
        #[arg(long)]
        cycle: u32,
        #[arg(long)]
        dir: PathBuf,
    },
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    match Arguments::parse().command {
        Command::Crash { cycles, seed, dir } => {
            let options = crash::Options { cycles, seed, directory: dir };
            println!("{}", crash::run(&options).await?);
        }
        Command::Simulate { first, seeds, operations, twice, kinds } => {
            let options = simulation::Options { first, seeds, operations, kinds, twice };
            let run = tokio::task::spawn_blocking(move || simulation::run(&options));
            println!("{}", run.await??);
        }
        Command::Worker { seed, cycle, dir } => load::run(&dir, seed, cycle).await?,
    }
    Ok(())
}
