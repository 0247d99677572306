//! `cargo xtask bench compare`: Millpond's server beside other servers, with the same loads on the same machine.

mod contenders;
mod loads;
mod packages;
mod running;
mod start;
mod table;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use self::contenders::{CONTENDERS, Contender, MILLPOND, NOT_COMPARED};
use self::loads::{Clients, LOADS};
use self::start::Site;
use self::table::{Figures, Missing};
use crate::workspace::Workspace;

/// Messages of each load before anything is measured.
const WARM_UP: u64 = 2_000;

/// Compare the server with other servers, one at a time, with the same loads on this machine.
///
/// SQS servers are loaded by `millpond bench --endpoint`, as Millpond itself is; the others, each over its own protocol
/// and set to flush to disk before it answers, by the clients in `compare/`. Servers are fetched once, as packages of
/// Debian, Maven, Go and Python, into `target/compare`; nothing is installed outside it. They listen on loopback
/// addresses and free ports. The rounds are interleaved: each starts and measures all servers once; the median of rates
/// counts, and of the ratios to Millpond in the same round. The table is also written to `target/bench/compare.json`.
/// docs/benchmarks.md says what is compared. Linux only.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which servers, beside Millpond itself; default: all that can be had.
    #[arg(value_name = "SERVER", value_parser = clap::builder::PossibleValuesParser::new(names()))]
    servers: Vec<String>,

    /// How often all are measured.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: u64,

    /// Messages of each load; slow servers get a share of it.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..=10_000_000))]
    messages: u64,

    /// Only loads whose name contains this, such as "send" or "drain".
    #[arg(long)]
    load: Option<String>,

    /// A `millpond` that is built already; without it, one is built for release.
    #[arg(long, value_name = "FILE")]
    millpond: Option<PathBuf>,
}

fn names() -> Vec<&'static str> {
    CONTENDERS.iter().map(|one| one.name).filter(|name| *name != MILLPOND).collect()
}

/// Measures all; `false` when Millpond is behind, or a server that was asked for by name could not be measured.
pub(super) fn run(workspace: &Workspace, args: &Args) -> Result<bool> {
    let wanted = |one: &&Contender| {
        args.servers.is_empty()
            || one.name == MILLPOND
            || args.servers.iter().any(|name| name == one.name)
    };
    let mut contenders: Vec<&Contender> = CONTENDERS.iter().filter(wanted).collect();
    let part = args.load.as_deref().unwrap_or_default();
    let loads: Vec<_> = LOADS.iter().filter(|load| load.name.contains(part)).collect();
    if loads.is_empty() {
        bail!("no load has {part:?} in its name");
    }
    let site = Site::new(workspace)?;
    let clients = Clients::build(workspace, args.millpond.clone())?;
    let (mut figures, mut missing) = (Figures::new(), Vec::new());
    for round in 1..=args.rounds {
        let mut lost = Vec::new();
        for contender in &contenders {
            println!("round {round}: {}", contender.name);
            let measured = measure(&site, &clients, contender, &loads, args.messages, &mut figures);
            if let Err(error) = measured {
                // Said at once and again at the end, and not tried in further rounds.
                println!("NOT MEASURED: {}: {error:#}", contender.name);
                lost.push(Missing { name: contender.name, reason: format!("{error:#}") });
            }
        }
        contenders.retain(|one| lost.iter().all(|lost| lost.name != one.name));
        missing.extend(lost);
        if contenders.iter().all(|one| one.name != MILLPOND) {
            bail!("Millpond itself could not be measured");
        }
    }
    figures.print(&loads);
    for Missing { name, reason } in &missing {
        println!("NOT MEASURED: {name}: {reason}");
    }
    if args.servers.is_empty() {
        for (name, reason) in NOT_COMPARED {
            println!("NOT COMPARED: {name}: {reason}");
        }
    }
    figures.write(workspace, args.rounds, &missing)?;
    let behind = figures.behind(&loads);
    for line in &behind {
        println!("BEHIND: {line}");
    }
    Ok(behind.is_empty() && (args.servers.is_empty() || missing.is_empty()))
}

/// Starts a server, puts all loads on it, and stops it.
fn measure(
    site: &Site<'_>,
    clients: &Clients<'_>,
    contender: &'static Contender,
    loads: &[&'static loads::Load],
    messages: u64,
    figures: &mut Figures,
) -> Result<()> {
    let running = (contender.start)(site, clients)?;
    let messages = (messages * contender.percent / 100).max(100);
    // Servers that compile themselves as they run are slow at first; what all do once is not measured.
    for load in &LOADS {
        clients.run(contender, &running, load, messages.min(WARM_UP)).context("warming up")?;
    }
    for load in loads {
        let figure = clients.run(contender, &running, load, messages)?;
        println!("  {:24} {:>9.0} msgs/s", load.name, figure.rate);
        figures.add(contender, load, figure);
    }
    Ok(())
}
