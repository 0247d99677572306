//! Keeping a lease alive while work goes on.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::core::ClientCore;
use super::settle::{Settle, Settled};
use crate::error::QueueError;
use crate::receipt::Receipt;

/// Extends a lease again and again, until it is dropped or the lease is lost.
#[derive(Debug)]
pub struct Heartbeat {
    lost: watch::Receiver<Option<QueueError>>,
    task: JoinHandle<()>,
}

impl Heartbeat {
    pub(super) fn start(core: Arc<ClientCore>, receipt: Receipt, visibility: Duration) -> Self {
        let (tell, lost) = watch::channel(None);
        let task = tokio::spawn(beat(core, receipt, visibility, tell));
        Self { lost, task }
    }

    /// Why the lease was lost, if it was.
    #[must_use]
    pub fn lost(&self) -> Option<QueueError> {
        self.lost.borrow().clone()
    }

    /// Waits until the lease is lost, and says why. Does not end while it is kept.
    pub async fn until_lost(&mut self) -> QueueError {
        loop {
            if let Some(error) = self.lost() {
                return error;
            }
            if self.lost.changed().await.is_err() && self.lost().is_none() {
                std::future::pending::<()>().await;
            }
        }
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn beat(
    core: Arc<ClientCore>,
    receipt: Receipt,
    visibility: Duration,
    tell: watch::Sender<Option<QueueError>>,
) {
    let clock = Arc::clone(&core.queue.root.environment().clock);
    let mut kept_until = clock.monotonic();
    loop {
        clock.sleep(visibility / 3).await;
        let extend = [(receipt.clone(), Settle::Extend(visibility))];
        let outcome = match core.settle(&extend).await {
            Ok(mut all) => all.pop().unwrap_or(Ok(Settled::Already)),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(_) => kept_until = clock.monotonic(),
            // The store may come back before the lease ends.
            Err(error)
                if error.is_transient() && clock.monotonic().since(kept_until) < visibility =>
            {
                tracing::debug!(%error, "a heartbeat failed");
            }
            Err(error) => {
                let _ = tell.send(Some(error));
                return;
            }
        }
    }
}
