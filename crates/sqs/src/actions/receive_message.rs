//! ReceiveMessage.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use millpond_queue::{Client, Delivery, Extension, QueueError, Receive};
use serde::{Deserialize, Serialize, Serializer};

use super::change_message_visibility::seconds;
use crate::attributes::Texts;
use crate::call::Call;
use crate::error::{Code, Failure, Result};
use crate::limits::{RECEIVE_MAX, WAIT_SECONDS_MAX};
use crate::message::{
    Chosen, MessageAttributes, check_id, digest, digest_attributes, sequence, show, uuid,
};
use crate::place::Place;
use crate::registry::Known;
use crate::waiting;
use crate::watch::Part;
use crate::wire::{Params, Whole};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Request {
    queue_url: Option<String>,
    attribute_names: Option<Vec<String>>,
    message_system_attribute_names: Option<Vec<String>>,
    message_attribute_names: Option<Vec<String>>,
    max_number_of_messages: Option<Whole>,
    visibility_timeout: Option<Whole>,
    wait_time_seconds: Option<Whole>,
    receive_request_attempt_id: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Answer {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Message>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Message {
    message_id: String,
    receipt_handle: String,
    #[serde(rename = "MD5OfBody")]
    digest: String,
    body: Body,
    #[serde(skip_serializing_if = "Texts::is_empty")]
    attributes: Texts,
    #[serde(rename = "MD5OfMessageAttributes", skip_serializing_if = "Option::is_none")]
    attributes_digest: Option<String>,
    #[serde(skip_serializing_if = "MessageAttributes::is_empty")]
    message_attributes: MessageAttributes,
}

/// A message's body as text. What was not sent through SQS can be other than text.
#[derive(Debug)]
struct Body(Bytes);

impl Body {
    /// The text that is shown.
    fn text(&self) -> Cow<'_, str> {
        // Nearly always it is text, and that is found out faster than where it is not.
        match std::str::from_utf8(&self.0) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(&self.0),
        }
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.text())
    }
}

/// What of messages is shown.
struct Shown {
    system: Chosen,
    own: Chosen,
}

/// What the service itself says about messages.
const SYSTEM: &[&str] = &[
    "All",
    "SenderId",
    "SentTimestamp",
    "ApproximateReceiveCount",
    "ApproximateFirstReceiveTimestamp",
    "SequenceNumber",
    "MessageDeduplicationId",
    "MessageGroupId",
    "AWSTraceHeader",
    "DeadLetterQueueSourceArn",
];

/// Shortest loan of messages that are visible to others at once: long enough for the call itself.
const LOAN_MIN: Duration = Duration::from_secs(30);

/// How often who waits at a FIFO queue looks whether fewer messages are in flight.
const ROOM_LOOK_EVERY: Duration = Duration::from_secs(1);

pub async fn run(call: &Call<'_>, request: Request) -> Result<Answer> {
    let (known, client) = call.queue_at(request.queue_url.as_deref()).await?;
    let shown = request.shown()?;
    let (mut ask, visibility) = request.ask(&known)?;
    let is_main = client.id().as_str().is_empty();
    if is_main && known.live.flight().is_full(call.now) {
        if known.settings.fifo.is_none() {
            let text = format!("Too many messages in flight for queue {}.", known.place.name);
            return Err(Failure::new(Code::OverLimit, text));
        }
        match call.part(Part::Wait, until_room(call, &known, ask.wait)).await {
            Some(left) => ask.wait = left,
            None if known.live.has_ended() => return Err(Failure::no_queue()),
            None => return Ok(Answer { messages: Vec::new() }),
        }
    }
    let ask = if is_main && known.settings.fifo.is_none() {
        known.live.flight().be_fair(ask, call.now)
    } else {
        ask
    };
    let waits = !ask.wait.is_zero();
    let received = waiting::receive(call.inner, &known.live, &client, ask, call.watch);
    let received = if waits { call.part(Part::Wait, received).await } else { received.await };
    let got = received.map_err(|error| match error {
        QueueError::NotFound { .. } => {
            call.inner.registry.forget(&known.place);
            Failure::no_queue()
        }
        other => other.into(),
    })?;
    if got.is_empty() && known.live.has_ended() {
        return Err(Failure::no_queue());
    }
    handed_out(call, &known, &client, &got, visibility, is_main).await?;
    let messages = got.into_iter().map(|message| shown.show(message, &known.place)).collect();
    Ok(Answer { messages })
}

/// Waits until no more messages are in flight than may be: who is answered at once asks again at once. Returns what is
/// left of the wait; nothing when it is over.
async fn until_room(call: &Call<'_>, known: &Known, wait: Duration) -> Option<Duration> {
    let environment = &call.inner.registry.ground.environment;
    let began = environment.clock.monotonic();
    loop {
        let left = wait.saturating_sub(environment.clock.monotonic().since(began));
        if !known.live.flight().is_full(environment.now()) {
            return Some(left);
        }
        if left.is_zero() || known.live.has_ended() || call.inner.is_closed() {
            return None;
        }
        tokio::select! {
            biased;
            () = known.live.until_ended() => {}
            () = call.inner.until_closed() => {}
            () = environment.clock.sleep(left.min(ROOM_LOOK_EVERY)) => {}
        }
    }
}

/// Takes note of messages that are handed out.
async fn handed_out(
    call: &Call<'_>,
    known: &Arc<Known>,
    client: &Client,
    got: &[Delivery],
    visibility: Duration,
    is_main: bool,
) -> Result<()> {
    call.messages(got.len());
    if got.is_empty() {
        if is_main {
            known.live.flight().emptied(call.now);
        }
        return Ok(());
    }
    if let Some(watch) = call.watch {
        got.iter().filter_map(|one| one.trace.as_deref()).for_each(|one| watch.trace_header(one));
    }
    let count = u64::try_from(got.len()).unwrap_or_default();
    call.inner.counted.received.fetch_add(count, Ordering::Relaxed);
    if visibility.is_zero() {
        let ended: Vec<_> = got.iter().map(|one| (one.receipt.clone(), visibility)).collect();
        client.extend_each(&ended, Extension::default()).await?;
        return Ok(());
    }
    if is_main {
        let now = call.inner.registry.ground.environment.now();
        let mut flight = known.live.flight();
        for message in got {
            let group = message.group.as_deref().filter(|_| known.settings.fifo.is_none());
            flight.handed_out(message.id, group, now, message.leased_until);
        }
    }
    Ok(())
}

impl Request {
    /// What to ask the queue for, and how long messages are invisible.
    fn ask(&self, known: &Known) -> Result<(Receive, Duration)> {
        let reason = format!("Must be between 1 and {RECEIVE_MAX}, if provided.");
        let max = match &self.max_number_of_messages {
            Some(max) => max.within("MaxNumberOfMessages", 1, RECEIVE_MAX, &reason)?,
            None => 1,
        };
        let reason = format!("Must be >= 0 and <= {WAIT_SECONDS_MAX}, if provided.");
        let wait = match &self.wait_time_seconds {
            Some(wait) => {
                let wait = wait.within("WaitTimeSeconds", 0, WAIT_SECONDS_MAX, &reason)?;
                Duration::from_secs(wait)
            }
            None => known.settings.wait,
        };
        let visibility = match &self.visibility_timeout {
            Some(timeout) => Duration::from_secs(seconds(timeout)?),
            None => known.settings.visibility,
        };
        if let Some(attempt) = &self.receive_request_attempt_id {
            check_id("ReceiveRequestAttemptId", attempt)?;
        }
        // On a standard queue it says nothing, and frameworks send it all the same.
        let attempt =
            self.receive_request_attempt_id.clone().filter(|_| known.settings.fifo.is_some());
        let loan = if visibility.is_zero() { LOAN_MIN } else { visibility };
        let max = usize::try_from(max).unwrap_or(1);
        let ask = Receive::up_to(max).wait(wait).visibility(loan);
        Ok((Receive { attempt, ..ask }, visibility))
    }

    fn shown(&self) -> Result<Shown> {
        let names = |names: &Option<Vec<String>>| names.clone().unwrap_or_default();
        // Either name of the parameter is good.
        let mut system = names(&self.attribute_names);
        system.extend(names(&self.message_system_attribute_names));
        if let Some(unknown) = system.iter().find(|name| !SYSTEM.contains(&name.as_str())) {
            return Err(Failure::unknown_attribute(unknown));
        }
        Ok(Shown {
            system: Chosen::of(&system),
            own: Chosen::of(&names(&self.message_attribute_names)),
        })
    }
}

impl Shown {
    fn show(&self, message: Delivery, place: &Place) -> Message {
        let own: BTreeMap<_, _> = message
            .attributes
            .iter()
            .filter(|(name, _)| self.own.has(name))
            .map(|(name, attribute)| (name.clone(), attribute.clone()))
            .collect();
        let (attributes, receipt_handle) =
            (self.system(&message, place), message.receipt.as_str().to_owned());
        let body = Body(message.body);
        Message {
            message_id: uuid(&message.identity),
            receipt_handle,
            digest: digest(body.text().as_bytes()),
            attributes,
            attributes_digest: digest_attributes(&own),
            message_attributes: show(&own),
            body,
        }
    }

    fn system(&self, message: &Delivery, place: &Place) -> Texts {
        let origin = message.origin.as_ref();
        // In a standard queue a dead letter keeps its age.
        let sent = match origin.filter(|_| message.sequence.is_none()) {
            Some(origin) => origin.sent(),
            None => message.sent,
        };
        let source = origin.and_then(|origin| Place::of_stored(&origin.queue));
        let all = [
            ("SenderId", Some(place.account.to_string())),
            ("SentTimestamp", Some(sent.as_millis().to_string())),
            ("ApproximateReceiveCount", Some(message.receives.to_string())),
            (
                "ApproximateFirstReceiveTimestamp",
                Some(message.first_received.as_millis().to_string()),
            ),
            ("SequenceNumber", message.sequence.map(sequence)),
            ("MessageDeduplicationId", message.dedup_id.clone()),
            ("MessageGroupId", message.group.clone()),
            ("AWSTraceHeader", message.trace.clone()),
            ("DeadLetterQueueSourceArn", source.map(|source| source.arn())),
        ];
        let chosen = all.into_iter().filter(|(name, _)| self.system.has(name));
        chosen.filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// How long a receive says that it waits, and at which queue: nothing when it does not say, or cannot be read.
pub fn wait_of(params: &Params) -> (Option<u64>, Option<String>) {
    let Ok(request) = params.read::<Request>() else { return (Some(0), None) };
    let wait = match request.wait_time_seconds {
        None => None,
        Some(Whole::Number(seconds)) => Some(u64::try_from(seconds).unwrap_or_default()),
        Some(Whole::Text(_)) => Some(0),
    };
    (wait, request.queue_url)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::IN_FLIGHT_MAX;
    use crate::{Sqs, SqsOptions};
    use millpond_lanes::Ground;
    use millpond_store::{Environment, MemoryStore, Timestamp, VirtualClock};
    use serde_json::{Value, json};

    struct World {
        clock: VirtualClock,
        sqs: Sqs,
    }

    impl World {
        async fn new() -> Self {
            let clock = VirtualClock::new(Timestamp::from_millis(1_800_000_000_000));
            let environment = Environment::simulated(clock.clone(), 7);
            let ground = Ground::new(Arc::new(MemoryStore::new(&environment)), &environment);
            let sqs = Sqs::open(&ground, SqsOptions::default()).await.unwrap();
            Self { clock, sqs }
        }

        /// A queue in which as many messages are in flight as may be, for a minute.
        async fn full(&self, name: &str, attributes: Value) -> String {
            let body = json!({"QueueName": name, "Attributes": attributes});
            let url = self.ask("CreateQueue", body).await["QueueUrl"].as_str().unwrap().to_owned();
            let inner = self.sqs.inner();
            let now = inner.registry.ground.environment.now();
            let place = Place::of_stored(name).unwrap();
            let known = inner.registry.get(&place).await.unwrap();
            for n in 0..IN_FLIGHT_MAX {
                let id = format!("{n:016x}-00").parse().unwrap();
                let until = now.plus(Duration::from_secs(60));
                known.live.flight().handed_out(id, None, now, until);
            }
            url
        }

        fn ask(&self, action: &str, body: Value) -> impl Future<Output = Value> + 'static {
            let request = http::Request::post("/")
                .header("x-amz-target", format!("AmazonSQS.{action}"))
                .body(Bytes::from(body.to_string()))
                .unwrap();
            let sqs = self.sqs.clone();
            async move {
                let answer = sqs.handle(request).await;
                serde_json::from_slice(answer.body()).unwrap()
            }
        }

        async fn settle(&self) {
            for _ in 0..200 {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn a_full_standard_queue_refuses_receives() {
        let world = World::new().await;
        let url = world.full("q", json!({})).await;
        world.ask("SendMessage", json!({"QueueUrl": url, "MessageBody": "x"})).await;
        let refused = world.ask("ReceiveMessage", json!({"QueueUrl": url})).await;
        assert_eq!(refused["__type"], "com.amazonaws.sqs#OverLimit");
        assert_eq!(refused["message"], "Too many messages in flight for queue q.");
        world.clock.advance(Duration::from_secs(60));
        let got = world.ask("ReceiveMessage", json!({"QueueUrl": url})).await;
        assert_eq!(got["Messages"][0]["Body"], "x");
    }

    #[tokio::test]
    async fn a_full_fifo_queue_hands_out_nothing_and_lets_receivers_wait() {
        let world = World::new().await;
        let url = world.full("q.fifo", json!({"FifoQueue": "true"})).await;
        let body = json!({
            "QueueUrl": url, "MessageBody": "x", "MessageGroupId": "g", "MessageDeduplicationId": "1",
        });
        world.ask("SendMessage", body).await;
        assert_eq!(world.ask("ReceiveMessage", json!({"QueueUrl": url})).await, json!({}));
        let wait = json!({"QueueUrl": url, "WaitTimeSeconds": 20});
        let call = tokio::spawn(world.ask("ReceiveMessage", wait.clone()));
        for _ in 0..19 {
            world.settle().await;
            world.clock.advance(Duration::from_secs(1));
        }
        world.settle().await;
        assert!(!call.is_finished(), "it waits for as long as it may");
        world.clock.advance(Duration::from_secs(1));
        assert_eq!(call.await.unwrap(), json!({}));
        world.clock.advance(Duration::from_secs(30));
        let call = tokio::spawn(world.ask("ReceiveMessage", wait));
        for _ in 0..11 {
            world.settle().await;
            world.clock.advance(Duration::from_secs(1));
        }
        assert_eq!(call.await.unwrap()["Messages"][0]["Body"], "x", "when there is room again");
    }
}
