//! `millpond store`: the store itself.

use clap::{Args, Subcommand, ValueEnum};
use millpond_dynamodb::{Creation, DynamoDbStore, Finding, Role, TableOptions, policy};
use serde_json::{Value, json};

use super::Failure;
use super::door::{Ask, Door, field};
use super::open::{Make, open};
use super::output::{Column, Output, Show, print_text};
use super::target::Target;
use crate::api::Backend;
use crate::place::StorePlace;

/// What a sweep found, as it is shown.
pub const SWEPT: &[Column] = &[
    ("objects", "objects", Show::Plain),
    ("in use", "named", Show::Plain),
    ("too young to tell", "young", Show::Plain),
    ("orphans", "orphans", Show::Plain),
    ("bytes in orphans", "orphan_bytes", Show::Plain),
    ("removed", "removed", Show::Plain),
    ("not ours", "foreign", Show::Plain),
    ("expired items removed", "expired", Show::Plain),
];

const EXAMPLES: &str = "Examples:
  millpond store create                                       a directory, ./millpond-data
  millpond store create --store dynamodb:queues               a table
  millpond store policy --store dynamodb:queues --role consumer
  millpond store verify --store dynamodb:queues --role consumer
  millpond store stats --server http://127.0.0.1:9324
  millpond store sweep --remove";

/// `millpond store`.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{}", super::EXIT_CODES))]
pub struct StoreArgs {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    command: StoreCommand,
}

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Makes the directory or the table; one that is there and fits is fine.
    Create(Create),
    /// Checks a table and what may be done with it, or reads through a directory and reports damage.
    Verify(Verify),
    /// Prints the least that a role needs on a table, as IAM policies.
    Policy(PolicyArgs),
    /// Finds objects and expired items that nothing needs; with --remove, removes them.
    Sweep(Sweep),
    /// Shows what is in the store, and what it costs.
    Stats,
}

/// What may be chosen about a table.
#[derive(Debug, Args)]
pub struct Create {
    /// Publishes changes of a table as a stream with new and old images.
    #[arg(long)]
    stream: bool,
}

/// For whom to check.
#[derive(Debug, Args)]
pub struct Verify {
    /// Whose permissions on a table are checked.
    #[arg(long, value_enum, default_value_t = RoleName::Consumer)]
    role: RoleName,
    /// Checks the stream of a table too.
    #[arg(long)]
    stream: bool,
}

/// For whom to print.
#[derive(Debug, Args)]
pub struct PolicyArgs {
    /// The role; without it, all of them.
    #[arg(long, value_enum)]
    role: Option<RoleName>,
    /// The table's ARN; without it, one for the table of --store with account and region to be filled in.
    #[arg(long)]
    arn: Option<String>,
    /// The bucket for large payload, perhaps with a prefix.
    #[arg(long, value_name = "BUCKET/PREFIX")]
    bucket: Option<String>,
}

/// Whether to remove what is found.
#[derive(Debug, Args)]
pub struct Sweep {
    /// Removes what is found; without it, it is only counted.
    #[arg(long)]
    remove: bool,
}

/// Who works with a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RoleName {
    /// Appends.
    Producer,
    /// Takes, acknowledges and removes.
    Consumer,
    /// Does all of that, and makes, sets up and deletes the table.
    Admin,
}

impl RoleName {
    const ALL: [Self; 3] = [Self::Producer, Self::Consumer, Self::Admin];

    const fn role(self) -> Role {
        match self {
            Self::Producer => Role::Producer,
            Self::Consumer => Role::Consumer,
            Self::Admin => Role::Admin,
        }
    }

    const fn text(self) -> &'static str {
        match self {
            Self::Producer => "producer",
            Self::Consumer => "consumer",
            Self::Admin => "admin",
        }
    }
}

/// Runs it.
pub async fn run(args: StoreArgs) -> Result<(), Failure> {
    let out = Output::new(args.target.json);
    match args.command {
        StoreCommand::Create(create) => make(&args.target, out, &create).await,
        StoreCommand::Policy(policy) => policies(&args.target, out, &policy),
        StoreCommand::Verify(verify) => match table(&args.target).await? {
            Some(store) => verify_table(&store, out, &verify).await,
            None => through(&args.target, |door| check(door, out)).await,
        },
        StoreCommand::Sweep(sweep) => {
            through(&args.target, |door| async move {
                let body = json!({ "dry_run": !sweep.remove });
                out.one(SWEPT, &door.ask(Ask::post(&["sweep"], body)).await?)
            })
            .await
        }
        StoreCommand::Stats => through(&args.target, |door| stats(door, out)).await,
    }
}

/// Opens the door, does the work, and closes it.
async fn through<F: Future<Output = Result<(), Failure>>>(
    target: &Target,
    work: impl FnOnce(std::sync::Arc<Door>) -> F,
) -> Result<(), Failure> {
    let door = std::sync::Arc::new(Door::open(target, Make::No).await?);
    let outcome = work(std::sync::Arc::clone(&door)).await;
    if let Some(door) = std::sync::Arc::into_inner(door) {
        door.close().await;
    }
    outcome
}

/// The table of a command that works on one.
async fn table(target: &Target) -> Result<Option<DynamoDbStore>, Failure> {
    if target.server.is_some() {
        return Ok(None);
    }
    match &target.store {
        StorePlace::Directory(_) => Ok(None),
        StorePlace::Table(_) => match open(target, Make::No).await?.1 {
            Backend::DynamoDb(store) => Ok(Some(store)),
            _ => Ok(None),
        },
    }
}

async fn make(target: &Target, out: Output, args: &Create) -> Result<(), Failure> {
    if target.server.is_some() {
        let problem = "a server has its store already; `store create` works with --store only";
        return Err(Failure::Usage(problem.to_owned()));
    }
    let was_there = matches!(&target.store, StorePlace::Directory(directory) if directory.exists());
    let created = match open(target, Make::IfMissing).await?.1 {
        Backend::DynamoDb(store) => {
            let options = TableOptions { stream: args.stream };
            let creation = Box::pin(store.admin().create_table(options)).await?;
            creation == Creation::Created
        }
        Backend::Embedded(store, _) => {
            store.close().await;
            !was_there
        }
        Backend::Other => false,
    };
    let place = &target.store;
    let answer = json!({ "store": place.to_string(), "created": created });
    let sentence = if created { "is there" } else { "was there already, and fits" };
    out.said(&answer, &format!("the store {place} {sentence}"))
}

async fn verify_table(store: &DynamoDbStore, out: Output, args: &Verify) -> Result<(), Failure> {
    let options = TableOptions { stream: args.stream };
    let report = Box::pin(store.admin().verify(args.role.role(), options)).await?;
    let rows: Vec<Value> = report
        .checks
        .iter()
        .map(|check| match &check.finding {
            Finding::Passed => json!({ "check": check.what, "good": true }),
            Finding::Failed { problem, remedy } => {
                json!({ "check": check.what, "good": false, "problem": problem, "remedy": remedy })
            }
        })
        .collect();
    let columns: &[Column] = &[
        ("CHECK", "check", Show::Plain),
        ("GOOD", "good", Show::Plain),
        ("PROBLEM", "problem", Show::Plain),
        ("REMEDY", "remedy", Show::Plain),
    ];
    out.list(columns, &rows)?;
    if report.is_good() {
        return Ok(());
    }
    Err(Failure::Broken(format!("table {} is not as it should be", report.table)))
}

async fn check(door: std::sync::Arc<Door>, out: Output) -> Result<(), Failure> {
    let answer = door.ask(Ask::post(&["check"], json!({}))).await?;
    let columns: &[Column] = &[
        ("messages of queues", "messages", Show::Plain),
        ("records of topics", "records", Show::Plain),
        ("messages of sequencers", "sequenced", Show::Plain),
        ("problems", "problems", Show::Plain),
    ];
    out.one(columns, &answer)?;
    match field(&answer, "problems").as_array().map_or(0, Vec::len) {
        0 => Ok(()),
        count => Err(Failure::Broken(format!("{count} problems were found; restore from a copy"))),
    }
}

fn policies(target: &Target, out: Output, args: &PolicyArgs) -> Result<(), Failure> {
    let arn = match (&args.arn, &target.store) {
        (Some(arn), _) => arn.clone(),
        (None, StorePlace::Table(table)) => {
            format!("arn:aws:dynamodb:REGION:ACCOUNT:table/{table}")
        }
        (None, StorePlace::Directory(_)) => {
            let problem = "a directory needs no policy; give --store dynamodb:TABLE or --arn";
            return Err(Failure::Usage(problem.to_owned()));
        }
    };
    for role in RoleName::ALL {
        if args.role.is_some_and(|wanted| wanted != role) {
            continue;
        }
        let text = policy(role.role(), &arn, args.bucket.as_deref());
        if out.is_json() {
            let parsed: Value = serde_json::from_str(&text).unwrap_or_default();
            out.document(&json!({ "role": role.text(), "policy": parsed }))?;
        } else if args.role.is_some() {
            print_text(&format!("{text}\n"))?;
        } else {
            print_text(&format!("{}\n{text}\n\n", role.text()))?;
        }
    }
    Ok(())
}

async fn stats(door: std::sync::Arc<Door>, out: Output) -> Result<(), Failure> {
    let answer = door.ask(Ask::get(&["stats"])).await?;
    let columns: &[Column] = &[
        ("version", "version", Show::Plain),
        ("kind", "backend", Show::Plain),
        ("durable", "durable", Show::Plain),
        ("object store", "objects", Show::Plain),
        ("queues", "queues", Show::Plain),
        ("topics of queues", "queue_topics", Show::Plain),
        ("topics of the log", "topics", Show::Plain),
        ("sequencers", "sequencers", Show::Plain),
        ("files", "files", Show::Plain),
        ("bytes", "bytes", Show::Plain),
        ("requests", "requests", Show::Plain),
        ("read units", "read_units", Show::Plain),
        ("write units", "write_units", Show::Plain),
    ];
    out.one(columns, &answer)
}
