//! How many run at a time: permits, of which each process holds some until a time.
//!
//! Nothing here does I/O.

use std::fmt::Write as _;
use std::time::Duration;

use millpond_store::{Attributes, Expiry, Item, Result, StoreError, Timestamp};

use crate::limits::{HOLDERS_MAX, PERMIT_POLL_LONGEST, PERMIT_POLL_SHORTEST, PERMIT_SLACK};
use crate::rows::Step;

/// A process that holds permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Holder {
    pub process: u64,
    pub permits: usize,
    /// They come free by themselves then.
    pub until: Timestamp,
}

/// What a row says of who holds permits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunningRow {
    pub holders: Vec<Holder>,
}

impl RunningRow {
    pub fn read(item: &Item) -> Result<Self> {
        let text = item.attributes.text("holders")?;
        let holder = |part: &str| {
            let (process, rest) = part.split_once(':')?;
            let (permits, until) = rest.split_once('@')?;
            Some(Holder {
                process: u64::from_str_radix(process, 16).ok()?,
                permits: permits.parse().ok()?,
                until: Timestamp::from_millis(until.parse().ok()?),
            })
        };
        let corrupt =
            || StoreError::corrupt(format!("limit {}", item.key), "its holders cannot be read");
        let holders: Option<_> = text.split_whitespace().map(holder).collect();
        Ok(Self { holders: holders.ok_or_else(corrupt)? })
    }

    fn put<T>(&self, now: Timestamp, answer: T) -> Step<T> {
        let mut text = String::new();
        for Holder { process, permits, until } in &self.holders {
            let gap = if text.is_empty() { "" } else { " " };
            // Writing to a string does not fail.
            let _ = write!(text, "{gap}{process:016x}:{permits}@{}", until.as_millis());
        }
        let last = self.holders.iter().map(|holder| holder.until).max().unwrap_or(now);
        let attributes = Attributes::new().with("holders", text);
        Step::Put(attributes, Some(Expiry::at(last.plus(PERMIT_SLACK))), answer)
    }

    fn of(item: Option<&Item>) -> Result<Self> {
        item.map(Self::read).transpose().map(Option::unwrap_or_default)
    }

    fn own(&self, process: u64) -> Holder {
        let own = self.holders.iter().find(|holder| holder.process == process);
        own.copied().unwrap_or(Holder { process, permits: 0, until: Timestamp::default() })
    }

    fn set(&mut self, own: Holder) {
        self.holders.retain(|holder| holder.process != own.process);
        if own.permits > 0 {
            self.holders.push(own);
        }
    }
}

/// What a process asks of a row.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    pub process: u64,
    pub cap: usize,
    /// Permits that it needs beyond those that are in use.
    pub more: usize,
    /// Permits in use, which it cannot give back.
    pub in_use: usize,
    /// Until when messages are on loan for which permits are needed.
    pub lease: Timestamp,
    pub now: Timestamp,
}

/// Takes permits, or holds those that there are for longer. The answer is what the process holds from then on.
pub fn acquire(row: Option<&Item>, asked: Asked) -> Result<Step<Holder>> {
    let Asked { process, cap, more, in_use, lease, now } = asked;
    let mut row = RunningRow::of(row)?;
    let before = row.own(process);
    row.holders.retain(|holder| holder.until > now || holder.process == process);
    let others: usize = row
        .holders
        .iter()
        .filter(|holder| holder.process != process)
        .map(|holder| holder.permits)
        .sum();
    let room = cap.saturating_sub(others);
    let has_place = before.permits > 0 || row.holders.len() < HOLDERS_MAX;
    let permits = (in_use + more).max(before.permits).min(room).max(in_use.min(before.permits));
    let permits = if has_place { permits } else { 0 };
    let until = match lease.plus(PERMIT_SLACK) {
        until if in_use == 0 && permits > before.permits => until,
        until if lease > before.until && permits > 0 => until,
        until if permits > before.permits => until.max(before.until),
        _ => before.until,
    };
    let own = Holder { process, permits, until };
    if own == before {
        return Ok(Step::Keep(own));
    }
    row.set(own);
    Ok(row.put(now, own))
}

/// Keeps so many permits and gives the rest back.
pub fn give_back(
    row: Option<&Item>,
    process: u64,
    keep: usize,
    now: Timestamp,
) -> Result<Step<Holder>> {
    let mut row = RunningRow::of(row)?;
    let before = row.own(process);
    let own = Holder { permits: before.permits.min(keep), ..before };
    if own == before {
        return Ok(Step::Keep(own));
    }
    row.holders.retain(|holder| holder.until > now || holder.process == process);
    row.set(own);
    Ok(row.put(now, own))
}

/// What a process knows of its permits.
#[derive(Debug, Default)]
pub struct Permits {
    held: usize,
    until: Timestamp,
    /// Messages in work.
    in_use: usize,
    /// Given out, for messages that are about to be claimed.
    pending: usize,
    /// How long to wait before asking again after a refusal.
    poll: Duration,
}

impl Permits {
    pub const fn busy(&self) -> usize {
        self.in_use + self.pending
    }

    pub const fn is_idle(&self) -> bool {
        self.held > self.busy()
    }

    /// Takes up to `want` permits that are there for messages on loan until then.
    pub fn take(&mut self, want: usize, cap: usize, lease: Timestamp) -> usize {
        let idle =
            if lease <= self.until { self.held.min(cap).saturating_sub(self.busy()) } else { 0 };
        let taken = idle.min(want);
        self.pending += taken;
        taken
    }

    /// Whether permits must be held for longer to cover messages on loan until then.
    pub fn is_short_of(&self, lease: Timestamp) -> bool {
        self.in_use > 0 && lease > self.until
    }

    /// Only so many are there to be taken.
    pub const fn hold_only(&mut self, permits: usize) {
        self.held = permits;
    }

    pub fn learned(&mut self, own: Holder) {
        (self.held, self.until) = (own.permits, own.until);
    }

    pub fn started(&mut self) {
        self.pending = self.pending.saturating_sub(1);
        self.in_use += 1;
    }

    pub fn unused(&mut self, count: usize) {
        self.pending = self.pending.saturating_sub(count);
    }

    pub fn ended(&mut self) {
        self.in_use = self.in_use.saturating_sub(1);
    }

    /// How long to wait after a refusal: longer each time.
    pub fn refused(&mut self) -> Duration {
        self.poll = (self.poll * 2).clamp(PERMIT_POLL_SHORTEST, PERMIT_POLL_LONGEST);
        self.poll
    }

    pub fn granted(&mut self) {
        self.poll = Duration::ZERO;
    }
}
