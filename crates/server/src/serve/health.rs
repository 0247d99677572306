//! Whether the server is fit to answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use millpond_store::{Clock, Key, Monotonic, Store, StoreError};
use tokio::sync::Mutex;

use crate::http::limits::{HEALTH_LOOK_EVERY, READY_FOR, READY_TIMEOUT};
use crate::place::StorePlace;

/// The item that is asked for. Nothing is ever stored there.
const PROBE_PARTITION: &str = "millpond/health";

/// Asks the store whether it answers, and not more often than needed.
pub struct Health {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    stopping: AtomicBool,
    last: Mutex<Option<(Monotonic, Result<(), String>)>>,
}

impl Health {
    /// `clock` is the machine's.
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, stopping: AtomicBool::new(false), last: Mutex::new(None) }
    }

    /// From here on the server takes no more work.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Nothing when the server is ready, or why it is not.
    pub async fn ready(&self) -> Result<(), String> {
        if self.stopping.load(Ordering::Relaxed) {
            return Err("the server is stopping".to_owned());
        }
        let mut last = self.last.lock().await;
        let now = self.clock.monotonic();
        if let Some((at, answer)) = &*last
            && now.since(*at) < READY_FOR
        {
            return answer.clone();
        }
        let answer = tokio::select! {
            biased;
            answer = self.probe() => answer.map_err(|error| error.to_string()),
            () = self.clock.sleep(READY_TIMEOUT) => Err("the store does not answer".to_owned()),
        };
        *last = Some((now, answer.clone()));
        answer
    }

    /// Comes back when the store has stopped for good: only a new start can decide what is there. A table never does, and
    /// each question to it costs.
    pub async fn poisoned(&self, place: &StorePlace) -> StoreError {
        if matches!(place, StorePlace::Table(_)) {
            return std::future::pending().await;
        }
        loop {
            self.clock.sleep(HEALTH_LOOK_EVERY).await;
            if let Err(error @ StoreError::Poisoned { .. }) = self.probe().await {
                return error;
            }
        }
    }

    async fn probe(&self) -> Result<(), StoreError> {
        self.store.get(&Key::new(PROBE_PARTITION, b"ready".as_slice())?).await.map(|_| ())
    }
}
