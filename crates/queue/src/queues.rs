//! All queues of a store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use millpond_lanes::Ground;
use millpond_store::{
    Attributes, Environment, Expect, Item, Key, Partition, Query, Store, StoreError, Version,
    Write, collect,
};
use tokio::sync::OnceCell;

use crate::client::OwnRow;
use crate::config::QueueConfig;
use crate::counters::Counters;
use crate::error::{QueueError, Result};
use crate::limits::COUNTS_KEPT_MAX;
use crate::names::QueueName;
use crate::queue::{Queue, QueueCore};
use crate::secret::receipt_key;

/// The partition that lists all queues.
const QUEUES: &str = "queues";

/// Most queues that are listed in one call.
const LISTED_MAX: usize = 1_000_000;

/// The queues of one store. Cheap to clone; all clones share what they know.
#[derive(Debug, Clone)]
pub struct Queues {
    pub(crate) root: Arc<Root>,
}

#[derive(Debug)]
pub(crate) struct Root {
    pub ground: Ground,
    key: OnceCell<Vec<u8>>,
    open: Mutex<HashMap<QueueName, Weak<QueueCore>>>,
    /// What clients counted that have no handle at present, by the beginning of their names in the store.
    counts: Mutex<HashMap<String, (Counters, OwnRow)>>,
}

/// A queue's row.
#[derive(Debug, Clone)]
pub(crate) struct QueueRow {
    /// Tells this queue apart from others that had its name.
    pub incarnation: String,
    pub config: QueueConfig,
    pub version: Version,
}

impl Queues {
    /// The queues of this store. Nothing is read yet.
    #[must_use]
    pub fn new(ground: &Ground) -> Self {
        let root = Root {
            ground: ground.clone(),
            key: OnceCell::new(),
            open: Mutex::new(HashMap::new()),
            counts: Mutex::new(HashMap::new()),
        };
        Self { root: Arc::new(root) }
    }

    /// Creates a queue, or opens it when it exists with the same configuration.
    ///
    /// # Errors
    /// [`QueueError::Invalid`] when the configuration makes no sense, [`QueueError::Exists`] when the queue has
    /// another one.
    pub async fn create(&self, name: &str, config: QueueConfig) -> Result<Queue> {
        let name = QueueName::new(name)?;
        config.check(&name)?;
        self.root.check_others(&config, None).await?;
        let environment = &self.root.ground.environment;
        let row = QueueRow {
            incarnation: format!("{:08x}", environment.rng.next_u64() >> 32),
            config: config.clone(),
            version: environment.version(),
        };
        match self.root.store().write(row.put(&name, Expect::Absent)?).await {
            Ok(()) => self.opened(&name, row).await,
            Err(StoreError::Conflict(conflicts)) => match &conflicts.first().current {
                Some(item) => {
                    let row = QueueRow::read(item)?;
                    match row.config.difference(&config) {
                        None => self.opened(&name, row).await,
                        Some(field) => {
                            let name = name.as_str().to_owned();
                            Err(QueueError::Exists { what: "queue", name, field })
                        }
                    }
                }
                None => Err(StoreError::Conflict(conflicts).into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a queue that exists.
    ///
    /// # Errors
    /// [`QueueError::NotFound`] when there is none of this name.
    pub async fn open(&self, name: &str) -> Result<Queue> {
        let name = QueueName::new(name)?;
        let row = self.root.row(&name).await?;
        self.opened(&name, row).await
    }

    /// The names of all queues, in order.
    ///
    /// # Errors
    /// As the store's.
    pub async fn list(&self) -> Result<Vec<QueueName>> {
        let query = Query::new(Partition::new(QUEUES)?);
        let items = collect(self.root.store(), query, LISTED_MAX).await?;
        let name = |item: &Item| {
            let name = String::from_utf8_lossy(item.key.sort.as_bytes());
            QueueName::new(&name)
        };
        items.iter().map(name).collect()
    }

    async fn opened(&self, name: &QueueName, row: QueueRow) -> Result<Queue> {
        let key = self.root.key().await?.to_vec();
        let mut open = self.root.open.lock().unwrap_or_else(PoisonError::into_inner);
        let known = open.get(name).and_then(Weak::upgrade);
        let core = match known.filter(|core| core.incarnation == row.incarnation) {
            Some(core) => {
                core.learned(row);
                core
            }
            None => {
                let core = Arc::new(QueueCore::new(&self.root, name.clone(), row, key));
                open.insert(name.clone(), Arc::downgrade(&core));
                open.retain(|_, core| core.strong_count() > 0);
                core
            }
        };
        Ok(Queue { core })
    }
}

impl Root {
    pub fn store(&self) -> &dyn Store {
        self.ground.store.as_ref()
    }

    pub fn environment(&self) -> &Environment {
        &self.ground.environment
    }

    /// What the last handle of a client left uncounted.
    pub fn take_counts(&self, prefix: &str) -> (Counters, OwnRow) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.remove(prefix).unwrap_or_default()
    }

    /// Keeps what the last handle of a client leaves uncounted.
    pub fn keep_counts(&self, prefix: &str, counters: Counters, own_row: OwnRow) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.len() < COUNTS_KEPT_MAX {
            counts.insert(prefix.to_owned(), (counters, own_row));
        } else {
            tracing::warn!(client = prefix, "too many clients: counts are dropped");
        }
    }

    /// The key of all receipts.
    pub async fn key(&self) -> Result<&[u8]> {
        let made = || receipt_key(self.store(), self.environment());
        Ok(self.key.get_or_try_init(made).await?)
    }

    /// The row of a queue that exists.
    pub async fn row(&self, name: &QueueName) -> Result<QueueRow> {
        match self.store().get(&queue_key(name)?).await? {
            Some(item) => Ok(QueueRow::read(&item)?),
            None => {
                let name = name.as_str().to_owned();
                Err(QueueError::NotFound { what: "queue", name })
            }
        }
    }

    /// Checks the queues that a configuration names, except for those that it named before.
    pub async fn check_others(
        &self,
        config: &QueueConfig,
        known: Option<&QueueConfig>,
    ) -> Result<()> {
        let strict = config.strict.is_some();
        let before: Vec<_> = known.into_iter().flat_map(named).collect();
        for (field, name) in named(config).filter(|named| !before.contains(named)) {
            let other = match self.row(&QueueName::new(name)?).await {
                Err(QueueError::NotFound { .. }) => {
                    return Err(QueueError::invalid(field, format!("{name:?} does not exist")));
                }
                other => other?,
            };
            if other.config.strict.is_some() != strict {
                let problem = format!("{name:?} is not of the same kind (strict or not)");
                return Err(QueueError::invalid(field, problem));
            }
        }
        Ok(())
    }
}

/// The queues that a configuration names, and where.
fn named(config: &QueueConfig) -> impl Iterator<Item = (&'static str, &String)> {
    let dead = config.dead_letters.as_ref().map(|dead| ("dead_letters.queue", &dead.queue));
    let side = config.shedding.as_ref().and_then(|shedding| shedding.side_queue.as_ref());
    dead.into_iter().chain(side.map(|side| ("shedding.side_queue", side)))
}

impl QueueRow {
    pub fn put(&self, name: &QueueName, expect: Expect) -> Result<Write> {
        Ok(Write::put(queue_key(name)?, self.attributes(), expect, self.version))
    }

    pub fn attributes(&self) -> Attributes {
        let config = serde_json::to_string(&self.config).expect("a configuration is plain data");
        Attributes::new().with("id", self.incarnation.as_str()).with("config", config.as_str())
    }

    pub fn read(item: &Item) -> Result<Self, StoreError> {
        let config = serde_json::from_str(item.attributes.text("config")?);
        let config = config.map_err(|error| {
            StoreError::corrupt(format!("queue {}", item.key), error.to_string())
        })?;
        let incarnation = item.attributes.text("id")?.to_owned();
        Ok(Self { incarnation, config, version: item.version })
    }
}

pub(crate) fn queue_key(name: &QueueName) -> Result<Key, StoreError> {
    Key::new(QUEUES, name.as_str().as_bytes().to_vec())
}
