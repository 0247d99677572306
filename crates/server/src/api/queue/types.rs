//! Messages as the API says them.

use std::collections::BTreeMap;
use std::time::Duration;

use millpond_queue::{
    Attribute, AttributeValue, Delivery, Message, MessageState, Order, Origin, Peeked, Sent,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::content::{decode, encode};
use super::super::error::{ApiError, ErrorBody};

/// A message to send.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewMessage {
    /// What it says, as text.
    pub body: Option<String>,
    /// What it says, in base64.
    pub body_base64: Option<String>,
    /// What is said about it, by name.
    #[serde(default)]
    pub attributes: BTreeMap<String, AttributeInput>,
    /// Its group.
    pub group: Option<String>,
    /// In a strict queue, a message with the same id within 5 minutes is not sent again.
    pub dedup_id: Option<String>,
    /// Higher is sooner, in a queue with priorities. Default: 0.
    #[serde(default)]
    pub priority: u8,
    /// How long it waits before it is delivered. Default: as the queue says.
    pub delay_ms: Option<u64>,
    /// How long after sending it can be delivered. Default: as long as the queue keeps it.
    pub ttl_ms: Option<u64>,
    /// A trace header, handed on unchanged.
    pub trace: Option<String>,
}

/// An attribute: text, or a value with its type.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum AttributeInput {
    /// Text.
    Text(String),
    /// A value with its type.
    Typed(TypedAttribute),
}

/// A value with its type.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Attribute")]
pub struct TypedAttribute {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: AttributeKind,
    /// The value; of bytes, in base64.
    pub value: String,
    /// A name for the type that is handed on unchanged.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
}

/// The type of an attribute.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AttributeKind {
    /// Text.
    String,
    /// A number, as it is written.
    Number,
    /// Bytes.
    Binary,
}

impl NewMessage {
    /// The message that it is.
    pub fn message(self) -> Result<Message, ApiError> {
        let attributes = self.attributes.into_iter().map(|(name, input)| {
            let attribute = input.attribute(&name)?;
            Ok((name, attribute))
        });
        Ok(Message {
            body: decode("body", self.body, self.body_base64)?,
            attributes: attributes.collect::<Result<_, ApiError>>()?,
            group: self.group,
            dedup_id: self.dedup_id,
            priority: self.priority,
            delay: self.delay_ms.map(Duration::from_millis),
            ttl: self.ttl_ms.map(Duration::from_millis),
            trace: self.trace,
        })
    }
}

impl AttributeInput {
    fn attribute(self, name: &str) -> Result<Attribute, ApiError> {
        let typed = match self {
            Self::Text(text) => return Ok(AttributeValue::String(text).into()),
            Self::Typed(typed) => typed,
        };
        let value = match typed.kind {
            AttributeKind::String => AttributeValue::String(typed.value),
            AttributeKind::Number => AttributeValue::Number(typed.value),
            AttributeKind::Binary => {
                let field = format!("attributes.{name}");
                AttributeValue::Binary(decode(&field, None, Some(typed.value))?)
            }
        };
        Ok(Attribute { value, label: typed.label })
    }
}

impl From<&Attribute> for TypedAttribute {
    fn from(attribute: &Attribute) -> Self {
        use base64::Engine as _;
        let (kind, value) = match &attribute.value {
            AttributeValue::String(text) => (AttributeKind::String, text.clone()),
            AttributeValue::Number(text) => (AttributeKind::Number, text.clone()),
            AttributeValue::Binary(bytes) => {
                let base64 = base64::engine::general_purpose::STANDARD.encode(bytes);
                (AttributeKind::Binary, base64)
            }
        };
        Self { kind, value, label: attribute.label.clone() }
    }
}

/// A message, received or looked at.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Message")]
pub struct MessageOutput {
    /// Its id.
    pub id: String,
    /// A name that no other message has, in any queue, and that it keeps when it goes to the dead letters.
    pub identity: String,
    /// What acknowledges it, extends its lease or gives it back; only when it was received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receipt: Option<String>,
    /// What state it is in; only when it was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<StateName>,
    /// What it says, when that is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// What it says, in base64, when that is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
    /// What is said about it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attributes: BTreeMap<String, TypedAttribute>,
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Its deduplication id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dedup_id: Option<String>,
    /// Its priority.
    pub priority: u8,
    /// Its trace header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// When it was sent, in milliseconds since 1970.
    pub sent_ms: u64,
    /// Its number, in a strict queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// How often it was received.
    pub receives: u32,
    /// When it was first received, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_received_ms: Option<u64>,
    /// When its lease ends, or when it can be received, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// Where it was before, when it was moved here: queue, client, id, reason, receives, error, sent_ms, moved_ms and
    /// attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Map<String, Value>>")]
    pub origin: Option<Origin>,
}

/// What state a message is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "MessageState")]
pub enum StateName {
    /// It can be received.
    Available,
    /// It can be received later.
    Delayed,
    /// It is on loan.
    Leased,
    /// It is held back, with its group.
    Held,
    /// It is past its end.
    Expired,
    /// It is finished.
    Done,
}

impl From<Delivery> for MessageOutput {
    fn from(delivery: Delivery) -> Self {
        let (body, body_base64) = encode(&delivery.body);
        let attributes = delivery.attributes.iter();
        let received = delivery.receives > 0;
        Self {
            id: delivery.id.to_string(),
            identity: delivery.identity,
            receipt: Some(delivery.receipt.as_str().to_owned()).filter(|text| !text.is_empty()),
            state: None,
            body,
            body_base64,
            attributes: attributes.map(|(name, value)| (name.clone(), value.into())).collect(),
            group: delivery.group,
            dedup_id: delivery.dedup_id,
            priority: delivery.priority,
            trace: delivery.trace,
            sent_ms: delivery.sent.as_millis(),
            sequence: delivery.sequence,
            receives: delivery.receives,
            first_received_ms: received.then(|| delivery.first_received.as_millis()),
            until_ms: Some(delivery.leased_until.as_millis()),
            origin: delivery.origin,
        }
    }
}

impl From<Peeked> for MessageOutput {
    fn from(peeked: Peeked) -> Self {
        let (state, until) = match peeked.state {
            MessageState::Available => (StateName::Available, None),
            MessageState::Delayed(until) => (StateName::Delayed, Some(until)),
            MessageState::Leased(until) => (StateName::Leased, Some(until)),
            MessageState::Held => (StateName::Held, None),
            MessageState::Expired => (StateName::Expired, None),
            MessageState::Done => (StateName::Done, None),
        };
        Self {
            receipt: None,
            state: Some(state),
            until_ms: until.map(millpond_store::Timestamp::as_millis),
            ..peeked.message.into()
        }
    }
}

/// What became of a message that was to be sent.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct SendOutcome {
    /// The queue, when it was sent to a topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its number, in a strict queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// It was sent before and is not sent again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[serde(default)]
    pub duplicate: bool,
    /// Why it was not sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
}

impl SendOutcome {
    /// The outcome as the library has it.
    pub fn of(outcome: Result<Sent, ApiError>) -> Self {
        match outcome {
            Ok(sent) => Self {
                id: Some(sent.id.to_string()),
                sequence: sent.sequence,
                duplicate: sent.duplicate,
                ..Self::default()
            },
            Err(error) => Self { error: Some(*error.body), ..Self::default() },
        }
    }
}

/// An order, as configurations have it.
pub fn order(given: Option<Value>) -> Result<Option<Order>, ApiError> {
    let given = given.map(serde_json::from_value).transpose();
    given.map_err(|error| ApiError::invalid("order", format!("is not an order: {error}")))
}
