//! Moving a cursor as far as it can go.
//!
//! A message is stored before its putter reads the cursor, and a cursor is advanced before its advancer looks what
//! is behind it. So for every message either its putter sees the cursor wait for it, or whoever moves the cursor
//! there later sees the message.

use std::collections::BTreeSet;

use millpond_store::{Certainty, Expect, Write};

use crate::advance::Advance;
use crate::cursor::{Cursor, Stored};
use crate::error::{Result, SequencerError};
use crate::limits::{CONFLICTS_MAX, GAP_WRITES_MAX, STEPS_MAX};
use crate::plan::{Found, Step, plan};
use crate::sequencer::{Place, Sequencer, Swap};

/// What a call knows to be stored without looking.
#[derive(Debug, Default)]
pub(crate) struct Sure {
    /// Numbers whose messages are stored.
    pub(crate) numbers: BTreeSet<u64>,
    /// The life of the queue in which they were stored, when that is known.
    pub(crate) life: Option<u64>,
    /// Messages may be waiting up to here.
    pub(crate) highest: u64,
}

impl Sure {
    /// The end of the run of sure numbers that begins at the cursor.
    pub(crate) fn run_end(&self, cursor: &Cursor) -> u64 {
        if self.life.unwrap_or(0) != cursor.life {
            // A reset came in between: what was stored may have been removed.
            return cursor.next;
        }
        let mut end = cursor.next;
        while self.numbers.contains(&end) {
            end += 1;
        }
        end
    }
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Healed {
    /// What this call passed, in one piece.
    pub(crate) advance: Option<Advance>,
    /// The cursor as last seen.
    pub(crate) stored: Stored,
}

impl Sequencer {
    /// Moves the cursor from what is `stored` as far as it can go. When another call moves it at the same time, that
    /// one goes on and this one ends, so that what each call passed is one piece.
    ///
    /// A failure after something was passed is left to the next put or to the sweeper, since what was passed must be
    /// told.
    pub(crate) async fn heal(&self, place: &Place, stored: Stored, sure: &Sure) -> Result<Healed> {
        let mut healed = Healed { advance: None, stored };
        let mut conflicts = 0;
        for _ in 0..STEPS_MAX {
            let moved = match self.step(place, &healed.stored, sure).await {
                Ok(None) => return Ok(healed),
                Ok(Some(step)) => self.take(place, &healed.stored, step).await,
                Err(error) => Err(error),
            };
            match moved {
                Ok(Swap::Done(made)) => {
                    let (first, next) = (healed.stored.cursor.next, made.cursor.next);
                    if let Some(passed) = Advance::new(first, next) {
                        self.hub.announce(&place.queue, made.cursor.epoch, passed);
                        healed.advance = Some(Advance::join(healed.advance, passed));
                    }
                    healed.stored = made;
                    conflicts = 0;
                }
                Ok(Swap::Lost(current)) => {
                    let taken_over = current.cursor.next != healed.stored.cursor.next
                        || current.cursor.epoch != healed.stored.cursor.epoch;
                    healed.stored = current;
                    conflicts += 1;
                    if healed.advance.is_some() && taken_over {
                        return Ok(healed);
                    }
                    if conflicts > CONFLICTS_MAX || healed.stored.cursor.reset_to.is_some() {
                        return self.unfinished(place, healed, SequencerError::contended("put"));
                    }
                }
                Err(error) => return self.unfinished(place, healed, error),
            }
        }
        // What is left waits for the next put, or for the sweeper.
        self.known.suspect(&place.queue);
        Ok(healed)
    }

    fn unfinished(&self, place: &Place, healed: Healed, error: SequencerError) -> Result<Healed> {
        self.known.suspect(&place.queue);
        // Where a step may have been made or not, what was passed cannot be told.
        let unknown = matches!(&error, SequencerError::Store(error)
            if error.certainty() == Certainty::Unknown);
        if healed.advance.is_none() || unknown {
            return Err(error);
        }
        tracing::debug!(queue = %place.queue, %error, "left for the sweeper");
        Ok(healed)
    }

    /// The next step from `stored`; nothing when the cursor cannot move.
    async fn step(&self, place: &Place, stored: &Stored, sure: &Sure) -> Result<Option<Step>> {
        let (cursor, batch) = (&stored.cursor, self.config.batch);
        let run_end = sure.run_end(cursor);
        let mut found = Found { gaps_to: u64::MAX, ..Found::default() };
        if cursor.gaps_ahead > 0 {
            (found.gaps, found.gaps_to) =
                self.gaps_from(place, cursor.life, cursor.next, GAP_WRITES_MAX / 2).await?;
            (found.items, found.complete_to) =
                self.stored_numbers(place, cursor.next, batch).await?;
        } else if run_end == cursor.next {
            // One row tells whether there is anything to do, at the price of one row.
            let (first, _) = self.stored_numbers(place, cursor.next, 1).await?;
            if !first.contains(&cursor.next) {
                return Ok(None);
            }
            if batch > 1 {
                (found.items, found.complete_to) =
                    self.stored_numbers(place, cursor.next, batch).await?;
            } else {
                found.items = first;
            }
        } else if run_end < sure.highest && run_end - cursor.next < batch as u64 {
            (found.items, found.complete_to) = self.stored_numbers(place, run_end, batch).await?;
        }
        found.items.extend(cursor.next..run_end);
        let step = plan(cursor.next, &found, batch);
        Ok((step.next > cursor.next || !step.made.is_empty()).then_some(step))
    }

    async fn take(&self, place: &Place, stored: &Stored, step: Step) -> Result<Swap> {
        let cursor = &stored.cursor;
        let becomes = Cursor {
            next: step.next,
            gaps: (cursor.gaps + step.made.len() as u64).saturating_sub(step.replaced.len() as u64),
            gaps_ahead: cursor.gaps_ahead.saturating_sub(step.passed),
            parked: None,
            ..cursor.clone()
        };
        let writes = self.gap_writes(place, cursor.life, &step)?;
        self.swap(place, stored, becomes, writes).await
    }

    fn gap_writes(&self, place: &Place, life: u64, step: &Step) -> Result<Vec<Write>> {
        let mut writes = Vec::new();
        for gap in &step.made {
            let replaced = step.replaced.iter().find(|old| old.gap.first == gap.first);
            let expect = replaced.map_or(Expect::Absent, |old| Expect::Version(old.version));
            writes.push(gap.put(&place.partition, life, expect, &self.environment)?);
        }
        for old in &step.replaced {
            if !step.made.iter().any(|gap| gap.first == old.gap.first) {
                writes.push(old.delete(&place.partition, life)?);
            }
        }
        Ok(writes)
    }
}
