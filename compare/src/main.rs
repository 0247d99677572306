//! Load on the servers that Millpond is compared with: the same messages, callers and batches as `millpond bench`, over each
//! server's own protocol with its usual client. It prints the same JSON. Run by `cargo xtask bench compare`.

#[path = "../../crates/server/src/commands/bench/bodies.rs"]
#[allow(dead_code, reason = "shared with `millpond bench`, which uses all of it")]
mod bodies;
#[path = "../../crates/server/src/commands/bench/usage.rs"]
mod usage;

mod beanstalkd;
mod link;
mod nats;
mod postgres;
mod rabbitmq;
mod redis;
mod report;
mod work;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use crate::work::{Plan, Workload, measure};

/// Load on a server that is not an SQS server.
#[derive(Parser)]
struct Args {
    /// Which server.
    #[arg(long, value_enum)]
    server: Kind,
    /// Its address, such as 127.0.0.1:4222.
    #[arg(long)]
    address: String,
    /// What to do: the workloads of `millpond bench`.
    #[arg(long, value_enum)]
    workload: Workload,
    /// How many messages.
    #[arg(long, default_value_t = 10_000)]
    messages: u64,
    /// Messages that wait all the while.
    #[arg(long)]
    backlog: Option<u64>,
    /// Callers at a time, each with a connection of its own.
    #[arg(long, default_value_t = 16)]
    concurrency: usize,
    /// Bytes in each message.
    #[arg(long, default_value_t = 1_024)]
    bytes: usize,
    /// Messages that are sent, or acknowledged, at a time.
    #[arg(long, default_value_t = 1)]
    batch: usize,
    /// The server's process, to say what it uses.
    #[arg(long)]
    process: Option<u32>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Kind {
    Beanstalkd,
    Nats,
    Postgres,
    PostgresLease,
    Rabbitmq,
    Redis,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Args { server, address, workload, messages, backlog, concurrency, bytes, batch, process } =
        Args::parse();
    let plan = Plan { workload, messages, backlog, concurrency, bytes, batch, process };
    let measured = match server {
        Kind::Beanstalkd => measure(beanstalkd::Server::new(&address), &plan).await?,
        Kind::Nats => measure(nats::Server::new(&address), &plan).await?,
        Kind::Postgres => measure(postgres::Server::held(&address), &plan).await?,
        Kind::PostgresLease => measure(postgres::Server::leased(&address), &plan).await?,
        Kind::Rabbitmq => measure(rabbitmq::Server::new(&address), &plan).await?,
        Kind::Redis => measure(redis::Server::new(&address), &plan).await?,
    };
    println!("{}", report::json(&address, &plan, &measured));
    Ok(())
}
