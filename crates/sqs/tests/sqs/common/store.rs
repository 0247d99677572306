//! The store that tests run on: memory, or, for the whole process, the one that a variable names.

use std::any::Any;
use std::sync::Arc;

use millpond_dynamodb::{DynamoDbConfig, DynamoDbStore, TableOptions};
use millpond_embedded::{Durability, EmbeddedStore, Maintenance, Options};
use millpond_store::{Environment, MemoryStore, Store};
use millpond_testing::{Watched, with_real_waits};

/// Names the store.
pub const VARIABLE: &str = "MILLPOND_SQS_TEST_STORE";

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Memory,
    Embedded,
    DynamoDb,
}

impl Kind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Embedded => "embedded",
            Self::DynamoDb => "dynamodb",
        }
    }

    /// What this process runs on.
    pub fn chosen() -> Self {
        let Ok(name) = std::env::var(VARIABLE) else { return Self::Memory };
        let all = [Self::Memory, Self::Embedded, Self::DynamoDb];
        all.into_iter().find(|kind| kind.name() == name).expect("memory, embedded or dynamodb")
    }
}

/// A store, and what goes away with it.
pub struct Opened {
    pub store: Arc<dyn Store>,
    pub watched: Option<Watched>,
    pub kept: Option<Arc<dyn Any + Send + Sync>>,
}

/// Opens a store of its own.
pub async fn open(kind: Kind, environment: &Environment) -> Opened {
    let (store, kept): (Arc<dyn Store>, Arc<dyn Any + Send + Sync>) = match kind {
        Kind::Memory => {
            let store = Arc::new(MemoryStore::new(environment));
            return Opened { store, watched: None, kept: None };
        }
        Kind::Embedded => {
            let directory = tempfile::tempdir().unwrap();
            let options = Options::new(directory.path().join("store"))
                .maintenance(Maintenance::Manual)
                .durability(Durability::UnsafeNoSync);
            let store = EmbeddedStore::open(options, environment).await.unwrap();
            (Arc::new(store), Arc::new(directory))
        }
        Kind::DynamoDb => (Arc::new(over_http(environment).await), Arc::new(())),
    };
    let watched = Watched::new(store);
    Opened { store: Arc::new(watched.clone()), watched: Some(watched), kept: Some(kept) }
}

/// A table in an engine of its own, which ends with the test's runtime.
async fn over_http(environment: &Environment) -> DynamoDbStore {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let database = dynoxide::Database::memory().unwrap();
    tokio::spawn(dynoxide::server::serve_with_shutdown(
        listener,
        database,
        std::future::pending::<()>(),
    ));
    let config = DynamoDbConfig::new("queues")
        .unwrap()
        .endpoint(&endpoint)
        .region("eu-central-1")
        .credentials("test", "test");
    let environment = with_real_waits(environment);
    let store = DynamoDbStore::open(config, &environment).await.unwrap();
    store.admin().create_table(TableOptions::default()).await.unwrap();
    store
}
