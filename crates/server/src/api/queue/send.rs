//! Sending and receiving.

use std::time::Duration;

use millpond_queue::{Client, Delivery, QueueError, Receive};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::oneshot;

use super::super::Api;
use super::super::error::ApiError;
use super::super::limits::{BATCH_MAX, WAIT_MS_MAX};
use super::types::{MessageOutput, NewMessage, SendOutcome, order};

/// What to send.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SendInput {
    queue: String,
    #[serde(default)]
    client: String,
    /// The messages, in order, at most 1,000.
    messages: Vec<NewMessage>,
}

/// What became of each.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SendAnswer {
    /// An outcome for each message, in order.
    pub outcomes: Vec<SendOutcome>,
}

/// Sends messages.
pub async fn send(api: Api, input: SendInput) -> Result<SendAnswer, ApiError> {
    check_batch("messages", input.messages.len())?;
    let client = api.handles().client(&input.queue, &input.client).await?;
    let (mut outcomes, mut good, mut places) = (Vec::new(), Vec::new(), Vec::new());
    for (at, message) in input.messages.into_iter().enumerate() {
        match message.message() {
            Ok(message) => {
                good.push(message);
                places.push(at);
                outcomes.push(SendOutcome::default());
            }
            Err(error) => outcomes.push(SendOutcome::of(Err(error))),
        }
    }
    let sent = Box::pin(client.send_batch(good)).await?;
    for (at, outcome) in places.into_iter().zip(sent) {
        if let Some(place) = outcomes.get_mut(at) {
            *place = SendOutcome::of(outcome.map_err(Into::into));
        }
    }
    Ok(SendAnswer { outcomes })
}

/// Refuses batches over the bound.
pub fn check_batch(field: &'static str, count: usize) -> Result<(), ApiError> {
    if count <= BATCH_MAX {
        return Ok(());
    }
    let (what, unit, limit) = (field, "entries", BATCH_MAX);
    Err(QueueError::TooLarge { what, size: count, unit, limit }.into())
}

/// What to receive.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReceiveInput {
    queue: String,
    #[serde(default)]
    client: String,
    /// Most messages. Default: 1.
    max: Option<usize>,
    /// Fewest messages to wait for. Default: 1.
    min: Option<usize>,
    /// How long to wait for them, up to 60,000. Default: not at all.
    #[serde(default)]
    wait_ms: u64,
    /// How long they are invisible to others. Default: as the queue says.
    visibility_ms: Option<u64>,
    /// Which come first: as in a queue's configuration. Default: as the queue says.
    order: Option<Value>,
    /// In a strict queue, the same id again gets the same messages again.
    attempt: Option<String>,
    /// Groups whose messages come behind all others, in a queue that is not strict.
    #[serde(default)]
    behind: Vec<String>,
    /// Who receives, to be kept with the task's status.
    #[serde(default)]
    worker: String,
}

/// What was received.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Messages {
    /// The messages.
    pub messages: Vec<MessageOutput>,
}

/// Receives messages.
pub async fn receive(api: Api, input: ReceiveInput) -> Result<Messages, ApiError> {
    let wait = check_wait(input.wait_ms)?;
    let client = api.handles().client(&input.queue, &input.client).await?;
    let ask = Receive {
        max: input.max.unwrap_or(1),
        min: input.min.unwrap_or(1),
        wait,
        visibility: input.visibility_ms.map(Duration::from_millis),
        order: order(input.order)?,
        attempt: input.attempt,
        behind: input.behind,
        worker: input.worker,
    };
    // The call goes on by itself when its caller is gone, so that it can give back what it claimed.
    let (reply, answer) = oneshot::channel();
    tokio::spawn(receive_for(api.clone(), client, ask, reply));
    let got = answer.await.map_err(|_| ApiError::from(stopped()))??;
    Ok(Messages { messages: got.into_iter().map(Into::into).collect() })
}

type Reply = oneshot::Sender<Result<Vec<Delivery>, QueueError>>;

/// Receives until there is enough, the caller is gone or the server stops.
async fn receive_for(api: Api, client: Client, ask: Receive, mut reply: Reply) {
    let stop = async {
        tokio::select! {
            biased;
            () = api.until_closed() => {}
            () = reply.closed() => {}
        }
    };
    let outcome = Box::pin(client.receive_until(&ask, stop)).await;
    if let Err(Ok(unheard)) = reply.send(outcome) {
        let receipts: Vec<_> = unheard.into_iter().map(|delivery| delivery.receipt).collect();
        if let Err(error) = client.return_batch(&receipts).await {
            tracing::debug!(%error, "messages come back when their leases end");
        }
    }
}

/// A wait within its bound.
pub fn check_wait(wait_ms: u64) -> Result<Duration, ApiError> {
    if wait_ms <= WAIT_MS_MAX {
        return Ok(Duration::from_millis(wait_ms));
    }
    Err(ApiError::invalid("wait_ms", format!("is {wait_ms}; 0 to {WAIT_MS_MAX} are accepted")))
}

fn stopped() -> millpond_store::StoreError {
    millpond_store::StoreError::Poisoned { reason: "the request was given up".to_owned() }
}
