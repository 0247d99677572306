//! What a receiver does with a message on loan: acknowledge it, extend its lease, give it back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::join_all;
use millpond_lanes::Place;
use millpond_store::Timestamp;

use super::claim::mover_token;
use super::core::ClientCore;
use crate::config::{GroupPoison, QueueConfig};
use crate::counters::Event;
use crate::error::{Lost, QueueError, Result};
use crate::limits::{ERROR_BYTES_MAX, MOVE_LEASE};
use crate::origin::{Ended, MoveReason};
use crate::receipt::{Claim, Receipt};
use crate::state::{Ending, Lease, Slot};
use crate::view::SegmentView;

/// What to do with a message on loan.
#[derive(Debug, Clone)]
pub enum Settle {
    /// It is finished: whether well, and with what result; and whether only if the lease has not run out.
    Finish { success: bool, result: Bytes, in_time: bool },
    /// It stays on loan until this long from now.
    Extend(Duration),
    /// The same under terms; with no time at all, it can be received again at once, and still be finished by its
    /// holder until somebody does so.
    ExtendWithin { by: Duration, terms: Extension },
    /// It is given back, to be received again after this long; an error when it failed.
    GiveBack { delay: Duration, error: Option<String> },
    /// It is given back untouched: as if it had never been received.
    Return,
}

/// Under which terms a lease is extended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Extension {
    /// Only if the lease has not run out. Default: also if it has, as long as nobody else has the message.
    pub in_time: bool,
    /// The longest that the message may be on loan in all, since it was received. Default: any time.
    pub total_max: Option<Duration>,
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// It was done now.
    Now,
    /// It had been done before: by this receipt, or the message is finished.
    Already,
}

/// A place in the call, what the receipt says, and what to do.
type Asked = (usize, Claim, Settle);

#[derive(Debug, Clone)]
struct Outcome {
    index: usize,
    slot: usize,
    outcome: Result<Settled>,
    /// Set aside, to be moved to the dead letters.
    dead: bool,
}

impl ClientCore {
    /// Settles messages: one write for each segment that they are in.
    pub async fn settle(
        self: &Arc<Self>,
        receipts: &[(Receipt, Settle)],
    ) -> Result<Vec<Result<Settled>>> {
        let config = self.queue.config().await?;
        let mut outcomes: Vec<Option<Result<Settled>>> = vec![None; receipts.len()];
        let mut segments: BTreeMap<(u8, Place), Vec<Asked>> = BTreeMap::new();
        for (index, (receipt, settle)) in receipts.iter().enumerate() {
            match self.signer.check(receipt) {
                Ok(claim) => segments.entry((claim.lane, claim.segment)).or_default().push((
                    index,
                    claim,
                    settle.clone(),
                )),
                Err(error) => put(&mut outcomes, index, Err(error)),
            }
        }
        let work = segments.into_iter().map(|((lane, place), all)| {
            let config = Arc::clone(&config);
            async move {
                let indexes: Vec<usize> = all.iter().map(|(index, ..)| *index).collect();
                (indexes, self.settle_segment(lane, place, all, &config).await)
            }
        });
        for (indexes, settled) in join_all(work).await {
            match settled {
                Ok(all) => {
                    for outcome in all {
                        put(&mut outcomes, outcome.index, outcome.outcome);
                    }
                }
                Err(error) => {
                    for index in indexes {
                        put(&mut outcomes, index, Err(error.clone()));
                    }
                }
            }
        }
        Ok(outcomes.into_iter().flatten().collect())
    }

    async fn settle_segment(
        self: &Arc<Self>,
        lane: u8,
        place: Place,
        all: Vec<Asked>,
        config: &Arc<QueueConfig>,
    ) -> Result<Vec<Outcome>> {
        let now = self.now();
        for (_, claim, what) in &all {
            if let Settle::Extend(by) | Settle::ExtendWithin { by, .. } = what {
                let (spot, until) = ((lane, place, claim.slot), now.plus(*by));
                self.limiter.extend(&config.limits, spot, until, now).await?;
            }
        }
        let (asked, config) = (all.clone(), Arc::clone(config));
        let keeps = config.status.is_some();
        let edit = self.edit(lane, place, move |view| {
            let Some(view) = view else {
                return (
                    all.iter().map(|(index, claim, what)| gone(*index, claim, what)).collect(),
                    false,
                );
            };
            let mut changed = false;
            let outcomes: Vec<Outcome> = all
                .iter()
                .map(|(index, claim, what)| {
                    let (outcome, did, dead) = settle_one(view, claim, what, &config, now);
                    changed |= did;
                    Outcome { index: *index, slot: claim.slot, outcome, dead }
                })
                .collect();
            (outcomes, changed)
        });
        let (outcomes, view): (Vec<Outcome>, Option<SegmentView>) = edit.await?;
        for (outcome, (_, claim, what)) in outcomes.iter().zip(&asked) {
            // Also when it was finished or given back before: nobody works on it any more.
            if outcome.outcome.is_ok()
                && !matches!(what, Settle::Extend(_) | Settle::ExtendWithin { .. })
            {
                self.limiter.ended((lane, place, claim.slot));
            }
            if !matches!(outcome.outcome, Ok(Settled::Now)) {
                continue;
            }
            match what {
                Settle::Finish { success: true, .. } => self.count(Event::Acked, 1),
                Settle::Finish { success: false, .. } => self.count(Event::Failed, 1),
                Settle::GiveBack { error: Some(_), .. } => self.count(Event::Nacked, 1),
                Settle::GiveBack { error: None, .. } | Settle::Return => {
                    self.count(Event::Released, 1);
                }
                Settle::Extend(_) | Settle::ExtendWithin { .. } => {}
            }
        }
        tracing::trace!(lane, ?place, settled = outcomes.len(), keeps, "settled");
        if let Some(view) = view {
            for (outcome, (_, claim, _)) in outcomes.iter().zip(&asked) {
                if outcome.dead {
                    let moves = [(outcome.slot, MoveReason::ReceiveLimit)];
                    self.move_out(lane, &view, &moves, claim.token).await;
                }
            }
        }
        Ok(outcomes)
    }
}

fn put(outcomes: &mut [Option<Result<Settled>>], index: usize, outcome: Result<Settled>) {
    if let Some(place) = outcomes.get_mut(index) {
        *place = Some(outcome);
    }
}

/// The segment is finished, and with it the message.
fn gone(index: usize, claim: &Claim, what: &Settle) -> Outcome {
    let outcome = match what {
        Settle::Finish { .. } => Ok(Settled::Already),
        Settle::Extend(_)
        | Settle::ExtendWithin { .. }
        | Settle::GiveBack { .. }
        | Settle::Return => Err(lost(claim, Lost::Finished)),
    };
    Outcome { index, slot: claim.slot, outcome, dead: false }
}

/// Settles one message. Says what became of it, whether the segment changed, and whether it is set aside as dead.
fn settle_one(
    view: &mut SegmentView,
    claim: &Claim,
    what: &Settle,
    config: &QueueConfig,
    now: Timestamp,
) -> (Result<Settled>, bool, bool) {
    let Some(slot) = view.slot_mut(claim.slot) else {
        return (Err(lost(claim, Lost::Unknown)), false, false);
    };
    let (record, lease) = match slot {
        Slot::Leased { record, lease } if lease.token == claim.token => (record, lease),
        // The answer to an earlier attempt was lost: it is on its way to the dead letters.
        Slot::Leased { lease, .. }
            if lease.token == mover_token(claim.token)
                && matches!(what, Settle::GiveBack { error: Some(_), .. }) =>
        {
            return (Ok(Settled::Already), false, true);
        }
        Slot::Leased { .. } => {
            return (Err(lost(claim, Lost::Taken)), false, false);
        }
        Slot::Done | Slot::Ended { .. } => return (gone(0, claim, what).outcome, false, false),
        Slot::Waiting { ended_by, .. }
            if *ended_by == claim.token
                && matches!(what, Settle::GiveBack { .. } | Settle::Return) =>
        {
            return (Ok(Settled::Already), false, false);
        }
        Slot::Fresh | Slot::Waiting { .. } | Slot::Held { .. } => {
            return (Err(lost(claim, Lost::GivenBack)), false, false);
        }
    };
    let runs_out = lease.until <= now;
    match what {
        Settle::Finish { in_time: true, .. }
        | Settle::ExtendWithin { terms: Extension { in_time: true, .. }, .. }
            if runs_out =>
        {
            (Err(lost(claim, Lost::RunOut)), false, false)
        }
        Settle::Finish { success, result, .. } => {
            let worker = std::mem::take(&mut lease.worker);
            *slot = match config.status {
                Some(_) => {
                    let record = slot.record().cloned().unwrap_or_default();
                    let ending =
                        Ending { success: *success, at: now, worker, result: result.clone() };
                    Slot::Ended { record, ending }
                }
                None => Slot::Done,
            };
            (Ok(Settled::Now), true, false)
        }
        Settle::Extend(by) => {
            record.extended = true;
            lease.until = now.plus(*by);
            (Ok(Settled::Now), true, false)
        }
        Settle::ExtendWithin { by, terms } => match extend(slot, now.plus(*by), terms) {
            Ok(()) => (Ok(Settled::Now), true, false),
            Err(reason) => (Err(lost(claim, reason)), false, false),
        },
        Settle::GiveBack { delay, error } => {
            let ended = if error.is_some() { Ended::Failed } else { Ended::Released };
            let error = error.as_ref().map(|error| cut(error));
            slot.give_back(now.plus(*delay), ended, error);
            let failed = ended == Ended::Failed;
            (Ok(Settled::Now), true, failed && is_dead(slot, claim, config, now))
        }
        Settle::Return => {
            slot.give_back(now, Ended::Released, None);
            slot.uncount();
            (Ok(Settled::Now), true, false)
        }
    }
}

/// Extends a lease, if it does not become too long in all.
fn extend(slot: &mut Slot, until: Timestamp, terms: &Extension) -> Result<(), Lost> {
    let Slot::Leased { record, lease } = slot else { return Err(Lost::GivenBack) };
    let received = record.attempts.last();
    let total = received.map(|last| until.since(Timestamp::from_millis(last.at_ms)));
    if terms.total_max.zip(total).is_some_and(|(most, total)| total > most) {
        return Err(Lost::TooLong);
    }
    record.extended = true;
    lease.until = until;
    Ok(())
}

/// Sets a message aside that has failed for the last time.
fn is_dead(slot: &mut Slot, claim: &Claim, config: &QueueConfig, now: Timestamp) -> bool {
    let Some(dead) = &config.dead_letters else { return false };
    let record = slot.record().cloned().unwrap_or_default();
    if record.receives < dead.receives_max {
        return false;
    }
    match config.strict.map_or(GroupPoison::Skip, |strict| strict.poison) {
        // The next receive finds it, and those behind it.
        GroupPoison::Park => false,
        GroupPoison::Block => {
            *slot = Slot::Held { record };
            false
        }
        GroupPoison::Skip => {
            let token = mover_token(claim.token);
            let lease = Lease { token, until: now.plus(MOVE_LEASE), worker: String::new() };
            *slot = Slot::Leased { record, lease };
            true
        }
    }
}

fn lost(claim: &Claim, reason: Lost) -> QueueError {
    QueueError::LeaseLost { message: claim.message().to_string(), reason }
}

/// An error, cut to what is kept of it.
fn cut(error: &str) -> String {
    let mut end = error.len().min(ERROR_BYTES_MAX);
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    error.get(..end).unwrap_or_default().to_owned()
}
