//! Every bound of the functions and their clients, in one place.

use std::time::Duration;

use millpond_store::Backoff;

/// Most records of one `PutRecords`.
pub const KINESIS_BATCH_MAX: usize = 500;

/// Most bytes of one `PutRecords`, partition keys included: 5 MiB.
pub const KINESIS_BATCH_BYTES_MAX: usize = 5 * 1_024 * 1_024;

/// Longest partition key, in characters.
pub const PARTITION_KEY_MAX: usize = 256;

/// Largest letter for a Kinesis stream: a record may have 1 MiB with its key, whose 256 characters may take 4 bytes each.
pub const KINESIS_LETTER_BYTES_MAX: usize = 1_024 * 1_024 - PARTITION_KEY_MAX * 4;

/// Most messages of one `SendMessageBatch`.
pub const SQS_BATCH_MAX: usize = 10;

/// Most bytes of one `SendMessageBatch`, and so of one letter: 256 KiB, which every SQS queue takes unless its own
/// `MaximumMessageSize` is less.
pub const SQS_BATCH_BYTES_MAX: usize = 256 * 1_024;

/// The most that an SQS queue can be set to take: 1 MiB.
pub const SQS_BYTES_MAX: usize = 1_024 * 1_024;

/// Longest message group, in characters.
pub const SQS_GROUP_MAX: usize = 128;

/// Records of a Kinesis stream that are read at a time.
pub const KINESIS_READ_MAX: usize = 1_000;

/// How often a shard may answer with nothing, though it says that there is more, before its letters are taken for read: the
/// service goes through a shard in steps of some minutes of its time.
pub const KINESIS_EMPTY_READS_MAX: usize = 10_000;

/// Shards of one page, the most that the service gives.
pub const SHARDS_PAGE: i32 = 1_000;

/// Most shards of a stream that are looked through.
pub const SHARDS_MAX: usize = 100_000;

/// How long a letter that is looked at, or brought back, cannot be received by others at most: a minute.
pub const REDRIVE_VISIBILITY_SECONDS: i32 = 60;

/// How often a request to AWS, or the part of a batch that failed, is tried: 5 times, with waits up to 50, 100, 200 and
/// 400 ms.
pub const AWS_BACKOFF: Backoff =
    Backoff { base: Duration::from_millis(50), longest: Duration::from_secs(1), attempts_max: 5 };

/// How often the end of another change of a mapping is waited for: 8 times, up to 10 s in all.
pub const MAPPING_BACKOFF: Backoff =
    Backoff { base: Duration::from_millis(200), longest: Duration::from_secs(3), attempts_max: 8 };

/// How long one attempt at a request may take to connect.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How long one attempt at a request may take in all.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// Mappings of one page, the most that the service gives.
pub const MAPPINGS_PAGE: i32 = 100;

/// Most pages of mappings that are looked through.
pub const MAPPINGS_PAGES_MAX: usize = 1_000;

/// Of the time to the deadline, the part that is kept for the answer: a fiftieth, within the two bounds below. What a consumer does
/// ends before it.
pub const ANSWER_SHARE: u32 = 50;
/// At least this long is kept for the answer, where there is as much.
pub const ANSWER_MIN: Duration = Duration::from_millis(100);
/// At most this long is kept for the answer.
pub const ANSWER_MAX: Duration = Duration::from_secs(2);

/// Of what is then left, the share that a run over a queue or a log has; the rest is for releasing what it holds, and
/// for the continuation.
pub const RUN_SHARE: f64 = 0.8;

/// Work that comes due later than this does not keep a worker going: the schedule finds it.
pub const CONTINUE_WITHIN: Duration = Duration::from_secs(60);

/// Most clients of a queue that one scheduled look goes through.
pub const CLIENTS_MAX: usize = 10_000;

/// Largest event of the worker's and the log's own functions.
pub const EVENT_BYTES_MAX: usize = 6 * 1_024 * 1_024;

/// Longest environment variable that is read, in bytes: all of a function's together may have 4 KB.
pub const VARIABLE_BYTES_MAX: usize = 4_096;
