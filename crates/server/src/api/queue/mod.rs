//! Queues: their configuration, their messages, and topics that send to several of them.

mod admin;
mod inspect;
mod schema;
mod send;
mod settle;
mod tasks;
mod topics;
mod types;

pub use admin::{Done, merge};
pub use inspect::check_max;
pub use send::{check_batch, check_wait};

use http::Method;

use super::route::Route;

const QUEUES: &str = "/v1/queues";
const QUEUE: &str = "/v1/queues/{queue}";

/// The routes of queues.
pub fn routes() -> Vec<Route> {
    let (get, post) = (Method::GET, Method::POST);
    vec![
        Route::new(get.clone(), QUEUES, "list_queues", "Names of all queues.", admin::list),
        Route::new(
            Method::PUT,
            QUEUE,
            "create_queue",
            "Creates a queue; one that exists with the same configuration is fine.",
            admin::create,
        ),
        Route::new(
            get.clone(),
            QUEUE,
            "describe_queue",
            "A queue's configuration and clients.",
            admin::describe,
        ),
        Route::new(
            Method::PATCH,
            QUEUE,
            "configure_queue",
            "Changes what is given of a queue's configuration; null takes a part away.",
            admin::configure,
        ),
        Route::new(
            Method::DELETE,
            QUEUE,
            "delete_queue",
            "Deletes a queue and everything in it.",
            admin::delete,
        ),
        Route::new(
            post.clone(),
            "/v1/queues/{queue}/messages",
            "send_messages",
            "Sends messages, with an outcome for each.",
            send::send,
        ),
        Route::new(
            post.clone(),
            "/v1/queues/{queue}/receive",
            "receive_messages",
            "Receives messages on loan, waiting for them if asked to.",
            send::receive,
        ),
        Route::new(
            get.clone(),
            "/v1/queues/{queue}/messages",
            "peek_messages",
            "The first messages from the old end, whatever their state; they are not taken.",
            inspect::peek,
        ),
        Route::new(
            get.clone(),
            "/v1/queues/{queue}/messages/{id}",
            "get_message",
            "One message, by its id; it is not taken.",
            inspect::get,
        ),
    ]
    .into_iter()
    .chain(settling())
    .chain(looking())
    .chain(topics::routes())
    .collect()
}

fn settling() -> Vec<Route> {
    let post = Method::POST;
    vec![
        Route::new(
            post.clone(),
            "/v1/queues/{queue}/ack",
            "ack_messages",
            "Acknowledges messages: they are finished.",
            settle::ack,
        ),
        Route::new(
            post.clone(),
            "/v1/queues/{queue}/finish",
            "finish_task",
            "Finishes a task, well or badly, with a result that is kept with its status.",
            settle::finish,
        ),
        Route::new(
            post.clone(),
            "/v1/queues/{queue}/extend",
            "extend_messages",
            "Keeps messages on loan until this long from now.",
            settle::extend,
        ),
        Route::new(
            post.clone(),
            "/v1/queues/{queue}/release",
            "release_messages",
            "Gives messages back that were not worked on.",
            settle::release,
        ),
        Route::new(
            post,
            "/v1/queues/{queue}/nack",
            "nack_messages",
            "Gives messages back that could not be worked on, with what went wrong.",
            settle::nack,
        ),
    ]
}

fn looking() -> Vec<Route> {
    let (get, post) = (Method::GET, Method::POST);
    vec![
        Route::new(
            get.clone(),
            "/v1/queues/{queue}/count",
            "count_messages",
            "How many messages there are, and what happened to those that were.",
            inspect::count,
        ),
        Route::new(
            get.clone(),
            "/v1/queues/{queue}/dead-letters",
            "list_dead_letters",
            "Messages of this queue that went to its dead-letter queue; they are not taken.",
            inspect::dead_letters,
        ),
        Route::new(
            get.clone(),
            "/v1/queues/{queue}/tasks",
            "list_tasks",
            "Tasks in a state, in a queue that keeps status.",
            tasks::list,
        ),
        Route::new(
            get,
            "/v1/queues/{queue}/tasks/{id}",
            "get_task",
            "The status of one task, in a queue that keeps status.",
            tasks::get,
        ),
        Route::new(
            post.clone(),
            "/v1/queues/{queue}/purge",
            "purge_queue",
            "Removes every message of a client.",
            admin::purge,
        ),
        Route::new(
            post.clone(),
            "/v1/queues/{queue}/redrive",
            "redrive_messages",
            "Brings messages of this dead-letter queue back to where they came from.",
            admin::redrive,
        ),
        Route::new(
            post.clone(),
            "/v1/queues/{queue}/unblock",
            "unblock_group",
            "Lets a group go on that was blocked by a message that was received too often.",
            admin::unblock,
        ),
        Route::new(
            post,
            "/v1/queues/{queue}/maintain",
            "maintain_queue",
            "Removes what has ended, sheds what is too much, stores counters; a bounded part of it.",
            admin::maintain,
        ),
    ]
}
