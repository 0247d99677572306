//! A sequencer in a simulated world: numbers put in any order, by anybody, more than once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, ensure};
use millpond_sequencer::{Advance, Config, Message, Sequencer};

use super::world::{Process, Scenario};

const NAME: &str = "simulated";
const QUEUE: &str = "queue";
/// How far ahead of the first missing number processes put others.
const AHEAD: u64 = 12;

/// What processes were told.
#[derive(Debug, Default)]
struct Told {
    /// Ranges that the cursor passed, by their first numbers.
    passed: BTreeMap<u64, u64>,
    /// Numbers that a put began with.
    tried: u64,
    wrong: Option<String>,
}

impl Told {
    /// No number is passed twice.
    fn passed(&mut self, advance: Advance) {
        let Advance { first, next } = advance;
        let overlap = self.passed.range(..next).next_back().filter(|(_, end)| **end > first);
        if let Some((other, end)) = overlap {
            let wrong = format!("{first}..{next} was passed, and so was {other}..{end}");
            self.wrong.get_or_insert(wrong);
        }
        self.passed.insert(first, next);
    }
}

#[derive(Clone, Default)]
pub(crate) struct SequencerScenario(Arc<Mutex<Told>>);

impl SequencerScenario {
    fn told(&self) -> MutexGuard<'_, Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open(process: &Process) -> anyhow::Result<Sequencer> {
        let ground = &process.ground;
        let sequencer = Sequencer::open(
            Arc::clone(&ground.store),
            &process.environment,
            NAME,
            Config { batch: 5, ..Config::default() },
        );
        sequencer.context("a sequencer opens without a request")
    }

    async fn put(&self, process: &Process, sequencer: &Sequencer, number: u64) -> bool {
        {
            let mut told = self.told();
            told.tried = told.tried.max(number + 1);
        }
        let outcome = sequencer.put(QUEUE, number, payload(number)).await;
        let advanced = outcome.as_ref().ok().and_then(|result| result.advanced);
        process.ended(format_args!("put {number}: {outcome:?}"));
        advanced.into_iter().for_each(|advance| self.told().passed(advance));
        outcome.is_ok()
    }
}

fn payload(number: u64) -> Message {
    Message::new(format!("payload {number}"))
}

impl Scenario for SequencerScenario {
    async fn work(self, process: Process) -> anyhow::Result<()> {
        let sequencer = Self::open(&process)?;
        let rng = Arc::clone(&process.environment.rng);
        loop {
            match rng.below(10) {
                0..8 => {
                    let first = sequencer.cursor(QUEUE).await.ok().flatten();
                    let first = first.map_or(0, |cursor| cursor.next);
                    let number = first.saturating_sub(2) + rng.below(AHEAD);
                    self.put(&process, &sequencer, number).await;
                }
                8 => {
                    if let Ok(swept) = sequencer.sweep_all().await {
                        let advanced = swept.advanced.into_iter();
                        advanced.for_each(|(_, advance)| self.told().passed(advance));
                    }
                    process.ended(format_args!("sweep"));
                }
                _ => process.environment.clock.sleep(Duration::from_millis(rng.below(2_000))).await,
            }
        }
    }

    async fn finish(self, process: Process) -> anyhow::Result<()> {
        let sequencer = Self::open(&process)?;
        let tried = self.told().tried;
        for number in 0..tried {
            ensure!(self.put(&process, &sequencer, number).await, "the last put of {number}");
        }
        for (_, advance) in sequencer.sweep_all().await?.advanced {
            self.told().passed(advance);
        }
        let cursor = sequencer.cursor(QUEUE).await?.context("there is a cursor")?;
        ensure!(cursor.next == tried, "the cursor is at {}, not at {tried}", cursor.next);
        let mut from = 0;
        while from < tried {
            let read = sequencer.read(QUEUE, from..tried).await?;
            ensure!(read.next > from, "nothing is read at {from}");
            for found in read.messages() {
                ensure!(found.seq == from, "{} where {from} belongs", found.seq);
                ensure!(found.message == payload(from), "{from} has changed");
                from += 1;
            }
        }
        Ok(())
    }

    fn wrong(&self) -> Option<String> {
        self.told().wrong.clone()
    }
}
