//! Every bound of the API, in one place.

use std::time::Duration;

/// Longest wait of one request, in milliseconds: a minute, which proxies let pass.
pub const WAIT_MS_MAX: u64 = 60_000;

/// Most messages, records or receipts in one request.
pub const BATCH_MAX: usize = 1_000;

/// Most messages, tasks or records in one answer.
pub const LISTED_MAX: usize = 10_000;

/// How many are returned when a request does not say.
pub const LISTED_DEFAULT: usize = 100;

/// Handles of clients, topics and sequencers that are kept open, of each kind. Opening one again costs a read or two.
pub const HANDLES_MAX: usize = 10_000;

/// Workers of groups that one server keeps. One that is silent for its lease makes room.
pub const MEMBERS_MAX: usize = 2_000;

/// How long a sequencer's settings are relied on before they are read again.
pub const SETTINGS_AGE_MAX: Duration = Duration::from_secs(10);

/// Records that a check of a topic reads at a time.
pub const CHECK_RECORDS: usize = 1_000;
