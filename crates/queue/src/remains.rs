//! What is left of a deleted queue until it is removed.
//!
//! | partition | sort key | attributes |
//! |---|---|---|
//! | `queues-deleted` | the queue's name, `~`, its id | `name`; `id` and `config` as in the row that the queue had |
//!
//! The row is put in the step that deletes the queue's own, and goes when there is nothing left.

use std::sync::Arc;

use millpond_store::{Expect, Item, Key, Partition, Query, StoreError, Write, collect};

use crate::client::Client;
use crate::error::Result;
use crate::names::QueueName;
use crate::queue::QueueCore;
use crate::queues::{QueueRow, Queues};
use crate::worker::trigger_key;

const DELETED: &str = "queues-deleted";

/// Most deleted queues that are listed in one call.
const LISTED_MAX: usize = 1_000_000;

/// What is left of a deleted queue. Nobody can reach it under the queue's name.
#[derive(Debug, Clone)]
#[must_use = "what is left stays until it is removed"]
pub struct Remains {
    pub(crate) core: Arc<QueueCore>,
}

impl Remains {
    /// The name that the queue had.
    #[must_use]
    pub fn name(&self) -> &QueueName {
        &self.core.name
    }

    /// Removes everything. Cut off, it can be called again, also in another process, and by several at once.
    ///
    /// # Errors
    /// As the store's.
    pub async fn remove(&self) -> Result<()> {
        let store = self.core.root.store();
        for id in self.core.clients().await? {
            let client = Client { core: self.core.client(&id)? };
            client.core.remove_all().await?;
            // Last the row that lists the client, so that whoever carries on finds it.
            for key in [trigger_key(client.core.prefix())?, self.core.client_key(&id)?] {
                store.write(Write::delete(key, Expect::Any)).await?;
            }
        }
        let key = key(&self.core.name, &self.core.incarnation)?;
        store.write(Write::delete(key, Expect::Any)).await?;
        Ok(())
    }
}

impl Queues {
    /// What is left of queues whose deletion was cut off, or goes on elsewhere. Whoever deletes queues should ask for it
    /// now and then, and [remove](Remains::remove) it.
    ///
    /// # Errors
    /// As the store's.
    pub async fn remains(&self) -> Result<Vec<Remains>> {
        let query = Query::new(Partition::new(DELETED)?);
        let items = collect(self.root.store(), query, LISTED_MAX).await?;
        let mut all = Vec::with_capacity(items.len());
        for item in &items {
            let (name, row) = read(item)?;
            let key = self.root.key().await?.to_vec();
            let core = Arc::new(QueueCore::new(&self.root, name, row, key));
            all.push(Remains { core });
        }
        Ok(all)
    }
}

/// Remembers that what a queue holds is to be removed.
pub fn put(name: &QueueName, row: &QueueRow) -> Result<Write> {
    let attributes = row.attributes().with("name", name.as_str());
    Ok(Write::put(key(name, &row.incarnation)?, attributes, Expect::Absent, row.version))
}

fn read(item: &Item) -> Result<(QueueName, QueueRow)> {
    Ok((QueueName::new(item.attributes.text("name")?)?, QueueRow::read(item)?))
}

fn key(name: &QueueName, incarnation: &str) -> Result<Key, StoreError> {
    Key::new(DELETED, format!("{name}~{incarnation}").into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::QueueConfig;
    use millpond_store::Version;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn rows_round_trip(name in "[a-z]{1,20}", incarnation in "[0-9a-f]{8}", strict in any::<bool>(), version in any::<u64>()) {
            let config = if strict { QueueConfig::strict() } else { QueueConfig::default() };
            let version = Version::from_u64(version);
            let row = QueueRow { incarnation, config, version };
            let name = QueueName::new(&name).unwrap();
            let (read_name, read_row) = read(&put(&name, &row).unwrap().item().unwrap()).unwrap();
            prop_assert_eq!(read_name, name);
            prop_assert_eq!((read_row.incarnation, read_row.config), (row.incarnation, row.config));
        }
    }
}
