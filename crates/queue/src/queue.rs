//! One queue, and its clients.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use millpond_store::{
    Expect, Item, Key, Monotonic, Partition, Query, SortKey, SortRange, StoreError, Write, collect,
};

use crate::client::{Client, ClientCore};
use crate::config::QueueConfig;
use crate::error::{QueueError, Result};
use crate::limits::CONFIG_AGE_MAX;
use crate::names::{ClientId, QueueName};
use crate::queues::{QueueRow, Root, queue_key};
use crate::remains::{self, Remains};

/// Most clients that are listed in one call.
const LISTED_MAX: usize = 10_000_000;

/// A queue. Its messages belong to [clients](Self::client), which never see each other's. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Queue {
    pub(crate) core: Arc<QueueCore>,
}

#[derive(Debug)]
pub(crate) struct QueueCore {
    pub root: Arc<Root>,
    pub name: QueueName,
    pub incarnation: String,
    pub key: Vec<u8>,
    row: Mutex<Known>,
    clients: Mutex<HashMap<ClientId, Weak<ClientCore>>>,
}

#[derive(Debug)]
struct Known {
    row: QueueRow,
    config: Arc<QueueConfig>,
    /// When it was read; nothing when it must be read again.
    read: Option<Monotonic>,
}

impl Queue {
    /// Its name.
    #[must_use]
    pub fn name(&self) -> &QueueName {
        &self.core.name
    }

    /// What tells it apart from other queues that had, or will have, its name.
    #[must_use]
    pub fn incarnation(&self) -> &str {
        &self.core.incarnation
    }

    /// The client of this id. There is nothing to create: it exists from its first message on.
    ///
    /// # Errors
    /// [`QueueError::Invalid`] or [`QueueError::TooLarge`] when the id cannot be one.
    pub fn client(&self, id: &str) -> Result<Client> {
        let id = ClientId::new(id)?;
        Ok(Client { core: self.core.client(&id)? })
    }

    /// The main client, for queues that need only one.
    ///
    /// # Errors
    /// As [`client`](Self::client); none in practice.
    pub fn main(&self) -> Result<Client> {
        self.client("")
    }

    /// The configuration, as of at most ten seconds ago.
    ///
    /// # Errors
    /// [`QueueError::NotFound`] when the queue was deleted.
    pub async fn config(&self) -> Result<Arc<QueueConfig>> {
        self.core.config().await
    }

    /// Changes the configuration. Other processes notice within ten seconds.
    ///
    /// # Errors
    /// [`QueueError::Invalid`] when it makes no sense, or changes what cannot be changed.
    pub async fn update_config(&self, config: QueueConfig) -> Result<()> {
        config.check(&self.core.name)?;
        // A queue that it names already may have been deleted since: that must not keep the rest from being changed.
        let known = self.core.root.row(&self.core.name).await?.config;
        self.core.root.check_others(&config, Some(&known)).await?;
        loop {
            let current = self.core.root.row(&self.core.name).await?;
            self.core.check_incarnation(&current)?;
            if let Some(field) = current.config.fixed_field_of(&config) {
                return Err(QueueError::invalid(field, "cannot be changed later"));
            }
            let version = self.core.root.environment().version();
            let row = QueueRow { config: config.clone(), version, ..current.clone() };
            let put = row.put(&self.core.name, Expect::Version(current.version))?;
            match self.core.root.store().write(put).await {
                Ok(()) => {
                    self.core.learned(row);
                    return Ok(());
                }
                // Another change came between: judge against that one.
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The ids of all clients that were ever sent to, in order.
    ///
    /// # Errors
    /// As the store's.
    pub async fn clients(&self) -> Result<Vec<ClientId>> {
        self.core.clients().await
    }

    /// Deletes the queue and everything in it. A queue that is created under its name later is another one.
    ///
    /// # Errors
    /// [`QueueError::NotFound`] when it was deleted already.
    pub async fn delete(&self) -> Result<()> {
        self.unlink(Vec::new()).await?.remove().await
    }

    /// The first step of a deletion: afterwards there is no queue of this name, and what was in it is left to be
    /// [removed](Remains::remove), here or by whoever finds it among the [remains](crate::Queues::remains). In the same
    /// step `also` is written.
    ///
    /// # Errors
    /// [`QueueError::NotFound`] when it was deleted already; a conflict when the queue was changed meanwhile, or `also`
    /// finds something else than it expects.
    pub async fn unlink(&self, also: Vec<Write>) -> Result<Remains> {
        let row = self.core.root.row(&self.core.name).await?;
        self.core.check_incarnation(&row)?;
        let gone = Write::delete(queue_key(&self.core.name)?, Expect::Version(row.version));
        let version = self.core.root.environment().version();
        let left = remains::put(&self.core.name, &QueueRow { version, ..row })?;
        let writes = [gone, left].into_iter().chain(also).collect();
        self.core.root.store().write_all(writes).await?;
        self.core.forget_config();
        Ok(Remains { core: Arc::clone(&self.core) })
    }
}

const CLIENT_PREFIX: &[u8] = b"c/";

impl QueueCore {
    pub fn new(root: &Arc<Root>, name: QueueName, row: QueueRow, key: Vec<u8>) -> Self {
        let read = Some(root.environment().clock.monotonic());
        let config = Arc::new(row.config.clone());
        Self {
            root: Arc::clone(root),
            name,
            incarnation: row.incarnation.clone(),
            key,
            row: Mutex::new(Known { row, config, read }),
            clients: Mutex::new(HashMap::new()),
        }
    }

    pub fn client(self: &Arc<Self>, id: &ClientId) -> Result<Arc<ClientCore>> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(id).and_then(Weak::upgrade) {
            return Ok(client);
        }
        let client = Arc::new(ClientCore::open(self, id.clone())?);
        if clients.len().is_power_of_two() {
            clients.retain(|_, client| client.strong_count() > 0);
        }
        clients.insert(id.clone(), Arc::downgrade(&client));
        Ok(client)
    }

    /// The ids of all clients that were ever sent to, in order.
    pub async fn clients(&self) -> Result<Vec<ClientId>> {
        let query =
            Query::new(self.partition()?).range(SortRange::prefix(SortKey::new(CLIENT_PREFIX)?));
        let items = collect(self.root.store(), query, LISTED_MAX).await?;
        let id = |item: &Item| ClientId::new(item.attributes.text("client")?);
        items.iter().map(id).collect()
    }

    /// The configuration was read or written just now.
    pub fn learned(&self, row: QueueRow) {
        let read = self.root.environment().clock.monotonic();
        let mut known = self.row.lock().unwrap_or_else(PoisonError::into_inner);
        if known.row.version != row.version {
            known.config = Arc::new(row.config.clone());
            known.row = row;
        }
        known.read = Some(read);
    }

    fn forget_config(&self) {
        let mut known = self.row.lock().unwrap_or_else(PoisonError::into_inner);
        known.read = None;
    }

    /// The configuration as last seen.
    pub fn known_config(&self) -> Arc<QueueConfig> {
        let known = self.row.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&known.config)
    }

    /// The configuration, read again when it is old.
    pub async fn config(&self) -> Result<Arc<QueueConfig>> {
        {
            let now = self.root.environment().clock.monotonic();
            let known = self.row.lock().unwrap_or_else(PoisonError::into_inner);
            if known.read.is_some_and(|read| now.since(read) < CONFIG_AGE_MAX) {
                return Ok(Arc::clone(&known.config));
            }
        }
        let row = self.root.row(&self.name).await?;
        self.check_incarnation(&row)?;
        self.learned(row);
        Ok(self.known_config())
    }

    fn check_incarnation(&self, row: &QueueRow) -> Result<()> {
        if row.incarnation == self.incarnation {
            return Ok(());
        }
        Err(QueueError::NotFound { what: "queue", name: format!("{} (it was deleted)", self.name) })
    }

    /// The beginning of all names that this queue has in the store.
    pub fn prefix(&self) -> String {
        format!("q/{}~{}", self.name, self.incarnation)
    }

    pub fn partition(&self) -> Result<Partition, StoreError> {
        Partition::new(self.prefix())
    }

    pub fn client_key(&self, id: &ClientId) -> Result<Key, StoreError> {
        let sort = [CLIENT_PREFIX, id.as_str().as_bytes()].concat();
        Ok(Key::of(self.partition()?, SortKey::new(sort)?))
    }
}
