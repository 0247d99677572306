//! The log: topics, their records, and how far groups have come.

mod groups;
mod records;
mod topics;
mod workers;

use http::Method;
use millpond_log::{LogError, Seek};
use millpond_store::Timestamp;

use super::Api;
use super::error::ApiError;
use super::route::Route;

const TOPICS: &str = "/v1/topics";
const TOPIC: &str = "/v1/topics/{topic}";
const RECORDS: &str = "/v1/topics/{topic}/records";

/// The routes of the log.
pub fn routes() -> Vec<Route> {
    let get = Method::GET;
    vec![
        Route::new(get.clone(), TOPICS, "list_topics", "Names of all topics.", topics::list),
        Route::new(
            Method::PUT,
            TOPIC,
            "create_topic",
            "Creates a topic; one that exists with the same settings is fine.",
            topics::create,
        ),
        Route::new(
            get,
            TOPIC,
            "describe_topic",
            "A topic's settings, and what is in each partition.",
            topics::describe,
        ),
        Route::new(
            Method::PATCH,
            TOPIC,
            "configure_topic",
            "Changes what is given of a topic's settings; null takes a bound away.",
            topics::configure,
        ),
        Route::new(
            Method::DELETE,
            TOPIC,
            "delete_topic",
            "Deletes a topic with its records and groups.",
            topics::delete,
        ),
    ]
    .into_iter()
    .chain(inside())
    .chain(groups::routes())
    .chain(workers::routes())
    .collect()
}

fn inside() -> Vec<Route> {
    let (get, post) = (Method::GET, Method::POST);
    vec![
        Route::new(
            post.clone(),
            "/v1/topics/{topic}/grow",
            "grow_topic",
            "Gives a topic more partitions.",
            topics::grow,
        ),
        Route::new(
            post.clone(),
            RECORDS,
            "append_records",
            "Appends records: by key, or as one batch to one partition.",
            records::append,
        ),
        Route::new(
            get.clone(),
            RECORDS,
            "read_records",
            "Reads a partition from a place on, waiting for records if asked to.",
            records::read,
        ),
        Route::new(
            get,
            "/v1/topics/{topic}/offset",
            "seek_topic",
            "The offset of a place in a partition.",
            records::seek,
        ),
        Route::new(
            post.clone(),
            "/v1/topics/{topic}/trim",
            "trim_topic",
            "Removes what the topic's retention says, oldest first.",
            topics::trim,
        ),
        Route::new(
            post,
            "/v1/topics/{topic}/sweep",
            "sweep_topic",
            "Finds objects that no record is in, and removes them unless it is a dry run.",
            topics::sweep,
        ),
    ]
}

/// A place in a partition, as a request says it: `earliest`, `latest`, an offset, or a time as `@` and milliseconds.
pub fn parse_place(field: &str, text: &str) -> Result<Seek, ApiError> {
    let place = match text {
        "earliest" => Some(Seek::Earliest),
        "latest" => Some(Seek::Latest),
        text => match text.strip_prefix('@') {
            Some(millis) => {
                millis.parse().ok().map(|millis| Seek::Time(Timestamp::from_millis(millis)))
            }
            None => text.parse().ok().map(Seek::Offset),
        },
    };
    place.ok_or_else(|| {
        let forms = "earliest, latest, an offset, or @ and milliseconds since 1970";
        ApiError::invalid(field, format!("is {text:?}; give {forms}"))
    })
}

/// An error about a topic. A handle of one that is gone is not kept: there may be a new one of its name.
fn failed(api: &Api, topic: &str, error: LogError) -> ApiError {
    if matches!(error, LogError::UnknownTopic { .. }) {
        api.handles().forget_topic(topic);
    }
    error.into()
}
