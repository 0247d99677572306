//! Claiming: round by round, until there is enough or no more.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use futures::future::join_all;
use millpond_lanes::Place;
use millpond_store::Timestamp;
use sha2::{Digest as _, Sha256};

use super::claim::{Claimed, Terms, Wanted, claim};
use super::core::{ClientCore, Views, lock, with};
use super::loose::End;
use super::receive::Receive;
use super::send::group_hash;
use super::strict::StrictPick;
use crate::config::{GroupPoison, QueueConfig};
use crate::counters::Event;
use crate::error::Result;
use crate::limiter::Grant;
use crate::limits::{ATTEMPT_WINDOW, BEHIND_PASSES_MAX, BEHIND_ROUNDS_MAX, CLAIM_ROUNDS_MAX};
use crate::message::Delivery;
use crate::state::{Lease, Slot};
use crate::view::SegmentView;

/// A part of a segment that a receive is about to claim.
#[derive(Debug)]
pub(super) struct Pick {
    pub core: Arc<ClientCore>,
    pub lane: u8,
    pub view: SegmentView,
    pub count: usize,
    pub wanted: Wanted,
}

impl Drop for Pick {
    /// Takes the pledge back, be it claimed or not, and also when the call was dropped.
    fn drop(&mut self) {
        let now = self.core.now();
        match (self.core.views(), &self.wanted) {
            (Views::Loose(all), _) => {
                let (place, count) = (self.view.place(), self.count);
                with(all, self.lane, |lane| lane.unpledge(place, count));
            }
            (Views::Strict(all), Wanted::Strict(groups)) => {
                with(all, self.lane, |lane| lane.unpledge(groups, now));
            }
            (Views::Strict(_), Wanted::Loose(_)) => {}
        }
    }
}

/// What became of a pick.
#[derive(Debug)]
enum Claims {
    Got(Vec<Delivery>),
    /// All its groups are at their limits.
    Throttled(Box<Pick>),
}

/// One call, and what it has so far.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub config: &'a Arc<QueueConfig>,
    pub terms: &'a Terms,
    pub grant: &'a Grant<'a>,
    pub max: usize,
    pub got: Vec<Delivery>,
    /// Claims so far. A segment may be claimed from more than once, and each claim must know its own.
    claims: u64,
    /// Picks that must wait. They stay pledged while this call looks on, behind them.
    throttled: Vec<Pick>,
}

impl<'a> Call<'a> {
    pub fn new(
        config: &'a Arc<QueueConfig>,
        terms: &'a Terms,
        grant: &'a Grant<'a>,
        max: usize,
    ) -> Self {
        Self { config, terms, grant, max, got: Vec::new(), claims: 0, throttled: Vec::new() }
    }

    const fn need(&self) -> usize {
        self.max - self.got.len()
    }

    /// Whether all that a pick could take is of groups that come behind others.
    fn comes_behind(&self, pick: &Pick) -> bool {
        let Some(behind) = &self.terms.behind else { return false };
        groups_of(pick, self.terms.now).iter().all(|(group, _)| behind.contains(group))
    }

    /// The lease of the next claim; nothing when the call has made too many.
    fn next_lease(&mut self) -> Option<Lease> {
        let claim = self.claims;
        self.claims += 1;
        let token = (self.terms.lease.token & !0xff) | claim;
        (claim <= 0xff).then(|| Lease { token, ..self.terms.lease.clone() })
    }
}

impl ClientCore {
    /// Claims messages, in rounds. Says whether all there is was looked at.
    pub(super) async fn claim_rounds(
        self: &Arc<Self>,
        ask: &Receive,
        call: &mut Call<'_>,
    ) -> Result<bool> {
        let mut scanned = self.begin_scan(call.config, ask.order.unwrap_or(call.config.order));
        let rounds = if call.terms.behind.is_some() { BEHIND_ROUNDS_MAX } else { CLAIM_ROUNDS_MAX };
        for _ in 0..rounds {
            let need = call.need();
            if need == 0 {
                return Ok(true);
            }
            let shed = self.look_for(&mut scanned, call.config, need).await?;
            let picks = self.pick(&mut scanned, need);
            if picks.is_empty() {
                return Ok(scanned.is_complete());
            }
            let served: Vec<(u8, Wanted)> =
                picks.iter().map(|pick| (pick.lane, pick.wanted.clone())).collect();
            let mut claims = Vec::new();
            for pick in picks {
                if call.comes_behind(&pick) {
                    call.throttled.push(self.pledge_rest(pick));
                    continue;
                }
                let Some(lease) = call.next_lease() else { return Ok(false) };
                let terms = Terms { lease, shed, ..call.terms.clone() };
                claims.push(self.claim(pick, terms, call.grant));
            }
            let mut failed = None;
            for outcome in join_all(claims).await {
                match outcome {
                    Ok(Claims::Got(more)) => call.got.extend(more),
                    Ok(Claims::Throttled(pick)) => call.throttled.push(*pick),
                    // What the others have claimed is handed out all the same.
                    Err(error) => failed = Some(error),
                }
            }
            if let Some(error) = failed {
                return Err(error);
            }
            for (lane, wanted) in served {
                if let Wanted::Strict(groups) = wanted {
                    self.claim_runs(lane, &groups, call).await?;
                }
            }
        }
        Ok(false)
    }

    /// Claims messages of all groups but those that come behind others, then of the first of these, and so on.
    pub(super) async fn claim_others_first(
        self: &Arc<Self>,
        ask: &Receive,
        config: &Arc<QueueConfig>,
        grant: &Grant<'_>,
        max: usize,
    ) -> Result<Vec<Delivery>> {
        let mut got = Vec::new();
        for passed in 0..ask.behind.len().min(BEHIND_PASSES_MAX) {
            if got.len() >= max {
                break;
            }
            let behind = ask.behind.iter().skip(passed);
            let behind = behind.filter_map(|group| group_hash(Some(group))).collect();
            let terms = self.terms(ask, config, self.now());
            let terms = Terms { behind: Some(Arc::new(behind)), ..terms };
            let mut call = Call::new(config, &terms, grant, max - got.len());
            let outcome = self.claim_rounds(ask, &mut call).await;
            got.append(&mut call.got);
            if got.is_empty() {
                outcome?;
            }
        }
        Ok(got)
    }

    /// Sees to it that a call which passes a pick over does not find the rest of its segment.
    fn pledge_rest(&self, mut pick: Pick) -> Pick {
        if let Views::Loose(all) = self.views() {
            let place = pick.view.place();
            let rest = with(all, pick.lane, |lane| lane.pledge_rest(place));
            pick.count += rest.unwrap_or_default();
        }
        pick
    }

    /// Goes on with groups whose messages in one segment were all claimed, segment by segment: what is behind may
    /// only be claimed once what is before it is.
    async fn claim_runs(
        self: &Arc<Self>,
        lane: u8,
        groups: &[u32],
        call: &mut Call<'_>,
    ) -> Result<()> {
        let Views::Strict(all) = self.views() else { return Ok(()) };
        for group in groups {
            while call.need() > 0 {
                let (token, want, now) = (call.terms.lease.token, call.need(), call.terms.now);
                let next = with(all, lane, |view| view.next_run(*group, token, want, now));
                let Some(StrictPick { view, count, .. }) = next.flatten() else { break };
                let Some(lease) = call.next_lease() else { return Ok(()) };
                let wanted = Wanted::Strict(vec![*group]);
                let pick = Pick { core: Arc::clone(self), lane, view, count, wanted };
                let terms = Terms { lease, ..call.terms.clone() };
                match self.claim(pick, terms, call.grant).await? {
                    Claims::Got(more) if !more.is_empty() => call.got.extend(more),
                    _ => break,
                }
            }
        }
        Ok(())
    }

    /// Under which terms messages are claimed now.
    pub(super) fn terms(&self, ask: &Receive, config: &QueueConfig, now: Timestamp) -> Terms {
        let chance = self.queue.root.environment().rng.next_u64();
        let token = match &ask.attempt {
            Some(attempt) if config.strict.is_some() => attempt_token(attempt, chance),
            _ => chance,
        };
        let until = now.plus(ask.visibility.unwrap_or(config.visibility));
        let worker = if config.status.is_some() { ask.worker.clone() } else { String::new() };
        Terms {
            lease: Lease { token, until, worker },
            now,
            max: 0,
            receives_max: config.dead_letters.as_ref().map(|dead| dead.receives_max),
            poison: config.strict.map_or(GroupPoison::Skip, |strict| strict.poison),
            shed: None,
            groups: None,
            behind: None,
        }
    }

    /// Claims a part of a segment, and reads it.
    async fn claim(
        self: &Arc<Self>,
        pick: Pick,
        terms: Terms,
        grant: &Grant<'_>,
    ) -> Result<Claims> {
        let waiting = groups_of(&pick, terms.now);
        let groups = grant.groups(&waiting, pick.count).await?;
        let groups = match &terms.behind {
            Some(behind) => Some(pass_over(behind, &waiting, groups)),
            None => groups,
        };
        let waits = |groups: &HashMap<u32, usize>| {
            !groups.is_empty() && groups.values().all(|count| *count == 0)
        };
        if groups.as_ref().is_some_and(waits) {
            return Ok(Claims::Throttled(Box::new(self.pledge_rest(pick))));
        }
        let terms = Terms { max: pick.count, groups, ..terms };
        let (lane, place, wanted) = (pick.lane, pick.view.place(), pick.wanted.clone());
        let edited = {
            let terms = terms.clone();
            self.edit(lane, place, move |view| match view {
                Some(view) => {
                    let claimed = claim(view, &terms, &wanted);
                    let changed = claimed.changed();
                    (Some((claimed, view.clone())), changed)
                }
                None => (None, false),
            })
            .await
        };
        drop(pick);
        let (Some((claimed, view)), _) = edited? else { return Ok(Claims::Got(Vec::new())) };
        self.count(Event::Expired, claimed.expired);
        for reason in &claimed.shed {
            self.count(Event::of_move(*reason), 1);
        }
        self.move_out(lane, &view, &claimed.moves, terms.lease.token).await;
        let running = claimed.slots.iter().map(|at| (lane, place, *at, view.group(*at)));
        grant.started(running, terms.lease.until);
        self.deliver(lane, &view, &claimed, &terms.lease).await.map(Claims::Got)
    }

    /// Reads the messages that were claimed.
    async fn deliver(
        &self,
        lane: u8,
        view: &SegmentView,
        claimed: &Claimed,
        lease: &Lease,
    ) -> Result<Vec<Delivery>> {
        if claimed.slots.is_empty() {
            return Ok(Vec::new());
        }
        let messages = self.load(lane, &view.segment).await?;
        let mut deliveries = Vec::with_capacity(claimed.slots.len());
        for at in &claimed.slots {
            deliveries.push(self.delivery(lane, view, *at, &messages, lease).await?);
        }
        Ok(deliveries)
    }

    /// The messages of an attempt that is made again.
    pub(super) async fn receive_again(
        self: &Arc<Self>,
        config: &Arc<QueueConfig>,
        terms: &Terms,
        need: usize,
    ) -> Result<Vec<Delivery>> {
        // They may have been claimed in another process.
        let mut scanned = self.begin_scan(config, config.order);
        self.look_for(&mut scanned, config, need).await?;
        let mut found: BTreeMap<(u8, u64), Place> = BTreeMap::new();
        if let Views::Strict(all) = self.views() {
            for (lane, view) in (0_u8..).zip(all) {
                for place in lock(view).with_state(|slot| is_of_attempt(slot, terms)) {
                    if let Place::Number(number) = place {
                        found.insert((lane, number), place);
                    }
                }
            }
        }
        let mut got = Vec::new();
        for ((lane, _), place) in found {
            let again = terms.clone();
            let edited = self.edit(lane, place, move |view| {
                let Some(view) = view else { return (None, false) };
                let held: Vec<(usize, u64)> = view
                    .undone()
                    .filter(|(_, slot)| is_of_attempt(slot, &again))
                    .filter_map(|(at, slot)| Some((at, slot.lease()?.token)))
                    .collect();
                for (at, token) in &held {
                    view.renew(*at, *token, again.lease.until);
                }
                (Some((held.clone(), view.clone())), !held.is_empty())
            });
            if let (Some((held, view)), _) = edited.await? {
                let messages = self.load(lane, &view.segment).await?;
                for (at, token) in held {
                    let (limits, until) = (self.queue.known_config().limits, terms.lease.until);
                    self.limiter.extend(&limits, (lane, place, at), until, terms.now).await?;
                    let lease = Lease { token, ..terms.lease.clone() };
                    got.push(self.delivery(lane, &view, at, &messages, &lease).await?);
                }
            }
        }
        Ok(got)
    }
}

/// How many messages of each group may be taken when some come behind others.
fn pass_over(
    behind: &HashSet<u32>,
    waiting: &[(u32, usize)],
    granted: Option<HashMap<u32, usize>>,
) -> HashMap<u32, usize> {
    let allowed = |group: &u32, count: usize| match &granted {
        Some(granted) => granted.get(group).copied().unwrap_or_default(),
        None => count,
    };
    let each = waiting.iter().map(|(group, count)| {
        (*group, if behind.contains(group) { 0 } else { allowed(group, *count) })
    });
    each.collect()
}

/// Brings messages of the same group together, in order.
pub(super) fn by_group(got: &mut [Delivery]) {
    let mut groups: Vec<Option<String>> = Vec::new();
    for message in got.iter() {
        if !groups.contains(&message.group) {
            groups.push(message.group.clone());
        }
    }
    got.sort_by_cached_key(|message| groups.iter().position(|group| *group == message.group));
}

/// How many free messages of each group a pick may take, in the order in which it takes them.
fn groups_of(pick: &Pick, now: Timestamp) -> Vec<(u32, usize)> {
    let free = pick.view.undone().map(|(at, _)| at).filter(|at| pick.view.is_free(*at, now));
    let mut order: Vec<u32> = free.map(|at| pick.view.group(at)).collect();
    if matches!(pick.wanted, Wanted::Loose(End::Back)) {
        order.reverse();
    }
    let mut counts: HashMap<u32, usize> = HashMap::new();
    for group in &order {
        *counts.entry(*group).or_default() += 1;
    }
    if let Wanted::Strict(wanted) = &pick.wanted {
        order.clone_from(wanted);
    }
    order
        .into_iter()
        .filter_map(|group| counts.remove(&group).map(|count| (group, count)))
        .collect()
}

/// The bits of an attempt's tokens that all calls of it share; then 16 of chance, so that one which is made after its
/// leases have ended cannot be mistaken for one before, and 8 that tell the claims of a call apart.
const ATTEMPT_BITS: u64 = !0xff_ffff;

/// The first lease token of an attempt.
fn attempt_token(attempt: &str, chance: u64) -> u64 {
    let digest = Sha256::digest(attempt.as_bytes());
    let hash = digest.first_chunk().map_or(0, |first| u64::from_be_bytes(*first));
    (hash & ATTEMPT_BITS) | (chance & !ATTEMPT_BITS)
}

/// Whether a message was given to the attempt that these terms are for, not too long ago, and is on loan as it was then.
fn is_of_attempt(slot: &Slot, terms: &Terms) -> bool {
    let Slot::Leased { record, lease } = slot else { return false };
    let received = record.attempts.last().map(|last| Timestamp::from_millis(last.at_ms));
    (lease.token ^ terms.lease.token) & ATTEMPT_BITS == 0
        && lease.until > terms.now
        && !record.extended
        && received.is_some_and(|at| terms.now.since(at) < ATTEMPT_WINDOW)
}
