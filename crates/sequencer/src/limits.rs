//! Every bound of the sequencer, in one place.

use std::time::Duration;

/// Longest name of a sequencer, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// Longest name of a queue, in bytes: with everything else that a cursor says, the cursor item stays within the
/// 1,024 bytes that are one write unit on DynamoDB.
pub const QUEUE_BYTES_MAX: usize = 256;

/// Longest name of a reader, in bytes.
pub const READER_BYTES_MAX: usize = 128;

/// Greatest sequence number: 2^63 − 2, so that every position and the one behind it is a number that every store
/// holds.
pub const SEQ_MAX: u64 = i64::MAX as u64 - 1;

/// Largest payload: 350 × 1,024. With its attributes and keys it stays within the store's 400 KiB for an item.
pub const PAYLOAD_BYTES_MAX: usize = 350 * 1_024;

/// Most bytes in a message's attributes, as stored (JSON): 32 × 1,024.
pub const ATTRIBUTES_BYTES_MAX: usize = 32 * 1_024;

/// Most messages in one call of `put_batch`: the store's bound for independent writes is 1,024.
pub const PUT_BATCH_MAX: usize = 1_000;

/// Most queues that one call of `put_batch` advances at the same time.
pub const QUEUES_IN_FLIGHT_MAX: usize = 16;

/// Most numbers that one step of a cursor may pass. A page of the store holds as many rows.
pub const BATCH_MAX: usize = 1_000;

/// Most steps of a cursor in one call; what is left then is left to the next put or to the sweeper.
pub const STEPS_MAX: usize = 1_000;

/// Most times in a row that a call starts over because others changed the cursor first.
pub const CONFLICTS_MAX: usize = 64;

/// How often a write with an unknown outcome is sent again before the outcome is reported as unknown.
pub const UNKNOWN_RETRIES_MAX: usize = 3;

/// Writes that a cursor remembers, latest first, so that a writer whose answer was lost finds out whether its
/// write was applied although others came after it.
pub const TRAIL_MAX: usize = 8;

/// Most gap records that one atomic group changes: the store's 100, less the cursor and some to spare.
pub const GAP_WRITES_MAX: usize = 80;

/// Most messages in one answer of `read`.
pub const READ_MAX: usize = 1_000;

/// `read` ends its answer once it holds this many bytes of payload: 4 × 1,024 × 1,024.
pub const READ_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Most buffered rows that `pending` and `missing` look at.
pub const PENDING_ROWS_MAX: usize = 100_000;

/// Most runs in a summary of what is pending or missing.
pub const RUNS_MAX: usize = 1_000;

/// Most late arrivals, readers or queues in one listing.
pub const LISTING_MAX: usize = 10_000;

/// Rows that one call of `trim` removes at most.
pub const TRIM_ROWS_MAX: usize = 1_000;

/// Retention removes delivered messages once this many have gathered above what it keeps.
pub const TRIM_LAG: u64 = 64;

/// Queues of which a handle remembers where they were: a hint that saves reads, some 200 bytes each.
pub const KNOWN_QUEUES_MAX: usize = 10_000;

/// Queues that failed halfway which a handle remembers for its sweeper.
pub const SUSPECTS_MAX: usize = 10_000;

/// Parts of the index of unsettled queues, and of the list of queues: as many partitions of the store share the
/// load.
pub const SHARDS: u64 = 16;

/// A row of the index of unsettled queues is not removed before it is this old …
pub const UNSETTLED_KEPT: Duration = Duration::from_secs(10 * 60);

/// … and not relied on by its writer when it is older than this. The difference is how far clocks may be apart.
pub const UNSETTLED_TRUSTED: Duration = Duration::from_secs(5 * 60);

/// Queues that one pass of the sweeper visits at most; each pass begins with a part of the index chosen by chance.
pub const SWEEP_QUEUES_MAX: usize = 100_000;

/// Queues with changes that one subscription to all queues holds until it is asked for them.
pub const SUBSCRIBED_QUEUES_MAX: usize = 100_000;

/// Subscriptions to all queues that one sequencer may have at once.
pub const SUBSCRIPTIONS_MAX: usize = 1_000;

/// Records in one DynamoDB Streams event (the service's bound for a Lambda batch).
pub const STREAM_RECORDS_MAX: usize = 10_000;

/// Window of a queue, in numbers, unless configured otherwise.
pub const SPAN_DEFAULT: u64 = 1_000_000;
