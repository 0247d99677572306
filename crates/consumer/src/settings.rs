//! What a consumer goes by.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use millpond_store::Environment;

use crate::breaker::Breaker;
use crate::extract::Extractor;
use crate::identity::Identity;
use crate::response::Responses;
use crate::sink::{Sink, Spill};
use crate::source::{HashRange, SourceKind};
use crate::state::State;
use crate::task::{Hooks, Task, Windows};

/// Which messages wait for which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// None for any other.
    None,
    /// Each for those before it in its shard (of a queue: in the whole batch).
    PerShard,
    /// Each for those before it with the same key: the key properties' values or else the source's own key. The default.
    /// Messages without a key wait for none.
    #[default]
    PerKey,
}

/// What becomes of messages that have the id of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Duplicates {
    /// They are processed like any other. The default.
    #[default]
    Run,
    /// They are skipped, within the batch and within this time after the first one was finished. It costs a read and a
    /// small write for each message. Those whose bytes differ are skipped too, and reported. Each shard is by itself: what
    /// comes in two shards of a stream, say with two partition keys, is processed in both.
    Skip {
        /// How long ids are remembered.
        window: Duration,
    },
}

/// All settings, checked.
pub(crate) struct Settings {
    pub name: Arc<str>,
    pub tasks: Vec<Task>,
    /// Former names of tasks, and what they are called now.
    pub aliases: BTreeMap<String, Arc<str>>,
    pub extractor: Arc<dyn Extractor>,
    pub identity: Identity,
    pub order: Order,
    pub attempts: u32,
    pub timeout_share: f64,
    pub concurrency: usize,
    pub hooks: Hooks,
    pub windows: Windows,
    pub duplicates: Duplicates,
    pub responses: Responses,
    pub age_max: Option<Duration>,
    pub sources: Option<BTreeSet<SourceKind>>,
    pub hash_ranges: BTreeMap<String, HashRange>,
    pub state: Arc<dyn State>,
    pub dead_messages: Arc<dyn Sink>,
    pub dead_records: Arc<dyn Sink>,
    pub spill: Option<Spill>,
    pub breaker: Option<Arc<dyn Breaker>>,
    pub environment: Environment,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("name", &self.name)
            .field("tasks", &self.tasks)
            .field("identity", &self.identity)
            .field("order", &self.order)
            .field("attempts", &self.attempts)
            .field("duplicates", &self.duplicates)
            .field("responses", &self.responses)
            .finish_non_exhaustive()
    }
}
