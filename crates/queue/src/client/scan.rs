//! Looking for messages, and choosing the segments to claim from.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use millpond_lanes::Place;
use millpond_store::{Timestamp, UniqueId};

use super::claim::{ShedRule, Terms, Wanted, claim};
use super::core::{ClientCore, Views, lock, no_lane, with};
use super::loose::{End, LooseView, Rows};
use super::receive::shed_rule;
use super::rounds::Pick;
use super::strict::StrictView;
use crate::config::{Order, QueueConfig};
use crate::counters::Event;
use crate::error::Result;
use crate::lane::QueueLane;
use crate::limits::{REQUESTS_MAX, SCAN_PAGES_MAX, SCAN_ROWS_MAX, SHED_SEGMENTS_MAX};
use crate::state::Lease;
use crate::view::SegmentView;

/// How far one receive has looked.
#[derive(Debug)]
pub struct Scanned {
    order: Order,
    /// Lanes of each priority.
    lanes_each: u8,
    lanes: Arc<[QueueLane]>,
    /// The end that messages are taken from.
    end: End,
    now: Timestamp,
    pages_left: usize,
    /// Lanes whose newest rows have been looked for.
    tails: Vec<bool>,
    /// Lanes in which there is no more to find.
    exhausted: Vec<bool>,
    /// Whether others' segments have been looked at again.
    refreshed: bool,
    /// The same for each lane of a strict queue.
    looked_again: Vec<bool>,
}

impl Scanned {
    /// Whether all there is was looked at.
    pub(super) const fn is_complete(&self) -> bool {
        self.pages_left > 0
    }
}

impl ClientCore {
    pub(super) fn begin_scan(&self, config: &QueueConfig, order: Order) -> Scanned {
        let lanes = self.known_lanes();
        let count = usize::from(config.lanes) * usize::from(config.priorities);
        let now = self.now();
        match self.views() {
            Views::Loose(all) => all.iter().for_each(|lane| lock(lane).tick(now)),
            Views::Strict(all) => all.iter().for_each(|lane| lock(lane).tick(now)),
        }
        Scanned {
            order,
            lanes_each: config.lanes,
            lanes,
            end: if order == Order::Lifo { End::Back } else { End::Front },
            now,
            pages_left: SCAN_PAGES_MAX,
            tails: vec![false; count],
            exhausted: vec![false; count],
            refreshed: false,
            looked_again: vec![false; count],
        }
    }

    /// Reads on until each lane has something to choose from or no more. Says what is to be shed.
    pub(super) async fn look_for(
        self: &Arc<Self>,
        scanned: &mut Scanned,
        config: &Arc<QueueConfig>,
        need: usize,
    ) -> Result<Option<ShedRule>> {
        match self.views() {
            Views::Strict(all) => {
                self.look_strict(scanned, all, need).await?;
                Ok(None)
            }
            Views::Loose(all) => {
                let rule = self.judge_backlog(scanned, all, config, need).await?;
                self.look_loose(scanned, all, scanned.end, need).await?;
                if is_idle(all, scanned.end) && !std::mem::replace(&mut scanned.refreshed, true) {
                    for (lane, view) in (0_u8..).zip(all) {
                        let stale = lock(view).held_by_others(scanned.now, REQUESTS_MAX);
                        self.look_again(scanned, lane, stale).await?;
                    }
                }
                Ok(rule)
            }
        }
    }

    /// Judges whether a backlog stands, where that matters, and sheds from its old end.
    async fn judge_backlog(
        self: &Arc<Self>,
        scanned: &mut Scanned,
        all: &[Mutex<LooseView>],
        config: &Arc<QueueConfig>,
        need: usize,
    ) -> Result<Option<ShedRule>> {
        let target = match (scanned.order, config.shedding.as_ref().and_then(|s| s.delay)) {
            (Order::Adaptive { target, interval }, _) => Some((target, interval)),
            (_, Some(delay)) => Some((delay.target, delay.interval)),
            _ => None,
        };
        if target.is_none() && config.shedding.as_ref().is_none_or(|s| s.age_max.is_none()) {
            return Ok(None);
        }
        self.look_loose(scanned, all, End::Front, need).await?;
        let standing = target.is_some_and(|(target, interval)| {
            let oldest = oldest(all);
            lock(&self.standing).judge(oldest, target, interval, scanned.now)
        });
        if let Order::Adaptive { .. } = scanned.order {
            scanned.end = if standing { End::Back } else { End::Front };
        }
        let rule = shed_rule(config, standing, scanned.now);
        if let Some(rule) = rule {
            self.shed_front(scanned, all, rule, SHED_SEGMENTS_MAX).await?;
            self.look_loose(scanned, all, End::Front, need).await?;
        }
        Ok(rule)
    }

    /// Sheds what is too old from the old end, a few segments at a time. Says whether all of it is shed.
    pub(super) async fn shed_front(
        self: &Arc<Self>,
        scanned: &Scanned,
        all: &[Mutex<LooseView>],
        rule: ShedRule,
        segments_max: usize,
    ) -> Result<bool> {
        for _ in 0..segments_max {
            let old = (0_u8..).zip(all).find_map(|(lane, view)| {
                let mut view = lock(view);
                let first = view.first_appended(End::Front)?;
                if first >= rule.before {
                    return None;
                }
                let (view, count) = view.pledge(End::Front, usize::MAX)?;
                Some((lane, view, count))
            });
            let Some((lane, view, count)) = old else { return Ok(true) };
            self.shed_segment(lane, &view, rule, scanned.now).await?;
            with(all, lane, |lane| lane.unpledge(view.place(), count));
        }
        Ok(false)
    }

    /// Sheds what is free in a segment.
    pub(super) async fn shed_segment(
        self: &Arc<Self>,
        lane: u8,
        view: &SegmentView,
        rule: ShedRule,
        now: Timestamp,
    ) -> Result<()> {
        let token = self.queue.root.environment().rng.next_u64();
        let terms = Terms {
            lease: Lease { token, until: now, worker: String::new() },
            now,
            max: usize::MAX,
            receives_max: None,
            poison: crate::config::GroupPoison::Skip,
            shed: Some(rule),
            groups: Some(std::collections::HashMap::new()),
            behind: None,
        };
        let edited = self
            .edit(lane, view.place(), move |view| match view {
                Some(view) => {
                    let claimed = claim(view, &terms, &Wanted::Loose(End::Front));
                    let changed = claimed.changed();
                    (Some((claimed, view.clone())), changed)
                }
                None => (None, false),
            })
            .await?;
        if let (Some((claimed, view)), _) = edited {
            self.count(Event::Expired, claimed.expired);
            self.count(Event::of_move(rule.reason), claimed.shed.len());
            self.move_out(lane, &view, &claimed.moves, token).await;
        }
        Ok(())
    }

    /// Reads loose lanes on at one end.
    pub(super) async fn look_loose(
        &self,
        scanned: &mut Scanned,
        all: &[Mutex<LooseView>],
        end: End,
        need: usize,
    ) -> Result<()> {
        // A few more than needed: what is read is remembered, and few requests cost less than many.
        let mut rows = (2 * need).clamp(8, SCAN_ROWS_MAX);
        loop {
            let wanting: Vec<usize> = (0..all.len())
                .filter(|lane| {
                    let tail = end == End::Back && !flag(&scanned.tails, *lane);
                    let ready = all.get(*lane).and_then(|view| lock(view).first_appended(end));
                    tail || (ready.is_none() && !flag(&scanned.exhausted, *lane))
                })
                .take(REQUESTS_MAX)
                .collect();
            if wanting.is_empty() || scanned.pages_left == 0 {
                return Ok(());
            }
            scanned.pages_left -= 1;
            let reads = wanting.iter().map(|lane| {
                let tail = !flag(&scanned.tails, *lane);
                let number = u8::try_from(*lane).unwrap_or(u8::MAX);
                self.read_loose(&scanned.lanes, number, end, tail, rows)
            });
            for (lane, outcome) in wanting.iter().zip(join_all(reads).await) {
                let more = outcome?;
                set(&mut scanned.tails, *lane, true);
                set(&mut scanned.exhausted, *lane, !more);
            }
            rows = (2 * rows).min(SCAN_ROWS_MAX);
        }
    }

    /// Reads one page. Says whether there may be more.
    async fn read_loose(
        &self,
        lanes: &[QueueLane],
        number: u8,
        end: End,
        tail: bool,
        rows: usize,
    ) -> Result<bool> {
        let Views::Loose(all) = self.views() else { return Ok(false) };
        let lane = lanes.get(usize::from(number)).ok_or_else(|| no_lane(number))?;
        let Some(gap) = with(all, number, |view| view.gap(end, tail)).flatten() else {
            return Ok(false);
        };
        let mut scan = lane.scan()?.limit(rows).relaxed();
        if gap.from > 0 {
            scan = scan.from(place(gap.from))?;
        }
        if let Some(to) = gap.to {
            scan = scan.to(place(to))?;
        }
        if end == End::Back {
            scan = scan.reverse();
        }
        let config = self.queue.known_config();
        let page = lane.page(scan).await?;
        let page = Rows::of(page, |segment| SegmentView::of(segment, &config))?;
        let now = self.now();
        Ok(with(all, number, |view| view.absorb(end, gap, &page, now)).unwrap_or(false))
    }

    /// Reads strict lanes on.
    async fn look_strict(
        &self,
        scanned: &mut Scanned,
        all: &[Mutex<StrictView>],
        need: usize,
    ) -> Result<()> {
        // Four rows of a full segment are one read unit where reading has a price.
        let least = need.div_ceil(8).clamp(4, SCAN_ROWS_MAX);
        for (lane, view) in (0_u8..).zip(all) {
            let (mut rows, mut ahead) = (least, false);
            while scanned.pages_left > 0 && !flag(&scanned.exhausted, usize::from(lane)) {
                let next = {
                    let view = lock(view);
                    if view.is_enough(need, ahead, scanned.now) {
                        break;
                    }
                    view.next()
                };
                let Some(next) = next else { break };
                scanned.pages_left -= 1;
                let of = scanned.lanes.get(usize::from(lane)).ok_or_else(|| no_lane(lane))?;
                // Strongly consistent: what is missed here could be an earlier message of a group.
                let page = of.page(of.scan()?.from(Place::Number(next))?.limit(rows)).await?;
                let config = self.queue.known_config();
                let page = Rows::of(page, |segment| SegmentView::of(segment, &config))?;
                let more = lock(view).absorb(page, self.now());
                set(&mut scanned.exhausted, usize::from(lane), !more);
                rows = (2 * rows).min(SCAN_ROWS_MAX);
                ahead = true;
            }
            let is_idle = !lock(view).has_ready();
            if is_idle && !flag(&scanned.looked_again, usize::from(lane)) {
                set(&mut scanned.looked_again, usize::from(lane), true);
                let stale = lock(view).held_by_others(scanned.now, REQUESTS_MAX);
                self.look_again(scanned, lane, stale).await?;
            }
        }
        Ok(())
    }

    /// Looks again at segments in which others hold messages: they may have given them back, or be done.
    async fn look_again(&self, scanned: &Scanned, lane: u8, stale: Vec<Place>) -> Result<()> {
        let of = scanned.lanes.get(usize::from(lane)).ok_or_else(|| no_lane(lane))?;
        let reads = join_all(stale.iter().map(|place| of.get(*place))).await;
        for (place, read) in stale.into_iter().zip(reads) {
            match read? {
                Some(segment) => {
                    let view = SegmentView::of(segment, &self.queue.known_config())?;
                    self.saw(lane, view, self.now(), false);
                }
                None => self.finished(lane, place, self.now()),
            }
        }
        Ok(())
    }

    /// Chooses segments to claim up to `need` messages from, in order.
    pub(super) fn pick(self: &Arc<Self>, scanned: &mut Scanned, need: usize) -> Vec<Pick> {
        match self.views() {
            Views::Loose(all) => self.pick_loose(scanned, all, need),
            Views::Strict(all) => self.pick_strict(scanned, all, need),
        }
    }

    fn pick_loose(
        self: &Arc<Self>,
        scanned: &Scanned,
        all: &[Mutex<LooseView>],
        need: usize,
    ) -> Vec<Pick> {
        let mut picks = Vec::new();
        let mut left = need;
        let end = scanned.end;
        while left > 0 && picks.len() < REQUESTS_MAX {
            let first = (0_u8..)
                .zip(all)
                .filter_map(|(lane, view)| Some((lane, lock(view).first_appended(end)?)))
                .max_by_key(|(lane, appended)| rank(scanned, *lane, *appended));
            let Some((lane, _)) = first else { break };
            let Some(Some((view, count))) = with(all, lane, |view| view.pledge(end, left)) else {
                break;
            };
            left -= count;
            picks.push(Pick {
                core: Arc::clone(self),
                lane,
                view,
                count,
                wanted: Wanted::Loose(end),
            });
        }
        picks
    }

    fn pick_strict(
        self: &Arc<Self>,
        scanned: &Scanned,
        all: &[Mutex<StrictView>],
        need: usize,
    ) -> Vec<Pick> {
        let mut picks: Vec<Pick> = Vec::new();
        let mut left = need;
        for (lane, view) in (0_u8..).zip(all) {
            while left > 0 && picks.len() < REQUESTS_MAX {
                let Some(pick) = lock(view).pledge(left, scanned.now) else { break };
                left = left.saturating_sub(pick.count.max(1));
                let alone = pick.groups.len() == 1;
                let wanted = Wanted::Strict(pick.groups);
                picks.push(Pick {
                    core: Arc::clone(self),
                    lane,
                    view: pick.view,
                    count: pick.count.max(1),
                    wanted,
                });
                if alone {
                    // As many as there are of one group come first, then others.
                    return picks;
                }
            }
        }
        picks
    }
}

/// Whether no lane has anything to choose from.
fn is_idle(all: &[Mutex<LooseView>], end: End) -> bool {
    all.iter().all(|view| lock(view).first_appended(end).is_none())
}

/// How soon the first message of a lane comes: the greatest rank first.
fn rank(scanned: &Scanned, lane: u8, appended: Timestamp) -> (u64, u64) {
    let age = scanned.now.since(appended).as_millis();
    let age = u64::try_from(age).unwrap_or(u64::MAX);
    match (scanned.order, scanned.end) {
        (Order::Priority { aging }, _) => {
            let step = u64::try_from(aging.max(Duration::from_millis(1)).as_millis()).unwrap_or(1);
            (level_of(scanned, lane) + age / step, age)
        }
        (_, End::Front) => (0, u64::MAX - appended.as_millis()),
        (_, End::Back) => (0, appended.as_millis()),
    }
}

/// The priority of the messages in a lane: lanes of a higher priority stand behind those of a lower one.
fn level_of(scanned: &Scanned, lane: u8) -> u64 {
    u64::from(lane / scanned.lanes_each.max(1))
}

/// When the oldest message that waits was sent.
fn oldest(all: &[Mutex<LooseView>]) -> Option<Timestamp> {
    all.iter().filter_map(|lane| lock(lane).first_appended(End::Front)).min()
}

const fn place(point: u128) -> Place {
    Place::Id(UniqueId::from_bytes(point.to_be_bytes()))
}

fn flag(flags: &[bool], at: usize) -> bool {
    flags.get(at).copied().unwrap_or(true)
}

fn set(flags: &mut [bool], at: usize, value: bool) {
    if let Some(flag) = flags.get_mut(at) {
        *flag = value;
    }
}
