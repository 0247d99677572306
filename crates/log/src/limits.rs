//! Every bound of the log, in one place.

use std::time::Duration;

/// Longest name of a topic or a group, in bytes.
pub const NAME_BYTES_MAX: usize = 200;

/// Longest name that a worker's id begins with, in bytes: its id has a unique part too.
pub const WORKER_NAME_BYTES_MAX: usize = 100;

/// Most partitions of a topic: what one page of leases holds ten times over.
pub const PARTITIONS_MAX: u32 = 10_000;

/// Largest payload of a record. A segment's cargo has at most 16 MiB, and head and index must fit too.
pub const PAYLOAD_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// Key and headers of a record, together and encoded.
pub const HEAD_BYTES_MAX: usize = 64 * 1_024;

/// Most headers of a record.
pub const HEADERS_MAX: usize = 256;

/// Most records in one call of `append_batch`.
pub const BATCH_RECORDS_MAX: usize = 10_000;

/// Most bytes that wait in one topic handle; who comes later waits to be let in.
pub const APPEND_BYTES_WAITING_MAX: usize = 64 * 1_024 * 1_024;

/// Largest value of `object_bytes_min` and `segment_bytes_max` in a topic's configuration.
pub const SEGMENT_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Smallest value of `segment_bytes_max`.
pub const SEGMENT_BYTES_MIN: usize = 1_024;

/// Longest linger of a producer.
pub const LINGER_MAX: Duration = Duration::from_secs(60);

/// A writer that has seen the topic's configuration longer ago than this looks again before it appends.
pub const TOPIC_AGE_MAX: Duration = Duration::from_secs(15);

/// A producer's sequence is remembered this long after its last append.
pub const PRODUCER_KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);

/// How often an idempotent append looks at its producer's state anew.
pub const PRODUCER_LOOKS_MAX: u32 = 16;

/// Most records that one read returns.
pub const READ_RECORDS_MAX: usize = 10_000;

/// A read ends once it holds this many bytes.
pub const READ_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// Rows in the first page of a read, and in a later one.
pub const READ_ROWS: (usize, usize) = (4, 256);

/// Payload requests of one read at a time.
pub const READ_REQUESTS_MAX: usize = 8;

/// Bytes in the read cache unless configured otherwise.
pub const CACHE_BYTES: usize = 64 * 1_024 * 1_024;

/// Segments removed from a partition by one call of `trim`.
pub const TRIM_SEGMENTS_MAX: usize = 1_000;

/// Most topics in one answer of `list`, and groups in one of `groups`.
pub const LISTED_MAX: usize = 10_000;

/// Names that an error about an unknown one lists.
pub const NAMES_IN_ERROR_MAX: usize = 10;

/// Partitions that are worked on at a time where one call works on all.
pub const PARTITIONS_AT_A_TIME: usize = 16;

/// Bounds of a lease's length.
pub const LEASE_RANGE: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(60 * 60));

/// How many times a worker's heart beats within a lease: 3, so that two may be lost.
pub const BEATS_PER_LEASE: u32 = 3;

/// A worker that is asked for records beats at most this often within a lease, however often it is asked.
pub const PULL_BEATS_PER_LEASE: u32 = 10;

/// A worker trusts its leases for three quarters of a lease after its last heartbeat began; others take them after a
/// whole one.
pub const LEASE_TRUSTED_PERCENT: u32 = 75;

/// Most workers of a group.
pub const WORKERS_MAX: usize = 1_000;

/// How often a checkpoint is tried again when it is refused although the lease is still held.
pub const LEASE_CONFLICTS_MAX: u32 = 8;

/// Attempts at a record before it goes to the dead letters, at most.
pub const ATTEMPTS_MAX: u32 = 1_000;

/// Longest text of a failure that is kept with a dead letter.
pub const FAILURE_BYTES_MAX: usize = 4 * 1_024;

/// How long a consumer that found nothing waits before it looks again without a hint.
pub const IDLE_WAIT_MAX: Duration = Duration::from_secs(5);

/// Headers that a dead letter has beyond those of its record, and the bytes that they may take: a reason, three names
/// and some numbers.
pub const LETTER_HEADERS_MAX: usize = 8;

/// See [`LETTER_HEADERS_MAX`].
pub const LETTER_BYTES_MAX: usize = FAILURE_BYTES_MAX + 4 * 1_024;

/// A topic that grew longer ago than this has no writer left that does not know: more than twice [`TOPIC_AGE_MAX`],
/// and than clocks differ.
pub const GROWTH_SETTLED: Duration = Duration::from_secs(10 * 60);
