//! One message in work, or several that are handed over together or one after the other.

use std::any::Any;
use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::join_all;
use tokio::sync::watch;

use super::tally::Fate;
use super::{Outcome, Worker};
use crate::client::Heartbeat;
use crate::message::Delivery;

/// A message, and what keeps its lease alive.
struct Held {
    delivery: Delivery,
    heartbeat: Option<Heartbeat>,
}

/// What is to be done with a message.
#[derive(Debug, Clone)]
pub(super) enum Verdict {
    /// What the handler said.
    Outcome(Outcome),
    /// It was never handed to the handler, and is given back as if it had not been received.
    Untouched,
    /// Its lease was lost: nothing can be done.
    Lost,
}

/// Works on messages, one step after the other; the messages of a step go to one call of the handler.
pub(super) struct Task {
    pub worker: Arc<Worker>,
    pub steps: Vec<Vec<Delivery>>,
    /// How long a lease is, when leases are to be kept alive.
    pub visibility: Option<Duration>,
    /// Turns true when messages that are not finished are to be given back.
    pub release: watch::Receiver<bool>,
}

impl Task {
    pub async fn run(mut self) -> Vec<Fate> {
        let steps: Vec<Vec<Held>> =
            std::mem::take(&mut self.steps).into_iter().map(|step| self.hold(step)).collect();
        let mut fates = Vec::new();
        // Groups with a message that is not finished: those behind it must not overtake it.
        let mut blocked: HashSet<Option<String>> = HashSet::new();
        for step in steps {
            let in_order = step.len() == 1 || !blocked.is_empty();
            let (back, step): (Vec<Held>, Vec<Held>) = step
                .into_iter()
                .partition(|held| in_order && blocked.contains(&held.delivery.group));
            let back = back.into_iter().map(|held| (held, Verdict::Untouched)).collect();
            fates.extend(self.settle(back).await);
            if step.is_empty() {
                continue;
            }
            let ended = self.call(step).await;
            for (held, verdict) in &ended {
                if !matches!(verdict, Verdict::Outcome(Outcome::Done(_) | Outcome::Fail(_))) {
                    blocked.insert(held.delivery.group.clone());
                }
            }
            fates.extend(self.settle(ended).await);
        }
        fates
    }

    fn hold(&self, step: Vec<Delivery>) -> Vec<Held> {
        let held = |delivery: Delivery| {
            let beat =
                |visibility| self.worker.client.heartbeat(&delivery.receipt, visibility).ok();
            let heartbeat = self.visibility.and_then(beat);
            Held { delivery, heartbeat }
        };
        step.into_iter().map(held).collect()
    }

    /// Calls the handler, and says what is to be done with each message.
    async fn call(&mut self, mut step: Vec<Held>) -> Vec<(Held, Verdict)> {
        let clock = Arc::clone(&self.worker.client.core.queue.root.environment().clock);
        let deliveries = step.iter().map(|held| held.delivery.clone()).collect();
        let handling = self.worker.handling.clone();
        let mut is_called = false;
        let called = &mut is_called;
        let work = AssertUnwindSafe(async move {
            *called = true;
            handling.call(deliveries).await
        });
        let work = work.catch_unwind();
        let timeout = self.worker.options.timeout;
        let time_out = async {
            match timeout {
                Some(timeout) => clock.sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let outcome = tokio::select! {
            biased;
            _ = self.release.wait_for(|release| *release) => Err(Verdict::Outcome(Outcome::Release)),
            () = until_lost(&mut step) => Err(Verdict::Lost),
            outcomes = work => outcomes.map_err(|panic| Verdict::Outcome(panicked(panic.as_ref()))),
            () = time_out => Err(Verdict::Outcome(timed_out(timeout))),
        };
        let outcome = if is_called { outcome } else { Err(Verdict::Untouched) };
        let mut outcomes = outcome.as_ref().ok().cloned().unwrap_or_default().into_iter();
        let unsaid = || Outcome::retry("the handler did not say what became of it");
        step.into_iter()
            .map(|held| match &outcome {
                Ok(_) => (held, Verdict::Outcome(outcomes.next().unwrap_or_else(unsaid))),
                Err(all) => (held, all.clone()),
            })
            .collect()
    }

    /// Tells the queue, of all at the same time: those of one segment are one write.
    async fn settle(&self, ended: Vec<(Held, Verdict)>) -> Vec<Fate> {
        let each = ended.into_iter().map(|(held, verdict)| async move {
            self.worker.settle(&held.delivery, verdict, held.heartbeat.as_ref()).await
        });
        join_all(each).await
    }
}

/// Waits until a lease is lost: then the work on it is in vain, unless there are others in the same call.
async fn until_lost(step: &mut [Held]) {
    match step {
        [Held { heartbeat: Some(heartbeat), .. }] => {
            let error = heartbeat.until_lost().await;
            tracing::warn!(%error, "a message was lost while it was worked on");
        }
        _ => std::future::pending().await,
    }
}

fn timed_out(timeout: Option<Duration>) -> Outcome {
    Outcome::retry(format!("the handler took longer than {:?}", timeout.unwrap_or_default()))
}

fn panicked(panic: &(dyn Any + Send)) -> Outcome {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    tracing::error!(panic = text, "a handler panicked");
    Outcome::retry(format!("the handler panicked: {text}"))
}
