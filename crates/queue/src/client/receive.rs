//! Receiving.

use std::sync::Arc;
use std::time::Duration;

use futures::future::select_all;
use millpond_store::{ChangeHint, Timestamp};

use super::claim::ShedRule;
use super::core::{ClientCore, Views, lock};
use super::rounds::{Call, by_group};
use crate::config::{Order, QueueConfig, between, within};
use crate::counters::Event;
use crate::error::{QueueError, Result};
use crate::lane::QueueLane;
use crate::limits::{
    BEHIND_GROUPS_MAX, LOOK_BACK, RECEIVE_MAX, VISIBILITY_MAX, VISIBILITY_MIN, WAIT_MAX,
    WORKER_BYTES_MAX,
};
use crate::message::{Delivery, check_id};
use crate::origin::MoveReason;

/// What to receive.
#[derive(Debug, Clone, PartialEq)]
pub struct Receive {
    /// Most messages. Default: 1.
    pub max: usize,
    /// Fewest messages to wait for: with fewer, the call waits as long as it may, and then returns what there is.
    /// Default: 1.
    pub min: usize,
    /// How long to wait for messages. Default: not at all.
    pub wait: Duration,
    /// How long they are invisible to others. Default: as the queue says.
    pub visibility: Option<Duration>,
    /// Which come first. Default: as the queue says.
    pub order: Option<Order>,
    /// In a strict queue, a call that is made again with the same id within five minutes gets the same messages, those
    /// that are still on loan and whose leases were not changed; their leases begin anew. Default: none.
    pub attempt: Option<String>,
    /// Groups whose messages come behind all others, in a queue that is not strict: those that take more than their
    /// share. Those named first come first among them. None is throttled: when nothing else waits, they are received.
    /// Default: none.
    pub behind: Vec<String>,
    /// Who receives, to be kept with the task's status. Default: nobody in particular.
    pub worker: String,
}

impl Default for Receive {
    fn default() -> Self {
        Self {
            max: 1,
            min: 1,
            wait: Duration::ZERO,
            visibility: None,
            order: None,
            attempt: None,
            behind: Vec::new(),
            worker: String::new(),
        }
    }
}

impl Receive {
    /// Up to this many messages.
    #[must_use]
    pub fn up_to(max: usize) -> Self {
        Self { max, ..Self::default() }
    }

    /// The same, waiting up to this long.
    #[must_use]
    pub fn wait(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// The same with this visibility timeout.
    #[must_use]
    pub fn visibility(self, visibility: Duration) -> Self {
        Self { visibility: Some(visibility), ..self }
    }

    /// The same in this order.
    #[must_use]
    pub fn order(self, order: Order) -> Self {
        Self { order: Some(order), ..self }
    }

    fn check(&self, config: &QueueConfig) -> Result<()> {
        between("max", self.max, 1, RECEIVE_MAX)?;
        between("min", self.min, 0, self.max)?;
        within("wait", self.wait, Duration::ZERO, WAIT_MAX)?;
        if let Some(visibility) = self.visibility {
            within("visibility", visibility, VISIBILITY_MIN, VISIBILITY_MAX)?;
        }
        if let Some(order) = self.order {
            config.check_order(order)?;
        }
        between("behind", self.behind.len(), 0, BEHIND_GROUPS_MAX)?;
        check_id("attempt", self.attempt.as_deref())?;
        QueueError::check_bytes("worker", self.worker.len(), WORKER_BYTES_MAX)
    }
}

/// Why a receive found no more than it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Seen {
    /// Limits allow no more before then.
    pub throttled_until: Option<Timestamp>,
    /// Not all of the queue was looked at.
    pub unfinished: bool,
}

impl ClientCore {
    pub async fn receive(self: &Arc<Self>, ask: &Receive) -> Result<Vec<Delivery>> {
        let never = std::future::pending();
        self.receive_until(ask, never, &mut Seen::default()).await
    }

    /// Receives, and ends a wait when told to stop. Unlike a call that is dropped, it loses nothing it has claimed.
    pub async fn receive_until(
        self: &Arc<Self>,
        ask: &Receive,
        stop: impl Future<Output = ()>,
        seen: &mut Seen,
    ) -> Result<Vec<Delivery>> {
        tokio::pin!(stop);
        let config = self.queue.config().await?;
        ask.check(&config)?;
        let clock = Arc::clone(&self.queue.root.environment().clock);
        let began = clock.monotonic();
        let left = || ask.wait.saturating_sub(clock.monotonic().since(began));
        // An attempt that is made again gets what it got, and no more.
        let enough = if ask.attempt.is_some() { 1 } else { ask.min.max(1) };
        let mut got = self.look(ask, ask.max, seen).await?;
        if got.len() >= enough || left().is_zero() {
            return Ok(got);
        }
        let turn = tokio::select! {
            biased;
            () = &mut stop => return Ok(got),
            turn = self.turn.lock() => turn,
            () = clock.sleep(left()) => return Ok(got),
        };
        // Asked for before looking, so that what comes in between is noticed.
        let mut hints: Vec<ChangeHint> =
            self.known_lanes().iter().map(QueueLane::changed).collect();
        loop {
            match self.look(ask, ask.max - got.len(), seen).await {
                Ok(more) => got.extend(more),
                // What is on loan is handed out, whatever goes wrong with the rest.
                Err(error) if got.is_empty() => return Err(error),
                Err(_) => return Ok(got),
            }
            if got.len() >= enough || left().is_zero() {
                drop(turn);
                return Ok(got);
            }
            match self.queue.config().await {
                Ok(_) => {}
                Err(error) if got.is_empty() => return Err(error),
                Err(_) => return Ok(got),
            }
            let wake = self.next_free().into_iter().chain(seen.throttled_until).min();
            // Now and then it looks anew, at what others may have given back.
            let wake = wake.map_or(LOOK_BACK, |wake| wake.since(self.now()).min(LOOK_BACK));
            tokio::select! {
                biased;
                () = &mut stop => return Ok(got),
                () = any_change(&mut hints) => {}
                () = self.limiter.freed() => {}
                () = self.freed.notified() => {}
                () = clock.sleep(wake.max(Duration::from_millis(1)).min(left())) => {}
            }
        }
    }

    /// When something that is known becomes free.
    fn next_free(&self) -> Option<Timestamp> {
        match self.views() {
            Views::Loose(all) => all.iter().filter_map(|lane| lock(lane).next_wake()).min(),
            Views::Strict(all) => all.iter().filter_map(|lane| lock(lane).next_wake()).min(),
        }
    }

    /// Receives what there is now.
    async fn look(
        self: &Arc<Self>,
        ask: &Receive,
        max: usize,
        seen: &mut Seen,
    ) -> Result<Vec<Delivery>> {
        *seen = Seen::default();
        let config = self.queue.known_config();
        if config.shedding.as_ref().is_some_and(|shedding| shedding.depth_max.is_some()) {
            self.shed_depth_soon(&config).await?;
        }
        let now = self.now();
        let terms = self.terms(ask, &config, now);
        if ask.attempt.is_some() && config.strict.is_some() {
            let got = self.receive_again(&config, &terms, max).await?;
            if !got.is_empty() {
                return Ok(got);
            }
        }
        let grant = self.limiter.ask(&config.limits, max, terms.lease.until, now).await?;
        let most = max.min(grant.total());
        let mut first = if ask.behind.is_empty() || config.strict.is_some() {
            Vec::new()
        } else {
            self.claim_others_first(ask, &config, &grant, most).await?
        };
        let terms = self.terms(ask, &config, now);
        let mut call = Call::new(&config, &terms, &grant, most - first.len());
        if call.max > 0 {
            let outcome = self.claim_rounds(ask, &mut call).await;
            seen.unfinished = outcome.as_ref().is_ok_and(|whole| !whole) && call.got.is_empty();
            if call.got.is_empty() && first.is_empty() {
                outcome?;
            }
        }
        first.append(&mut call.got);
        let mut got = first;
        drop(call);
        if config.strict.is_some() {
            by_group(&mut got);
        }
        seen.throttled_until = grant.wake();
        self.count(Event::Received, got.len());
        Ok(got)
    }
}

/// Which messages are too old to be delivered, when a backlog stands or the queue has an oldest age.
pub(super) fn shed_rule(config: &QueueConfig, standing: bool, now: Timestamp) -> Option<ShedRule> {
    let shedding = config.shedding.as_ref()?;
    let moves = shedding.side_queue.is_some();
    let rule = |before, reason| ShedRule { before, reason, moves };
    let by_age = shedding.age_max.map(|age| rule(now.minus(age), MoveReason::ShedAge));
    let delay = shedding.delay.filter(|_| standing);
    let by_delay = delay.map(|delay| rule(now.minus(delay.target), MoveReason::ShedDelay));
    by_age.into_iter().chain(by_delay).max_by_key(|rule| rule.before)
}

async fn any_change(hints: &mut [ChangeHint]) {
    let waits = hints.iter_mut().map(|hint| Box::pin(hint.wait()));
    let waits: Vec<_> = waits.collect();
    if waits.is_empty() {
        std::future::pending::<()>().await;
    }
    select_all(waits).await;
}
