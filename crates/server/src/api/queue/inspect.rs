//! Looking without taking.

use std::collections::BTreeMap;

use millpond_queue::{Count, MessageId, Peeked};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Api;
use super::super::error::ApiError;
use super::super::limits::{LISTED_DEFAULT, LISTED_MAX};
use super::send::Messages;
use super::types::MessageOutput;

/// Whose messages, and how many.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PeekInput {
    queue: String,
    #[serde(default)]
    client: String,
    /// Most messages, up to 10,000. Default: 100.
    max: Option<usize>,
}

/// How many at most, within the bound.
pub fn check_max(max: Option<usize>) -> Result<usize, ApiError> {
    match max.unwrap_or(LISTED_DEFAULT) {
        max @ 1..=LISTED_MAX => Ok(max),
        max => Err(ApiError::invalid("max", format!("is {max}; 1 to {LISTED_MAX} are accepted"))),
    }
}

/// The first messages from the old end.
pub async fn peek(api: Api, input: PeekInput) -> Result<Messages, ApiError> {
    let client = api.handles().client(&input.queue, &input.client).await?;
    let peeked = Box::pin(client.peek(check_max(input.max)?)).await?;
    Ok(Messages { messages: peeked.into_iter().map(Into::into).collect() })
}

/// Messages that went to the dead-letter queue.
pub async fn dead_letters(api: Api, input: PeekInput) -> Result<Messages, ApiError> {
    let max = check_max(input.max)?;
    let config = api.handles().queue(&input.queue).await?.config().await?;
    let Some(dead) = &config.dead_letters else {
        let problem = format!("{:?} has no dead-letter queue: configure dead_letters", input.queue);
        return Err(ApiError::invalid("queue", problem));
    };
    let client = api.handles().client(&dead.queue, &input.client).await?;
    let from_here = |peeked: &Peeked| {
        peeked.message.origin.as_ref().is_some_and(|origin| origin.queue == input.queue)
    };
    // Other queues may share the dead-letter queue: what is theirs is passed over.
    let peeked = Box::pin(client.peek(LISTED_MAX)).await?;
    let messages = peeked.into_iter().filter(from_here).take(max).map(Into::into).collect();
    Ok(Messages { messages })
}

/// Which message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MessageInput {
    queue: String,
    #[serde(default)]
    client: String,
    /// Its id.
    id: String,
}

impl MessageInput {
    /// Queue, client and id.
    pub fn parts(&self) -> Result<(&str, &str, MessageId), ApiError> {
        Ok((&self.queue, &self.client, self.id.parse::<MessageId>()?))
    }

    /// That there is no such message.
    pub fn missing(&self, what: &str) -> ApiError {
        let (queue, id) = (&self.queue, &self.id);
        ApiError::not_found(format!("queue {queue:?} has no {what} {id} (any more)")).field("id")
    }
}

/// One message.
pub async fn get(api: Api, input: MessageInput) -> Result<MessageOutput, ApiError> {
    let (queue, client, id) = input.parts()?;
    let client = api.handles().client(queue, client).await?;
    let found = Box::pin(client.get(&id)).await?;
    found.map(Into::into).ok_or_else(|| input.missing("message"))
}

/// Whose messages.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientInput {
    /// The queue.
    pub queue: String,
    /// The client.
    #[serde(default)]
    pub client: String,
}

/// How many messages there are.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Counts {
    /// Can be received now.
    pub available: u64,
    /// On loan.
    pub leased: u64,
    /// To be received later.
    pub delayed: u64,
    /// Held back, with their groups, after too many receives.
    pub held: u64,
    /// How long ago the oldest of them was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oldest_age_ms: Option<u64>,
    /// What happened to messages so far, by event: sent, received, acked, expired, shed_age and so on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub totals: BTreeMap<String, u64>,
}

impl From<Count> for Counts {
    fn from(count: Count) -> Self {
        let age = count.oldest_age.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        Self {
            available: count.available,
            leased: count.leased,
            delayed: count.delayed,
            held: count.held,
            oldest_age_ms: age,
            totals: BTreeMap::new(),
        }
    }
}

/// Counts messages.
pub async fn count(api: Api, input: ClientInput) -> Result<Counts, ApiError> {
    let client = api.handles().client(&input.queue, &input.client).await?;
    let counted = Box::pin(client.count()).await?;
    let totals = Box::pin(client.totals()).await?;
    let totals = totals.iter().map(|(event, count)| (event.name().to_owned(), count)).collect();
    Ok(Counts { totals, ..counted.into() })
}
