//! Every bound of the consumer, in one place.

use std::time::Duration;

use millpond_store::Backoff;

/// Longest name of a consumer, in bytes: it is part of every key.
pub const NAME_BYTES_MAX: usize = 128;

/// Longest name of a task or a step, in bytes.
pub const TASK_BYTES_MAX: usize = 64;

/// Most tasks of a consumer: each has its place in a message's row.
pub const TASKS_MAX: usize = 32;

/// Most steps that are remembered of one task.
pub const STEPS_MAX: usize = 64;

/// Most attempts at a task.
pub const ATTEMPTS_MAX: u32 = 1_000;

/// Attempts at a task, unless the consumer says otherwise.
pub const ATTEMPTS_DEFAULT: u32 = 10;

/// Most handlers that run at a time.
pub const CONCURRENCY_MAX: usize = 1_000;

/// Handlers that run at a time, unless the consumer says otherwise.
pub const CONCURRENCY_DEFAULT: usize = 16;

/// The share of the remaining time after which handlers are cut off, unless the consumer says otherwise.
pub const TIMEOUT_SHARE_DEFAULT: f64 = 0.8;

/// The smallest and the largest share: below it nothing gets done, above it nothing can be saved.
pub const TIMEOUT_SHARE_RANGE: (f64, f64) = (0.05, 0.95);

/// Of the time until handlers are cut off, the share after which no further record is read.
pub const READ_SHARE: f64 = 0.5;

/// Of the time that is left for saving, the share after which the answer is given whatever hangs.
pub const FINISH_SHARE: f64 = 0.75;

/// When the parts of that end, as shares of it: the hook before the finish, letters, state, the hook after the batch. Letters
/// and state have most.
pub const FINISH_ENDS: [f64; 4] = [0.2, 0.5, 0.9, 1.0];

/// The time that is taken for remaining when there is no deadline: the longest that a Lambda function may run.
pub const REMAINING_MAX: Duration = Duration::from_secs(15 * 60);

/// Largest event: well over the 6 MB that Lambda delivers.
pub const EVENT_BYTES_MAX: usize = 64 * 1_024 * 1_024;

/// Most records in one event: Lambda's own bound is 10,000.
pub const EVENT_RECORDS_MAX: usize = 20_000;

/// Most messages that one batch may come to, through aggregates and extractors.
pub const MESSAGES_MAX: usize = 200_000;

/// Longest sequence number, in digits: Kinesis has 56, DynamoDB 21 to 40.
pub const SEQUENCE_DIGITS_MAX: usize = 128;

/// Longest id of a record or message, in bytes.
pub const ID_BYTES_MAX: usize = 256;

/// Longest ARN, in bytes: with the names around it, it still fits a partition's name.
pub const ARN_BYTES_MAX: usize = 1_536;

/// Longest shard id, in bytes.
pub const SHARD_BYTES_MAX: usize = 128;

/// Longest error or reason that is kept, in bytes.
pub const REASON_BYTES_MAX: usize = 512;

/// Most warnings, and most problems, in one report. More are counted.
pub const REMARKS_MAX: usize = 32;

/// How long the state of a message is kept, unless the consumer says otherwise: the longest that SQS keeps a message.
pub const STATE_KEPT_DEFAULT: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// How long a batch's marker is kept: a source delivers again what was not answered within minutes.
pub const MARKER_KEPT: Duration = Duration::from_secs(6 * 60 * 60);

/// How many markers before a batch are looked at: Lambda runs up to ten batches of one shard at a time.
pub const MARKERS_SEEN_MAX: usize = 16;

/// Most rows of state that one batch reads.
pub const STATE_ROWS_MAX: usize = 1_000_000;

/// How often a write is tried again over what others wrote.
pub const CONFLICTS_MAX: u32 = 8;

/// How a write of state that failed for the moment is tried again, beyond what the store does by itself: three times more,
/// within 0.35 seconds.
pub const SAVE_BACKOFF: Backoff = Backoff {
    base: Duration::from_millis(50),
    longest: Duration::from_millis(200),
    attempts_max: 4,
};

/// How often the steps of running tasks are saved. A batch that is done sooner saves none of them by themselves; what a
/// kill repeats ended at most this long, and the time of one write, before it.
pub const STEPS_SAVED_EVERY: Duration = Duration::from_secs(5);

/// How long messages of a Millpond queue are on loan, unless their source says otherwise.
pub const LOAN_DEFAULT: Duration = Duration::from_secs(30);

/// A loan is extended when this part of it has passed, so that one extension may fail.
pub const LOAN_EXTENDED_AT: u32 = 3;

/// How many rows are read at a time where keys are not a range.
pub const GETS_AT_A_TIME: usize = 32;

/// How many writes of state are under way at a time.
pub const SAVES_AT_A_TIME: usize = 4;

/// How many letters are handed to a sink at a time.
pub const LETTERS_AT_A_TIME: usize = 64;

/// The longest window in which duplicates are remembered.
pub const DUPLICATES_WINDOW_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The state of a tumbling window is warned of when it is larger than this: Lambda ends the window then.
pub const WINDOW_STATE_BYTES_MAX: usize = 1_000_000;

/// A response is never larger than this: Lambda's bound is 6 MB, and 10,000 ids have 1 MB.
pub const RESPONSE_BYTES_MAX: usize = 6 * 1_000 * 1_000;
