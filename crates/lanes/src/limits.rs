//! Every bound of lanes and segments, in one place.

use std::time::Duration;

use millpond_store::limits::{ITEM_BYTES_MAX, PARTITION_BYTES_MAX};

/// Most messages in a segment of a queue. At about 7 bytes of index each they leave half of a 1 KB row for their
/// delivery state.
pub const QUEUE_SEGMENT_MESSAGES_MAX: usize = 64;

/// Most records in a segment of a log.
pub const LOG_SEGMENT_MESSAGES_MAX: usize = 10_000;

/// A segment is closed once its messages have this many bytes; a larger message has a segment of its own.
pub const QUEUE_SEGMENT_BYTES_MAX: usize = 256 * 1_024;

/// The same for a log: 1 MiB, so that a flush of small records is one large write.
pub const LOG_SEGMENT_BYTES_MAX: usize = 1_024 * 1_024;

/// Largest message (head and body), and so largest cargo of a segment.
pub const MESSAGE_BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// Longest head of a message.
pub const HEAD_BYTES_MAX: usize = 1_024 * 1_024;

/// Longest name of a lane: a partition's bound, less what is added for the lane's cargo.
pub const LANE_NAME_BYTES_MAX: usize = PARTITION_BYTES_MAX - 16;

/// An index longer than this is kept in the cargo instead of the row, in segments of more than
/// [`QUEUE_SEGMENT_MESSAGES_MAX`] messages.
pub const INDEX_IN_ROW_BYTES_MAX: usize = 1_024;

/// Longest delivery state of a segment, which a product keeps in the row.
pub const STATE_BYTES_MAX: usize = 64 * 1_024;

/// Cargo bytes in one item: the item's bound less 4 KiB for its key and names.
pub const CARGO_CHUNK_BYTES: usize = ITEM_BYTES_MAX - 4 * 1_024;

/// Most messages that wait for a lane's writer; who comes later waits to be let in.
pub const APPENDS_WAITING_MAX: usize = 16_384;

/// Most bytes that wait for a lane's writer.
pub const APPEND_BYTES_WAITING_MAX: usize = 64 * 1_024 * 1_024;

/// Most cargo requests of one call at a time.
pub const CARGO_REQUESTS_MAX: usize = 8;

/// How long a removed row of a sequenced lane stays as a husk, so that its number cannot be given again by a
/// writer that has not heard of it. Such a writer knows the tail of at most [`TAIL_AGE_MAX`] ago and notices when
/// its write took longer than half of this.
pub const HUSK_KEPT: Duration = Duration::from_secs(15 * 60);

/// A writer that saw the tail longer ago than this looks again before it appends.
pub const TAIL_AGE_MAX: Duration = Duration::from_secs(60);

/// How often one append goes for another number before it gives up. Each time, another writer has won one.
pub const APPEND_CONFLICTS_MAX: u32 = 1_000;

/// An append does not name a shared object that is older than this, so that the sweep cannot come between: half of
/// [`ORPHAN_AGE_MIN`].
pub const SHARED_AGE_MAX: Duration = Duration::from_secs(30 * 60);

/// An object that no row names is removed only when it is older than this: its row may be on the way.
pub const ORPHAN_AGE_MIN: Duration = Duration::from_secs(60 * 60);
