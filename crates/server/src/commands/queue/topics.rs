//! Topics of queues.

use clap::{Args, Subcommand};
use serde_json::json;

use super::super::Failure;
use super::super::door::{Ask, Door, list as listed, named};
use super::super::input::{Shape, Source};
use super::super::output::{Column, Output, Show};
use super::super::values::pair;
use super::messages::MessageOptions;
use super::settle::failures;

/// `millpond queue topics`.
#[derive(Debug, Subcommand)]
pub enum TopicCommand {
    /// Creates a topic, or replaces the queues of one that exists.
    Create(Create),
    /// Lists topics.
    List,
    /// Shows the queues of a topic.
    Describe(Name),
    /// Sends a message to each queue of a topic.
    Send(Box<Send>),
    /// Deletes a topic; its queues stay.
    Delete(Name),
}

/// A topic to be.
#[derive(Debug, Args)]
pub struct Create {
    /// Its name.
    topic: String,
    /// Its queues, which exist.
    #[arg(required = true)]
    queues: Vec<String>,
}

/// Which topic.
#[derive(Debug, Args)]
pub struct Name {
    /// The topic.
    topic: String,
}

/// What to send.
#[derive(Debug, Args)]
pub struct Send {
    /// The topic.
    topic: String,
    /// The client of each queue; without it, the main one.
    #[arg(long, value_name = "ID", default_value = "", hide_default_value = true)]
    client: String,
    #[command(flatten)]
    source: Source,
    /// Something said about each message, as NAME=VALUE; may be repeated.
    #[arg(long = "attribute", value_name = "NAME=VALUE", value_parser = pair)]
    attributes: Vec<(String, String)>,
    #[command(flatten)]
    options: MessageOptions,
}

/// Runs it.
pub async fn run(door: &Door, out: Output, command: TopicCommand) -> Result<(), Failure> {
    match command {
        TopicCommand::Create(args) => {
            let body = json!({ "queues": args.queues });
            let answer = door.ask(Ask::put(&["queue-topics", &args.topic], body)).await?;
            out.said(&answer, &format!("topic {} sends to {}", args.topic, args.queues.join(", ")))
        }
        TopicCommand::List => {
            let answer = door.ask(Ask::get(&["queue-topics"])).await?;
            out.list(&[("TOPIC", "topic", Show::Plain)], &named(answer, "topics", "topic"))
        }
        TopicCommand::Describe(args) => {
            let answer = door.ask(Ask::get(&["queue-topics", &args.topic])).await?;
            let columns: &[Column] =
                &[("name", "name", Show::Plain), ("queues", "queues", Show::Plain)];
            out.one(columns, &answer)
        }
        TopicCommand::Send(args) => send(door, out, *args).await,
        TopicCommand::Delete(args) => {
            let answer = door.ask(Ask::delete(&["queue-topics", &args.topic])).await?;
            out.said(&answer, &format!("topic {} is deleted", args.topic))
        }
    }
}

async fn send(door: &Door, out: Output, args: Send) -> Result<(), Failure> {
    let defaults = args.options.fields(&args.attributes);
    let shape = Shape { content: "body", output_only: &[], defaults };
    let mut entries = args.source.entries(shape)?;
    let path = ["queue-topics", args.topic.as_str(), "messages"];
    let (mut sent, mut failed, mut first) = (0, 0, None);
    while let Some(message) = entries.batch(1)?.pop() {
        let body = json!({ "message": message });
        let answer = door.ask(Ask::post(&path, body).client(&args.client)).await?;
        let outcomes = listed(answer, "outcomes");
        let (bad, error) = failures(&outcomes);
        failed += bad;
        first = first.or(error);
        let columns: &[Column] = &[
            ("QUEUE", "queue", Show::Plain),
            ("ID", "id", Show::Plain),
            ("ERROR", "error.message", Show::Plain),
        ];
        out.more(columns, &outcomes, sent == 0)?;
        sent += outcomes.len();
    }
    match failed {
        0 => Ok(()),
        failed => Err(Failure::Partly { failed, of: sent, what: "messages", first }),
    }
}
