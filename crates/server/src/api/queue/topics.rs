//! Topics of queues: a message to several of them.

use http::Method;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Api;
use super::super::error::ApiError;
use super::super::route::Route;
use super::admin::Done;
use super::send::SendAnswer;
use super::types::{NewMessage, SendOutcome};

const TOPIC: &str = "/v1/queue-topics/{topic}";

/// The routes of topics.
pub fn routes() -> Vec<Route> {
    vec![
        Route::new(
            Method::GET,
            "/v1/queue-topics",
            "list_queue_topics",
            "Names of all topics that send to queues.",
            list,
        ),
        Route::new(
            Method::PUT,
            TOPIC,
            "create_queue_topic",
            "Creates a topic, or replaces the queues of one that exists.",
            create,
        ),
        Route::new(Method::GET, TOPIC, "describe_queue_topic", "The queues of a topic.", describe),
        Route::new(
            Method::DELETE,
            TOPIC,
            "delete_queue_topic",
            "Deletes a topic; its queues stay.",
            delete,
        ),
        Route::new(
            Method::POST,
            "/v1/queue-topics/{topic}/messages",
            "send_to_queue_topic",
            "Sends a message to each queue of a topic; its body is stored once.",
            send,
        ),
    ]
}

/// Nothing to ask.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoInput {}

/// Names of topics.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QueueTopicNames {
    /// The names, in order.
    pub topics: Vec<String>,
}

/// The names of topics.
pub async fn list(api: Api, _: NoInput) -> Result<QueueTopicNames, ApiError> {
    let topics = api.handles().queues().topics().await?;
    Ok(QueueTopicNames { topics: topics.iter().map(|name| name.as_str().to_owned()).collect() })
}

/// A topic to be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CreateInput {
    topic: String,
    /// Its queues, which exist; at most 100.
    queues: Vec<String>,
}

/// A topic.
#[derive(Debug, Serialize, JsonSchema)]
pub struct QueueTopic {
    /// Its name.
    pub name: String,
    /// Its queues.
    pub queues: Vec<String>,
}

/// Creates a topic.
pub async fn create(api: Api, input: CreateInput) -> Result<QueueTopic, ApiError> {
    let queues: Vec<&str> = input.queues.iter().map(String::as_str).collect();
    Box::pin(api.handles().queues().create_topic(&input.topic, &queues)).await?;
    Ok(QueueTopic { name: input.topic, queues: input.queues })
}

/// Which topic.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TopicInput {
    topic: String,
}

/// A topic's queues.
pub async fn describe(api: Api, input: TopicInput) -> Result<QueueTopic, ApiError> {
    let topic = api.handles().queues().open_topic(&input.topic).await?;
    Ok(QueueTopic { name: input.topic, queues: topic.subscribers().await? })
}

/// Deletes a topic.
pub async fn delete(api: Api, input: TopicInput) -> Result<Done, ApiError> {
    api.handles().queues().open_topic(&input.topic).await?.delete().await?;
    Ok(Done {})
}

/// What to send.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendInput {
    topic: String,
    #[serde(default)]
    client: String,
    /// The message.
    message: NewMessage,
}

/// Sends a message to each queue.
pub async fn send(api: Api, input: SendInput) -> Result<SendAnswer, ApiError> {
    let topic = api.handles().queues().open_topic(&input.topic).await?;
    let sent = Box::pin(topic.send(&input.client, input.message.message()?)).await?;
    let outcome = |(queue, outcome): (String, millpond_queue::Result<_>)| SendOutcome {
        queue: Some(queue),
        ..SendOutcome::of(outcome.map_err(Into::into))
    };
    Ok(SendAnswer { outcomes: sent.into_iter().map(outcome).collect() })
}
