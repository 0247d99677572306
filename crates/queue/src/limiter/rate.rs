//! A rate: start times, evenly spaced, that processes reserve in blocks.
//!
//! Nothing here does I/O. Times are nanoseconds since 1970, since at a million a second a millisecond holds a thousand
//! starts.

use std::collections::VecDeque;

use millpond_store::{Attributes, Expiry, Item, Result, StoreError, Timestamp};

use crate::config::Rate;
use crate::limits::{
    RATE_AHEAD_MAX, RATE_BLOCK, RATE_HORIZON, RATE_LATE, RATE_LATE_MAX, RATE_ROW_KEPT,
};
use crate::rows::Step;

const NANOS_PER_MILLI: i64 = 1_000_000;

/// A rate as whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Between two starts.
    pub interval: i64,
    /// How late a start time may be used: what makes up for waking late.
    pub slack: i64,
    /// The same with what makes bursts.
    pub late: i64,
    /// Start times that are reserved at once, at most, beyond those that are due.
    pub block_max: i64,
}

impl Pace {
    pub fn of(rate: Rate) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a rate is 0.001 to 1,000,000 a second"
        )]
        let interval = (1e9 / rate.per_second).round().max(1.0) as i64;
        let burst = i64::from(rate.burst.max(1));
        let slack = (interval / 2).clamp(nanos(RATE_LATE), nanos(RATE_LATE_MAX));
        let late = interval.saturating_mul(burst - 1).saturating_add(slack);
        Self { interval, slack, late, block_max: (nanos(RATE_BLOCK) / interval).max(1) }
    }
}

/// Start times, `count` of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    first: i64,
    interval: i64,
    count: i64,
}

impl Run {
    pub fn count(&self) -> usize {
        usize::try_from(self.count).unwrap_or(0)
    }

    /// The first of them is used.
    pub fn use_one(&mut self) {
        self.split(1);
    }

    /// Takes up to `most` from the beginning that have come by `now`.
    fn split_due(&mut self, most: i64, now: i64) -> Self {
        let due = if self.first > now { 0 } else { (now - self.first) / self.interval + 1 };
        self.split(most.min(due))
    }

    /// Takes this many from the beginning.
    fn split(&mut self, count: i64) -> Self {
        let count = count.clamp(0, self.count);
        let taken = Self { count, ..*self };
        self.first += count * self.interval;
        self.count -= count;
        taken
    }
}

/// The start times that a process has reserved and not used.
#[derive(Debug, Default)]
pub struct Slots {
    runs: VecDeque<Run>,
    /// How many were reserved the last time.
    last_block: i64,
    /// When a message was started last.
    last_start: Option<i64>,
    /// When more can be reserved, if all that may be is taken.
    pub full_until: Option<Timestamp>,
}

impl Slots {
    /// Takes up to `most` start times that have come. Those that were not used in time are forgotten, so that they
    /// cannot bunch up.
    pub fn take(&mut self, most: usize, pace: Pace, now: Timestamp) -> Vec<Run> {
        let now = instant(now);
        self.forget_before(now - pace.late);
        let mut taken = Vec::new();
        let mut left = i64::try_from(most).unwrap_or(i64::MAX);
        while left > 0 {
            let Some(run) = self.runs.front_mut() else { break };
            let part = run.split_due(left, now);
            if run.count == 0 {
                self.runs.pop_front();
            }
            if part.count == 0 {
                break;
            }
            left -= part.count;
            taken.push(part);
        }
        taken
    }

    fn forget_before(&mut self, time: i64) {
        while let Some(run) = self.runs.front_mut() {
            if run.first < time {
                let stale = (time - run.first + run.interval - 1) / run.interval;
                let stale = run.split(stale);
                // What was not used was too much to ask for.
                self.last_block = (self.last_block - stale.count).max(0);
            }
            if run.count > 0 {
                return;
            }
            self.runs.pop_front();
        }
    }

    /// Gives start times back that were taken and not used.
    pub fn give_back(&mut self, runs: Vec<Run>) {
        for run in runs.into_iter().rev().filter(|run| run.count > 0) {
            let at = self.runs.partition_point(|other| other.first < run.first);
            self.runs.insert(at, run);
        }
    }

    pub fn started(&mut self, now: Timestamp) {
        self.last_start = Some(instant(now));
    }

    pub fn reserved(&mut self, run: Run) {
        self.last_block = run.count;
        self.full_until = None;
        self.give_back(vec![run]);
    }

    /// When the next start time comes, or more can be reserved.
    pub fn next(&self) -> Option<Timestamp> {
        match self.runs.front() {
            Some(run) => Some(timestamp_after(run.first)),
            None => self.full_until,
        }
    }

    /// Whether it is time to reserve the next block, so that it is there when the last one is used up.
    pub fn is_low(&self, now: Timestamp) -> bool {
        let end = self.runs.back().map(|run| run.first + run.count * run.interval);
        let soon = instant(now) + nanos(RATE_BLOCK) / 2;
        self.last_block > 1 && end.is_some_and(|end| end < soon)
    }

    /// How many to reserve. A process that comes back for more within the time between two starts can use twice as
    /// many as the last time; one that takes longer could not use those that follow its first.
    pub fn block(&self, want: usize, pace: Pace, now: Timestamp) -> i64 {
        let want = i64::try_from(want).unwrap_or(i64::MAX);
        let is_eager = self.last_start.is_some_and(|start| instant(now) - start <= pace.interval);
        let grown = if is_eager { self.last_block.saturating_mul(2) } else { 1 };
        grown.clamp(1, pace.block_max).max(want)
    }
}

/// What a row says of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateRow {
    /// The first start time that nobody has reserved.
    pub next: i64,
    pub interval: i64,
}

impl RateRow {
    pub fn read(item: &Item) -> Result<Self> {
        let interval = item.attributes.number("interval_ns")?;
        let next = item.attributes.number("next_ns")?;
        if interval < 1 || next < 0 {
            let place = format!("limit {}", item.key);
            return Err(StoreError::corrupt(place, "its times make no sense"));
        }
        Ok(Self { next, interval })
    }

    fn attributes(self) -> Attributes {
        Attributes::new().with("next_ns", self.next).with("interval_ns", self.interval)
    }
}

/// Reserves up to `count` start times; nothing when those that may be reserved are taken, and then until when.
pub fn reserve(
    row: Option<&Item>,
    pace: Pace,
    count: i64,
    now: Timestamp,
) -> Result<Step<Result<Run, Timestamp>>> {
    let at = instant(now);
    let horizon = nanos(RATE_HORIZON);
    let first = match row.map(RateRow::read).transpose()? {
        None => at - pace.late + pace.slack,
        Some(row) => {
            let soonest = at + pace.interval;
            // The rate was changed, or a clock was far ahead: what was reserved then says nothing now.
            let is_void =
                row.interval != pace.interval || row.next > soonest + nanos(RATE_AHEAD_MAX);
            let next = if is_void { row.next.min(soonest) } else { row.next };
            next.max(at - pace.late)
        }
    };
    if first > at + horizon {
        return Ok(Step::Keep(Err(timestamp_after(first - horizon))));
    }
    let due = if first > at { 0 } else { (at - first) / pace.interval + 1 };
    let count = count.clamp(1, due + pace.block_max);
    let run = Run { first, interval: pace.interval, count };
    let row = RateRow { next: first + count * pace.interval, interval: pace.interval };
    // Once a whole burst is there again, an absent row says the same.
    let idle = timestamp_after(row.next.saturating_add(pace.late)).plus(RATE_ROW_KEPT);
    Ok(Step::Put(row.attributes(), Some(Expiry::at(idle)), Ok(run)))
}

fn nanos(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

fn instant(time: Timestamp) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX).saturating_mul(NANOS_PER_MILLI)
}

/// The first whole millisecond at which this time has come.
fn timestamp_after(time: i64) -> Timestamp {
    let millis = u64::try_from(time.max(0)).unwrap_or(0).div_ceil(NANOS_PER_MILLI.unsigned_abs());
    Timestamp::from_millis(millis)
}
