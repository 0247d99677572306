//! Every bound of queues, in one place.

use std::time::Duration;

use millpond_lanes::limits::{HEAD_BYTES_MAX, MESSAGE_BYTES_MAX as LANE_MESSAGE_BYTES_MAX};
use millpond_store::Backoff;

/// Longest name of a queue or topic, in characters: an SQS name of 80, and the region and account before it
/// (32 + 12 and two dots).
pub const NAME_CHARS_MAX: usize = 128;

/// Longest id of a client, in bytes.
pub const CLIENT_BYTES_MAX: usize = 256;

/// Longest group, deduplication id and attempt id, in bytes.
pub const ID_BYTES_MAX: usize = 128;

/// Largest message (body, attributes and what else its sender says), whatever a queue's own limit.
pub const MESSAGE_BYTES_MAX: usize = LANE_MESSAGE_BYTES_MAX - 64 * 1_024;

/// Most attributes of a message.
pub const ATTRIBUTES_MAX: usize = 64;

/// Most bytes of a message's attributes: the bound of a head in a lane, less room for what else is said in it.
pub const ATTRIBUTES_BYTES_MAX: usize = HEAD_BYTES_MAX - 64 * 1_024;

/// Longest name of an attribute, in bytes.
pub const ATTRIBUTE_NAME_BYTES_MAX: usize = 256;

/// Longest trace header, in bytes.
pub const TRACE_BYTES_MAX: usize = 1_024;

/// Longest error that is kept of a failed delivery: what is longer is cut.
pub const ERROR_BYTES_MAX: usize = 512;

/// Largest result that is kept of a finished task. Sixty-four of them fit a segment's state.
pub const RESULT_BYTES_MAX: usize = 512;

/// Longest name of a worker that is kept with a lease.
pub const WORKER_BYTES_MAX: usize = 64;

/// How many of a message's last deliveries are remembered.
pub const ATTEMPTS_KEPT: usize = 8;

/// Most messages of one receive.
pub const RECEIVE_MAX: usize = 1_000;

/// Longest wait of one receive.
pub const WAIT_MAX: Duration = Duration::from_secs(60 * 60);

/// Shortest visibility timeout.
pub const VISIBILITY_MIN: Duration = Duration::from_millis(1);

/// Longest visibility timeout.
pub const VISIBILITY_MAX: Duration = Duration::from_secs(12 * 60 * 60);

/// Longest delay.
pub const DELAY_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Shortest retention.
pub const RETENTION_MIN: Duration = Duration::from_secs(1);

/// Longest retention.
pub const RETENTION_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

/// Most lanes of a client.
pub const LANES_MAX: u8 = 16;

/// Most levels of priority.
pub const PRIORITIES_MAX: u8 = 10;

/// Most receives before a message is dead.
pub const RECEIVE_LIMIT_MAX: u32 = 1_000;

/// How long a sent message is known again by its deduplication id.
pub const DEDUP_WINDOW: Duration = Duration::from_secs(5 * 60);

/// How long a receive is known again by its attempt id.
pub const ATTEMPT_WINDOW: Duration = DEDUP_WINDOW;

/// Segments that a client remembers of one lane. At 64 messages each that is 262,144; a strict queue looks no
/// further ahead for groups that are free.
pub const KNOWN_SEGMENTS_MAX: usize = 4_096;

/// Spans of a lane that a client knows to have read.
pub const COVERED_SPANS_MAX: usize = 64;

/// Rows that are asked for at a time, at most.
pub const SCAN_ROWS_MAX: usize = 1_000;

/// Pages that one receive reads before it answers with what it has. Each is twice as long as the one before, so that
/// this is a million rows in which all messages are on loan.
pub const SCAN_PAGES_MAX: usize = 1_024;

/// How often a claim goes for another segment before a receive looks anew.
pub const CLAIM_ROUNDS_MAX: usize = 16;

/// How often a receive that puts some groups behind others looks on past those. Each time it passes up to
/// [`REQUESTS_MAX`] segments, so that this is [`KNOWN_SEGMENTS_MAX`], all that is remembered.
pub const BEHIND_ROUNDS_MAX: usize = KNOWN_SEGMENTS_MAX / REQUESTS_MAX;

/// How many groups of those that come behind others are told apart; the rest comes together.
pub const BEHIND_PASSES_MAX: usize = 4;

/// Most groups that a receive puts behind others.
pub const BEHIND_GROUPS_MAX: usize = 1_000;

/// Requests of one call at a time.
pub const REQUESTS_MAX: usize = 16;

/// How often a segment's change is tried against others before it gives up. Each time, another change has won.
pub const EDIT_CONFLICTS_MAX: usize = 64;

/// How often what was appended of late is looked at again, since ids of two clocks may come out of order.
pub const LOOK_BACK_EVERY: Duration = Duration::from_secs(2);

/// How far that look goes back.
pub const LOOK_BACK: Duration = Duration::from_secs(5);

/// How often everything that is remembered of a lane is read anew.
pub const FORGET_EVERY: Duration = Duration::from_secs(60);

/// How long a queue's configuration is relied on before it is read again.
pub const CONFIG_AGE_MAX: Duration = Duration::from_secs(10);

/// Pages that one step of maintenance reads.
pub const MAINTAIN_PAGES_MAX: usize = 16;

/// How often a receive looks whether too many messages wait, in a queue that has a limit for that.
pub const DEPTH_CHECK_EVERY: Duration = Duration::from_secs(1);

/// Clients without a handle whose counts are remembered until they are stored.
pub const COUNTS_KEPT_MAX: usize = 10_000;

/// Rows of counters of one client that are read, at most.
pub const COUNTER_ROWS_MAX: usize = 100_000;

/// A row of counters that was not written for this long is taken for one of a process that has gone.
pub const COUNTERS_MERGED_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// Segments at the old end that one receive sheds from, at most.
pub const SHED_SEGMENTS_MAX: usize = 4;

/// How long a message is set aside while it is moved to another queue.
pub const MOVE_LEASE: Duration = Duration::from_secs(30);

/// A clock that is ahead is followed this much faster than it goes, and one that is behind this much slower, in
/// percent: so no jump of a clock ends a lease early by more.
pub const CLOCK_SLEW_PERCENT: u32 = 10;

/// How often the change of a limit's or trigger's row is tried against others. Each time, another change has won.
pub const ROW_CONFLICTS_MAX: usize = 64;

/// How a request for such a row is tried again when the store fails for the moment: 3 times, within 0.2 seconds.
pub const ROW_RETRY: Backoff = Backoff {
    base: Duration::from_millis(25),
    longest: Duration::from_millis(100),
    attempts_max: 4,
};

/// How long start times are reserved for at once, at most (at least one start time is).
pub const RATE_BLOCK: Duration = Duration::from_millis(100);

/// How far ahead start times are reserved, by all processes together: twice a block, so that the next block is there
/// before the last one is used up.
pub const RATE_HORIZON: Duration = Duration::from_millis(200);

/// How late a start time may be used at least, beyond what bursts allow. It is 1 % of a second: so no window of a
/// second or more has over 1 % too many starts. At low rates it is half the time between two starts, which makes for at
/// most one start too many...
pub const RATE_LATE: Duration = Duration::from_millis(10);

/// ...and no more than this.
pub const RATE_LATE_MAX: Duration = Duration::from_millis(50);

/// Start times that are reserved further ahead than this were reserved by a clock that was wrong.
pub const RATE_AHEAD_MAX: Duration = Duration::from_secs(10);

/// How long the row of a rate is kept once it says nothing any more.
pub const RATE_ROW_KEPT: Duration = Duration::from_secs(60);

/// Processes that hold permits of one limit. At 40 bytes each, their row has at most 40 KB.
pub const HOLDERS_MAX: usize = 1_024;

/// How much longer than a message's lease the permits are held, so that they need not be renewed for each message.
pub const PERMIT_SLACK: Duration = Duration::from_secs(10);

/// How long a process keeps permits that it does not use.
pub const PERMIT_IDLE_MAX: Duration = Duration::from_millis(500);

/// How soon a process asks again for permits that others hold: after this, and twice as long each time...
pub const PERMIT_POLL_SHORTEST: Duration = Duration::from_millis(50);

/// ...up to this.
pub const PERMIT_POLL_LONGEST: Duration = Duration::from_secs(1);

/// Groups whose limits are remembered.
pub const LIMITED_GROUPS_MAX: usize = 10_000;

/// Most messages that a worker works on at a time, and most of one call of a batch handler.
pub const CONCURRENCY_MAX: usize = RECEIVE_MAX;

/// How long a worker waits for messages in one call.
pub const WORKER_WAIT: Duration = Duration::from_secs(20);

/// How often a worker does what must be done now and then.
pub const MAINTAIN_EVERY: Duration = Duration::from_secs(5);

/// How a worker waits after the store failed: for up to 50 ms at first, then for up to twice as long each time, and
/// up to 5 seconds. It does not give up.
pub const WORKER_BACKOFF: Backoff = Backoff {
    base: Duration::from_millis(50),
    longest: Duration::from_secs(5),
    attempts_max: u32::MAX,
};

/// How often a worker tries to say what became of a message while the store fails. A message that it cannot say
/// it of is received again.
pub const SETTLE_ATTEMPTS_MAX: u32 = 16;

/// How long before its deadline a worker stops receiving, at most, unless it is told otherwise.
pub const DRAIN_MAX: Duration = Duration::from_secs(5);

/// How long a run of a trigger may be silent before it is taken for dead.
pub const RUN_LEASE: Duration = Duration::from_secs(30);

/// How long whoever was told to start a run has for that, before the next wake-up tells somebody again.
pub const START_LEASE: Duration = Duration::from_secs(30);

/// How long after its end a run tries to give messages back, and to find out whether work remains, while the store
/// fails.
pub const RELEASE_MAX: Duration = Duration::from_secs(2);
