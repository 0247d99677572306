//! What is loaded: a queue of a store, or of an endpoint.

use bytes::Bytes;
use millpond_embedded::EmbeddedStore;
use millpond_queue::{Client, Message, QueueConfig, Queues, Receipt, Receive};
use millpond_store::Environment;

use super::super::Failure;
use super::super::open::{Make, open};
use super::super::target::access_key;
use super::BenchArgs;
use super::sqs::{SqsLink, SqsQueue};
use crate::api::{ApiError, Backend};

/// A queue under load.
pub struct Load {
    kind: Kind,
    place: String,
    /// Time, for measuring.
    pub environment: Environment,
}

enum Kind {
    Store(Box<(Client, Queues, Backend)>),
    Endpoint(Box<SqsQueue>),
}

/// One caller's way to the queue.
pub enum Link {
    Store(Client),
    Endpoint(Box<SqsLink>),
}

impl Load {
    /// Makes the queue.
    pub async fn open(args: &BenchArgs) -> Result<Self, Failure> {
        let environment = Environment::system();
        let name = args.queue.clone();
        let name =
            name.unwrap_or_else(|| format!("bench-{:08x}", environment.rng.next_u64() >> 32));
        let (kind, place) = match &args.endpoint {
            Some(url) => {
                let dummy = || ("bench".to_owned(), "bench".to_owned());
                let key = (!args.unsigned).then(|| access_key().unwrap_or_else(dummy));
                let queue =
                    SqsQueue::create(url, key, args.target.ca_file.as_deref(), &name).await?;
                (Kind::Endpoint(Box::new(queue)), url.clone())
            }
            None => {
                let (ground, backend) = open(&args.target, Make::IfMissing).await?;
                let queues = Queues::new(&ground);
                let queue = queues.create(&name, QueueConfig::default()).await.map_err(failed)?;
                let client = queue.main().map_err(failed)?;
                (Kind::Store(Box::new((client, queues, backend))), args.target.store.to_string())
            }
        };
        Ok(Self { kind, place, environment })
    }

    /// Where it is.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// A way to the queue for one caller.
    pub async fn link(&self) -> Result<Link, Failure> {
        Ok(match &self.kind {
            Kind::Store(store) => Link::Store(store.0.clone()),
            Kind::Endpoint(queue) => Link::Endpoint(Box::new(queue.link().await?)),
        })
    }

    /// Deletes the queue, unless it is to be kept, and closes the store.
    pub async fn close(self, keep: bool) {
        let deleted = match self.kind {
            Kind::Endpoint(_) if keep => Ok(()),
            Kind::Endpoint(queue) => queue.remove().await,
            Kind::Store(store) => {
                let (client, queues, backend) = *store;
                let deleted = match (keep, queues.open(client.queue().as_str()).await) {
                    (false, Ok(queue)) => Box::pin(queue.delete()).await.map_err(failed),
                    _ => Ok(()),
                };
                drop((client, queues));
                if let Backend::Embedded(store, _) = backend {
                    EmbeddedStore::close(store).await;
                }
                deleted
            }
        };
        if let Err(failure) = deleted {
            eprintln!("millpond: the queue could not be deleted: {failure}");
        }
    }
}

impl Link {
    /// Sends messages with these bodies.
    pub async fn send(&mut self, bodies: Vec<Vec<u8>>) -> Result<(), Failure> {
        match self {
            Self::Store(client) => {
                let messages =
                    bodies.into_iter().map(|body| Message::new(Bytes::from(body))).collect();
                for outcome in client.send_batch(messages).await.map_err(failed)? {
                    outcome.map_err(failed)?;
                }
                Ok(())
            }
            Self::Endpoint(queue) => queue.send(&bodies).await,
        }
    }

    /// Receives up to so many messages; their receipts and bodies.
    pub async fn receive(&mut self, max: usize) -> Result<Vec<(String, Bytes)>, Failure> {
        match self {
            Self::Store(client) => {
                let got = client.receive(&Receive::up_to(max)).await.map_err(failed)?;
                Ok(got.into_iter().map(|one| (one.receipt.to_string(), one.body)).collect())
            }
            Self::Endpoint(queue) => queue.receive(max).await,
        }
    }

    /// Deletes messages.
    pub async fn delete(&mut self, receipts: Vec<String>) -> Result<(), Failure> {
        match self {
            Self::Store(client) => {
                let receipts: Vec<_> = receipts.into_iter().map(Receipt::from_text).collect();
                for outcome in client.ack_batch(&receipts).await.map_err(failed)? {
                    outcome.map_err(failed)?;
                }
                Ok(())
            }
            Self::Endpoint(queue) => queue.delete(&receipts).await,
        }
    }
}

fn failed(error: impl Into<ApiError>) -> Failure {
    error.into().into()
}
