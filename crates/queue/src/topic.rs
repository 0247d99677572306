//! Topics: a message to several queues, whose body is stored once.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::join_all;
use millpond_lanes::Lane as _;
use millpond_lanes::{Append, LaneConfig, Message as LaneMessage, Place, UnorderedLane};
use millpond_store::{
    Attributes, Expect, Item, Key, Partition, Query, StoreError, UniqueId, Write, collect,
};
use serde::{Deserialize, Serialize};

use crate::error::{QueueError, Result};
use crate::head::Head;
use crate::message::{Message, Sent};
use crate::names::QueueName;
use crate::queue::Queue;
use crate::queues::{Queues, Root};

/// Bodies up to this size travel with each message: a reference would not be shorter.
const INLINE_BYTES_MAX: usize = 256;

/// The partition that lists all topics.
const TOPICS: &str = "topics";

/// Most topics that are listed in one call.
const LISTED_MAX: usize = 1_000_000;

/// Most queues of a topic.
pub const SUBSCRIBERS_MAX: usize = 100;

/// Where a body is that several queues share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedBody {
    lane: String,
    segment: String,
}

impl SharedBody {
    pub async fn fetch(&self, root: &Root) -> Result<Bytes> {
        let corrupt =
            |what: &str| StoreError::corrupt(format!("shared body {}", self.segment), what);
        let lane = UnorderedLane::open(&root.ground, &self.lane, LaneConfig::QUEUE)?;
        let id = u128::from_str_radix(&self.segment, 16).map_err(|_| corrupt("it has no id"))?;
        let place = Place::Id(UniqueId::from_bytes(id.to_be_bytes()));
        let segment = lane.get(place).await?.ok_or_else(|| corrupt("it is gone"))?;
        let mut messages = lane.load(&segment).await?;
        Ok(messages.pop().ok_or_else(|| corrupt("it is empty"))?.body)
    }
}

/// A topic: what is sent to it goes to each of its queues.
#[derive(Debug, Clone)]
pub struct Topic {
    queues: Queues,
    name: QueueName,
}

impl Queues {
    /// Creates a topic, or replaces the queues of one that exists.
    ///
    /// # Errors
    /// [`QueueError::NotFound`] when one of the queues does not exist.
    pub async fn create_topic(&self, name: &str, queues: &[&str]) -> Result<Topic> {
        let name = QueueName::new(name)?;
        if queues.is_empty() || queues.len() > SUBSCRIBERS_MAX {
            let problem = format!("are {}; 1 to {SUBSCRIBERS_MAX} are accepted", queues.len());
            return Err(QueueError::invalid("queues", problem));
        }
        for queue in queues {
            self.open(queue).await?;
        }
        let listed = serde_json::to_string(queues).expect("names are plain data");
        let version = self.root.environment().version();
        let attributes = Attributes::new().with("queues", listed.as_str());
        let put = Write::put(topic_key(&name)?, attributes, Expect::Any, version);
        self.root.store().write(put).await?;
        Ok(Topic { queues: self.clone(), name })
    }

    /// The names of all topics, in order.
    ///
    /// # Errors
    /// As the store's.
    pub async fn topics(&self) -> Result<Vec<QueueName>> {
        let query = Query::new(Partition::new(TOPICS)?);
        let items = collect(self.root.store(), query, LISTED_MAX).await?;
        let name = |item: &Item| QueueName::new(&String::from_utf8_lossy(item.key.sort.as_bytes()));
        items.iter().map(name).collect()
    }

    /// Opens a topic that exists.
    ///
    /// # Errors
    /// [`QueueError::NotFound`] when there is none of this name.
    pub async fn open_topic(&self, name: &str) -> Result<Topic> {
        let topic = Topic { queues: self.clone(), name: QueueName::new(name)? };
        topic.subscribers().await?;
        Ok(topic)
    }
}

impl Topic {
    /// The names of its queues.
    ///
    /// # Errors
    /// [`QueueError::NotFound`] when the topic was deleted.
    pub async fn subscribers(&self) -> Result<Vec<String>> {
        let item = self.queues.root.store().get(&topic_key(&self.name)?).await?;
        let missing = || QueueError::NotFound { what: "topic", name: self.name.to_string() };
        read(&item.ok_or_else(missing)?)
    }

    /// Deletes the topic. Its queues, and what was sent to them, stay.
    ///
    /// # Errors
    /// As the store's.
    pub async fn delete(&self) -> Result<()> {
        let gone = Write::delete(topic_key(&self.name)?, Expect::Any);
        Ok(self.queues.root.store().write(gone).await?)
    }

    /// Sends a message to the same client of every queue. The body is stored once, and each queue refers to it. The
    /// outcome names each queue.
    ///
    /// # Errors
    /// When the message suits none of the queues, or the body cannot be stored; then nothing was sent.
    pub async fn send(
        &self,
        client: &str,
        message: Message,
    ) -> Result<Vec<(String, Result<Sent>)>> {
        let mut queues = Vec::new();
        for name in self.subscribers().await? {
            queues.push((self.queues.open(&name).await?, name));
        }
        let mut kept = std::time::Duration::ZERO;
        for (queue, _) in &queues {
            let config = queue.config().await?;
            message.check(&config)?;
            kept = kept.max(config.retention);
        }
        let mut head = Head::of(&message);
        let mut sent = message.clone();
        if message.body.len() > INLINE_BYTES_MAX {
            head.shared = Some(self.store_body(client, &message, kept).await?);
            sent.body = Bytes::new();
        }
        let (head, sent) = (Arc::new(head), Arc::new(sent));
        let work = queues.into_iter().map(|(queue, name)| {
            let (head, sent) = (Arc::clone(&head), Arc::clone(&sent));
            async move { (name, send_to(&queue, client, &sent, &head).await) }
        });
        Ok(join_all(work).await)
    }

    /// Stores a body for as long as the queue that keeps it longest.
    async fn store_body(
        &self,
        client: &str,
        message: &Message,
        kept: std::time::Duration,
    ) -> Result<SharedBody> {
        let client = crate::names::ClientId::new(client)?;
        let name = format!("t/{}/{}", self.name, client.escaped());
        // A little longer than the messages that refer to it.
        let retention = Some(kept + std::time::Duration::from_secs(60 * 60));
        let config = LaneConfig { retention, ..LaneConfig::QUEUE };
        let root = &self.queues.root;
        let lane = UnorderedLane::open(&root.ground, &name, config)?;
        let stored = LaneMessage::new(message.body.clone());
        let mut append = Append::new(root.environment(), &[stored])?;
        let segment = lane.append_prepared(&mut append).await?.to_string();
        Ok(SharedBody { lane: name, segment })
    }
}

async fn send_to(queue: &Queue, client: &str, message: &Message, head: &Head) -> Result<Sent> {
    queue.client(client)?.core.send_shared(message, head).await
}

fn topic_key(name: &QueueName) -> Result<Key, StoreError> {
    Key::new(TOPICS, name.as_str().as_bytes().to_vec())
}

fn read(item: &Item) -> Result<Vec<String>> {
    let listed = serde_json::from_str(item.attributes.text("queues")?);
    listed.map_err(|error| {
        StoreError::corrupt(format!("topic {}", item.key), error.to_string()).into()
    })
}
