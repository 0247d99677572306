//! The status of messages as tasks.

use clap::{Args, ValueEnum};

use super::super::Failure;
use super::super::door::{Ask, Door, list as listed};
use super::super::output::{Column, Output, Show};
use super::Place;
use super::messages::Get;

/// Which tasks.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    place: Place,
    /// The state that they are in.
    #[arg(long, value_enum, default_value_t = State::Pending)]
    state: State,
    /// The newest first.
    #[arg(long)]
    newest: bool,
    /// Most tasks.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    max: usize,
}

/// Where a task is in its life.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum State {
    /// It waits.
    Pending,
    /// Somebody works on it.
    Taken,
    /// It ended well.
    Success,
    /// It ended badly.
    Failure,
}

/// Lists tasks.
pub async fn list(door: &Door, out: Output, args: List) -> Result<(), Failure> {
    let state = match args.state {
        State::Pending => "pending",
        State::Taken => "taken",
        State::Success => "success",
        State::Failure => "failure",
    };
    let ask = Ask::get(&["queues", &args.place.queue, "tasks"]).client(&args.place.client);
    let ask = ask.with("state", state).with("newest", args.newest).with("max", args.max);
    let columns: &[Column] = &[
        ("ID", "id", Show::Plain),
        ("STATE", "state", Show::Plain),
        ("ATTEMPTS", "attempts", Show::Number),
        ("WORKER", "worker", Show::Plain),
        ("CREATED", "created_ms", Show::Time),
        ("ENDED", "ended_ms", Show::Time),
        ("RESULT", "result", Show::Content),
        ("ERROR", "error", Show::Plain),
    ];
    out.list(columns, &listed(door.ask(ask).await?, "tasks"))
}

/// Shows one task.
pub async fn get(door: &Door, out: Output, args: Get) -> Result<(), Failure> {
    let path = ["queues", args.place.queue.as_str(), "tasks", args.id.as_str()];
    let answer = door.ask(Ask::get(&path).client(&args.place.client)).await?;
    let columns: &[Column] = &[
        ("id", "id", Show::Plain),
        ("state", "state", Show::Plain),
        ("attempts", "attempts", Show::Plain),
        ("worker", "worker", Show::Plain),
        ("created", "created_ms", Show::Time),
        ("first taken", "first_taken_ms", Show::Time),
        ("ended", "ended_ms", Show::Time),
        ("result", "result", Show::Content),
        ("error", "error", Show::Plain),
        ("history", "history", Show::Plain),
    ];
    out.one(columns, &answer)
}
