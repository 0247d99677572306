//! A sequencer under load: numbers put by several at once, and what must be there afterwards.

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::{Context, ensure};
use millpond_embedded::EmbeddedStore;
use millpond_sequencer::{Config, Message, Sequencer};
use millpond_store::{Environment, Rng, SeededRng};

use crate::load::print;
use crate::report::Acknowledged;

const QUEUE: &str = "queue";
/// Each puts every fourth number, so that all are ahead of some other now and then.
pub(crate) const PUTTERS: u32 = 4;

fn open(store: &EmbeddedStore, environment: &Environment) -> anyhow::Result<Sequencer> {
    Ok(Sequencer::open(Arc::new(store.clone()), environment, "crash", Config::default())?)
}

fn payload(number: u64) -> Message {
    let words = SeededRng::new(number).below(200);
    Message::new((0..words).flat_map(|word| (number ^ word).to_be_bytes()).collect::<Vec<u8>>())
}

#[derive(Clone)]
pub(crate) struct SequencerLoad(Sequencer);

impl SequencerLoad {
    pub(crate) fn open(store: &EmbeddedStore, environment: &Environment) -> anyhow::Result<Self> {
        Ok(Self(open(store, environment)?))
    }

    /// Puts numbers without end, beginning with what the queue waits for.
    pub(crate) async fn put(self, putter: u32) -> anyhow::Result<()> {
        let next = self.0.cursor(QUEUE).await?.map_or(0, |cursor| cursor.next);
        let of_mine = |number: &u64| number % u64::from(PUTTERS) == u64::from(putter);
        for number in (next..).filter(of_mine) {
            let result = self.0.put(QUEUE, number, payload(number)).await?;
            print(Acknowledged::Sequenced { putter, number })?;
            if let Some(passed) = result.advanced {
                print(Acknowledged::Passed {
                    first: u32::try_from(passed.first)?,
                    next: passed.next,
                })?;
            }
        }
        Ok(())
    }
}

/// What was acknowledged of the sequencer.
#[derive(Debug, Default)]
pub(crate) struct SequencerExpected {
    put: BTreeSet<u64>,
    passed: BTreeSet<(u64, u64)>,
    /// Everything before it was read and is as it was put.
    checked: u64,
}

impl SequencerExpected {
    pub(crate) fn put(&mut self, number: u64) {
        self.put.insert(number);
    }

    pub(crate) fn passed(&mut self, first: u64, next: u64) {
        self.passed.insert((first, next));
    }

    /// What was put is there: readable before the cursor, waiting behind it. No number was passed twice.
    pub(crate) async fn check(&mut self, store: &EmbeddedStore) -> anyhow::Result<()> {
        let sequencer = open(store, &Environment::system())?;
        let next = sequencer.cursor(QUEUE).await?.map_or(0, |cursor| cursor.next);
        let mut end = self.checked;
        for (first, passed) in std::mem::take(&mut self.passed) {
            ensure!(first >= end, "{first}..{passed} was passed, and {end} before");
            end = passed;
        }
        ensure!(next >= end, "{end} was passed, and the queue waits for {next}");
        while self.checked < next {
            let read = sequencer.read(QUEUE, self.checked..next).await?;
            ensure!(read.next > self.checked, "nothing at {}", self.checked);
            for found in read.messages() {
                ensure!(found.seq == self.checked, "{} is missing", self.checked);
                ensure!(found.message == payload(found.seq), "{} has changed", found.seq);
                self.checked += 1;
            }
        }
        let waiting = sequencer.pending(QUEUE).await.context("what waits")?.runs;
        for number in std::mem::take(&mut self.put).range(next..) {
            let waits = waiting.iter().any(|run| run.contains(number));
            ensure!(waits, "{number} was put, and only {waiting:?} wait behind {next}");
        }
        Ok(())
    }
}
