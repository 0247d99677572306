//! A message as its sender makes it, and as it is delivered.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use millpond_store::Timestamp;

use crate::config::{QueueConfig, between, within};
use crate::error::{QueueError, Result};
use crate::id::MessageId;
use crate::limits::{
    ATTRIBUTE_NAME_BYTES_MAX, ATTRIBUTES_BYTES_MAX, ATTRIBUTES_MAX, DELAY_MAX, ID_BYTES_MAX,
    RETENTION_MAX, TRACE_BYTES_MAX,
};
use crate::origin::Origin;
use crate::receipt::Receipt;

/// A message to send.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    /// What it says.
    pub body: Bytes,
    /// What is said about it. Default: nothing.
    pub attributes: BTreeMap<String, Attribute>,
    /// Its group: what is kept in order in a strict queue, and what limits for each group go by. Default: none; in
    /// a strict queue, all messages without one are one group.
    pub group: Option<String>,
    /// In a strict queue, a message with the same id within 5 minutes is not sent again. Default: none.
    pub dedup_id: Option<String>,
    /// Higher is sooner, in a queue with priorities. Default: 0.
    pub priority: u8,
    /// How long it waits before it is delivered. Default: as the queue says.
    pub delay: Option<Duration>,
    /// How long after sending it can be delivered. Default: as long as the queue keeps it.
    pub ttl: Option<Duration>,
    /// A trace header, handed on unchanged. Default: none.
    pub trace: Option<String>,
}

/// Something said about a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// What is said.
    pub value: AttributeValue,
    /// A name for the type that is handed on unchanged (`uuid` for what SQS calls `String.uuid`). Default: empty.
    pub label: String,
}

/// What is said, by its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    /// Text, not empty.
    String(String),
    /// A number, with up to 38 digits, kept as it is written.
    Number(String),
    /// Bytes, not empty.
    Binary(Bytes),
}

impl From<AttributeValue> for Attribute {
    fn from(value: AttributeValue) -> Self {
        Self { value, label: String::new() }
    }
}

impl AttributeValue {
    /// The value's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::String(text) | Self::Number(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }
}

impl Message {
    /// A message with this body and nothing else.
    #[must_use]
    pub fn new(body: impl Into<Bytes>) -> Self {
        Self { body: body.into(), ..Self::default() }
    }

    /// The same in a group.
    #[must_use]
    pub fn group(self, group: impl Into<String>) -> Self {
        Self { group: Some(group.into()), ..self }
    }

    /// The same with a deduplication id.
    #[must_use]
    pub fn dedup_id(self, id: impl Into<String>) -> Self {
        Self { dedup_id: Some(id.into()), ..self }
    }

    /// The same with a priority.
    #[must_use]
    pub fn priority(self, priority: u8) -> Self {
        Self { priority, ..self }
    }

    /// The same, delivered no earlier than this long after sending.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay: Some(delay), ..self }
    }

    /// The same, delivered no later than this long after sending.
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl: Some(ttl), ..self }
    }

    /// The same with an attribute.
    #[must_use]
    pub fn attribute(mut self, name: impl Into<String>, value: AttributeValue) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }

    /// Bytes that count against a queue's limit: the body and the attributes' names, types and values.
    #[must_use]
    pub fn size(&self) -> usize {
        let attribute = |(name, attribute): (&String, &Attribute)| {
            let kind = match attribute.value {
                AttributeValue::String(_)
                | AttributeValue::Number(_)
                | AttributeValue::Binary(_) => 6,
            };
            let label = match attribute.label.len() {
                0 => 0,
                len => 1 + len,
            };
            name.len() + kind + label + attribute.value.as_bytes().len()
        };
        self.body.len() + self.attributes.iter().map(attribute).sum::<usize>()
    }

    /// Checks the message against a queue.
    ///
    /// # Errors
    /// [`QueueError::Invalid`] or [`QueueError::TooLarge`], which say what is wrong.
    pub fn check(&self, config: &QueueConfig) -> Result<()> {
        QueueError::check_bytes("message", self.size(), config.message_bytes_max)?;
        if self.attributes.len() > ATTRIBUTES_MAX {
            let (what, size) = ("message", self.attributes.len());
            return Err(QueueError::TooLarge {
                what,
                size,
                unit: "attributes",
                limit: ATTRIBUTES_MAX,
            });
        }
        let attributes_bytes = self.size() - self.body.len();
        QueueError::check_bytes("attributes", attributes_bytes, ATTRIBUTES_BYTES_MAX)?;
        self.attributes.iter().try_for_each(|(name, attribute)| attribute.check(name))?;
        check_id("group", self.group.as_deref())?;
        check_id("dedup_id", self.dedup_id.as_deref())?;
        if self.dedup_id.is_some() && config.strict.is_none() {
            return Err(QueueError::invalid("dedup_id", "is only for strict queues"));
        }
        between("priority", usize::from(self.priority), 0, usize::from(config.priorities) - 1)?;
        if let Some(delay) = self.delay {
            within("delay", delay, Duration::ZERO, DELAY_MAX.min(config.retention))?;
        }
        if let Some(ttl) = self.ttl {
            within("ttl", ttl, Duration::from_millis(1), RETENTION_MAX)?;
        }
        match &self.trace {
            Some(trace) => QueueError::check_bytes("trace", trace.len(), TRACE_BYTES_MAX),
            None => Ok(()),
        }
    }
}

impl Attribute {
    fn check(&self, name: &str) -> Result<()> {
        if name.is_empty() {
            return Err(QueueError::invalid("attribute name", "is empty"));
        }
        QueueError::check_bytes("attribute name", name.len(), ATTRIBUTE_NAME_BYTES_MAX)?;
        QueueError::check_bytes("attribute label", self.label.len(), ATTRIBUTE_NAME_BYTES_MAX)?;
        let problem = match &self.value {
            AttributeValue::Number(text) if !is_number(text) => "is not a number",
            value if value.as_bytes().is_empty() => "is empty",
            _ => return Ok(()),
        };
        Err(QueueError::invalid("attribute", format!("{name:?} {problem}")))
    }
}

/// Whether a text is a decimal number with at most 38 digits.
fn is_number(text: &str) -> bool {
    let mantissa = text.split(['e', 'E']).next().unwrap_or_default();
    let digits = mantissa.chars().filter(char::is_ascii_digit).count();
    let plain =
        text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E'));
    plain && (1..=38).contains(&digits) && text.parse::<f64>().is_ok_and(f64::is_finite)
}

pub(crate) fn check_id(field: &'static str, id: Option<&str>) -> Result<()> {
    match id {
        Some("") => Err(QueueError::invalid(field, "is empty")),
        Some(id) => QueueError::check_bytes(field, id.len(), ID_BYTES_MAX),
        None => Ok(()),
    }
}

/// A message that was received, on loan until its lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its id.
    pub id: MessageId,
    /// What acknowledges it, extends its lease or gives it back.
    pub receipt: Receipt,
    /// What it says.
    pub body: Bytes,
    /// What is said about it.
    pub attributes: BTreeMap<String, Attribute>,
    /// Its group.
    pub group: Option<String>,
    /// Its deduplication id.
    pub dedup_id: Option<String>,
    /// Its priority.
    pub priority: u8,
    /// Its trace header.
    pub trace: Option<String>,
    /// When it was sent, by its sender's clock.
    pub sent: Timestamp,
    /// Its number, in a strict queue: rising within each group.
    pub sequence: Option<u64>,
    /// How often it was received, this time included.
    pub receives: u32,
    /// When it was received for the first time.
    pub first_received: Timestamp,
    /// When the lease ends.
    pub leased_until: Timestamp,
    /// Where it was before, when it was moved here.
    pub origin: Option<Origin>,
    /// A name that no other message has, in any queue. It stays the same when the message is moved to the dead letters;
    /// brought back from there, it has another.
    pub identity: String,
}

impl Delivery {
    /// The body as text, when it is text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.body).ok()
    }

    /// The body as text, with what is not text replaced.
    #[must_use]
    pub fn text_lossy(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.body)
    }
}

/// What became of a sent message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Its id.
    pub id: MessageId,
    /// Its number, in a strict queue.
    pub sequence: Option<u64>,
    /// It was sent before and is not sent again: id and number are those of the first time.
    pub duplicate: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_count_bytes_and_the_limit_is_inclusive() {
        let config = QueueConfig { message_bytes_max: 10, ..QueueConfig::default() };
        assert!(Message::new("ääääa1").check(&config).is_ok());
        let over = Message::new("ääääa12").check(&config).unwrap_err();
        assert_eq!(over.to_string(), "message has 11 bytes, at most 10 are accepted");
    }

    #[test]
    fn numbers_are_decimal() {
        for good in ["0", "-1", "3.25", "1e10", "12345678901234567890123456789012345678"] {
            assert!(is_number(good), "{good}");
        }
        for bad in ["", "x", "NaN", "inf", "1_0", "0x1", "1e999", "--1"] {
            assert!(!is_number(bad), "{bad}");
        }
    }

    #[test]
    fn bad_attributes_are_named() {
        let config = QueueConfig::default();
        let number = AttributeValue::Number("ten".into());
        let error = Message::new("x").attribute("size", number).check(&config).unwrap_err();
        assert_eq!(error.to_string(), "attribute \"size\" is not a number");
        let empty = AttributeValue::String(String::new());
        assert!(Message::new("x").attribute("size", empty).check(&config).is_err());
    }
}
