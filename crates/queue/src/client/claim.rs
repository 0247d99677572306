//! Choosing messages of a segment and taking them on loan: one conditional write.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use millpond_store::Timestamp;

use super::loose::End;
use crate::config::GroupPoison;
use crate::limits::MOVE_LEASE;
use crate::origin::MoveReason;
use crate::state::{Lease, Slot};
use crate::view::SegmentView;

/// Which messages of a segment to claim.
#[derive(Debug, Clone)]
pub enum Wanted {
    /// From this end.
    Loose(End),
    /// The free beginning of each of these groups, in this order.
    Strict(Vec<u32>),
}

/// What is shed instead of claimed: what was sent before.
#[derive(Debug, Clone, Copy)]
pub struct ShedRule {
    pub before: Timestamp,
    pub reason: MoveReason,
    /// Whether a side queue gets it.
    pub moves: bool,
}

/// Under which terms messages are claimed.
#[derive(Debug, Clone)]
pub struct Terms {
    pub lease: Lease,
    pub now: Timestamp,
    pub max: usize,
    /// Received this often, a message is dead.
    pub receives_max: Option<u32>,
    pub poison: GroupPoison,
    pub shed: Option<ShedRule>,
    /// How many of each group, when that is limited.
    pub groups: Option<HashMap<u32, usize>>,
    /// Groups that are passed over, since others come first.
    pub behind: Option<Arc<HashSet<u32>>>,
}

/// What a claim did.
#[derive(Debug, Clone, Default)]
pub struct Claimed {
    /// Messages on loan.
    pub slots: Vec<usize>,
    pub expired: usize,
    /// Messages that were dropped, and why.
    pub shed: Vec<MoveReason>,
    /// Messages that are set aside, to be moved to another queue.
    pub moves: Vec<(usize, MoveReason)>,
    changed: bool,
}

impl Claimed {
    /// Whether the segment was changed.
    pub const fn changed(&self) -> bool {
        self.changed
    }
}

/// Whether a lease was taken by the call with this token: each of its claims has a token of its own, which differs
/// in the last byte.
pub const fn is_of_call(token: u64, call: u64) -> bool {
    token >> 8 == call >> 8
}

/// The lease under which messages are set aside.
pub fn mover_token(token: u64) -> u64 {
    token ^ 0x6d6f_7665
}

/// Claims messages. Running it again on what it changed finds the same messages.
pub fn claim(view: &mut SegmentView, terms: &Terms, wanted: &Wanted) -> Claimed {
    let mut claimed = Claimed::default();
    let token = terms.lease.token;
    let ours = |slot: &Slot, token: u64| slot.lease().is_some_and(|lease| lease.token == token);
    let shed = terms.shed.filter(|rule| view.segment.appended < rule.before);
    let reason = shed.map_or(MoveReason::ReceiveLimit, |rule| rule.reason);
    for (at, slot) in view.undone() {
        if ours(slot, token) {
            claimed.slots.push(at);
        } else if ours(slot, mover_token(token)) {
            claimed.moves.push((at, reason));
        }
    }
    if !claimed.slots.is_empty() || !claimed.moves.is_empty() {
        // The answer to an earlier attempt was lost.
        return claimed;
    }
    let mut budget = terms.groups.clone();
    match wanted {
        Wanted::Loose(end) => {
            let mut order: Vec<usize> = view.undone().map(|(at, _)| at).collect();
            if *end == End::Back {
                order.reverse();
            }
            for at in order {
                if claimed.slots.len() >= terms.max {
                    break;
                }
                take(view, at, terms, &mut budget, &mut claimed);
            }
        }
        Wanted::Strict(groups) => {
            for group in groups {
                claim_group(view, *group, terms, &mut budget, &mut claimed);
            }
        }
    }
    claimed
}

/// Claims the free beginning of a group.
fn claim_group(
    view: &mut SegmentView,
    group: u32,
    terms: &Terms,
    budget: &mut Option<HashMap<u32, usize>>,
    claimed: &mut Claimed,
) {
    let order: Vec<usize> =
        view.undone().map(|(at, _)| at).filter(|at| view.group(*at) == group).collect();
    for (turn, at) in order.iter().copied().enumerate() {
        if claimed.slots.len() >= terms.max {
            return;
        }
        let before = claimed.moves.len();
        if !take(view, at, terms, budget, claimed) {
            return;
        }
        if claimed.moves.len() > before {
            if terms.poison == GroupPoison::Park {
                for behind in order.iter().skip(turn + 1) {
                    set_aside(view, *behind, terms, MoveReason::Parked, claimed);
                }
            }
            return;
        }
    }
}

/// Deals with one message. Says whether those behind it may be dealt with too, where order matters.
fn take(
    view: &mut SegmentView,
    at: usize,
    terms: &Terms,
    budget: &mut Option<HashMap<u32, usize>>,
    claimed: &mut Claimed,
) -> bool {
    let Terms { now, .. } = *terms;
    let on_loan = view.slot(at).and_then(Slot::lease).is_some_and(|lease| lease.until > now);
    if !on_loan && view.is_expired(at, now) {
        finish(view, at, claimed);
        claimed.expired += 1;
        return true;
    }
    if !view.is_free(at, now) {
        return false;
    }
    if let Some(rule) = terms.shed.filter(|rule| view.segment.appended < rule.before) {
        if rule.moves {
            set_aside(view, at, terms, rule.reason, claimed);
        } else {
            finish(view, at, claimed);
            claimed.shed.push(rule.reason);
        }
        return true;
    }
    let receives = view.slot(at).and_then(Slot::record).map_or(0, |record| record.receives);
    if terms.receives_max.is_some_and(|most| receives >= most) {
        if terms.poison == GroupPoison::Block {
            hold(view, at, claimed);
            return false;
        }
        set_aside(view, at, terms, MoveReason::ReceiveLimit, claimed);
        return true;
    }
    let group = view.group(at);
    if let Some(left) = budget {
        match left.get_mut(&group) {
            Some(left) if *left > 0 => *left -= 1,
            _ => return false,
        }
    }
    if let Some(slot) = view.slot_mut(at) {
        slot.claim(now, terms.lease.clone());
        claimed.slots.push(at);
        claimed.changed = true;
    }
    true
}

fn finish(view: &mut SegmentView, at: usize, claimed: &mut Claimed) {
    if let Some(slot) = view.slot_mut(at) {
        *slot = Slot::Done;
        claimed.changed = true;
    }
}

fn hold(view: &mut SegmentView, at: usize, claimed: &mut Claimed) {
    if let Some(slot) = view.slot_mut(at) {
        let record = slot.record().cloned().unwrap_or_default();
        *slot = Slot::Held { record };
        claimed.changed = true;
    }
}

/// Puts a message on loan to whoever moves it. That is no delivery: it is not counted.
fn set_aside(
    view: &mut SegmentView,
    at: usize,
    terms: &Terms,
    reason: MoveReason,
    claimed: &mut Claimed,
) {
    if let Some(slot) = view.slot_mut(at) {
        let record = slot.record().cloned().unwrap_or_default();
        let token = mover_token(terms.lease.token);
        let until = terms.now.plus(MOVE_LEASE);
        *slot = Slot::Leased { record, lease: Lease { token, until, worker: String::new() } };
        claimed.moves.push((at, reason));
        claimed.changed = true;
    }
}

/// Sets a group's messages aside, as far as nobody works on them. Running it again finds the same ones.
pub fn set_group_aside(
    view: &mut SegmentView,
    group: u32,
    now: Timestamp,
    token: u64,
) -> Vec<(usize, MoveReason)> {
    let lease = Lease { token, until: now, worker: String::new() };
    let terms = Terms {
        lease,
        now,
        max: 0,
        receives_max: None,
        poison: GroupPoison::Park,
        shed: None,
        groups: None,
        behind: None,
    };
    let mut claimed = Claimed::default();
    let of_group: Vec<usize> =
        view.undone().map(|(at, _)| at).filter(|at| view.group(*at) == group).collect();
    for at in of_group {
        let lease = view.slot(at).and_then(Slot::lease);
        let ours = lease.is_some_and(|lease| lease.token == mover_token(token));
        if lease.is_some_and(|lease| lease.until > now) && !ours {
            break;
        }
        set_aside(view, at, &terms, MoveReason::Parked, &mut claimed);
    }
    claimed.moves
}
