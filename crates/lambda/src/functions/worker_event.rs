//! What a worker's function is invoked with.

use millpond_queue::Client;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::InvokeError;
use crate::limits::EVENT_BYTES_MAX;

const MARK: &str = "queue worker";

/// What a worker's function is invoked with by a [`Waker`](crate::Waker) and by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerEvent {
    millpond: String,
    /// The queue.
    pub queue: String,
    /// The client; empty for the main one.
    #[serde(default)]
    pub client: String,
    /// How often the work was handed on since somebody woke the worker.
    #[serde(default)]
    pub continued: u64,
}

/// What an invocation is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Call {
    /// Work on a client's messages.
    Work(WorkerEvent),
    /// Look whether some client has work that nobody is at: from the schedule.
    Look,
}

/// Whether an event is a schedule's.
pub(super) fn is_scheduled(event: &Value) -> bool {
    let source = event.get("source").and_then(Value::as_str);
    source.is_some_and(|by| ["aws.events", "aws.scheduler"].contains(&by))
}

impl WorkerEvent {
    /// For a client of a queue.
    #[must_use]
    pub fn wake(client: &Client) -> Self {
        let (queue, client) = (client.queue().to_string(), client.id().to_string());
        Self { millpond: MARK.into(), queue, client, continued: 0 }
    }

    /// The next of a chain of invocations.
    #[must_use]
    pub fn next(&self) -> Self {
        Self { continued: self.continued.saturating_add(1), ..self.clone() }
    }

    /// As JSON.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("text and a number are always JSON")
    }
}

impl Call {
    /// Reads an event.
    pub fn read(event: &[u8], queue: &str) -> Result<Self, InvokeError> {
        let refuse = |problem: String| Err(InvokeError::Event(problem));
        if event.len() > EVENT_BYTES_MAX {
            return refuse(format!("it has over {EVENT_BYTES_MAX} bytes"));
        }
        let value: Value = match serde_json::from_slice(event) {
            Ok(value) => value,
            Err(error) => return refuse(format!("it is not JSON: {error}")),
        };
        if value.get("millpond").is_none() {
            let is_empty = value.as_object().is_some_and(serde_json::Map::is_empty);
            if is_scheduled(&value) || is_empty {
                return Ok(Self::Look);
            }
            return refuse("it is neither a wake-up nor a schedule's".into());
        }
        let event: WorkerEvent = match serde_json::from_value(value) {
            Ok(event) => event,
            Err(error) => return refuse(format!("it is no wake-up: {error}")),
        };
        if event.millpond != MARK {
            return refuse(format!("it is for a {:?}, and this is a {MARK:?}", event.millpond));
        }
        if event.queue != queue {
            return refuse(format!(
                "it is for queue {:?}, and this works on {queue:?}",
                event.queue
            ));
        }
        Ok(Self::Work(event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(event: &str) -> Result<Call, String> {
        Call::read(event.as_bytes(), "tasks").map_err(|error| error.to_string())
    }

    #[test]
    fn wake_ups_schedules_and_nothing_else() {
        let Ok(Call::Work(woken)) =
            read(r#"{"millpond":"queue worker","queue":"tasks","client":"shop"}"#)
        else {
            panic!("a wake-up was refused");
        };
        assert_eq!((woken.client.as_str(), woken.continued), ("shop", 0));
        let next = woken.next();
        assert_eq!(Call::read(&next.encode(), "tasks").unwrap(), Call::Work(next.clone()));
        assert_eq!(next.continued, 1);
        assert_eq!(read("{}"), Ok(Call::Look));
        assert_eq!(read(r#"{"source":"aws.events","detail":{}}"#), Ok(Call::Look));
        for (bad, said) in [
            (r#"{"Records":[]}"#, "neither a wake-up nor"),
            (r#"{"millpond":"queue worker"}"#, "missing field `queue`"),
            (r#"{"millpond":"queue worker","queue":"other"}"#, "for queue \"other\""),
            (r#"{"millpond":"log worker","queue":"tasks"}"#, "for a \"log worker\""),
            ("[]", "neither"),
            ("tasks", "not JSON"),
        ] {
            let error = read(bad).unwrap_err();
            assert!(error.contains(said), "{bad}: {error}");
        }
    }
}
