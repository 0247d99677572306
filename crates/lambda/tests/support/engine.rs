//! A DynamoDB engine in the test's process, and what the test itself does with what functions stored there.

use std::net::SocketAddr;
use std::sync::Arc;

use dynoxide::Database;
use millpond_consumer::DeadLetter;
use millpond_dynamodb::{DynamoDbConfig, DynamoDbStore, TableOptions};
use millpond_lanes::Ground;
use millpond_queue::Queues;
use millpond_store::Environment;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

pub const TABLE: &str = "millpond";
pub const REGION: &str = "eu-central-1";

pub struct Engine {
    pub address: SocketAddr,
    pub environment: Environment,
    pub ground: Ground,
    _stop: oneshot::Sender<()>,
}

impl Engine {
    /// An engine with Millpond's table.
    pub async fn start() -> Self {
        let engine = Self::without_table().await;
        let store = engine.store().await;
        store.admin().create_table(TableOptions::default()).await.unwrap();
        engine
    }

    pub async fn without_table() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        let database = Database::memory().unwrap();
        tokio::spawn(dynoxide::server::serve_with_shutdown(listener, database, async {
            // Told or dropped: either way it is time to go.
            let _ = stopped.await;
        }));
        let environment = Environment::system();
        let store = open(address, &environment).await;
        let ground = Ground::new(Arc::new(store), &environment);
        Self { address, environment, ground, _stop: stop }
    }

    pub async fn store(&self) -> DynamoDbStore {
        open(self.address, &self.environment).await
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn queues(&self) -> Queues {
        Queues::new(&self.ground)
    }

    /// The bodies in a queue, oldest first; none when there is no queue.
    pub async fn bodies(&self, queue: &str) -> Vec<String> {
        let Ok(queue) = self.queues().open(queue).await else { return Vec::new() };
        let peeked = queue.main().unwrap().peek(1_000).await.unwrap();
        peeked.iter().map(|one| String::from_utf8_lossy(&one.message.body).into_owned()).collect()
    }

    /// The letters in the usual queue for them.
    pub async fn letters(&self) -> Vec<DeadLetter> {
        let bodies = self.bodies("dead-letters").await;
        bodies.iter().map(|body| DeadLetter::decode(body.as_bytes()).unwrap()).collect()
    }
}

async fn open(address: SocketAddr, environment: &Environment) -> DynamoDbStore {
    let config = DynamoDbConfig::new(TABLE)
        .unwrap()
        .endpoint(format!("http://{address}"))
        .region(REGION)
        .credentials("test", "test");
    DynamoDbStore::open(config, environment).await.unwrap()
}
