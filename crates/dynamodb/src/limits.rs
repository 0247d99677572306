//! Every bound of this backend, in one place. The limits of items, groups and pages are the waist's own
//! ([`millpond_store::limits`]).

use std::time::Duration;

use millpond_store::Backoff;

/// Shortest table name (DynamoDB's bound).
pub const TABLE_NAME_MIN: usize = 3;

/// Longest table name (DynamoDB's bound).
pub const TABLE_NAME_MAX: usize = 255;

/// Most writes in one `BatchWriteItem` (DynamoDB's bound).
pub const BATCH_WRITES_MAX: usize = 25;

/// Most requests that one call of `write_each` has in flight.
pub const EACH_IN_FLIGHT_MAX: usize = 16;

/// Most service pages that one call of `query` reads; then it answers with what it has and where to go on. Pages
/// full of expired items need more than one.
pub const SERVICE_PAGES_MAX: usize = 8;

/// How long one attempt may take to connect.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// How long one attempt may take in all. DynamoDB answers within tens of milliseconds, a transaction of 4 MB
/// within a second.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(5);

/// No attempt begins later than this after the first.
pub const OPERATION_TIMEOUT: Duration = Duration::from_secs(30);

/// How long the outcome of a write may stay unknown: a request is refused 5 minutes after it was signed, by a
/// clock that may itself be off by 5 minutes. Our own attempts end long before.
pub const OUTCOME_WINDOW: Duration = Duration::from_secs(5 * 60 + 5 * 60);

/// A waiter without a hint looks again after this long …
pub const POLL_SHORTEST: Duration = Duration::from_millis(100);

/// … and after twice as long each time, up to this.
pub const POLL_LONGEST: Duration = Duration::from_secs(2);

/// The most that is rewritten for one write unit.
pub const SMALL_ITEM_BYTES: usize = 1_024;

/// How a table is waited for: up to 1, 2, 4, 5, 5 … seconds between 90 looks, half of that on average, some 4
/// minutes in all. Tables are made within a minute, rarely more.
pub const TABLE_WAIT: Backoff =
    Backoff { base: Duration::from_secs(1), longest: Duration::from_secs(5), attempts_max: 90 };
