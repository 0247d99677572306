//! What must be done now and then: removing messages that have ended, from queues that nobody receives from too, and what
//! is left of deleted queues.

use std::sync::{Arc, Weak};

use millpond_queue::{Client, Queue, QueueError, Remains};

use crate::limits::{MAINTAIN_ALL_ROUNDS, MAINTAIN_EVERY, MAINTAIN_PAID_EVERY, MAINTAIN_STEPS_MAX};
use crate::registry::Registry;
use crate::sqs::Closing;

/// Looks after the queues for as long as they are served.
pub async fn run(registry: Weak<Registry>, closing: Closing) {
    let mut round: u32 = 0;
    loop {
        let Some((clock, every)) = registry.upgrade().map(|registry| {
            let paid = registry.ground.store.profile().relaxed_cheaper;
            let every = if paid { MAINTAIN_PAID_EVERY } else { MAINTAIN_EVERY };
            (Arc::clone(&registry.ground.environment.clock), every)
        }) else {
            return;
        };
        tokio::select! {
            biased;
            () = closing.until() => return,
            () = clock.sleep(every) => {}
        }
        let Some(registry) = registry.upgrade() else { return };
        round = round.wrapping_add(1);
        tokio::select! {
            biased;
            () = closing.until() => return,
            () = deleted(&registry) => {}
        }
        if round.is_multiple_of(MAINTAIN_ALL_ROUNDS) {
            all(&registry, &closing).await;
        } else {
            for live in registry.lives() {
                queue(&live.queue, &closing).await;
            }
        }
    }
}

/// Carries on with deletions that were cut off.
async fn deleted(registry: &Registry) {
    match registry.queues.remains().await {
        Ok(all) => {
            for remains in all {
                remove(&remains).await;
            }
        }
        Err(error) => tracing::warn!(%error, "deleted queues are not looked for"),
    }
}

/// Removes what is left of a deleted queue; the next round carries on with what cannot be removed now.
pub async fn remove(remains: &Remains) {
    if let Err(error) = remains.remove().await {
        tracing::warn!(queue = %remains.name(), %error, "a deleted queue is not removed yet");
    }
}

async fn all(registry: &Registry, closing: &Closing) {
    let names = match registry.queues.list().await {
        Ok(names) => names,
        Err(error) => {
            tracing::warn!(%error, "queues are not looked after");
            return;
        }
    };
    for name in names {
        match registry.queues.open(name.as_str()).await {
            Ok(found) => queue(&found, closing).await,
            // It was deleted meanwhile.
            Err(QueueError::NotFound { .. }) => {}
            Err(error) => tracing::warn!(queue = %name, %error, "a queue is not looked after"),
        }
    }
}

async fn queue(queue: &Queue, closing: &Closing) {
    let clients = match queue.clients().await {
        Ok(clients) => clients,
        Err(error) => {
            tracing::warn!(queue = %queue.name(), %error, "a queue is not looked after");
            return;
        }
    };
    for id in clients {
        let Ok(found) = queue.client(id.as_str()) else { continue };
        tokio::select! {
            biased;
            () = closing.until() => return,
            () = client(&found) => {}
        }
    }
}

async fn client(client: &Client) {
    for _ in 0..MAINTAIN_STEPS_MAX {
        match client.maintain().await {
            Ok(done) if done.more => {}
            Ok(_) | Err(QueueError::NotFound { .. }) => return,
            Err(error) => {
                tracing::warn!(queue = %client.queue(), %error, "a queue is not looked after");
                return;
            }
        }
    }
}
