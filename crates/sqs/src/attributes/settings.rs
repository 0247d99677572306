//! What the attributes of a queue mean.

use std::time::Duration;

use millpond_queue::{DeadLetters, Dedup, DedupScope, QueueConfig, QueueError, QueueName, Strict};

use super::own::Own;
use super::policies::{Allow, Redrive};
use super::{Texts, number};
use crate::error::{Code, Failure, Result};
use crate::place::Place;

/// What the attributes of a queue mean.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    pub visibility: Duration,
    pub delay: Duration,
    /// How long a receive waits that does not say.
    pub wait: Duration,
    pub message_bytes_max: usize,
    pub fifo: Option<Fifo>,
    pub redrive: Option<Redrive>,
    pub allow: Allow,
    /// Whether the queue is divided among clients.
    pub has_clients: bool,
    /// How the queue below is configured.
    pub config: QueueConfig,
}

/// What only FIFO queues have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fifo {
    /// Whether a message without a deduplication id gets one from its body.
    pub by_content: bool,
}

impl Settings {
    /// Reads attributes that have been checked, one by one; here they are checked together.
    pub fn of(place: &Place, texts: &Texts, prefix: &str) -> Result<Self> {
        let seconds = |name| Duration::from_secs(number(texts, name));
        let is = |name: &str, value: &str| texts.get(name).is_some_and(|text| text == value);
        let redrive = texts.get("RedrivePolicy").map(|text| Redrive::read(text)).transpose()?;
        let allow = texts.get("RedriveAllowPolicy").map(|text| Allow::read(text)).transpose()?;
        if let Some(redrive) = redrive.as_ref().filter(|redrive| redrive.to == *place) {
            let reason = "A queue can't be the dead-letter queue of itself.";
            return Err(Failure::value("RedrivePolicy", redrive.text(), reason));
        }
        let own = Own { texts, prefix, place };
        let fifo =
            place.is_fifo().then(|| Fifo { by_content: is("ContentBasedDeduplication", "true") });
        let strict = fifo.map(|_| Strict {
            dedup: Dedup::ById,
            dedup_scope: if is("DeduplicationScope", "messageGroup") {
                DedupScope::Group
            } else {
                DedupScope::Queue
            },
            poison: own.poison(),
        });
        let bytes = number(texts, "MaximumMessageSize");
        let message_bytes_max = usize::try_from(bytes).unwrap_or(usize::MAX);
        let visibility = seconds("VisibilityTimeout");
        let retention = seconds("MessageRetentionPeriod");
        let dead_letters = redrive.as_ref().map(|redrive| DeadLetters {
            queue: redrive.to.stored_name(),
            receives_max: redrive.receives_max,
        });
        let mut config = QueueConfig {
            strict,
            // Receives and sends say for themselves how long these are; the queue's own must only make sense.
            visibility: visibility.max(Duration::from_millis(1)),
            delay: Duration::ZERO,
            retention,
            dead_letters,
            keeps_age: true,
            message_bytes_max,
            ..QueueConfig::default()
        };
        own.complete(&mut config)?;
        let name = QueueName::new(&place.stored_name()).map_err(together)?;
        config.check(&name).map_err(together)?;
        Ok(Self {
            visibility,
            // One that is longer than messages are kept would be refused by the queue, and delivers nothing either way.
            delay: seconds("DelaySeconds").min(retention),
            wait: seconds("ReceiveMessageWaitTimeSeconds"),
            message_bytes_max,
            fifo,
            redrive,
            allow: allow.unwrap_or_default(),
            has_clients: own.has_clients(),
            config,
        })
    }
}

/// What does not go together.
fn together(error: QueueError) -> Failure {
    match error {
        QueueError::Invalid { .. } | QueueError::TooLarge { .. } => {
            let text = format!("The attributes do not go together: {error}.");
            Failure::new(Code::InvalidAttributeValue, text)
        }
        other => other.into(),
    }
}
