//! Receiving, so that a client that hangs up is not handed messages.
//!
//! The receive runs in a task of its own. When whoever waits for it goes away, it is told to stop, and what it has
//! claimed is given back as if it had never been received.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use millpond_queue::{Client, Delivery, QueueError, Receipt, Receive};
use tokio::sync::oneshot;

use crate::live::Live;
use crate::sqs::Inner;
use crate::watch::Watch;

type Received = Result<Vec<Delivery>, QueueError>;

/// Receives messages. When the future is dropped, none of them is lost or counted as received.
pub async fn receive(
    inner: &Arc<Inner>,
    live: &Arc<Live>,
    client: &Client,
    ask: Receive,
    watch: Option<&Arc<dyn Watch>>,
) -> Received {
    let (sender, receiver) = oneshot::channel();
    let back = GiveBack { inner: Arc::clone(inner), client: client.clone() };
    let work = work(Arc::clone(live), back.clone(), ask, sender);
    match watch {
        Some(watch) => tokio::spawn(watch.carry(Box::pin(work))),
        None => tokio::spawn(work),
    };
    let mut wait = Waiting { receiver, back, is_over: false };
    let received = (&mut wait.receiver).await;
    wait.is_over = true;
    // The task ends without an answer only when the runtime does.
    received.unwrap_or_else(|_| Ok(Vec::new()))
}

async fn work(
    live: Arc<Live>,
    back: GiveBack,
    mut ask: Receive,
    mut sender: oneshot::Sender<Received>,
) {
    let inner = Arc::clone(&back.inner);
    if inner.is_closed() {
        ask.wait = std::time::Duration::ZERO;
    }
    let waits = Counted::new(&inner, !ask.wait.is_zero());
    let stop = async {
        tokio::select! {
            biased;
            () = sender.closed() => {}
            () = live.until_ended() => {}
            () = inner.until_closed() => {}
        }
    };
    let received = back.client.receive_until(&ask, stop).await;
    drop(waits);
    if let Err(Ok(unwanted)) = sender.send(received) {
        back.give_back(unwanted).await;
    }
}

/// Counts a request that waits for as long as it lives.
struct Counted<'a> {
    inner: &'a Inner,
    waits: bool,
}

impl<'a> Counted<'a> {
    fn new(inner: &'a Inner, waits: bool) -> Self {
        inner.counted.waiting.fetch_add(usize::from(waits), Ordering::Relaxed);
        Self { inner, waits }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.inner.counted.waiting.fetch_sub(usize::from(self.waits), Ordering::Relaxed);
    }
}

/// Gives messages back that nobody wants any more.
#[derive(Debug, Clone)]
struct GiveBack {
    inner: Arc<Inner>,
    client: Client,
}

impl GiveBack {
    async fn give_back(&self, unwanted: Vec<Delivery>) {
        if unwanted.is_empty() {
            return;
        }
        let count = u64::try_from(unwanted.len()).unwrap_or_default();
        self.inner.counted.returned.fetch_add(count, Ordering::Relaxed);
        let receipts: Vec<Receipt> = unwanted.into_iter().map(|one| one.receipt).collect();
        if let Err(error) = self.client.return_batch(&receipts).await {
            // They come back by themselves when their time is over.
            tracing::warn!(%error, count, "messages of a client that hung up are not given back");
        }
    }
}

/// The wait for an answer. Dropped before it is over, it gives back what came too late.
struct Waiting {
    receiver: oneshot::Receiver<Received>,
    back: GiveBack,
    is_over: bool,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        // From here on the task keeps what it has; what it has sent already is taken back here.
        self.receiver.close();
        if let Ok(Ok(unwanted)) = self.receiver.try_recv() {
            let back = self.back.clone();
            // When the process ends there is nobody left to do it; they come back when their time is over.
            if let Ok(runtime) = tokio::runtime::Handle::try_current() {
                runtime.spawn(async move { back.give_back(unwanted).await });
            }
        }
    }
}
