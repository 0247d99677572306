//! Every bound of the embedded engine, in one place.

use std::time::Duration;

use millpond_store::limits::{PARTITION_BYTES_MAX, SORT_KEY_BYTES_MAX};

/// Requests that may wait for the writer; whoever comes next waits for a place in the queue.
pub(crate) const REQUESTS_WAITING_MAX: usize = 4_096;

/// Most requests in one commit.
pub(crate) const BATCH_REQUESTS_MAX: usize = 4_096;

/// A commit takes no further request once it holds this many bytes: 16 MiB, about 40 ms of disk.
pub(crate) const BATCH_BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// How many of the last commits leave a row that recovery must find. A power of two.
pub(crate) const COMMITS_KEPT: u64 = 65_536;

/// After this many commits the tables in memory are written out: a quarter of [`COMMITS_KEPT`], so that what
/// only a journal holds is always among the commits that recovery can check.
pub(crate) const COMMITS_BETWEEN_FLUSHES: u64 = COMMITS_KEPT / 4;

/// Rows in memory before they are written to a table. Up to four such tables wait to be written, and one more
/// is filled: 5 × 32 MiB and the cache stay below the memory target of 300 MB.
pub(crate) const MEMTABLE_BYTES: u64 = 32 * 1_024 * 1_024;

/// Blocks of tables kept in memory.
pub(crate) const CACHE_BYTES: u64 = 32 * 1_024 * 1_024;

/// Full journals on disk before the oldest is made superfluous: 64 MiB, the least that fjall allows. With the one
/// in use, up to 128 MiB are checked and replayed when the store is opened, in well under a second.
pub(crate) const JOURNAL_BYTES_MAX: u64 = 64 * 1_024 * 1_024;

/// Rows of this size and up are stored apart from their keys, so that reclaiming space rewrites keys only.
pub(crate) const ROW_APART_BYTES_MIN: u32 = 512;

/// Files of rows that are stored apart: small enough that one is soon empty and deleted.
pub(crate) const APART_FILE_BYTES: u64 = 32 * 1_024 * 1_024;

/// Most ranges known to be empty. Each is two keys, at most 2 × 3 KB, usually below 100 bytes.
pub(crate) const GAPS_MAX: usize = 4_096;

/// Most known gaps that one scan steps over; behind them it reads row by row.
pub(crate) const GAPS_PER_SCAN_MAX: usize = 64;

/// A step to the next row that takes this long is worth remembering: about 100 deleted rows.
pub(crate) const GAP_WORTH: Duration = Duration::from_micros(10);

/// Rows at the beginning of a slow scan that the next one reads one by one: enough for a receive of ten. Reading so many
/// rows takes about as long as the beginning of a scan over a handful of tables.
pub(crate) const ROWS_REMEMBERED_MAX: usize = 16;

/// Rows that one query looks at, expired ones included, before it ends its page.
pub(crate) const QUERY_ROWS_MAX: usize = 10_000;

/// Expired items that one step of the sweeper removes.
pub(crate) const SWEEP_ROWS_MAX: usize = 1_000;

/// Steps that the sweeper makes before it lets others go first.
pub(crate) const SWEEP_STEPS_MAX: usize = 16;

/// How often the background work looks whether there is something to do.
pub(crate) const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(1);

/// Deleted rows below this number are not worth a compaction.
pub(crate) const RECLAIM_ROWS_MIN: u64 = 1_000;

/// While deletes go on, space is reclaimed once one row in this many is a deleted one.
pub(crate) const RECLAIM_SHARE_BUSY: u64 = 4;

/// Once deletes have paused, space is reclaimed when one row in this many is a deleted one.
pub(crate) const RECLAIM_SHARE_IDLE: u64 = 100;

/// Bytes of requests that may wait for the writer, in units of 1 KiB: 64 MiB.
pub(crate) const WAITING_KIB_MAX: usize = 64 * 1_024;

/// Independent writes are handed to the writer in parts of this size.
pub(crate) const PART_BYTES_MAX: usize = 4 * 1_024 * 1_024;

/// Longest row key: the partition's length in two bytes, partition and sort key.
pub(crate) const ROW_KEY_BYTES_MAX: usize = 2 + PARTITION_BYTES_MAX + SORT_KEY_BYTES_MAX;

/// Rows of this size and up may go to a cargo file.
pub(crate) const CARGO_ROW_BYTES_MIN: usize = 16 * 1_024;

/// Rows go to a cargo file when those of one commit have this many bytes together.
pub(crate) const CARGO_COMMIT_BYTES_MIN: usize = 256 * 1_024;

/// Values of this size and up are not copied when a row is made.
pub(crate) const VALUE_SHARED_BYTES_MIN: usize = 4 * 1_024;

/// A cargo file is closed once it has this many bytes.
pub(crate) const CARGO_FILE_BYTES: u64 = 64 * 1_024 * 1_024;

/// One step of moving rows out of a cargo file looks at this many of its bytes, and at least at one row.
pub(crate) const CARGO_STEP_BYTES: u64 = 4 * 1_024 * 1_024;

/// Cargo files that are open for reading at a time.
pub(crate) const CARGO_FILES_OPEN_MAX: usize = 128;

/// Parts of rows that are handed to the system at a time: as many as it takes.
pub(crate) const CARGO_PARTS_PER_CALL_MAX: usize = 1_024;

/// Size of a file of keys. A step of compaction merges up to fifty of them, usually about ten: 40 MiB, a third of a
/// second.
pub(crate) const TABLE_BYTES: u64 = 4 * 1_024 * 1_024;

/// Steps of reclaiming that the background work makes before it looks for expired items again.
pub(crate) const RECLAIM_STEPS_MAX: usize = 64;
