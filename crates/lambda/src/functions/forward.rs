//! What the example handlers do: send messages on to a Millpond queue, or only count them.

use std::sync::Arc;

use bytes::Bytes;
use millpond_log::{Failure, Record};
use millpond_queue::{Client, Delivery, Message, Outcome, QueueConfig, QueueError, Queues};
use millpond_sequencer::{Delivered, Sequencer};
use tokio::sync::OnceCell;

use super::prepared::{Prepared, open_queue};
use super::ranges::PassedRange;
use crate::error::FunctionError;

/// Sends messages on to the queue that `MILLPOND_FORWARD_QUEUE` names. Without one, it only logs that they came. The
/// queue is opened with the first message, and made when there is none.
#[derive(Debug, Clone)]
pub struct Forward {
    queues: Queues,
    queue: Option<String>,
    opened: Arc<OnceCell<Client>>,
}

/// A message to be sent on.
#[derive(Debug, Clone)]
pub struct Forwarded {
    /// Its bytes.
    pub payload: Bytes,
    /// Its group, where the queue keeps groups in order.
    pub group: Option<String>,
    /// The same however often it is sent on: a strict queue takes it once within five minutes.
    pub dedup_id: String,
}

impl Forward {
    /// As the settings say.
    ///
    /// # Errors
    /// When the variable is too long.
    pub fn new(prepared: &Prepared) -> Result<Self, FunctionError> {
        let queue = prepared.variables.text("MILLPOND_FORWARD_QUEUE")?.map(str::to_owned);
        Ok(Self { queues: prepared.queues(), queue, opened: Arc::default() })
    }

    /// Sends messages on, in order.
    ///
    /// # Errors
    /// As the queue's. Those before may have been sent.
    pub async fn send(&self, messages: Vec<Forwarded>) -> Result<(), QueueError> {
        let Some(queue) = &self.queue else {
            tracing::info!(messages = messages.len(), "messages came, and are sent nowhere");
            return Ok(());
        };
        let client = self
            .opened
            .get_or_try_init(|| async {
                open_queue(&self.queues, queue, QueueConfig::default()).await?.main()
            })
            .await?;
        let strict = client.config().await?.strict.is_some();
        let message = |forwarded: Forwarded| {
            let message = Message::new(forwarded.payload);
            if !strict {
                return message;
            }
            let group = forwarded.group.unwrap_or_else(|| forwarded.dedup_id.clone());
            message.group(group).dedup_id(forwarded.dedup_id)
        };
        let messages: Vec<_> = messages.into_iter().map(message).collect();
        if messages.is_empty() {
            return Ok(());
        }
        for sent in client.send_batch(messages).await? {
            sent?;
        }
        Ok(())
    }

    /// A handler for a consumer: each message goes on as it came.
    ///
    /// # Errors
    /// As the queue's.
    pub async fn message(self, message: millpond_consumer::Message) -> Result<(), QueueError> {
        let forwarded = Forwarded {
            payload: message.payload().clone(),
            group: message.key().or(message.partition_key()).map(str::to_owned),
            dedup_id: message.idempotency_key(),
        };
        self.send(vec![forwarded]).await
    }

    /// A handler for a queue's worker.
    pub async fn delivery(self, delivery: Delivery) -> Outcome {
        let forwarded = Forwarded {
            payload: delivery.body,
            group: delivery.group,
            dedup_id: format!("queue-{}", delivery.id),
        };
        match self.send(vec![forwarded]).await {
            Ok(()) => Outcome::done(),
            Err(error) => Outcome::retry(error.to_string()),
        }
    }

    /// A handler for a log's worker.
    ///
    /// # Errors
    /// As the queue's.
    pub async fn record(self, record: Record) -> Result<(), Failure> {
        let forwarded = Forwarded {
            payload: record.payload,
            group: record.key.map(|key| String::from_utf8_lossy(&key).into_owned()),
            dedup_id: format!("log-{}-{}", record.partition, record.offset),
        };
        Ok(self.send(vec![forwarded]).await?)
    }

    /// A handler for a sequencer's ranges: all messages of the range, in order. Numbers that were given up are left out.
    ///
    /// # Errors
    /// As the sequencer's and the queue's, with what went wrong.
    pub async fn range(&self, sequencer: &Sequencer, range: &PassedRange) -> Result<(), String> {
        let mut first = range.first;
        while first < range.next {
            let read = sequencer.read(&range.queue, first..range.next).await;
            let read = read.map_err(|error| error.to_string())?;
            let forwarded = |delivered: &Delivered| Forwarded {
                payload: delivered.message.payload.clone(),
                group: Some(range.queue.clone()),
                dedup_id: format!("{}-{}-{}", range.queue, range.epoch, delivered.seq),
            };
            let messages: Vec<_> = read.messages().map(forwarded).collect();
            self.send(messages).await.map_err(|error| error.to_string())?;
            if read.next <= first {
                return Err(format!("{}: nothing is read from {first} on", range.queue));
            }
            first = read.next;
        }
        Ok(())
    }
}
