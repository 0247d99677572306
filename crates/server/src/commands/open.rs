//! Opening a store by its place.

use std::sync::Arc;

use millpond_dynamodb::{DynamoDbConfig, DynamoDbStore, ObjectOptions, Objects};
use millpond_embedded::EmbeddedStore;
use millpond_lanes::Ground;
use millpond_lanes::cargo::Objects as Cargo;
use millpond_store::{Environment, Store, StoreError};

use super::Failure;
use super::target::Target;
use crate::api::{Backend, ErrorBody};
use crate::place::StorePlace;

/// Whether a store that is not there is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Make {
    /// It is made.
    IfMissing,
    /// It is an error.
    No,
}

/// Opens the store of a command.
pub async fn open(target: &Target, make: Make) -> Result<(Ground, Backend), Failure> {
    let environment = Environment::system();
    let (store, backend): (Arc<dyn Store>, Backend) = match &target.store {
        StorePlace::Directory(directory) => {
            if make == Make::No && !directory.exists() {
                let message = format!(
                    "there is no store at {}; name one with --store, or make one with `millpond store create`",
                    directory.display()
                );
                let error = ErrorBody { code: "not_found".to_owned(), message, field: None };
                return Err(Failure::Refused(error));
            }
            let store = EmbeddedStore::open_at(directory, &environment).await.map_err(in_use)?;
            (Arc::new(store.clone()), Backend::Embedded(store, directory.clone()))
        }
        StorePlace::Table(table) => {
            let config = DynamoDbConfig::new(table.as_str())?;
            let store = DynamoDbStore::open(config, &environment).await?;
            (Arc::new(store.clone()), Backend::DynamoDb(store))
        }
    };
    let mut ground = Ground::new(store, &environment);
    if let Some(url) = &target.objects {
        let objects = Objects::open(url, &ObjectOptions::default())?;
        ground = ground.with_objects(Cargo::new(objects.store, objects.prefix));
    }
    Ok((ground, backend))
}

/// A directory that a server uses can be worked with through that server.
fn in_use(error: StoreError) -> Failure {
    match &error {
        StoreError::Misconfigured { problem, .. } if problem.contains("open already") => {
            let message =
                format!("{error}; or go through the server that uses it, with --server URL");
            Failure::Refused(ErrorBody { code: "unavailable".to_owned(), message, field: None })
        }
        _ => error.into(),
    }
}
