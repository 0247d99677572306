//! Where what was dead goes.

use std::fmt;

use async_trait::async_trait;
use millpond_log::{NewRecord, Topic};
use millpond_queue::{Client, Message};
use millpond_store::Timestamp;

use super::error::RedriveError;
use super::original::Original;
use crate::consumer::Consumer;
use crate::sink::{DeadLetter, Kind};
use crate::source::{Event, Only};

/// What takes what was dead.
#[async_trait]
pub trait Destination: fmt::Debug + Send + Sync {
    /// Takes what a letter is about, byte for byte: [`Original::of`] finds it.
    ///
    /// # Errors
    /// When it does not have it. The letter then stays.
    async fn send(&self, letter: &DeadLetter) -> Result<(), RedriveError>;
}

/// Back into a Millpond queue.
#[derive(Debug, Clone)]
pub struct ToQueue(pub Client);

#[async_trait]
impl Destination for ToQueue {
    async fn send(&self, letter: &DeadLetter) -> Result<(), RedriveError> {
        let Original { payload, key } = Original::of(letter)?;
        let mut message = Message::new(payload);
        message.group = key;
        if self.0.config().await?.strict.is_some() {
            message = message.dedup_id(format!("redrive-{}", letter.dedupe_id));
        }
        self.0.send(message).await?;
        Ok(())
    }
}

/// Back into a Millpond log.
#[derive(Debug, Clone)]
pub struct ToLog(pub Topic);

#[async_trait]
impl Destination for ToLog {
    async fn send(&self, letter: &DeadLetter) -> Result<(), RedriveError> {
        let Original { payload, key } = Original::of(letter)?;
        let record = match key {
            Some(key) => NewRecord::keyed(key, payload),
            None => NewRecord::new(payload),
        };
        self.0.append(record.header("redriven", letter.dedupe_id.clone())).await?;
        Ok(())
    }
}

/// Straight to a consumer, as an event: for records of Kinesis, DynamoDB Streams and SQS, and the ends of windows, once what
/// was wrong is mended. Of a record with several messages, only the one that died is run, under its own place; of a record
/// that could not be read, all that is found in it now. The consumer should have another name than the one that gave the
/// message up, whose state says that it is dead.
#[derive(Debug, Clone)]
pub struct ToConsumer {
    /// The consumer.
    pub consumer: Consumer,
    /// Until when a record may take.
    pub deadline: Timestamp,
}

#[async_trait]
impl Destination for ToConsumer {
    async fn send(&self, letter: &DeadLetter) -> Result<(), RedriveError> {
        let event = event_of(letter)?;
        if letter.is_window() && self.consumer.settings().windows.end.is_none() {
            return Err(RedriveError::Refused(format!(
                "the consumer does nothing at the end of a window, which the letter {} is about",
                letter.dedupe_id
            )));
        }
        let single = event.only.is_some_and(|only| only.part.is_some());
        let report = self.consumer.handle_again(event, self.deadline).await;
        if single && report.messages == 0 {
            return Err(RedriveError::Refused(format!(
                "the consumer finds no message {} in the record of the letter {}",
                letter.part, letter.dedupe_id
            )));
        }
        if report.is_complete() {
            return Ok(());
        }
        let problems = report.problems.join("; ");
        Err(RedriveError::Refused(format!("it was not finished: {problems}")))
    }
}

/// The event that brings back what a letter is about, and nothing else.
fn event_of(letter: &DeadLetter) -> Result<Event, RedriveError> {
    let refused = |problem: String| {
        RedriveError::Refused(format!("the letter {} {problem}", letter.dedupe_id))
    };
    let raw = letter.raw.as_ref().ok_or_else(|| refused("has no record of its own".into()))?;
    let raw = raw.bytes()?;
    if letter.is_window() {
        let window = Event::window_of(&raw);
        let window =
            window.ok_or_else(|| refused("does not say which window it is about".into()))?;
        return Ok(Event { window: Some(window), ..Event::default() });
    }
    let mut event = Event::parse(&[br#"{"Records":["#, raw.as_ref(), b"]}"].concat())
        .map_err(|error| refused(format!("has a record that cannot be read: {error}")))?;
    if let Some(Err(unusable)) = event.records.first() {
        return Err(refused(format!("has a record that cannot be read: {}", unusable.reason)));
    }
    if letter.message.is_some() {
        // What could not be read is one message only as long as it cannot be read.
        let part = (letter.kind == Kind::Message).then_some(letter.part);
        event.only = Some(Only { sub: letter.sub, part });
    }
    Ok(event)
}
