//! The sequencer: messages in any order in, the same in order out.

mod manage;
mod messages;
mod queues;
mod readers;
pub mod settings;

use http::Method;

use super::route::Route;

const SEQUENCER: &str = "/v1/sequencers/{sequencer}";
const QUEUE: &str = "/v1/sequencers/{sequencer}/queues/{queue}";

/// The routes of sequencers.
pub fn routes() -> Vec<Route> {
    let get = Method::GET;
    vec![
        Route::new(
            get.clone(),
            "/v1/sequencers",
            "list_sequencers",
            "Names of all sequencers whose settings are stored.",
            settings::list,
        ),
        Route::new(
            Method::PUT,
            SEQUENCER,
            "configure_sequencer",
            "Stores how a sequencer treats its queues, for everybody who uses it by its name.",
            settings::configure,
        ),
        Route::new(
            get.clone(),
            SEQUENCER,
            "describe_sequencer",
            "How a sequencer treats its queues.",
            settings::describe,
        ),
        Route::new(
            Method::POST,
            "/v1/sequencers/{sequencer}/messages",
            "put_messages",
            "Puts messages of any queues, with an outcome for each.",
            messages::put,
        ),
        Route::new(
            Method::POST,
            "/v1/sequencers/{sequencer}/sweep",
            "sweep_sequencer",
            "Heals queues that nobody writes to, and lets gap timers run.",
            manage::sweep,
        ),
        Route::new(
            get.clone(),
            "/v1/sequencers/{sequencer}/queues",
            "list_sequences",
            "Names of all queues that have begun.",
            queues::list,
        ),
        Route::new(
            get.clone(),
            QUEUE,
            "describe_sequence",
            "Where a queue's cursor is.",
            queues::cursor,
        ),
        Route::new(
            get,
            "/v1/sequencers/{sequencer}/queues/{queue}/messages",
            "read_sequence",
            "Delivered messages of a range, in order, and the gaps among them.",
            messages::read,
        ),
    ]
    .into_iter()
    .chain(looking())
    .chain(manage::routes())
    .chain(readers::routes())
    .collect()
}

fn looking() -> Vec<Route> {
    let get = Method::GET;
    vec![
        Route::new(
            get.clone(),
            "/v1/sequencers/{sequencer}/queues/{queue}/ranges",
            "follow_sequence",
            "What the cursor passed from a number on, waiting for it if asked to.",
            queues::ranges,
        ),
        Route::new(
            get.clone(),
            "/v1/sequencers/{sequencer}/queues/{queue}/missing",
            "missing_numbers",
            "The numbers that are missing.",
            queues::missing,
        ),
        Route::new(
            get.clone(),
            "/v1/sequencers/{sequencer}/queues/{queue}/pending",
            "pending_messages",
            "What waits ahead of the cursor.",
            queues::pending,
        ),
        Route::new(
            get,
            "/v1/sequencers/{sequencer}/queues/{queue}/late",
            "late_messages",
            "Late arrivals that were kept aside.",
            queues::late,
        ),
    ]
}
