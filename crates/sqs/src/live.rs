//! What a node has of a queue while it is used: handles, who waits, what is in flight.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use millpond_queue::{Client, Queue};
use tokio::sync::watch;

use crate::error::{Code, Failure, Result};
use crate::flight::Flight;

/// Clients of a queue whose handles are kept, so that they remember where they were.
const CLIENTS_KEPT_MAX: usize = 1_000;

/// What a node has of a queue.
#[derive(Debug)]
pub struct Live {
    pub queue: Queue,
    main: Client,
    clients: Mutex<HashMap<String, Client>>,
    flight: Mutex<Flight>,
    /// Whether the queue was deleted.
    ended: watch::Sender<bool>,
}

impl Live {
    pub fn new(queue: Queue) -> Result<Self> {
        let main = queue.main()?;
        let (ended, _) = watch::channel(false);
        Ok(Self { queue, main, clients: Mutex::default(), flight: Mutex::default(), ended })
    }

    /// The client of this id; the main one's is empty.
    pub fn client(&self, id: &str, has_clients: bool) -> Result<Client> {
        if id.is_empty() {
            return Ok(self.main.clone());
        }
        if !has_clients {
            let text = "The queue is not divided among clients, but the address names one.";
            return Err(Failure::new(Code::InvalidAddress, text));
        }
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(id) {
            return Ok(client.clone());
        }
        let client = self.queue.client(id)?;
        if clients.len() >= CLIENTS_KEPT_MAX {
            clients.clear();
        }
        clients.insert(id.to_owned(), client.clone());
        Ok(client)
    }

    pub fn flight(&self) -> MutexGuard<'_, Flight> {
        self.flight.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells who waits that the queue is gone.
    pub fn end(&self) {
        self.ended.send_replace(true);
    }

    pub fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    /// Returns when the queue is gone.
    pub async fn until_ended(&self) {
        let mut ended = self.ended.subscribe();
        // The sender lives as long as this.
        let _ = ended.wait_for(|ended| *ended).await;
    }
}
