//! What a client remembers of a loose lane, so that a receive need not look for it again.
//!
//! All of it is a hint. Whether a message can be claimed is decided by the conditional write of its segment's row.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use millpond_lanes::{Place, Segment, SegmentPage};
use millpond_store::{Timestamp, UniqueId};

use super::coverage::{Coverage, point};
use crate::limits::{FORGET_EVERY, KNOWN_SEGMENTS_MAX, LOOK_BACK, LOOK_BACK_EVERY};
use crate::view::SegmentView;

/// How many of the last appends are told apart from those that a scan has seen.
const APPENDS_KEPT: usize = 1_024;

/// The end of a lane that messages are taken from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The oldest first.
    Front,
    /// The newest first.
    Back,
}

/// A part of a lane to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub from: u128,
    /// Nothing: to the end of the lane, where rows are added.
    pub to: Option<u128>,
    /// How many appends had been made here when the scan began.
    appends: u64,
}

#[derive(Debug)]
struct Known {
    view: SegmentView,
    /// Messages that receivers here are about to claim.
    pledged: usize,
    free: usize,
    /// When the next message becomes free.
    wake: Option<Timestamp>,
    /// When it was last changed from here: a scan that began before may be stale.
    changed: Option<Timestamp>,
    /// When it was last read or written.
    seen: Timestamp,
}

/// What is known of a loose lane.
#[derive(Debug)]
pub struct LooseView {
    known: BTreeMap<u128, Known>,
    /// Segments with free messages that are not pledged.
    ready: BTreeSet<u128>,
    timers: BTreeSet<(Timestamp, u128)>,
    /// Segments that were finished from here a moment ago.
    gone: HashMap<u128, Timestamp>,
    coverage: Coverage,
    appends: u64,
    last_appends: VecDeque<u128>,
    looked_back: Timestamp,
    forgot: Timestamp,
}

impl LooseView {
    pub fn new(now: Timestamp) -> Self {
        Self {
            known: BTreeMap::new(),
            ready: BTreeSet::new(),
            timers: BTreeSet::new(),
            gone: HashMap::new(),
            coverage: Coverage::default(),
            appends: 0,
            last_appends: VecDeque::new(),
            looked_back: now,
            forgot: now,
        }
    }

    pub fn known(&self, place: Place) -> Option<&SegmentView> {
        self.known.get(&point(place)).map(|known| &known.view)
    }

    /// A row was read or written. `by_us`: what is known now is at least as new as any scan under way.
    pub fn saw(&mut self, view: SegmentView, now: Timestamp, by_us: bool) {
        let at = point(view.place());
        if !by_us {
            let is_fresh = |time: &Timestamp| now.since(*time) < LOOK_BACK;
            let known = self.known.get(&at);
            if self.gone.get(&at).is_some_and(is_fresh)
                || known.and_then(|known| known.changed.as_ref()).is_some_and(is_fresh)
            {
                return;
            }
        }
        let pledged = self.forget(at).map_or(0, |known| known.pledged);
        if view.is_done() {
            return;
        }
        let (free, wake) = view.availability(now);
        if free > pledged {
            self.ready.insert(at);
        }
        if let Some(wake) = wake {
            self.timers.insert((wake, at));
        }
        let changed = by_us.then_some(now);
        self.known.insert(at, Known { view, pledged, free, wake, changed, seen: now });
    }

    /// Segments in which others hold messages, by what is known here: they may have given them back since. Those that
    /// were looked at longest ago, and none that was a moment ago.
    pub fn held_by_others(&self, now: Timestamp, most: usize) -> Vec<Place> {
        let on_loan = |view: &SegmentView| {
            view.undone().any(|(_, slot)| slot.lease().is_some_and(|lease| lease.until > now))
        };
        let mut stale: Vec<&Known> = self
            .known
            .values()
            .filter(|known| known.changed.is_none_or(|changed| now.since(changed) >= LOOK_BACK))
            .filter(|known| now.since(known.seen) >= LOOK_BACK_EVERY && on_loan(&known.view))
            .collect();
        stale.sort_by_key(|known| known.seen);
        stale.into_iter().take(most).map(|known| known.view.place()).collect()
    }

    /// A segment is finished.
    pub fn finished(&mut self, place: Place, now: Timestamp) {
        self.forget(point(place));
        self.gone.insert(point(place), now);
    }

    /// Something was appended from here. It may stand before what has been read.
    pub fn appended(&mut self, place: Place) {
        let at = point(place);
        self.appends += 1;
        self.last_appends.push_back(at);
        if self.last_appends.len() > APPENDS_KEPT {
            self.last_appends.pop_front();
        }
        // A scan may have been quicker than this note: what it has seen, nobody need look for again.
        if !self.known.contains_key(&at) && !self.gone.contains_key(&at) {
            self.coverage.uncover(at, at.saturating_add(1));
        }
    }

    fn forget(&mut self, at: u128) -> Option<Known> {
        let known = self.known.remove(&at)?;
        self.ready.remove(&at);
        if let Some(wake) = known.wake {
            self.timers.remove(&(wake, at));
        }
        Some(known)
    }

    /// Takes note of the time: what became free, and what is to be looked at again.
    pub fn tick(&mut self, now: Timestamp) {
        while let Some(&(wake, at)) = self.timers.first().filter(|(wake, _)| *wake <= now) {
            self.timers.remove(&(wake, at));
            let Some(known) = self.known.get_mut(&at) else {
                // It was let go while all of it was on loan: it is to be read again.
                self.coverage.uncover(at, at.saturating_add(1));
                continue;
            };
            (known.free, known.wake) = known.view.availability(now);
            if let Some(wake) = known.wake {
                self.timers.insert((wake, at));
            }
            if known.free > known.pledged {
                self.ready.insert(at);
            }
        }
        if now.since(self.forgot) >= FORGET_EVERY {
            *self = Self { appends: self.appends, ..Self::new(now) };
        } else if now.since(self.looked_back) >= LOOK_BACK_EVERY {
            let recent = UniqueId::from_parts(now.minus(LOOK_BACK), 0);
            self.coverage.uncover(point(Place::Id(recent)), u128::MAX);
            self.gone.retain(|_, time| now.since(*time) < LOOK_BACK);
            self.looked_back = now;
        }
    }

    /// The first segment at this end that has something free, if all before it has been read.
    fn first_ready(&self, end: End) -> Option<u128> {
        match end {
            End::Front => self.ready.first().copied().filter(|at| *at < self.coverage.front()),
            End::Back => self.ready.last().copied().filter(|at| *at >= self.coverage.back()),
        }
    }

    /// When the first message at this end was appended.
    pub fn first_appended(&self, end: End) -> Option<Timestamp> {
        let known = self.known.get(&self.first_ready(end)?)?;
        Some(known.view.segment.appended)
    }

    /// Pledges up to `want` messages of the first segment at this end.
    pub fn pledge(&mut self, end: End, want: usize) -> Option<(SegmentView, usize)> {
        let at = self.first_ready(end)?;
        let known = self.known.get_mut(&at)?;
        let count = want.min(known.free - known.pledged);
        known.pledged += count;
        if known.pledged >= known.free {
            self.ready.remove(&at);
        }
        Some((known.view.clone(), count))
    }

    /// Pledges what is left of a segment, and says how much that was.
    pub fn pledge_rest(&mut self, place: Place) -> usize {
        let at = point(place);
        self.ready.remove(&at);
        let Some(known) = self.known.get_mut(&at) else { return 0 };
        let rest = known.free.saturating_sub(known.pledged);
        known.pledged += rest;
        rest
    }

    /// Takes a pledge back, be it claimed or not.
    pub fn unpledge(&mut self, place: Place, count: usize) {
        let at = point(place);
        if let Some(known) = self.known.get_mut(&at) {
            known.pledged = known.pledged.saturating_sub(count);
            if known.free > known.pledged {
                self.ready.insert(at);
            }
        }
    }

    /// When the next message becomes free.
    pub fn next_wake(&self) -> Option<Timestamp> {
        self.timers.first().map(|(wake, _)| *wake)
    }

    /// What to read next at this end. `tail`: begin with what was added at the back since.
    pub fn gap(&self, end: End, tail: bool) -> Option<Gap> {
        let (from, to) = match end {
            End::Front => self.coverage.first_gap(),
            End::Back if tail || self.coverage.end() == 0 => (self.coverage.end(), None),
            End::Back => self.coverage.last_gap().map(|(from, to)| (from, Some(to)))?,
        };
        Some(Gap { from, to, appends: self.appends })
    }

    /// Takes in a page of a scan over a gap. Says whether there may be more to read at this end.
    pub fn absorb(&mut self, end: End, gap: Gap, page: &Rows, now: Timestamp) -> bool {
        let read = page.read.map(|(first, last)| {
            let (first, last) = (point(first), point(last));
            (first.min(last), first.max(last) + 1)
        });
        let whole = !page.more;
        let span = match (end, read, gap.to) {
            (_, None, Some(to)) if whole => Some((gap.from, to)),
            (_, None, _) => None,
            (End::Front, Some((_, last)), to) => {
                Some((gap.from, if whole { to.unwrap_or(last) } else { last }))
            }
            (End::Back, Some((first, last)), to) => {
                Some((if whole { gap.from } else { first }, to.unwrap_or(last)))
            }
        };
        let missed = usize::try_from(self.appends - gap.appends).unwrap_or(usize::MAX);
        if let Some((from, to)) = span.filter(|_| missed <= self.last_appends.len()) {
            self.coverage.cover(from, to);
            // What was appended while the scan ran may not have been seen by it. If it was, it must stay covered: nobody
            // would look for it again before somebody else's change.
            let seen = |at: &u128| page.views.iter().any(|view| point(view.place()) == *at);
            for at in self.last_appends.iter().rev().take(missed).filter(|at| !seen(at)) {
                self.coverage.uncover(*at, at.saturating_add(1));
            }
        }
        for view in &page.views {
            self.saw(view.clone(), now, false);
        }
        self.trim(end);
        match end {
            End::Front => page.more || gap.to.is_some(),
            End::Back => page.more || self.coverage.last_gap().is_some(),
        }
    }

    /// Forgets something when too much is remembered: of what is on loan all but when that ends, else what is furthest
    /// from this end.
    fn trim(&mut self, end: End) {
        if self.known.len() <= KNOWN_SEGMENTS_MAX {
            return;
        }
        let on_loan =
            self.known.iter().filter(|(_, known)| known.free == 0 && known.wake.is_some());
        let on_loan: Vec<u128> = on_loan.map(|(at, _)| *at).take(KNOWN_SEGMENTS_MAX / 2).collect();
        for at in on_loan {
            self.known.remove(&at);
        }
        while self.known.len() > KNOWN_SEGMENTS_MAX {
            let far = match end {
                End::Front => self.known.last_key_value(),
                End::Back => self.known.first_key_value(),
            };
            let Some((&at, _)) = far else { return };
            self.forget(at);
            match end {
                End::Front => self.coverage.uncover(at, u128::MAX),
                End::Back => self.coverage.uncover(0, at.saturating_add(1)),
            }
        }
    }
}

/// What a page of a scan held.
#[derive(Debug)]
pub struct Rows {
    pub views: Vec<SegmentView>,
    /// The first and last row, removed or not.
    pub read: Option<(Place, Place)>,
    /// Whether there are more rows in what was asked for.
    pub more: bool,
}

impl Rows {
    /// Makes views of a page's segments.
    pub fn of<E>(
        page: SegmentPage,
        view: impl FnMut(Segment) -> Result<SegmentView, E>,
    ) -> Result<Self, E> {
        let read = page.first.zip(page.last);
        let more = page.next.is_some();
        let views = page.segments.into_iter().map(view).collect::<Result<_, E>>()?;
        Ok(Self { views, read, more })
    }
}
