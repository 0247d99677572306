//! SendMessage.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use millpond_queue::{Attribute, AttributeValue, Client, Message, QueueError, Sent};
use millpond_store::hex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::call::Call;
use crate::error::{Failure, Result};
use crate::limits::DELAY_SECONDS_MAX;
use crate::message::{
    MessageAttributes, check_id, check_text, digest, digest_attributes, read, read_system,
    sequence, uuid,
};
use crate::registry::Known;
use crate::watch::Part;
use crate::wire::Whole;

/// A message as it is given, alone or as an entry of a batch.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    /// Of one that is alone.
    queue_url: Option<String>,
    /// Of an entry.
    pub id: Option<String>,
    message_body: Option<String>,
    delay_seconds: Option<Whole>,
    message_attributes: Option<MessageAttributes>,
    message_system_attributes: Option<MessageAttributes>,
    message_deduplication_id: Option<String>,
    message_group_id: Option<String>,
}

/// A message that can be sent, and the digests of what it says.
#[derive(Debug)]
pub struct Ready {
    pub message: Message,
    pub digests: Digests,
}

/// What clients check.
#[derive(Debug, Clone, Serialize)]
pub struct Digests {
    #[serde(rename = "MD5OfMessageBody")]
    body: String,
    #[serde(rename = "MD5OfMessageAttributes", skip_serializing_if = "Option::is_none")]
    attributes: Option<String>,
    #[serde(rename = "MD5OfMessageSystemAttributes", skip_serializing_if = "Option::is_none")]
    system: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Answer {
    message_id: String,
    #[serde(flatten)]
    digests: Digests,
    #[serde(skip_serializing_if = "Option::is_none")]
    sequence_number: Option<String>,
}

pub async fn run(call: &Call<'_>, request: Request) -> Result<Answer> {
    let (known, client) = call.queue_at(request.queue_url.as_deref()).await?;
    let ready = request.ready(&known, &call.inner.registry.prefix)?;
    let group = ready.message.group.clone();
    let sent = call.part(Part::Commit, client.send(ready.message)).await;
    let sent = sent.map_err(|error| refused(error, &known))?;
    Ok(answer(call, &known, &client, &sent, group.as_deref(), ready.digests))
}

/// What is answered to a message that was sent.
pub fn answer(
    call: &Call<'_>,
    known: &Known,
    client: &Client,
    sent: &Sent,
    group: Option<&str>,
    digests: Digests,
) -> Answer {
    if !sent.duplicate {
        call.inner.counted.sent.fetch_add(1, Ordering::Relaxed);
    }
    if known.settings.fifo.is_none() {
        known.live.flight().sent(group);
    }
    Answer {
        message_id: uuid(&client.identity(&sent.id)),
        digests,
        sequence_number: sent.sequence.map(sequence),
    }
}

/// What the queue below refuses.
pub fn refused(error: QueueError, known: &Known) -> Failure {
    match error {
        QueueError::TooLarge { what: "message", unit: "bytes", .. } => too_long(known),
        other => other.into(),
    }
}

fn too_long(known: &Known) -> Failure {
    Failure::parameter(format!(
        "One or more parameters are invalid. Reason: Message must be shorter than {} bytes.",
        known.settings.message_bytes_max
    ))
}

impl Request {
    /// Bytes that count against the limit of a batch, also of a message that is refused for another reason.
    pub fn size(&self) -> usize {
        let body = self.message_body.as_ref().map_or(0, String::len);
        let attributes = self.message_attributes.iter().flatten();
        let sizes = attributes.map(|(name, attribute)| name.len() + attribute.size());
        body + sizes.sum::<usize>()
    }

    /// Checks a message for a queue.
    pub fn ready(self, known: &Known, prefix: &str) -> Result<Ready> {
        let body = self.message_body.as_deref().unwrap_or_default();
        if body.is_empty() {
            return Err(Failure::missing("MessageBody"));
        }
        check_text(body)?;
        let attributes = self.message_attributes.as_ref().map(read).transpose()?;
        let attributes = attributes.unwrap_or_default();
        let system = self.message_system_attributes.as_ref().map(read_system).transpose()?;
        let system = system.unwrap_or_default();
        let digests = Digests {
            body: digest(body.as_bytes()),
            attributes: digest_attributes(&attributes),
            system: digest_attributes(&system),
        };
        let trace = system.into_values().next().and_then(|attribute| match attribute.value {
            AttributeValue::String(text) => Some(text),
            AttributeValue::Number(_) | AttributeValue::Binary(_) => None,
        });
        let delay = self.delay(known)?;
        let (group, dedup_id) = self.group(known)?;
        let priority = priority(&attributes, known, prefix)?;
        let message = Message {
            body: self.message_body.unwrap_or_default().into(),
            attributes,
            group,
            dedup_id,
            priority,
            delay: Some(delay),
            trace,
            ..Message::default()
        };
        if message.size() > known.settings.message_bytes_max {
            return Err(too_long(known));
        }
        Ok(Ready { message, digests })
    }

    fn delay(&self, known: &Known) -> Result<Duration> {
        let Some(given) = &self.delay_seconds else { return Ok(known.settings.delay) };
        let reason = format!("DelaySeconds must be >= 0 and <= {DELAY_SECONDS_MAX}.");
        let seconds = given.within("DelaySeconds", 0, DELAY_SECONDS_MAX, &reason)?;
        match (known.settings.fifo, seconds) {
            (Some(_), 0) => Ok(known.settings.delay),
            (Some(_), _) => Err(Failure::value(
                "DelaySeconds",
                seconds,
                "The request include parameter that is not valid for this queue type.",
            )),
            (None, _) => Ok(Duration::from_secs(seconds).min(known.settings.config.retention)),
        }
    }

    /// The group and the deduplication id.
    fn group(&self, known: &Known) -> Result<(Option<String>, Option<String>)> {
        let (group, dedup) = (&self.message_group_id, &self.message_deduplication_id);
        if let Some(group) = group {
            check_id("MessageGroupId", group)?;
        }
        let Some(fifo) = known.settings.fifo else {
            if let Some(id) = dedup {
                return Err(Failure::value(
                    "MessageDeduplicationId",
                    id,
                    "The request include parameter that is not valid for this queue type.",
                ));
            }
            return Ok((group.clone(), None));
        };
        if group.is_none() {
            return Err(Failure::missing("MessageGroupId"));
        }
        let id = match dedup {
            Some(id) => {
                check_id("MessageDeduplicationId", id)?;
                id.clone()
            }
            None if fifo.by_content => {
                let body = self.message_body.as_deref().unwrap_or_default();
                hex::of(&Sha256::digest(body.as_bytes()))
            }
            None => {
                return Err(Failure::parameter(
                    "The queue should either have ContentBasedDeduplication enabled or \
                     MessageDeduplicationId provided explicitly",
                ));
            }
        };
        Ok((group.clone(), Some(id)))
    }
}

/// The priority that a message says it has, in a queue with priorities.
fn priority(attributes: &BTreeMap<String, Attribute>, known: &Known, prefix: &str) -> Result<u8> {
    let levels = known.settings.config.priorities;
    let name = format!("{prefix}Priority");
    let Some(attribute) = attributes.get(&name).filter(|_| levels > 1) else { return Ok(0) };
    let text = std::str::from_utf8(attribute.value.as_bytes()).unwrap_or_default();
    match text.parse::<u8>() {
        Ok(priority) if priority < levels => Ok(priority),
        _ => Err(Failure::value(&name, text, &format!("Must be 0 to {}.", levels - 1))),
    }
}
