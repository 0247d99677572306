//! Telling something that runs to end.

use std::sync::Arc;

use tokio::sync::watch;

/// Ends what runs with it, once. Clones share it.
#[derive(Debug, Clone)]
pub struct Stop(Arc<watch::Sender<bool>>);

impl Stop {
    /// Not stopped yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(false)))
    }

    /// Stops what runs with it.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    /// Whether it was told to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is told to stop.
    pub async fn stopped(&self) {
        // The sender is here, so that the wait cannot fail.
        let _ = self.0.subscribe().wait_for(|stopped| *stopped).await;
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}
