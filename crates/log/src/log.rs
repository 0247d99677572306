//! The log as a whole: its topics.

use std::sync::Arc;
use std::time::Duration;

use millpond_lanes::Ground;
use millpond_store::{
    Backoff, Expect, Item, Key, Partition, Query, Retrying, SortKey, SortRange, Store, StoreError,
    Write, collect,
};

use crate::cache::ReadCache;
use crate::config::{CATALOGUE, TOPIC_PREFIX, TopicConfig, TopicItem, check_partitions};
use crate::error::{LogError, Result};
use crate::limits::{CACHE_BYTES, LISTED_MAX, NAMES_IN_ERROR_MAX};
use crate::name::TopicName;
use crate::topic::Topic;

/// How a process uses the log.
#[derive(Debug, Clone, Copy)]
pub struct LogOptions {
    /// Bytes of payload from the object store that are kept in memory for who reads them next. Default: 64 MiB.
    pub cache_bytes: usize,
    /// How often, and how long, a flush is tried again when the store or the object store fails for the moment.
    /// Meanwhile the partition's later records wait, so that order is kept. Default: 5 attempts within seconds.
    pub backoff: Backoff,
}

impl Default for LogOptions {
    fn default() -> Self {
        let backoff = Backoff {
            base: Duration::from_millis(50),
            longest: Duration::from_secs(2),
            attempts_max: 5,
        };
        Self { cache_bytes: CACHE_BYTES, backoff }
    }
}

/// Topics over a store. Clones share everything.
#[derive(Debug, Clone)]
pub struct Log(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub ground: Ground,
    /// The same store, with a few retries.
    pub store: Arc<dyn Store>,
    pub cache: ReadCache,
    pub options: LogOptions,
}

/// A backend retries by itself what it can; this is for what comes through, so a few attempts are enough.
const BACKOFF: Backoff =
    Backoff { base: Duration::from_millis(20), longest: Duration::from_secs(1), attempts_max: 4 };

/// Attempts at a change that others make too.
const CHANGES_MAX: u32 = 16;

impl Log {
    /// The log on this ground.
    #[must_use]
    pub fn new(ground: &Ground) -> Self {
        Self::with_options(ground, LogOptions::default())
    }

    /// The same with options.
    #[must_use]
    pub fn with_options(ground: &Ground, options: LogOptions) -> Self {
        let store = Retrying::new(Arc::clone(&ground.store), &ground.environment, BACKOFF);
        let cache = ReadCache::new(options.cache_bytes);
        Self(Arc::new(Inner { ground: ground.clone(), store: Arc::new(store), cache, options }))
    }

    /// Creates a topic; one that is there already with the same configuration is fine.
    ///
    /// # Errors
    /// [`LogError::Invalid`] for a name or configuration that cannot be, [`LogError::TopicExists`] when there is
    /// one with another configuration, and as the store's.
    pub async fn create(&self, name: &str, config: TopicConfig) -> Result<Topic> {
        let name = TopicName::new(name)?;
        config.check()?;
        let environment = &self.0.ground.environment;
        let topic = TopicItem {
            name: name.clone(),
            incarnation: environment.rng.next_u64(),
            config,
            grown_from: Vec::new(),
            created: environment.now(),
            grown: None,
            deleting: false,
            version: environment.version(),
        };
        let key = TopicItem::key(&name)?;
        let put = Write::put(key, topic.attributes(), Expect::Absent, topic.version);
        let item = match self.0.store.write(put).await {
            Ok(()) => topic,
            Err(StoreError::Conflict(conflicts)) => match &conflicts.first().current {
                Some(item) => TopicItem::decode(item)?,
                None => self.find(&name).await?,
            },
            Err(error) => return Err(error.into()),
        };
        if item.config != config || item.deleting {
            return Err(LogError::TopicExists { topic: name.to_string() });
        }
        Ok(Topic::new(self, item))
    }

    /// Opens a topic.
    ///
    /// # Errors
    /// [`LogError::UnknownTopic`] when there is none of this name, and as the store's.
    pub async fn topic(&self, name: &str) -> Result<Topic> {
        let item = self.find(&TopicName::new(name)?).await?;
        if item.deleting {
            return Err(self.unknown(&item.name).await);
        }
        Ok(Topic::new(self, item))
    }

    /// The names of all topics, in order.
    ///
    /// # Errors
    /// As the store's.
    pub async fn list(&self) -> Result<Vec<String>> {
        let prefix = SortRange::prefix(SortKey::new(vec![TOPIC_PREFIX])?);
        let query = Query::new(Partition::new(CATALOGUE)?).range(prefix);
        let items = collect(self.0.store.as_ref(), query, LISTED_MAX).await?;
        let topics = items.iter().map(TopicItem::decode).collect::<Result<Vec<_>>>()?;
        let live = topics.into_iter().filter(|topic| !topic.deleting);
        Ok(live.map(|topic| topic.name.to_string()).collect())
    }

    /// Changes how a topic keeps its records from now on. The number of partitions stays: see [`grow`](Self::grow).
    ///
    /// # Errors
    /// As [`create`](Self::create), and [`LogError::UnknownTopic`].
    pub async fn configure(&self, name: &str, config: TopicConfig) -> Result<()> {
        config.check()?;
        self.change(&TopicName::new(name)?, |topic| {
            let partitions = topic.config.partitions;
            if config.partitions != partitions {
                let problem =
                    format!("is {}, the topic has {partitions}: use `grow`", config.partitions);
                return Err(LogError::invalid("partitions", problem));
            }
            topic.config = config;
            Ok(())
        })
        .await
    }

    /// Adds partitions. What is there stays where it is. A key stays in its partition or moves to a new one, never to
    /// another old one. A group reads the new partitions only after it has finished what was in the old ones when it
    /// learned of them, so that it sees each key in order; who reads without a group finds a key's older records in
    /// [`partition_of`](crate::partition_of) the former number.
    ///
    /// # Errors
    /// [`LogError::Invalid`] when that is not more than there are, and as the store's.
    pub async fn grow(&self, name: &str, partitions: u32) -> Result<()> {
        check_partitions(partitions)?;
        let now = self.0.ground.environment.now();
        self.change(&TopicName::new(name)?, |topic| {
            let before = topic.config.partitions;
            if partitions < before {
                let problem = format!("is {partitions}, the topic has {before}: they never shrink");
                return Err(LogError::invalid("partitions", problem));
            }
            if partitions > before {
                topic.grown_from.push(before);
                topic.config.partitions = partitions;
                topic.grown = Some(now);
            }
            Ok(())
        })
        .await
    }

    /// Deletes a topic with all its records, producers and groups. From its first step on, nobody can open it; when
    /// it is interrupted, call it again. A topic of the same name that is made later shares nothing with it.
    ///
    /// # Errors
    /// [`LogError::UnknownTopic`], and as the store's and the object store's.
    pub async fn delete(&self, name: &str) -> Result<()> {
        let name = TopicName::new(name)?;
        self.change(&name, |topic| {
            topic.deleting = true;
            Ok(())
        })
        .await?;
        let topic = self.find(&name).await?;
        Topic::new(self, topic.clone()).remove_everything().await?;
        let gone = Write::delete(TopicItem::key(&name)?, Expect::Version(topic.version));
        match self.0.store.write(gone).await {
            // Somebody else has finished the same.
            Err(StoreError::Conflict(_)) => Ok(()),
            outcome => Ok(outcome?),
        }
    }

    /// The topic's item, be it on its way out or not.
    pub(crate) async fn find(&self, name: &TopicName) -> Result<TopicItem> {
        match self.0.store.get(&TopicItem::key(name)?).await? {
            Some(item) => TopicItem::decode(&item),
            None => Err(self.unknown(name).await),
        }
    }

    pub(crate) async fn unknown(&self, name: &TopicName) -> LogError {
        // The list only makes the error more helpful.
        let mut known = self.list().await.unwrap_or_default();
        known.truncate(NAMES_IN_ERROR_MAX);
        LogError::UnknownTopic { topic: name.to_string(), known }
    }

    async fn change(
        &self,
        name: &TopicName,
        change: impl Fn(&mut TopicItem) -> Result<()> + Send + Sync,
    ) -> Result<()> {
        for _ in 0..CHANGES_MAX {
            let before = self.find(name).await?;
            let mut after = before.clone();
            change(&mut after)?;
            if after == before {
                return Ok(());
            }
            if before.deleting {
                return Err(self.unknown(name).await);
            }
            let version = self.0.ground.environment.version();
            let expect = Expect::Version(before.version);
            let key = TopicItem::key(name)?;
            match self.0.store.write(Write::put(key, after.attributes(), expect, version)).await {
                Err(StoreError::Conflict(_)) => {}
                outcome => return Ok(outcome?),
            }
        }
        Err(contended("topic").into())
    }

    /// Removes everything in a partition of the store.
    pub(crate) async fn remove_all(&self, partition: &str) -> Result<()> {
        let partition = Partition::new(partition)?;
        let mut next = Some(Query::new(partition));
        while let Some(query) = next {
            let page = self.0.store.query(query).await?;
            let keys: Vec<Key> = page.items.into_iter().map(|item: Item| item.key).collect();
            let deletes = keys.into_iter().map(|key| Write::delete(key, Expect::Any)).collect();
            for outcome in self.0.store.write_each(deletes).await? {
                outcome?;
            }
            next = page.next;
        }
        Ok(())
    }
}

pub(crate) fn contended(what: &str) -> StoreError {
    StoreError::Throttled {
        operation: "change",
        detail: format!("others changed the {what} {CHANGES_MAX} times in a row"),
    }
}
