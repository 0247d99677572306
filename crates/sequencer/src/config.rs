//! How a sequencer treats its queues.

use std::time::Duration;

use crate::error::{Result, SequencerError};
use crate::limits::{BATCH_MAX, SEQ_MAX, SPAN_DEFAULT};

/// The number with which a queue begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// This one, in every queue.
    At(u64),
    /// The number of the message that is put first. What comes later with a smaller one is late.
    FirstSeen,
    /// What [`reset`](crate::Sequencer::reset) stored; a queue that was never reset is refused.
    Stored,
}

/// How far ahead of the number that a queue waits for messages may be: backpressure for producers. The awaited
/// message itself is always accepted.
///
/// The span is checked exactly. Messages and bytes are counted before a put that lands ahead, which reads what is
/// buffered; writers at the same time may together exceed them by what they have in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Numbers ahead, the awaited one included.
    pub span: u64,
    /// Messages buffered.
    pub count: Option<u64>,
    /// Bytes of payload buffered.
    pub bytes: Option<u64>,
}

impl Default for Window {
    fn default() -> Self {
        Self { span: SPAN_DEFAULT, count: None, bytes: None }
    }
}

/// What a second message with the same number means.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ConflictRule {
    /// The same payload and attributes make it a duplicate; anything else is refused with an error.
    #[default]
    Refuse,
    /// It is a duplicate, whatever it says: the first one stays.
    KeepFirst,
}

/// What happens when a queue waits for a number that does not come.
///
/// With a timer, a put that is the first to see a gap notes the time in the index of unsettled queues, which is a
/// small write more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum GapPolicy {
    /// It waits, however long. Gaps end only by `skip`.
    #[default]
    Wait,
    /// It waits, or goes on where a producer says by `declare_gap` that nothing will come.
    WhenDeclared,
    /// The sweeper skips what is missing this long after it was first seen missing. Declared gaps are skipped at
    /// once.
    SkipAfter(Duration),
    /// The sweeper marks the queue as parked this long after the gap was first seen, and says so to subscribers and
    /// in the cursor; the queue goes on when the message comes, or by `skip`.
    ParkAfter(Duration),
}

/// What happens to a message whose number was skipped, or is before the queue's first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LatePolicy {
    /// It is refused with an error.
    #[default]
    Reject,
    /// It is kept aside, to be read by `late`.
    SideQueue,
    /// It is kept aside, and subscribers are told.
    Deliver,
}

/// How long delivered messages stay readable.
///
/// They are removed by the puts that advance a queue, some at a time, and by `trim`; a queue that nobody writes to
/// keeps what it has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Retention {
    /// Until `trim`.
    #[default]
    Forever,
    /// The last so many numbers stay at least.
    Last(u64),
    /// What was put within this time stays at least.
    For(Duration),
}

/// How a sequencer treats its queues. Every process that uses a sequencer should say the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The first number. Default: 0.
    pub start: Start,
    /// The most numbers that one step of the cursor passes. Default: 100.
    pub batch: usize,
    /// Backpressure. Default: a million numbers.
    pub window: Window,
    /// Duplicates. Default: other content is refused.
    pub conflicts: ConflictRule,
    /// Gaps. Default: wait.
    pub gaps: GapPolicy,
    /// Late arrivals. Default: reject.
    pub late: LatePolicy,
    /// Delivered messages. Default: they stay.
    pub retention: Retention,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            start: Start::At(0),
            batch: 100,
            window: Window::default(),
            conflicts: ConflictRule::default(),
            gaps: GapPolicy::default(),
            late: LatePolicy::default(),
            retention: Retention::default(),
        }
    }
}

impl Config {
    pub(crate) fn check(&self) -> Result<()> {
        if self.batch == 0 || self.batch > BATCH_MAX {
            let problem = format!("is {}, and may be 1 to {BATCH_MAX}", self.batch);
            return Err(SequencerError::invalid("batch", problem));
        }
        if let Start::At(seq) = self.start {
            check_seq("start", seq)?;
        }
        let zero =
            [Some(self.window.span), self.window.count, self.window.bytes].contains(&Some(0));
        if zero {
            return Err(SequencerError::invalid("window", "of zero would accept nothing"));
        }
        Ok(())
    }
}

/// Refuses numbers over the bound.
pub(crate) fn check_seq(field: &'static str, seq: u64) -> Result<()> {
    if seq > SEQ_MAX {
        let problem = format!("{seq} is over the greatest sequence number, {SEQ_MAX}");
        return Err(SequencerError::invalid(field, problem));
    }
    Ok(())
}
