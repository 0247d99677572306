//! Opening the store that everything stands on, and closing it.

use std::sync::Arc;

use millpond_dynamodb::{
    DynamoDbConfig, DynamoDbStore, ObjectOptions, Objects, Role, TableName, TableOptions,
};
use millpond_embedded::{EmbeddedStore, Options};
use millpond_lanes::Ground;
use millpond_store::{Environment, Meter, Result};

use super::error::ServeError;
use crate::api::Backend;
use crate::config::Config;
use crate::place::StorePlace;
use crate::telemetry::TracedStore;

/// A store that is open.
pub struct Opened {
    pub ground: Ground,
    /// Of DynamoDB.
    pub meter: Option<Meter>,
    embedded: Option<EmbeddedStore>,
    backend: Backend,
}

impl Opened {
    /// Opens what the configuration names.
    pub async fn open(config: &Config, environment: &Environment) -> Result<Self, ServeError> {
        let opened = match &config.store {
            StorePlace::Directory(directory) => {
                let options = Options::new(directory.clone()).durability(config.durability.into());
                EmbeddedStore::open(options, environment).await.map(|store| Self {
                    ground: Ground::new(Arc::new(store.clone()), environment),
                    meter: None,
                    backend: Backend::Embedded(store.clone(), directory.clone()),
                    embedded: Some(store),
                })
            }
            StorePlace::Table(table) => open_table(table, config, environment).await,
        };
        opened.map_err(|source| ServeError::Store { place: config.store.to_string(), source })
    }

    /// The same, with a span for each request to the store that is made for a request whose trace is kept.
    pub fn traced(mut self) -> Self {
        let below = Arc::clone(&self.ground.store);
        self.ground.store = Arc::new(match self.backend {
            Backend::Embedded(..) | Backend::Other => TracedStore::embedded(below),
            Backend::DynamoDb(_) => TracedStore::dynamodb(below),
        });
        self
    }

    /// The store itself, for what only its kind can tell.
    pub fn backend(&self) -> Backend {
        self.backend.clone()
    }

    /// Waits until everything is written and the place is free for others. Nobody else may use the store any more.
    pub async fn close(self) {
        let Self { ground, embedded, backend, .. } = self;
        drop((ground, backend));
        if let Some(store) = embedded {
            store.close().await;
        }
    }
}

async fn open_table(
    table: &TableName,
    config: &Config,
    environment: &Environment,
) -> Result<Opened> {
    let store = DynamoDbStore::open(DynamoDbConfig::new(table.as_str())?, environment).await?;
    if config.create_table {
        let creation = store.admin().create_table(TableOptions::default()).await?;
        tracing::info!(%table, ?creation, "table");
    }
    store.admin().verify(Role::Consumer, TableOptions::default()).await?.require()?;
    let meter = store.meter().clone();
    let backend = Backend::DynamoDb(store.clone());
    let mut ground = Ground::new(Arc::new(store), environment);
    if let Some(url) = &config.objects {
        let Objects { store, prefix } = Objects::open(url, &ObjectOptions::default())?;
        ground = ground.with_objects(millpond_lanes::cargo::Objects::new(store, prefix));
    }
    Ok(Opened { ground, meter: Some(meter), embedded: None, backend })
}
