//! What a seed decides about a history.

use std::time::Duration;

use millpond_store::{FaultRates, Rng as _, SeededRng};

/// What delivers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// A Kinesis stream.
    Stream,
    /// The stream of a DynamoDB table, of which each batch at a time is of a shard of its own.
    Table(View),
    /// A standard queue.
    Queue,
    /// A FIFO queue.
    Fifo,
}

/// What the records of a table's stream show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Keys alone.
    Keys,
    /// The item as it is now.
    New,
    /// The item as it was.
    Old,
    /// Both.
    Both,
}

/// What goes wrong beyond handlers that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    /// Nothing: every call is exactly as the model says.
    None,
    /// The process is killed in the middle of handlers.
    Kills,
    /// Requests to the store fail, and their outcomes get lost.
    Faults,
    /// Both.
    Both,
}

/// A history.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Everything else comes from it.
    pub seed: u64,
    /// What delivers.
    pub source: Source,
    /// What goes wrong.
    pub harm: Harm,
    /// Messages.
    pub messages: u64,
    /// Business keys.
    pub keys: u64,
    /// Most records in a batch.
    pub batch: u64,
    /// Batches of one shard at a time.
    pub parallel: u64,
    /// Whether a batch that failed is halved.
    pub bisect: bool,
    /// Whether the function names what is unfinished, or fails as a whole.
    pub partial: bool,
    /// How often a batch is tried before the mapping gives it up; for ever when not given.
    pub retries_max: Option<u32>,
    /// Attempts at a task.
    pub attempts: u32,
    /// How old records of a stream may become before the mapping gives them up; as old as they like when not given.
    pub age_max: Option<Duration>,
    /// How many records of a stream fall into one tumbling window; no windows when not given.
    pub window: Option<u64>,
    /// Whether handlers work in steps.
    pub steps: bool,
    /// Whether the mapping may lose patience with a process that goes on: its work comes again beside it, and what it writes then
    /// is stale. Its harm is none other.
    pub stale: bool,
}

impl Settings {
    /// The history of a seed.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let plain = Self { steps: !seed.is_multiple_of(4), ..Self::plain(seed) };
        if plain.source != Source::Stream {
            return plain;
        }
        let rng = SeededRng::new(seed ^ 0x71AB);
        let view = [View::Keys, View::New, View::Old, View::Both][rng.below(4) as usize];
        let source = if rng.chance(0.5) { Source::Table(view) } else { plain.source };
        let window = rng.chance(0.5).then(|| 1 + rng.below(30));
        Self { source, ..plain }.windows(window)
    }

    /// The same with processes that outlive their deliveries, and nothing else that goes wrong.
    #[must_use]
    pub fn outliving(self) -> Self {
        Self { stale: true, harm: Harm::None, ..self }
    }

    /// The same with tumbling windows. Of a Kinesis stream, a shard has one batch at a time then.
    #[must_use]
    pub fn windows(self, window: Option<u64>) -> Self {
        let alone = window.is_some() && self.source == Source::Stream;
        Self { window, parallel: if alone { 1 } else { self.parallel }, ..self }
    }

    /// The history of a seed, without windows, tables and steps: seeds that failed before there were any are kept by this.
    #[must_use]
    pub fn plain(seed: u64) -> Self {
        let rng = SeededRng::new(seed);
        let source =
            [Source::Stream, Source::Stream, Source::Queue, Source::Fifo][rng.below(4) as usize];
        let harm = [Harm::None, Harm::Kills, Harm::Faults, Harm::Both][rng.below(4) as usize];
        Self {
            seed,
            source,
            harm,
            messages: 10 + rng.below(50),
            keys: 1 + rng.below(8),
            batch: 1 + rng.below(25),
            parallel: 1 + rng.below(3),
            bisect: rng.chance(0.5),
            partial: source != Source::Stream || rng.chance(0.7),
            retries_max: rng.chance(0.1).then_some(3),
            attempts: 4,
            age_max: rng.chance(0.05).then(|| Duration::from_secs(30 + rng.below(120))),
            window: None,
            steps: false,
            stale: false,
        }
    }

    /// How many records fall into one tumbling window. Queues have none.
    pub(super) fn window(&self) -> Option<u64> {
        self.window.filter(|_| matches!(self.source, Source::Stream | Source::Table(_)))
    }

    /// The chances of faults in the store.
    pub(super) fn faults(&self) -> Option<FaultRates> {
        matches!(self.harm, Harm::Faults | Harm::Both).then_some(FaultRates {
            conflict: 0.03,
            definite: 0.03,
            unknown_before: 0.02,
            unknown_after: 0.02,
            throttle: 0.02,
            delay: 0.02,
            delay_max: Duration::from_secs(2),
        })
    }

    pub(super) const fn kills(&self) -> bool {
        matches!(self.harm, Harm::Kills | Harm::Both)
    }

    /// Whether the store and the mapping do as they should: then ends of windows are counted exactly, kills or not.
    pub(super) fn is_sound(&self) -> bool {
        !self.stale
            && self.faults().is_none()
            && self.retries_max.is_none()
            && self.age_max.is_none()
    }

    /// Whether every call is to be exactly as the model says.
    pub(super) fn is_exact(&self) -> bool {
        self.harm == Harm::None && self.is_sound()
    }
}
