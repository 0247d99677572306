//! Watching a queue without taking anything from it.

use std::collections::HashSet;
use std::time::Duration;

use clap::Args;
use millpond_store::{Clock as _, SystemClock};
use serde_json::Value;

use super::super::Failure;
use super::super::door::{Ask, Door, field, list as listed};
use super::super::output::Output;
use super::Place;
use super::messages::PEEKED;
use crate::api::limits::LISTED_MAX;

/// How often it looks.
const EVERY: Duration = Duration::from_millis(500);

/// What to watch.
#[derive(Debug, Args)]
pub struct Tail {
    #[command(flatten)]
    place: Place,
    /// Leaves out what is there at the start.
    #[arg(long)]
    new: bool,
    /// Ends after so many messages.
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    max: Option<u64>,
}

/// Shows messages as they come, until interrupted.
pub async fn tail(door: &Door, out: Output, args: Tail) -> Result<(), Failure> {
    let clock = SystemClock::new();
    let mut seen: Option<HashSet<String>> = args.new.then(HashSet::new);
    let (mut printed, mut skip) = (0, args.new);
    loop {
        let ask = Ask::get(&["queues", &args.place.queue, "messages"]).client(&args.place.client);
        let messages = listed(door.ask(ask.with("max", LISTED_MAX)).await?, "messages");
        let id = |message: &Value| field(message, "id").as_str().unwrap_or_default().to_owned();
        let now: HashSet<String> = messages.iter().map(id).collect();
        let is_new =
            |message: &Value| seen.as_ref().is_none_or(|seen| !seen.contains(&id(message)));
        let mut fresh: Vec<Value> =
            messages.iter().filter(|message| !skip && is_new(message)).cloned().collect();
        if let Some(max) = args.max {
            fresh.truncate(usize::try_from(max - printed).unwrap_or(usize::MAX));
        }
        if !fresh.is_empty() {
            out.more(PEEKED, &fresh, printed == 0)?;
            printed += fresh.len() as u64;
        }
        if args.max == Some(printed) {
            return Ok(());
        }
        // Only what is still there is remembered: what is gone does not come again.
        (seen, skip) = (Some(now), false);
        clock.sleep(EVERY).await;
    }
}
