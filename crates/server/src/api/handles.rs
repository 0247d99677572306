//! Handles that are kept open, so that requests share what they know and concurrent ones travel together.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use millpond_lanes::Ground;
use millpond_log::{Log, Topic};
use millpond_queue::{Client, Queue, Queues};
use millpond_sequencer::Sequencer;
use millpond_store::Monotonic;

use super::error::ApiError;
use super::limits::{HANDLES_MAX, SETTINGS_AGE_MAX};
use super::sequence::settings;

/// Handles of one store.
#[derive(Debug)]
pub struct Handles {
    ground: Ground,
    queues: Queues,
    log: Log,
    clients: Kept<(String, String), Client>,
    topics: Kept<String, Topic>,
    sequencers: Kept<String, (Sequencer, Monotonic)>,
}

impl Handles {
    /// Nothing is open yet.
    pub fn new(ground: &Ground, queues: Queues) -> Self {
        Self {
            ground: ground.clone(),
            queues,
            log: Log::new(ground),
            clients: Kept::default(),
            topics: Kept::default(),
            sequencers: Kept::default(),
        }
    }

    /// All queues.
    pub const fn queues(&self) -> &Queues {
        &self.queues
    }

    /// All topics of the log.
    pub const fn log(&self) -> &Log {
        &self.log
    }

    /// A queue that exists.
    pub async fn queue(&self, name: &str) -> Result<Queue, ApiError> {
        Ok(self.queues.open(name).await?)
    }

    /// A client of a queue that exists.
    pub async fn client(&self, queue: &str, client: &str) -> Result<Client, ApiError> {
        let key = (queue.to_owned(), client.to_owned());
        // A queue that was deleted and made anew is another one: the handle says so by its configuration.
        if let Some(known) = self.clients.get(&key) {
            if known.config().await.is_ok() {
                return Ok(known);
            }
            self.clients.forget(&key);
        }
        let opened = self.queues.open(queue).await?.client(client)?;
        self.clients.keep(key, opened.clone());
        Ok(opened)
    }

    /// The clients that were used, for maintenance.
    pub fn clients(&self) -> Vec<Client> {
        self.clients.all()
    }

    /// Forgets the clients of a queue that is deleted.
    pub fn forget_queue(&self, queue: &str) {
        self.clients.retain(|(name, _)| name != queue);
    }

    /// A topic of the log.
    pub async fn topic(&self, name: &str) -> Result<Topic, ApiError> {
        if let Some(known) = self.topics.get(&name.to_owned()) {
            return Ok(known);
        }
        let opened = self.log.topic(name).await?;
        self.topics.keep(name.to_owned(), opened.clone());
        Ok(opened)
    }

    /// Forgets a topic that is deleted or configured anew.
    pub fn forget_topic(&self, topic: &str) {
        self.topics.forget(&topic.to_owned());
    }

    /// A sequencer with the settings that are stored for it, or the default ones.
    pub async fn sequencer(&self, name: &str) -> Result<Sequencer, ApiError> {
        let now = self.ground.environment.clock.monotonic();
        let known = self.sequencers.get(&name.to_owned());
        if let Some((known, read)) = &known
            && now.since(*read) < SETTINGS_AGE_MAX
        {
            return Ok(known.clone());
        }
        let config = settings::load(&self.ground, name).await?.unwrap_or_default().config()?;
        // What a sequencer remembers stays good as long as its settings do.
        let sequencer = match known {
            Some((known, _)) if *known.config() == config => known,
            _ => {
                let store = Arc::clone(&self.ground.store);
                Sequencer::open(store, &self.ground.environment, name, config)?
            }
        };
        self.sequencers.keep(name.to_owned(), (sequencer.clone(), now));
        Ok(sequencer)
    }

    /// Forgets a sequencer whose settings have changed.
    pub fn forget_sequencer(&self, name: &str) {
        self.sequencers.forget(&name.to_owned());
    }
}

/// A bounded map of handles. When it is full it starts over: a handle is opened again by a read or two.
#[derive(Debug)]
struct Kept<K, V>(Mutex<HashMap<K, V>>);

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<K: Eq + Hash, V: Clone> Kept<K, V> {
    fn get(&self, key: &K) -> Option<V> {
        self.lock().get(key).cloned()
    }

    fn keep(&self, key: K, value: V) {
        let mut kept = self.lock();
        if kept.len() >= HANDLES_MAX {
            kept.clear();
        }
        kept.insert(key, value);
    }

    fn forget(&self, key: &K) {
        self.lock().remove(key);
    }

    fn retain(&self, keep: impl Fn(&K) -> bool) {
        self.lock().retain(|key, _| keep(key));
    }

    fn all(&self) -> Vec<V> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<K, V>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
