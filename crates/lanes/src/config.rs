//! What a lane is opened with.

use std::sync::Arc;
use std::time::Duration;

use millpond_store::{Environment, Store};

use crate::cargo::Objects;
use crate::limits::{
    LOG_SEGMENT_BYTES_MAX, LOG_SEGMENT_MESSAGES_MAX, QUEUE_SEGMENT_BYTES_MAX,
    QUEUE_SEGMENT_MESSAGES_MAX,
};

/// What lanes stand on.
#[derive(Debug, Clone)]
pub struct Ground {
    /// The store.
    pub store: Arc<dyn Store>,
    /// An object store for large cargo, if there is one.
    pub objects: Option<Objects>,
    /// Time and chance.
    pub environment: Environment,
}

impl Ground {
    /// A store, and no object store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, environment: &Environment) -> Self {
        Self { store, objects: None, environment: environment.clone() }
    }

    /// The same with an object store for large cargo.
    #[must_use]
    pub fn with_objects(self, objects: Objects) -> Self {
        Self { objects: Some(objects), ..self }
    }
}

/// How a lane lays its messages out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneConfig {
    /// Most messages in a segment.
    pub segment_messages_max: usize,
    /// A segment is closed once it has this many bytes.
    pub segment_bytes_max: usize,
    /// How long messages are kept. Cargo, and the rows of unordered lanes, expire by themselves after it. Default:
    /// for ever, so that removal is up to who removes.
    pub retention: Option<Duration>,
    /// Whether rows of unordered lanes expire by themselves. Default: yes. When not, a row that is past its
    /// retention says so ([`Segment::ends`](crate::Segment::ends)) and stays until it is finished, so that nothing
    /// ends uncounted.
    pub rows_expire: bool,
    /// Cargo of this size and more goes to the object store, when there is one. Default: 8 KiB, from where on a
    /// put and a get of an object cost less than writing and reading items.
    pub object_bytes_min: usize,
    /// Room that is left in the row for delivery state when deciding whether cargo goes inline.
    pub state_bytes_reserved: usize,
}

impl LaneConfig {
    /// As a queue wants it: up to 64 messages a segment, room for their delivery state.
    pub const QUEUE: Self = Self {
        segment_messages_max: QUEUE_SEGMENT_MESSAGES_MAX,
        segment_bytes_max: QUEUE_SEGMENT_BYTES_MAX,
        retention: None,
        rows_expire: true,
        object_bytes_min: 8 * 1_024,
        state_bytes_reserved: 64,
    };

    /// As a log wants it: large segments, no delivery state.
    pub const LOG: Self = Self {
        segment_messages_max: LOG_SEGMENT_MESSAGES_MAX,
        segment_bytes_max: LOG_SEGMENT_BYTES_MAX,
        state_bytes_reserved: 0,
        ..Self::QUEUE
    };
}

impl Default for LaneConfig {
    fn default() -> Self {
        Self::QUEUE
    }
}
