//! What a client remembers of a strict lane: its segments from the first unfinished message on, and each group's
//! place in them.
//!
//! A message may be delivered when all earlier ones of its group are done. *Done* never reverts, so what was read of
//! earlier segments stays true: only the segment that is claimed is written conditionally.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use millpond_lanes::Place;
use millpond_store::Timestamp;

use super::claim::is_of_call;
use super::loose::Rows;
use crate::limits::{KNOWN_SEGMENTS_MAX, LOOK_BACK};
use crate::state::Slot;
use crate::view::SegmentView;

#[derive(Debug, Default)]
struct Group {
    /// Segments with messages of the group that are not done.
    segments: BTreeSet<u64>,
    /// When it was served, in turns.
    served: u64,
    /// A receiver here is about to claim from it.
    pledged: bool,
    ready: Option<(u64, u64)>,
    wake: Option<Timestamp>,
}

/// Part of a segment to claim.
#[derive(Debug)]
pub struct StrictPick {
    pub view: SegmentView,
    /// Groups to take from, in this order.
    pub groups: Vec<u32>,
    pub count: usize,
}

/// What is known of a strict lane.
#[derive(Debug, Default)]
pub struct StrictView {
    known: BTreeMap<u64, (SegmentView, Option<Timestamp>)>,
    groups: HashMap<u32, Group>,
    /// Groups whose first message is free, by turn.
    ready: BTreeSet<(u64, u64, u32)>,
    timers: BTreeSet<(Timestamp, u32)>,
    turn: u64,
    /// Where the scan goes on.
    next: u64,
}

impl StrictView {
    pub fn known(&self, place: Place) -> Option<&SegmentView> {
        self.known.get(&number(place)).map(|(view, _)| view)
    }

    /// Where the scan goes on; nothing when enough is remembered.
    pub fn next(&self) -> Option<u64> {
        (self.known.len() < KNOWN_SEGMENTS_MAX).then_some(self.next)
    }

    /// Takes in a page of the scan. Says whether there may be more.
    pub fn absorb(&mut self, page: Rows, now: Timestamp) -> bool {
        if let Some((_, last)) = page.read {
            self.next = self.next.max(number(last).saturating_add(1));
        }
        for view in page.views {
            self.saw(view, now, false);
        }
        page.more
    }

    /// A row was read or written.
    pub fn saw(&mut self, view: SegmentView, now: Timestamp, by_us: bool) {
        let at = number(view.place());
        let ours = self.known.get(&at).and_then(|(_, changed)| *changed);
        if !by_us && ours.is_some_and(|changed| now.since(changed) < LOOK_BACK) {
            return;
        }
        let mut touched = self.drop_segment(at);
        if at >= self.next {
            // Found by other ways than the scan: what stands before it is not known.
            return;
        }
        if !view.is_done() {
            let groups: BTreeSet<u32> = view.undone().map(|(slot, _)| view.group(slot)).collect();
            for group in groups {
                let turn = self.turn;
                let new = || Group { served: turn, ..Group::default() };
                self.groups.entry(group).or_insert_with(new).segments.insert(at);
                touched.insert(group);
            }
            self.known.insert(at, (view, by_us.then_some(now)));
        }
        for group in touched {
            self.judge(group, now);
        }
    }

    /// A segment is finished.
    pub fn finished(&mut self, place: Place, now: Timestamp) {
        for group in self.drop_segment(number(place)) {
            self.judge(group, now);
        }
    }

    fn drop_segment(&mut self, at: u64) -> BTreeSet<u32> {
        let Some((view, _)) = self.known.remove(&at) else { return BTreeSet::new() };
        let groups: BTreeSet<u32> = view.undone().map(|(slot, _)| view.group(slot)).collect();
        for group in &groups {
            if let Some(known) = self.groups.get_mut(group) {
                known.segments.remove(&at);
            }
        }
        groups
    }

    /// Judges anew whether a group's first message is free.
    fn judge(&mut self, hash: u32, now: Timestamp) {
        let Some(group) = self.groups.get_mut(&hash) else { return };
        if let Some((served, at)) = group.ready.take() {
            self.ready.remove(&(served, at, hash));
        }
        if let Some(wake) = group.wake.take() {
            self.timers.remove(&(wake, hash));
        }
        let Some(&at) = group.segments.first() else {
            if !group.pledged {
                self.groups.remove(&hash);
            }
            return;
        };
        let Some((view, _)) = self.known.get(&at) else { return };
        let first = view.undone().find(|(slot, _)| view.group(*slot) == hash);
        match first.and_then(|(slot, _)| view.free_at(slot)) {
            Some(free) if free <= now && !group.pledged => {
                group.ready = Some((group.served, at));
                self.ready.insert((group.served, at, hash));
            }
            Some(free) if free > now => {
                group.wake = Some(free);
                self.timers.insert((free, hash));
            }
            _ => {}
        }
    }

    /// Takes note of the time.
    pub fn tick(&mut self, now: Timestamp) {
        while let Some(&(wake, group)) = self.timers.first().filter(|(wake, _)| *wake <= now) {
            self.timers.remove(&(wake, group));
            self.judge(group, now);
        }
    }

    /// When the next group becomes free.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.timers.first().map(|(wake, _)| *wake)
    }

    /// How many messages can be delivered, as far as is known; no more than `most` are counted.
    pub fn deliverable(&self, most: usize, now: Timestamp) -> usize {
        let mut found = 0;
        for (_, _, hash) in &self.ready {
            let free = self.run(*hash, |view, slot| view.is_free(slot, now));
            found += free.take(most - found).count();
            if found >= most {
                break;
            }
        }
        found
    }

    /// Whether what is known is enough to serve a call. While only one group is known to wait, each call looks a page
    /// further ahead, so that it does not keep others from being found.
    pub fn is_enough(&self, need: usize, looked_ahead: bool, now: Timestamp) -> bool {
        (looked_ahead || self.ready.len() != 1) && self.deliverable(need, now) >= need
    }

    /// Whether any group can be served.
    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// The messages of a group that are not done, from its first on, for as long as `goes_on` says so.
    fn run<'a>(
        &'a self,
        hash: u32,
        goes_on: impl Fn(&SegmentView, usize) -> bool + 'a,
    ) -> impl Iterator<Item = (u64, usize)> + 'a {
        let segments = self.groups.get(&hash).map(|group| &group.segments);
        let known =
            segments.into_iter().flatten().filter_map(|at| Some((*at, self.known.get(at)?)));
        known
            .flat_map(move |(at, (view, _))| {
                let of_group = view.undone().filter(move |(slot, _)| view.group(*slot) == hash);
                of_group.map(move |(slot, _)| (at, view, slot))
            })
            .take_while(move |(_, view, slot)| goes_on(view, *slot))
            .map(|(at, _, slot)| (at, slot))
    }

    /// More of a group whose messages so far are on loan to the call with this token: those in the next segment may
    /// follow in the same call.
    pub fn next_run(
        &self,
        hash: u32,
        call: u64,
        want: usize,
        now: Timestamp,
    ) -> Option<StrictPick> {
        let ours = |view: &SegmentView, slot: usize| {
            let lease = view.slot(slot).and_then(Slot::lease);
            lease.is_some_and(|lease| is_of_call(lease.token, call) && lease.until > now)
        };
        let taken = self.run(hash, ours).count();
        let mut next =
            self.run(hash, move |view, slot| ours(view, slot) || view.is_free(slot, now));
        let (at, _) = next.nth(taken)?;
        let (view, _) = self.known.get(&at)?;
        // Within a segment a claim takes all it can: what is left there is not to be had.
        if view.undone().any(|(slot, _)| view.group(slot) == hash && ours(view, slot)) {
            return None;
        }
        Some(StrictPick { view: view.clone(), groups: vec![hash], count: want })
    }

    /// Pledges up to `want` messages, of groups in the order of their turns; what one call returns is in one segment.
    pub fn pledge(&mut self, want: usize, now: Timestamp) -> Option<StrictPick> {
        let &(_, at, _) = self.ready.first()?;
        let (view, _) = self.known.get(&at)?;
        let view = view.clone();
        let first_of = |hash| view.undone().position(|(slot, _)| view.group(slot) == hash);
        let in_segment = self.ready.iter().take_while(|(_, segment, _)| *segment == at);
        let mut turns: Vec<(u64, Option<usize>, u32)> =
            in_segment.map(|(served, _, hash)| (*served, first_of(*hash), *hash)).collect();
        turns.sort_unstable();
        let (mut groups, mut count) = (Vec::new(), 0);
        for (_, _, hash) in turns {
            if count >= want {
                break;
            }
            let mut waiting = view.undone().filter(|(slot, _)| view.group(*slot) == hash);
            let free = waiting.by_ref().take_while(|(slot, _)| view.is_free(*slot, now)).count();
            count += free.min(want - count);
            groups.push(hash);
            self.turn += 1;
            let turn = self.turn;
            if let Some(group) = self.groups.get_mut(&hash) {
                group.pledged = true;
                group.served = turn;
                if let Some((served, at)) = group.ready.take() {
                    self.ready.remove(&(served, at, hash));
                }
            }
        }
        Some(StrictPick { view, groups, count })
    }

    /// Takes pledges back, be they claimed or not.
    pub fn unpledge(&mut self, groups: &[u32], now: Timestamp) {
        for hash in groups {
            if let Some(group) = self.groups.get_mut(hash) {
                group.pledged = false;
            }
            self.judge(*hash, now);
        }
    }

    /// Segments in which others hold messages, by what is known here: they may have given them back since.
    pub fn held_by_others(&self, now: Timestamp, most: usize) -> Vec<Place> {
        let is_held = |slot: &Slot| match slot {
            Slot::Leased { lease, .. } => lease.until > now,
            Slot::Held { .. } => true,
            _ => false,
        };
        let held = |view: &SegmentView| view.undone().any(|(_, slot)| is_held(slot));
        let stale = self.known.iter().filter(|(_, (view, changed))| {
            changed.is_none_or(|changed| now.since(changed) >= LOOK_BACK) && held(view)
        });
        stale.map(|(_, (view, _))| view.place()).take(most).collect()
    }

    /// Segments in which messages are in such a state.
    pub fn with_state(&self, is_wanted: impl Fn(&Slot) -> bool) -> Vec<Place> {
        let held = |view: &SegmentView| view.undone().any(|(_, slot)| is_wanted(slot));
        let views = self.known.values().map(|(view, _)| view);
        views.filter(|view| held(view)).map(SegmentView::place).collect()
    }

    /// Segments in which a group has messages that are known and not done, in order.
    pub fn of_group(&self, hash: u32) -> Vec<SegmentView> {
        let Some(group) = self.groups.get(&hash) else { return Vec::new() };
        group.segments.iter().filter_map(|at| Some(self.known.get(at)?.0.clone())).collect()
    }
}

const fn number(place: Place) -> u64 {
    match place {
        Place::Number(number) => number,
        Place::Id(_) => u64::MAX,
    }
}
