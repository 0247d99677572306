//! Saying that numbers will not come.

use std::ops::Range;

use millpond_store::{Expect, collect};

use crate::advance::Advance;
use crate::config::{GapPolicy, check_seq};
use crate::cursor::Cursor;
use crate::error::{Result, SequencerError};
use crate::gap::{Gap, GapReason, StoredGap};
use crate::heal::Sure;
use crate::limits::{CONFLICTS_MAX, GAP_WRITES_MAX, LISTING_MAX, PENDING_ROWS_MAX};
use crate::names::{kind, life_numbers, number_of, numbers};
use crate::plan::uncovered;
use crate::sequencer::{Place, Sequencer, Swap};

impl Sequencer {
    /// A producer's word that nothing will come for these numbers. Those that came are delivered all the same; the
    /// others are skipped when the cursor gets there. Returns what the cursor passed by this call.
    ///
    /// # Errors
    /// [`SequencerError::NotAllowed`] unless the gap policy skips, [`SequencerError::OutOfRange`] when the range is
    /// behind the cursor or beyond the window.
    pub async fn declare_gap(&self, queue: &str, range: Range<u64>) -> Result<Option<Advance>> {
        let place = self.place(queue)?;
        if !matches!(self.config.gaps, GapPolicy::WhenDeclared | GapPolicy::SkipAfter(_)) {
            let problem = "the gap policy does not skip what is declared";
            return Err(SequencerError::NotAllowed { queue: queue.to_owned(), problem });
        }
        self.skip_range(&place, range, GapReason::Declared).await
    }

    /// Gives up every missing number before `to`, by hand. Messages among them are delivered. Returns what the cursor
    /// passed by this call.
    ///
    /// # Errors
    /// [`SequencerError::OutOfRange`] when `to` is not ahead of the cursor, or beyond the window.
    pub async fn skip(&self, queue: &str, to: u64) -> Result<Option<Advance>> {
        let place = self.place(queue)?;
        let first = self.look(&place, None).await?.cursor.next;
        if to <= first {
            return Err(self.out_of_window(&place, "skip to", to, first));
        }
        self.skip_range(&place, first..to, GapReason::Skipped).await
    }

    fn out_of_window(
        &self,
        place: &Place,
        what: &'static str,
        asked: u64,
        next: u64,
    ) -> SequencerError {
        let (queue, end) = (place.queue.to_string(), next.saturating_add(self.config.window.span));
        SequencerError::OutOfRange { queue, what, asked, first: next, next: end }
    }

    /// Records gaps wherever nothing is in `range`, and lets the cursor pass them.
    pub(crate) async fn skip_range(
        &self,
        place: &Place,
        range: Range<u64>,
        reason: GapReason,
    ) -> Result<Option<Advance>> {
        check_seq("gap", range.end.saturating_sub(1))?;
        if range.is_empty() {
            let problem = format!("{range:?} has no numbers");
            return Err(SequencerError::invalid("gap", problem));
        }
        let mut advance: Option<Advance> = None;
        for _ in 0..CONFLICTS_MAX {
            let stored = self.look(place, None).await?;
            let cursor = &stored.cursor;
            if range.end <= cursor.next && advance.is_none() && reason == GapReason::Declared {
                return Err(self.out_of_window(place, "gap", range.start, cursor.next));
            }
            if range.end.saturating_sub(cursor.next) > self.config.window.span {
                return Err(self.out_of_window(place, "gap end", range.end, cursor.next));
            }
            let mut runs = self.free_runs(place, cursor, &range).await?;
            let more = runs.len() > GAP_WRITES_MAX;
            runs.truncate(GAP_WRITES_MAX);
            let mut writes = Vec::new();
            for (first, end) in runs {
                let gap = Gap { first, end, reason, at: self.environment.now() };
                let life = cursor.life;
                writes.push(gap.put(&place.partition, life, Expect::Absent, &self.environment)?);
            }
            let stored = if writes.is_empty() {
                stored
            } else {
                let made = writes.len() as u64;
                let becomes = Cursor {
                    gaps: cursor.gaps + made,
                    gaps_ahead: cursor.gaps_ahead + made,
                    ..cursor.clone()
                };
                match self.swap(place, &stored, becomes, writes).await? {
                    Swap::Done(made) => made,
                    Swap::Lost(_) => continue,
                }
            };
            let healed = self.heal(place, stored, &Sure::default()).await?;
            if let Some(passed) = healed.advance {
                advance = Some(Advance::join(advance, passed));
            }
            if !more {
                return Ok(advance);
            }
        }
        Err(SequencerError::contended("skip"))
    }

    /// Where in `range`, ahead of the cursor, there is neither a message nor a gap.
    async fn free_runs(
        &self,
        place: &Place,
        cursor: &Cursor,
        range: &Range<u64>,
    ) -> Result<Vec<(u64, u64)>> {
        let first = range.start.max(cursor.next);
        if first >= range.end {
            return Ok(Vec::new());
        }
        let store = self.store.as_ref();
        let query = numbers(&place.partition, kind::ITEM, first, range.end)?;
        let items = collect(store, query, PENDING_ROWS_MAX).await?;
        let items = items.iter().map(|item| number_of(&item.key)).collect::<Result<_>>()?;
        // A gap may begin before the range; none begins before the cursor.
        let (partition, life) = (&place.partition, cursor.life);
        let query = life_numbers(partition, kind::GAP, life, cursor.next, range.end)?;
        let gaps = collect(store, query, LISTING_MAX).await?;
        let gaps = gaps.iter().map(StoredGap::decode).collect::<Result<Vec<_>>>()?;
        Ok(uncovered(first, range.end, &items, &gaps))
    }
}
