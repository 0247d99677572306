//! Every bound of traces.

use std::time::Duration;

/// Spans that wait to be sent. One has about a kilobyte.
pub const OUTBOX_SPANS_MAX: usize = 4_096;
/// Spans that are sent together.
pub const BATCH_SPANS_MAX: usize = 512;
/// How long a span waits for others to be sent with.
pub const BATCH_EVERY: Duration = Duration::from_secs(1);

/// How long a connection to the collector may take to be made.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the collector may take to answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// The collector's answer says little.
pub const ANSWER_BYTES_MAX: usize = 64 * 1024;
/// How often a batch is tried.
pub const TRIES_MAX: u32 = 3;
/// The pause before the second try; it doubles.
pub const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause that a collector can ask for.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(30);
/// How long the rest may take to be sent when the server stops.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Spans of requests to the store in one request; the rest is only counted. A purge may make thousands.
pub const STORE_SPANS_MAX: u64 = 32;
/// What is shown of a text that a client chose.
pub const TEXT_CHARS_MAX: usize = 256;
